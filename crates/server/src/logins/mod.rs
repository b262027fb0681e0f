//! The checks of logins, which all interfaces share: `pool` has their threads; `helenus_logins` the order in
//! which they are checked, and the delays of failed ones.

mod pool;

pub use pool::{LoginFigures, LoginPool};
pub(crate) use pool::{TOO_MANY_LOGINS, WaitingLogin};
