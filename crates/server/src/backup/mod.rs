//! Backups: a directory, or a tar archive of one, with schema, SSTables, and a manifest of every file's size and digest.
//!
//! `manifest` says what a backup holds, and whether a directory still does; `restore` takes one back, and `journal` keeps what
//! a restore has done, for when it is cut; `archive` is the one file. The tool writes backups: it makes a directory of what `admin::export` hands out.

mod archive;
mod journal;
mod manifest;
mod restore;

pub use archive::ArchiveWriter;
pub(crate) use manifest::hex;
pub use manifest::{BackedUpFile, BackedUpTable, BackupManifest, MANIFEST, digest_of};
pub use restore::{remove_all, restore};
