//! A client's side that answers and events reach: its version, and the bytes that are to be sent to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helenus_wire::native::{
    Agreed, BodyCodec, Compression, Direction, ErrorMessage, EventType, EventTypes, Flags, Header, Opcode,
    OpenEnvelope, Outgoing, Refusal, ResponseHead, SegmentFormat, SegmentWriter, Version,
};
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::budget::Budget;

/// The most requests of a client without an answer, and the most bytes of answers that it has not taken; then nothing more of it is
/// read.
const IN_FLIGHT_MAX: usize = 2048;
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Buffers are kept up to this size.
const KEPT_BYTES: usize = 256 << 10;

struct Output {
    /// Envelopes from before the version was agreed.
    bare: Vec<u8>,
    /// Envelopes that go into segments, if the version has them.
    envelopes: Vec<u8>,
    version: Option<Version>,
    segments: Option<SegmentFormat>,
    codec: Option<BodyCodec>,
    events: EventTypes,
    /// No further request is read; the connection closes once all are answered and the answers are sent.
    closing: bool,
}

/// A client.
pub(crate) struct Client {
    /// The address by which it has reached the gateway.
    pub local: SocketAddr,
    /// Its own address.
    pub remote: SocketAddr,
    output: Mutex<Output>,
    wake: Notify,
    ended: AtomicBool,
    in_flight: AtomicUsize,
    room: Notify,
    over: Notify,
    budget: Arc<Budget>,
}

impl Client {
    /// `local`, `remote`: the address by which it has come, and its own.
    pub fn new((local, remote): (SocketAddr, SocketAddr), budget: &Arc<Budget>) -> Client {
        let output = Output {
            bare: Vec::new(),
            envelopes: Vec::new(),
            version: None,
            segments: None,
            codec: None,
            events: EventTypes::default(),
            closing: false,
        };
        Client {
            local,
            remote,
            output: Mutex::new(output),
            wake: Notify::new(),
            ended: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            room: Notify::new(),
            over: Notify::new(),
            budget: Arc::clone(budget),
        }
    }

    /// Answers STARTUP with READY or AUTHENTICATE: what follows has this version and compression.
    pub fn start(
        &self,
        version: Version,
        compression: Option<Compression>,
        (stream, answer): (i16, &Outgoing<'_>),
    ) {
        let mut output = self.output.lock();
        output.version = Some(version);
        if version < Version::V5 {
            output.codec = compression.map(BodyCodec::new);
        }
        let Output { bare, codec, .. } = &mut *output;
        let before = bare.len();
        // A short message always has room.
        let _ = answer.encode(&ResponseHead::new(version, stream), codec.as_mut(), bare);
        if version >= Version::V5 {
            output.segments = Some(match compression {
                Some(_) => SegmentFormat::Lz4,
                None => SegmentFormat::Plain,
            });
        }
        self.budget.take((output.bare.len() - before) as u64);
        drop(output);
        self.wake.notify_one();
    }

    /// Goes on where another server of this process has stopped; `unsent` is what the client has still to get from that.
    pub fn resume(&self, agreed: &Agreed, unsent: &[u8]) {
        let mut output = self.output.lock();
        output.version = Some(agreed.version);
        output.events = agreed.events;
        if agreed.version < Version::V5 {
            output.codec = agreed.compression.map(BodyCodec::new);
        } else {
            output.segments = Some(match agreed.compression {
                Some(_) => SegmentFormat::Lz4,
                None => SegmentFormat::Plain,
            });
        }
        output.bare.extend_from_slice(unsent);
        self.budget.take(unsent.len() as u64);
        drop(output);
        self.wake.notify_one();
    }

    /// Sends a message that is made here. `version`: that of the request.
    pub fn answer(&self, version: Version, stream: i16, message: &Outgoing<'_>) {
        self.append(|out, codec| {
            // On an error nothing is appended: only a body over 2 GiB fails, and none of these is.
            let _ = message.encode(&ResponseHead::new(version, stream), codec, out);
        });
    }

    /// Sends an error.
    pub fn error(&self, version: Version, stream: i16, error: &ErrorMessage) {
        self.answer(version, stream, &Outgoing::Error(error));
    }

    /// Refuses bytes that are no request.
    pub fn refuse(&self, refusal: &Refusal) {
        let version = self.output.lock().version;
        self.append(|out, _| refusal.encode(version, out));
    }

    /// Sends a body of several parts under this header, whose length is not read.
    pub fn send(&self, version: Version, flags: Flags, stream: i16, (opcode, parts): (Opcode, &[&[u8]])) {
        self.append(|out, codec| {
            let header = Header { version, flags, stream, opcode, length: 0 };
            let open = OpenEnvelope::open(out, Direction::Response, header);
            parts.iter().for_each(|part| out.extend_from_slice(part));
            // As above.
            let _ = match codec {
                Some(codec) if version < Version::V5 => open.finish_compressed(out, codec),
                _ => open.finish(out),
            };
        });
    }

    /// Sends an event, if the client wants this kind. `message` is made for its version.
    pub fn event(&self, kind: EventType, message: &Outgoing<'_>) {
        let (wants, version) = {
            let output = self.output.lock();
            (output.events.contains(kind), output.version)
        };
        if let Some(version) = version.filter(|_| wants) {
            self.answer(version, helenus_wire::native::EVENT_STREAM, message);
        }
    }

    /// Adds kinds of events.
    pub fn register(&self, events: EventTypes) {
        let mut output = self.output.lock();
        output.events = output.events.and(events);
    }

    fn append(&self, write: impl FnOnce(&mut Vec<u8>, Option<&mut BodyCodec>)) {
        let was_empty = {
            let mut output = self.output.lock();
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            let Output { bare, envelopes, version, codec, .. } = &mut *output;
            let out = if version.is_some() { envelopes } else { bare };
            let before = out.len();
            write(out, codec.as_mut());
            self.budget.take((out.len() - before) as u64);
            before == 0
        };
        if was_empty {
            self.wake.notify_one();
        }
    }

    /// Closes the connection once all answers are sent.
    pub fn close_after_answers(&self) {
        self.output.lock().closing = true;
        self.wake.notify_one();
        self.over.notify_waiters();
    }

    /// Waits until no further request is to be read.
    pub async fn closing(&self) {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            over.as_mut().enable();
            if self.is_closing() {
                return;
            }
            over.await;
        }
    }

