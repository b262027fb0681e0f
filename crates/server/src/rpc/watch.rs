//! Counts calls and their exceptions, and logs slow and failed calls.
//!
//! The cost is as for CQL (`log::slow`): two readings of a coarse clock for each call, and a probe for calls on disk
//! threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use helenus_cql::audit::EventType;
use helenus_cql::syntax::{cut_at_password, without_passwords};
use helenus_engine::read::Probe;
use helenus_host::Clock;
use helenus_rpc::{CallDescription, CallOutcome, Refused, RefusedKind};

use crate::audit::{Audit, AuditEntry};
use crate::log::{SlowStatements, StatementText};

/// The most hexadecimal digits of a key that are shown.
const KEY_DIGITS_MAX: usize = 128;

/// The counters of one event loop, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct LoopCounters {
    pub connections: AtomicUsize,
    pub calls: AtomicU64,
}

/// The metrics of the RPC server at one moment.
#[derive(Clone, Debug, Default)]
pub struct RpcMetrics {
    /// Clients connected.
    pub connections: u64,
    /// Calls answered since the start.
    pub calls: u64,
    /// Connections whose handshake of TLS failed.
    pub handshakes_failed: u64,
    /// Exceptions among the answers, by name, zeros included.
    pub errors: Vec<(&'static str, u64)>,
}

impl RpcMetrics {
    /// Together with what was counted before.
    pub(super) fn after(mut self, before: &RpcMetrics) -> RpcMetrics {
        self.calls += before.calls;
        self.handshakes_failed += before.handshakes_failed;
        for (name, count) in &mut self.errors {
            let earlier = before.errors.iter().find(|(of, _)| of == name);
            *count += earlier.map_or(0, |(_, count)| *count);
        }
        self
    }
}

/// Counts and logs calls.
pub(super) struct CallWatch {
    slow: Option<Arc<SlowStatements>>,
    audit: Option<Arc<Audit>>,
    /// Whether clients have to log in.
    has_logins: bool,
    clock: Arc<dyn Clock>,
    errors: [AtomicU64; RefusedKind::ALL.len()],
    handshakes_failed: AtomicU64,
}

/// A call in progress.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    /// When it began, by the coarse clock; `None` if no call is slow.
    pub began_ns: Option<u64>,
    /// When it began, milliseconds since 1970; `None` if the audit log is off.
    pub began_ms: Option<i64>,
    pub client: Option<SocketAddr>,
}

impl CallWatch {
    pub fn new(
        slow: Option<Arc<SlowStatements>>,
        (audit, has_logins): (Option<Arc<Audit>>, bool),
        clock: &Arc<dyn Clock>,
    ) -> CallWatch {
        CallWatch {
            slow,
            audit,
            has_logins,
            clock: Arc::clone(clock),
            errors: Default::default(),
            handshakes_failed: AtomicU64::default(),
        }
    }

    /// Called when a call begins.
    #[inline]
    pub fn begin(&self, client: Option<SocketAddr>) -> Watched {
        let threshold = self.slow.as_ref().and_then(|slow| slow.threshold_ns());
        let began_ms = self.audit.as_ref().filter(|audit| audit.is_on()).map(|audit| audit.now_ms());
        Watched { began_ns: threshold.map(|_| self.clock.coarse_ns()), began_ms, client }
    }

    /// Called when a call has been answered. `words` describes the call, for the log.
    #[inline]
    pub fn ended(
        &self,
        watched: Watched,
        done: &CallOutcome,
        words: &dyn Fn() -> CallDescription,
        probe: Option<&Probe>,
    ) {
        if let (Some(slow), Some(began_ns)) = (&self.slow, watched.began_ns) {
            let took_ns = self.clock.coarse_ns().saturating_sub(began_ns);
            if slow.threshold_ns().is_some_and(|threshold| took_ns >= threshold) {
                slow.slow(&statement(slow, words()), took_ns, watched.client, probe);
            }
        }
        if let (Some(audit), Some(began_ms)) = (&self.audit, watched.began_ms) {
            self.audited((audit, began_ms), watched.client, done, words);
        }
        if let CallOutcome::Refused(refused) = done {
            self.refused(watched, refused, words);
        }
    }

