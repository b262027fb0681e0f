//! The host of a server without a disk: files are in memory and vanish with it; clocks and threads are this machine's.
//!
//! `helenus serve --memory` and tests use it.

use super::disk::MemoryDisk;
use crate::Host;
use std::sync::Arc;

/// The host of this machine with an empty disk in memory.
#[must_use]
pub fn host() -> Host {
    Host { disk: Arc::new(MemoryDisk::untracked()), ..crate::real::host() }
}
