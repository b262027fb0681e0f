//! The bytes that key caches and row index caches may take. Each kind has a share of its own, so that neither displaces
//! the other or the blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Part of the pool's bytes that key caches may take: one in so many.
const KEYS_SHARE: u64 = 16;
/// The same for row index caches.
const ROW_INDEXES_SHARE: u64 = 32;
/// The least bytes for row index caches, unless the pool keeps nothing: enough for the row index of a partition of ten
/// million small rows. What their share lacks to this comes on top of the pool's bytes.
const ROW_INDEXES_MIN: u64 = 4 << 20;

/// What has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The key caches: positions of partitions.
    Keys,
    /// The row index caches.
    RowIndexes,
}

/// Bytes that are left of each share.
pub struct Budget {
    keys: AtomicU64,
    row_indexes: AtomicU64,
}

impl Budget {
    /// The shares of a pool of this many bytes, and the bytes that it has left for blocks.
    pub(super) fn of(bytes: u64) -> (Budget, u64) {
        let (keys, row_indexes) = (bytes / KEYS_SHARE, bytes / ROW_INDEXES_SHARE);
        let min = if bytes > 0 { ROW_INDEXES_MIN } else { 0 };
        (Budget::with(keys, row_indexes.max(min)), bytes - keys - row_indexes)
    }

    /// Shares of these many bytes.
    pub(crate) fn with(keys: u64, row_indexes: u64) -> Budget {
        Budget { keys: keys.into(), row_indexes: row_indexes.into() }
    }

    /// Bytes that are left of a share.
    pub fn left(&self, share: Share) -> u64 {
        self.of_share(share).load(Ordering::Relaxed)
    }

    fn of_share(&self, share: Share) -> &AtomicU64 {
        match share {
            Share::Keys => &self.keys,
            Share::RowIndexes => &self.row_indexes,
        }
    }
}

/// Bytes that were taken from a share, and that return to it on drop.
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    share: Share,
    bytes: u64,
}

impl Reserved {
    /// No bytes yet.
    pub(crate) fn none(budget: &Arc<Budget>, share: Share) -> Reserved {
        Reserved { budget: budget.clone(), share, bytes: 0 }
    }

    /// Bytes that were taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes this many more bytes; false if fewer are left.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        let left = self.budget.of_share(self.share);
        let is_there = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        self.bytes += if is_there { bytes } else { 0 };
        is_there
    }

    /// Returns all but this many bytes.
    pub(crate) fn keep(mut self, bytes: u64) -> Reserved {
        let more = self.bytes.saturating_sub(bytes);
        self.budget.of_share(self.share).fetch_add(more, Ordering::Relaxed);
        self.bytes -= more;
        self
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.of_share(self.share).fetch_add(self.bytes, Ordering::Relaxed);
    }
}
