//! Writes the entries of requests to the audit log, as Cassandra's `AuditLogManager` does.
//!
//! Lines go to the buffer of the thread, which hands them over before it sends the answers.
//! Nothing here runs while the log is off. A request that is to be run again where it may block has no entry yet.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus_cql::audit::{Category, EventType, Subject};
use helenus_cql::backend::{Backend, Identity, Prepared, StatementId};
use helenus_cql::syntax::{
    audited, cut_at_password, obscured_message, shown_message, without_literals, without_passwords,
};
use helenus_wire::native as wire;
use helenus_wire::native::{ErrorCode, ErrorMessage, Request};
use uuid::Uuid;

use super::statement_cache::{BatchStatements, CachedStatement};
use crate::audit::{Audit, AuditBuffer, AuditEntry, AuditUser};

/// The longest text of a statement that failed which is parsed again, and written whole. Also the bytes after which no
/// further statement of a failed request gets a line: one entry of a batch takes 20 bytes of a request, and names a text of
/// any length.
const FAILED_BYTES_MAX: usize = 64 << 10;

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
        AuditEntry {
            event,
            user: self.user(self.identity),
            source: self.client,
            timestamp_ms: self.began_ms,
            batch: None,
            keyspace: self.keyspace,
            is_of_session: true,
            scope: None,
            operation,
        }
    }

    fn user<'i>(&self, identity: &'i Identity) -> AuditUser<'i> {
        let without_role = match (identity.is_server(), self.backend.authenticator()) {
            (true, _) => AuditUser::Server,
            (false, None) => AuditUser::Anonymous,
            (false, Some(_)) => AuditUser::Nobody,
        };
        AuditUser::of(identity.role.as_deref(), without_role)
    }

    /// A statement that was run from its text. `keyspace`: that of the request, or of the session.
    #[cold]
    pub fn query(&self, query: &str, keyspace: Option<&str>, lines: &mut AuditBuffer) {
        match self.backend.subject(query, keyspace) {
            Some(subject) => {
                let operation = shown(query, &subject);
                self.audit.write_to(lines, &self.of_subject(&subject, &operation), None);
                self.parts((query, &subject), None, lines);
            }
            None => {
                let operation = without_literals(query);
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
        // The keyspace of the session can change.
        let tail = subject.keyspace.is_some().then_some(tail);
        self.audit.write_to(lines, &self.of_subject(subject, &operation), tail);
        self.parts((&prepared.query, subject), None, lines);
    }

    fn of_subject<'e>(&'e self, subject: &'e Subject, operation: &'e str) -> AuditEntry<'e> {
        AuditEntry {
            keyspace: subject.keyspace.as_deref().or(self.keyspace),
            is_of_session: subject.keyspace.is_none(),
            scope: subject.scope.as_deref(),
            ..self.entry(subject.event, operation)
        }
    }

    /// The statements of a BATCH, each with the batch's id; none of another statement. Cassandra writes a BATCH that came as text as
    /// one line without a keyspace, which hides what it changed. `failed`: what became of the batch, if it failed.
    fn parts(&self, (text, subject): (&str, &Subject), failed: Option<EventType>, lines: &mut AuditBuffer) {
        if subject.parts.is_empty() {
            return;
        }
        let id = self.audit.batch_id();
        let mut room = failed.map(|_| FailedRoom::new(lines));
        for (place, part) in subject.parts.iter().enumerate() {
            if let (Some(event), Some(room)) = (failed, &room)
                && !room.is_left(lines)
            {
                return self.rest(event, id, subject.parts.len() - place, lines);
            }
            let operation = text.get(part.place.0..part.place.1).unwrap_or_default();
            let operation = operation.trim_end_matches([' ', '\n', ';']);
            let operation: Cow<'_, str> = match part.has_secret_values() {
                true => audited(operation).into(),
                false => operation.into(),
            };
            let operation = match &mut room {
                Some(room) => room.take(operation),
                None => operation,
            };
            let entry = AuditEntry {
                batch: Some(id),
                keyspace: part.keyspace.as_deref(),
                is_of_session: false,
                scope: part.scope.as_deref(),
                ..self.entry(failed.unwrap_or(part.event), &operation)
            };
            self.audit.write_to(lines, &entry, None);
        }
    }

    /// A statement that was prepared.
    pub fn prepared(&self, prepared: &Prepared, lines: &mut AuditBuffer) {
        let Some(subject) = &prepared.subject else { return };
        let operation = shown(&prepared.query, subject);
        let keyspace = subject.keyspace.as_deref();
        let entry = AuditEntry { keyspace, is_of_session: false, ..self.of_subject(subject, &operation) };
        self.audit.write_to(lines, &AuditEntry { event: EventType::PrepareStatement, ..entry }, None);
    }

    /// A batch that was run: an entry for it, and one for each of its statements.
    pub fn batch(&self, batch: &wire::Batch<'_>, known: &BatchStatements, lines: &mut AuditBuffer) {
        let id = self.audit.batch_id();
        let count = batch.statements.iter().count();
        let operation = format!("BatchId:[{id}] - BATCH of [{count}] statements");
        let entry = AuditEntry { batch: Some(id), ..self.entry(EventType::Batch, &operation) };
        self.audit.write_to(lines, &entry, None);
        let find = |id: &[u8]| {
            let taken = known.find(id)?;
            Some((Arc::clone(&taken.query), taken.subject.clone()?))
        };
        self.entries((batch, id), &find, None, lines);
    }

    /// The statements of a batch of the protocol. `find`: text and subject of a prepared one.
    fn entries(
        &self,
        (batch, id): (&wire::Batch<'_>, Uuid),
        find: &Find<'_>,
        failed: Option<EventType>,
        lines: &mut AuditBuffer,
    ) {
        let keyspace = batch.parameters.keyspace.or(self.keyspace);
        let mut room = failed.map(|_| FailedRoom::new(lines));
        for (place, statement) in batch.statements.iter().enumerate() {
            if let (Some(event), Some(room)) = (failed, &room)
                && !room.is_left(lines)
            {
                let rest = batch.statements.iter().skip(place).count();
                return self.rest(event, id, rest, lines);
            }
            let prepared;
            let (query, subject): (&str, Option<Arc<Subject>>) = match &statement.statement {
                wire::StatementRef::Query(text) => {
                    let subject = match failed {
                        Some(_) => self.subject_of_failed(text, keyspace),
                        None => self.backend.subject(text, keyspace),
                    };
                    (text, subject)
                }
                wire::StatementRef::Prepared(id) => {
                    let Some((text, subject)) = find(id) else { continue };
                    prepared = text;
                    (&prepared, Some(subject))
                }
            };
            // Of a batch that was run all are statements.
            let Some(event) = failed.or(subject.as_ref().map(|subject| subject.event)) else { continue };
            let shown = match &subject {
                Some(subject) => shown(query, subject),
                None => beginning_without_literals(query),
            };
            let text = match &mut room {
                Some(room) => room.take(shown),
                None => shown,
            };
            let subject = subject.as_deref();
            let of_subject =
                subject.map_or(self.entry(event, &text), |subject| self.of_subject(subject, &text));
            self.audit.write_to(lines, &AuditEntry { event, batch: Some(id), ..of_subject }, None);
        }
    }

    /// The line that stands for the statements of a failed request that get none.
    #[cold]
    fn rest(&self, event: EventType, id: Uuid, count: usize, lines: &mut AuditBuffer) {
        let operation = format!("and {count} more statements");
        let entry = AuditEntry { batch: Some(id), ..self.entry(event, &operation) };
        self.audit.write_to(lines, &entry, None);
    }

    /// A login that succeeded.
    #[cold]
    pub fn logged_in(&self, identity: &Identity, lines: &mut AuditBuffer) {
        let entry = self.entry(EventType::LoginSuccess, "LOGIN SUCCESSFUL");
        let entry = AuditEntry { user: self.user(identity), keyspace: None, ..entry };
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
        self.audit.hand_over_many(lines);
        let asked = self.asked(request, code);
        let Some(Asked { text, statement, parses, has_secrets }) = asked else { return };
        let reason = match request {
            _ if has_secrets && code != ErrorCode::Unauthorized => obscured_message().into(),
            Request::Batch(batch) => self.reason_of_batch(batch, &message.message),
            _ => shown_message(statement_of(request), parses, &message.message),
        };
        let (text, reason) = (cut_failed(text), cut_failed(reason));
        let operation = if reason.trim().is_empty() { text } else { format!("{text}; {reason}").into() };
        let of_prepared = statement
            .as_ref()
            .filter(|_| matches!(request, Request::Execute(_)))
            .map(|(_, subject)| &**subject);
        let keyspace = of_prepared.and_then(|subject| subject.keyspace.as_deref());
        let entry = AuditEntry {
            timestamp_ms: self.audit.now_ms(),
            keyspace: keyspace.or(self.keyspace),
            is_of_session: keyspace.is_none(),
            scope: of_prepared.and_then(|subject| subject.scope.as_deref()),
            ..self.entry(event, &operation)
        };
        self.audit.write_to(lines, &entry, None);
        if let Some((text, subject)) = &statement {
            self.parts((text, subject), Some(event), lines);
        }
        if let Request::Batch(batch) = request {
            let find = |id: &[u8]| {
                let id = StatementId::try_from(id).ok()?;
                let prepared = self.backend.prepared(&id).ok().flatten()?;
                Some((Arc::clone(&prepared.query), prepared.subject.clone()?))
            };
            self.entries((batch, self.audit.batch_id()), &find, Some(event), lines);
        }
    }

    /// The message of an error of a batch, which may quote one of its statements.
    fn reason_of_batch<'m>(&self, batch: &wire::Batch<'_>, message: &'m str) -> Cow<'m, str> {
        let keyspace = batch.parameters.keyspace.or(self.keyspace);
        let unparsed = batch.statements.iter().find_map(|statement| match statement.statement {
            wire::StatementRef::Query(text)
                if text.len() <= FAILED_BYTES_MAX && self.backend.subject(text, keyspace).is_none() =>
            {
                Some(text)
            }
            _ => None,
        });
        shown_message(unparsed.unwrap_or_default(), unparsed.is_none(), message)
    }

    /// The subject of a statement that failed; `None` too for a long one. To parse it again takes memory for which nobody asks, and
    /// clients without rights may send any number of them.
    fn subject_of_failed(&self, text: &str, keyspace: Option<&str>) -> Option<Arc<Subject>> {
        if text.len() > FAILED_BYTES_MAX { None } else { self.backend.subject(text, keyspace) }
    }

    /// What a request that failed has asked for; `None` if it is none for the log.
    fn asked<'r>(&self, request: &Request<'r>, code: ErrorCode) -> Option<Asked<'r>> {
        let plain =
            |text: Cow<'r, str>| Some(Asked { text, statement: None, parses: true, has_secrets: false });
        let is_secret = |subject: &Option<Arc<Subject>>| {
            subject.as_ref().is_some_and(|subject| subject.has_secret_values())
        };
        // What a long one is about is not known. Its error may quote it, unless the server had no room or time for it.
        let is_long = |text: &str| text.len() > FAILED_BYTES_MAX;
        let may_quote = !matches!(
            code,
            ErrorCode::Overloaded | ErrorCode::ReadTimeout | ErrorCode::WriteTimeout | ErrorCode::Server
        );
        match request {
            Request::Query(query) => {
                let keyspace = query.parameters.keyspace.or(self.keyspace);
                let subject = self.subject_of_failed(query.query, keyspace);
                let text = shown_of_failed(query.query, subject.as_deref(), code);
                let parses = subject.is_some() || is_long(query.query);
                let has_secrets = is_secret(&subject) || is_long(query.query) && may_quote;
                let statement = subject.map(|subject| (query.query.into(), subject));
                Some(Asked { text, statement, parses, has_secrets })
            }
            Request::Prepare(prepare) => {
                let keyspace = prepare.keyspace.or(self.keyspace);
                let subject = self.subject_of_failed(prepare.query, keyspace);
                let text = shown_of_failed(prepare.query, subject.as_deref(), code);
                let parses = subject.is_some() || is_long(prepare.query);
                let has_secrets = is_secret(&subject) || is_long(prepare.query) && may_quote;
                Some(Asked { text, statement: None, parses, has_secrets })
            }
            Request::Execute(execute) => {
                let id = StatementId::try_from(execute.id).ok().filter(|_| code != ErrorCode::Unprepared);
                match id.and_then(|id| self.backend.prepared(&id).ok().flatten()) {
                    Some(prepared) => Some(Asked {
                        text: Cow::Owned(match &prepared.subject {
                            Some(subject) => cut_failed(shown(&prepared.query, subject)).into_owned(),
                            None => cut_failed(without_passwords(&prepared.query)).into_owned(),
                        }),
                        has_secrets: is_secret(&prepared.subject),
                        statement: prepared
                            .subject
                            .clone()
                            .map(|subject| (Arc::clone(&prepared.query), subject)),
                        parses: true,
                    }),
                    // Cassandra writes the text of a statement that it does not know as a Java null.
                    None => plain("null".into()),
                }
            }
            Request::Batch(batch) => {
                let count = batch.statements.iter().count();
                let consistency = batch.parameters.consistency;
                let text = format!("BATCH of {count} statements at consistency {consistency}").into();
                let keyspace = batch.parameters.keyspace.or(self.keyspace);
                let has_secrets = batch.statements.iter().any(|statement| match statement.statement {
                    wire::StatementRef::Query(text) if is_long(text) => may_quote,
                    wire::StatementRef::Query(text) => is_secret(&self.backend.subject(text, keyspace)),
                    wire::StatementRef::Prepared(id) => {
                        let id = StatementId::try_from(id).ok();
                        let found = id.and_then(|id| self.backend.prepared(&id).ok().flatten());
                        found.is_some_and(|prepared| is_secret(&prepared.subject))
                    }
                });
                Some(Asked { text, statement: None, parses: true, has_secrets })
            }
            Request::AuthResponse(_) => plain("LOGIN FAILURE".into()),
            Request::Startup(_) | Request::Options | Request::Register(_) => None,
        }
    }
}

