//! The guardrail on the usage of the data's disk: warns of writes or refuses them before the disk is full.
//!
//! Source: `DiskUsageMonitor` and the guardrails `local_data_disk_usage` and `replica_disk_usage`. The server measures and
//! calls `Guardrails::disk_state`; `DiskState` is what writes look at.

use super::feature::decorated;
use super::limits::Guardrails;
use crate::error::{CqlError, Result};
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// How long clients are not warned again (`cassandra.disk_usage.notify_interval_ms`).
const WARNED_AGAIN_US: i64 = 30 * 60 * 1_000_000;
/// No client has been warned.
const NEVER: i64 = i64::MIN;

/// How full the disk is, by the two thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DiskState {
    /// It is not measured, because no threshold is set.
    #[default]
    NotAvailable,
    /// Below both thresholds.
    Spacious,
    /// Above the threshold for warnings.
    Stuffed,
    /// Above the threshold for refusals.
    Full,
}

impl DiskState {
    /// Cassandra's word for it.
    pub fn name(self) -> &'static str {
        match self {
            DiskState::NotAvailable => "Not Available",
            DiskState::Spacious => "Spacious",
            DiskState::Stuffed => "Stuffed",
            DiskState::Full => "Full",
        }
    }
}

/// Bytes of the data directory's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskBytes {
    /// Bytes of the files of the data directory.
    pub used: u64,
    /// Bytes that are free for the server.
    pub free: u64,
    /// Bytes of all memtables, which become files.
    pub memtables: u64,
}

impl Guardrails {
    /// Whether the usage of the disk is to be measured.
    pub fn watches_disk(&self) -> bool {
        self.data_disk_usage.is_set()
    }

    /// The state of a disk, and the line for the log if a threshold is passed.
    pub fn disk_state(&self, bytes: DiskBytes) -> (DiskState, Option<String>) {
        if !self.watches_disk() {
            return (DiskState::NotAvailable, None);
        }
        let percent = self.percent(bytes);
        let passed = |threshold: Option<u64>| threshold.filter(|threshold| percent > *threshold);
        let line = |text: String| Some(decorated("local_data_disk_usage", &text, ""));
        let usage = |state: DiskState| format!("Local data disk usage {percent}%({}) exceeds", state.name());
        if let Some(bound) = passed(self.data_disk_usage.fail) {
            let usage = usage(DiskState::Full);
            return (
                DiskState::Full,
                line(format!("{usage} failure threshold of {bound}%, will stop accepting writes")),
            );
        }
        if let Some(bound) = passed(self.data_disk_usage.warn) {
            let usage = usage(DiskState::Stuffed);
            return (DiskState::Stuffed, line(format!("{usage} warning threshold of {bound}%")));
        }
        (DiskState::Spacious, None)
    }

    /// The usage in percent, rounded up: of what the data's files take and what is free, or of less if that is limited.
    fn percent(&self, bytes: DiskBytes) -> u64 {
        let most = self.data_disk_usage_max_bytes.map_or(u128::MAX, u128::from);
        let all = (u128::from(bytes.used) + u128::from(bytes.free)).min(most).max(1);
        let used = u128::from(bytes.used) + u128::from(bytes.memtables);
        u64::try_from((used * 100).div_ceil(all)).unwrap_or(u64::MAX)
    }
}

/// The state of the disk as writes see it.
#[derive(Debug)]
pub(crate) struct DiskGauge {
    state: AtomicU8,
    /// When a client was last warned, by the wall clock.
    warned_us: AtomicI64,
}

impl Default for DiskGauge {
    fn default() -> DiskGauge {
        DiskGauge { state: AtomicU8::new(DiskState::NotAvailable as u8), warned_us: AtomicI64::new(NEVER) }
    }
}

impl DiskGauge {
    /// Sets the state.
    pub(crate) fn set(&self, state: DiskState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Checks a write at this time; returns the warning for its client.
    ///
    /// # Errors
    /// The disk is too full.
    #[inline]
    pub(crate) fn check(&self, wall_us: i64) -> Result<Option<String>> {
        let state = self.state.load(Ordering::Relaxed);
        if state <= DiskState::Spacious as u8 { Ok(None) } else { self.judge(state, wall_us) }
    }

    #[cold]
    fn judge(&self, state: u8, wall_us: i64) -> Result<Option<String>> {
        if state == DiskState::Full as u8 {
            let text = "Write request failed because disk usage exceeds failure threshold";
            return Err(CqlError::Invalid(decorated("replica_disk_usage", text, "")));
        }
        let before = self.warned_us.load(Ordering::Relaxed);
        let is_due = before == NEVER || wall_us.abs_diff(before) >= WARNED_AGAIN_US.unsigned_abs();
        let is_first = is_due
            && self.warned_us.compare_exchange(before, wall_us, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let text = "Replica disk usage exceeds warning threshold";
        Ok(is_first.then(|| decorated("replica_disk_usage", text, "")))
    }
}
