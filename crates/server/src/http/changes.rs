//! `/changes/KEYSPACE/TABLE`: the changes of a table as server-sent events, for as long as the client stays.
//!
//! `?from=` takes `now` (the default), `beginning`, `oldest` or a position, `Last-Event-ID` the position of the last event,
//! as browsers send it when they connect again. An event has the position as its id, the operation as its name, and the JSON
//! of `helenus changes --json` as its data. A reader is as fast as its client: events are read from the log when the client
//! has taken all of those before. So a stream holds one piece, which is on the memory account: of 256 KiB, or of one event.
//!
//! Where clients have to log in, this port asks for a role that may SELECT the table, whatever its address. The permission is
//! checked before each read, so a revoked one ends the stream, and again for the table of each change, which may be another of
//! the same name (`LocalBackend::check_changes`). The audit log has the beginning of a stream as a SELECT once its first event may be read, and
//! what is refused, at the beginning or later, as an attempt without permission.
//! Source: the chapter "Server-sent events" of the HTML standard.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use helenus_cql::audit::EventType;
use helenus_cql::backend::{Backend, Identity, InFlight};
use helenus_cql::changes::{ChangeEvent, Cursor, MayRead, PageLimits, Start, read_page_for, start};
use helenus_cql::syntax::ast::Permission;
use helenus_cql::{CqlError, LocalBackend};
use helenus_engine::{ChangesError, Database};
use helenus_host::account::{self, Charge, Scope, Share, Waits};
use helenus_model::schema::Table;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::{Request, StatusCode};
use tokio::sync::{Semaphore, mpsc};

use super::body::{bytes_with, next_slice};
use super::connections::{Progress, StreamPlace, Streams};
use super::logins::check_login;
use super::state::{HttpState, Stage, Watched};
use crate::audit::{Audit, AuditEntry, AuditUser};
use crate::thread_pool::{NO_THREAD, ThreadPool, Turn};

/// The beginning of the path.
pub(super) const CHANGES: &str = "/changes/";
/// The type of the stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Events that are read at a time.
const LIMITS: PageLimits =
    PageLimits { events: 500, events_min: 1, bytes: 256 << 10, number_work_us: PageLimits::NUMBER_WORK_US };
/// The pause when there are no events, and the number of pauses after which a comment shows that the connection lives.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSES: u32 = 100;
/// An event of at least this length is not copied.
const LONG_BYTES: usize = 64 << 10;
/// How long a stream waits for memory or a thread for its next piece.
const ROOM_PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of some events, one after the other.
type Piece = VecDeque<Bytes>;

