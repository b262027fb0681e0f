//! The envelope, a header of nine bytes and a body: reading it from a stream, refusing it, and writing it.
//!
//! ```text
//!  byte 0        version, top bit set in responses
//!  byte 1        flags
//!  bytes 2..4    stream, signed
//!  byte 4        opcode
//!  bytes 5..9    length of the body
//! ```
//! v3 and v4 send envelopes bare. v5 does so until STARTUP is answered, and then puts them into segments (`segment`).
//! The behaviour after a refusal was measured on Cassandra 5.0.9: it answers and keeps the connection open, except for
//! wrong checksums, negative lengths, and versions whose stream is unknown, so that it cannot answer. Clients then
//! close the connection themselves.

use super::primitives::{Put, patch_int};
use super::response::put_supported;
use super::{BodyCodec, Direction, ErrorCode, Flags, Opcode, SUPPORTED_CQL, Version};
use crate::{WireError, error_text};

/// Bytes of a header, v3 and later.
pub const HEADER_LENGTH: usize = 9;

/// `native_transport_max_frame_size` of Cassandra 5.0.9: 16 MiB, header included.
pub const DEFAULT_MAX_FRAME: u64 = 16 << 20;

/// The longest message before STARTUP and the login, which have a name, a password and some options: as it arrives, and as it
/// is once it is decompressed. So short that a server needs no room among the requests in flight for it, which strangers would take from
/// clients. Ours: Cassandra has none.
pub const BEFORE_LOGIN_BYTES_MAX: u64 = 4 << 10;

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of this message.
    pub version: Version,
    /// Flags as sent.
    pub flags: Flags,
    /// The stream, which the answer repeats; -1 for events.
    pub stream: i16,
    /// The kind of message in the body.
    pub opcode: Opcode,
    /// Bytes of the body on the wire.
    pub length: u32,
}

/// A complete message, borrowed from the input buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The header.
    pub header: Header,
    /// The body as received, compressed if the flag says so.
    pub body: &'a [u8],
}

impl Envelope<'_> {
    /// Bytes of this envelope in the input.
    pub fn size(&self) -> usize {
        HEADER_LENGTH + self.body.len()
    }
}

/// What to do with the input after a refusal has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRefusal {
    /// Drop this many bytes from the beginning of the refused envelope, including those that are yet to arrive, and
    /// continue. Cassandra answers an oversized request only once its bytes are dropped.
    Skip(u64),
    /// Drop all bytes that have been received, because the length of the message is unknown.
    DiscardReceived,
    /// Answer and close, because no message after this point can be located.
    Close,
    /// Close without an answer, because the stream for it is unknown.
    CloseUnanswered,
}

/// A message that was refused, and how to answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, and the text for the client.
    pub error: WireError,
    /// The stream of the answer; 0 where Cassandra has not read the stream yet.
    pub stream: i16,
    /// The version of the answer, if it is neither the connection's nor the current one: Cassandra answers versions 1,
    /// 2 and a beta version in the same version.
    pub answer_in: Option<u8>,
    /// What to do with the input.
    pub then: AfterRefusal,
}

impl Refusal {
    /// A refusal on `stream` that closes the connection.
    pub fn fatal(error: WireError, stream: i16) -> Self {
        Refusal { error, stream, answer_in: None, then: AfterRefusal::Close }
    }

    /// Whether the client's message is at fault.
    pub fn is_error(&self) -> bool {
        self.error != WireError::OptionsOfBeta
    }

    /// Appends the complete ERROR envelope, or SUPPORTED as the answer to `OptionsOfBeta`. `connection` is the version agreed by STARTUP; without it, the answer has
    /// the current version (5). In an established v5 connection, the caller puts it into a segment.
    pub fn encode(&self, connection: Option<Version>, out: &mut Vec<u8>) {
        let version = self.answer_in.unwrap_or(connection.unwrap_or(Version::CURRENT).number());
        out.put_byte(version | Direction::Response.bit());
        out.put_byte(if version == 6 { Flags::USE_BETA } else { 0 });
        if version < 3 {
            out.put_byte(self.stream as u8);
        } else {
            out.put_raw(&self.stream.to_be_bytes());
        }
        if !self.is_error() {
            out.put_byte(Opcode::Supported as u8);
            let length_at = out.len();
            out.put_int(0);
            put_supported(out, SUPPORTED_CQL);
            let length = out.len() - length_at - 4;
            patch_int(out, length_at, length as i32);
            return;
        }
        out.put_byte(Opcode::Error as u8);
        let length_at = out.len();
        out.put_int(0);
        let code = self.error.code();
        out.put_int(code.number());
        debug_assert!(
            matches!(code, ErrorCode::Protocol | ErrorCode::Invalid | ErrorCode::Overloaded),
            "a code without further fields"
        );
        out.put_string(&error_text(&self.error.to_string()));
        let length = out.len() - length_at - 4;
        patch_int(out, length_at, length as i32);
    }
}

