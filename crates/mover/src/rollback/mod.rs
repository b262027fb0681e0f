//! The ways back from a cut: `roll_back` brings the target's later writes, `lost_target` does without them. `pass` is one comparison of
//! both sides; `counters_back` does it for tables of counters. `way_back` says, before a cut and at each `verify`, whether a table could be
//! brought back.

mod counters_back;
mod lost_target;
mod pass;
mod roll_back;
mod way_back;

pub(crate) use lost_target::serve_without_target;
pub(crate) use roll_back::{Rollback, roll_back};
pub(crate) use way_back::way_back;
