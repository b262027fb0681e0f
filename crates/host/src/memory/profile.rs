//! The rules by which file systems lose what is not durable in a power cut: one profile for each.
//!
//! | | names | bytes within the durable length | bytes behind it |
//! |---|---|---|---|
//! | `Strict` | any subset of the changes since the folder's sync | any subset of blocks | any length, any subset of blocks, else zeroes |
//! | `Ext4Ordered` | all changes before the last commit, then a prefix of the later ones | any subset of blocks | any length, with its bytes |
//! | `Xfs` | likewise | likewise | likewise |
//!
//! `Strict` is POSIX's promise and nothing more: a name is durable after a sync of its folder. A rename between folders
//! may keep both names, once only the new name's folder was synced (`journal`). No file system in use loses that much,
//! so what stands on it stands on all.
//!
//! The two others keep one journal for all changes of metadata, and replay it in order after a power cut: a later change of
//! a name never survives an earlier one, in whatever folders, and a rename is one change. Sources: Linux's
//! `Documentation/filesystems/ext4/journal.rst` (the journal and its commits) and
//! `Documentation/filesystems/xfs/xfs-delayed-logging-design.rst` (checkpoints are written and recovered in their
//! order; a log force writes everything before it). A commit follows from `sync_dir`, and from a sync of a file
//! whose length has changed; a sync that only wrote over old bytes (fdatasync) needs none. Later changes may be
//! committed by themselves at any time (`commit=` of `Documentation/admin-guide/ext4.rst`: five seconds).
//!
//! Bytes that make a file longer are written before the length counts: ext4 by `data=ordered` ("All data are forced directly
//! out to the main file system prior to its metadata being committed", `Documentation/admin-guide/ext4.rst`), XFS by changing
//! the length when the write has ended. The block that the old end lies in is written over, like all bytes
//! before it, in no order.
//!
//! One rule is ext4's alone (`auto_da_alloc`, same page, the default): a file that is renamed over another has its bytes. On
//! XFS such a file may be empty.

/// A file system, as far as a power cut tells it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// POSIX's promise: whatever may be lost is lost or kept by itself.
    Strict,
    /// ext4 with `data=ordered`, its default.
    Ext4Ordered,
    /// XFS.
    Xfs,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 3] = [Profile::Strict, Profile::Ext4Ordered, Profile::Xfs];

    /// Whether changes of names survive in their order.
    pub(crate) fn keeps_order(self) -> bool {
        self != Profile::Strict
    }

    /// Whether a greater length survives with its bytes only.
    pub(crate) fn lengthens_with_bytes(self) -> bool {
        self != Profile::Strict
    }

    /// Whether a file that replaces another by a rename survives with its bytes.
    pub(crate) fn renames_with_bytes(self) -> bool {
        self == Profile::Ext4Ordered
    }
}