/// Reads envelopes from the input of one connection.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeReader {
    /// The side that sends the messages: a server reads requests.
    pub from: Direction,
    /// The version that every message must have; `None` before STARTUP.
    pub connection: Option<Version>,
    /// Longest envelope in bytes, header included.
    pub max_frame: u64,
}

impl EnvelopeReader {
    /// Reads a bare envelope; `None` if `input` is incomplete. Makes Cassandra's checks in Cassandra's order. The
    /// version is checked from the first byte alone, because versions 1 and 2 have a shorter header.
    pub fn read<'a>(&self, input: &'a [u8]) -> Result<Option<Envelope<'a>>, Refusal> {
        let Some(&first) = input.first() else { return Ok(None) };
        let raw = RawHeader::read(input);
        if first & 0x7F == 6 && raw.is_none() {
            return Ok(None); // the flag decides the text
        }
        let (flags, then) = raw
            .as_ref()
            .map_or((0, AfterRefusal::CloseUnanswered), |raw| (raw.flags, AfterRefusal::DiscardReceived));
        if let Some(answer) = raw.as_ref().and_then(|raw| self.options_of_beta(raw)) {
            return Err(answer);
        }
        let version = version_of(first, flags, then)
            .map_err(|refusal| Refusal { stream: stream_of_any_version(input), ..refusal })?;
        let Some(raw) = raw else { return Ok(None) };
        let skip = |length: u64| AfterRefusal::Skip(HEADER_LENGTH as u64 + length);
        let refuse = |error, then| Refusal { error, stream: raw.stream, answer_in: None, then };

        let Ok(length) = u32::try_from(raw.length) else {
            return Err(refuse(WireError::NegativeBodyLength { length: raw.length }, AfterRefusal::Close));
        };
        let opcode = self.opcode_of(&raw).map_err(|error| refuse(error, skip(u64::from(length))))?;
        let total = HEADER_LENGTH as u64 + u64::from(length);
        if total > self.max_frame {
            let error = WireError::RequestTooBig { length: total, max: self.max_frame };
            return Err(refuse(error, AfterRefusal::Skip(total)));
        }
        let Some(body) = body_of(input, length) else { return Ok(None) };
        self.check_version(version).map_err(|error| refuse(error, AfterRefusal::Skip(total)))?;
        let header = Header { version, flags: Flags(raw.flags), stream: raw.stream, opcode, length };
        Ok(Some(Envelope { header, body }))
    }

    /// Reads the header of an envelope inside v5 segments, where a negative length is reported before all other faults.
    pub fn read_header_in_segment(&self, payload: &[u8]) -> Result<Header, Refusal> {
        let Some(raw) = RawHeader::read(payload) else {
            let error =
                WireError::EnvelopeBeyondSegment { needed: HEADER_LENGTH as u64, left: payload.len() as u64 };
            return Err(Refusal::fatal(error, 0));
        };
        let Ok(length) = u32::try_from(raw.length) else {
            return Err(Refusal::fatal(WireError::NegativeBodyLength { length: raw.length }, raw.stream));
        };
        let then = AfterRefusal::Skip(HEADER_LENGTH as u64 + u64::from(length));
        let refuse = |error| Refusal { error, stream: raw.stream, answer_in: None, then };
        let version = version_of(raw.version, raw.flags, then)
            .map_err(|refusal| Refusal { stream: raw.stream, ..refusal })?;
        let opcode = self.opcode_of(&raw).map_err(refuse)?;
        self.check_version(version).map_err(refuse)?;
        Ok(Header { version, flags: Flags(raw.flags), stream: raw.stream, opcode, length })
    }

    /// Reads the first envelope in the payload of a self-contained segment, which must contain it completely.
    pub fn read_in_segment<'a>(&self, payload: &'a [u8]) -> Result<Envelope<'a>, Refusal> {
        let header = self.read_header_in_segment(payload)?;
        match body_of(payload, header.length) {
            Some(body) => Ok(Envelope { header, body }),
            None => {
                let needed = HEADER_LENGTH as u64 + u64::from(header.length);
                let error = WireError::EnvelopeBeyondSegment { needed, left: payload.len() as u64 };
                Err(Refusal::fatal(error, header.stream))
            }
        }
    }

    /// What is done with an OPTIONS in the beta version before STARTUP (`InitialConnectionHandler.decode`). Its body, which
    /// should be empty, is dropped.
    fn options_of_beta(&self, raw: &RawHeader) -> Option<Refusal> {
        const BETA: u8 = 6;
        let is_it = self.connection.is_none()
            && self.from == Direction::Request
            && raw.version == BETA
            && raw.opcode == Opcode::Options as u8
            && Flags(raw.flags).has(Flags::USE_BETA);
        let total = HEADER_LENGTH as u64 + u64::from(u32::try_from(raw.length).ok()?);
        (is_it && total <= self.max_frame).then_some(Refusal {
            error: WireError::OptionsOfBeta,
            stream: raw.stream,
            answer_in: Some(BETA),
            then: AfterRefusal::Skip(total),
        })
    }

    fn opcode_of(&self, raw: &RawHeader) -> Result<Opcode, WireError> {
        let opcode = Opcode::from_byte(raw.opcode)?;
        if opcode.direction().bit() != raw.version & 0x80 {
            return Err(WireError::WrongDirection { expected: opcode.direction(), opcode });
        }
        if opcode.direction() != self.from {
            return Err(WireError::UnexpectedDirection { expected: self.from, opcode });
        }
        Ok(opcode)
    }

    fn check_version(&self, got: Version) -> Result<(), WireError> {
        match self.connection {
            Some(connection) if connection != got => Err(WireError::MixedVersions { got, connection }),
            _ => Ok(()),
        }
    }
}

