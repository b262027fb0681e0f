//! A connection with one request in flight, over the client's half of `helenus-wire`.

use anyhow::{Context, Result, bail};
use helenus_wire::native::{
    Direction, Envelope, EnvelopeReader, Query, QueryParameters, Request, RequestHead, SegmentFormat,
    SegmentReader, SegmentWriter, Step, Version, decode_response, encode_startup,
};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Answer;

/// Longest answer taken.
const MESSAGE_MAX: u64 = 256 << 20;
/// How long an answer may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes asked of the socket at once.
const INPUT: usize = 64 << 10;

/// A connection past STARTUP.
pub struct Connection {
    socket: TcpStream,
    version: Version,
    framing: Framing,
    /// Received and not yet a whole answer.
    input: Vec<u8>,
    output: Vec<u8>,
}

enum Framing {
    Bare(EnvelopeReader),
    Segments(SegmentReader, SegmentWriter),
}

impl Connection {
    /// Connects to `HOST:PORT` and waits until the server is ready.
    ///
    /// # Errors
    /// Nobody listens, or the answer is not READY.
    pub fn open(address: &str, version: Version) -> Result<Connection> {
        Connection::open_as(address, version, None)
    }

    /// The same, and logs in by name and password if they are given.
    ///
    /// # Errors
    /// As `open`; the server refuses the login, or asks for none.
    pub fn open_as(address: &str, version: Version, login: Option<(&str, &str)>) -> Result<Connection> {
        let socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let bare = EnvelopeReader { from: Direction::Response, connection: None, max_frame: MESSAGE_MAX };
        let framing = Framing::Bare(bare);
        let mut connection = Connection { socket, version, framing, input: Vec::new(), output: Vec::new() };
        let mut startup = Vec::new();
        encode_startup(&[("CQL_VERSION", "3.0.0")], &RequestHead::new(version, 0), &mut startup)?;
        connection.socket.write_all(&startup)?;
        let answer = connection.receive()?;
        if (answer.outcome == crate::Outcome::Ready) == login.is_some() {
            bail!("{address} answers STARTUP with {:?}", answer.outcome);
        }
        connection.framing = if version == Version::V5 {
            Framing::Segments(
                SegmentReader::new(SegmentFormat::Plain, Direction::Response, MESSAGE_MAX),
                SegmentWriter::new(SegmentFormat::Plain),
            )
        } else {
            Framing::Bare(EnvelopeReader {
                from: Direction::Response,
                connection: Some(version),
                max_frame: MESSAGE_MAX,
            })
        };
        if let Some((user, password)) = login {
            let token = format!("\0{user}\0{password}");
            connection.send(&Request::AuthResponse(Some(token.as_bytes())))?;
            let answer = connection.receive()?;
            if answer.error().is_some() {
                bail!("{address} refuses the login of {user}: {}", answer.describe());
            }
        }
        Ok(connection)
    }

    /// Runs a statement that must succeed.
    ///
    /// # Errors
    /// It is refused.
    pub fn must(&mut self, text: &str) -> Result<()> {
        let parameters = QueryParameters::default();
        self.send(&Request::Query(Query { query: text, parameters }))?;
        let answer = self.receive()?;
        match answer.error() {
            None => Ok(()),
            Some(_) => bail!("{text}: {}", answer.describe()),
        }
    }

    /// Sends one request.
    ///
    /// # Errors
    /// The request cannot be encoded, or the server takes nothing.
    pub fn send(&mut self, request: &Request<'_>) -> Result<()> {
        let head = RequestHead::new(self.version, 0);
        self.output.clear();
        match &mut self.framing {
            Framing::Bare(_) => request.encode(&head, &mut self.output)?,
            Framing::Segments(_, writer) => {
                let open = writer.open(&mut self.output);
                request.encode(&head, &mut self.output)?;
                writer.close(open, &mut self.output);
            }
        }
        self.socket.write_all(&self.output).context("cannot write to the server")
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// The server closes, takes too long, or its bytes are no answer.
    pub fn receive(&mut self) -> Result<Answer> {
        let mut buffer = [0; INPUT];
        loop {
            if let Some(answer) = self.take_answer()? {
                return Ok(answer);
            }
            let count = match self.socket.read(&mut buffer) {
                // The runner was stopped by a signal and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.context("no answer from the server")?,
            };
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.input.extend_from_slice(&buffer[..count]);
        }
    }

    fn take_answer(&mut self) -> Result<Option<Answer>> {
        let mut answer = None;
        let mut used = 0;
        while answer.is_none() {
            let rest = &self.input[used..];
            match &mut self.framing {
                Framing::Bare(reader) => {
                    let Some(envelope) = reader.read(rest).map_err(|refusal| refusal.error)? else { break };
                    used += envelope.size();
                    answer = read(&envelope)?;
                }
                Framing::Segments(reader, _) => {
                    let inner = *reader.envelopes();
                    match reader.read(rest).map_err(|refusal| refusal.error)? {
                        Step::Incomplete => break,
                        Step::Part { used: part } => used += part,
                        Step::Envelopes { used: part, payload, .. } => {
                            used += part;
                            let envelope = inner.read_in_segment(payload).map_err(|refusal| refusal.error)?;
                            answer = read(&envelope)?;
                        }
                    }
                }
            }
        }
        self.input.drain(..used);
        Ok(answer)
    }
}

fn read(envelope: &Envelope<'_>) -> Result<Option<Answer>> {
    let header = envelope.header;
    let message = decode_response(header.version, header.opcode, header.flags, envelope.body)?;
    Answer::read(&message).map(Some)
}
