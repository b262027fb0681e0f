//! Notifies waiters that their condition may have become true: a write was acknowledged, or memory is free again.

use helenus_host::Signal;
use parking_lot::RwLock;

/// Wakes the threads in `Ticket::wait`, and calls the event loops, which wait without a thread.
#[derive(Default)]
pub(crate) struct Notifier {
    pub(crate) changed: Signal,
    listeners: RwLock<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl Notifier {
    /// Adds a callback for as long as the database is open, one for each event loop.
    pub(crate) fn listen(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.listeners.write().push(listener);
    }

    /// Notifies all waiters. Must be called after the change is visible.
    pub(crate) fn notify(&self) {
        self.changed.notify();
        self.listeners.read().iter().for_each(|listener| listener());
    }
}
