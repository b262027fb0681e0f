//! Segments, which contain the envelopes in v5 once STARTUP is answered, in both directions.
//!
//! ```text
//! plain   17 bits payload length, 1 bit self-contained, 6 bits 0         | CRC24 | payload            | CRC32
//! LZ4     17 bits compressed, 17 bits uncompressed length, 1 bit, 5 bits | CRC24 | compressed payload | CRC32
//! ```
//! Header and checksums are little endian, unlike everything else. A self-contained segment contains one or more
//! complete envelopes. A message that is too long for one is split over segments that are not self-contained and
//! contain nothing else. Self-contained segments may come between two parts of a long message (Cassandra's
//! `CQLMessageHandler` accepts that). In an LZ4 segment, an uncompressed length of 0 means that the payload would not
//! get shorter and is stored uncompressed. Sources: `FrameDecoderCrc`, `FrameDecoderLZ4`, `FrameEncoder*`, `Flusher`.

use super::checksum::{crc24, crc32};
use super::compress::sized;
use super::frame::size_of_first;
use super::{AfterRefusal, Direction, EnvelopeReader, HEADER_LENGTH, Refusal, Version};
use crate::{SegmentPart, WireError};

/// The greatest value of a segment's 17-bit length.
const LENGTH_MASK: u64 = (1 << 17) - 1;
/// The most payload bytes of a segment: Cassandra's value, 128 KiB less the longer header and trailer.
pub const MAX_PAYLOAD: usize = (1 << 17) - 12;
const TRAILER_LENGTH: usize = 4;

/// The payload of a part of a long message: with header and checksum, a plain segment has 31 times 4096 bytes.
///
/// The Python driver reads 4096 bytes at a time and loses the first bytes of a segment's header if no more have arrived
/// yet (PYTHON-1337, in 3.30.1 still). With parts of [`MAX_PAYLOAD`], the second header lies across such a border, and
/// across one of TLS's records. With this length no header does.
pub const PART_PAYLOAD: usize = 31 * 4096 - 10;

/// The two formats of segments, selected by STARTUP's COMPRESSION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentFormat {
    /// The payload is not compressed.
    Plain,
    /// The payload is compressed with LZ4.
    Lz4,
}

impl SegmentFormat {
    fn header_length(self) -> usize {
        match self {
            SegmentFormat::Plain => 6,
            SegmentFormat::Lz4 => 8,
        }
    }

    /// The payload's length and the other bits of a segment's header without its checksum.
    fn payload_length(lengths: &[u8]) -> (usize, u64) {
        let bits = little_endian(lengths);
        ((bits & LENGTH_MASK) as usize, bits >> 17)
    }

    /// The number of bytes of the segment at the front of `bytes`, which a [`SegmentWriter`] has written; `None` if its
    /// header is incomplete.
    pub fn size_of_first(self, bytes: &[u8]) -> Option<usize> {
        let (payload, _) = SegmentFormat::payload_length(bytes.get(..self.header_length() - 3)?);
        Some(self.header_length() + payload + TRAILER_LENGTH)
    }

    /// The segments of `bytes`, which a [`SegmentWriter`] has written: each is to be sent by a write of its own, so that it
    /// begins a record of TLS (see [`PART_PAYLOAD`]).
    pub fn split(self, mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        std::iter::from_fn(move || {
            let size = self.size_of_first(bytes).unwrap_or(bytes.len()).min(bytes.len());
            let (segment, rest) = bytes.split_at_checked(size).filter(|(segment, _)| !segment.is_empty())?;
            bytes = rest;
            Some(segment)
        })
    }
}

/// A segment with correct checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Whether it contains complete envelopes only.
    pub self_contained: bool,
    /// The payload as on the wire.
    pub payload: &'a [u8],
    /// Length after decompression; `None` if the payload is not compressed.
    pub decompressed_length: Option<usize>,
    /// Bytes of the whole segment.
    pub size: usize,
}

