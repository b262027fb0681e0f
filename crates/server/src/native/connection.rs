//! One connection: a task that reads the bytes that have arrived, answers every request in them, and writes the answers at
//! once.
//!
//! ```text
//! poll:  messages (disk threads, events) -> stalled input -> held answers -> write -> read -> serve -> again
//! ```
//! `serve` takes every complete frame of one read and calls the backend for each on this thread. A read that misses the
//! cache goes to the disk pool. A write that waits for the commit log is held here with its ticket, and other requests
//! overtake it. Nothing here blocks. Reading pauses while too many answers wait for the client, while too many bytes are in
//! flight, or when the server stops.
//!
//! Memory: the read buffer, the write buffer and the codecs belong to the event loop (`Scratch`) and are borrowed during a
//! poll. A connection itself keeps only an incomplete frame and the answers that its client has not read.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use helenus_wire::WireError;
use helenus_wire::native::{
    AfterRefusal, Agreed, BEFORE_LOGIN_BYTES_MAX, Direction, EnvelopeReader, HEADER_LENGTH, HandedOver,
    Refusal, SegmentFormat, SegmentReader, Step, UnservedInput, Version,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::answer::Tools;
use super::deadlines::{Deadlines, Late};
use super::event_loops::{EventLoop, Shared};
use super::hand_over::{self, Order};
use super::in_flight::{ConnectionShare, LITTLE_BYTES, PartialFrame, Reservation, RoomWait};
use super::job::LARGE_BODY_BYTES;
use super::mailbox::Mailbox;
use super::requests::{Handled, Requests};
use super::session::{Session, Stage};

/// Bytes of one read. Requests that arrive together are answered together.
const READ_BYTES: usize = 64 << 10;
/// Reads in one poll, before the other connections of the event loop are polled.
const READS_PER_POLL: usize = 16;
/// An empty input buffer of at most this size is kept.
const KEPT_BYTES_MAX: usize = 4 << 10;
/// Bytes of the longest segment of v5 with its header and checksum, rounded up.
const SEGMENT_BYTES_MAX: u64 = 136 << 10;
/// After more consecutive faulty messages than this in one segment, the connection is closed
/// (`consecutive_message_errors_threshold`).
const CONSECUTIVE_ERRORS_MAX: u32 = 1;
/// The slowest rate at which a frame longer than a read may arrive, after a grace period (`Limits::frame_grace`): 16
/// MiB in two minutes.
const FRAME_BYTES_A_SECOND: u64 = 128 << 10;
/// How long a connection that the server ends still reads and drops input. If it were closed at once with input that is not
/// read, both systems would throw away the answers that are on their way.
const LINGER: Duration = Duration::from_secs(1);

/// The buffers and codecs that an event loop lends to the connection it polls.
#[derive(Default)]
pub(super) struct Scratch {
    read: Vec<u8>,
    write: Vec<u8>,
    pub tools: Tools,
    /// Codecs for the bodies of requests; those for answers are in use at the same time.
    pub decompress: Tools,
}

/// How input is divided into frames.
enum Framing {
    Bare(EnvelopeReader),
    Segments(Box<SegmentReader>, SegmentFormat),
}

/// A client's connection.
pub(super) struct Connection<S> {
    stream: S,
    event_loop: Arc<EventLoop>,
    framing: Framing,
    /// Input that is not a complete frame yet, or not served yet.
    kept: Vec<u8>,
    /// Envelopes of a segment that are not served yet.
    unserved: Vec<u8>,
    /// Serving stopped although complete frames may be left.
    stalled: bool,
    /// Serving stopped at a part of a long message for which there is no room, although further parts may be left.
    is_starved: bool,
    /// The bytes of a refused frame that are still to be dropped, and the refusal that is sent after them.
    skip: Option<(u64, Refusal)>,
    /// The reservation of an incoming frame that is longer than a read.
    reservation: Option<Reservation>,
    /// The bytes of `kept` while there is no reservation.
    partial: PartialFrame,
    /// The place in the queue for bytes in flight.
    room: RoomWait,
    /// The time limits, so that slow senders do not hold memory or connections that others need.
    deadlines: Deadlines,
    /// The time that is left to read and drop input, and whether the sending side is shut down.
    lingering: Option<(Pin<Box<Sleep>>, bool)>,
    /// The connection ends here and goes on elsewhere.
    is_handed_over: bool,
    /// The number of bytes sent when the socket was full, and the timer after which a client that takes no more is
    /// dropped.
    unread: Option<(usize, Pin<Box<Sleep>>)>,
    requests: Requests,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Wraps a connection that has just been accepted.
    pub fn new(
        stream: S,
        client: Option<SocketAddr>,
        share: ConnectionShare,
        event_loop: Arc<EventLoop>,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let shared: &Arc<Shared> = &event_loop.shared;
        let max_frame = shared.limits.frame_bytes_max;
        let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame };
        let session = Session::new(shared.limits.throws_on_overload);
        let deadlines = Deadlines::new(shared.limits.handshake_timeout, shared.limits.idle_timeout);
        let requests = Requests::new(Arc::clone(shared), mailbox, session, client, share);
        Connection {
            stream,
            event_loop,
            framing: Framing::Bare(reader),
            kept: Vec::new(),
            unserved: Vec::new(),
            stalled: false,
            is_starved: false,
            skip: None,
            reservation: None,
            partial: PartialFrame::new(&requests.share.account),
            room: RoomWait::default(),
            deadlines,
            lingering: None,
            is_handed_over: false,
            unread: None,
            requests,
        }
    }

    fn drive(&mut self, context: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        for _ in 0..READS_PER_POLL {
            scratch.tools.forget_time();
            let order = self.requests.shared.hand_over.order();
            self.requests.waits = order.step() != hand_over::Step::Serve;
            self.requests.take_messages(scratch);
            self.begin();
            self.give_up_late_login(context);
            if self.stalled && self.has_room() {
                self.serve_stalled(scratch);
            }
            self.requests.release_held(&mut scratch.tools);
            self.give_up_slow_client(context);
            self.hand_over_lines(scratch);
            match self.requests.output.poll_write(&mut self.stream, context) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if self.requests.is_finished() => {
                    // A halt does not wait until the client closes its end.
                    self.requests.note_rest(order);
                    return self.linger(context, scratch);
                }
                // The client has taken everything, so input and events that waited for that are served: nobody wakes them again.
                Poll::Ready(Ok(())) if self.requests.mailbox.has_messages() => continue,
                Poll::Ready(Ok(())) if self.stalled && self.has_room() => continue,
                Poll::Ready(Ok(())) => self.unread = None,
                Poll::Pending if self.is_never_read(context) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if self.requests.mailbox.overrun.load(Ordering::Acquire) || self.is_displaced() {
                return Poll::Ready(());
            }
            if self.requests.waits && self.comes_to_rest(order) {
                return Poll::Ready(());
            }
            if !self.may_read(context) {
                if self.reservation.is_none() {
                    self.deadlines.forget_frame();
                }
                return self.watch_login(context, scratch);
            }
            if std::mem::take(&mut self.is_starved) {
                // There is room now, and the client may have sent everything already.
                self.serve_kept(scratch);
                self.note_partial_frame();
                continue;
            }
            scratch.read.resize(READ_BYTES, 0);
            let most = if self.partial.are_many() { LITTLE_BYTES } else { READ_BYTES };
            let mut buffer = ReadBuf::new(scratch.read.get_mut(..most).unwrap_or_default());
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => match self.wait_for_input(context) {
                    None => return Poll::Pending,
                    Some(Late::Frame) => {
                        self.refuse_slow_frame();
                        continue;
                    }
                    Some(Late::Anything) => return Poll::Ready(()),
                },
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => self.deadlines.heard(),
            }
            let count = buffer.filled().len();
            let read = std::mem::take(&mut scratch.read);
            self.take_input(read.get(..count).unwrap_or_default(), scratch);
            scratch.read = read;
            self.note_partial_frame();
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Called while the server waits, with its order. Notes that no request is in flight. Returns whether the connection ends here
    /// now, to be handed over.
    #[cold]
    fn comes_to_rest(&mut self, order: Order) -> bool {
        if self.requests.in_flight_count() > 0 {
            return false;
        }
        self.requests.note_rest(order);
        if order.step() != hand_over::Step::HandOver || self.requests.closing {
            return false;
        }
        let stage = self.requests.session.stage;
        let has_login = self.requests.session.identity.role.is_some();
        let is_in_the_clear = self.requests.mailbox.facts.lock().session.is_none();
        if is_in_the_clear && !has_login && matches!(stage, Stage::Initial | Stage::Ready) {
            self.is_handed_over = true;
            return true;
        }
        // A session of TLS, or a login, cannot go on elsewhere: it ends once the answers are sent. Nobody here knows the password
        // with which the client would log in there.
        self.requests.mailbox.leaving.store(true, Ordering::Release);
        self.requests.mailbox.wake();
        false
    }

    /// The stream and the state of a connection that goes on elsewhere; `None` if it has ended for good.
    pub fn handed_over(self) -> Option<(S, HandedOver)> {
        if !self.is_handed_over {
            return None;
        }
        let (session, output) = self.requests.into_parts();
        let Session { version, compression, keyspace, events, .. } = session;
        let agreed = version.map(|version| Agreed { version, compression, keyspace, events });
        let segments = match self.framing {
            Framing::Bare(_) => None,
            Framing::Segments(reader, _) => Some(reader),
        };
        let (envelopes, skip, bytes) = (self.unserved, self.skip, self.kept);
        let unserved = UnservedInput { envelopes, skip, segments, bytes };
        Some((self.stream, HandedOver { agreed, unsent: output.into_unsent(), unserved }))
    }

    /// Hands the lines for the audit log over.
    fn hand_over_lines(&self, scratch: &mut Scratch) {
        scratch.tools.hand_over_lines(self.requests.shared.limits.audit.as_deref());
    }

    /// Whether the client has taken no answer for too long. Its connection and its answers are then dropped.
    fn is_never_read(&mut self, context: &mut Context<'_>) -> bool {
        let left = self.requests.output.left_bytes();
        match &mut self.unread {
            Some((before, due)) if *before == left => due.as_mut().poll(context).is_ready(),
            unread => {
                let mut due = Box::pin(tokio::time::sleep(self.requests.shared.limits.reader_grace));
                let over = due.as_mut().poll(context).is_ready();
                *unread = Some((left, due));
                over
            }
        }
    }

    /// Whether more input may be served now.
    fn has_room(&self) -> bool {
        let requests = &self.requests;
        !requests.closing
            && !requests.waits
            && !requests.output.is_full()
            && requests.in_flight_count() < requests.in_flight_max()
    }

    /// Whether more input may be read now. If only the bytes in flight forbid it, the connection is woken when there is room.
    fn may_read(&mut self, context: &mut Context<'_>) -> bool {
        if self.stalled || !self.has_room() || self.requests.is_leaving() {
            return false;
        }
        // A connection with nothing in flight must not wait for others without end, and a frame with a reservation has
        // its room already.
        let waits_for_nothing = self.requests.in_flight_count() == 0 || self.reservation.is_some();
        if self.reservation_wanted().is_none() && waits_for_nothing || self.gets_room() {
            return true;
        }
        let (wanted, account) = (self.reservation_wanted(), &self.requests.share.account);
        let within = self.requests.shared.limits.frame_grace;
        if self.requests.session.throws_on_overload || self.room.is_late(account, wanted, (within, context)) {
            self.drop_frame_under_way();
            return true;
        }
        self.room.wait(account, &self.requests.mailbox, (wanted, self.reservation.as_ref()));
        let has_room = self.gets_room();
        self.room.note(has_room)
    }

    /// Counts the input that is kept, if it has no reservation and is longer than any connection may keep.
    fn note_partial_frame(&mut self) {
        if self.kept.is_empty() && self.reservation.is_some() && self.awaits_no_long_message() {
            self.release_room();
        }
        let assembled = match &self.framing {
            Framing::Segments(reader, _) if !reader.is_between_messages() => reader.assembled_bytes(),
            Framing::Segments(..) | Framing::Bare(_) => 0,
        };
        let of_message = if self.reservation.is_some() { 0 } else { self.kept.len() + assembled };
        let kept = self.unserved.len() + of_message;
        self.partial.set(if kept > LITTLE_BYTES { kept } else { 0 });
    }

    /// Whether its messages come in segments, and none is arriving that is longer than a segment.
    fn awaits_no_long_message(&self) -> bool {
        matches!(&self.framing, Framing::Segments(reader, _) if reader.long_message().is_none())
    }

    /// Makes room for the long message of which a part has come. False: the rest of the input waits for room.
    ///
    /// While unfinished messages hold much, no more of them may wait with a part each: such a message is refused.
    fn makes_room(&mut self) -> bool {
        if self.reservation_wanted().is_none() || self.gets_room() {
            return true;
        }
        if self.requests.session.throws_on_overload || self.partial.are_many() {
            self.drop_frame_under_way();
            return true;
        }
        false
    }

    fn forget_kept(&mut self) {
        self.kept = Vec::new();
        self.partial.set(0);
    }

    fn gets_room(&mut self) -> bool {
        match self.reservation_wanted() {
            None => self.requests.share.account.has_room(0),
            Some(bytes) => {
                let has_room = match &mut self.reservation {
                    Some(reservation) => reservation.try_grow(bytes),
                    none => {
                        *none = self.requests.share.account.try_take(bytes);
                        none.is_some()
                    }
                };
                if has_room {
                    // Reserved in one piece, not by doubling.
                    if matches!(self.framing, Framing::Bare(_)) {
                        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
                        self.kept.reserve_exact(length.saturating_sub(self.kept.len()) + READ_BYTES);
                    }
                    let grace = self.requests.shared.limits.frame_grace;
                    self.deadlines.expect_frame(grace + Duration::from_secs(bytes / FRAME_BYTES_A_SECOND));
                    self.partial.set(0);
                }
                has_room
            }
        }
    }

    /// Releases the room of the incoming frame, which has arrived or is given up.
    fn release_room(&mut self) {
        self.reservation = None;
        self.deadlines.forget_frame();
    }

    /// Drops the incoming frame, for which there is no room, because its client prefers an error to waiting or has waited long. The
    /// bytes that have arrived are freed, the rest is skipped, and then the error is sent.
    fn drop_frame_under_way(&mut self) {
        let is_v5 = matches!(self.framing, Framing::Segments(..));
        let error = WireError::Overloaded { text: self.requests.share.account.overloaded(is_v5) };
        if let Framing::Segments(reader, _) = &mut self.framing {
            reader.refuse_long(error);
            return;
        }
        let stream =
            self.kept.get(2..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i16::from_be_bytes);
        let Some(bytes) = self.reservation_wanted() else {
            return;
        };
        let then = AfterRefusal::Skip(bytes);
        self.skip = Some((
            bytes.saturating_sub(self.kept.len() as u64),
            Refusal { error, stream, answer_in: None, then },
        ));
        self.forget_kept();
    }

    /// Ends a connection that sends no STARTUP or login in time. The time that the server takes to check a login is not the
    /// client's, so the limit applies once the login is answered, and before the next one is taken.
    fn give_up_late_login(&mut self, context: &mut Context<'_>) {
        if self.requests.closing || self.requests.in_flight_count() > 0 {
            return;
        }
        if self.deadlines.is_handshake_late(context) {
            self.forget_kept();
            let missing = match self.requests.session.stage {
                Stage::Authenticating => WireError::NoLogin,
                Stage::Initial | Stage::Established | Stage::Ready => WireError::NoStartup,
            };
            self.requests.refuse(&Refusal::fatal(missing, 0));
            self.requests.closing = true;
        }
    }

    /// Ends a connection whose long frame does not arrive in time, or is none before a login.
    fn give_up_slow_client(&mut self, context: &mut Context<'_>) {
        if self.requests.closing {
            return;
        }
        let (kept, wanted) = (self.kept.len() as u64, self.reservation_wanted().unwrap_or(0));
        if self.requests.session.stage != Stage::Ready && kept.max(wanted) > BEFORE_LOGIN_BYTES_MAX {
            self.refuse_long_frame();
        } else if self.reservation.is_some() && self.deadlines.is_frame_late(context) {
            self.refuse_slow_frame();
        }
    }

    /// Ends a connection that sends a frame before its login that no login needs.
    fn refuse_long_frame(&mut self) {
        self.forget_kept();
        self.requests
            .refuse(&Refusal::fatal(WireError::TooLongBeforeLogin { bytes_max: BEFORE_LOGIN_BYTES_MAX }, 0));
        self.requests.closing = true;
    }

    fn refuse_slow_frame(&mut self) {
        self.release_room();
        self.forget_kept();
        self.requests.refuse(&Refusal::fatal(WireError::FrameTooSlow, 0));
        self.requests.closing = true;
    }

    /// Called when no input is served. While a login waits or is checked, reads what the client sends nevertheless: the end of
    /// a connection is only seen by reading, and a login whose client has gone is dropped before its password is hashed.
    fn watch_login(&mut self, context: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        let requests = &self.requests;
        let is_login = requests.session.stage == Stage::Authenticating && requests.in_flight_count() > 0;
        if !is_login || requests.closing {
            return Poll::Pending;
        }
        // A client waits for the answer to its login. Of one that sends on, little is kept, and no end would be seen.
        while self.kept.len() + self.unserved.len() <= LITTLE_BYTES {
            scratch.read.resize(READ_BYTES, 0);
            let mut buffer = ReadBuf::new(scratch.read.get_mut(..LITTLE_BYTES).unwrap_or_default());
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {
                    self.kept.extend_from_slice(buffer.filled());
                    self.stalled = true;
                }
            }
        }
        let bytes_max = LITTLE_BYTES as u64;
        self.requests.refuse(&Refusal::fatal(WireError::TooLongBeforeLogin { bytes_max }, 0));
        let _sent_or_not = self.requests.output.poll_write(&mut self.stream, context);
        Poll::Ready(())
    }

    /// Called when the socket has no input: checks what is late.
    fn wait_for_input(&mut self, context: &mut Context<'_>) -> Option<Late> {
        let is_between = match &self.framing {
            Framing::Bare(_) => true,
            Framing::Segments(reader, _) => reader.is_between_messages(),
        };
        let dropped = self.skip.as_ref().map_or(0, |(left, _)| *left);
        let has_part = !self.kept.is_empty() || dropped > 0 || !is_between;
        let grace = self.requests.shared.limits.frame_grace;
        let within = has_part.then(|| grace + Duration::from_secs(dropped / FRAME_BYTES_A_SECOND));
        let is_busy = self.requests.in_flight_count() > 0 || self.requests.output.unsent() > 0;
        self.deadlines.wait(context, within, is_busy)
    }

    /// Whether this connection has not begun and must make room for another.
    fn is_displaced(&self) -> bool {
        self.requests.session.stage != Stage::Ready && self.requests.mailbox.displaced.load(Ordering::Acquire)
    }

    /// The length of the incoming frame if it is longer than a read and has no reservation of this length yet. While incomplete
    /// frames hold much, shorter ones are reserved as well.
    fn reservation_wanted(&self) -> Option<u64> {
        let wanted = self.length_to_reserve()?;
        let reserved = self.reservation.as_ref().map_or(0, Reservation::bytes);
        (wanted > reserved).then_some(wanted)
    }

    fn length_to_reserve(&self) -> Option<u64> {
        let is_pressed = self.kept.len() >= LITTLE_BYTES && self.partial.are_many();
        let length = match &self.framing {
            Framing::Segments(reader, _) => match reader.long_message() {
                None if is_pressed => return Some(SEGMENT_BYTES_MAX),
                length => length?,
            },
            Framing::Bare(_) => {
                let length = self.kept.get(5..HEADER_LENGTH)?.try_into().ok()?;
                HEADER_LENGTH as u64 + u64::from(u32::from_be_bytes(length))
            }
        };
        (length > READ_BYTES as u64 || is_pressed).then_some(length)
    }

    /// Serves the bytes that were read, and keeps an incomplete frame.
    fn take_input(&mut self, read: &[u8], scratch: &mut Scratch) {
        if self.kept.is_empty() {
            let used = self.serve(read, scratch);
            self.kept.extend_from_slice(read.get(used..).unwrap_or_default());
        } else {
            self.kept.extend_from_slice(read);
            self.serve_kept(scratch);
        }
    }

    fn serve_kept(&mut self, scratch: &mut Scratch) {
        let kept = std::mem::take(&mut self.kept);
        let Some(mut kept) = self.serve_whole(kept, scratch) else {
            return;
        };
        let used = self.serve(&kept, scratch);
        kept.drain(..used.min(kept.len()));
        if !kept.is_empty() || kept.capacity() <= KEPT_BYTES_MAX {
            self.kept = kept;
        }
    }

    /// If the kept input is exactly one large request, serves it without a copy; otherwise returns it.
    fn serve_whole(&mut self, kept: Vec<u8>, scratch: &mut Scratch) -> Option<Vec<u8>> {
        let Framing::Bare(reader) = &self.framing else {
            return Some(kept);
        };
        let is_large = kept.len() >= LARGE_BODY_BYTES && self.skip.is_none() && self.has_room();
        let header = match reader.clone().read(&kept) {
            Ok(Some(envelope)) if is_large && envelope.size() == kept.len() => envelope.header,
            _ => return Some(kept),
        };
        let rest = self.requests.handle_whole(kept, HEADER_LENGTH, (header, scratch));
        if rest.is_none() {
            self.release_room();
        }
        rest
    }

    fn serve_stalled(&mut self, scratch: &mut Scratch) {
        self.stalled = false;
        let unserved = std::mem::take(&mut self.unserved);
        if let Framing::Segments(reader, _) = &self.framing {
            let envelopes = *reader.envelopes();
            self.serve_payload(envelopes, &unserved, scratch);
        }
        if !self.stalled {
            self.serve_kept(scratch);
        }
    }

    /// Serves complete frames from the front of `input`; returns the number of bytes consumed.
    fn serve(&mut self, input: &[u8], scratch: &mut Scratch) -> usize {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            if let Some((left, refusal)) = self.skip.take() {
                let now = left.min(rest.len() as u64);
                used += now as usize;
                if now < left {
                    self.skip = Some((left - now, refusal));
                    return used;
                }
                self.requests.refuse(&refusal);
                self.release_room();
                continue;
            }
            if rest.is_empty() {
                return used;
            }
            if !self.has_room() {
                self.stalled = !self.requests.closing;
                return if self.requests.closing { input.len() } else { used };
            }
            match &mut self.framing {
                Framing::Bare(reader) => match reader.read(rest) {
                    Ok(None) => return used,
                    Ok(Some(envelope)) => {
                        used += envelope.size();
                        // Released before the frame is served, so that it does not compete with itself.
                        self.reservation = None;
                        self.deadlines.forget_frame();
                        if let Handled::Started(version) = self.requests.handle(&envelope, scratch) {
                            self.agree_on(version);
                        }
                    }
                    Err(refusal) => used += self.refuse(refusal, rest.len()),
                },
                Framing::Segments(reader, _) => {
                    // As in Cassandra, and so a stranger's message has a segment at most, however well it is compressed.
                    reader.set_ready(self.requests.session.stage == Stage::Ready);
                    let envelopes = *reader.envelopes();
                    match reader.read(rest) {
                        Ok(Step::Incomplete) => return used,
                        Ok(Step::Part { used: part }) => {
                            used += part;
                            if !self.makes_room() {
                                self.is_starved = true;
                                return used;
                            }
                        }
                        Ok(Step::Envelopes { used: segment, payload, long }) => {
                            used += segment;
                            // A message longer than a segment may be arriving behind this one; then its reservation
                            // stays.
                            if long || self.reservation.is_none() {
                                self.reservation = None;
                                self.deadlines.forget_frame();
                            }
                            let served = serve_payload(&mut self.requests, envelopes, payload, scratch);
                            if let Some(unserved) = payload.get(served..).filter(|rest| !rest.is_empty()) {
                                self.unserved = unserved.to_vec();
                                self.stalled = true;
                                return used;
                            }
                        }
                        Err(refusal) => used += self.refuse(refusal, rest.len()),
                    }
                }
            }
        }
    }

    fn serve_payload(&mut self, envelopes: EnvelopeReader, payload: &[u8], scratch: &mut Scratch) {
        let served = serve_payload(&mut self.requests, envelopes, payload, scratch);
        if let Some(unserved) = payload.get(served..).filter(|rest| !rest.is_empty()) {
            self.unserved = unserved.to_vec();
            self.stalled = true;
        }
    }

    /// Acts on a refusal of the framing; returns how many of the `received` bytes it consumes.
    fn refuse(&mut self, refusal: Refusal, received: usize) -> usize {
        match refusal.then {
            AfterRefusal::Skip(bytes) => {
                self.skip = Some((bytes, refusal));
                0
            }
            AfterRefusal::DiscardReceived => {
                self.requests.refuse(&refusal);
                received
            }
            AfterRefusal::Close => {
                self.requests.refuse(&refusal);
                self.requests.closing = true;
                received
            }
            AfterRefusal::CloseUnanswered => {
                self.requests.closing = true;
                received
            }
        }
    }

    /// Ends the time of the handshake once requests are accepted: after STARTUP or, with logins, after the login.
    fn begin(&mut self) {
        if self.requests.session.stage == Stage::Ready && !self.requests.mailbox.began.load(Ordering::Acquire)
        {
            self.deadlines.began();
            self.requests.mailbox.began.store(true, Ordering::Release);
        }
    }

    /// Applies the version, which the first STARTUP fixes, whatever its answer. v5 continues in segments, in both
    /// directions.
    fn agree_on(&mut self, version: Version) {
        self.begin();
        let max_frame = self.requests.shared.limits.frame_bytes_max;
        if version < Version::V5 {
            let from = Direction::Request;
            self.framing = Framing::Bare(EnvelopeReader { from, connection: Some(version), max_frame });
            return;
        }
        let format = match self.requests.session.compression {
            Some(_) => SegmentFormat::Lz4,
            None => SegmentFormat::Plain,
        };
        let max_message = self.requests.shared.limits.message_bytes_max;
        let reader = Box::new(SegmentReader::new(format, Direction::Request, max_message));
        self.framing = Framing::Segments(reader, format);
        self.requests.output.wrap(format);
    }

    /// Ends a connection whose last answer has been sent, because of an error or because the server stops: shuts down the
    /// sending side, then reads and drops input for a while.
    fn linger(&mut self, context: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| (Box::pin(tokio::time::sleep(LINGER)), false));
        if lingering.0.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if !lingering.1 {
            match Pin::new(&mut self.stream).poll_shutdown(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => lingering.1 = true,
            }
        }
        scratch.read.resize(READ_BYTES, 0);
        for _ in 0..READS_PER_POLL {
            let mut buffer = ReadBuf::new(&mut scratch.read);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Frees buffers that only an incoming frame needs.
    fn trim(&mut self) {
        let max_message = self.requests.shared.limits.message_bytes_max;
        match &mut self.framing {
            Framing::Segments(reader, format) if reader.is_between_messages() => {
                **reader = SegmentReader::new(*format, Direction::Request, max_message);
            }
            Framing::Bare(_) | Framing::Segments(..) => {}
        }
    }
}

