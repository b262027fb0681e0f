//! Cuts the input of a connection into envelopes, and puts envelopes into segments, in all versions.

use std::io;
use std::sync::Arc;

use helenus_wire::WireError;
use helenus_wire::native::{
    AfterRefusal, BodyCodec, Compression, Direction, EnvelopeReader, HEADER_LENGTH, Header, Refusal,
    SegmentFormat, SegmentReader, SegmentWriter, Step, Version,
};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::answer_room::{AnswerRoom, ROOM_FROM, Taken};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// The compression of bodies in v3 and v4.
const COMPRESSION: Compression = Compression::Lz4;

/// Takes an envelope's header and body, decompressed, and the room of a long one. Returns whether it wants more.
type Take<'t> = &'t mut dyn FnMut(&Header, &[u8], Option<&Arc<Taken>>) -> bool;

/// Reads answers.
pub(super) struct Deframer {
    input: Vec<u8>,
    /// Bytes of `input` that are used.
    used: usize,
    envelopes: EnvelopeReader,
    codec: Option<BodyCodec>,
    /// Since v5, once STARTUP is answered.
    segments: Option<SegmentReader>,
    bytes_max: u64,
    room: Arc<AnswerRoom>,
    /// The room of the answer that is arriving, if it is a long one.
    taken: Option<Taken>,
    /// Bytes of an answer without room that are still to come.
    skip: u64,
    /// The streams of answers that were too long, and the reasons.
    refused: Vec<(i16, String)>,
}

impl Deframer {
    /// A reader for a connection that has no version yet.
    pub fn new(bytes_max: u64, room: &Arc<AnswerRoom>) -> Deframer {
        let envelopes = EnvelopeReader { from: Direction::Response, connection: None, max_frame: bytes_max };
        Deframer {
            input: Vec::new(),
            used: 0,
            envelopes,
            codec: None,
            segments: None,
            bytes_max,
            room: Arc::clone(room),
            taken: None,
            skip: 0,
            refused: Vec::new(),
        }
    }

    /// STARTUP is answered: from now on all messages have this version, and the compression that was asked for.
    pub fn start(&mut self, version: Version, compress: bool) {
        self.envelopes.connection = Some(version);
        if version >= Version::V5 {
            let format = segment_format(compress);
            self.segments = Some(SegmentReader::new(format, Direction::Response, self.bytes_max));
        } else if compress {
            self.codec = Some(BodyCodec::new(COMPRESSION));
        }
    }

    /// As [`Deframer::start`] for the answer to STARTUP itself, which may be compressed in v3 and v4.
    pub fn expect_compressed(&mut self) {
        self.codec = Some(BodyCodec::new(COMPRESSION));
    }

