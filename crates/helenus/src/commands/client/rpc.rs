//! A client of the old RPC interface: framed, one call at a time, or several written before their answers are read.

use super::PATIENCE;
use anyhow::{Context, Result, bail, ensure};
use helenus_wire::thrift::{
    Exception, Field, Framing, Limits, Method, ReplyBody, begin_call, end_message, next_message, read_reply,
};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Bytes asked of the socket at once.
const INPUT: usize = 256 << 10;
/// Longest answer taken.
const MESSAGE_MAX: u64 = 256 << 20;

/// A connection.
pub struct RpcClient {
    socket: TcpStream,
    number: i32,
    output: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` that hold something, and of those the first that were taken already.
    filled: usize,
    taken: usize,
}

impl RpcClient {
    /// Connects.
    pub fn open(address: &str) -> Result<RpcClient> {
        let socket = TcpStream::connect(address).with_context(|| {
            format!(
                "cannot connect to {address}; a server listens there if it was started with --rpc {address}"
            )
        })?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(RpcClient { socket, number: 0, output: Vec::new(), input: vec![0; INPUT], filled: 0, taken: 0 })
    }

    /// Puts a call among those to be written; `arguments` writes its struct.
    pub fn put(&mut self, method: Method, arguments: impl FnOnce(&mut Vec<u8>)) {
        self.number = self.number.wrapping_add(1);
        let at = begin_call(method, self.number, &mut self.output);
        arguments(&mut self.output);
        end_message(at, &mut self.output);
    }

    /// Puts a call that is encoded already, with its frame.
    pub fn put_bytes(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        fill(&mut self.output);
    }

    /// Writes the calls that were put.
    pub fn write(&mut self) -> Result<()> {
        self.socket.write_all(&self.output).context("cannot write to the server")?;
        self.output.clear();
        Ok(())
    }

    /// The next answer's message, without its frame.
    pub fn message(&mut self) -> Result<&[u8]> {
        let limits = Limits { frame: MESSAGE_MAX, message: MESSAGE_MAX };
        let (start, end) = loop {
            let rest = self.input.get(self.taken..self.filled).unwrap_or_default();
            if let Some(message) = next_message(rest, Some(Framing::Framed), limits)? {
                let end = self.taken + message.size;
                break (end - message.bytes.len(), end);
            }
            self.read()?;
        };
        self.taken = end;
        Ok(self.input.get(start..end).unwrap_or_default())
    }

    fn read(&mut self) -> Result<()> {
        self.input.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        let count = self.socket.read(self.input.get_mut(self.filled..).unwrap_or_default());
        let count = count.context("cannot read from the server")?;
        ensure!(count > 0, "the server closed the connection");
        self.filled += count;
        Ok(())
    }

    /// Calls; the result, if the call has one. An exception ends with its text.
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

    /// Calls; what came back, exceptions among it.
    pub fn ask<'a, T: Field<'a>>(
        &'a mut self,
        method: Method,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<ReplyBody<T>> {
        self.put(method, arguments);
        self.write()?;
        let (_, body) = read_reply(method, self.message()?)?;
        Ok(body)
    }
}

/// Writes the arguments of a call that has none.
pub fn nothing(out: &mut Vec<u8>) {
    out.push(0);
}

/// What an exception says.
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
