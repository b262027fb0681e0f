//! A connection to one node, which any number of requests share.
//!
//! One task writes: it takes all envelopes that have gathered since its last write. Another reads answers and hands each to its
//! recipient. Both end when the connection fails, or when the last [`Connection`] is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_wire::native::{
    BodyCodec, Compression, Direction, Event, Flags, Header, Opcode, OpenEnvelope, Request, RequestHead,
    Version,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::handshake::Outcome;
use super::in_flight::{Done, NotAccepted, State, WriteEnvelope};
use super::{handshake, stream, tasks};
use crate::options::{ClusterOptions, HostPort};
use crate::{CallError, ConnectError, OwnedAnswer};

/// An event's body, to be decoded by who gets it.
pub(crate) type EventBody = OwnedAnswer;

/// Decodes the event in a body.
pub(crate) fn read_event(body: &EventBody) -> Option<Event<'_>> {
    match body.decode().ok()?.response {
        helenus_wire::native::Response::Event(event) => Some(event),
        _ => None,
    }
}

/// What a request has besides its message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// Whether the node traces it.
    pub tracing: bool,
    /// The payload for the node's query handler; not sent before v4.
    pub custom_payload: &'a [(&'a str, Option<&'a [u8]>)],
}

/// A request that was not accepted, with its recipient.
pub struct Refused {
    /// Why.
    pub error: CallError,
    /// The recipient, which was not called.
    pub done: Done,
}

impl std::fmt::Debug for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

pub(super) struct Shared {
    pub(super) node: SocketAddr,
    pub(super) version: Version,
    pub(super) state: Mutex<State>,
    codec: Option<Mutex<BodyCodec>>,
    /// Wakes the task that writes.
    pub(super) written: Notify,
    /// Wakes who waits for a free stream.
    pub(super) room: Notify,
    /// Wakes the tasks, and who waits for the end.
    pub(super) ended: Notify,
    pub(super) timeout: Duration,
    pub(super) heartbeat: Duration,
}

/// Ends the connection when the last handle is dropped.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close("it is not needed any more");
    }
}

