//! A pipelined connection over either protocol, and its answers.

use super::{Connection, Received, RpcClient, Session, exception_text};
use crate::commands::access::Access;
use anyhow::{Context, Result};
use helenus_wire::native::{Response, ResultMessage, Version, decode_response};
use helenus_wire::thrift::{
    CounterColumn, Exception, Field, MessageHead, MessageKind, Method, Reader, ReplyBody, ThriftError, Type,
    read_reply,
};
use std::net::TcpStream;

/// A server's address and protocol.
#[derive(Clone, Copy, Debug)]
pub enum Endpoint<'a> {
    /// The native protocol: IP:PORT, version, login and TLS.
    Cql(&'a str, Version, Access<'a>),
    /// The Thrift RPC interface: IP:PORT, login and TLS.
    Rpc(&'a str, Access<'a>),
}

impl<'a> Endpoint<'a> {
    /// IP:PORT.
    pub fn address(self) -> &'a str {
        match self {
            Endpoint::Cql(address, ..) | Endpoint::Rpc(address, _) => address,
        }
    }

    /// Login and TLS.
    pub fn access(self) -> Access<'a> {
        match self {
            Endpoint::Cql(.., access) | Endpoint::Rpc(_, access) => access,
        }
    }
}

/// A client with one request in flight, for the preparation of a run.
pub enum BlockingClient {
    Cql(Session),
    Rpc(RpcClient),
}

impl BlockingClient {
    /// Connects to the server.
    pub fn open(door: Endpoint<'_>) -> Result<BlockingClient> {
        Ok(match door {
            Endpoint::Cql(address, version, access) => {
                BlockingClient::Cql(Session::open(address, version, access)?)
            }
            Endpoint::Rpc(address, access) => BlockingClient::Rpc(RpcClient::open(address, access)?),
        })
    }

    /// Runs a CQL 3 statement and ignores its result. Both protocols accept such statements.
    pub fn run(&mut self, query: &str) -> Result<()> {
        match self {
            BlockingClient::Cql(session) => session.run(query),
            BlockingClient::Rpc(client) => client.run(query),
        }
    }

    /// Whether tables must have COMPACT STORAGE: the Thrift RPC interface sees no other tables.
    pub fn sees_compact_tables_alone(&self) -> bool {
        matches!(self, BlockingClient::Rpc(_))
    }
}

/// A connection with many requests in flight. Each request has a number below 32,768, which its answer repeats.
pub enum PipelinedConnection {
    Cql(Connection),
    Rpc(RpcClient),
}

impl PipelinedConnection {
    /// Connects. RPC calls use `keyspace`.
    pub fn open(door: Endpoint<'_>, keyspace: &str) -> Result<PipelinedConnection> {
        Ok(match door {
            Endpoint::Cql(address, version, access) => {
                PipelinedConnection::Cql(Session::open(address, version, access)?.into_connection())
            }
            Endpoint::Rpc(address, access) => {
                let mut client = RpcClient::open(address, access)?;
                client.use_keyspace(keyspace)?;
                PipelinedConnection::Rpc(client)
            }
        })
    }

    /// The socket, for polling.
    pub fn socket(&self) -> &TcpStream {
        match self {
            PipelinedConnection::Cql(connection) => connection.socket(),
            PipelinedConnection::Rpc(client) => client.socket(),
        }
    }

    /// Appends requests to the output buffer.
    pub fn put<T>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        match self {
            PipelinedConnection::Cql(connection) => connection.put(fill),
            PipelinedConnection::Rpc(client) => client.put_bytes(fill),
        }
    }

    /// Writes as much as the socket accepts now. Returns whether output remains.
    pub fn write(&mut self) -> Result<bool> {
        match self {
            PipelinedConnection::Cql(connection) => connection.write(),
            PipelinedConnection::Rpc(client) => client.write(),
        }
    }

    /// Reads from the socket once.
    pub fn read(&mut self) -> Result<Received> {
        match self {
            PipelinedConnection::Cql(connection) => connection.read(),
            PipelinedConnection::Rpc(client) => client.read(),
        }
    }

    /// Passes every complete answer that has arrived to `each`, with the number of its request.
    pub fn answers(
        &mut self,
        mut each: impl FnMut(i32, Result<AnswerBody<'_>, AnswerError>) -> Result<()>,
    ) -> Result<()> {
        match self {
            PipelinedConnection::Cql(connection) => connection.envelopes(|envelope| {
                let header = envelope.header;
                let message = decode_response(header.version, header.opcode, header.flags, envelope.body)?;
                each(i32::from(header.stream), of_response(message.response))
            }),
            PipelinedConnection::Rpc(client) => client.messages(|message| {
                let head = MessageHead::read(&mut Reader::new(message))?;
                each(head.number, of_reply(message)?)
            }),
        }
    }
}