/// The body of the answer, and its place among the streams. Its end ends the reading.
pub(super) struct EventStream {
    pieces: mpsc::Receiver<Piece>,
    /// The rest of the piece that the client takes.
    piece: Piece,
    _place: StreamPlace,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(part) = self.piece.front_mut() {
                match next_slice(part) {
                    Some(slice) => return Poll::Ready(Some(Ok(Frame::data(slice)))),
                    None => self.piece.pop_front(),
                };
                continue;
            }
            match ready!(self.pieces.poll_recv(cx)) {
                Some(piece) => self.piece = piece,
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Begins a stream.
///
/// # Errors
/// Status and text for the client: a wrong path or position, no login, no permission, a table that is not watched.
pub(super) async fn changes(
    request: &Request<Incoming>,
    client: SocketAddr,
    (state, streams, readers): (&HttpState, &Streams, &Arc<ThreadPool>),
    progress: &Arc<Progress>,
) -> Result<EventStream, (StatusCode, String)> {
    let Stage::Open(watched) = state.stage() else {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "the database is not open\n".to_owned()));
    };
    let bad = |text: &str| (StatusCode::BAD_REQUEST, format!("{text}\n"));
    let path = request.uri().path().strip_prefix(CHANGES).unwrap_or_default();
    let names: Option<Vec<String>> = path.split('/').map(decoded).collect();
    let Some([keyspace, table]) = names.as_deref() else {
        return Err(bad("name a table: /changes/KEYSPACE/TABLE"));
    };
    let table = (keyspace.clone(), table.clone());
    let from = wanted(request).map_err(|text| bad(&text))?;
    let identity = match watched.backend.authenticator() {
        Some(_) => Some(check_login(request, client, state).await?),
        None => None,
    };
    if identity.is_some() {
        progress.has_logged_in();
    }
    // The stream is a request in flight of its role until it ends.
    let begun = identity.as_ref().map_or(Ok(None), |identity| identity.begin(0));
    let of_role = begun.map_err(|refusal| (StatusCode::TOO_MANY_REQUESTS, format!("{refusal}\n")))?;
    let of = Arc::clone(&watched);
    let reader = identity.clone();
    if let Some(refusal) = watched.audit.refusal() {
        return Err((StatusCode::SERVICE_UNAVAILABLE, format!("{refusal}\n")));
    }
    let begin = move |turn: Turn| -> Result<Place, (StatusCode, String)> {
        if turn == Turn::Refuse {
            return Err((StatusCode::SERVICE_UNAVAILABLE, format!("{NO_THREAD}\n")));
        }
        let opened = first_place(&of, reader.as_ref(), &table, &from);
        write_entry(&of.audit, (reader.as_ref(), client), &table, opened.as_ref().err());
        match opened {
            Ok(cursor) => Ok((table, cursor)),
            Err((status, text)) => Err((status, format!("{text}\n"))),
        }
    };
    let begun = readers.run(begin).await.ok_or_else(|| bad("the changes could not be read"))?;
    let (table, cursor) = begun?;
    let role = identity.as_ref().and_then(|identity| identity.role.as_deref());
    let place = streams
        .take(progress, (client.ip(), role))
        .map_err(|text| (StatusCode::SERVICE_UNAVAILABLE, text))?;
    let (pieces, stream) = mpsc::channel(1);
    let reader = Reader { identity, client, _of_role: of_role };
    tokio::spawn(send((watched, Arc::clone(readers)), reader, (table, cursor), pieces));
    Ok(EventStream { pieces: stream, piece: Piece::new(), _place: place })
}

/// Where a stream begins. Its first event has been read, for an answer in place of a stream if the position is not kept any more or the
/// event may not be read.
///
/// # Errors
/// Status and text of the answer; `FORBIDDEN` for a missing permission.
fn first_place(
    of: &Watched,
    reader: Option<&Identity>,
    table: &(String, String),
    from: &str,
) -> Result<Cursor, (StatusCode, String)> {
    let refused = |error: &dyn std::fmt::Display| (StatusCode::FORBIDDEN, error.to_string());
    let bad = |error: helenus_engine::Error| (StatusCode::BAD_REQUEST, error.to_string());
    may_read(&of.backend, reader, table).map_err(|error| refused(&error))?;
    let from = Start::parse(from, of.database.host_id()).map_err(|error| bad(error.into()))?;
    let cursor = start(&of.database, (&table.0, &table.1), from).map_err(bad)?;
    let first = PageLimits { events: 1, ..LIMITS };
    let may_read = |of_change: &Table| may_read_changes(&of.backend, reader, of_change);
    match page(&may_read, &of.database, table, (cursor.clone(), first)) {
        // The stream waits for memory by itself.
        Ok(_) | Err(helenus_engine::Error::NoMemory(_)) => Ok(cursor),
        Err(error) if is_refusal(&error) => Err(refused(&error)),
        Err(error) => Err(bad(error)),
    }
}

/// Whether an error says that a change may not be read.
fn is_refusal(error: &helenus_engine::Error) -> bool {
    matches!(error, helenus_engine::Error::Changes(ChangesError::Refused { .. }))
}

/// Whether an identity may read a table; `None`: nobody logs in.
fn may_read(
    backend: &LocalBackend,
    identity: Option<&Identity>,
    (keyspace, table): &(String, String),
) -> Result<(), CqlError> {
    match identity {
        Some(identity) => backend.check_permissions(identity, &[Permission::Select], (keyspace, table), true),
        None => Ok(()),
    }
}

