//! A connection of the native protocol with its framing: envelopes are written in few writes and read in large reads.

use anyhow::{Context, Result, bail};
use helenus_wire::native::{
    Direction, Envelope, EnvelopeReader, RequestHead, SegmentFormat, SegmentReader, SegmentWriter, Step,
    Version, encode_startup,
};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Initial size of the read buffer, in bytes. It grows for longer answers.
const INPUT: usize = 256 << 10;
/// Maximum size of an answer. Cassandra's own limit on frames is far below.
const MESSAGE_MAX: u64 = 256 << 20;
/// Maximum time to wait for an answer before the run fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A connection after STARTUP.
pub struct Connection {
    pub socket: TcpStream,
    pub version: Version,
    framing: Framing,
    input: Vec<u8>,
    /// Number of bytes of `input` that hold data.
    filled: usize,
    output: Vec<u8>,
    /// Number of bytes of `output` already written.
    written: usize,
}

enum Framing {
    Bare(EnvelopeReader),
    Segments(SegmentReader, SegmentWriter),
}

/// The result of a read of the socket.
pub enum Received {
    /// At least one byte.
    Bytes,
    /// No byte yet.
    Nothing,
}

impl Connection {
    /// Connects and sends STARTUP, without compression.
    pub fn open(address: &str, version: Version) -> Result<Connection> {
        let socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let bare = EnvelopeReader { from: Direction::Response, connection: None, max_frame: MESSAGE_MAX };
        let mut connection = Connection {
            socket,
            version,
            framing: Framing::Bare(bare),
            input: vec![0; INPUT],
            filled: 0,
            output: Vec::new(),
            written: 0,
        };
        encode_startup(&[("CQL_VERSION", "3.0.0")], &RequestHead::new(version, 0), &mut connection.output)?;
        connection.write_blocking()?;
        Ok(connection)
    }

    /// Call this once STARTUP is answered: from then on, v5 uses segments.
    pub fn started(&mut self) {
        self.framing = match self.version {
            Version::V5 => Framing::Segments(
                SegmentReader::new(SegmentFormat::Plain, Direction::Response, MESSAGE_MAX),
                SegmentWriter::new(SegmentFormat::Plain),
            ),
            version => Framing::Bare(EnvelopeReader {
                from: Direction::Response,
                connection: Some(version),
                max_frame: MESSAGE_MAX,
            }),
        };
    }

    /// Appends envelopes to the output buffer.
    pub fn put<T>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        match &mut self.framing {
            Framing::Bare(_) => fill(&mut self.output),
            Framing::Segments(_, writer) => {
                let open = writer.open(&mut self.output);
                let filled = fill(&mut self.output);
                writer.close(open, &mut self.output);
                filled
            }
        }
    }

    /// Writes as much as the socket accepts now. Returns whether output remains.
    pub fn write(&mut self) -> Result<bool> {
        while let Some(rest) = self.output.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(0) => bail!("the server takes nothing more"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot write to the server"),
            }
        }
        Ok(false)
    }

    /// Writes all output; for a blocking socket.
    pub fn write_blocking(&mut self) -> Result<()> {
        match self.write()? {
            false => Ok(()),
            true => bail!("the server has read nothing for {} s", PATIENCE.as_secs()),
        }
    }

    /// Reads from the socket once.
    pub fn read(&mut self) -> Result<Received> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        loop {
            match self.socket.read(self.input.get_mut(self.filled..).unwrap_or_default()) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => {
                    self.filled += count;
                    return Ok(Received::Bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read from the server"),
            }
        }
    }

    /// Passes every complete envelope that has arrived to `each`, in order.
    pub fn envelopes(&mut self, mut each: impl FnMut(&Envelope<'_>) -> Result<()>) -> Result<()> {
        let input = self.input.get(..self.filled).unwrap_or_default();
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            match &mut self.framing {
                Framing::Bare(reader) => {
                    let Some(envelope) = reader.read(rest).map_err(|refusal| refusal.error)? else { break };
                    used += envelope.size();
                    each(&envelope)?;
                }
                Framing::Segments(reader, _) => {
                    let inner = *reader.envelopes();
                    match reader.read(rest).map_err(|refusal| refusal.error)? {
                        Step::Incomplete => break,
                        Step::Part { used: part } => used += part,
                        Step::Envelopes { used: part, payload, .. } => {
                            used += part;
                            take_apart(&inner, payload, &mut each)?;
                        }
                    }
                }
            }
        }
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
        Ok(())
    }
}

fn take_apart(
    reader: &EnvelopeReader,
    mut payload: &[u8],
    each: &mut impl FnMut(&Envelope<'_>) -> Result<()>,
) -> Result<()> {
    while !payload.is_empty() {
        let envelope = reader.read_in_segment(payload).map_err(|refusal| refusal.error)?;
        each(&envelope)?;
        payload = payload.get(envelope.size()..).unwrap_or_default();
    }
    Ok(())
}