    /// Reads what has arrived; 0 at the end of the input.
    pub async fn fill(&mut self, socket: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<usize> {
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        if self.input.is_empty() {
            self.input.shrink_to(4 * READ_BYTES);
        }
        self.input.reserve(READ_BYTES);
        socket.read_buf(&mut self.input).await
    }

    /// The streams of answers that were dropped since the last call, each with the reason.
    pub fn take_refused(&mut self) -> Vec<(i16, String)> {
        std::mem::take(&mut self.refused)
    }

    /// The stream of the answer that is arriving, if it has room of its own.
    pub fn arriving(&self) -> Option<i16> {
        self.taken.as_ref()?;
        match &self.segments {
            Some(segments) => segments.long_stream(),
            None => Some(announced(self.input.get(self.used..).unwrap_or_default())?.0),
        }
    }

    /// Gives up the answer that is arriving: its room and its bytes, and what of it is still to come. It counts as refused.
    pub fn give_up(&mut self) {
        let error = WireError::Overloaded { text: "nobody waits for it any more".to_owned() };
        if let Some(segments) = &mut self.segments {
            segments.refuse_long(error);
        } else if let Some((stream, length)) = announced(self.input.get(self.used..).unwrap_or_default()) {
            let left = self.input.len().saturating_sub(self.used) as u64;
            self.skip = length.saturating_sub(left);
            (self.input, self.used) = (Vec::new(), 0);
            self.refused.push((stream, error.to_string()));
        }
        self.taken = None;
    }

    /// Calls `take` with each complete envelope, its body, decompressed, and its room, until it says to stop.
    ///
    /// # Errors
    /// The node does not send the protocol: the connection cannot go on.
    pub fn each(
        &mut self,
        mut take: impl FnMut(&Header, &[u8], Option<&Arc<Taken>>) -> bool,
    ) -> Result<(), WireError> {
        loop {
            if self.skip > 0 {
                let left = self.input.len().saturating_sub(self.used);
                let dropped = left.min(usize::try_from(self.skip).unwrap_or(left));
                self.used += dropped;
                self.skip -= dropped as u64;
                if self.skip > 0 {
                    return Ok(());
                }
            }
            let goes_on = match self.segments.is_some() {
                true => self.next_segment(&mut take)?,
                false => self.next_bare(&mut take)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Takes one envelope outside of segments. Returns whether there may be another.
    fn next_bare(&mut self, take: Take<'_>) -> Result<bool, WireError> {
        let input = self.input.get(self.used..).unwrap_or_default();
        match self.envelopes.read(input) {
            Ok(Some(envelope)) => {
                let (size, stream) = (envelope.size(), envelope.header.stream);
                let unfolded =
                    self.codec.as_ref().and(BodyCodec::decompressed_length(COMPRESSION, &envelope));
                // A length that no answer may have is refused by the codec.
                let unfolded = unfolded.filter(|length| (ROOM_FROM..=self.bytes_max).contains(length));
                let length = size as u64 + unfolded.unwrap_or_default();
                let has_room = length <= ROOM_FROM || has_room(&self.room, &mut self.taken, length);
                let mut goes_on = true;
                if has_room {
                    let body = match &mut self.codec {
                        Some(codec) => codec.decompress(&envelope, self.bytes_max)?,
                        None => envelope.body,
                    };
                    let taken = self.taken.take().map(Arc::new);
                    goes_on = take(&envelope.header, body, taken.as_ref());
                    self.taken_over(size, taken);
                } else {
                    self.refuse_without_room(stream, length);
                    self.taken_over(size, None);
                }
                Ok(goes_on)
            }
            Ok(None) => {
                let announced = announced(input).filter(|(_, length)| *length > ROOM_FROM);
                let Some((stream, length)) = announced.filter(|_| self.taken.is_none()) else {
                    return Ok(false);
                };
                if has_room(&self.room, &mut self.taken, length) {
                    // In one piece, not by doubling.
                    let more = usize::try_from(length).unwrap_or_default().saturating_sub(input.len());
                    self.input.reserve_exact(more + READ_BYTES);
                } else {
                    self.skip = length;
                    self.refuse_without_room(stream, length);
                }
                Ok(self.skip > 0)
            }
            // Only the length of an answer is a matter of its request alone. Behind any other fault, nothing that the node says is to be
            // believed.
            Err(Refusal {
                error: error @ WireError::RequestTooBig { .. },
                stream,
                then: AfterRefusal::Skip(bytes),
                ..
            }) => {
                self.skip = bytes;
                self.refused.push((stream, error.to_string()));
                Ok(true)
            }
            Err(refusal) => Err(refusal.error),
        }
    }

    fn refuse_without_room(&mut self, stream: i16, length: u64) {
        let error = WireError::MessageTooBig { length, max: self.room.max() };
        self.refused.push((stream, error.to_string()));
    }

    /// Passes over the envelope that was handed over. `taken`: its room, which is given back after the buffers that it was for.
    fn taken_over(&mut self, size: usize, taken: Option<Arc<Taken>>) {
        self.used += size;
        if let Some(codec) = &mut self.codec {
            codec.trim();
        }
        if size as u64 > ROOM_FROM {
            self.input = self.input.get(self.used..).unwrap_or_default().to_vec();
            self.used = 0;
        }
        self.taken = None;
        drop(taken);
    }

    /// Takes the envelopes of one segment. Returns whether there may be another.
    fn next_segment(&mut self, take: Take<'_>) -> Result<bool, WireError> {
        let Some(segments) = &mut self.segments else { return Ok(false) };
        let input = self.input.get(self.used..).unwrap_or_default();
        let reader = *segments.envelopes();
        match segments.read(input) {
            Ok(Step::Incomplete) => return Ok(false),
            Ok(Step::Part { used }) => self.used += used,
            Ok(Step::Envelopes { used, mut payload, long }) => {
                self.used += used;
                let taken = self.taken.take_if(|_| long).map(Arc::new);
                while !payload.is_empty() {
                    let envelope = reader.read_in_segment(payload).map_err(|refusal| refusal.error)?;
                    take(&envelope.header, envelope.body, taken.as_ref());
                    payload = payload.get(envelope.size()..).unwrap_or_default();
                }
                if long {
                    // Before its room is given back.
                    segments.trim();
                }
                drop(taken);
                return Ok(true);
            }
            Err(Refusal { error, stream, then: AfterRefusal::Skip(bytes), .. }) => {
                self.skip = bytes;
                self.taken = None;
                self.refused.push((stream, error.to_string()));
                return Ok(true);
            }
            Err(refusal) => return Err(refusal.error),
        }
        let length = segments.long_message().filter(|length| *length > ROOM_FROM);
        if let Some(length) = length.filter(|_| self.taken.is_none())
            && !has_room(&self.room, &mut self.taken, length)
        {
            segments.refuse_long(WireError::MessageTooBig { length, max: self.room.max() });
        }
        Ok(true)
    }
}

/// Takes room for an answer of this length, or as much more as it needs now.
fn has_room(room: &Arc<AnswerRoom>, taken: &mut Option<Taken>, length: u64) -> bool {
    match taken {
        Some(taken) => taken.try_grow(length),
        none => {
            *none = room.try_take(length);
            none.is_some()
        }
    }
}

/// The stream and the whole length of an envelope that has begun to arrive.
fn announced(input: &[u8]) -> Option<(i16, u64)> {
    let &[_, _, high, low, _, a, b, c, d, ..] = input else { return None };
    let length = u64::from(u32::from_be_bytes([a, b, c, d])) + HEADER_LENGTH as u64;
    Some((i16::from_be_bytes([high, low]), length))
}

/// Prepares envelopes for the socket.
pub(super) struct Framer {
    segments: Option<SegmentWriter>,
}

impl Framer {
    /// For a connection of this version whose STARTUP is answered.
    pub fn new(version: Version, compress: bool) -> Framer {
        let segments = (version >= Version::V5).then(|| SegmentWriter::new(segment_format(compress)));
        Framer { segments }
    }

    /// The bytes to write for these envelopes; `buffer` is used where they have to be copied.
    pub fn frame<'a>(&mut self, envelopes: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        match &mut self.segments {
            None => envelopes,
            Some(writer) => {
                buffer.clear();
                writer.append(envelopes, buffer);
                buffer
            }
        }
    }
}

fn segment_format(compress: bool) -> SegmentFormat {
    if compress { SegmentFormat::Lz4 } else { SegmentFormat::Plain }
}

#[cfg(test)]
mod tests;
