//! The atomics, the lock and the condition of the pool: those of the standard library and `parking_lot`, or loom's.
//!
//! The tests of a build with `--cfg loom` take loom's types, and those in `interleavings.rs` then try every interleaving
//! of threads that take bytes, wait for them and give them back (`cargo xtask loom`).

#[cfg(not(all(loom, test)))]
mod real {
    use std::time::Instant;

    pub(in super::super) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(in super::super) use std::sync::atomic::AtomicU64;

    /// Waits to be woken; false if the time was over before.
    pub(in super::super) fn wait_until<T>(
        woken: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        due: Instant,
    ) -> bool {
        !woken.wait_until(guard, due).timed_out()
    }
}

#[cfg(all(loom, test))]
mod real {
    use std::ops::{Deref, DerefMut};
    use std::time::Instant;

    pub(in super::super) use loom::sync::atomic::AtomicU64;

    /// Loom's lock, used as `parking_lot`'s is.
    #[derive(Default)]
    pub(in super::super) struct Mutex<T>(loom::sync::Mutex<T>);

    /// `None` while its thread waits.
    pub(in super::super) struct MutexGuard<'m, T>(Option<loom::sync::MutexGuard<'m, T>>);

    /// Loom's condition, used as `parking_lot`'s is.
    #[derive(Default)]
    pub(in super::super) struct Condvar(loom::sync::Condvar);

    impl<T> Mutex<T> {
        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no thread has panicked")))
        }
    }

    impl Condvar {
        pub(in super::super) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("the lock")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("the lock")
        }
    }

    /// Waits to be woken. No time passes in loom: a thread that nobody wakes is a deadlock, and fails the test.
    pub(in super::super) fn wait_until<T>(
        woken: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        _due: Instant,
    ) -> bool {
        guard.0 = guard.0.take().map(|held| woken.0.wait(held).expect("no thread has panicked"));
        true
    }
}

pub(super) use real::*;
