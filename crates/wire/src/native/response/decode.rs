//! Decodes responses: used by clients.

use uuid::Uuid;

use crate::WireError;
use crate::native::primitives::{BytesMap, Reader, StringList, StringMultimap};
use crate::native::{Direction, ErrorMessage, Flags, Opcode, Version};

use super::{Event, ResultMessage};

/// A response, borrowed from its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// An error.
    Error(ErrorMessage),
    /// The connection is ready, or the events are registered.
    Ready,
    /// The authenticator's class name.
    Authenticate(&'a str),
    /// STARTUP's options and their values.
    Supported(StringMultimap<'a>),
    /// The result of a request.
    Result(ResultMessage<'a>),
    /// An event.
    Event(Event<'a>),
    /// A SASL token.
    AuthChallenge(Option<&'a [u8]>),
    /// The last SASL token.
    AuthSuccess(Option<&'a [u8]>),
}

/// A response with the fields that its envelope's flags announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseMessage<'a> {
    /// The tracing session, if the request was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the application.
    pub warnings: StringList<'a>,
    /// A payload of the server's query handler.
    pub custom_payload: Option<BytesMap<'a>>,
    /// The response.
    pub response: Response<'a>,
}

/// Decodes a response's uncompressed body. Bytes after the end of the message are ignored, as the protocol requires.
pub fn decode_response<'a>(
    version: Version,
    opcode: Opcode,
    flags: Flags,
    body: &'a [u8],
) -> Result<ResponseMessage<'a>, WireError> {
    let mut reader = Reader::new(body);
    let tracing_id = if flags.has(Flags::TRACING) { Some(reader.uuid()?) } else { None };
    let warnings = if flags.has(Flags::WARNING) { reader.string_list()? } else { StringList::default() };
    let custom_payload = if flags.has(Flags::CUSTOM_PAYLOAD) { Some(reader.bytes_map()?) } else { None };
    let response = match opcode {
        Opcode::Error => Response::Error(ErrorMessage::read(&mut reader, version)?),
        Opcode::Ready => Response::Ready,
        Opcode::Authenticate => Response::Authenticate(reader.string()?),
        Opcode::Supported => Response::Supported(reader.string_multimap()?),
        Opcode::Result => Response::Result(ResultMessage::read(&mut reader, version)?),
        Opcode::Event => Response::Event(Event::read(&mut reader, version)?),
        Opcode::AuthChallenge => Response::AuthChallenge(reader.bytes()?),
        Opcode::AuthSuccess => Response::AuthSuccess(reader.bytes()?),
        Opcode::Startup
        | Opcode::Credentials
        | Opcode::Options
        | Opcode::Query
        | Opcode::Prepare
        | Opcode::Execute
        | Opcode::Register
        | Opcode::Batch
        | Opcode::AuthResponse => {
            return Err(WireError::UnexpectedDirection { expected: Direction::Response, opcode });
        }
    };
    Ok(ResponseMessage { tracing_id, warnings, custom_payload, response })
}
