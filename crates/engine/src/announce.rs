//! Telling who waits that something may have become possible: a write acknowledged, memory free again.

use helenus_host::Signal;
use std::sync::OnceLock;

/// Wakes the threads that wait in `Ticket::wait`, and calls the doors that wait without one.
#[derive(Default)]
pub(crate) struct Announcer {
    pub(crate) changed: Signal,
    listener: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Announcer {
    /// Sets the one listener; later ones are ignored.
    pub(crate) fn listen(&self, listener: Box<dyn Fn() + Send + Sync>) {
        let _ = self.listener.set(listener);
    }

    /// To be called after the change is visible.
    pub(crate) fn announce(&self) {
        self.changed.notify();
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }
}