/// An error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    /// The name of the error code or exception.
    pub kind: &'static str,
    /// The error's message.
    pub text: String,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub enum AnswerBody<'a> {
    /// The result of a statement.
    Result(ResultMessage<'a>),
    /// An RPC call without a result.
    Done,
    /// The result of an RPC call: its type, and a reader positioned at the value.
    Value(Type, Reader<'a>),
}

fn of_response(response: Response<'_>) -> Result<AnswerBody<'_>, AnswerError> {
    match response {
        Response::Result(result) => Ok(AnswerBody::Result(result)),
        Response::Error(error) => {
            Err(AnswerError { kind: error.detail.code().name(), text: error.message.to_string() })
        }
        other => Err(AnswerError { kind: "WRONG_ANSWER", text: format!("{other:?}") }),
    }
}

/// Decodes the answer of an RPC call, without its frame. An error, if the message is not an answer.
pub fn of_reply(message: &[u8]) -> Result<Result<AnswerBody<'_>, AnswerError>> {
    let mut reader = Reader::new(message);
    let head = MessageHead::read(&mut reader)?;
    if head.kind == MessageKind::Reply {
        match reader.field()? {
            None => return Ok(Ok(AnswerBody::Done)),
            Some((ty, 0)) => return Ok(Ok(AnswerBody::Value(ty, reader))),
            Some(_) => {}
        }
    }
    let method = Method::of_name(head.name).context("an answer to no call")?;
    let (kind, text) = match read_reply::<i32>(method, message)?.1 {
        ReplyBody::Exception(exception) => {
            let kind = match exception {
                Exception::NotFound => "NotFoundException",
                Exception::InvalidRequest(_) => "InvalidRequestException",
                Exception::Unavailable => "UnavailableException",
                Exception::TimedOut => "TimedOutException",
                Exception::Authentication(_) => "AuthenticationException",
                Exception::Authorization(_) => "AuthorizationException",
            };
            (kind, exception_text(&exception))
        }
        ReplyBody::Failure(text) => ("TApplicationException", text),
        ReplyBody::Success(_) | ReplyBody::Void => ("WRONG_ANSWER", "an answer that does not fit".to_owned()),
    };
    Ok(Err(AnswerError { kind, text }))
}

/// Field numbers of `ColumnOrSuperColumn` and of `Column`.
const COLUMN: i16 = 1;
const COUNTER_COLUMN: i16 = 3;
const NAME: i16 = 1;
const VALUE: i16 = 2;

/// A column of an answer: its name, and its value or the value of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    pub name: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

/// The columns of the list of `ColumnOrSuperColumn` at the reader's position, after their number.
///
/// # Errors
/// The value is not such a list.
pub fn columns<'a>(
    mut reader: Reader<'a>,
) -> Result<(u64, impl Iterator<Item = Result<Pair<'a>, ThriftError>>), ThriftError> {
    let (_, count) = reader.list()?;
    let columns = (0..count).map(move |_| column(&mut reader));
    Ok((count as u64, columns))
}

/// The `ColumnOrSuperColumn` at the reader's position.
///
/// # Errors
/// The value is not such a struct.
#[inline]
pub fn column<'a>(reader: &mut Reader<'a>) -> Result<Pair<'a>, ThriftError> {
    let mut pair = Pair { name: None, value: None };
    while let Some((ty, number)) = reader.field()? {
        match (number, ty) {
            // Decoded field by field, because an answer has thousands of columns and only these two fields are needed.
            (COLUMN, Type::Struct) => {
                while let Some((ty, number)) = reader.field()? {
                    match (number, ty) {
                        (NAME, Type::String) => pair.name = Some(reader.binary()?),
                        (VALUE, Type::String) => pair.value = Some(reader.binary()?),
                        _ => reader.skip(ty)?,
                    }
                }
            }
            (COUNTER_COLUMN, Type::Struct) => pair.name = Some(CounterColumn::read(reader)?.name),
            _ => reader.skip(ty)?,
        }
    }
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_wire::thrift::{Call, Column, ColumnOrSuperColumn, Framing, Reply};

    fn reply(method: Method, write: impl FnOnce(Reply, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let reply = Reply::begin(Call { method, number: 7, framing: Framing::Unframed }, &mut out);
        write(reply, &mut out);
        out
    }

    #[test]
    fn a_result_nothing_and_an_exception_are_told_apart() {
        let column = Column { name: b"n", value: Some(b"v"), timestamp: Some(1), ttl: None };
        let held = ColumnOrSuperColumn {
            column: Some(column),
            super_column: None,
            counter_column: None,
            counter_super_column: None,
        };
        let message = reply(Method::GetSlice, |reply, out| reply.success(&vec![held], out));
        let Ok(AnswerBody::Value(Type::List, reader)) = of_reply(&message).unwrap() else { panic!() };
        let (count, mut pairs) = columns(reader).unwrap();
        assert_eq!(count, 1);
        assert_eq!(pairs.next(), Some(Ok(Pair { name: Some(b"n"), value: Some(b"v") })));
        let message = reply(Method::BatchMutate, Reply::end);
        assert!(matches!(of_reply(&message).unwrap(), Ok(AnswerBody::Done)));
        let why = Exception::InvalidRequest("why".to_owned());
        let message = reply(Method::GetSlice, |reply, out| reply.exception(&why, out));
        let refusal = AnswerError { kind: "InvalidRequestException", text: "why".to_owned() };
        assert_eq!(of_reply(&message).unwrap().unwrap_err(), refusal);
    }
}
