//! What statements become: typed, ready to run again and again with other values. One file a family.

mod analysed;
pub(crate) mod describe;
mod execution;
pub(crate) mod select;

pub(crate) use analysed::{Analysed, Plan, analyse};
pub(crate) use execution::Execution;
