//! The errors of the native protocol's encoding and decoding, in both directions.
//!
//! The texts are those of Cassandra 5.0.9 where it has one (drivers and their tests check some of them), from its
//! `transport` package and from the answers of a 5.0.9 node. Where Cassandra lets a Java exception escape (an index out
//! of bounds becomes a server error 0x0000 with a Java text), Helenus has a protocol error of its own, marked "Ours".

use thiserror::Error;

use super::{Direction, ErrorCode, EventType, Opcode, Version};

/// Which checksum of a v5 segment did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPart {
    /// The CRC24 over lengths and flag. Nothing after it can be located.
    Header,
    /// The CRC32 over the payload.
    Body,
}

impl std::fmt::Display for SegmentPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SegmentPart::Header => "header",
            SegmentPart::Body => "body",
        })
    }
}

/// Why bytes cannot be decoded, or why a message cannot be encoded.
///
/// `Display` is the text for the client; [`WireError::code`] is its code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the fields are named in each variant's text, which is their documentation")]
pub enum WireError {
    /// A version that is not supported. Python's driver looks for "unsupported protocol version", Node.js's for
    /// "Invalid or unsupported protocol version".
    #[error(
        "Invalid or unsupported protocol version ({version}); supported versions are ({})",
        super::SUPPORTED_VERSIONS_TEXT
    )]
    UnsupportedVersion { version: u8 },
    /// Version 6 without the USE_BETA flag.
    #[error("Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset")]
    BetaVersion,
    /// An OPTIONS in version 6 before STARTUP. It is answered (`Refusal::encode`), though no session has that version: a
    /// client that looks for the versions there are may ask in its newest one.
    #[error("OPTIONS in a beta version")]
    OptionsOfBeta,
    /// A frame in another version than the connection's.
    #[error(
        "Invalid message version. Got {got} but previous messages on this connection had version {connection}"
    )]
    MixedVersions { got: Version, connection: Version },
    #[error("Unknown opcode {opcode}")]
    UnknownOpcode { opcode: u8 },
    #[error(
        "Wrong protocol direction (expected {expected}, got {}) for opcode {} ({opcode})",
        expected.other(), *opcode as u8
    )]
    WrongDirection { expected: Direction, opcode: Opcode },
    /// A valid message from the wrong side.
    #[error("Unexpected {} message {opcode}, expecting {expected}", expected.other())]
    UnexpectedDirection { expected: Direction, opcode: Opcode },
    /// CREDENTIALS, which has had an opcode since version 1 and no meaning since version 2.
    #[error("Message {opcode} cannot be decoded: it belongs to version 1 of the protocol")]
    UnsupportedMessage { opcode: Opcode },
    #[error("Invalid value for envelope header body length field: {length}")]
    NegativeBodyLength { length: i32 },
    /// v3 and v4: the whole frame, header included, is longer than `native_transport_max_frame_size`.
    #[error("Request is too big: length {length} exceeds maximum allowed length {max}.")]
    RequestTooBig { length: u64, max: u64 },
    /// v5: the body of a message in several segments is longer than `native_transport_max_message_size`.
    #[error("CQL Message of size {length} bytes exceeds allowed maximum of {max} bytes")]
    MessageTooBig { length: u64, max: u64 },
    /// v5: a message in several segments before authentication is over. The missing blank in the text is Cassandra's.
    #[error(
        "The connection is not yet in a valid state to process multi frame CQL Messages, usually thismeans that \
         authentication is still pending. type = {opcode}, size = {length}"
    )]
    LargeBeforeReady { opcode: Opcode, length: u32 },
    /// v5: the segments of a large message contain more bytes than its header states.
    #[error("Segments hold {received} bytes of a message of {expected} bytes")]
    LargeMessageOverrun { expected: u64, received: u64 },
    /// Ours: an envelope extends beyond its self-contained segment.
    #[error("Envelope needs {needed} bytes, but its self-contained segment has {left} left")]
    EnvelopeBeyondSegment { needed: u64, left: u64 },
    /// A `[string]` or `[long string]` that extends beyond its message. `prefix` is the size of its length field, 2 or
    /// 4.
    #[error("Not enough bytes to read an UTF8 serialized string preceded by its {prefix} bytes length")]
    ShortOfString { prefix: u8 },
    #[error("Not enough bytes to read a byte array preceded by its 2 bytes length")]
    ShortOfBytes,
    #[error("Cannot read value of length {length}, only {left} bytes remaining in the message")]
    ValueTooLong { length: u64, left: u64 },
    /// Ours: a number or a list that extends beyond its message.
    #[error("Message ends too early: {needed} bytes needed, {left} left")]
    Truncated { needed: u64, left: u64 },
    /// `rest` contains the bytes from the first bad one on, at most 32.
    #[error("Cannot decode string as UTF8: '{}'; malformed after {valid} bytes", Hex(rest))]
    NotUtf8 { valid: usize, rest: Vec<u8> },
    #[error("Unknown code {code} for a consistency level")]
    UnknownConsistency { code: u16 },
    #[error("Invalid ByteBuf length {length}")]
    InvalidValueLength { length: i32 },
    #[error(
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got -9223372036854775808)"
    )]
    TimestampOutOfBounds,
    #[error("The page size cannot be 0")]
    ZeroPageSize,
    #[error("Invalid BATCH message type {kind}")]
    InvalidBatchType { kind: i8 },
    #[error("Invalid query kind in BATCH messages. Must be 0 or 1 but got {kind}")]
    InvalidBatchQueryKind { kind: i8 },
    #[error("Invalid value '{value}' for {of}")]
    InvalidEnumValue { value: String, of: &'static str },
    #[error("Event {event} not valid for protocol version {version}")]
    EventTooNew { event: EventType, version: Version },
    #[error("Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4")]
    CustomPayloadTooOld,
    #[error("Missing value CQL_VERSION in STARTUP message")]
    MissingCqlVersion,
    #[error("CQL version {version} is not supported by the binary protocol (supported version are >= 3.0.0)")]
    CqlVersionTooOld { version: String },
    #[error("Invalid version value: {version}")]
    CqlVersionUnreadable { version: String },
    #[error("Unknown compression algorithm: {name}")]
    UnknownCompression { name: String },
    #[error("Snappy compression is not supported in protocol V5")]
    SnappyInV5,
    /// Cassandra puts the channel's id before this text. This crate has no channels.
    #[error(
        "invalid, unrecoverable CRC mismatch detected in frame {part}. Read {}, Computed {}",
        *read as i32, *computed as i32
    )]
    SegmentCrc { part: SegmentPart, read: u32, computed: u32 },
    #[error("Provided frame does not appear to be Snappy compressed")]
    NotSnappy,
    /// Ours: LZ4 bytes that do not decompress to the stated length.
    #[error(
        "Provided frame does not appear to be LZ4 compressed: {announced} bytes announced in {compressed}"
    )]
    NotLz4 { announced: u64, compressed: u64 },
    /// Ours: a compressed body that would decompress to more than the server accepts.
    #[error("Compressed frame unfolds to {length} bytes, more than the allowed {max}")]
    UnfoldsTooBig { length: u64, max: u64 },
    /// A message that was dropped for lack of room. The text states how much was in use.
    #[error("{text}")]
    Overloaded { text: String },
    /// Ours: a long message that did not arrive in time.
    #[error("The request did not arrive in time; send it without pauses")]
    FrameTooSlow,
    /// Ours: a connection on which no STARTUP arrived in time.
    #[error("No STARTUP came in time; send it as soon as the connection is there")]
    NoStartup,
    /// Ours: a connection on which no login succeeded in time.
    #[error("No login succeeded in time; log in as soon as AUTHENTICATE has come")]
    NoLogin,
    /// Ours: a frame before the login that is longer than any login.
    #[error("A request before the login has at most {bytes_max} bytes")]
    TooLongBeforeLogin { bytes_max: u64 },
    #[error("Unknown option id {id}")]
    UnknownTypeId { id: u16 },
    /// Ours: types nested beyond any reasonable depth.
    #[error("Type is nested more than {max} levels deep")]
    TypeTooDeep { max: u8 },
    #[error("Unknown kind id {kind} in RESULT message")]
    UnknownResultKind { kind: i32 },
    #[error("Unknown error code {code}")]
    UnknownErrorCode { code: i32 },
    #[error("Invalid IP address of {length} bytes while deserializing inet address")]
    InvalidAddress { length: u8 },
    /// A count that is signed in the protocol and was negative.
    #[error("Negative count {count} of {of}")]
    NegativeCount { count: i32, of: &'static str },
    /// More elements or bytes than their length field can state.
    #[error("{count} {of} do not fit the protocol's limit of {max}")]
    TooMany { count: u64, max: u64, of: &'static str },
}

impl WireError {
    /// The code of the ERROR response to these bytes.
    ///
    /// Every mistake of a client below CQL is a protocol error, except the two size limits, for which Cassandra throws
    /// `InvalidRequestException`.
    pub fn code(&self) -> ErrorCode {
        match self {
            WireError::RequestTooBig { .. } | WireError::MessageTooBig { .. } => ErrorCode::Invalid,
            WireError::Overloaded { .. } => ErrorCode::Overloaded,
            _ => ErrorCode::Protocol,
        }
    }
}

/// Formats bytes as Cassandra's `bytesToHex` does.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
