//! The tasks of background workers, held where everybody who makes work for them can wake them.

use helenus_host::TaskHandle;
use std::sync::{Arc, OnceLock};

/// Workers of one kind. There are none before they are started.
#[derive(Default)]
pub(crate) struct Workers(OnceLock<Vec<Arc<dyn TaskHandle>>>);

impl Workers {
    /// Takes the workers, once they are started. The first call counts.
    pub(crate) fn set(&self, tasks: Vec<Arc<dyn TaskHandle>>) {
        let _ = self.0.set(tasks);
    }

    /// Wakes the workers to look for work, or for the end of the database.
    pub(crate) fn wake(&self) {
        self.0.get().into_iter().flatten().for_each(|worker| worker.wake());
    }

    /// Waits for the workers to end, which they do when the database is closing.
    pub(crate) fn join(&self) {
        self.wake();
        self.0.get().into_iter().flatten().for_each(|worker| worker.join());
    }
}
