//! Decodes requests: used by the server, and the entry point for fuzzing.

use crate::WireError;
use crate::native::primitives::{BytesMap, Reader};
use crate::native::{Flags, Opcode, Version};

use super::{Batch, EventTypes, Execute, Prepare, Query, Startup};

/// A request, borrowed from its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'a> {
    /// Starts the connection.
    Startup(Startup<'a>),
    /// Asks for SUPPORTED; also a heartbeat.
    Options,
    /// A statement as text.
    Query(Query<'a>),
    /// A statement to be prepared.
    Prepare(Prepare<'a>),
    /// A prepared statement to be executed.
    Execute(Execute<'a>),
    /// Several statements.
    Batch(Batch<'a>),
    /// The events that the client wants to get.
    Register(EventTypes),
    /// A SASL token; `None` if the client sent a null one.
    AuthResponse(Option<&'a [u8]>),
}

/// A request with the fields that its envelope's flags announce.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestMessage<'a> {
    /// Whether the client wants the request traced. Only QUERY, PREPARE, EXECUTE and BATCH can be traced.
    pub tracing: bool,
    /// Since v4: a payload for custom query handlers, which is not used here.
    pub custom_payload: Option<BytesMap<'a>>,
    /// The request.
    pub request: Request<'a>,
}

/// Decodes a request's uncompressed body. Bytes after the end of the message are ignored, as the protocol requires.
///
/// Allocates only the text of an error, never panics, and uses nothing but its arguments.
pub fn decode_request<'a>(
    version: Version,
    opcode: Opcode,
    flags: Flags,
    body: &'a [u8],
) -> Result<RequestMessage<'a>, WireError> {
    let mut reader = Reader::new(body);
    let custom_payload = match flags.has(Flags::CUSTOM_PAYLOAD) {
        true if version < Version::V4 => return Err(WireError::CustomPayloadTooOld),
        true => Some(reader.bytes_map()?),
        false => None,
    };
    let request = match opcode {
        Opcode::Startup => Request::Startup(Startup::read(&mut reader)?),
        Opcode::Options => Request::Options,
        Opcode::Query => Request::Query(Query::read(&mut reader, version)?),
        Opcode::Prepare => Request::Prepare(Prepare::read(&mut reader, version)?),
        Opcode::Execute => Request::Execute(Execute::read(&mut reader, version)?),
        Opcode::Batch => Request::Batch(Batch::read(&mut reader, version)?),
        Opcode::Register => Request::Register(EventTypes::read(&mut reader, version)?),
        Opcode::AuthResponse => Request::AuthResponse(reader.bytes()?),
        Opcode::Credentials => return Err(WireError::UnsupportedMessage { opcode }),
        Opcode::Error
        | Opcode::Ready
        | Opcode::Authenticate
        | Opcode::Supported
        | Opcode::Result
        | Opcode::Event
        | Opcode::AuthChallenge
        | Opcode::AuthSuccess => {
            return Err(WireError::UnexpectedDirection {
                expected: crate::native::Direction::Request,
                opcode,
            });
        }
    };
    Ok(RequestMessage { tracing: flags.has(Flags::TRACING), custom_payload, request })
}