/// The bytes that the statements of a failed request may still take in the log.
struct FailedRoom {
    /// How much the thread's buffer had taken in all before them.
    from: u64,
    /// The bytes of their texts, which count even if the log takes none of their lines: to show them is work too.
    texts: usize,
}

impl FailedRoom {
    fn new(lines: &AuditBuffer) -> FailedRoom {
        FailedRoom { from: lines.appended(), texts: 0 }
    }

    fn is_left(&self, lines: &AuditBuffer) -> bool {
        self.texts < FAILED_BYTES_MAX && lines.appended() - self.from < FAILED_BYTES_MAX as u64
    }

    /// The beginning of a statement's text that is written.
    fn take<'t>(&mut self, text: Cow<'t, str>) -> Cow<'t, str> {
        self.texts = self.texts.saturating_add(text.len());
        cut_failed(text)
    }
}

/// The beginning of a text for the line of a request that failed.
fn cut_failed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.len() <= FAILED_BYTES_MAX {
        true => text,
        false => {
            let beginning = text.get(..text.floor_char_boundary(FAILED_BYTES_MAX)).unwrap_or_default();
            Cow::Owned(format!("{beginning} ..."))
        }
    }
}

/// Finds the text and the subject of a prepared statement by its id.
type Find<'f> = dyn Fn(&[u8]) -> Option<(Arc<str>, Arc<Subject>)> + 'f;

