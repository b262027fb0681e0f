//! Messages: a head with a name, a kind and a number, followed by one struct.
//!
//! ```text
//! strict      0x8001 0x00 kind, name (i32 length), number i32, struct
//! not strict  name (i32 length), kind u8, number i32, struct
//! ```
//! Heads are read in both forms and written strict, the default of `TBinaryProtocol`, which every client accepts.

use super::ThriftError;
use super::binary::{Reader, Type, put_binary, put_field, put_i32};
use super::field::Field;
use super::frame::Framing;
use super::method::{Exception, Kind, Method};
use super::structs::{ApplicationException, Nothing, TimedOutException, Why};
use crate::error_text;

const VERSION_1: u32 = 0x8001_0000;
const VERSION_MASK: u32 = 0xFFFF_0000;

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A call that expects an answer.
    Call = 1,
    /// An answer, or an exception of the interface.
    Reply = 2,
    /// An exception of the protocol itself.
    Exception = 3,
    /// A call without an answer.
    Oneway = 4,
}

impl MessageKind {
    fn of(byte: u32) -> Result<MessageKind, ThriftError> {
        let all = [MessageKind::Call, MessageKind::Reply, MessageKind::Exception, MessageKind::Oneway];
        all.into_iter().find(|kind| *kind as u32 == byte).ok_or(ThriftError::NotAMessage)
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// The name of the call, as received.
    pub name: &'a [u8],
    /// Its kind.
    pub kind: MessageKind,
    /// The client's number for the message, which the answer repeats.
    pub number: i32,
}

impl<'a> MessageHead<'a> {
    /// Reads a head.
    ///
    /// # Errors
    /// `Short`, `Version`, `NotAMessage`.
    pub fn read(reader: &mut Reader<'a>) -> Result<MessageHead<'a>, ThriftError> {
        let first = reader.clone().i32()?.cast_unsigned();
        if first & 0x8000_0000 != 0 {
            let _version = reader.i32()?;
            if first & VERSION_MASK != VERSION_1 {
                return Err(ThriftError::Version);
            }
            let kind = MessageKind::of(first & 0xFF)?;
            return Ok(MessageHead { name: reader.binary()?, kind, number: reader.i32()? });
        }
        let name = reader.binary()?;
        let kind = MessageKind::of(u32::from(reader.byte()?))?;
        Ok(MessageHead { name, kind, number: reader.i32()? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i32((VERSION_1 | self.kind as u32).cast_signed(), out);
        put_binary(self.name, out);
        put_i32(self.number, out);
    }
}

/// Begins a framed call; its arguments follow, then `end_message`. Returns the offset where it begins.
pub fn begin_call(method: Method, number: i32, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    put_i32(0, out);
    MessageHead { name: method.name().as_bytes(), kind: MessageKind::Call, number }.write(out);
    at
}

/// Writes the length into the frame of the message that begins at `at`.
pub fn end_message(at: usize, out: &mut [u8]) {
    let length = out.len().saturating_sub(at + 4) as u32;
    if let Some(head) = out.get_mut(at..at + 4) {
        head.copy_from_slice(&length.to_be_bytes());
    }
}

/// A call that must be answered.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The called method.
    pub method: Method,
    /// The client's number for the call.
    pub number: i32,
    /// Whether the answer goes into a frame.
    pub framing: Framing,
}

/// Writes the answer to one call: `begin`, the result, then `end`; or one of the other functions alone.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    call: Call,
    at: usize,
}

impl Reply {
    /// Begins an answer at the end of `out`. An exception later replaces what has been written.
    pub fn begin(call: Call, out: &mut Vec<u8>) -> Reply {
        let reply = Reply { call, at: out.len() };
        reply.head(MessageKind::Reply, out);
        reply
    }

    fn head(&self, kind: MessageKind, out: &mut Vec<u8>) {
        if self.call.framing == Framing::Framed {
            put_i32(0, out);
        }
        let name = self.call.method.name().as_bytes();
        MessageHead { name, kind, number: self.call.number }.write(out);
    }

    fn close(&self, out: &mut [u8]) {
        if self.call.framing == Framing::Framed {
            end_message(self.at, out);
        }
    }

    /// Begins the result: a value of this type must follow, then `end`.
    pub fn begin_success(&self, ty: Type, out: &mut Vec<u8>) {
        put_field(ty, 0, out);
    }

    /// Ends an answer. Without a result, it is the answer to a call that returns none.
    pub fn end(self, out: &mut Vec<u8>) {
        out.push(Type::Stop as u8);
        self.close(out);
    }

    /// Answers with a value.
    pub fn success<'v, T: Field<'v>>(self, value: &T, out: &mut Vec<u8>) {
        self.begin_success(T::TYPE, out);
        value.write(out);
        self.end(out);
    }

