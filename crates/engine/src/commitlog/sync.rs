//! The worker that syncs the log: when the period has passed (`periodic`), or when writes wait (`batch`, `group`).
//!
//! It decides only when to sync. `CommitLog::sync_now` writes out, syncs and tells the waiting writes.

use super::log::CommitLog;
use super::options::SyncMode;
use crate::error::Error;
use helenus_host::{Next, Worker};
use std::sync::{Arc, Weak};

/// The worker. It holds a weak reference to the log, and ends once the log is dropped, is stopped or has failed.
pub(super) struct SyncWorker {
    log: Weak<CommitLog>,
    /// Monotonic time of the next periodic sync.
    due_ns: u64,
}

impl SyncWorker {
    pub(super) fn new(log: &Arc<CommitLog>) -> SyncWorker {
        SyncWorker { log: Arc::downgrade(log), due_ns: 0 }
    }
}

impl Worker for SyncWorker {
    fn step(&mut self) -> Next {
        let Some(log) = self.log.upgrade() else { return Next::Done };
        if log.is_stopping() || log.check_failure().is_err() {
            return Next::Done;
        }
        if !log.has_unsynced() {
            return match log.options.mode {
                // In this mode a mutation's append does not wake the worker, so that a write costs only its copy.
                SyncMode::Periodic { period_ms } => Next::WaitAtMost(period_ms * 1_000_000),
                SyncMode::Batch | SyncMode::Group => Next::Wait,
            };
        }
        if let SyncMode::Periodic { period_ms } = log.options.mode {
            let now = log.host.clock.monotonic_ns();
            if now < self.due_ns {
                return Next::WaitAtMost(self.due_ns - now);
            }
            self.due_ns = now + period_ms * 1_000_000;
        }
        // The log keeps a failure and reports it to every writer, so nothing else is done here.
        match Error::contain(|| log.sync_now()) {
            Ok(()) => Next::Again,
            Err(error) => {
                log.fail_after(&error);
                Next::Done
            }
        }
    }
}
