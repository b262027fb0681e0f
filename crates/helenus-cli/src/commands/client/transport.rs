//! A client's end of a connection, in the clear or by TLS: writes an output buffer in few writes, and reads into an input
//! buffer in large reads.
//!
//! It works on blocking sockets and on others, so that a thread can wait for many of them with poll. After a read no
//! decrypted byte stays behind, because poll would not report it.

use anyhow::{Context, Result, anyhow, bail};
use helenus_tls::TlsClient;
use helenus_tls::rustls::{self, ClientConnection};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Maximum time to wait for an answer before the run fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Initial size of an input buffer, in bytes. It grows for longer answers.
pub const INPUT: usize = 256 << 10;
/// The most bytes that are encrypted before the socket has taken them.
const AHEAD_BYTES: usize = 256 << 10;
/// The first two bytes of a TLS record that reports an error: alert, version 3.
const ALERT: [u8; 2] = [21, 3];

/// The result of a read of the socket.
pub enum Received {
    /// At least one byte.
    Bytes,
    /// No byte yet.
    Nothing,
}

/// An input buffer.
pub struct Input {
    pub bytes: Vec<u8>,
    /// Number of bytes that hold data.
    pub filled: usize,
}

impl Input {
    pub fn new() -> Input {
        Input { bytes: vec![0; INPUT], filled: 0 }
    }

    /// The bytes that hold data.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// The room for more, which is never empty.
    fn room(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// Drops the first bytes.
    pub fn consume(&mut self, count: usize) {
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}

/// An output buffer.
#[derive(Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// Number of bytes already written.
    written: usize,
}

impl Output {
    /// The buffer, to append to.
    pub fn open(&mut self) -> &mut Vec<u8> {
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        }
        &mut self.bytes
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }
}

/// A connection.
pub struct Transport {
    socket: TcpStream,
    tls: Option<Box<Session>>,
    /// Whether the server has sent anything; over TLS, within the session.
    has_answered: bool,
}

struct Session {
    client: TlsClient,
    host: String,
    session: ClientConnection,
    /// Buffer of encrypted input.
    encrypted: Vec<u8>,
}

impl Transport {
    /// A socket that is connected already, without TLS.
    ///
    /// # Errors
    /// Its options cannot be set.
    pub fn in_the_clear(socket: TcpStream) -> Result<Transport> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Transport { socket, tls: None, has_answered: false })
    }

    /// Connects, and does the handshake of TLS.
    ///
    /// # Errors
    /// Nobody listens; the handshake fails.
    pub fn open(address: &str, tls: Option<&TlsClient>) -> Result<Transport> {
        let socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        let mut transport = Transport::in_the_clear(socket)?;
        if let Some(client) = tls {
            let host = host_of(address).to_owned();
            let mut session = client.session(&host)?;
            session.set_buffer_limit(Some(AHEAD_BYTES));
            let encrypted = vec![0; INPUT];
            let mut session = Box::new(Session { client: client.clone(), host, session, encrypted });
            let done = session.handshake(&mut transport.socket);
            done.with_context(|| format!("no TLS with {address}"))?;
            transport.tls = Some(session);
        }
        Ok(transport)
    }

    /// The socket, for polling and timeouts.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Writes as much as the socket accepts now. Returns whether output remains.
    pub fn write(&mut self, output: &mut Output) -> Result<bool> {
        let Some(tls) = &mut self.tls else {
            while !output.rest().is_empty() {
                match write_once(&mut self.socket, output.rest())? {
                    0 => return Ok(true),
                    count => output.written += count,
                }
            }
            return Ok(false);
        };
        loop {
            if tls.flush(&mut self.socket)? {
                return Ok(true);
            }
            if output.rest().is_empty() {
                return Ok(false);
            }
            output.written += tls.session.writer().write(output.rest())?;
        }
    }

    /// Writes all output; for a blocking socket.
    pub fn write_blocking(&mut self, output: &mut Output) -> Result<()> {
        match self.write(output)? {
            false => Ok(()),
            true => bail!("the server has read nothing for {} s", PATIENCE.as_secs()),
        }
    }

    /// Reads from the socket once.
    pub fn read(&mut self, input: &mut Input) -> Result<Received> {
        let read = match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, input),
            None => {
                let read = read_once(&mut self.socket, input.room());
                input.filled += read.as_ref().copied().unwrap_or_default();
                read
            }
        };
        match read {
            Ok(0) => Ok(Received::Nothing),
            Ok(_) if !self.has_answered && self.tls.is_none() && input.data().starts_with(&ALERT) => {
                bail!("the server wants TLS on this port: give --tls")
            }
            Ok(_) => {
                self.has_answered = true;
                Ok(Received::Bytes)
            }
            Err(error) if !self.has_answered && error.is::<Closed>() => match &self.tls {
                None => Err(error.context("no answer; a server that wants TLS closes a connection without it: try --tls")),
                Some(_) => Err(error.context(
                    "no answer after the handshake; the server may want a certificate that it trusts: --cert and --key",
                )),
            },
            Err(error) => Err(error),
        }
    }
}

