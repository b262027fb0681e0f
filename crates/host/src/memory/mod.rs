//! A disk in memory: the disk of `--memory` and, with durability tracked, of the simulated machine.
//!
//! Without tracking, it keeps one copy of the bytes and `sync` costs nothing. With tracking (and a `Watch`, which `sim` implements),
//! each file also has the bytes of its last sync, which share pages with the present bytes until those are written,
//! and each folder has the names of its last `sync_dir`.

mod disk;
mod file;
mod image;
mod inode;
mod journal;
mod machine;
mod pages;
mod profile;
mod rename;
mod space;
mod tree;
mod watch;

pub(crate) use disk::{MemoryDisk, Shared};
pub use machine::host;
pub use profile::Profile;
pub(crate) use tree::Tree;
pub use watch::Call;
pub(crate) use watch::Watch;