/// Whether an identity may read changes of a table, which is as it was when they were made.
fn may_read_changes(
    backend: &LocalBackend,
    identity: Option<&Identity>,
    table: &Table,
) -> Result<(), String> {
    let checked = identity.map_or(Ok(()), |identity| backend.check_changes(identity, table));
    checked.map_err(|error| error.to_string())
}

/// Writes the beginning of a stream, or why there is none, to the audit log.
fn write_entry(
    audit: &Audit,
    (identity, client): (Option<&Identity>, SocketAddr),
    (keyspace, table): &(String, String),
    refusal: Option<&(StatusCode, String)>,
) {
    if !audit.is_on() {
        return;
    }
    let (event, end) = match refusal {
        None => (EventType::Select, String::new()),
        Some((StatusCode::FORBIDDEN, text)) => (EventType::UnauthorizedAttempt, format!("; {text}")),
        Some((_, text)) => (EventType::RequestFailure, format!("; {text}")),
    };
    audit.write(&AuditEntry {
        event,
        user: match identity {
            Some(identity) => AuditUser::of(identity.role.as_deref(), AuditUser::Nobody),
            None => AuditUser::Anonymous,
        },
        source: Some(client),
        timestamp_ms: audit.now_ms(),
        batch: None,
        keyspace: Some(keyspace),
        is_of_session: false,
        scope: Some(table),
        operation: &format!("GET {CHANGES}{keyspace}/{table}{end}"),
    });
}

/// The place from which the client wants events.
fn wanted(request: &Request<Incoming>) -> Result<String, String> {
    if let Some(last) = request.headers().get("last-event-id") {
        return last.to_str().map(str::to_owned).map_err(|_| "Last-Event-ID is no position".to_owned());
    }
    let mut from = "now".to_owned();
    for part in request.uri().query().unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=').map(|(name, value)| (name, decoded(value))) {
            Some(("from", Some(value))) => from = value,
            _ => return Err(format!("'{part}' is not known here: from=POSITION is")),
        }
    }
    Ok(from)
}

/// A part of a path or query without its percent signs.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// A table's names, and where to go on.
type Place = ((String, String), Cursor);

/// Who reads a stream.
struct Reader {
    /// `None`: nobody logs in.
    identity: Option<Identity>,
    client: SocketAddr,
    /// The stream is a request in flight of its role.
    _of_role: Option<InFlight>,
}

