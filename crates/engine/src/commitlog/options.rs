//! When writes are acknowledged, and the other options of the log.

use super::kept::KeptLimits;
use crate::journal::JournalSlot;
use crate::timestamps::{LastAssigned, TrustedClock};
use std::path::PathBuf;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Once the operating system has it; synced every `period_ms`. Survives the process, but not a power cut.
    Periodic {
        /// Milliseconds between syncs.
        period_ms: u64,
    },
    /// Once it is synced; each sync begins when a write waits for it.
    Batch,
    /// Once it is synced; the next sync begins when the last has ended, and covers all waiting writes.
    Group,
}

impl SyncMode {
    /// Whether an acknowledgement waits for the disk.
    pub fn waits_for_sync(self) -> bool {
        !matches!(self, SyncMode::Periodic { .. })
    }
}

/// Options of the log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The folder of the segments.
    pub dir: PathBuf,
    /// The folder of the segments that are kept for readers of changes.
    pub kept_dir: PathBuf,
    /// How much of them is kept.
    pub kept_limits: KeptLimits,
    /// When a write is acknowledged.
    pub mode: SyncMode,
    /// Size of a full-size segment. The first segments are smaller, so that a start and a small database cost little.
    pub segment_bytes: u32,
    /// Receives failures.
    pub journal: JournalSlot,
    /// The time by which kept segments grow old.
    pub trusted_clock: TrustedClock,
    /// The greatest timestamp that the server has given to a write. Each chunk of the log begins with it.
    pub last_given: LastAssigned,
}
