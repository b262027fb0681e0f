//! A client's side that answers and events reach: its version, and the bytes that are to be sent to it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helenus_cluster::Taken;
use helenus_wire::native::{
    Agreed, BodyCodec, Compression, Direction, ErrorMessage, EventType, EventTypes, Header, OpenEnvelope,
    Outgoing, Refusal, ResponseHead, SegmentFormat, SegmentWriter, Version,
};
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::budget::{Budgets, Held};

/// The most requests of a client without an answer, and the most bytes of answers that it has not taken; then nothing more of it is
/// read.
const IN_FLIGHT_MAX: usize = 2048;
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The same while answers that are not taken have half of their bytes: then many clients take none, and each keeps less.
const UNSENT_BYTES_MAX_PRESSED: usize = 64 << 10;
/// A client may leave this part of all bytes of answers unread. What it has asked for already and is more gets an error.
const SHARE_OF_CLIENT: u64 = 4;
/// A long answer may have this part of the room for all long answers, as long as its client has not taken it.
const SHARE_OF_LONG_ANSWER: u64 = 2;
/// Answers up to this length are sent in any case: as many as a client may ask for are 2 MiB.
const SMALL_BYTES: usize = 1 << 10;
/// Buffers are kept up to this size while there is something to send, up to the next while answers have half of their bytes, and up to the
/// last while there is nothing to send.
const KEPT_BYTES: usize = 256 << 10;
const KEPT_BYTES_PRESSED: usize = 16 << 10;
const RESTING_BYTES: usize = 1 << 10;
/// How long the end of a connection may take: TLS writes what it still has and its farewell, and the client may not read.
const FAREWELL: Duration = Duration::from_secs(1);

/// An answer for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// This client, or all together, have not taken those before it.
    Earlier {
        /// The bytes that this client has not taken.
        bytes: u64,
    },
    /// It would leave too little room for the long answers of other clients.
    TooLong {
        /// The bytes that it takes on its way.
        bytes: u64,
        /// The most bytes of one.
        max: u64,
    },
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::Earlier { bytes } => write!(
                f,
                "there is no room for the answer: {bytes} bytes of earlier answers are not taken by this client yet; ask for less at a time"
            ),
            Unread::TooLong { bytes, max } => write!(
                f,
                "there is no room for the answer: it takes {bytes} bytes, and one answer may take {max}; ask for smaller pages"
            ),
        }
    }
}

/// Bytes on their way to the client, and the room that they take.
struct Batch {
    /// Envelopes from before the version was agreed.
    bare: Vec<u8>,
    /// Envelopes that go into segments, if the version has them.
    envelopes: Vec<u8>,
    /// Of the bytes of all clients' answers.
    held: Held,
    /// Of long answers.
    rooms: Vec<Arc<Taken>>,
}

impl Batch {
    fn new(budgets: &Budgets) -> Batch {
        let (bare, envelopes) = (Vec::new(), Vec::new());
        Batch { bare, envelopes, held: budgets.answers.take(0), rooms: Vec::new() }
    }

    fn len(&self) -> usize {
        self.bare.len() + self.envelopes.len()
    }

    /// Empties it, and keeps so much of its buffers. The room is given back after the memory that it was for.
    fn clear(&mut self, kept: usize) {
        for buffer in [&mut self.bare, &mut self.envelopes] {
            buffer.clear();
            buffer.shrink_to(kept);
        }
        self.held.set(0);
        self.rooms.clear();
        self.rooms.shrink_to(IN_FLIGHT_MAX);
    }

    /// Keeps little, if it is empty: its client may be silent for long.
    fn rest(&mut self) {
        rest(&mut self.bare);
        rest(&mut self.envelopes);
        if self.rooms.is_empty() {
            self.rooms = Vec::new();
        }
    }
}

/// Keeps little of a buffer that is empty.
fn rest(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > RESTING_BYTES {
        *buffer = Vec::new();
    }
}

struct Output {
    /// The bytes that the task which writes has not begun with.
    batch: Batch,
    /// All bytes that are not written yet.
    unsent: usize,
    version: Option<Version>,
    segments: Option<SegmentFormat>,
    codec: Option<BodyCodec>,
    events: EventTypes,
    /// No further request is read; the connection closes once all are answered and the answers are sent.
    closing: bool,
}

impl Output {
    /// Whether an answer of this many bytes may be added. Its bytes are counted then.
    ///
    /// A client that has taken everything gets one answer even if others have used up what there is for all, up to twice of it: those
    /// who read do not pay for those who do not.
    fn takes(&mut self, bytes: usize, room: Option<&Arc<Taken>>, budgets: &Budgets) -> Result<(), Unread> {
        let max = budgets.answers.max();
        let has_share = self.unsent == 0 || (self.unsent + bytes) as u64 <= max / SHARE_OF_CLIENT;
        let earlier = Unread::Earlier { bytes: self.unsent as u64 };
        let held = &mut self.batch.held;
        match room {
            _ if bytes <= SMALL_BYTES => held.add(bytes as u64),
            _ if !has_share => return Err(earlier),
            Some(room) => {
                let max = room.room_max() / SHARE_OF_LONG_ANSWER;
                if room.bytes() > max {
                    return Err(Unread::TooLong { bytes: room.bytes(), max });
                }
                self.batch.rooms.push(Arc::clone(room));
            }
            None => {
                let max = if self.unsent == 0 { max.saturating_mul(2) } else { max };
                if !held.try_add_within(bytes as u64, max) {
                    return Err(earlier);
                }
            }
        }
        Ok(())
    }

