//! Threads that run work which may wait, for the event loops of RPC, of HTTP and of the admin socket, and for the tasks of a move.
//!
//! In place of tokio's `spawn_blocking`, which panics where the system gives no thread: here the work is told, and answers its
//! client that it is not done. A thread is started when work finds none idle, and lives until `stop`. No limit on the work that
//! waits is needed, as each connection, and each task of a move, has at most one piece of it here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::{Host, Next, TaskHandle, Worker, contain};

/// The answer to a request for which there is no thread.
pub const NO_THREAD: &str = "The system gives the server no thread for this request now; try again later";

type Job = Box<dyn FnOnce(Turn) + Send>;

/// Whether work has its turn: its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is to be done, on this thread.
    Run,
    /// There is no thread for it. It is to say so and must not wait, as the caller's thread runs it.
    Refuse,
}

/// The threads, and the work that waits for them.
pub struct ThreadPool {
    host: Host,
    shared: Arc<Mutex<State>>,
    /// Notified when a thread ends.
    ended: Arc<Condvar>,
    /// The beginning of the threads' names.
    name: &'static str,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    /// The work that waits, by its number.
    jobs: BTreeMap<u64, Job>,
    next_number: u64,
    threads: Vec<Arc<dyn TaskHandle>>,
    idle: Vec<usize>,
    stopping: bool,
    /// The threads that have ended.
    ended: usize,
}

impl ThreadPool {
    /// A pool of at most `threads_max` threads. None is started yet.
    pub fn new(host: Host, name: &'static str, threads_max: usize) -> ThreadPool {
        ThreadPool {
            host,
            shared: Arc::default(),
            ended: Arc::default(),
            name,
            threads_max: threads_max.max(1),
        }
    }

    /// Runs `work` on a thread, or at once on this one if there is none; `work` gets which. If this future is dropped before a
    /// thread has taken it, it is dropped too. `None`: it panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(Turn) -> T + Send + 'static) -> Option<T> {
        let result = Arc::new(Mutex::new(Slot { value: None, is_over: false, waker: None }));
        let mut done = Done(Arc::clone(&result));
        let job = move |turn| done.put(work(turn));
        let _waiting = match self.submit(Box::new(job)) {
            Ok(number) => Some(Waiting { shared: &self.shared, number }),
            Err(job) => {
                // Only this work fails; the panic hook has logged the panic.
                let _panic_is_logged = contain(|| job(Turn::Refuse));
                None
            }
        };
        std::future::poll_fn(|context| {
            let mut slot = result.lock();
            if slot.is_over {
                return Poll::Ready(slot.value.take());
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Queues a job; returns its number, or the job if there is no thread.
    fn submit(&self, job: Job) -> Result<u64, Job> {
        let mut state = self.shared.lock();
        self.find_thread(&mut state);
        if state.stopping || state.threads.is_empty() {
            return Err(job);
        }
        let number = state.next_number;
        state.next_number += 1;
        state.jobs.insert(number, job);
        Ok(number)
    }

    /// Wakes an idle thread, or starts one.
    fn find_thread(&self, state: &mut State) {
        if state.stopping {
            return;
        }
        if let Some(thread) = state.idle.pop() {
            if let Some(thread) = state.threads.get(thread) {
                thread.wake();
            }
        } else if state.threads.len() < self.threads_max {
            let number = state.threads.len();
            let thread = Thread { shared: Arc::clone(&self.shared), ended: Arc::clone(&self.ended), number };
            // If the system gives no further thread, those that there are take the work.
            let started = self.host.tasks.try_start(&format!("{}-{number}", self.name), Box::new(thread));
            state.threads.extend(started.ok());
        }
    }

    /// Ends the threads once no work waits, and waits for them. Later work is not run.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.shared.lock();
            state.stopping = true;
            std::mem::take(&mut state.threads)
        };
        for thread in &threads {
            thread.wake();
        }
        for thread in &threads {
            thread.join();
        }
    }
}

impl ThreadPool {
    /// As `stop`, for threads that may run what does not end by itself: waits so long at most, and then leaves them.
    pub fn stop_within(&self, patience: Duration) {
        let clock = &self.host.clock;
        let due_ns =
            clock.monotonic_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let mut state = self.shared.lock();
        state.stopping = true;
        state.threads.iter().for_each(|thread| thread.wake());
        while state.ended < state.threads.len() {
            let left = Duration::from_nanos(due_ns.saturating_sub(clock.monotonic_ns()));
            if left.is_zero() || self.ended.wait_for(&mut state, left).timed_out() {
                state.threads.clear();
                return;
            }
        }
        drop(state);
        self.stop();
    }
}

/// The result of work, for the task that waits for it.
struct Slot<T> {
    value: Option<T>,
    /// Whether the work has ended; without a value it panicked.
    is_over: bool,
    waker: Option<Waker>,
}

/// Ends a slot when it is dropped, however the work ends.
struct Done<T>(Arc<Mutex<Slot<T>>>);

impl<T> Done<T> {
    fn put(&mut self, value: T) {
        self.0.lock().value = Some(value);
    }
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = self.0.lock();
            slot.is_over = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Drops work that no thread has taken.
struct Waiting<'a> {
    shared: &'a Mutex<State>,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let job = self.shared.lock().jobs.remove(&self.number);
        // Not under the lock: it may hold much.
        drop(job);
    }
}