impl<'a> Segment<'a> {
    /// Reads one segment from `input`; `None` if it is incomplete.
    pub fn read(input: &'a [u8], format: SegmentFormat) -> Result<Option<Segment<'a>>, WireError> {
        let header_length = format.header_length();
        let Some((header, rest)) = input.split_at_checked(header_length) else { return Ok(None) };
        let Some((lengths, header_crc)) = header.split_last_chunk::<3>() else { return Ok(None) };
        let read = little_endian(header_crc) as u32;
        let computed = crc24(lengths);
        if read != computed {
            return Err(WireError::SegmentCrc { part: SegmentPart::Header, read, computed });
        }
        let (length, bits) = SegmentFormat::payload_length(lengths);
        let (flag, unfolded) = match format {
            SegmentFormat::Plain => (0, 0),
            SegmentFormat::Lz4 => (17, (bits & LENGTH_MASK) as usize),
        };
        let Some((payload, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let Some(trailer) = rest.first_chunk::<TRAILER_LENGTH>() else { return Ok(None) };
        let read = u32::from_le_bytes(*trailer);
        let computed = crc32(payload);
        if read != computed {
            return Err(WireError::SegmentCrc { part: SegmentPart::Body, read, computed });
        }
        Ok(Some(Segment {
            self_contained: bits >> flag & 1 == 1,
            payload,
            decompressed_length: (unfolded != 0).then_some(unfolded),
            size: header_length + length + TRAILER_LENGTH,
        }))
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// One step of a [`SegmentReader`]. `used` is the number of bytes to drop from the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The input does not contain a complete segment.
    Incomplete,
    /// A part of a long message, which the reader keeps.
    Part {
        /// Bytes of input used.
        used: usize,
    },
    /// Complete envelopes, to be read one by one with [`EnvelopeReader::read_in_segment`]; may be empty.
    Envelopes {
        /// Bytes of input used.
        used: usize,
        /// The envelopes, one after the other.
        payload: &'a [u8],
        /// Whether this is one long message, assembled from its parts.
        long: bool,
    },
}

/// Reads segments and assembles long messages, for one direction of one connection.
#[derive(Debug)]
pub struct SegmentReader {
    format: SegmentFormat,
    envelopes: EnvelopeReader,
    /// Most bytes in the body of a long message.
    max_message: u64,
    /// Whether long messages are allowed yet.
    ready: bool,
    /// The buffer for decompressed payloads.
    decompressed: Vec<u8>,
    /// The long message that is being received. Its buffer is reused if it is not much longer than a segment.
    long: Option<LongMessage>,
    assembled: Vec<u8>,
}

#[derive(Clone, Debug)]
struct LongMessage {
    expected: u64,
    received: u64,
    stream: i16,
    /// The refusal to be reported at the end of the message; its parts are not kept.
    refused: Option<WireError>,
}

impl SegmentReader {
    /// A reader of segments sent by the side `from`. `max_message` limits the body of messages in several segments
    /// (`native_transport_max_message_size`, 16 MiB by default).
    pub fn new(format: SegmentFormat, from: Direction, max_message: u64) -> Self {
        let envelopes = EnvelopeReader { from, connection: Some(Version::V5), max_frame: u64::MAX };
        SegmentReader {
            format,
            envelopes,
            max_message,
            ready: true,
            decompressed: Vec::new(),
            long: None,
            assembled: Vec::new(),
        }
    }

    /// Sets whether authentication is over. Until then, Cassandra accepts no message in several segments. A new reader
    /// accepts them.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// The full length of the incoming long message, header included, for memory accounting; `None` between messages,
    /// and for a message that is not kept.
    pub fn long_message(&self) -> Option<u64> {
        self.long.as_ref().filter(|long| long.refused.is_none()).map(|long| long.expected)
    }

    /// The stream of the incoming long message; `None` as for its length.
    pub fn long_stream(&self) -> Option<i16> {
        self.long.as_ref().filter(|long| long.refused.is_none()).map(|long| long.stream)
    }

    /// The bytes of the incoming long message that are kept.
    pub fn assembled_bytes(&self) -> usize {
        self.assembled.len()
    }

    /// Drops the incoming long message, including the parts that are yet to arrive; `error` is the refusal at its end.
    /// Cassandra's `LargeMessage` does the same when there is no room.
    pub fn refuse_long(&mut self, error: WireError) {
        if let Some(long) = &mut self.long {
            long.refused.get_or_insert(error);
            self.assembled = Vec::new();
        }
    }

    /// Frees the buffers: that of decompressed segments, and that of long messages unless one is incomplete. Called once the payload of
    /// the last step is not needed any more.
    pub fn trim(&mut self) {
        self.decompressed = Vec::new();
        if self.long.is_none() {
            self.assembled = Vec::new();
        }
    }

    /// Whether no long message is incomplete. The reader may then be replaced by a new one, which frees its buffers.
    pub fn is_between_messages(&self) -> bool {
        self.long.is_none()
    }

    /// The reader for the envelopes inside.
    pub fn envelopes(&self) -> &EnvelopeReader {
        &self.envelopes
    }

    /// Reads the first segment of `input`.
    ///
    /// A refusal with [`AfterRefusal::Skip`] counts bytes of `input`. A wrong checksum closes the connection, as in Cassandra,
    /// even if the bytes of the segment could be skipped, because it is unknown whose answers were lost.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a>, Refusal> {
        let fatal = |error| Refusal::fatal(error, 0);
        let Some(segment) = Segment::read(input, self.format).map_err(fatal)? else {
            return Ok(Step::Incomplete);
        };
        let used = segment.size;
        let payload = match segment.decompressed_length {
            None => segment.payload,
            Some(length) => decompress(&mut self.decompressed, segment.payload, length).map_err(fatal)?,
        };
        if segment.self_contained {
            return Ok(Step::Envelopes { used, payload, long: false });
        }
        let mut long = match self.long.take() {
            Some(long) => long,
            None => {
                self.assembled.clear();
                self.assembled.shrink_to(4 * MAX_PAYLOAD);
                begin_long(&self.envelopes, payload, self.ready, self.max_message)?
            }
        };
        long.received += payload.len() as u64;
        if long.received > long.expected {
            let error = WireError::LargeMessageOverrun { expected: long.expected, received: long.received };
            return Err(Refusal::fatal(error, long.stream));
        }
        if long.refused.is_none() {
            // The first part announces the length, and the caller has made room for it before the second comes. So the buffer gets this
            // length, where doubling could make it twice as long.
            if !self.assembled.is_empty() {
                let more = long.expected.saturating_sub(self.assembled.len() as u64);
                self.assembled.reserve_exact(usize::try_from(more).unwrap_or_default());
            }
            self.assembled.extend_from_slice(payload);
        }
        if long.received < long.expected {
            self.long = Some(long);
            return Ok(Step::Part { used });
        }
        match long.refused {
            None => Ok(Step::Envelopes { used, payload: &self.assembled, long: true }),
            Some(error) => Err(Refusal {
                error,
                stream: long.stream,
                answer_in: None,
                then: AfterRefusal::Skip(used as u64),
            }),
        }
    }
}

fn begin_long(
    envelopes: &EnvelopeReader,
    payload: &[u8],
    ready: bool,
    max_message: u64,
) -> Result<LongMessage, Refusal> {
    // A fault in the first segment cannot be skipped, because the message's other segments would be taken for messages.
    let header = envelopes.read_header_in_segment(payload).map_err(|refusal| Refusal {
        stream: 0,
        then: AfterRefusal::Close,
        ..refusal
    })?;
    if !ready {
        let error = WireError::LargeBeforeReady { opcode: header.opcode, length: header.length };
        return Err(Refusal::fatal(error, 0));
    }
    let length = u64::from(header.length);
    Ok(LongMessage {
        expected: HEADER_LENGTH as u64 + length,
        received: 0,
        stream: header.stream,
        refused: (length > max_message).then_some(WireError::MessageTooBig { length, max: max_message }),
    })
}

fn decompress<'a>(buffer: &'a mut Vec<u8>, compressed: &[u8], length: usize) -> Result<&'a [u8], WireError> {
    let output = sized(buffer, length);
    match lz4_flex::block::decompress_into(compressed, output) {
        Ok(written) if written == length => Ok(output),
        _ => Err(WireError::NotLz4 { announced: length as u64, compressed: compressed.len() as u64 }),
    }
}

/// Puts envelopes into segments, for one direction of one connection.
#[derive(Debug)]
pub struct SegmentWriter {
    format: SegmentFormat,
    buffer: Vec<u8>,
}

/// Envelopes that are being appended to a buffer, to be closed into segments.
#[derive(Debug)]
#[must_use = "envelopes outside a segment cannot be read in v5"]
pub struct OpenSegment {
    start: usize,
}

impl SegmentWriter {
    /// A writer of segments of `format`.
    pub fn new(format: SegmentFormat) -> Self {
        SegmentWriter { format, buffer: Vec::new() }
    }

