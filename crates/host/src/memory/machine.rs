//! The host of a server that keeps nothing.

use super::disk::MemoryDisk;
use crate::Host;
use std::sync::Arc;

/// The host of this machine with an empty disk in memory.
#[must_use]
pub fn host() -> Host {
    Host { disk: Arc::new(MemoryDisk::untracked()), ..crate::real::host() }
}
