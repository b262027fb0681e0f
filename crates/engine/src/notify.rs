//! Notifies waiters that their condition may have become true: a write was acknowledged, or memory is free again.

use crate::listeners::{Listeners, Listening};
use helenus_host::Signal;

/// Wakes the threads in `Ticket::wait`, and calls the event loops, which wait without a thread.
#[derive(Default)]
pub(crate) struct Notifier {
    pub(crate) changed: Signal,
    listeners: Listeners<dyn Fn() + Send + Sync>,
}

impl Notifier {
    /// Adds a callback for as long as the result lives, one for each server.
    pub(crate) fn listen(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.listeners.add(listener)
    }

    /// Notifies all waiters. Must be called after the change is visible.
    pub(crate) fn notify(&self) {
        self.changed.notify();
        self.listeners.each(|listener| listener());
    }
}
