//! Requests from bodies: the server's way in, and the entry point for fuzzing.

use crate::WireError;
use crate::native::primitives::{BytesMap, Reader};
use crate::native::{Flags, Opcode, Version};

use super::{Batch, EventTypes, Execute, Prepare, Query, Startup};

/// A request, borrowed from its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'a> {
    /// Begins the connection.
    Startup(Startup<'a>),
    /// Asks for SUPPORTED; also a heartbeat.
    Options,
    /// A statement as text.
    Query(Query<'a>),
    /// A statement to keep.
    Prepare(Prepare<'a>),
    /// A kept statement.
    Execute(Execute<'a>),
    /// Several statements.
    Batch(Batch<'a>),
    /// Events to send.
    Register(EventTypes),
    /// A SASL token; `None` if the client sent a null one.
    AuthResponse(Option<&'a [u8]>),
}

/// A request and what its envelope's flags put before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestMessage<'a> {
    /// Whether the client wants the request traced. Only QUERY, PREPARE, EXECUTE and BATCH can be.
    pub tracing: bool,
    /// v4 on: a payload for custom query handlers, which nobody here reads.
    pub custom_payload: Option<BytesMap<'a>>,
    /// The request.
    pub request: Request<'a>,
}

/// Decodes a request's body, uncompressed. Bytes after the end of the message are ignored, as the protocol asks.
///
/// Allocates nothing but an error's text, never panics, and looks at nothing but its arguments.
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
