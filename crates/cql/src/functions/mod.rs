//! Functions that terms and selections call.

mod call;

pub use call::{Argument, CallContext, Scalar, find};
