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
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::expected::{Asks, Expected, opcode_of};
use super::handshake::Outcome;
use super::in_flight::{Done, NotAccepted, State, WriteEnvelope};
use super::node_events::{EventBody, EventSender};
use super::turns::{Turn, Turns};
use super::{handshake, stream, tasks};
use crate::options::{ClusterOptions, HostPort};
use crate::{Answer, CallError, ConnectError, OwnedAnswer};

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
    /// The results that it may have. A node that answers with another loses the connection.
    pub asks: Asks,
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
    /// Wakes who is the first to wait for room.
    pub(super) room: Notify,
    turns: Turns,
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
        events: Option<EventSender>,
    ) -> Result<Connection, ConnectError> {
        let after = options.connect_timeout;
        let opened = tokio::time::timeout(after, begin(to, name, options)).await;
        let ready = opened.map_err(|_| ConnectError::Timeout { host: name.to_string(), after })??;
        Ok(Connection::start((to, ready), options, events))
    }

    /// A connection to the node at this address, after its handshake.
    pub(super) fn start(
        (to, ready): (SocketAddr, handshake::Ready),
        options: &ClusterOptions,
        events: Option<EventSender>,
    ) -> Connection {
        let compresses = options.compress && ready.version < Version::V5;
        let shared = Arc::new(Shared {
            node: to,
            version: ready.version,
            state: Mutex::new(State::new(options.in_flight_max)),
            codec: compresses.then(|| Mutex::new(BodyCodec::new(Compression::Lz4))),
            written: Notify::new(),
            room: Notify::new(),
            turns: Turns::default(),
            ended: Notify::new(),
            timeout: options.timeout,
            heartbeat: options.heartbeat,
        });
        tasks::start(&shared, ready, events);
        Connection { handle: Arc::new(Handle(shared)) }
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

    /// Why the connection has ended, if it has.
    pub(crate) fn end(&self) -> Option<String> {
        self.shared().state.lock().closed.clone()
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

    /// Whether no request is accepted now: as many are in flight as may be, or others wait to send one.
    pub fn is_full(&self) -> bool {
        self.shared().turns.are_some() || self.shared().state.lock().is_full()
    }

    /// Waits for room for one request, behind those who have come before, up to this time. The turn is dropped once the request is
    /// sent, and before anything else is asked on this connection. The connection may have ended by then.
    ///
    /// # Errors
    /// There is no room in time.
    pub async fn turn(&self, until: Instant) -> Result<Turn<'_>, CallError> {
        let waits = async {
            let turn = self.shared().turns.wait().await;
            loop {
                let room = self.shared().room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                let has_room = {
                    let state = self.shared().state.lock();
                    state.closed.is_some() || !state.is_full()
                };
                if has_room {
                    return turn;
                }
                room.await;
            }
        };
        tokio::time::timeout_at(until, waits).await.map_err(|_| CallError::Full { node: self.node() })
    }

    /// Sends a request. `done` is called once: with the answer, or with the reason why there is none.
    ///
    /// # Errors
    /// The connection has ended, has no free stream, or the request cannot be encoded; `done` comes back.
    pub fn submit(&self, request: &Request<'_>, extras: &Extras<'_>, done: Done) -> Result<(), Refused> {
        self.submit_in(None, request, extras, done)
    }

    /// As [`Connection::submit`], for one who has waited for room on this connection.
    ///
    /// # Errors
    /// Those of [`Connection::submit`].
    pub fn submit_in(
        &self,
        turn: Option<&Turn<'_>>,
        request: &Request<'_>,
        extras: &Extras<'_>,
        done: Done,
    ) -> Result<(), Refused> {
        let version = self.version();
        let Extras { tracing, custom_payload, asks } = *extras;
        let codec = self.shared().codec.as_ref();
        self.push((done, turn), Expected::of(opcode_of(request), asks), &mut |stream, out| {
            let head = RequestHead { version, stream, tracing, custom_payload };
            match codec {
                Some(codec) => {
                    let mut codec = codec.lock();
                    let encoded = request.encode_compressed(&head, &mut codec, out);
                    codec.trim();
                    encoded
                }
                None => request.encode(&head, out),
            }
        })
    }

    fn submit_raw(
        &self,
        (opcode, flags, body): (Opcode, Flags, &[u8]),
        (done, turn): (Done, Option<&Turn<'_>>),
    ) -> Result<(), Refused> {
        let version = self.version();
        let codec = self.shared().codec.as_ref();
        self.push((done, turn), Expected::of(opcode, Asks::Statement), &mut |stream, out| {
            let header = Header { version, flags, stream, opcode, length: 0 };
            let open = OpenEnvelope::open(out, Direction::Request, header);
            out.extend_from_slice(body);
            match codec {
                Some(codec) => {
                    let mut codec = codec.lock();
                    let finished = open.finish_compressed(out, &mut codec);
                    codec.trim();
                    finished
                }
                None => open.finish(out),
            }
        })
    }

    fn push(
        &self,
        (done, turn): (Done, Option<&Turn<'_>>),
        expected: Expected,
        write: WriteEnvelope<'_>,
    ) -> Result<(), Refused> {
        let shared = self.shared();
        if turn.is_none() && shared.turns.are_some() {
            return Err(Refused { error: CallError::Full { node: shared.node }, done });
        }
        let deadline = tokio::time::Instant::now() + shared.timeout;
        let mut state = shared.state.lock();
        let was_empty = state.out.is_empty();
        match state.accept((deadline, expected), write) {
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

    /// Sends a request and waits for its answer, which may be an ERROR. Waits for room first, as long as for the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call(&self, request: &Request<'_>, extras: &Extras<'_>) -> Result<OwnedAnswer, CallError> {
        self.call_until(request, extras, self.until()).await
    }

    /// As [`Connection::call`], but waits for room until this time: who asks several nodes waits at all of them together no longer.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call_until(
        &self,
        request: &Request<'_>,
        extras: &Extras<'_>,
        until: Instant,
    ) -> Result<OwnedAnswer, CallError> {
        self.answer_of(until, |done, turn| self.submit_in(turn, request, extras, done)).await
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
        self.answer_of(self.until(), |done, turn| self.submit_raw((opcode, flags, body), (done, turn))).await
    }

    /// Until when a request that begins now waits for room.
    fn until(&self) -> Instant {
        tokio::time::Instant::now() + self.shared().timeout
    }

    async fn answer_of(
        &self,
        until: Instant,
        submit: impl Fn(Done, Option<&Turn<'_>>) -> Result<(), Refused>,
    ) -> Result<OwnedAnswer, CallError> {
        let mut turn = None;
        loop {
            let (sender, receiver) = oneshot::channel();
            let done: Done = Box::new(move |answer| {
                // The caller may have gone.
                let _ = sender.send(answer.map(|answer| answer.to_owned()));
            });
            match submit(done, turn.as_ref()) {
                Ok(()) => {
                    drop(turn);
                    let lost = || CallError::Lost { node: self.node(), reason: "it was closed".to_owned() };
                    return receiver.await.unwrap_or_else(|_| Err(lost()));
                }
                Err(Refused { error: CallError::Full { .. }, .. }) => {
                    drop(turn.take());
                    turn = Some(self.turn(until).await?);
                }
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
            state.out = Vec::new();
            (std::mem::take(&mut state.slots), state.taken)
        };
        // Before the recipients are told, which is work of others.
        self.written.notify_one();
        self.room.notify_waiters();
        self.ended.notify_waiters();
        for pending in pending.into_iter().flatten() {
            let Some(done) = pending.done else { continue };
            let (node, reason) = (self.node, reason.to_owned());
            let error = match pending.number < taken {
                true => CallError::Lost { node, reason },
                false => CallError::NotSent { node, reason },
            };
            tell(done, Err(error));
        }
    }
}

/// Tells a recipient how its request has ended. A panic costs that request alone; the panic hook has logged it.
pub(super) fn tell(done: Done, ended: Result<Answer<'_>, CallError>) {
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| done(ended)));
    drop(told);
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
