//! A ticket: the promise of an acknowledgement.

use super::append::CommitLog;
use super::record::LogPosition;
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Says when a write may be acknowledged. A door asks `is_ready` when the log's listener calls; the embedded API
/// blocks in `wait`.
#[must_use = "a write is acknowledged only once its ticket is ready"]
pub struct Ticket {
    /// `None` when nothing needs to be waited for.
    waits: Option<(Arc<CommitLog>, LogPosition)>,
}

impl Ticket {
    pub(super) fn new(log: Arc<CommitLog>, position: LogPosition) -> Ticket {
        Ticket { waits: Some((log, position)) }
    }

    /// A ticket that is ready: for databases without a log, and writes that changed nothing.
    pub fn ready() -> Ticket {
        Ticket { waits: None }
    }

    /// The write's place in the log.
    pub fn position(&self) -> Option<LogPosition> {
        self.waits.as_ref().map(|(_, position)| *position)
    }

    /// Whether the write may be acknowledged. `Err` if the log has failed before it was safe.
    pub fn is_ready(&self) -> Result<bool> {
        let Some((log, position)) = &self.waits else { return Ok(true) };
        let reached = if log.options.mode.waits_for_sync() { &log.synced } else { &log.written };
        if reached.load(Ordering::Acquire) >= position.0 {
            return Ok(true);
        }
        log.check_failure()?;
        Ok(false)
    }

    /// Blocks until the write may be acknowledged.
    pub fn wait(&self) -> Result<()> {
        let Some((log, _)) = &self.waits else { return Ok(()) };
        if !log.options.mode.waits_for_sync() {
            log.write_out()?;
        }
        log.host.tasks.wait_until(&log.changed, &mut || self.is_ready().unwrap_or(true));
        self.is_ready().map(|_| ())
    }
}