fn version_of(first: u8, flags: u8, then: AfterRefusal) -> Result<Version, Refusal> {
    let number = first & 0x7F;
    Version::from_number(number, Flags(flags).has(Flags::USE_BETA)).map_err(|error| {
        let answer_in = matches!(number, 1 | 2 | 6).then_some(number);
        Refusal { error, stream: 0, answer_in, then }
    })
}

/// The stream of a header of any version: one byte in versions 1 and 2, two bytes since version 3.
fn stream_of_any_version(input: &[u8]) -> i16 {
    match *input {
        [first, _, stream, ..] if first & 0x7F < 3 => i16::from(stream as i8),
        [_, _, s0, s1, ..] => i16::from_be_bytes([s0, s1]),
        _ => 0,
    }
}

fn body_of(input: &[u8], length: u32) -> Option<&[u8]> {
    let length = usize::try_from(length).ok()?;
    input.get(HEADER_LENGTH..HEADER_LENGTH.checked_add(length)?)
}

struct RawHeader {
    version: u8,
    flags: u8,
    stream: i16,
    opcode: u8,
    length: i32,
}

impl RawHeader {
    fn read(input: &[u8]) -> Option<RawHeader> {
        let [version, flags, s0, s1, opcode, l0, l1, l2, l3] = *input.first_chunk::<HEADER_LENGTH>()?;
        let stream = i16::from_be_bytes([s0, s1]);
        Some(RawHeader { version, flags, stream, opcode, length: i32::from_be_bytes([l0, l1, l2, l3]) })
    }
}

/// The size of the envelope at the beginning of `bytes`, without any check. Used to split a buffer of our own envelopes
/// into segments.
pub(crate) fn size_of_first(bytes: &[u8]) -> Option<usize> {
    let length = usize::try_from(RawHeader::read(bytes)?.length).ok()?;
    HEADER_LENGTH.checked_add(length)
}

/// An envelope whose header is written and whose body is being appended to the same buffer.
///
/// This is not a guard: if it is forgotten, the length stays 0. So every encoder here ends in `finish` or `abort`.
#[derive(Debug)]
#[must_use = "an envelope must be finished or aborted"]
pub struct OpenEnvelope {
    start: usize,
}

impl OpenEnvelope {
    /// Appends a header with length 0.
    pub fn open(out: &mut Vec<u8>, direction: Direction, header: Header) -> Self {
        let start = out.len();
        out.put_byte(header.version.number() | direction.bit());
        out.put_byte(header.flags.0);
        out.put_raw(&header.stream.to_be_bytes());
        out.put_byte(header.opcode as u8);
        out.put_int(0);
        OpenEnvelope { start }
    }

    /// An envelope that was finished and begins at `start`, to be finished once more because its body has changed.
    pub(crate) fn again(start: usize) -> Self {
        OpenEnvelope { start }
    }

    /// The offset of the body in the buffer.
    pub fn body_start(&self) -> usize {
        self.start + HEADER_LENGTH
    }

    /// Writes the length. If the body is longer than an `[int]` can state, removes the envelope and returns an error.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let length = out.len().saturating_sub(self.body_start());
        match i32::try_from(length) {
            Ok(length) => {
                patch_int(out, self.start + 5, length);
                Ok(())
            }
            Err(_) => {
                self.abort(out);
                Err(WireError::TooMany { count: length as u64, max: i32::MAX as u64, of: "bytes of a body" })
            }
        }
    }

    /// Compresses the body in place, sets the flag, and then does the same as [`OpenEnvelope::finish`]. v3 and v4 only. A body that
    /// cannot be compressed is removed too.
    pub fn finish_compressed(self, out: &mut Vec<u8>, codec: &mut BodyCodec) -> Result<(), WireError> {
        if let Err(error) = codec.compress_tail(out, self.body_start()) {
            self.abort(out);
            return Err(error);
        }
        if let Some(flags) = out.get_mut(self.start + 1) {
            *flags |= Flags::COMPRESSED;
        }
        self.finish(out)
    }

    /// Removes header and body from the buffer.
    pub fn abort(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}