struct Thread {
    shared: Arc<Mutex<State>>,
    ended: Arc<Condvar>,
    number: usize,
}

impl Worker for Thread {
    fn step(&mut self) -> Next {
        let job = {
            let mut state = self.shared.lock();
            match state.jobs.pop_first() {
                Some((_, job)) => job,
                None if state.stopping => {
                    state.ended += 1;
                    self.ended.notify_all();
                    return Next::Done;
                }
                None => {
                    if !state.idle.contains(&self.number) {
                        state.idle.push(self.number);
                    }
                    return Next::Wait;
                }
            }
        };
        // Its caller finds that it has no result. The thread goes on.
        let _panic_is_logged = contain(|| job(Turn::Run));
        Next::Again
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Signal, Tasks};

    /// Gives a number of threads, then none.
    struct FewThreads {
        left: AtomicUsize,
        real: Host,
    }

    impl Tasks for FewThreads {
        fn start(&self, name: &str, worker: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
            self.real.tasks.start(name, worker)
        }

        fn try_start(&self, name: &str, worker: Box<dyn Worker>) -> std::io::Result<Arc<dyn TaskHandle>> {
            let one_less = |left: usize| left.checked_sub(1);
            match self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less) {
                Ok(_) => Ok(self.start(name, worker)),
                Err(_) => Err(std::io::ErrorKind::WouldBlock.into()),
            }
        }

        fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool) {
            self.real.tasks.wait_until(signal, ready);
        }
    }

    fn with_threads(left: usize) -> Host {
        let real = crate::real::host();
        Host { tasks: Arc::new(FewThreads { left: AtomicUsize::new(left), real: real.clone() }), ..real }
    }

    /// Wakes the thread that waits for a future.
    struct Unparks(std::thread::Thread);

    impl std::task::Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        let mut work = std::pin::pin!(work);
        loop {
            match work.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                Poll::Ready(done) => return done,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    #[test]
    fn work_is_told_where_the_system_gives_no_thread_and_is_done_by_those_that_there_are() {
        let pool = ThreadPool::new(with_threads(0), "none", 4);
        assert_eq!(block_on(pool.run(|turn| turn)), Some(Turn::Refuse));
        let pool = ThreadPool::new(with_threads(1), "one", 4);
        block_on(async {
            let runs = (0..20).map(|number| pool.run(move |turn| (number, turn)));
            for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
                assert_eq!(run.await, Some((number, Turn::Run)));
            }
        });
        pool.stop();
        assert_eq!(block_on(pool.run(|turn| turn)), Some(Turn::Refuse));
    }

    #[test]
    fn a_panic_ends_its_work_alone() {
        let pool = ThreadPool::new(with_threads(1), "one", 1);
        let panics = block_on(pool.run(|_| assert!(std::hint::black_box(false), "meant to fail")));
        assert!(panics.is_none());
        assert_eq!(block_on(pool.run(|turn| turn)), Some(Turn::Run));
        pool.stop();
    }

    #[test]
    fn work_whose_caller_has_gone_is_dropped_before_a_thread_takes_it() {
        let pool = ThreadPool::new(with_threads(1), "one", 1);
        let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
        let (begun, begins) = std::sync::mpsc::sync_channel::<()>(1);
        block_on(async {
            let first = pool.run(move |_| {
                begun.send(()).unwrap();
                released.recv().unwrap();
            });
            let mut first = std::pin::pin!(first);
            std::future::poll_fn(|context| {
                assert!(first.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            begins.recv().unwrap();
            let kept = Arc::new(());
            let held = Arc::clone(&kept);
            {
                let mut second = std::pin::pin!(pool.run(move |_| drop(held)));
                std::future::poll_fn(|context| {
                    assert!(second.as_mut().poll(context).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
                assert_eq!(Arc::strong_count(&kept), 2);
            }
            assert_eq!(Arc::strong_count(&kept), 1);
            release.send(()).unwrap();
            assert_eq!(first.await, Some(()));
        });
        pool.stop();
    }
}