    /// Writes the entry of a call to the audit log.
    fn audited(
        &self,
        (audit, began_ms): (&Audit, i64),
        client: Option<SocketAddr>,
        done: &CallOutcome,
        words: &dyn Fn() -> CallDescription,
    ) {
        let refused = match done {
            CallOutcome::Answered | CallOutcome::Held(..) => None,
            CallOutcome::Refused(refused) => Some(refused),
            CallOutcome::WouldBlock | CallOutcome::Cancelled => return,
        };
        let words = words();
        let is_login = words.subject.event == EventType::LoginSuccess;
        let event = match refused {
            None => words.subject.event,
            Some(_) if is_login => EventType::LoginError,
            Some(refused) if refused.is_unauthorized => EventType::UnauthorizedAttempt,
            Some(_) => EventType::RequestFailure,
        };
        let text = match (is_login, refused) {
            (true, None) => "LOGIN SUCCESSFUL".into(),
            (true, Some(_)) => "LOGIN FAILURE".into(),
            (false, _) => without_passwords(&words.text),
        };
        let operation = match refused {
            Some(refused) => format!("{text}; {}", cut_at_password(&refused.text)).into(),
            None => text,
        };
        let role = words.role.as_deref().filter(|_| event != EventType::LoginError);
        audit.write(&AuditEntry {
            event,
            user: role.or((!self.has_logins).then_some("anonymous")),
            source: client,
            timestamp_ms: began_ms,
            batch: None,
            keyspace: words.subject.keyspace.as_deref(),
            scope: words.subject.scope.as_deref(),
            operation: &operation,
        });
    }

    #[cold]
    fn refused(&self, watched: Watched, refused: &Refused, words: &dyn Fn() -> CallDescription) {
        self.count(refused.kind);
        if let Some(slow) = &self.slow {
            let text = || statement(slow, words());
            let (name, is_ours) = (refused.kind.name(), refused.kind.is_servers());
            slow.failed(&text, (name, &refused.text), is_ours, watched.client);
        }
    }

    /// Logs a connection that was refused.
    #[cold]
    pub fn connection_refused(&self, client: SocketAddr, reason: &str) {
        if let Some(slow) = &self.slow {
            slow.refused(client, reason);
        }
    }

    /// Logs a connection whose handshake of TLS failed.
    #[cold]
    pub fn not_secured(&self, client: SocketAddr, reason: &str) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
        if let Some(slow) = &self.slow {
            slow.not_secured(client, reason);
        }
    }

    /// Logs that the system failed to accept a connection.
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

    /// Logs answers that waited too long for the commit log.
    pub fn waited(&self, since_ns: u64) {
        if let Some(slow) = &self.slow {
            let waited_ns = self.clock.coarse_ns().saturating_sub(since_ns);
            if slow.threshold_ns().is_some_and(|threshold| waited_ns >= threshold) {
                slow.slow_write(waited_ns / 1_000_000);
            }
        }
    }

    /// Reads the coarse clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.coarse_ns()
    }

    /// The metrics, summed over the event loops.
    pub fn figures(&self, served: &[Arc<LoopCounters>]) -> RpcMetrics {
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        RpcMetrics {
            connections: served.iter().map(|one| one.connections.load(Ordering::Relaxed) as u64).sum(),
            calls: served.iter().map(|one| one.calls.load(Ordering::Relaxed)).sum(),
            handshakes_failed: self.handshakes_failed.load(Ordering::Relaxed),
            errors: RefusedKind::ALL.iter().map(|kind| kind.name()).zip(counts).collect(),
        }
    }
}

/// Describes a call for the log: a statement without its literals, or a call with its key if values are shown.
fn statement(slow: &SlowStatements, words: CallDescription) -> StatementText {
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
