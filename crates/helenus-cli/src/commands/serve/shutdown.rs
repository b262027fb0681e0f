//! Waits for the end of the server: a signal, or the verdict of a failure policy.

use anyhow::Result;
use helenus_server::log::Log;
use helenus_server::policy::Verdict;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch::Receiver;

/// The event that ends a wait.
enum Event {
    Signal,
    Told(Verdict),
}

/// Handlers of SIGTERM and SIGINT. Since the value was made, these signals do not kill the process.
pub(super) struct ShutdownSignals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    /// Installs the handlers. Call this before anything announces the server: a reader of the announcement may send a
    /// signal at once.
    pub fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(entered);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Blocks until the first signal, and meanwhile carries out the verdicts of failure policies. After it returns, a
    /// second signal ends the process at once, as if it were killed.
    pub fn wait(mut self, told: &mut Receiver<Verdict>, log: &Log, stop_doors: &dyn Fn()) {
        loop {
            match self.woken(told) {
                Event::Signal => break,
                Event::Told(Verdict::GoOn) => {}
                // The log contains the reason. The admin socket and the HTTP port stay open for diagnosis.
                Event::Told(Verdict::StopServing) => stop_doors(),
                Event::Told(Verdict::Die) => {
                    log.close();
                    std::process::exit(1);
                }
            }
        }
        // If the thread cannot start, a second signal has no effect; no data is lost.
        let _second = std::thread::Builder::new().name("signals".into()).spawn(move || {
            let Self { runtime, mut terminate, mut interrupt } = self;
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            std::process::exit(1);
        });
    }

    fn woken(&mut self, told: &mut Receiver<Verdict>) -> Event {
        let (terminate, interrupt) = (&mut self.terminate, &mut self.interrupt);
        self.runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => Event::Signal,
                _ = interrupt.recv() => Event::Signal,
                // The sender never closes first: the policies live as long as the engine's journal.
                Ok(()) = told.changed() => Event::Told(*told.borrow_and_update()),
            }
        })
    }
}
