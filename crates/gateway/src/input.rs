//! Cuts the input of a client into requests.
//!
//! Memory: a message takes its bytes from the budget of all clients (`budget`) when its header announces its length, before they arrive.
//! Without room the input is starved: nothing more of the client is read until there is (`room`), or the message is given up. What is
//! here already counts in any case, except for the little that each connection may keep. A request leaves with the bytes of its body and
//! what it takes besides.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;

use helenus_wire::WireError;
use helenus_wire::native::{
    AfterRefusal, Agreed, BodyCodec, Compression, Direction, Envelope, EnvelopeReader, HEADER_LENGTH, Header,
    Refusal, SegmentFormat, SegmentReader, Step, UnservedInput, Version,
};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::budget::{Budget, Held};

/// The most and the fewest bytes of one read. A client whose reads are full gets more at a time.
const READ_BYTES: usize = 64 << 10;
const LITTLE_BYTES: usize = 4 << 10;

/// What a request takes besides its body until it is answered, in bytes: what is known of it here, its task where it has one, and its
/// place at a node.
pub(crate) const REQUEST_BYTES: u64 = 4 << 10;

/// What has arrived.
pub(crate) enum Arrived {
    /// A request: its header, its body, decompressed, and its part of the bytes in flight.
    Request(Header, Vec<u8>, Held),
    /// Bytes that are no request, and whether the connection ends with the answer.
    Refused(Refusal),
}

/// One step of reading.
enum Found {
    Arrived(Arrived),
    /// Requests are in `Input::payload` now.
    Payload,
    /// More must be read, or there must be room.
    Nothing,
}

/// The input of one client.
pub(crate) struct Input {
    bytes: Vec<u8>,
    used: usize,
    /// Bytes read in all.
    received: u64,
    /// Bytes that are still to be dropped.
    skip: u64,
    envelopes: EnvelopeReader,
    /// Of bodies, in v3 and v4.
    codec: Option<(Compression, BodyCodec)>,
    segments: Option<(SegmentFormat, SegmentReader)>,
    frame_bytes_max: u64,
    message_bytes_max: u64,
    /// Whether the client has still to log in: then no request is longer than this, decompressed too.
    before_login: Option<u64>,
    /// The envelopes of a segment, and how many of their bytes are used.
    payload: Vec<u8>,
    payload_used: usize,
    /// The most bytes of the next read.
    read_bytes: usize,
    budget: Arc<Budget>,
    /// What is kept here, or the length of the message that is arriving.
    held: Held,
    /// The bytes of the message that is arriving for which there is room; 0: it has asked for none.
    reserved: u64,
    /// The bytes for which there was no room, if the input is starved.
    wanted: Option<u64>,
}

impl Input {
    /// For a client without a version yet. `before_login`: the longest request until it has logged in, if it has to; a few bytes can
    /// decompress to 250 times as many.
    pub fn new(
        (frame_bytes_max, message_bytes_max): (u64, u64),
        before_login: Option<u64>,
        budget: &Arc<Budget>,
    ) -> Input {
        let max_frame = before_login.map_or(frame_bytes_max, |bytes| bytes.min(frame_bytes_max));
        let envelopes = EnvelopeReader { from: Direction::Request, connection: None, max_frame };
        Input {
            bytes: Vec::new(),
            used: 0,
            received: 0,
            skip: 0,
            envelopes,
            codec: None,
            segments: None,
            frame_bytes_max,
            message_bytes_max,
            before_login,
            payload: Vec::new(),
            payload_used: 0,
            read_bytes: LITTLE_BYTES,
            budget: Arc::clone(budget),
            held: budget.take(0),
            reserved: 0,
            wanted: None,
        }
    }

    /// STARTUP is answered.
    pub fn start(&mut self, version: Version, compression: Option<Compression>) {
        self.envelopes.connection = Some(version);
        if version >= Version::V5 {
            let format = match compression {
                Some(_) => SegmentFormat::Lz4,
                None => SegmentFormat::Plain,
            };
            let mut segments = SegmentReader::new(format, Direction::Request, self.message_bytes_max);
            segments.set_ready(self.before_login.is_none());
            self.segments = Some((format, segments));
        } else {
            self.codec = compression.map(|compression| (compression, BodyCodec::new(compression)));
        }
    }

    /// The client has logged in.
    pub fn log_in(&mut self) {
        self.before_login = None;
        self.envelopes.max_frame = self.frame_bytes_max;
        if let Some((_, segments)) = &mut self.segments {
            segments.set_ready(true);
        }
    }