impl Session {
    /// Does the handshake, on a blocking socket.
    fn handshake(&mut self, socket: &mut TcpStream) -> Result<()> {
        while self.session.is_handshaking() {
            if self.flush(socket)? {
                bail!("the server has read nothing for {} s", PATIENCE.as_secs());
            }
            if !self.session.is_handshaking() {
                break;
            }
            let mut encrypted = std::mem::take(&mut self.encrypted);
            let count = match read_once(socket, &mut encrypted) {
                Ok(0) => bail!("the server has not answered for {} s", PATIENCE.as_secs()),
                Err(error) if error.is::<Closed>() => {
                    bail!(
                        "the server closed the connection in the handshake; perhaps it serves no TLS on this port"
                    )
                }
                count => count?,
            };
            let mut rest = encrypted.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                self.decrypt(&mut rest, socket)?;
            }
            self.encrypted = encrypted;
        }
        self.flush(socket).map(drop)
    }

    /// Sends what is encrypted. Returns whether some of it remains.
    fn flush(&mut self, socket: &mut TcpStream) -> Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(0) => bail!("the server takes nothing more"),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot write to the server"),
            }
        }
        Ok(false)
    }

    /// Reads once and decrypts all of it. Returns the number of decrypted bytes; 0 if there is nothing yet.
    fn read(&mut self, socket: &mut TcpStream, input: &mut Input) -> Result<usize> {
        loop {
            // What came with the end of the handshake.
            let decrypted = self.take(input)?;
            if decrypted > 0 {
                return Ok(decrypted);
            }
            let mut encrypted = std::mem::take(&mut self.encrypted);
            let read = read_once(socket, &mut encrypted).and_then(|count| {
                let mut rest = encrypted.get(..count).unwrap_or_default();
                let mut decrypted = 0;
                while !rest.is_empty() {
                    self.decrypt(&mut rest, socket)?;
                    decrypted += self.take(input)?;
                }
                Ok((count, decrypted))
            });
            self.encrypted = encrypted;
            match read? {
                (0, _) => return Ok(0),
                // A part of a record, or a message of the protocol itself.
                (_, 0) => {}
                (_, decrypted) => return Ok(decrypted),
            }
        }
    }

    /// Decrypts some of the bytes, which it takes off.
    fn decrypt(&mut self, bytes: &mut &[u8], socket: &mut TcpStream) -> Result<()> {
        self.session.read_tls(bytes)?;
        if let Err(error) = self.session.process_new_packets() {
            // The alert that says why. The connection ends whether it gets through or not.
            let _told = self.flush(socket);
            return Err(self.failed(&error));
        }
        Ok(())
    }

    fn failed(&self, error: &rustls::Error) -> anyhow::Error {
        anyhow!("the server at {}: {}", self.host, self.client.reason(&self.host, error))
    }

    /// Moves what is decrypted into the buffer.
    fn take(&mut self, input: &mut Input) -> Result<usize> {
        let before = input.filled;
        loop {
            match self.session.reader().read(input.room()) {
                Ok(0) => {
                    return if input.filled > before {
                        Ok(input.filled - before)
                    } else {
                        Err(Closed.into())
                    };
                }
                Ok(count) => input.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(input.filled - before),
                Err(error) => return Err(error).context("cannot read from the server"),
            }
        }
    }
}

/// The server has closed the connection.
#[derive(Debug, thiserror::Error)]
#[error("the server closed the connection")]
struct Closed;

/// Reads once; 0 if there is nothing yet.
fn read_once(socket: &mut TcpStream, into: &mut [u8]) -> Result<usize> {
    loop {
        match socket.read(into) {
            Ok(0) => return Err(Closed.into()),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted) =>
            {
                return Err(anyhow!(Closed));
            }
            Err(error) => return Err(error).context("cannot read from the server"),
        }
    }
}

/// Writes once; 0 if the socket accepts nothing now.
fn write_once(socket: &mut TcpStream, bytes: &[u8]) -> Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(0) => bail!("the server takes nothing more"),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot write to the server"),
        }
    }
}

/// The host of `HOST:PORT`.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
