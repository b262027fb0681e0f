//! What is counted and logged of calls: how many, their exceptions, the slow and the failed ones.
//!
//! As for CQL (`log::slow`): two looks at a coarse clock a call, and a probe for those that run on disk threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use helenus_engine::read::Probe;
use helenus_host::Clock;
use helenus_rpc::{CallWords, Done, Refused, RefusedKind};

use crate::log::{SlowStatements, StatementText};

/// Hexadecimal digits of a key that are shown.
const KEY_DIGITS_MAX: usize = 128;

/// What a thread serves, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Served {
    pub connections: AtomicUsize,
    pub calls: AtomicU64,
}

/// The figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct RpcFigures {
    /// Clients connected.
    pub connections: u64,
    /// Calls answered since the start.
    pub calls: u64,
    /// Exceptions among the answers, by name; those that never came included.
    pub errors: Vec<(&'static str, u64)>,
}

/// Watches all calls.
pub(super) struct CallWatch {
    slow: Option<Arc<SlowStatements>>,
    clock: Arc<dyn Clock>,
    errors: [AtomicU64; RefusedKind::ALL.len()],
}

/// A call that is watched.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    /// When it was begun, by the coarse clock; `None`: nothing is slow.
    pub began_ns: Option<u64>,
    pub client: Option<SocketAddr>,
}

impl CallWatch {
    pub fn new(slow: Option<Arc<SlowStatements>>, clock: &Arc<dyn Clock>) -> CallWatch {
        CallWatch { slow, clock: Arc::clone(clock), errors: Default::default() }
    }

    /// A call begins.
    #[inline]
    pub fn begin(&self, client: Option<SocketAddr>) -> Watched {
        let threshold = self.slow.as_ref().and_then(|slow| slow.threshold_ns());
        Watched { began_ns: threshold.map(|_| self.clock.coarse_ns()), client }
    }

    /// A call was answered. `words` says which, for the log.
    #[inline]
    pub fn ended(&self, watched: Watched, done: &Done, words: &dyn Fn() -> CallWords, probe: Option<&Probe>) {
        if let (Some(slow), Some(began_ns)) = (&self.slow, watched.began_ns) {
            let took_ns = self.clock.coarse_ns().saturating_sub(began_ns);
            if slow.threshold_ns().is_some_and(|threshold| took_ns >= threshold) {
                slow.slow(&statement(slow, words()), took_ns, watched.client, probe);
            }
        }
        if let Done::Refused(refused) = done {
            self.refused(watched, refused, words);
        }
    }

    #[cold]
    fn refused(&self, watched: Watched, refused: &Refused, words: &dyn Fn() -> CallWords) {
        self.count(refused.kind);
        if let Some(slow) = &self.slow {
            let text = || statement(slow, words());
            let (name, is_ours) = (refused.kind.name(), refused.kind.is_servers());
            slow.failed(&text, (name, &refused.text), is_ours, watched.client);
        }
    }

    /// A connection was closed before it began.
    #[cold]
    pub fn connection_refused(&self, client: SocketAddr, reason: &str) {
        if let Some(slow) = &self.slow {
            slow.refused(client, reason);
        }
    }

    /// The system has refused to accept a connection.
    #[cold]
    pub fn not_accepted(&self, error: &std::io::Error) {
        if let Some(slow) = &self.slow {
            slow.not_accepted("RPC", error);
        }
    }

    /// Counts an exception.
    pub fn count(&self, kind: RefusedKind) {
        let at = RefusedKind::ALL.iter().position(|known| *known == kind);
        if let Some(count) = at.and_then(|at| self.errors.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers waited for the commit log.
    pub fn waited(&self, since_ns: u64) {
        if let Some(slow) = &self.slow {
            let waited_ns = self.clock.coarse_ns().saturating_sub(since_ns);
            if slow.threshold_ns().is_some_and(|threshold| waited_ns >= threshold) {
                slow.slow_write(waited_ns / 1_000_000);
            }
        }
    }

    /// The coarse clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.coarse_ns()
    }

    /// The figures, with what each thread has served.
    pub fn figures(&self, served: &[Arc<Served>]) -> RpcFigures {
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        RpcFigures {
            connections: served.iter().map(|one| one.connections.load(Ordering::Relaxed) as u64).sum(),
            calls: served.iter().map(|one| one.calls.load(Ordering::Relaxed)).sum(),
            errors: RefusedKind::ALL.iter().map(|kind| kind.name()).zip(counts).collect(),
        }
    }
}

/// A call as the log takes it: statements without their literals, keys where values are shown.
fn statement(slow: &SlowStatements, words: CallWords) -> StatementText {
    let kind = if words.is_statement { "rpc_query" } else { "rpc_call" };
    let values = words.key.filter(|_| slow.shows_values()).map(|key| {
        let shown: String = key.chars().take(KEY_DIGITS_MAX).collect();
        let more = if shown.len() < key.len() { "..." } else { "" };
        format!("key 0x{shown}{more}")
    });
    StatementText {
        kind,
        texts: vec![StatementText::cut(&words.text)],
        count: 1,
        values: values.into_iter().collect(),
    }
}