    /// Where envelopes go now, and the codec of their bodies.
    fn envelopes(&mut self) -> (&mut Vec<u8>, Option<&mut BodyCodec>) {
        let Batch { bare, envelopes, .. } = &mut self.batch;
        let out = if self.version.is_some() { envelopes } else { bare };
        (out, self.codec.as_mut())
    }
}

/// What a client waits for before more of it is read.
enum Wait {
    /// Answers of its own.
    Own,
    /// Bytes of all clients, or the last of its answers.
    All,
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
    budgets: Budgets,
}

impl Client {
    /// `local`, `remote`: the address by which it has come, and its own.
    pub fn new((local, remote): (SocketAddr, SocketAddr), budgets: &Budgets) -> Client {
        let output = Output {
            batch: Batch::new(budgets),
            unsent: 0,
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
            budgets: budgets.clone(),
        }
    }

    /// Answers STARTUP with READY or AUTHENTICATE: what follows has this version and compression.
    pub fn start(
        &self,
        version: Version,
        compression: Option<Compression>,
        (stream, answer): (i16, &Outgoing<'_>),
    ) {
        // Whatever the version: the answer itself comes before segments.
        self.append(|output| {
            if version < Version::V5 {
                output.codec = compression.map(BodyCodec::new);
            }
            let Output { batch, codec, .. } = output;
            // A short message always has room.
            let _ = answer.encode(&ResponseHead::new(version, stream), codec.as_mut(), &mut batch.bare);
            output.version = Some(version);
            if version >= Version::V5 {
                output.segments = Some(segment_format(compression));
            }
        });
    }

    /// Goes on where another server of this process has stopped; `unsent` is what the client has still to get from that.
    pub fn resume(&self, agreed: &Agreed, unsent: &[u8]) {
        self.append(|output| {
            output.version = Some(agreed.version);
            output.events = agreed.events;
            if agreed.version < Version::V5 {
                output.codec = agreed.compression.map(BodyCodec::new);
            } else {
                output.segments = Some(segment_format(agreed.compression));
            }
            output.batch.bare.extend_from_slice(unsent);
        });
    }

    /// Sends a message that is made here, and is short. `version`: that of the request.
    pub fn answer(&self, version: Version, stream: i16, message: &Outgoing<'_>) {
        self.append(|output| {
            let (out, codec) = output.envelopes();
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
        self.append(|output| {
            let version = output.version;
            refusal.encode(version, output.envelopes().0);
        });
    }

    /// Sends a body of several parts under this header, whose length is not read. `room`: of a long answer, which is kept until the
    /// client has taken it.
    ///
    /// # Errors
    /// There is no room for it, and nothing is sent.
    pub fn send(&self, header: Header, parts: &[&[u8]], room: Option<&Arc<Taken>>) -> Result<(), Unread> {
        let length = parts.iter().map(|part| part.len()).sum();
        let wakes = {
            let mut output = self.output.lock();
            if self.ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            output.takes(length, room, &self.budgets)?;
            let before = output.batch.len();
            let (out, codec) = output.envelopes();
            let open = OpenEnvelope::open(out, Direction::Response, header);
            parts.iter().for_each(|part| out.extend_from_slice(part));
            // On an error nothing is appended: only a body over 2 GiB fails, and no node sends one.
            let _ = match codec {
                Some(codec) if header.version < Version::V5 => {
                    let finished = open.finish_compressed(out, codec);
                    codec.trim();
                    finished
                }
                _ => open.finish(out),
            };
            output.unsent += output.batch.len() - before;
            before == 0
        };
        if wakes {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Sends an event, if the client wants this kind. `message` is made for its version. A client that takes no answers loses its
    /// connection, not the event: drivers rely on either.
    pub fn event(&self, kind: EventType, message: &Outgoing<'_>) {
        let (version, is_behind) = {
            let output = self.output.lock();
            let max = match self.budgets.answers.is_pressed() {
                true => UNSENT_BYTES_MAX_PRESSED as u64,
                false => self.budgets.answers.max() / SHARE_OF_CLIENT,
            };
            let is_behind = output.unsent as u64 > max;
            (output.version.filter(|_| output.events.contains(kind)), is_behind)
        };
        match version {
            Some(_) if is_behind => self.end(),
            Some(version) => self.answer(version, helenus_wire::native::EVENT_STREAM, message),
            None => {}
        }
    }

    /// Adds kinds of events.
    pub fn register(&self, events: EventTypes) {
        let mut output = self.output.lock();
        output.events = output.events.and(events);
    }

    /// Adds what the gateway itself says, which has room in any case: whoever leaves it unread is not read on (`wait`).
    fn append(&self, write: impl FnOnce(&mut Output)) {
        let was_empty = {
            let mut output = self.output.lock();
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            let before = output.batch.len();
            write(&mut output);
            let bytes = output.batch.len() - before;
            output.unsent += bytes;
            // A buffer that grows by doubling takes up to twice its bytes.
            output.batch.held.add(2 * bytes as u64);
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
        if before >= IN_FLIGHT_MAX || before == 1 {
            self.room.notify_waiters();
        }
        if before == 1 && self.output.lock().closing {
            self.wake.notify_one();
        }
    }

    /// Whether no request of the client is without an answer, and no answer unsent.
    pub fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.output.lock().unsent == 0
    }

    /// Whether the client may have more in flight, as far as all together may.
    pub fn may_go_on(&self) -> bool {
        self.wait().is_none()
    }

    /// What the client has to wait for; `None`: it may go on.
    fn wait(&self) -> Option<Wait> {
        let in_flight = self.in_flight.load(Ordering::Acquire);
        let unsent = self.output.lock().unsent;
        let unsent_max = match self.budgets.answers.is_pressed() {
            true => UNSENT_BYTES_MAX_PRESSED,
            false => UNSENT_BYTES_MAX,
        };
        if in_flight >= IN_FLIGHT_MAX || unsent >= unsent_max {
            return Some(Wait::Own);
        }
        // The answers that are made here count too: they have no request in flight.
        let has_room = match in_flight {
            0 => unsent == 0 || self.budgets.answers.has_room(),
            _ => self.budgets.have_room(),
        };
        (!has_room).then_some(Wait::All)
    }

    /// Waits until the client may have more in flight, or has ended.
    pub async fn room(&self) {
        loop {
            // Notified when its answers are taken, and when none of its requests is in flight any more.
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            let Some(wait) = self.wait() else { return };
            // By the same look that has found no room: what all have may be free by now.
            match wait {
                Wait::Own => room.await,
                Wait::All => tokio::select! {
                    () = room => {}
                    () = self.budgets.room() => {}
                },
            }
        }
    }

    /// Sends what is to be sent, until the connection ends. `grace`: how long the client may take nothing.
    pub async fn write(&self, mut socket: Box<dyn AsyncWrite + Send + Unpin>, grace: Duration) {
        let (mut batch, mut framed) = (Batch::new(&self.budgets), Vec::new());
        let mut writer: Option<(SegmentFormat, SegmentWriter)> = None;
        let mut takes_all = true;
        while !self.ended.load(Ordering::Relaxed) {
            let closing = {
                let mut output = self.output.lock();
                std::mem::swap(&mut output.batch, &mut batch);
                if let (None, Some(format)) = (&writer, output.segments) {
                    writer = Some((format, SegmentWriter::new(format)));
                }
                output.closing
            };
            let taken = batch.len();
            if taken == 0 {
                if closing && self.in_flight.load(Ordering::Acquire) == 0 {
                    break;
                }
                batch.rest();
                rest(&mut framed);
                self.output.lock().batch.rest();
                self.wake.notified().await;
                continue;
            }
            let written = async {
                write_all(&mut socket, &batch.bare, grace).await?;
                match &mut writer {
                    Some((format, writer)) => {
                        writer.append(&batch.envelopes, &mut framed);
                        for segment in format.split(&framed) {
                            write_all(&mut socket, segment, grace).await?;
                        }
                    }
                    None => write_all(&mut socket, &batch.envelopes, grace).await?,
                }
                tokio::time::timeout(grace, socket.flush()).await?
            };
            takes_all = written.await.is_ok();
            let kept = if self.budgets.answers.is_pressed() { KEPT_BYTES_PRESSED } else { KEPT_BYTES };
            framed.clear();
            framed.shrink_to(kept);
            batch.clear(kept);
            self.output.lock().unsent -= taken;
            if !takes_all {
                break;
            }
            self.room.notify_waiters();
        }
        self.end();
        drop(batch);
        let left = std::mem::replace(&mut self.output.lock().batch, Batch::new(&self.budgets));
        drop(left);
        // TLS would first write what the client has not taken. Both halves of the socket are dropped in any case.
        if takes_all {
            let _ = tokio::time::timeout(FAREWELL.min(grace), socket.shutdown()).await;
        }
    }
}

/// Writes all bytes to a client that takes some of them each `grace`.
async fn write_all(
    socket: &mut (dyn AsyncWrite + Send + Unpin),
    mut bytes: &[u8],
    grace: Duration,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = tokio::time::timeout(grace, socket.write(bytes)).await??;
        bytes = bytes.get(taken..).filter(|_| taken > 0).ok_or(io::ErrorKind::WriteZero)?;
    }
    Ok(())
}

fn segment_format(compression: Option<Compression>) -> SegmentFormat {
    match compression {
        Some(_) => SegmentFormat::Lz4,
        None => SegmentFormat::Plain,
    }
}

#[cfg(test)]
mod tests;
