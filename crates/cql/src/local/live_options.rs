//! Options that may change while statements run: tombstone thresholds, batch limits, guardrails.
//!
//! A statement loads each value when it needs it, so during a change a statement may see old and new values.

use super::backend::LocalBackend;
use super::options::LocalOptions;
use crate::error::Result;
use crate::guardrails::{DiskGauge, DiskState, Guarded, Guardrails};
use crate::plan::batch::BatchLimits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The changeable options.
#[derive(Default)]
pub(super) struct LiveOptions {
    tombstones_warn: AtomicU64,
    tombstones_fail: AtomicU64,
    batch_bytes_warn: AtomicU64,
    batch_bytes_fail: AtomicU64,
    unlogged_partitions_warn: AtomicU64,
    warns_of_zero_ttl: AtomicBool,
    /// Shared with schema changes.
    pub guarded: Arc<Guarded>,
    /// Whether the disk has room for writes.
    pub disk: DiskGauge,
}

impl LiveOptions {
    pub fn new(options: &LocalOptions) -> LiveOptions {
        let tuning = LiveOptions::default();
        tuning.set(options);
        tuning
    }

    fn set(&self, options: &LocalOptions) {
        let BatchLimits { bytes_warn, bytes_fail, unlogged_partitions_warn } = options.batches;
        self.tombstones_warn.store(options.tombstones_warn, Ordering::Relaxed);
        self.tombstones_fail.store(options.tombstones_fail, Ordering::Relaxed);
        self.batch_bytes_warn.store(bytes_warn, Ordering::Relaxed);
        self.batch_bytes_fail.store(bytes_fail, Ordering::Relaxed);
        self.unlogged_partitions_warn.store(unlogged_partitions_warn, Ordering::Relaxed);
        self.warns_of_zero_ttl.store(options.warns_of_zero_ttl, Ordering::Relaxed);
        self.guarded.set(options.guardrails.clone());
    }

    /// Tombstones in a read above which its client is warned.
    #[inline]
    pub fn tombstones_warn(&self) -> u64 {
        self.tombstones_warn.load(Ordering::Relaxed)
    }

    /// Tombstones in a read above which it fails.
    #[inline]
    pub fn tombstones_fail(&self) -> u64 {
        self.tombstones_fail.load(Ordering::Relaxed)
    }

    /// Whether ordinary users are warned of time windows without TTL.
    pub fn warns_of_zero_ttl(&self) -> bool {
        self.warns_of_zero_ttl.load(Ordering::Relaxed)
    }

    /// Limits of batches.
    pub fn batches(&self) -> BatchLimits {
        BatchLimits {
            bytes_warn: self.batch_bytes_warn.load(Ordering::Relaxed),
            bytes_fail: self.batch_bytes_fail.load(Ordering::Relaxed),
            unlogged_partitions_warn: self.unlogged_partitions_warn.load(Ordering::Relaxed),
        }
    }
}

impl LocalBackend {
    /// The guardrails; `None` if there are none.
    pub fn guardrails(&self) -> Option<Arc<Guardrails>> {
        self.tuning.guarded.get()
    }

    /// Notes how full the disk of the data is, for the writes from now on.
    pub fn set_disk_state(&self, state: DiskState) {
        self.tuning.disk.set(state);
    }

    /// Checks that the disk has room for a write of a client; returns the warning for the client.
    ///
    /// # Errors
    /// It is above the threshold for refusals.
    pub fn check_disk_state(&self) -> Result<Option<String>> {
        self.tuning.disk.check(self.database().wall_us())
    }

    /// Applies the changeable options: `tombstones_warn`, `tombstones_fail`, `batches`, `warns_of_zero_ttl` and
    /// `guardrails`.
    pub fn set_live_options(&self, options: &LocalOptions) {
        self.tuning.set(options);
        self.database().clock().set_ahead_max(options.guardrails.maximum_timestamp_us.fail);
    }
}
