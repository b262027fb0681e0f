//! Runs background work one step at a time, in an order drawn from the seed.
//!
//! Nothing runs by itself: steps are run by callers that wait (`wait_until`, `join`) and by the test. If a worker
//! waits within its step, other workers run inside that step, but never itself; so a worker must not wait, within a
//! step, for a worker that waits within its own. If no worker can run, the clock moves to the first timeout. If there
//! is none, that is a deadlock: it panics with the list of waiting workers.

use super::clock::VirtualClock;
use crate::random::Sequence;
use crate::{Clock, Next, Signal, TaskHandle, Tasks, Worker};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Number of steps after which a run counts as endless.
const STEPS_MAX: u64 = 10_000_000;
/// Virtual time after which a wait counts as endless: a day, more than any timeout of the engine.
const WAIT_NS_MAX: u64 = 86_400 * 1_000_000_000;

thread_local! {
    /// Nested steps that are running on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The workers of a simulated machine.
pub(crate) struct Steps {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Signals the end of a step to another thread that found nothing to run. Several threads may wait, but then the
    /// order is not determined by the seed.
    ended: Condvar,
    clock: Arc<VirtualClock>,
    order: Sequence,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    running: usize,
    steps_ended: u64,
    dead: bool,
}

struct Slot {
    name: String,
    worker: Option<Box<dyn Worker>>,
    status: Status,
    woken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Waiting,
    WaitingUntil(u64),
    Running,
    Done,
}

impl Steps {
    pub(crate) fn new(seed: u64, clock: Arc<VirtualClock>) -> Steps {
        let inner =
            Inner { state: Mutex::default(), ended: Condvar::new(), clock, order: Sequence::new(seed) };
        Steps { inner: Arc::new(inner) }
    }

    pub(crate) fn step(&self) -> bool {
        self.inner.step(self.inner.state.lock()).is_none()
    }

    pub(crate) fn run_until_idle(&self) -> u64 {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < STEPS_MAX, "no end after {STEPS_MAX} steps; {}", self.inner.state.lock().tell());
        }
        steps
    }

    pub(crate) fn end(&self) {
        let mut state = self.inner.state.lock();
        state.dead = true;
        let mut workers = Vec::new();
        for slot in &mut state.slots {
            slot.status = Status::Done;
            workers.extend(slot.worker.take());
        }
        drop(state); // a worker's own drop may wake or join others
        drop(workers);
    }
}

impl Tasks for Steps {
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
        let mut state = self.inner.state.lock();
        let status = if state.dead { Status::Done } else { Status::Ready };
        let worker = (!state.dead).then_some(worker);
        state.slots.push(Slot { name: name.to_owned(), worker, status, woken: false });
        Arc::new(Handle { inner: Arc::clone(&self.inner), index: state.slots.len() - 1 })
    }

    fn wait_until(&self, _: &Signal, ready: &mut dyn FnMut() -> bool) {
        self.inner.run_until(ready);
    }
}

struct Handle {
    inner: Arc<Inner>,
    index: usize,
}

impl TaskHandle for Handle {
    fn wake(&self) {
        self.inner.state.lock().slots[self.index].woken = true;
    }

    fn join(&self) {
        self.inner.run_until(&mut || self.inner.state.lock().slots[self.index].status == Status::Done);
    }
}

impl Inner {
    fn run_until(&self, ready: &mut dyn FnMut() -> bool) {
        let until_ns = self.clock.monotonic_ns().saturating_add(WAIT_NS_MAX);
        for _ in 0..STEPS_MAX {
            let steps_ended = self.state.lock().steps_ended;
            if ready() {
                return;
            }
            let Some(mut state) = self.step(self.state.lock()) else { continue };
            assert!(!state.dead, "waiting on a machine whose workers were ended");
            if state.steps_ended != steps_ended {
                continue; // another thread ran a step since `ready` looked
            }
            if state.running > DEPTH.get() {
                self.ended.wait(&mut state); // another thread is in a step
                continue;
            }
            match state.first_timeout_ns() {
                Some(ns) if ns > until_ns => panic!("waited a virtual day in vain; {}", state.tell()),
                Some(ns) => self.clock.advance_to(ns),
                None => panic!("deadlock: no worker can run; {}", state.tell()),
            }
        }
        panic!("waited {STEPS_MAX} steps in vain; {}", self.state.lock().tell());
    }

    /// Runs a step of one worker; returns the lock guard if none can run.
    fn step<'a>(&self, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
        let now_ns = self.clock.monotonic_ns();
        let able: Vec<usize> =
            (0..state.slots.len()).filter(|index| state.slots[*index].can_run(now_ns)).collect();
        if able.is_empty() {
            return Some(state);
        }
        let chosen = usize::try_from(self.order.below(able.len() as u64)).unwrap_or_default();
        let index = able[chosen];
        let slot = &mut state.slots[index];
        let Some(mut worker) = slot.worker.take() else { return Some(state) };
        slot.status = Status::Running;
        slot.woken = false;
        state.running += 1;
        drop(state);

        DEPTH.set(DEPTH.get() + 1);
        let result = catch_unwind(AssertUnwindSafe(|| worker.step()));
        DEPTH.set(DEPTH.get() - 1);

        let worker = self.after_step(index, worker, result.as_ref().map_or(Next::Done, |next| *next));
        self.ended.notify_all();
        drop(worker);
        if let Err(panic) = result {
            resume_unwind(panic); // a test must not pass over it
        }
        None
    }

    /// Puts the worker back, or returns it to be dropped.
    fn after_step(&self, index: usize, worker: Box<dyn Worker>, next: Next) -> Option<Box<dyn Worker>> {
        let mut state = self.state.lock();
        state.running -= 1;
        state.steps_ended += 1;
        let dead = state.dead;
        let slot = &mut state.slots[index];
        slot.status = match next {
            _ if dead => Status::Done,
            Next::Again => Status::Ready,
            Next::Wait => Status::Waiting,
            Next::WaitAtMost(ns) => Status::WaitingUntil(self.clock.monotonic_ns().saturating_add(ns)),
            Next::Done => Status::Done,
        };
        if slot.status == Status::Done {
            return Some(worker);
        }
        slot.worker = Some(worker);
        None
    }
}

impl Slot {
    fn can_run(&self, now_ns: u64) -> bool {
        match self.status {
            Status::Ready => true,
            Status::Waiting => self.woken,
            Status::WaitingUntil(ns) => self.woken || ns <= now_ns,
            Status::Running | Status::Done => false,
        }
    }
}

impl State {
    fn first_timeout_ns(&self) -> Option<u64> {
        let timeouts = self.slots.iter().filter_map(|slot| match slot.status {
            Status::WaitingUntil(ns) => Some(ns),
            _ => None,
        });
        timeouts.min()
    }

    fn tell(&self) -> String {
        let mut text = String::from("workers:");
        for slot in &self.slots {
            let what = match slot.status {
                Status::Ready => "ready",
                Status::Waiting | Status::WaitingUntil(_) => "waiting",
                Status::Running => "waiting within its step",
                Status::Done => continue,
            };
            // Writing to a String does not fail.
            let _ = write!(text, " {} ({what})", slot.name);
        }
        if text.ends_with(':') {
            text.push_str(" none");
        }
        text
    }
}
