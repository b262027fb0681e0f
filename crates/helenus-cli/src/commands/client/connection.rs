//! A connection of the native protocol with its framing.

use super::transport::{Input, Output, Received, Transport};
use anyhow::Result;
use helenus_tls::TlsClient;
use helenus_wire::native::{
    Direction, Envelope, EnvelopeReader, RequestHead, SegmentFormat, SegmentReader, SegmentWriter, Step,
    Version, encode_startup,
};
use std::net::TcpStream;

/// Maximum size of an answer. Cassandra's own limit on frames is far below.
const MESSAGE_MAX: u64 = 256 << 20;

/// A connection after STARTUP.
pub struct Connection {
    transport: Transport,
    pub version: Version,
    framing: Framing,
    input: Input,
    output: Output,
}

enum Framing {
    Bare(EnvelopeReader),
    Segments(SegmentReader, SegmentWriter),
}

impl Connection {
    pub fn open(address: &str, version: Version, tls: Option<&TlsClient>) -> Result<Connection> {
        Connection::begin(Transport::open(address, tls)?, version)
    }

    /// Sends STARTUP over a socket that is connected, in the clear.
    pub fn over(socket: TcpStream, version: Version) -> Result<Connection> {
        Connection::begin(Transport::in_the_clear(socket)?, version)
    }

    fn begin(transport: Transport, version: Version) -> Result<Connection> {
        let bare = EnvelopeReader { from: Direction::Response, connection: None, max_frame: MESSAGE_MAX };
        let mut connection = Connection {
            transport,
            version,
            framing: Framing::Bare(bare),
            input: Input::new(),
            output: Output::default(),
        };
        let head = RequestHead::new(version, 0);
        encode_startup(&[("CQL_VERSION", "3.0.0")], &head, connection.output.open())?;
        connection.write_blocking()?;
        Ok(connection)
    }

    /// The socket, for polling and timeouts.
    pub fn socket(&self) -> &TcpStream {
        self.transport.socket()
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
        let output = self.output.open();
        match &mut self.framing {
            Framing::Bare(_) => fill(output),
            Framing::Segments(_, writer) => {
                let open = writer.open(output);
                let filled = fill(output);
                writer.close(open, output);
                filled
            }
        }
    }

    /// Writes as much as the socket accepts now. Returns whether output remains.
    pub fn write(&mut self) -> Result<bool> {
        self.transport.write(&mut self.output)
    }

    /// Writes all output; for a blocking socket.
    pub fn write_blocking(&mut self) -> Result<()> {
        self.transport.write_blocking(&mut self.output)
    }

    /// Reads from the socket once.
    pub fn read(&mut self) -> Result<Received> {
        self.transport.read(&mut self.input)
    }

    /// Passes every complete envelope that has arrived to `each`, in order.
    pub fn envelopes(&mut self, mut each: impl FnMut(&Envelope<'_>) -> Result<()>) -> Result<()> {
        let input = self.input.data();
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
        self.input.consume(used);
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