/// What a request that failed has asked for.
struct Asked<'r> {
    text: Cow<'r, str>,
    /// The statement, if it is known.
    statement: Option<(Arc<str>, Arc<Subject>)>,
    /// Whether its text is a statement.
    parses: bool,
    /// Whether a message about it may quote a secret.
    has_secrets: bool,
}

fn statement_of<'a>(request: &Request<'a>) -> &'a str {
    match request {
        Request::Query(query) => query.query,
        Request::Prepare(prepare) => prepare.query,
        _ => "",
    }
}

/// The text of a statement without passwords, which only those about roles have, and without values if these may be hashes.
fn shown<'a>(text: &'a str, subject: &Subject) -> Cow<'a, str> {
    match subject.event.category() {
        Category::Dcl => without_passwords(text),
        _ if subject.has_secret_values() => audited(text).into(),
        _ => Cow::Borrowed(text),
    }
}

/// The text of a statement that failed. One that could not be analysed is cut at the first word "password", whatever it is,
/// as in Cassandra. One that does not parse has no literals.
fn shown_of_failed<'a>(text: &'a str, subject: Option<&Subject>, code: ErrorCode) -> Cow<'a, str> {
    match subject {
        Some(subject) if subject.event.category() == Category::Dcl => without_passwords(text),
        Some(subject) if subject.has_secret_values() => audited(text).into(),
        Some(_) if code == ErrorCode::Unauthorized => Cow::Borrowed(text),
        Some(_) => cut_at_password(text),
        None => beginning_without_literals(text),
    }
}

/// The beginning of a text that may be long, without literals.
fn beginning_without_literals(text: &str) -> Cow<'_, str> {
    match text.len() <= FAILED_BYTES_MAX {
        true => without_literals(text),
        false => {
            let beginning = text.get(..text.floor_char_boundary(FAILED_BYTES_MAX)).unwrap_or_default();
            Cow::Owned(format!("{} ...", without_literals(beginning)))
        }
    }
}
