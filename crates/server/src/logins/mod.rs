//! The checks of logins, which all interfaces share: `pool` has their threads, `turns` the order in which they are checked.

mod pool;
mod turns;

pub use pool::{LoginFigures, LoginPool};
pub(crate) use pool::{TOO_MANY_LOGINS, Turn, WaitingLogin};
