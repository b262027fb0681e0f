//! Runs each worker on a thread of its own.

use crate::{Next, Signal, TaskHandle, Tasks, Worker};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Background work on threads.
pub(crate) struct Threads;

impl Tasks for Threads {
    /// # Panics
    /// If the system refuses a thread. Servers and the engine need only a few, all started when they open; a server asks
    /// `check_threads` before.
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
        match self.try_start(name, worker) {
            Ok(thread) => thread,
            Err(e) => panic!("cannot start the thread {name}: {e}"),
        }
    }

    fn try_start(&self, name: &str, worker: Box<dyn Worker>) -> io::Result<Arc<dyn TaskHandle>> {
        let thread = Arc::new(Thread::default());
        let of_worker = Arc::clone(&thread);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || of_worker.run(worker))?;
        Ok(thread)
    }

    fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool) {
        signal.wait(ready);
    }
}

/// Checks that the system gives this process so many further threads at a time, and gives them back.
///
/// # Errors
/// The number that it gives, and why no more.
pub fn check_threads(wanted: usize) -> Result<(), (usize, io::Error)> {
    let (is_over, ended) = (Arc::new(Mutex::new(false)), Arc::new(Condvar::new()));
    let mut threads = Vec::new();
    let mut refusal = None;
    while threads.len() < wanted && refusal.is_none() {
        let (is_over, ended) = (Arc::clone(&is_over), Arc::clone(&ended));
        let waits = move || {
            let mut is_over = is_over.lock();
            while !*is_over {
                ended.wait(&mut is_over);
            }
        };
        match std::thread::Builder::new().spawn(waits) {
            Ok(thread) => threads.push(thread),
            Err(error) => refusal = Some(error),
        }
    }
    *is_over.lock() = true;
    ended.notify_all();
    let given = threads.len();
    for thread in threads {
        let _never_panics = thread.join();
    }
    refusal.map_or(Ok(()), |error| Err((given, error)))
}

#[derive(Default)]
struct Thread {
    state: Mutex<State>,
    woken: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    wake: bool,
    done: bool,
}

impl Thread {
    /// Runs steps until the worker is done. A panic ends the worker; the panic hook has already written it to stderr
    /// with the thread's name.
    fn run(&self, worker: Box<dyn Worker>) {
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let mut worker = worker; // moved in, so that it is dropped before `done` is seen
            self.steps(worker.as_mut());
        }));
        self.state.lock().done = true;
        self.ended.notify_all();
    }

    fn steps(&self, worker: &mut dyn Worker) {
        loop {
            // Cleared before the step, so that a wake during the step leads to another one.
            self.state.lock().wake = false;
            match worker.step() {
                Next::Again => {}
                Next::Wait => self.wait(None),
                Next::WaitAtMost(ns) => self.wait(Instant::now().checked_add(Duration::from_nanos(ns))),
                Next::Done => return,
            }
        }
    }

    fn wait(&self, until: Option<Instant>) {
        let mut state = self.state.lock();
        while !state.wake {
            match until {
                None => self.woken.wait(&mut state),
                Some(until) => {
                    if self.woken.wait_until(&mut state, until).timed_out() {
                        return;
                    }
                }
            }
        }
    }
}

impl TaskHandle for Thread {
    fn wake(&self) {
        let mut state = self.state.lock();
        if !state.wake {
            state.wake = true;
            self.woken.notify_one();
        }
    }

    fn join(&self) {
        let mut state = self.state.lock();
        while !state.done {
            self.ended.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    struct Stepper<F>(F);

    impl<F: FnMut() -> Next + Send> Worker for Stepper<F> {
        fn step(&mut self) -> Next {
            (self.0)()
        }
    }

    fn start(step: impl FnMut() -> Next + Send + 'static) -> Arc<dyn TaskHandle> {
        Threads.start("test", Box::new(Stepper(step)))
    }

    #[test]
    fn a_worker_runs_until_done_and_is_dropped_before_join_returns() {
        struct Noted(Arc<AtomicBool>);
        impl Drop for Noted {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let dropped = Arc::new(AtomicBool::new(false));
        let noted = Noted(Arc::clone(&dropped));
        let mut left = 10;
        let handle = start(move || {
            let _ = &noted;
            left -= 1;
            if left == 0 { Next::Done } else { Next::Again }
        });
        handle.join();
        handle.join();
        assert!(dropped.load(Ordering::SeqCst));
    }

    #[test]
    fn a_wake_during_a_step_is_not_lost() {
        for _ in 0..200 {
            let signal = Arc::new(Signal::default());
            let steps = Arc::new(AtomicU32::new(0));
            let seen = Arc::new(AtomicBool::new(false));
            let handle = {
                let (signal, steps, seen) = (Arc::clone(&signal), Arc::clone(&steps), Arc::clone(&seen));
                start(move || {
                    if steps.fetch_add(1, Ordering::SeqCst) == 0 {
                        signal.notify();
                        // Stay in the first step until the wake has been sent.
                        signal.wait(&mut || seen.load(Ordering::SeqCst));
                        return Next::Wait;
                    }
                    Next::Done
                })
            };
            Threads.wait_until(&signal, &mut || steps.load(Ordering::SeqCst) == 1);
            handle.wake();
            seen.store(true, Ordering::SeqCst);
            signal.notify();
            handle.join();
            assert_eq!(steps.load(Ordering::SeqCst), 2);
        }
    }

    #[test]
    fn a_timed_wait_ends_by_itself_and_a_wake_ends_it_early() {
        let mut steps = 0;
        start(move || {
            steps += 1;
            if steps == 5 { Next::Done } else { Next::WaitAtMost(1_000) }
        })
        .join();
        let mut first = true;
        let handle =
            start(move || if std::mem::take(&mut first) { Next::WaitAtMost(u64::MAX) } else { Next::Done });
        // A wake before the first step only leads to that step, so keep waking until the thread has ended.
        while Arc::strong_count(&handle) > 1 {
            handle.wake();
            std::thread::yield_now();
        }
        handle.join();
    }

    #[test]
    fn a_panicking_worker_ends_its_join() {
        start(|| panic!("on purpose, by a test")).join();
    }
}
