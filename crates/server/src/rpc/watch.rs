//! Counts calls and their exceptions, and logs slow and failed calls.
//!
//! The cost is as for CQL (`log::slow`): two readings of a coarse clock for each call, and a probe for calls on disk
//! threads.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use helenus_cql::audit::EventType;
use helenus_cql::syntax::{audited, obscured_message, shown_message, without_literals, without_passwords};
use helenus_engine::read::Probe;
use helenus_host::Clock;
use helenus_rpc::{CallDescription, CallOutcome, Refused, RefusedKind, TextParse};

use crate::audit::{Audit, AuditEntry, AuditUser, cut};
use crate::log::{SlowStatements, StatementText};

/// The most hexadecimal digits of a key that are shown.
const KEY_DIGITS_MAX: usize = 128;
/// The most that the audit log has of a call that was refused, bytes, and of its refusal: nothing was done, and a compressed
/// statement may be a thousand times as long as its message.
const REFUSED_BYTES_MAX: usize = 16 << 10;

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

    /// Why no call is run now: the audit log cannot be written.
    #[inline]
    pub fn refusal(&self) -> Option<String> {
        self.audit.as_ref().and_then(|audit| audit.refusal())
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
        // By the text and never by the event, which is that of the call: one that only prepares the text shows it too.
        let text: Cow<'_, str> = match (is_login, refused) {
            (true, None) => "LOGIN SUCCESSFUL".into(),
            (true, Some(_)) => "LOGIN FAILURE".into(),
            (false, _) if words.is_statement => shown_statement(&words.text, words.parse),
            (false, _) => Cow::Borrowed(words.text.as_str()),
        };
        let operation = match refused {
            Some(refused) => {
                let parses = !words.is_statement || words.parse.is_statement;
                let has_secrets = words.parse.has_secret_values || words.subject.has_secret_values();
                let message = match has_secrets && !refused.is_unauthorized {
                    true => obscured_message().into(),
                    false => shown_message(&words.text, parses, &refused.text),
                };
                let (text, message) = (cut(&text, REFUSED_BYTES_MAX), cut(&message, REFUSED_BYTES_MAX));
                format!("{text}; {message}").into()
            }
            None => text,
        };
        let role = words.role.as_deref().filter(|_| event != EventType::LoginError);
        let without_role = if self.has_logins { AuditUser::Nobody } else { AuditUser::Anonymous };
        let entry = AuditEntry {
            event,
            user: AuditUser::of(role, without_role),
            source: client,
            timestamp_ms: began_ms,
            batch: None,
            keyspace: words.subject.keyspace.as_deref(),
            is_of_session: false,
            scope: words.subject.scope.as_deref(),
            operation: &operation,
        };
        audit.write(&entry);
        let batch = (!words.subject.parts.is_empty()).then(|| audit.batch_id());
        for part in &words.subject.parts {
            let text = words.text.get(part.place.0..part.place.1).unwrap_or_default();
            let text = text.trim_end_matches([' ', '\n', ';']);
            let text: Cow<'_, str> = match part.has_secret_values() {
                true => audited(text).into(),
                false => text.into(),
            };
            let text = if refused.is_some() { cut(&text, REFUSED_BYTES_MAX) } else { text.clone() };
            audit.write(&AuditEntry {
                event: if refused.is_some() { event } else { part.event },
                batch,
                keyspace: part.keyspace.as_deref(),
                scope: part.scope.as_deref(),
                operation: &text,
                ..entry
            });
        }
    }

    /// Counts and logs a message that is not called at all. `name`: of its call, as far as that is known.
    #[cold]
    pub fn not_taken(&self, (client, role): (Option<SocketAddr>, Option<&str>), name: &[u8], text: &str) {
        self.count(RefusedKind::Internal);
        if let Some(slow) = &self.slow {
            slow.overloaded(text);
        }
        if let Some(audit) = self.audit.as_ref().filter(|audit| audit.is_on()) {
            let name = String::from_utf8_lossy(name.get(..KEY_DIGITS_MAX).unwrap_or(name));
            let without_role = if self.has_logins { AuditUser::Nobody } else { AuditUser::Anonymous };
            audit.write(&AuditEntry {
                event: EventType::RequestFailure,
                user: AuditUser::of(role, without_role),
                source: client,
                timestamp_ms: audit.now_ms(),
                batch: None,
                keyspace: None,
                is_of_session: false,
                scope: None,
                operation: &format!("{name}; {text}"),
            });
        }
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

/// A statement as the audit log shows it: one about roles without passwords, one on the tables of roles and rights without the values
/// that may be hashes, and what is none without literals.
fn shown_statement(text: &str, parse: TextParse) -> Cow<'_, str> {
    if !parse.is_statement {
        return without_literals(text);
    }
    match without_passwords(text) {
        Cow::Borrowed(text) if parse.has_secret_values => audited(text).into(),
        shown => shown,
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
