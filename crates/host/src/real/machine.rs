//! The host of a real machine.

use super::files::RealDisk;
use super::size::open_files_allowed;
use super::tasks::Threads;
use super::time::{OsRandom, SystemClock};
use crate::Host;
use std::sync::Arc;

/// Files open for reading may use one in this many of the process's descriptors, within these bounds.
const READ_PART: u64 = 4;
const READ_MIN: u64 = 16;
const READ_MAX: u64 = 32_768;

/// Maximum number of descriptors for files that are open for reading, if the process may have `allowed` in all.
#[must_use]
pub fn read_descriptors_max(allowed: u64) -> u64 {
    (allowed / READ_PART).clamp(READ_MIN, READ_MAX)
}

/// The host for this machine. Files open for reading may use a quarter of the descriptors that the process may have
/// now.
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
