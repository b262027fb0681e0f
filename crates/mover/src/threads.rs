//! Threads for work that waits for the disk, beside the tasks of a move.
//!
//! In place of tokio's `spawn_blocking`, which panics where the system gives no thread: here the work fails with `MoveError::NoThread`, and
//! is tried again like anything else that passes. Short work shares a pool, in which it never waits for other work. A reader, which waits
//! for whoever takes its rows, gets a thread of its own: in the pool some readers could leave no thread for those that they wait for.

use crate::error::MoveError;
use helenus_host::thread_pool::{ThreadPool, Turn};
use helenus_host::{Host, Next, Worker, contain};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threads of the pool at most; as many as tokio's.
const THREADS_MAX: usize = 512;

/// The threads of a move or of its rollback.
pub(crate) struct Threads {
    host: Host,
    pool: ThreadPool,
    /// Short work takes one of `THREADS_MAX` permits until it has ended, whatever becomes of who waits for it.
    running: Arc<Semaphore>,
}

impl Threads {
    /// None is started yet.
    pub(crate) fn new(host: &Host) -> Arc<Threads> {
        Arc::new(Threads {
            host: host.clone(),
            pool: ThreadPool::new(host.clone(), "move-disk", THREADS_MAX),
            running: Arc::new(Semaphore::new(THREADS_MAX)),
        })
    }

    /// Runs short work.
    ///
    /// # Errors
    /// Its own; `NoThread`; it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, MoveError> + Send + 'static,
    ) -> Result<T, MoveError> {
        // It is never closed.
        let permit = Arc::clone(&self.running).acquire_owned().await;
        let done = self.pool.run(move |turn| {
            let _until_its_end = permit;
            match turn {
                Turn::Run => work(),
                Turn::Refuse => Err(MoveError::NoThread),
            }
        });
        let panicked = || Err(MoveError::Internal("a thread of the move panicked, see the log".to_owned()));
        done.await.unwrap_or_else(panicked)
    }

    /// What a task that runs short work holds, so that `idle` waits for it too.
    pub(crate) async fn task(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.running).acquire_owned().await.ok()
    }

    /// Waits until no short work and no task of `task` runs, also of those who do not wait for it any more.
    pub(crate) async fn idle(&self) {
        let all = u32::try_from(THREADS_MAX).unwrap_or(u32::MAX);
        // It is never closed.
        let _all_have_ended = self.running.acquire_many(all).await;
    }

    /// Starts a reader, which ends by itself once nobody takes its rows. Whoever takes them learns of its end by the channel.
    ///
    /// # Errors
    /// `NoThread`.
    pub(crate) fn start(&self, work: impl FnOnce() + Send + 'static) -> Result<(), MoveError> {
        let reader = Box::new(Reader(Some(work)));
        self.host.tasks.try_start("move-read", reader).map(drop).map_err(|_| MoveError::NoThread)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Its work ends by itself, and may be what drops the last handle: it is not waited for.
        self.pool.stop_within(Duration::ZERO);
    }
}

struct Reader<F>(Option<F>);

impl<F: FnOnce() + Send> Worker for Reader<F> {
    fn step(&mut self) -> Next {
        if let Some(work) = self.0.take() {
            // Whoever takes its rows misses its end. The panic hook has logged the panic.
            let _panic_is_logged = contain(work);
        }
        Next::Done
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use helenus_host::{Signal, TaskHandle, Tasks};

    /// A machine whose system gives no thread.
    struct NoThreads;

    impl Tasks for NoThreads {
        fn start(&self, name: &str, _: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
            panic!("{name} is started")
        }

        fn try_start(&self, _: &str, _: Box<dyn Worker>) -> std::io::Result<Arc<dyn TaskHandle>> {
            Err(std::io::ErrorKind::WouldBlock.into())
        }

        fn wait_until(&self, _: &Signal, _: &mut dyn FnMut() -> bool) {}
    }

    #[tokio::test]
    async fn work_without_a_thread_is_an_error_and_a_panic_ends_its_work_alone() {
        let real = helenus_host::real::host();
        let none = Threads::new(&Host { tasks: Arc::new(NoThreads), ..real.clone() });
        assert!(matches!(none.run(|| Ok(())).await, Err(MoveError::NoThread)));
        assert!(matches!(none.start(|| {}), Err(MoveError::NoThread)));
        let threads = Threads::new(&real);
        let panics = threads.run(|| {
            assert!(std::hint::black_box(false), "meant to fail");
            Ok(())
        });
        assert!(matches!(panics.await, Err(MoveError::Internal(_))));
        assert_eq!(threads.run(|| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_is_waited_for_by_idle() {
        let threads = Threads::new(&helenus_host::real::host());
        let (begins, begun) = tokio::sync::oneshot::channel();
        let (end, ends) = std::sync::mpsc::sync_channel::<()>(1);
        let task = tokio::spawn({
            let threads = Arc::clone(&threads);
            async move {
                let work = move || {
                    begins.send(()).expect("the test waits");
                    ends.recv().expect("the test says when");
                    Ok(())
                };
                threads.run(work).await
            }
        });
        begun.await.unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        let mut idle = std::pin::pin!(threads.idle());
        tokio::select! {
            biased;
            () = idle.as_mut() => panic!("it still runs"),
            () = std::future::ready(()) => {}
        }
        end.send(()).unwrap();
        idle.await;
    }
}
