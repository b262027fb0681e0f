//! `/changes/KEYSPACE/TABLE`: the changes of a table as server-sent events, for as long as the client stays.
//!
//! `?from=` takes `now` (the default), `beginning`, `oldest` or a position, `Last-Event-ID` the position of the last event,
//! as browsers send it when they connect again. An event has the position as its id, the operation as its name, and the JSON
//! of `helenus changes --json` as its data. A reader is as fast as its client: events are read from the log when the client
//! has taken those before.
//!
//! Where clients have to log in, this port asks for a role that may SELECT the table, whatever its address. The permission is
//! checked before each read, so a revoked one ends the stream. The audit log has the beginning of a stream as a SELECT.
//! Source: the chapter "Server-sent events" of the HTML standard.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use helenus_cql::audit::EventType;
use helenus_cql::backend::{Backend, Identity};
use helenus_cql::changes::{Cursor, PageLimits, Start, read_page, start};
use helenus_cql::syntax::ast::Permission;
use helenus_cql::{CqlError, LocalBackend};
use helenus_engine::Database;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::{Request, StatusCode};
use tokio::sync::mpsc;

use super::connections::{Progress, StreamPlace, Streams};
use super::logins::check_login;
use super::state::{HttpState, Stage, Watched};
use crate::audit::AuditEntry;

/// The beginning of the path.
pub(super) const CHANGES: &str = "/changes/";
/// The type of the stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Pieces of a stream that wait for the client.
const PIECES: usize = 2;
/// Events that are read at a time.
const LIMITS: PageLimits = PageLimits { events: 500, bytes: 256 << 10 };
/// The pause when there are no events, and the number of pauses after which a comment shows that the connection lives.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSES: u32 = 100;

/// The body of the answer, and its place among the streams. Its end ends the reading.
pub(super) struct EventStream {
    pieces: mpsc::Receiver<Bytes>,
    _place: StreamPlace,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Begins a stream.
///
/// # Errors
/// Status and text for the client: a wrong path or position, no login, no permission, a table that is not watched.
pub(super) async fn changes(
    request: &Request<Incoming>,
    client: SocketAddr,
    (state, streams): (&HttpState, &Streams),
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
        Some(_) => {
            let identity = check_login(request, client, state).await;
            Some(identity.map_err(|text| (StatusCode::UNAUTHORIZED, text))?)
        }
        None => None,
    };
    if identity.is_some() {
        progress.has_logged_in();
    }
    let of = Arc::clone(&watched);
    let reader = identity.clone();
    let begun = tokio::task::spawn_blocking(move || -> Result<Place, (StatusCode, String)> {
        let allowed = may_read(&of.backend, reader.as_ref(), &table);
        write_entry(&of, (reader.as_ref(), client), &table, allowed.as_ref().err());
        allowed.map_err(|error| (StatusCode::FORBIDDEN, format!("{error}\n")))?;
        let bad = |error: helenus_engine::Error| (StatusCode::BAD_REQUEST, format!("{error}\n"));
        let from = Start::parse(&from, of.database.host_id()).map_err(|error| bad(error.into()))?;
        let cursor = start(&of.database, (&table.0, &table.1), from).map_err(bad)?;
        // An answer in place of a stream for a position that is not kept any more.
        let first = PageLimits { events: 1, ..LIMITS };
        read_page(&of.database, (&table.0, &table.1), cursor.clone(), first).map_err(bad)?;
        Ok((table, cursor))
    });
    let begun = begun.await.map_err(|_panicked| bad("the changes could not be read"))?;
    let (table, cursor) = begun?;
    let role = identity.as_ref().and_then(|identity| identity.role.as_deref());
    let place = streams.take(progress, role).map_err(|text| (StatusCode::SERVICE_UNAVAILABLE, text))?;
    let (pieces, stream) = mpsc::channel(PIECES);
    tokio::spawn(send(watched, identity, (table, cursor), pieces));
    Ok(EventStream { pieces: stream, _place: place })
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

/// Writes the beginning of a stream, or its refusal, to the audit log.
fn write_entry(
    watched: &Watched,
    (identity, client): (Option<&Identity>, SocketAddr),
    (keyspace, table): &(String, String),
    refusal: Option<&CqlError>,
) {
    if !watched.audit.is_on() {
        return;
    }
    let (event, end) = match refusal {
        None => (EventType::Select, String::new()),
        Some(error) => (EventType::UnauthorizedAttempt, format!("; {error}")),
    };
    watched.audit.write(&AuditEntry {
        event,
        user: identity.map_or(Some("anonymous"), |identity| identity.role.as_deref()),
        source: Some(client),
        timestamp_ms: watched.audit.now_ms(),
        batch: None,
        keyspace: Some(keyspace),
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

/// Reads events and gives them to the client, until it is gone or the server stops.
async fn send(
    watched: Arc<Watched>,
    identity: Option<Identity>,
    (table, mut cursor): Place,
    pieces: mpsc::Sender<Bytes>,
) {
    // Only a weak reference between two reads: an open stream does not keep the database from closing.
    let backend = Arc::downgrade(&watched.backend);
    drop(watched);
    let mut pauses = 0;
    while !pieces.is_closed() {
        let Some(backend) = backend.upgrade() else { return };
        let (names, from, identity) = (table.clone(), cursor.clone(), identity.clone());
        let read = tokio::task::spawn_blocking(move || {
            may_read(&backend, identity.as_ref(), &names).map_err(|error| error.to_string())?;
            page(backend.database(), &names, from).map_err(|error| error.to_string())
        });
        let (text, next) = match read.await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                // The client learns why, and when it connects again, gets the error as the answer.
                let text = serde_json::json!({ "error": error });
                let _gone = pieces.send(Bytes::from(format!("event: error\ndata: {text}\n\n"))).await;
                return;
            }
            Err(_panicked) => return,
        };
        cursor = next;
        let piece = match text.is_empty() {
            false => text,
            true if pauses >= PAUSES => ": alive\n\n".to_owned(),
            true => {
                pauses += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        pauses = 0;
        if pieces.send(Bytes::from(piece)).await.is_err() {
            return;
        }
    }
}

/// The next events as text, and where to go on.
fn page(
    database: &Database,
    table: &(String, String),
    from: Cursor,
) -> helenus_engine::Result<(String, Cursor)> {
    let page = read_page(database, (&table.0, &table.1), from, LIMITS)?;
    let mut text = String::new();
    for event in page.events {
        // JSON has no line ends of its own.
        for part in ["id: ", &event.cursor, "\nevent: ", event.operation, "\ndata: ", &event.json, "\n\n"] {
            text.push_str(part);
        }
    }
    Ok((text, page.next))
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
