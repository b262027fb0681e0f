//! Backups: a directory, or a tar archive of one, with the schema, SSTables, and a manifest of every file's size and
//! digest.
//!
//! `manifest` lists the contents of a backup and checks a directory against it; `archive` is the tar file. `restore`
//! restores a backup, and `journal` records its progress in case it is interrupted. Backups are written by the tool,
//! from the folder that `admin::exports` makes.

mod archive;
mod journal;
mod manifest;
mod order;
mod restore;

pub use archive::ArchiveWriter;
pub(crate) use manifest::hex;
pub use manifest::{BackedUpFile, BackedUpTable, BackupManifest, MANIFEST, digest_of};
pub use order::{RestoreOrder, Restored, RestoredTable};
pub use restore::{manifest_of, remove_all, restore};
