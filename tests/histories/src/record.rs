//! What clients write down while they run.

use crate::check::{Operation, Outcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A history under way. Its times are numbers that are counted up with each event, so that no two events have the same.
#[derive(Debug)]
pub struct Recorder<A> {
    clock: AtomicU64,
    operations: Mutex<Vec<Operation<A>>>,
}

impl<A> Default for Recorder<A> {
    fn default() -> Self {
        Self { clock: AtomicU64::new(0), operations: Mutex::default() }
    }
}

impl<A> Recorder<A> {
    /// The time; to be taken right before a request is sent.
    pub fn begin(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Writes down an answer; to be called right after it has come.
    pub fn answered(&self, client: u32, began: u64, action: A) {
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        self.add(Operation { client, began, outcome: Outcome::Answered(ended), action });
    }

    /// Writes down an operation that may have taken effect, or may yet.
    pub fn unknown(&self, client: u32, began: u64, action: A) {
        self.add(Operation { client, began, outcome: Outcome::Unknown, action });
    }

    fn add(&self, operation: Operation<A>) {
        let mut operations = self.operations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        operations.push(operation);
    }

    /// The history so far.
    pub fn into_history(self) -> Vec<Operation<A>> {
        self.operations.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
