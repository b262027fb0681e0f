//! The machine this process runs on, put together.

use super::files::RealDisk;
use super::size::open_files_allowed;
use super::tasks::Threads;
use super::time::{OsRandom, SystemClock};
use crate::Host;
use std::sync::Arc;

/// Of the descriptors that the process may have, the part that files which are open for reading may have, and bounds of it.
const READ_PART: u64 = 4;
const READ_MIN: u64 = 16;
const READ_MAX: u64 = 32_768;

/// Descriptors of files that are open for reading, where the process may have `allowed` in all.
#[must_use]
pub fn read_descriptors_max(allowed: u64) -> u64 {
    (allowed / READ_PART).clamp(READ_MIN, READ_MAX)
}

/// The machine this process runs on. Of the descriptors that it may have now, files that are open for reading get a quarter.
#[must_use]
pub fn host() -> Host {
    let descriptors_max = usize::try_from(read_descriptors_max(open_files_allowed())).unwrap_or(usize::MAX);
    Host {
        disk: Arc::new(RealDisk::new(descriptors_max)),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(OsRandom),
        tasks: Arc::new(Threads),
    }
}
