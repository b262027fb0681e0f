//! A cluster: its nodes, and the ways to run statements.

mod cluster_handle;
mod control;
mod run;
mod told_events;

pub use cluster_handle::{Cluster, ClusterEvent};
