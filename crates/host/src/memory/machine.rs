//! This machine without a disk, put together.

use super::disk::MemoryDisk;
use crate::Host;
use std::sync::Arc;

/// This machine with an empty disk in memory, for a server that keeps nothing.
#[must_use]
pub fn host() -> Host {
    Host { disk: Arc::new(MemoryDisk::untracked()), ..crate::real::host() }
}