/// Reads events and gives them to the client, until it is gone or the server stops.
async fn send(
    (watched, readers): (Arc<Watched>, Arc<ThreadPool>),
    reader: Reader,
    (table, mut cursor): Place,
    pieces: mpsc::Sender<Piece>,
) {
    // Only a weak reference between two reads: an open stream does not keep the database from closing.
    let (backend, audit) = (Arc::downgrade(&watched.backend), Arc::downgrade(&watched.audit));
    drop(watched);
    let refused = |text: &str| {
        if let Some(audit) = audit.upgrade() {
            let refusal = (StatusCode::FORBIDDEN, text.to_owned());
            write_entry(&audit, (reader.identity.as_ref(), reader.client), &table, Some(&refusal));
        }
    };
    // A piece has the permit until the client has taken it.
    let turn = Arc::new(Semaphore::new(1));
    let mut pauses = 0;
    let mut without_room_since = None;
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&turn).acquire_owned() => permit,
            () = pieces.closed() => return,
        };
        let (Ok(permit), Some(backend)) = (permit, backend.upgrade()) else { return };
        let (names, from, identity) = (table.clone(), cursor.clone(), reader.identity.clone());
        let read = move |turn: Turn| {
            if turn == Turn::Refuse {
                return Err(Unread::NoRoom(NO_THREAD.to_owned()));
            }
            may_read(&backend, identity.as_ref(), &names)
                .map_err(|error| Unread::NotAllowed(error.to_string()))?;
            let may_read = |table: &Table| may_read_changes(&backend, identity.as_ref(), table);
            page(&may_read, backend.database(), &names, (from, LIMITS)).map_err(Unread::of)
        };
        let Some(read) = readers.run(read).await else { return };
        let (parts, charge) = match read {
            Ok(page) => {
                without_room_since = None;
                cursor = page.next;
                (page.parts, page.charge)
            }
            Err(Unread::NoRoom(text)) => {
                let since = *without_room_since.get_or_insert_with(tokio::time::Instant::now);
                if since.elapsed() > ROOM_PATIENCE {
                    return end_with(&text, &pieces).await;
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(Unread::NotAllowed(text)) => {
                refused(&text);
                return end_with(&text, &pieces).await;
            }
            Err(Unread::Failed(error)) => return end_with(&error.to_string(), &pieces).await,
        };
        let piece = match parts.is_empty() {
            false => {
                let held = Arc::new((charge, permit));
                parts.into_iter().map(|part| bytes_with(part, Arc::clone(&held))).collect()
            }
            true if pauses >= PAUSES => VecDeque::from([Bytes::from_static(b": alive\n\n")]),
            true => {
                pauses += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        pauses = 0;
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// Tells the client why the stream ends. When it connects again, it gets the error as the answer.
async fn end_with(error: &str, pieces: &mpsc::Sender<Piece>) {
    let text = serde_json::json!({ "error": error });
    let _gone = pieces.send(Piece::from([Bytes::from(format!("event: error\ndata: {text}\n\n"))])).await;
}

/// Why there is no next piece.
enum Unread {
    NotAllowed(String),
    /// There is no memory or no thread for it now.
    NoRoom(String),
    Failed(helenus_engine::Error),
}

impl Unread {
    fn of(error: helenus_engine::Error) -> Unread {
        match error {
            helenus_engine::Error::NoMemory(refusal) => Unread::NoRoom(refusal.to_string()),
            error if is_refusal(&error) => Unread::NotAllowed(error.to_string()),
            other => Unread::Failed(other),
        }
    }
}

/// Events as text, with their charge on the memory account, and where to go on.
struct Page {
    /// One after the other; none if there are no events.
    parts: Vec<String>,
    charge: Charge,
    next: Cursor,
}

/// Reads the next events. Waits for the memory that they need.
fn page(
    may_read: &MayRead<'_>,
    database: &Database,
    table: &(String, String),
    (from, limits): (Cursor, PageLimits),
) -> helenus_engine::Result<Page> {
    let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
    let (parts, next) = loop {
        let read = text(may_read, database, table, (from.clone(), limits));
        if !scope.should_retry() {
            break read?;
        }
    };
    let bytes: usize = parts.iter().map(String::capacity).sum();
    let charge = scope.hand_over(Share::Answers, bytes as u64);
    Ok(Page { parts, charge, next })
}

fn text(
    may_read: &MayRead<'_>,
    database: &Database,
    table: &(String, String),
    (from, limits): (Cursor, PageLimits),
) -> helenus_engine::Result<(Vec<String>, Cursor)> {
    let page = read_page_for(may_read, database, (&table.0, &table.1), (from, limits))?;
    let is_long = |event: &ChangeEvent| event.json.len() >= LONG_BYTES;
    let length = |event: &ChangeEvent| {
        let json = if is_long(event) { 0 } else { event.json.len() };
        event.cursor.len() + event.operation.len() + json + 32
    };
    let bytes = page.events.iter().map(length).sum();
    account::grow(bytes)?;
    let (mut parts, mut text) = (Vec::new(), String::with_capacity(bytes));
    for event in page.events {
        // JSON has no line ends of its own.
        for part in ["id: ", &event.cursor, "\nevent: ", event.operation, "\ndata: "] {
            text.push_str(part);
        }
        match is_long(&event) {
            true => parts.extend([std::mem::take(&mut text), event.json]),
            false => text.push_str(&event.json),
        }
        text.push_str("\n\n");
    }
    if !text.is_empty() {
        parts.push(text);
    }
    Ok((parts, page.next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded_and_nonsense_is_refused() {
        assert_eq!(decoded("a%2Fb%C3%A9"), Some("a/bé".to_owned()));
        for bad in ["", "%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
