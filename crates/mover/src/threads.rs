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

/// Threads of the pool at most; as many as tokio's.
const THREADS_MAX: usize = 512;

/// The threads of a move or of its rollback.
pub(crate) struct Threads {
    host: Host,
    pool: ThreadPool,
}

impl Threads {
    /// None is started yet.
    pub(crate) fn new(host: &Host) -> Arc<Threads> {
        Arc::new(Threads {
            host: host.clone(),
            pool: ThreadPool::new(host.clone(), "move-disk", THREADS_MAX),
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
        let done = self.pool.run(move |turn| match turn {
            Turn::Run => work(),
            Turn::Refuse => Err(MoveError::NoThread),
        });
        let panicked = || Err(MoveError::Internal("a thread of the move panicked, see the log".to_owned()));
        done.await.unwrap_or_else(panicked)
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
}
