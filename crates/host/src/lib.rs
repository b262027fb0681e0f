//! The host: files, clocks, randomness and background work behind small traits.
//!
//! `real` is the only module of the project that uses std::fs, SystemTime, std::thread and OS randomness. `sim` is a
//! simulated machine that distinguishes written from synced data and runs background work in a seeded order. `memory`
//! is the disk of `sim`, and of a server that keeps nothing (`--memory`). `thread_pool` has threads for work that may wait.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test ends at the first surprise"))]

pub mod account;
#[cfg(feature = "allocator")]
mod allocator;

mod disk;
mod error;
mod huge_pages;
pub mod memory;
mod pages;
mod prefetch;
mod random;
pub mod real;
pub mod sim;
mod tasks;
pub mod thread_pool;
mod time;

#[cfg(feature = "allocator")]
pub use allocator::{keep_freed_memory_ms, release_freed_memory};

pub use disk::{Disk, File};
pub use error::{LockHeld, PathError, lock_holder, raw_os_error};
pub use huge_pages::{HUGE_PAGE_BYTES, remap_as_huge_pages};
pub use pages::{DIRECT_PAGE_BYTES, PageBuffer, is_direct};
pub use prefetch::{prefetch, prefetch_lines};
pub use tasks::{Next, Signal, TaskHandle, Tasks, Worker, contain};
pub use time::{Clock, Random};

use std::sync::Arc;

/// A host, passed to constructors by value. Cloning shares it.
#[derive(Clone)]
pub struct Host {
    /// Its file system.
    pub disk: Arc<dyn Disk>,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// Its randomness.
    pub random: Arc<dyn Random>,
    /// Its background work.
    pub tasks: Arc<dyn Tasks>,
}

#[cfg(test)]
mod disk_tests;
