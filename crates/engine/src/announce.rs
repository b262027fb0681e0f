//! Telling who waits that something may have become possible: a write acknowledged, memory free again.

use helenus_host::Signal;
use parking_lot::RwLock;

/// Wakes the threads that wait in `Ticket::wait`, and calls the doors that wait without one.
#[derive(Default)]
pub(crate) struct Announcer {
    pub(crate) changed: Signal,
    listeners: RwLock<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl Announcer {
    /// Adds a listener, for as long as the database is open: a door each.
    pub(crate) fn listen(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.listeners.write().push(listener);
    }

    /// To be called after the change is visible.
    pub(crate) fn announce(&self) {
        self.changed.notify();
        self.listeners.read().iter().for_each(|listener| listener());
    }
}