    /// Begins a sequence of envelopes at the end of `out`; append them and call [`SegmentWriter::close`]. A sequence
    /// that fits into one plain segment is never copied.
    pub fn open(&self, out: &mut Vec<u8>) -> OpenSegment {
        let start = out.len();
        out.resize(start + self.format.header_length(), 0);
        OpenSegment { start }
    }

    /// Closes a sequence: each self-contained segment gets as many complete envelopes as fit, and longer envelopes are
    /// split.
    pub fn close(&mut self, open: OpenSegment, out: &mut Vec<u8>) {
        let payload_start = open.start + self.format.header_length();
        let length = out.len().saturating_sub(payload_start);
        if length == 0 {
            out.truncate(open.start);
        } else if length <= MAX_PAYLOAD && self.format == SegmentFormat::Plain {
            let checksum = crc32(out.get(payload_start..).unwrap_or_default());
            let header = plain_header(length, true);
            if let Some(place) = out.get_mut(open.start..payload_start) {
                place.copy_from_slice(&header);
            }
            out.extend_from_slice(&checksum.to_le_bytes());
        } else {
            let mut run = std::mem::take(&mut self.buffer);
            run.clear();
            run.extend_from_slice(out.get(payload_start..).unwrap_or_default());
            out.truncate(open.start);
            self.append(&run, out);
            run.shrink_to(4 * MAX_PAYLOAD);
            self.buffer = run;
        }
    }