/// A connection; clones share it.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("node", &self.node())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to a node, in the newest version that both sides have, and logs in. `events`: where the node's events go,
    /// once REGISTER has asked for them.
    pub(crate) async fn open(
        to: SocketAddr,
        name: &HostPort,
        options: &ClusterOptions,
        events: Option<mpsc::Sender<EventBody>>,
    ) -> Result<Connection, ConnectError> {
        let after = options.connect_timeout;
        let opened = tokio::time::timeout(after, begin(to, name, options)).await;
        let ready = opened.map_err(|_| ConnectError::Timeout { host: name.to_string(), after })??;
        let compresses = options.compress && ready.version < Version::V5;
        let shared = Arc::new(Shared {
            node: to,
            version: ready.version,
            state: Mutex::new(State::new(options.in_flight_max)),
            codec: compresses.then(|| Mutex::new(BodyCodec::new(Compression::Lz4))),
            written: Notify::new(),
            room: Notify::new(),
            ended: Notify::new(),
            timeout: options.timeout,
            heartbeat: options.heartbeat,
        });
        tasks::start(&shared, ready, events);
        Ok(Connection { handle: Arc::new(Handle(shared)) })
    }

    /// The address of the node.
    pub fn node(&self) -> SocketAddr {
        self.shared().node
    }

    /// The version of the protocol.
    pub fn version(&self) -> Version {
        self.shared().version
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.shared().state.lock().closed.is_some()
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) {
        loop {
            let ended = self.shared().ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.is_closed() {
                return;
            }
            ended.await;
        }
    }

    /// Waits until a request is likely to be accepted. The connection may have ended by then.
    pub async fn room(&self) {
        loop {
            let room = self.shared().room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let has_room = {
                let state = self.shared().state.lock();
                state.closed.is_some() || !state.is_full()
            };
            if has_room {
                return;
            }
            room.await;
        }
    }

    /// Sends a request. `done` is called once: with the answer, or with the reason why there is none.
    ///
    /// # Errors
    /// The connection has ended, has no free stream, or the request cannot be encoded; `done` comes back.
    pub fn submit(&self, request: &Request<'_>, extras: &Extras<'_>, done: Done) -> Result<(), Refused> {
        let version = self.version();
        let Extras { tracing, custom_payload } = *extras;
        let codec = self.shared().codec.as_ref();
        self.push(done, &mut |stream, out| {
            let head = RequestHead { version, stream, tracing, custom_payload };
            match codec {
                Some(codec) => request.encode_compressed(&head, &mut codec.lock(), out),
                None => request.encode(&head, out),
            }
        })
    }

    /// As [`Connection::submit`], with a body that is encoded already.
    ///
    /// # Errors
    /// Those of [`Connection::submit`].
    pub fn submit_raw(&self, opcode: Opcode, flags: Flags, body: &[u8], done: Done) -> Result<(), Refused> {
        let version = self.version();
        let codec = self.shared().codec.as_ref();
        self.push(done, &mut |stream, out| {
            let header = Header { version, flags, stream, opcode, length: 0 };
            let open = OpenEnvelope::open(out, Direction::Request, header);
            out.extend_from_slice(body);
            match codec {
                Some(codec) => open.finish_compressed(out, &mut codec.lock()),
                None => open.finish(out),
            }
        })
    }

    fn push(&self, done: Done, write: WriteEnvelope<'_>) -> Result<(), Refused> {
        let shared = self.shared();
        let deadline = tokio::time::Instant::now() + shared.timeout;
        let mut state = shared.state.lock();
        let was_empty = state.out.is_empty();
        match state.accept(deadline, write) {
            Ok(stream) => {
                state.set_done(stream, done);
                drop(state);
                if was_empty {
                    shared.written.notify_one();
                }
                Ok(())
            }
            Err(refused) => {
                drop(state);
                let node = shared.node;
                let error = match refused {
                    NotAccepted::Full => CallError::Full { node },
                    NotAccepted::Closed(reason) => CallError::NotSent { node, reason },
                    NotAccepted::Wire(error) => CallError::Wire(error),
                };
                Err(Refused { error, done })
            }
        }
    }

    /// Sends a request and waits for its answer, which may be an ERROR. Waits for a free stream first.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call(&self, request: &Request<'_>, extras: &Extras<'_>) -> Result<OwnedAnswer, CallError> {
        self.answer_of(|done| self.submit(request, extras, done)).await
    }

    /// As [`Connection::call`], with a body that is encoded already.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call_raw(
        &self,
        opcode: Opcode,
        flags: Flags,
        body: &[u8],
    ) -> Result<OwnedAnswer, CallError> {
        self.answer_of(|done| self.submit_raw(opcode, flags, body, done)).await
    }

    async fn answer_of(
        &self,
        submit: impl Fn(Done) -> Result<(), Refused>,
    ) -> Result<OwnedAnswer, CallError> {
        loop {
            let (sender, receiver) = oneshot::channel();
            let done: Done = Box::new(move |answer| {
                // The caller may have gone.
                let _ = sender.send(answer.map(|answer| answer.to_owned()));
            });
            match submit(done) {
                Ok(()) => {
                    let lost = || CallError::Lost { node: self.node(), reason: "it was closed".to_owned() };
                    return receiver.await.unwrap_or_else(|_| Err(lost()));
                }
                Err(Refused { error: CallError::Full { .. }, .. }) => self.room().await,
                Err(refused) => return Err(refused.error),
            }
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }
}

impl Shared {
    /// Ends the connection: each request in flight fails with the reason.
    pub(super) fn close(&self, reason: &str) {
        let (pending, taken) = {
            let mut state = self.state.lock();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(reason.to_owned());
            (std::mem::take(&mut state.slots), state.taken)
        };
        for pending in pending.into_iter().flatten() {
            let Some(done) = pending.done else { continue };
            let (node, reason) = (self.node, reason.to_owned());
            done(Err(match pending.number < taken {
                true => CallError::Lost { node, reason },
                false => CallError::NotSent { node, reason },
            }));
        }
        self.written.notify_one();
        self.room.notify_waiters();
        self.ended.notify_waiters();
    }
}

/// Tries versions, newest first. A node may close the connection after it has refused one.
async fn begin(
    to: SocketAddr,
    name: &HostPort,
    options: &ClusterOptions,
) -> Result<handshake::Ready, ConnectError> {
    let mut versions = Version::ALL.into_iter().rev().filter(|version| *version <= options.newest).peekable();
    loop {
        let Some(version) = versions.next() else {
            let reason = "no version of the protocol is known to both sides".to_owned();
            return Err(ConnectError::Protocol { host: name.to_string(), reason });
        };
        let stream = stream::connect(to, name, options).await?;
        match handshake::start(stream, version, name.to_string(), options).await? {
            Outcome::Ready(ready) => return Ok(*ready),
            Outcome::OlderVersion(error) if versions.peek().is_none() => return Err(error),
            Outcome::OlderVersion(_) => {}
        }
    }
}
