//! Background steps in a seeded order, and a clock that moves only when no worker can run.

use super::Machine;
use crate::{Host, Next, Signal, TaskHandle, Worker};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

struct Stepper<F>(F);

impl<F: FnMut() -> Next + Send> Worker for Stepper<F> {
    fn step(&mut self) -> Next {
        (self.0)()
    }
}

fn start(host: &Host, name: &str, step: impl FnMut() -> Next + Send + 'static) -> Arc<dyn TaskHandle> {
    host.tasks.start(name, Box::new(Stepper(step)))
}

/// The order in which three workers of five steps each run.
fn order(seed: u64) -> String {
    let machine = Machine::new(seed);
    let log = Arc::new(Mutex::new(String::new()));
    for name in ["a", "b", "c"] {
        let (log, mut left) = (Arc::clone(&log), 5);
        start(&machine.host(), name, move || {
            log.lock().push_str(name);
            left -= 1;
            if left == 0 { Next::Done } else { Next::Again }
        });
    }
    assert_eq!(machine.run_until_idle(), 15);
    assert!(!machine.step());
    let order = log.lock();
    order.clone()
}

fn panic_text(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())
}

#[test]
fn the_seed_decides_the_order() {
    assert_eq!(order(1), order(1));
    assert!((2..20).any(|seed| order(seed) != order(1)));
}

#[test]
fn nothing_runs_before_someone_waits() {
    let machine = Machine::new(0);
    let host = machine.host();
    let steps = Arc::new(Mutex::new(0));
    let of_worker = Arc::clone(&steps);
    let handle = start(&host, "w", move || {
        *of_worker.lock() += 1;
        Next::Wait
    });
    assert_eq!(*steps.lock(), 0);
    host.tasks.wait_until(&Signal::default(), &mut || *steps.lock() == 1);
    assert_eq!(machine.run_until_idle(), 0);
    handle.wake();
    handle.wake();
    assert_eq!(machine.run_until_idle(), 1);
}

#[test]
fn a_wake_during_a_step_gives_one_more() {
    let machine = Machine::new(0);
    let own: Arc<Mutex<Option<Arc<dyn TaskHandle>>>> = Arc::default();
    let of_worker = Arc::clone(&own);
    let mut first = true;
    let handle = start(&machine.host(), "w", move || {
        if std::mem::take(&mut first) {
            of_worker.lock().as_ref().unwrap().wake();
            return Next::Wait;
        }
        Next::Done
    });
    *own.lock() = Some(Arc::clone(&handle));
    handle.join();
    assert_eq!(machine.run_until_idle(), 0);
    *own.lock() = None;
}

#[test]
fn the_clock_moves_to_the_first_timeout_when_nothing_can_run() {
    let machine = Machine::new(0);
    let host = machine.host();
    let (clock, wall_us) = (Arc::clone(&host.clock), host.clock.wall_us());
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let of_worker = (Arc::clone(&ticks), Arc::clone(&host.clock));
    start(&host, "ticker", move || {
        of_worker.0.lock().push(of_worker.1.monotonic_ns());
        Next::WaitAtMost(10_000)
    });
    host.tasks.wait_until(&Signal::default(), &mut || ticks.lock().len() == 3);
    assert_eq!(*ticks.lock(), [0, 10_000, 20_000]);
    assert_eq!(clock.wall_us(), wall_us + 20);
    assert_eq!(machine.run_until_idle(), 0, "without a waiter, time stands");
    machine.advance(9_999);
    assert!(!machine.step());
    machine.advance(1);
    assert!(machine.step());
    machine.set_wall_us(5);
    machine.advance(2_000);
    assert_eq!((clock.wall_us(), clock.monotonic_ns()), (7, 32_000));
}

#[test]
fn a_deadlock_names_who_waits() {
    let machine = Machine::new(0);
    let host = machine.host();
    start(&host, "flush", || Next::Wait);
    start(&host, "gone", || Next::Done);
    let inner = host.clone();
    start(&host, "compaction", move || {
        inner.tasks.wait_until(&Signal::default(), &mut || false);
        Next::Done
    });
    let text = panic_text(|| host.tasks.wait_until(&Signal::default(), &mut || false));
    assert_eq!(
        text,
        "deadlock: no worker can run; workers: flush (waiting) compaction (waiting within its step)"
    );
    let ticking = Machine::new(0);
    start(&ticking.host(), "ticker", || Next::WaitAtMost(3_600_000_000_000));
    let text = panic_text(|| ticking.host().tasks.wait_until(&Signal::default(), &mut || false));
    assert!(text.contains("virtual day") && text.contains("ticker"), "{text}");
    assert!(
        panic_text(|| Machine::new(0).host().tasks.wait_until(&Signal::default(), &mut || false))
            .contains("none")
    );
    machine.end_tasks();
}

#[test]
fn a_worker_that_waits_lets_others_run() {
    let machine = Machine::new(0);
    let host = machine.host();
    let done = Arc::new(Mutex::new(false));
    let (inner, seen, mut left) = (host.clone(), Arc::clone(&done), 3);
    let waiter = start(&host, "waiter", move || {
        inner.tasks.wait_until(&Signal::default(), &mut || *seen.lock());
        Next::Done
    });
    start(&host, "maker", move || {
        left -= 1;
        *done.lock() = left == 0;
        if left == 0 { Next::Done } else { Next::WaitAtMost(1) }
    });
    waiter.join();
}

#[test]
fn a_panicking_worker_fails_the_test_once_and_ends_its_join() {
    let machine = Machine::new(0);
    let handle = start(&machine.host(), "w", || panic!("on purpose"));
    assert_eq!(panic_text(|| handle.join()), "on purpose");
    handle.join();
}

#[test]
fn ended_tasks_are_dropped_and_joined() {
    let machine = Machine::new(0);
    let host = machine.host();
    let held = Arc::new(());
    let of_worker = (Arc::clone(&held), host.clone());
    let handle = start(&host, "w", move || {
        let _ = &of_worker;
        Next::Wait
    });
    machine.run_until_idle();
    machine.end_tasks();
    assert_eq!(Arc::strong_count(&held), 1);
    handle.wake();
    handle.join();
    start(&host, "late", || Next::Again).join();
}

#[test]
fn two_threads_may_wait_at_once() {
    let machine = Machine::new(0);
    let host = machine.host();
    let handles: Vec<_> = (0..4)
        .map(|_| {
            let mut left = 500;
            start(&host, "w", move || {
                left -= 1;
                if left == 0 { Next::Done } else { Next::Again }
            })
        })
        .collect();
    std::thread::scope(|scope| {
        for handle in &handles {
            scope.spawn(|| handle.join());
        }
    });
}

#[test]
fn random_bytes_come_from_the_seed() {
    let bytes = |seed| {
        let mut bytes = [0; 13];
        Machine::new(seed).host().random.fill(&mut bytes);
        bytes
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}
