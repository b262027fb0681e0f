//! The machine this process runs on, put together.

use super::files::RealDisk;
use super::tasks::Threads;
use super::time::{OsRandom, SystemClock};
use crate::Host;
use std::sync::Arc;

/// The machine this process runs on.
#[must_use]
pub fn host() -> Host {
    Host {
        disk: Arc::new(RealDisk),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(OsRandom),
        tasks: Arc::new(Threads),
    }
}
