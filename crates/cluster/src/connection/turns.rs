//! Those who wait until a connection takes a further request, in the order in which they came.
//!
//! Only the first of them looks for room whenever some comes, so that a place which is free wakes one. While somebody waits nobody else
//! gets a place, so that nobody waits for ever behind those who come later.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// The queue.
#[derive(Default)]
pub(super) struct Turns {
    first: Mutex<()>,
    waiting: AtomicUsize,
}

/// The turn of the one who is first, until it is dropped.
pub struct Turn<'c> {
    // Dropped before the next one counts as the first.
    _first: MutexGuard<'c, ()>,
    _waiting: Waiting<'c>,
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// Counts one that waits or is first, until it is dropped.
struct Waiting<'c>(&'c AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Turns {
    /// Waits until all have had their turns that have come before.
    pub async fn wait(&self) -> Turn<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(&self.waiting);
        Turn { _first: self.first.lock().await, _waiting: waiting }
    }

    /// Whether somebody waits.
    pub fn are_some(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}
