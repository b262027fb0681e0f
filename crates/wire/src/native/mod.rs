//! The CQL native protocol, versions 3 to 5: envelopes, segments, requests, responses.
//!
//! A server reads input with [`EnvelopeReader`] (before STARTUP is answered, and always in v3 and v4) or
//! [`SegmentReader`] (v5 after that), decompresses with [`BodyCodec`], decodes with [`decode_request`], and appends
//! responses with [`Outgoing`] and [`RowsWriter`], in v5 between [`SegmentWriter::open`] and
//! [`SegmentWriter::close`]. A client does the same with [`Request::encode`] and [`decode_response`].

mod checksum;
mod compress;
mod connection_refusal;
mod consistency;
mod error;
mod frame;
mod handed_over;
mod primitives;
mod request;
mod response;
mod segment;
mod types;
mod version;
mod wire_error;

pub use compress::{BodyCodec, Compression};
pub use connection_refusal::{REFUSED_FRONT, TLS_HANDSHAKE, connection_refusal};
pub use consistency::Consistency;
pub use error::{ErrorCode, ErrorDetail, ErrorMessage, FailureReason, Failures, Progress, WriteType};
pub use frame::{
    AfterRefusal, BEFORE_LOGIN_BYTES_MAX, DEFAULT_MAX_FRAME, Envelope, EnvelopeReader, HEADER_LENGTH, Header,
    OpenEnvelope, Refusal,
};
pub use handed_over::{Agreed, HandedOver, UnservedInput};
pub use primitives::{BytesMap, Put, Reader, StringList, StringMap, StringMultimap, Value};
pub use request::*;
pub use response::*;
pub use segment::{
    MAX_PAYLOAD, OpenSegment, PART_PAYLOAD, Segment, SegmentFormat, SegmentReader, SegmentWriter, Step,
};
pub use types::{ColumnSpec, Columns, put_type, read_type};
pub use version::{
    Direction, Flags, Opcode, SUPPORTED_CQL, SUPPORTED_VERSIONS, SUPPORTED_VERSIONS_TEXT, Version,
};
pub use wire_error::{SegmentPart, WireError};
