//! Background work: starting, waking, waiting.
//!
//! Work is a `Worker` whose `step` does one bounded piece and says what next. A real machine gives each worker a
//! thread; the simulated one runs steps one at a time in a seeded order, so that an engine test is repeatable.

use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a worker wants after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another step at once.
    Again,
    /// A step when woken.
    Wait,
    /// A step when woken, or after this many nanoseconds.
    WaitAtMost(u64),
    /// No further step.
    Done,
}

/// One background job.
pub trait Worker: Send {
    /// Does a bounded piece of work.
    fn step(&mut self) -> Next;
}

/// A running worker. Dropping it does not stop the worker: `step` must return `Done`.
pub trait TaskHandle: Send + Sync {
    /// Makes the worker run a step soon. A wake during a step is not lost: one more step follows.
    fn wake(&self);
    /// Blocks until the worker has returned `Done` (or panicked).
    fn join(&self);
}

/// The background of a machine.
pub trait Tasks: Send + Sync {
    /// Starts a worker under a name (shown by debuggers and thread lists).
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> std::sync::Arc<dyn TaskHandle>;
    /// Blocks until `ready` returns true. Whoever changes what `ready` looks at calls `signal.notify()` after it.
    /// The simulated machine runs other workers meanwhile, and panics when none can run: a deadlock.
    fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool);
}

/// A place to wait for a change made by another thread.
#[derive(Default)]
pub struct Signal {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Wakes all who wait. The change must be visible before this call.
    pub fn notify(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }

    /// Blocks this thread until `ready`; for the real machine's `wait_until`.
    pub fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        let mut guard = self.lock.lock();
        while !ready() {
            self.changed.wait(&mut guard);
        }
    }
}

/// Runs work whose panic is to cost that work alone: the text of the panic then. The panic hook has told where it was. What the
/// work has changed must be in order wherever it ends: locks are given back on the way.
///
/// # Errors
/// The panic's text.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}
