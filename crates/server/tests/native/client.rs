//! A client of raw bytes, built on the wire crate's client half: one socket and no driver.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use helenus_wire::native::*;

/// A response, with its own copy of the bytes.
pub struct Answer {
    pub header: Header,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn message(&self) -> ResponseMessage<'_> {
        decode_response(self.header.version, self.header.opcode, self.header.flags, &self.body)
            .expect("the server's own bytes can be read")
    }

    pub fn error(&self) -> ErrorMessage {
        match self.message().response {
            Response::Error(error) => error,
            other => panic!("an error was expected, not {other:?}"),
        }
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.message().response, Response::Ready)
    }
}

pub struct Client {
    pub socket: TcpStream,
    pub version: Version,
    codec: Option<BodyCodec>,
    segments: Option<(SegmentWriter, SegmentReader)>,
    input: Vec<u8>,
    envelopes: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr, version: Version) -> Client {
        Client::of(TcpStream::connect(address).expect("the server listens"), version)
    }

    fn of(socket: TcpStream, version: Version) -> Client {
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket option");
        socket.set_nodelay(true).expect("a socket option");
        Client { socket, version, codec: None, segments: None, input: Vec::new(), envelopes: Vec::new() }
    }

    /// Connects from an address of this machine.
    pub fn connect_from(from: [u8; 4], address: SocketAddr, version: Version) -> Client {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address of the loopback");
        socket.connect(&address.into()).expect("the server listens");
        Client::of(socket.into(), version)
    }

    /// Connects and completes STARTUP.
    pub fn ready(address: SocketAddr, version: Version, options: &[(&str, &str)]) -> Client {
        let mut client = Client::connect(address, version);
        let answer = client.startup(options);
        assert!(answer.is_ready(), "{:?}", answer.message());
        client
    }

    /// Sends STARTUP and reads its answer; after that, uses the agreed framing.
    pub fn startup(&mut self, options: &[(&str, &str)]) -> Answer {
        let mut bytes = Vec::new();
        let mut all = vec![("CQL_VERSION", "3.0.0")];
        all.extend_from_slice(options);
        encode_startup(&all, &RequestHead::new(self.version, 0), &mut bytes).expect("short");
        self.raw(&bytes);
        let compression = options
            .iter()
            .find(|(key, _)| *key == "COMPRESSION")
            .map(|(_, name)| if *name == "snappy" { Compression::Snappy } else { Compression::Lz4 });
        if self.version < Version::V5 {
            self.codec = compression.map(BodyCodec::new);
            return self.receive().expect("an answer");
        }
        let answer = self.receive().expect("an answer");
        let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
        let reader = SegmentReader::new(format, Direction::Response, u64::MAX >> 1);
        self.segments = Some((SegmentWriter::new(format), reader));
        answer
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server takes bytes");
    }

    /// Encodes requests with the framing of this connection.
    pub fn frame(&mut self, requests: &[(i16, Request<'_>)]) -> Vec<u8> {
        let mut envelopes = Vec::new();
        for (stream, request) in requests {
            let head = RequestHead::new(self.version, *stream);
            match &mut self.codec {
                Some(codec) => request.encode_compressed(&head, codec, &mut envelopes),
                None => request.encode(&head, &mut envelopes),
            }
            .expect("within the protocol's limits");
        }
        self.wrap(&envelopes)
    }

    /// Puts envelopes into the framing of this connection.
    pub fn wrap(&mut self, envelopes: &[u8]) -> Vec<u8> {
        let Some((writer, _)) = &mut self.segments else { return envelopes.to_vec() };
        let mut bytes = Vec::new();
        writer.append(envelopes, &mut bytes);
        bytes
    }

    pub fn send(&mut self, requests: &[(i16, Request<'_>)]) {
        let bytes = self.frame(requests);
        self.raw(&bytes);
    }

    pub fn ask(&mut self, request: Request<'_>) -> Answer {
        self.send(&[(7, request)]);
        let answer = self.receive().expect("an answer");
        assert_eq!(answer.header.stream, 7);
        answer
    }

    pub fn query(&mut self, text: &str) -> Answer {
        self.ask(Request::Query(Query { query: text, parameters: QueryParameters::default() }))
    }

    /// The next response; `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<Answer> {
        loop {
            if let Some(answer) = self.next() {
                return Some(answer);
            }
            let mut buffer = vec![0; 1 << 16];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    fn next(&mut self) -> Option<Answer> {
        let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: 1 << 31 };
        let Some((_, segments)) = &mut self.segments else {
            let envelope = reader.read(&self.input).expect("bytes of a server")?;
            let size = envelope.size();
            let body = match &mut self.codec {
                Some(codec) => {
                    codec.decompress(&envelope, 1 << 31).expect("compressed by the server").to_vec()
                }
                None => envelope.body.to_vec(),
            };
            let answer = Answer { header: envelope.header, body };
            self.input.drain(..size);
            return Some(answer);
        };
        while self.envelopes.is_empty() {
            let used = match segments.read(&self.input).expect("segments of a server") {
                Step::Incomplete => return None,
                Step::Part { used } => used,
                Step::Envelopes { used, payload, .. } => {
                    self.envelopes.extend_from_slice(payload);
                    used
                }
            };
            self.input.drain(..used);
        }
        let envelope = reader.read_in_segment(&self.envelopes).expect("whole envelopes");
        let answer = Answer { header: envelope.header, body: envelope.body.to_vec() };
        let size = envelope.size();
        self.envelopes.drain(..size);
        Some(answer)
    }

    /// Whether the server closes the connection without sending more.
    pub fn is_closed(&mut self) -> bool {
        self.receive().is_none()
    }
}
