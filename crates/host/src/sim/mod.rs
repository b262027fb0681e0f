//! A machine in memory for tests: it knows written from synced bytes and volatile from durable names, fails the call
//! it is told to fail, keeps what a crash would leave at any sync, and runs background work in a seeded order.
//!
//! [`Machine`] is the way in. The same seed and the same calls give the same machine, as long as one thread uses it.

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