    /// Appends segments with `envelopes`, which are complete and follow one another.
    pub fn append(&mut self, envelopes: &[u8], out: &mut Vec<u8>) {
        let mut left = envelopes;
        while !left.is_empty() {
            let (run, self_contained) = next_run(left);
            let (run, rest) = left.split_at_checked(run).unwrap_or((left, &[]));
            if self_contained {
                self.append_segment(run, true, out);
            } else {
                run.chunks(PART_PAYLOAD).for_each(|part| self.append_segment(part, false, out));
            }
            left = rest;
        }
    }

    /// Appends a part of an envelope that is longer than a segment. The parts must follow one another with nothing
    /// between them; each but the last should have [`PART_PAYLOAD`] bytes.
    pub fn append_part(&mut self, part: &[u8], out: &mut Vec<u8>) {
        self.append_segment(part, false, out);
    }

    /// Appends one segment; `payload` must be at most [`MAX_PAYLOAD`] bytes.
    fn append_segment(&mut self, payload: &[u8], self_contained: bool, out: &mut Vec<u8>) {
        assert!(payload.len() <= MAX_PAYLOAD, "a segment's length has 17 bits");
        let payload_start = out.len() + self.format.header_length();
        match self.format {
            SegmentFormat::Plain => {
                out.extend_from_slice(&plain_header(payload.len(), self_contained));
                out.extend_from_slice(payload);
            }
            SegmentFormat::Lz4 => {
                let start = out.len();
                let most = lz4_flex::block::get_maximum_output_size(payload.len());
                out.resize(payload_start + most, 0);
                let output = out.get_mut(payload_start..).unwrap_or_default();
                let folded = lz4_flex::block::compress_into(payload, output).ok();
                let header = match folded.filter(|folded| *folded < payload.len()) {
                    Some(folded) => {
                        out.truncate(payload_start + folded);
                        lz4_header(folded, payload.len(), self_contained)
                    }
                    None => {
                        out.truncate(payload_start);
                        out.extend_from_slice(payload);
                        lz4_header(payload.len(), 0, self_contained)
                    }
                };
                if let Some(place) = out.get_mut(start..payload_start) {
                    place.copy_from_slice(&header);
                }
            }
        }
        let checksum = crc32(out.get(payload_start..).unwrap_or_default());
        out.extend_from_slice(&checksum.to_le_bytes());
    }
}

/// The number of bytes of `envelopes` for the next segment, and whether it is self-contained.
fn next_run(envelopes: &[u8]) -> (usize, bool) {
    let mut run = 0;
    while let Some(size) = envelopes.get(run..).and_then(size_of_first) {
        if run + size > MAX_PAYLOAD {
            return if run == 0 { (size, false) } else { (run, true) };
        }
        run += size;
    }
    debug_assert_eq!(run, envelopes.len(), "only whole envelopes go into segments");
    (run.max(1), true)
}

fn plain_header(length: usize, self_contained: bool) -> [u8; 6] {
    let bits = length as u32 | u32::from(self_contained) << 17;
    let [b0, b1, b2, _] = bits.to_le_bytes();
    let [c0, c1, c2, _] = crc24(&[b0, b1, b2]).to_le_bytes();
    [b0, b1, b2, c0, c1, c2]
}

fn lz4_header(folded: usize, unfolded: usize, self_contained: bool) -> [u8; 8] {
    let bits = folded as u64 | (unfolded as u64) << 17 | u64::from(self_contained) << 34;
    let [b0, b1, b2, b3, b4, ..] = bits.to_le_bytes();
    let [c0, c1, c2, _] = crc24(&[b0, b1, b2, b3, b4]).to_le_bytes();
    [b0, b1, b2, b3, b4, c0, c1, c2]
}

#[cfg(test)]
mod tests;