    /// Whether the connection has ended or is about to.
    pub fn is_closing(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.output.lock().closing
    }

    /// Ends the connection without sending more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.wake.notify_one();
        self.room.notify_waiters();
        self.over.notify_waiters();
    }

    /// Counts a request.
    pub fn begin_request(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer.
    pub fn end_request(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::AcqRel);
        if before >= IN_FLIGHT_MAX {
            self.room.notify_waiters();
        }
        if before == 1 && self.output.lock().closing {
            self.wake.notify_one();
        }
    }

    /// Whether the client may have more in flight.
    pub fn has_room(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) < IN_FLIGHT_MAX && {
            let output = self.output.lock();
            output.envelopes.len() + output.bare.len() < UNSENT_BYTES_MAX
        }
    }

    /// Waits until the client may have more in flight, or has ended.
    pub async fn room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.ended.load(Ordering::Relaxed) || self.has_room() {
                break;
            }
            room.await;
        }
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            self.budget.room().await;
        }
    }

    /// Sends what is to be sent, until the connection ends. `grace`: how long one write may take.
    pub async fn write(&self, mut socket: Box<dyn AsyncWrite + Send + Unpin>, grace: Duration) {
        let (mut bare, mut envelopes, mut framed) = (Vec::new(), Vec::new(), Vec::new());
        let mut writer: Option<(SegmentFormat, SegmentWriter)> = None;
        while !self.ended.load(Ordering::Relaxed) {
            let closing = {
                let mut output = self.output.lock();
                std::mem::swap(&mut output.bare, &mut bare);
                std::mem::swap(&mut output.envelopes, &mut envelopes);
                if let (None, Some(format)) = (&writer, output.segments) {
                    writer = Some((format, SegmentWriter::new(format)));
                }
                output.closing
            };
            if bare.is_empty() && envelopes.is_empty() {
                if closing && self.in_flight.load(Ordering::Acquire) == 0 {
                    break;
                }
                self.wake.notified().await;
                continue;
            }
            let taken = (bare.len() + envelopes.len()) as u64;
            let written = async {
                socket.write_all(&bare).await?;
                match &mut writer {
                    Some((format, writer)) => {
                        writer.append(&envelopes, &mut framed);
                        for segment in format.split(&framed) {
                            socket.write_all(segment).await?;
                        }
                    }
                    None => socket.write_all(&envelopes).await?,
                }
                socket.flush().await
            };
            let written = tokio::time::timeout(grace, written).await;
            self.budget.give_back(taken);
            if !matches!(written, Ok(Ok(()))) {
                break;
            }
            for buffer in [&mut bare, &mut envelopes, &mut framed] {
                buffer.clear();
                buffer.shrink_to(KEPT_BYTES);
            }
            self.room.notify_waiters();
        }
        self.end();
        let left = {
            let mut output = self.output.lock();
            let left = output.bare.len() + output.envelopes.len();
            (output.bare, output.envelopes) = (Vec::new(), Vec::new());
            left
        };
        self.budget.give_back(left as u64);
        let _ = socket.shutdown().await;
    }
}
