//! Writes the entries of requests to the audit log, as Cassandra's `AuditLogManager` does.
//!
//! Lines go to the buffer of the thread, which hands them over before it sends the answers.
//! Nothing here runs while the log is off. A request that is to be run again where it may block has no entry yet.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus_cql::audit::{Category, EventType, Subject};
use helenus_cql::backend::{Backend, Identity, Prepared, StatementId};
use helenus_cql::syntax::{cut_at_password, without_passwords};
use helenus_wire::native as wire;
use helenus_wire::native::{ErrorCode, ErrorMessage, Request};

use super::statement_cache::{BatchStatements, CachedStatement};
use crate::audit::{Audit, AuditBuffer, AuditEntry, SERVER};

/// The role of clients where nobody logs in (`AuthenticatedUser.ANONYMOUS_USERNAME`).
const ANONYMOUS: &str = "anonymous";
/// What stands for the message of a syntax error that may quote a password (`AuditLogManager`).
const OBSCURED: &str = "Syntax Exception. Obscured for security reasons.";

/// A request whose entry is to be written.
pub(super) struct Audited<'a> {
    pub audit: &'a Audit,
    pub backend: &'a dyn Backend,
    pub identity: &'a Identity,
    pub client: Option<SocketAddr>,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
    /// When it began, milliseconds since 1970.
    pub began_ms: i64,
}

