//! Encodes responses other than Rows: used by the server.

use uuid::Uuid;

use crate::WireError;
use crate::native::primitives::Put;
use crate::native::{
    BodyCodec, COMPRESSION, CQL_VERSION, Compression, Direction, ErrorMessage, Flags, HEADER_LENGTH, Header,
    Opcode, OpenEnvelope, PROTOCOL_VERSIONS, SUPPORTED_VERSIONS, Version,
};

use super::{Event, Prepared, ResultKind, SchemaChange};

/// Bytes of the id of a tracing session, which comes first in a body.
const TRACING_ID_LENGTH: usize = 16;

/// The stream id of events.
pub const EVENT_STREAM: i16 = -1;

/// The fields of a response's envelope besides its message.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Version of the connection.
    pub version: Version,
    /// Stream of the request.
    pub stream: i16,
    /// The tracing session, if the request was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings, which are omitted before v4.
    pub warnings: &'a [String],
}

impl ResponseHead<'_> {
    /// A head without extras.
    pub fn new(version: Version, stream: i16) -> Self {
        ResponseHead { version, stream, tracing_id: None, warnings: &[] }
    }

    /// Begins a response. The caller appends the message next.
    pub fn open(&self, opcode: Opcode, out: &mut Vec<u8>) -> OpenEnvelope {
        let warnings = if self.version >= Version::V4 { self.warnings } else { &[] };
        let mut flags = 0;
        if self.tracing_id.is_some() {
            flags |= Flags::TRACING;
        }
        if !warnings.is_empty() {
            flags |= Flags::WARNING;
        }
        let header =
            Header { version: self.version, flags: Flags(flags), stream: self.stream, opcode, length: 0 };
        let open = OpenEnvelope::open(out, Direction::Response, header);
        if let Some(id) = self.tracing_id {
            out.put_raw(id.as_bytes());
        }
        if !warnings.is_empty() {
            out.put_string_list(warnings);
        }
        open
    }

    /// Inserts the warnings into the finished, uncompressed response that begins at `start` and is the last of `out`, and finishes it
    /// once more: they precede the message, but are known only after it. This moves the message once.
    ///
    /// # Errors
    /// The response is too long; then it is removed.
    pub fn insert_warnings(
        &self,
        out: &mut Vec<u8>,
        start: usize,
        codec: Option<&mut BodyCodec>,
    ) -> Result<(), WireError> {
        if self.version >= Version::V4 && !self.warnings.is_empty() {
            let mut list = Vec::new();
            list.put_string_list(self.warnings);
            let traced = out.get(start + 1).is_some_and(|flags| Flags(*flags).has(Flags::TRACING));
            let at = (start + HEADER_LENGTH + if traced { TRACING_ID_LENGTH } else { 0 }).min(out.len());
            out.splice(at..at, list.iter().copied());
            if let Some(flags) = out.get_mut(start + 1) {
                *flags |= Flags::WARNING;
            }
        }
        finish(OpenEnvelope::again(start), codec, self.version, out)
    }
}

/// A response other than Rows that is to be encoded.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// An error.
    Error(&'a ErrorMessage),
    /// The connection is ready, or the events are registered.
    Ready,
    /// The class name of the authenticator, such as `org.apache.cassandra.auth.PasswordAuthenticator`.
    Authenticate(&'a str),
    /// SUPPORTED as Cassandra sends it: all versions, both compressions, and this CQL version.
    Supported {
        /// The one CQL version, such as "3.4.7".
        cql_version: &'a str,
    },
    /// Asks for another SASL token.
    AuthChallenge(Option<&'a [u8]>),
    /// The client is authenticated.
    AuthSuccess(Option<&'a [u8]>),
    /// The request is done, without a result.
    Void,
    /// The result of USE.
    SetKeyspace(&'a str),
    /// The result of PREPARE.
    Prepared(&'a Prepared<'a>),
    /// The schema change that the request made.
    SchemaChange(&'a SchemaChange<'a>),
    /// An event. Its head must have [`EVENT_STREAM`].
    Event(&'a Event<'a>),
}

impl Outgoing<'_> {
    /// The opcode of this response.
    pub fn opcode(&self) -> Opcode {
        match self {
            Outgoing::Error(_) => Opcode::Error,
            Outgoing::Ready => Opcode::Ready,
            Outgoing::Authenticate(_) => Opcode::Authenticate,
            Outgoing::Supported { .. } => Opcode::Supported,
            Outgoing::AuthChallenge(_) => Opcode::AuthChallenge,
            Outgoing::AuthSuccess(_) => Opcode::AuthSuccess,
            Outgoing::Event(_) => Opcode::Event,
            Outgoing::Void | Outgoing::SetKeyspace(_) | Outgoing::Prepared(_) | Outgoing::SchemaChange(_) => {
                Opcode::Result
            }
        }
    }

    /// Appends the response's envelope to `out`. On an error (a body over 2 GiB), `out` is left as it was. `codec`
    /// compresses the body: the connection's codec in v3 and v4, `None` in v5.
    pub fn encode(
        &self,
        head: &ResponseHead<'_>,
        codec: Option<&mut BodyCodec>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let open = head.open(self.opcode(), out);
        let version = head.version;
        match self {
            Outgoing::Error(error) => error.put(out, version),
            Outgoing::Ready => {}
            Outgoing::Authenticate(class) => out.put_string(class),
            Outgoing::Supported { cql_version } => put_supported(out, cql_version),
            Outgoing::AuthChallenge(token) | Outgoing::AuthSuccess(token) => out.put_optional_bytes(*token),
            Outgoing::Void => out.put_int(ResultKind::Void as i32),
            Outgoing::SetKeyspace(keyspace) => {
                out.put_int(ResultKind::SetKeyspace as i32);
                out.put_string(keyspace);
            }
            Outgoing::Prepared(prepared) => {
                out.put_int(ResultKind::Prepared as i32);
                prepared.put(out, version);
            }
            Outgoing::SchemaChange(change) => {
                out.put_int(ResultKind::SchemaChange as i32);
                change.put(out, version);
            }
            Outgoing::Event(event) => event.put(out, version),
        }
        finish(open, codec, head.version, out)
    }
}

/// Ends an envelope, and compresses it if there is a codec and the version compresses bodies.
pub(super) fn finish(
    open: OpenEnvelope,
    codec: Option<&mut BodyCodec>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    match codec {
        Some(codec) if version < Version::V5 => open.finish_compressed(out, codec),
        _ => open.finish(out),
    }
}

/// Writes SUPPORTED in the order of a 5.0.9 node.
pub(in crate::native) fn put_supported(out: &mut Vec<u8>, cql_version: &str) {
    out.put_short(3);
    out.put_string(PROTOCOL_VERSIONS);
    out.put_string_list(&SUPPORTED_VERSIONS);
    out.put_string(COMPRESSION);
    out.put_string_list(&Compression::SUPPORTED);
    out.put_string(CQL_VERSION);
    out.put_string_list(&[cql_version]);
}
