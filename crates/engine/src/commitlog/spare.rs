//! The worker that creates the next segment before it is needed, because filling it with zeroes and syncing it takes
//! long.

use super::log::CommitLog;
use crate::error::Error;
use helenus_host::{Next, Worker};
use std::sync::{Arc, Weak};

/// Creates the next segments before the active one is full.
pub(super) struct SpareWorker {
    log: Weak<CommitLog>,
}

impl SpareWorker {
    pub(super) fn new(log: &Arc<CommitLog>) -> SpareWorker {
        SpareWorker { log: Arc::downgrade(log) }
    }
}

impl Worker for SpareWorker {
    fn step(&mut self) -> Next {
        let Some(log) = self.log.upgrade() else { return Next::Done };
        if log.is_stopping() {
            return Next::Done;
        }
        match Error::contain(|| log.make_spare()) {
            Ok(true) => Next::Again,
            // Failures are not reported here: an append that finds no spare segment creates one, and reports why it
            // cannot.
            Ok(false) | Err(_) => Next::Wait,
        }
    }
}
