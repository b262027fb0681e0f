//! A simulated machine in memory for tests. It distinguishes written from synced bytes and volatile from durable
//! names, fails calls on request, keeps the data that a crash at any sync would leave, and runs background work in a
//! seeded order.
//!
//! Tests start with [`Machine`]. The same seed and the same calls give the same machine, as long as one thread uses
//! it.

mod clock;
mod cuts;
mod faults;
mod machine;
mod tasks;
mod watch;

pub use crate::memory::{Call, Profile};
pub use cuts::{Cut, When};
pub use faults::Fault;
pub use machine::{Machine, Survives};

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod task_tests;
