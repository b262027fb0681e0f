//! Background work: starting, waking and waiting for workers.
//!
//! A `Worker` does its work in steps of bounded size, and each step returns what comes next. A real machine gives each
//! worker a thread. The simulated machine runs one step at a time in a seeded order, so that tests of the engine are
//! repeatable.

use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another step immediately.
    Again,
    /// A step when the worker is woken.
    Wait,
    /// A step when the worker is woken, or after this many nanoseconds.
    WaitAtMost(u64),
    /// No further step.
    Done,
}

/// A background job.
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

/// Starts workers and waits for them.
pub trait Tasks: Send + Sync {
    /// Starts a worker under a name (shown by debuggers and thread lists).
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> std::sync::Arc<dyn TaskHandle>;
    /// The same for work that can be refused: the system may give no further thread.
    ///
    /// # Errors
    /// It gives none. The worker is dropped.
    fn try_start(
        &self,
        name: &str,
        worker: Box<dyn Worker>,
    ) -> std::io::Result<std::sync::Arc<dyn TaskHandle>> {
        Ok(self.start(name, worker))
    }
    /// Blocks until `ready` returns true. Code that changes the condition calls `signal.notify()` after the change.
    /// The simulated machine runs other workers meanwhile, and panics if none can run: a deadlock.
    fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool);
}

/// Signals a change to threads that wait for it.
#[derive(Default)]
pub struct Signal {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Wakes all waiting threads. The change must be visible before this call.
    pub fn notify(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }

    /// Blocks this thread until `ready`; implements `wait_until` of the real machine.
    pub fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        let mut guard = self.lock.lock();
        while !ready() {
            self.changed.wait(&mut guard);
        }
    }
}

/// Runs work whose panic must not end more than this work; returns the panic's text then. The panic hook has already
/// reported the place. State that the work changes must be consistent wherever it stops; its locks are released by
/// unwinding.
///
/// # Errors
/// The panic's text.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}
