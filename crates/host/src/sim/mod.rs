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
mod random;
mod tasks;
mod watch;

pub use cuts::{Cut, When};
pub use faults::{Call, Fault};
pub use machine::{Machine, Survives};
pub(crate) use random::Sequence;
pub(crate) use watch::Watch;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod task_tests;
