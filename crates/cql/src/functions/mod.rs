//! Functions that terms and selections call.
//!
//! `call` is the seam: what a function is and what a call may ask for. `resolve` chooses a function by name and
//! arguments; `native` lists those there are, `time`, `token`, `cast` compute them; `aggregate` makes one value of many
//! rows.

mod aggregate;
mod call;
mod cast;
mod native;
mod resolve;
mod time;

pub(crate) use aggregate::{Aggregate, Fold};
pub use call::{Argument, CallContext, Scalar};
pub use resolve::find;
pub(crate) use resolve::{CallPlace, Found, lookup};