impl Audited<'_> {
    fn entry<'e>(&'e self, event: EventType, operation: &'e str) -> AuditEntry<'e> {
        let other = || match self.identity.is_server() {
            true => Some(SERVER),
            false => self.backend.authenticator().is_none().then_some(ANONYMOUS),
        };
        AuditEntry {
            event,
            user: self.identity.role.as_deref().or_else(other),
            source: self.client,
            timestamp_ms: self.began_ms,
            batch: None,
            keyspace: self.keyspace,
            scope: None,
            operation,
        }
    }

    /// A statement that was run from its text. `keyspace`: that of the request, or of the session.
    #[cold]
    pub fn query(&self, query: &str, keyspace: Option<&str>, lines: &mut AuditBuffer) {
        match self.backend.subject(query, keyspace) {
            Some(subject) => {
                let operation = shown(query, &subject);
                let keyspace = subject.keyspace.as_deref().or(self.keyspace);
                self.audit.write_to(lines, &self.of_subject(&subject, keyspace, &operation), None);
            }
            None => {
                let operation = cut_at_password(query);
                let entry = self.entry(EventType::RequestFailure, &operation);
                self.audit.write_to(lines, &entry, None);
            }
        }
    }

    /// A prepared statement that was run.
    pub fn executed(&self, prepared: &mut CachedStatement, lines: &mut AuditBuffer) {
        let (prepared, tail) = prepared.parts();
        let Some(subject) = &prepared.subject else { return };
        let operation = shown(&prepared.query, subject);
        match subject.keyspace.as_deref() {
            keyspace @ Some(_) => {
                self.audit.write_to(lines, &self.of_subject(subject, keyspace, &operation), Some(tail));
            }
            // The keyspace of the session can change.
            None => {
                self.audit.write_to(lines, &self.of_subject(subject, self.keyspace, &operation), None);
            }
        }
    }

    fn of_subject<'e>(
        &'e self,
        subject: &'e Subject,
        keyspace: Option<&'e str>,
        operation: &'e str,
    ) -> AuditEntry<'e> {
        AuditEntry { keyspace, scope: subject.scope.as_deref(), ..self.entry(subject.event, operation) }
    }

    /// A statement that was prepared.
    pub fn prepared(&self, prepared: &Prepared, lines: &mut AuditBuffer) {
        let Some(subject) = &prepared.subject else { return };
        let operation = shown(&prepared.query, subject);
        let entry = self.of_subject(subject, subject.keyspace.as_deref(), &operation);
        self.audit.write_to(lines, &AuditEntry { event: EventType::PrepareStatement, ..entry }, None);
    }

    /// A batch that was run: an entry for it, and one for each of its statements.
    pub fn batch(&self, batch: &wire::Batch<'_>, known: &BatchStatements, lines: &mut AuditBuffer) {
        let id = self.audit.batch_id();
        let count = batch.statements.iter().count();
        let operation = format!("BatchId:[{id}] - BATCH of [{count}] statements");
        let entry = AuditEntry { batch: Some(id), ..self.entry(EventType::Batch, &operation) };
        self.audit.write_to(lines, &entry, None);
        let keyspace = batch.parameters.keyspace.or(self.keyspace);
        for statement in batch.statements.iter() {
            let (text, subject): (&str, Option<Arc<Subject>>) = match &statement.statement {
                wire::StatementRef::Query(text) => (text, self.backend.subject(text, keyspace)),
                wire::StatementRef::Prepared(id) => match known.taken.iter().find(|taken| taken.id == **id) {
                    Some(taken) => (&taken.query, taken.subject.clone()),
                    None => continue,
                },
            };
            let Some(subject) = subject else { continue };
            let of_subject = self.of_subject(&subject, subject.keyspace.as_deref().or(self.keyspace), text);
            self.audit.write_to(lines, &AuditEntry { batch: Some(id), ..of_subject }, None);
        }
    }

    /// A login that succeeded.
    #[cold]
    pub fn logged_in(&self, identity: &Identity, lines: &mut AuditBuffer) {
        let entry = self.entry(EventType::LoginSuccess, "LOGIN SUCCESSFUL");
        let user = identity.role.as_deref().or(identity.is_server().then_some(SERVER));
        let entry = AuditEntry { user, keyspace: None, ..entry };
        self.audit.write_to(lines, &entry, None);
    }

    /// A request that was answered with an error.
    #[cold]
    pub fn failed(&self, request: &Request<'_>, message: &ErrorMessage, lines: &mut AuditBuffer) {
        let code = message.detail.code();
        let event = match (code, request) {
            (_, Request::AuthResponse(_)) => EventType::LoginError,
            (ErrorCode::Unauthorized, _) => EventType::UnauthorizedAttempt,
            _ => EventType::RequestFailure,
        };
        let mut subject = None;
        let text: Cow<'_, str> = match request {
            Request::Query(query) => {
                let keyspace = query.parameters.keyspace.or(self.keyspace);
                let of_text = self.backend.subject(query.query, keyspace);
                shown_of_failed(query.query, of_text.as_deref(), code)
            }
            Request::Prepare(prepare) => cut_at_password(prepare.query),
            Request::Execute(execute) => {
                let id = StatementId::try_from(execute.id).ok().filter(|_| code != ErrorCode::Unprepared);
                match id.and_then(|id| self.backend.prepared(&id).ok().flatten()) {
                    Some(prepared) => {
                        subject.clone_from(&prepared.subject);
                        Cow::Owned(without_passwords(&prepared.query).into_owned())
                    }
                    // Cassandra writes the text of a statement that it does not know as a Java null.
                    None => "null".into(),
                }
            }
            Request::Batch(batch) => {
                let count = batch.statements.iter().count();
                let consistency = batch.parameters.consistency;
                format!("BATCH of {count} statements at consistency {consistency}").into()
            }
            Request::AuthResponse(_) => "LOGIN FAILURE".into(),
            Request::Startup(_) | Request::Options | Request::Register(_) => return,
        };
        let quotes_password =
            code == ErrorCode::Syntax && cut_at_password(statement_of(request)) != statement_of(request);
        let reason = if quotes_password { OBSCURED.into() } else { cut_at_password(&message.message) };
        let operation = if reason.trim().is_empty() { text } else { format!("{text}; {reason}").into() };
        let of_subject = subject.as_deref();
        let entry = AuditEntry {
            timestamp_ms: self.audit.now_ms(),
            keyspace: of_subject.and_then(|subject| subject.keyspace.as_deref()).or(self.keyspace),
            scope: of_subject.and_then(|subject| subject.scope.as_deref()),
            ..self.entry(event, &operation)
        };
        self.audit.write_to(lines, &entry, None);
    }
}

fn statement_of<'a>(request: &Request<'a>) -> &'a str {
    match request {
        Request::Query(query) => query.query,
        Request::Prepare(prepare) => prepare.query,
        _ => "",
    }
}

/// The text of a statement without passwords, which only those about roles have.
fn shown<'a>(text: &'a str, subject: &Subject) -> Cow<'a, str> {
    match subject.event.category() {
        Category::Dcl => without_passwords(text),
        _ => Cow::Borrowed(text),
    }
}

/// The text of a statement that failed. One that could not be analysed is cut at the first word "password", whatever it is,
/// as in Cassandra.
fn shown_of_failed<'a>(text: &'a str, subject: Option<&Subject>, code: ErrorCode) -> Cow<'a, str> {
    match subject {
        Some(subject) if subject.event.category() == Category::Dcl => without_passwords(text),
        Some(_) if code == ErrorCode::Unauthorized => Cow::Borrowed(text),
        _ => cut_at_password(text),
    }
}