    /// Answers with an exception of the interface. An exception that the call does not declare becomes one of the
    /// protocol.
    pub fn exception(self, exception: &Exception, out: &mut Vec<u8>) {
        let place = self.call.method.throws().iter().position(|kind| *kind == exception.kind());
        let Some(place) = place else {
            let text = match exception {
                Exception::InvalidRequest(why)
                | Exception::Authentication(why)
                | Exception::Authorization(why) => why.clone(),
                _ => format!("Internal error processing {}", self.call.method.name()),
            };
            return self.failure(ApplicationFailure::Internal, &text, out);
        };
        out.truncate(self.at);
        self.head(MessageKind::Reply, out);
        put_field(Type::Struct, place as i16 + 1, out);
        match exception {
            Exception::NotFound | Exception::Unavailable => Nothing {}.write(out),
            Exception::TimedOut => TimedOutException {
                acknowledged_by: None,
                acknowledged_by_batchlog: None,
                paxos_in_progress: None,
            }
            .write(out),
            Exception::InvalidRequest(why)
            | Exception::Authentication(why)
            | Exception::Authorization(why) => Why { why: error_text(why).as_ref().into() }.write(out),
        }
        self.end(out);
    }

    /// Answers with an exception of the protocol: the call was not run.
    pub fn failure(self, kind: ApplicationFailure, text: &str, out: &mut Vec<u8>) {
        out.truncate(self.at);
        put_failure(
            (self.call.method.name().as_bytes(), self.call.number),
            (kind, text),
            self.call.framing,
            out,
        );
    }
}

/// Why a call was not run (`TApplicationException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationFailure {
    /// There is no such call.
    UnknownMethod = 1,
    /// The message was not a call.
    InvalidMessageType = 2,
    /// The server failed.
    Internal = 6,
    /// The arguments cannot be read.
    Protocol = 7,
}

/// Writes an exception of the protocol, for a call with this name and number.
pub fn put_failure(
    (name, number): (&[u8], i32),
    (kind, text): (ApplicationFailure, &str),
    framing: Framing,
    out: &mut Vec<u8>,
) {
    let at = out.len();
    if framing == Framing::Framed {
        put_i32(0, out);
    }
    MessageHead { name, kind: MessageKind::Exception, number }.write(out);
    ApplicationException { message: Some(text.into()), kind: Some(kind as i32) }.write(out);
    if framing == Framing::Framed {
        end_message(at, out);
    }
}

/// The answer to a client's call.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyBody<T> {
    /// The result.
    Success(T),
    /// The call returns no result.
    Void,
    /// An exception of the interface.
    Exception(Exception),
    /// An exception of the protocol.
    Failure(String),
}

/// Reads the answer to a call of `method`, without its frame.
///
/// # Errors
/// The bytes are not an answer.
pub fn read_reply<'a, T: Field<'a>>(
    method: Method,
    bytes: &'a [u8],
) -> Result<(i32, ReplyBody<T>), ThriftError> {
    let mut reader = Reader::new(bytes);
    let head = MessageHead::read(&mut reader)?;
    if head.kind == MessageKind::Exception {
        let failure = ApplicationException::read(&mut reader)?;
        return Ok((head.number, ReplyBody::Failure(failure.message.unwrap_or_default().into_owned())));
    }
    let mut body = ReplyBody::Void;
    while let Some((ty, number)) = reader.field()? {
        let thrown = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let kind = thrown.and_then(|place| method.throws().get(place));
        body = match (number, kind) {
            (0, _) if ty == T::TYPE => ReplyBody::Success(T::read(&mut reader)?),
            (_, Some(kind)) if ty == Type::Struct => {
                ReplyBody::Exception(read_exception(*kind, &mut reader)?)
            }
            _ => {
                reader.skip(ty)?;
                continue;
            }
        };
    }
    Ok((head.number, body))
}

fn read_exception(kind: Kind, reader: &mut Reader<'_>) -> Result<Exception, ThriftError> {
    let mut why = || Why::read(reader).map(|why| why.why.into_owned());
    Ok(match kind {
        Kind::InvalidRequest => Exception::InvalidRequest(why()?),
        Kind::Authentication => Exception::Authentication(why()?),
        Kind::Authorization => Exception::Authorization(why()?),
        Kind::NotFound => Nothing::read(reader).map(|_| Exception::NotFound)?,
        Kind::Unavailable | Kind::SchemaDisagreement => {
            Nothing::read(reader).map(|_| Exception::Unavailable)?
        }
        Kind::TimedOut => TimedOutException::read(reader).map(|_| Exception::TimedOut)?,
    })
}
