//! What ends a server: a signal, or a failure policy.

use anyhow::Result;
use helenus_server::log::Log;
use helenus_server::policy::Verdict;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch::Receiver;

/// What ends the wait for the end.
enum Woken {
    Signal,
    Told(Verdict),
}

/// SIGTERM and SIGINT, taken from their default action, which is to die, since the value was made.
pub(super) struct Ending {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
    /// Takes the signals. To be made before anybody is told that the server is there: who has been told may end it at once.
    pub fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(entered);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Blocks until the first signal, and does meanwhile what failure policies say. From then on a second signal ends the
    /// process at once, as if it were killed.
    pub fn wait(mut self, told: &mut Receiver<Verdict>, log: &Log, stop_doors: &dyn Fn()) {
        loop {
            match self.woken(told) {
                Woken::Signal => break,
                Woken::Told(Verdict::GoOn) => {}
                // The log has said why. Admin socket and HTTP port stay, for whoever looks what is wrong.
                Woken::Told(Verdict::StopServing) => stop_doors(),
                Woken::Told(Verdict::Die) => {
                    log.close();
                    std::process::exit(1);
                }
            }
        }
        // Without the thread only patience is left: nothing is lost.
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

    fn woken(&mut self, told: &mut Receiver<Verdict>) -> Woken {
        let (terminate, interrupt) = (&mut self.terminate, &mut self.interrupt);
        self.runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => Woken::Signal,
                _ = interrupt.recv() => Woken::Signal,
                // The policies live as long as the engine's journal does.
                Ok(()) = told.changed() => Woken::Told(*told.borrow_and_update()),
            }
        })
    }
}
