//! What is to be restored, and what was: the order of a tool, and its answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A restore, as a tool orders it. Paths are absolute, on the server's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreOrder {
    /// A directory that `helenus backup` made.
    pub directory: PathBuf,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table of it.
    pub table: Option<String>,
    /// Give the keyspace this name.
    pub as_keyspace: Option<String>,
    /// Give the table this name.
    pub as_table: Option<String>,
    /// Copy files even where they could be linked.
    pub copy: bool,
    /// Do not read every row first; digests are still compared.
    pub no_verify: bool,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// The result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Identity of the backup.
    pub backup: String,
    /// When it was taken.
    pub created_at: String,
    /// The restored tables.
    pub tables: Vec<RestoredTable>,
    /// Files whose digests were compared.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// A restored table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredTable {
    /// Keyspace and name in the backup.
    pub from: (String, String),
    /// Keyspace and name here.
    pub to: (String, String),
    /// Number of SSTables.
    pub sstables: u64,
    /// Whether an earlier, interrupted run had already restored it.
    pub was_there: bool,
}