/// Serves the envelopes of a self-contained segment or a long message. Returns the number of bytes consumed, which is
/// less than all if there is no room for more answers.
fn serve_payload(
    requests: &mut Requests,
    envelopes: EnvelopeReader,
    payload: &[u8],
    scratch: &mut Scratch,
) -> usize {
    let mut used = 0;
    let mut errors = 0;
    while let Some(rest) = payload.get(used..).filter(|rest| !rest.is_empty()) {
        if requests.closing {
            return payload.len();
        }
        let is_full = requests.in_flight_count() >= requests.in_flight_max();
        if is_full || requests.output.is_full() {
            return used;
        }
        match envelopes.read_in_segment(rest) {
            Ok(envelope) => {
                used += envelope.size();
                match requests.handle(&envelope, scratch) {
                    Handled::Faulty => errors += 1,
                    Handled::Answered | Handled::Started(_) => errors = 0,
                }
            }
            Err(refusal) => {
                errors += 1;
                requests.refuse(&refusal);
                match refusal.then {
                    AfterRefusal::Skip(bytes) => {
                        used = used.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
                    }
                    AfterRefusal::DiscardReceived => used = payload.len(),
                    AfterRefusal::Close | AfterRefusal::CloseUnanswered => requests.closing = true,
                }
            }
        }
        requests.closing |= errors > CONSECUTIVE_ERRORS_MAX;
    }
    payload.len()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Connection<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.requests.mailbox.register(context.waker());
        let mut scratch = this.event_loop.lend();
        let before = this.requests.mailbox.requests_count.load(Ordering::Relaxed);
        this.requests.output.borrow(&mut scratch.write);
        let polled = this.drive(context, &mut scratch);
        this.room.end_poll();
        this.hand_over_lines(&mut scratch);
        this.requests.output.give_back(&mut scratch.write);
        this.trim();
        this.event_loop.take_back(scratch);
        let requests = this.requests.mailbox.requests_count.load(Ordering::Relaxed) - before;
        this.event_loop.busy_poll.answered(requests);
        polled
    }
}
