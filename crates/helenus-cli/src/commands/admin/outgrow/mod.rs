//! `helenus admin outgrow`: when this machine will be too small, and what a cluster would need. nodetool has no such verb.
//!
//! `trend` fits a line to the history of a figure, `limits` compares each figure with its bound, `cluster` computes the nodes of
//! a cluster, and `report` prints all of it with its arithmetic.

mod cluster;
mod limits;
mod report;
mod run;
mod trend;

pub use run::{Wanted, run};
