//! A client of the Thrift RPC interface, with framed transport: one call at a time, or several in flight.

use super::transport::{Input, Output, Received, Transport};
use crate::commands::access::Access;
use crate::commands::passwords::Login;
use anyhow::{Context, Result, bail};
use helenus_wire::thrift::{
    AuthenticationRequest, Compression, ConsistencyLevel, CqlResult, Exception, Field, Framing, Limits, Map,
    Method, ReplyBody, args, begin_call, end_message, next_message, read_reply,
};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum size of an answer.
const MESSAGE_MAX: u64 = 256 << 20;

/// A connection to the RPC server.
pub struct RpcClient {
    transport: Transport,
    number: i32,
    output: Output,
    input: Input,
    /// Number of bytes of `input` that were consumed.
    taken: usize,
}

impl RpcClient {
    /// Connects to the server, and logs in if a login is given.
    pub fn open(address: &str, access: Access<'_>) -> Result<RpcClient> {
        let transport = Transport::open(address, access.tls).with_context(|| {
            format!("is the old interface served there? helenus serve --rpc {address} does so")
        })?;
        let (output, input) = (Output::default(), Input::new());
        let mut client = RpcClient { transport, number: 0, output, input, taken: 0 };
        if let Some(login) = access.login {
            client.log_in(login)?;
        }
        Ok(client)
    }

    /// The socket, for polling and timeouts.
    pub fn socket(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Logs in.
    pub fn log_in(&mut self, login: &Login) -> Result<()> {
        let pairs = [("username", &login.user), ("password", &login.password)];
        let credentials =
            Map(pairs.iter().map(|(key, value)| ((*key).into(), value.as_str().into())).collect());
        let asked = args::Login { auth_request: AuthenticationRequest { credentials } };
        self.call::<i32>(Method::Login, |out| asked.write(out)).map(drop)
    }

    /// Appends a call to the output buffer; `arguments` writes its argument struct.
    pub fn put(&mut self, method: Method, arguments: impl FnOnce(&mut Vec<u8>)) {
        self.number = self.number.wrapping_add(1);
        let number = self.number;
        self.put_bytes(|out| {
            let at = begin_call(method, number, out);
            arguments(out);
            end_message(at, out);
        });
    }

    /// Appends calls that are already encoded and framed.
    pub fn put_bytes<T>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        fill(self.output.open())
    }

    /// Writes as much as the socket accepts now. Returns whether output remains.
    pub fn write(&mut self) -> Result<bool> {
        self.transport.write(&mut self.output)
    }

    /// Writes all output; for a blocking socket.
    fn write_blocking(&mut self) -> Result<()> {
        self.transport.write_blocking(&mut self.output)
    }

    /// Waits for the next message and returns it without its frame; for a blocking socket.
    pub fn message(&mut self) -> Result<&[u8]> {
        let (start, end) = loop {
            if let Some(found) = self.take_next()? {
                break found;
            }
            if let Received::Nothing = self.read()? {
                bail!("no answer");
            }
        };
        Ok(self.input.bytes.get(start..end).unwrap_or_default())
    }

    /// Passes every complete message that has arrived to `each`, in order.
    pub fn messages(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some((start, end)) = self.take_next()? {
            each(self.input.bytes.get(start..end).unwrap_or_default())?;
        }
        Ok(())
    }

    /// The range of the next message in the input, if it is complete. Marks it as consumed.
    fn take_next(&mut self) -> Result<Option<(usize, usize)>> {
        let limits = Limits { frame: MESSAGE_MAX, message: MESSAGE_MAX };
        let rest = self.input.data().get(self.taken..).unwrap_or_default();
        let Some(message) = next_message(rest, Some(Framing::Framed), limits)? else { return Ok(None) };
        let end = self.taken + message.size;
        let start = end - message.bytes.len();
        self.taken = end;
        Ok(Some((start, end)))
    }

    /// Reads from the socket once.
    pub fn read(&mut self) -> Result<Received> {
        self.input.consume(std::mem::take(&mut self.taken));
        self.transport.read(&mut self.input)
    }

    /// Sets the keyspace of later calls.
    pub fn use_keyspace(&mut self, keyspace: &str) -> Result<()> {
        let named = args::OfKeyspace { keyspace };
        self.call::<i32>(Method::SetKeyspace, |out| named.write(out)).map(drop)
    }

    /// Runs a CQL 3 statement and ignores its result.
    pub fn run(&mut self, query: &str) -> Result<()> {
        let asked = args::Cql3Query {
            query: query.as_bytes(),
            compression: Compression::None,
            consistency: ConsistencyLevel::One,
        };
        let answer = self.call::<CqlResult<'_>>(Method::ExecuteCql3Query, |out| asked.write(out));
        answer.map(drop).with_context(|| query.to_owned())
    }

    /// Sends the framed call that `fill` appends, and passes the message of its answer to `look`. Returns the time from
    /// the first byte written to the last byte read.
    pub fn exchange(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>),
        look: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Duration> {
        self.put_bytes(fill);
        let begun = Instant::now();
        self.write_blocking()?;
        let message = self.message()?;
        let took = begun.elapsed();
        look(message).map(|()| took)
    }

    /// Calls a method and returns its result, if it has one. An exception becomes an error.
    pub fn call<'a, T: Field<'a>>(
        &'a mut self,
        method: Method,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<T>> {
        match self.ask::<T>(method, arguments)? {
            ReplyBody::Success(value) => Ok(Some(value)),
            ReplyBody::Void => Ok(None),
            ReplyBody::Exception(exception) => bail!("{}", exception_text(&exception)),
            ReplyBody::Failure(text) => bail!("{text}"),
        }
    }

    /// Calls a method and returns its reply, which may be an exception.
    pub fn ask<'a, T: Field<'a>>(
        &'a mut self,
        method: Method,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<ReplyBody<T>> {
        self.put(method, arguments);
        self.write_blocking()?;
        let (_, body) = read_reply(method, self.message()?)?;
        Ok(body)
    }
}

/// Writes the empty argument struct.
pub fn nothing(out: &mut Vec<u8>) {
    out.push(0);
}

/// The text of an exception.
pub fn exception_text(exception: &Exception) -> String {
    match exception {
        Exception::InvalidRequest(why) | Exception::Authentication(why) | Exception::Authorization(why) => {
            why.clone()
        }
        Exception::NotFound => "not found".to_owned(),
        Exception::Unavailable => "unavailable: the server is too busy".to_owned(),
        Exception::TimedOut => "timed out".to_owned(),
    }
}