    /// Goes on where another server of this process has stopped reading. Returns the refusal of a frame whose rest is still to come.
    pub fn resume(&mut self, agreed: Option<&Agreed>, unserved: UnservedInput) -> Option<Refusal> {
        if let Some(agreed) = agreed {
            self.start(agreed.version, agreed.compression);
        }
        if let (Some((_, own)), Some(segments)) = (&mut self.segments, unserved.segments) {
            *own = *segments;
            own.set_ready(self.before_login.is_none());
        }
        self.payload = unserved.envelopes;
        self.bytes = unserved.bytes;
        self.count();
        let (left, refusal) = unserved.skip?;
        self.skip = left;
        Some(refusal)
    }

    /// Reads what the client has sent; 0 at the end. While nothing comes and nothing is unused, no buffer is kept: a connection costs
    /// its client nothing.
    pub async fn fill(&mut self, socket: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<usize> {
        self.bytes.drain(..self.used);
        self.used = 0;
        let most = match self.reserved > 0 {
            // Who it is is not known, and no request of it is longer.
            _ if self.before_login.is_some() => LITTLE_BYTES,
            true => READ_BYTES,
            false if self.budget.is_pressed() => LITTLE_BYTES,
            false => self.read_bytes,
        };
        if let Some((_, segments)) = self.segments.as_mut().filter(|(_, reader)| reader.is_between_messages())
        {
            segments.trim();
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(most);
        }
        let Input { bytes, payload, .. } = &mut *self;
        let read = poll_fn(|context| {
            let read = {
                let mut limited = (&mut *socket).take(most as u64);
                if bytes.capacity() - bytes.len() < most {
                    bytes.reserve(most);
                }
                pin!(limited.read_buf(bytes)).poll(context)
            };
            if read.is_pending() {
                if bytes.is_empty() {
                    *bytes = Vec::new();
                }
                if payload.is_empty() {
                    *payload = Vec::new();
                }
            }
            read
        });
        let read = read.await?;
        self.read_bytes = if read < most { LITTLE_BYTES } else { (4 * most).min(READ_BYTES) };
        self.received += read as u64;
        self.count();
        Ok(read)
    }

    /// Whether a request has begun to arrive and is not whole.
    pub fn has_part(&self) -> bool {
        let is_between = self.segments.as_ref().is_none_or(|(_, reader)| reader.is_between_messages());
        self.bytes.len() > self.used || self.skip > 0 || !is_between
    }

    /// The bytes read in all.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether little has been read that is not used yet, so that more may be read while the client's requests have to wait: a client that
    /// closes its connection is noticed only so. While its login waits that is the little that each connection may keep: many may wait, and
    /// nobody knows who they are.
    pub fn may_read_ahead(&self) -> bool {
        let unused = self.bytes.len().saturating_sub(self.used);
        match self.before_login {
            Some(_) => unused < LITTLE_BYTES,
            None => unused < READ_BYTES && !self.budget.is_pressed(),
        }
    }

    /// Whether a message waits for room, so that nothing is to be read.
    pub fn is_starved(&self) -> bool {
        self.wanted.is_some()
    }

    /// Gives up the room for bytes that have not arrived; it is asked for again. Called before the client waits for its answers: whoever
    /// does not take them would keep it otherwise.
    pub fn leave_room(&mut self) {
        self.reserved = 0;
        self.count();
    }

    /// Waits until a starved input has its room.
    pub async fn room(&mut self) {
        if let Some(wanted) = self.wanted {
            self.held.grow(wanted).await;
            self.found_room(wanted);
        }
    }

    /// Gives up the message for which there was no room in time. Returns its refusal, unless that comes at the message's end.
    pub fn give_up(&mut self) -> Option<Refusal> {
        self.wanted.take()?;
        let (used, max, of) = self.budget.most_used();
        let text = format!(
            "Request breached limit on bytes in flight. (Using {used}/{max} bytes of {of} limit.)Server is currently in an overloaded state \
             and cannot accept more requests."
        );
        let error = WireError::Overloaded { text };
        let input = self.bytes.get(self.used..).unwrap_or_default();
        let refusal = match &mut self.segments {
            Some((_, reader)) if !reader.is_between_messages() => {
                reader.refuse_long(error);
                None
            }
            // Whose requests are in the segment is not known.
            Some(_) => Some(Refusal::fatal(error, 0)),
            None => announced(input).map(|(stream, length)| {
                let then = AfterRefusal::Skip(length);
                Refusal { error, stream, answer_in: None, then }
            }),
        };
        if let Some(Refusal { then: AfterRefusal::Skip(bytes), .. }) = &refusal {
            self.skip = *bytes;
            self.drop_skipped();
        }
        self.finish_message();
        refusal
    }

    /// The next request, or the next refusal; `None`: more must be read, or there must be room.
    pub fn next(&mut self) -> Option<Arrived> {
        loop {
            if let Some(arrived) = self.next_in_payload() {
                return Some(self.unless_too_long(arrived));
            }
            self.drop_skipped();
            if self.skip > 0 || !self.wanted.is_none_or(|wanted| self.has_room(wanted)) {
                return None;
            }
            let found = match self.segments.is_some() {
                true => self.read_segment(),
                false => self.read_bare(),
            };
            match found {
                Ok(Found::Arrived(arrived)) => return Some(self.unless_too_long(arrived)),
                Ok(Found::Payload) => {}
                Ok(Found::Nothing) => return None,
                Err(refusal) => {
                    match refusal.then {
                        AfterRefusal::Skip(bytes) => self.skip += bytes,
                        AfterRefusal::DiscardReceived => self.used = self.bytes.len(),
                        AfterRefusal::Close | AfterRefusal::CloseUnanswered => {}
                    }
                    self.finish_message();
                    return Some(Arrived::Refused(refusal));
                }
            }
        }
    }

    /// The request, or its refusal if it is longer than one may be before the login, in whatever framing it came.
    fn unless_too_long(&self, arrived: Arrived) -> Arrived {
        match (&arrived, self.before_login) {
            (Arrived::Request(header, body, _), Some(bytes_max)) if body.len() as u64 > bytes_max => {
                Arrived::Refused(Refusal::fatal(WireError::TooLongBeforeLogin { bytes_max }, header.stream))
            }
            _ => arrived,
        }
    }

    fn drop_skipped(&mut self) {
        let left = self.bytes.len().saturating_sub(self.used);
        let dropped = left.min(usize::try_from(self.skip).unwrap_or(left));
        self.used += dropped;
        self.skip -= dropped as u64;
    }

    fn read_bare(&mut self) -> Result<Found, Refusal> {
        let input = self.bytes.get(self.used..).unwrap_or_default();
        let Some(envelope) = self.envelopes.read(input)? else {
            let here = input.len();
            if let Some((_, length)) = announced(input)
                && self.has_room(length)
                && self.reserved > 0
            {
                // In one piece, not by doubling.
                let more = usize::try_from(length).unwrap_or_default().saturating_sub(here);
                let ahead = if self.before_login.is_some() { LITTLE_BYTES } else { READ_BYTES };
                self.bytes.reserve_exact(more + ahead);
            }
            return Ok(Found::Nothing);
        };
        let (size, max) = (envelope.size(), self.envelopes.max_frame);
        let unfolded =
            self.codec.as_ref().and_then(|(codec, _)| BodyCodec::decompressed_length(*codec, &envelope));
        // A length that no request may have is refused by the codec.
        let unfolded = unfolded.filter(|length| (READ_BYTES as u64..=max).contains(length));
        if let Some(unfolded) = unfolded
            && !self.has_room(size as u64 + unfolded)
        {
            return Ok(Found::Nothing);
        }
        // Once more, as asking for room has changed this input.
        let input = self.bytes.get(self.used..).unwrap_or_default();
        let Some(envelope) = self.envelopes.read(input)? else { return Ok(Found::Nothing) };
        let arrived = match &mut self.codec {
            Some((_, codec)) => {
                let arrived = body(&envelope, codec.decompress(&envelope, max), &self.budget);
                codec.trim();
                arrived
            }
            None => body(&envelope, Ok(envelope.body), &self.budget),
        };
        self.used += size;
        if size > READ_BYTES {
            self.bytes = self.bytes.get(self.used..).unwrap_or_default().to_vec();
            self.used = 0;
        }
        self.finish_message();
        Ok(Found::Arrived(arrived))
    }

    /// Reads one segment, whose requests are in the payload then, or parts of a long message until it is whole.
    fn read_segment(&mut self) -> Result<Found, Refusal> {
        loop {
            let Some((format, segments)) = &mut self.segments else { return Ok(Found::Nothing) };
            let input = self.bytes.get(self.used..).unwrap_or_default();
            let reader = *segments.envelopes();
            let of_segment = format.size_of_first(input).unwrap_or_default() as u64;
            let wanted = match segments.read(input)? {
                Step::Incomplete => {
                    let wanted = segments.long_message().unwrap_or_default() + of_segment;
                    self.has_room(wanted);
                    return Ok(Found::Nothing);
                }
                Step::Part { used } => {
                    self.used += used;
                    segments.long_message().map_or(0, |length| length + of_segment)
                }
                Step::Envelopes { used, payload, long: true } => {
                    self.used += used;
                    let (arrived, _) = first(reader, payload, &self.budget);
                    segments.trim();
                    self.finish_message();
                    return Ok(Found::Arrived(arrived));
                }
                Step::Envelopes { used, payload, long: false } => {
                    self.used += used;
                    self.payload.extend_from_slice(payload);
                    // Behind it, a long message may still be arriving.
                    match segments.long_message() {
                        None => self.finish_message(),
                        Some(_) => self.count(),
                    }
                    return Ok(Found::Payload);
                }
            };
            if !self.has_room(wanted) {
                return Ok(Found::Nothing);
            }
        }
    }

    /// The next request of a segment.
    fn next_in_payload(&mut self) -> Option<Arrived> {
        let left = self.payload.get(self.payload_used..).filter(|left| !left.is_empty())?;
        let (_, segments) = self.segments.as_ref()?;
        let (arrived, size) = first(*segments.envelopes(), left, &self.budget);
        self.payload_used = self.payload_used.saturating_add(size);
        if self.payload_used >= self.payload.len() {
            self.payload.clear();
            self.payload.shrink_to(LITTLE_BYTES);
            self.payload_used = 0;
            self.count();
        }
        Some(arrived)
    }

    /// Takes room for a message of so many bytes; false: there is none, and the input is starved. The little that any connection may keep
    /// needs none.
    fn has_room(&mut self, length: u64) -> bool {
        let has_room = length <= LITTLE_BYTES as u64 || self.held.try_grow(length);
        match has_room {
            true => self.found_room(length),
            false => {
                self.wanted = Some(length);
                self.count();
            }
        }
        has_room
    }

    fn found_room(&mut self, length: u64) {
        self.wanted = None;
        if length > LITTLE_BYTES as u64 {
            self.reserved = self.reserved.max(length);
        }
    }

    /// The message that was arriving is whole, or is given up.
    fn finish_message(&mut self) {
        self.reserved = 0;
        self.wanted = None;
        self.count();
    }

    /// Counts what is kept, unless there is room for more.
    fn count(&mut self) {
        let assembled = self.segments.as_ref().map_or(0, |(_, reader)| reader.assembled_bytes());
        let of_payload = self.payload.len() - self.payload_used.min(self.payload.len());
        let kept = self.bytes.len() - self.used.min(self.bytes.len()) + of_payload + assembled;
        let counted = if kept > LITTLE_BYTES { kept as u64 } else { 0 };
        self.held.set(counted.max(self.reserved));
    }
}

/// The stream and the whole length of an envelope that has begun to arrive.
fn announced(input: &[u8]) -> Option<(i16, u64)> {
    let &[_, _, high, low, _, a, b, c, d, ..] = input else { return None };
    let length = u64::from(u32::from_be_bytes([a, b, c, d])) + HEADER_LENGTH as u64;
    Some((i16::from_be_bytes([high, low]), length))
}

/// The first request of a payload, and the bytes that it has there.
fn first(reader: EnvelopeReader, payload: &[u8], budget: &Arc<Budget>) -> (Arrived, usize) {
    match reader.read_in_segment(payload) {
        Ok(envelope) => (body(&envelope, Ok(envelope.body), budget), envelope.size()),
        Err(refusal) => {
            let size = match refusal.then {
                AfterRefusal::Skip(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            (Arrived::Refused(refusal), size)
        }
    }
}

fn body(envelope: &Envelope<'_>, decompressed: Result<&[u8], WireError>, budget: &Arc<Budget>) -> Arrived {
    match decompressed {
        Ok(body) => {
            Arrived::Request(envelope.header, body.to_vec(), budget.take(REQUEST_BYTES + body.len() as u64))
        }
        Err(error) => {
            let then = AfterRefusal::Skip(0);
            Arrived::Refused(Refusal { error, stream: envelope.header.stream, answer_in: None, then })
        }
    }
}

#[cfg(test)]
mod tests;
