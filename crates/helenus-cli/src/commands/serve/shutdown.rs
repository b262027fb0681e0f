//! Waits for the end of the server: a signal, or the verdict of a failure policy. SIGHUP does not end it, but has the settings read
//! again, as `helenus admin reloadsettings` does.
//!
//! A thread of its own waits for signals from the start, so that one is obeyed whatever the rest of the process does: the first
//! tells the main thread, which stops the server in order; the second ends the process at once. So does the first if the
//! main thread does not wait for it in time, because the start has failed and does not come to its end.

use anyhow::{Context, Result};
use helenus_server::log::Log;
use helenus_server::policy::Verdict;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch::{Receiver, Sender, channel};

/// The event that ends a wait.
enum Event {
    Signal,
    /// SIGHUP.
    Reload,
    Told(Verdict),
}

/// The signals that have come.
#[derive(Clone, Copy, Default)]
struct Came {
    /// SIGTERM or SIGINT.
    ends: bool,
    /// How often SIGHUP came.
    reloads: u64,
}

/// The handler of SIGHUP, which is there before the others: while the server starts, SIGHUP does not kill it. One that comes then is
/// obeyed when the server has started.
pub(super) struct ReloadSignal {
    runtime: Runtime,
    hangup: Signal,
}

impl ReloadSignal {
    /// Installs the handler.
    pub fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let hangup = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self { runtime, hangup })
    }
}

/// Handlers of SIGTERM, SIGINT and SIGHUP. Since the value was made, these signals do not kill the process.
pub(super) struct ShutdownSignals {
    runtime: Runtime,
    signalled: Receiver<Came>,
    /// The number of SIGHUPs that were obeyed.
    reloads: u64,
    /// Whether the main thread waits for the first signal, or has waited.
    is_awaited: Arc<AtomicBool>,
}

/// How long a signal that comes during the start waits for the end of the start.
const START_PATIENCE: Duration = Duration::from_secs(10);

impl ShutdownSignals {
    /// Installs the handlers. Call this before anything announces the server: a reader of the announcement may send a
    /// signal at once.
    pub fn new(reload: ReloadSignal) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ReloadSignal { runtime: of_thread, hangup } = reload;
        let entered = of_thread.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(entered);
        let is_awaited = Arc::new(AtomicBool::new(false));
        let (came, signalled) = channel(Came::default());
        let awaited = Arc::clone(&is_awaited);
        let signals = Signals { terminate, interrupt, hangup };
        let watch = move || of_thread.block_on(obey(signals, &came, &awaited));
        let started = std::thread::Builder::new().name("signals".into()).spawn(watch);
        started.context("the system gives the server no thread that waits for signals")?;
        Ok(Self { runtime, signalled, reloads: 0, is_awaited })
    }

    /// Blocks until the first signal that ends the server, and meanwhile carries out the verdicts of failure policies and calls
    /// `reload` for SIGHUP. After it returns, a second signal ends the process at once, as if it were killed.
    pub fn wait(mut self, told: &mut Receiver<Verdict>, log: &Log, stop_doors: &dyn Fn(), reload: &dyn Fn()) {
        self.is_awaited.store(true, Ordering::Release);
        loop {
            match self.woken(told) {
                Event::Signal => break,
                Event::Reload => reload(),
                Event::Told(Verdict::GoOn) => {}
                // The log contains the reason. The admin socket and the HTTP port stay open for diagnosis.
                Event::Told(Verdict::StopServing) => stop_doors(),
                Event::Told(Verdict::Die) => {
                    log.close();
                    std::process::exit(1);
                }
            }
        }
    }

    fn woken(&mut self, told: &mut Receiver<Verdict>) -> Event {
        let Self { signalled, reloads, .. } = self;
        self.runtime.block_on(async {
            tokio::select! {
                // An error: the thread has ended, which it does only with the process.
                came = signalled.wait_for(|came| came.ends || came.reloads != *reloads) => match came {
                    Ok(came) if !came.ends => {
                        *reloads = came.reloads;
                        Event::Reload
                    }
                    _ => Event::Signal,
                },
                // The sender never closes first: the policies live as long as the engine's journal.
                Ok(()) = told.changed() => Event::Told(*told.borrow_and_update()),
            }
        })
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Waits for a signal that ends the server, and tells of each SIGHUP before it.
    async fn end(&mut self, came: &Sender<Came>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                Some(()) = self.hangup.recv() => came.send_modify(|came| came.reloads += 1),
            }
        }
    }
}

/// Tells of the first signal, and ends the process at the second, or if nobody waits for the first.
async fn obey(mut signals: Signals, came: &Sender<Came>, is_awaited: &AtomicBool) {
    signals.end(came).await;
    came.send_modify(|came| came.ends = true);
    let second = tokio::time::timeout(START_PATIENCE, signals.end(came)).await;
    if second.is_err() && is_awaited.load(Ordering::Acquire) {
        signals.end(came).await;
    }
    std::process::exit(1);
}
