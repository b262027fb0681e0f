//! A disk in memory: the disk of `--memory` and, with durability tracked, of the simulated machine.
//!
//! Untracked, it keeps one copy of the bytes and `sync` is free. Tracked (it then has a `Watch` of `sim`), each file
//! also knows the bytes of its last sync, which share their pages with the present ones until written again, and each
//! folder the names of its last `sync_dir`.

mod disk;
mod file;
mod image;
mod inode;
mod journal;
mod machine;
mod pages;
mod rename;
mod space;
mod tree;

pub(crate) use disk::{MemoryDisk, Shared};
pub use machine::host;
pub(crate) use tree::Tree;
