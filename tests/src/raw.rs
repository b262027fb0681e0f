//! A client that sends raw bytes, for requests that no driver sends. Its frames are built by hand from the protocol's
//! specifications (`doc/native_protocol_v4.spec`, `v5.spec`), independently of the server's own codec.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// ERROR.
pub const ERROR: u8 = 0x00;
/// STARTUP.
pub const STARTUP: u8 = 0x01;
/// READY.
pub const READY: u8 = 0x02;
/// AUTHENTICATE.
pub const AUTHENTICATE: u8 = 0x03;
/// OPTIONS.
pub const OPTIONS: u8 = 0x05;
/// QUERY.
pub const QUERY: u8 = 0x07;
/// RESULT.
pub const RESULT: u8 = 0x08;
/// PREPARE.
pub const PREPARE: u8 = 0x09;
/// EXECUTE.
pub const EXECUTE: u8 = 0x0A;
/// REGISTER.
pub const REGISTER: u8 = 0x0B;
/// EVENT.
pub const EVENT: u8 = 0x0C;
/// BATCH.
pub const BATCH: u8 = 0x0D;
/// AUTH_RESPONSE.
pub const AUTH_RESPONSE: u8 = 0x0F;
/// AUTH_SUCCESS.
pub const AUTH_SUCCESS: u8 = 0x10;
/// Bytes of a frame's header: version, flags, stream, opcode, length.
pub const HEADER: usize = 9;

/// A connection.
pub struct Raw {
    /// The socket, for bytes of any kind.
    pub socket: TcpStream,
    version: u8,
    /// Whether frames are sent in segments (v5 after STARTUP).
    segmented: bool,
    /// Bytes received and not parsed yet.
    input: Vec<u8>,
    /// Complete frames taken from segments.
    frames: Vec<u8>,
}

/// An answer of the server.
#[derive(Debug)]
pub struct Reply {
    /// The version of the frame, with the bit that marks a response.
    pub version: u8,
    /// The stream id.
    pub stream: i16,
    /// The opcode.
    pub opcode: u8,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Code and text of an ERROR.
    ///
    /// # Panics
    /// The answer is not an ERROR.
    pub fn error(&self) -> (i32, String) {
        assert_eq!(self.opcode, ERROR, "an error was expected: {self:?}");
        let code = i32::from_be_bytes(self.body[..4].try_into().expect("four bytes"));
        let length = usize::from(u16::from_be_bytes([self.body[4], self.body[5]]));
        (code, String::from_utf8_lossy(&self.body[6..6 + length]).into_owned())
    }
}

impl Raw {
    /// Connects and sends nothing.
    ///
    /// # Panics
    /// No server listens.
    pub fn connect(address: &str, version: u8) -> Self {
        let socket =
            TcpStream::connect(address).unwrap_or_else(|error| panic!("connect to {address}: {error}"));
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        Self { socket, version, segmented: false, input: Vec::new(), frames: Vec::new() }
    }

    /// Connects and starts up the connection.
    ///
    /// # Panics
    /// The server does not answer READY.
    pub fn ready(address: &str, version: u8) -> Self {
        let mut raw = Self::connect(address, version);
        raw.send(&frame(version, 0, 0, STARTUP, &startup()));
        let reply = raw.receive().expect("an answer to STARTUP");
        assert_eq!(reply.opcode, READY, "{reply:?}");
        raw.segmented = version >= 5;
        raw
    }

    /// Connects and sends STARTUP; returns the answer too.
    ///
    /// # Panics
    /// The server closes instead of answering.
    pub fn greeted(address: &str, version: u8) -> (Self, Reply) {
        let mut raw = Self::connect(address, version);
        raw.send(&frame(version, 0, 0, STARTUP, &startup()));
        let reply = raw.receive().expect("an answer to STARTUP");
        raw.segmented = version >= 5;
        (raw, reply)
    }

    /// Connects and logs in by name and password; returns the answer to the login.
    ///
    /// # Panics
    /// The server closes instead of answering, or wants no login.
    pub fn login(address: &str, version: u8, (user, password): (&str, &str)) -> (Self, Reply) {
        let (mut raw, reply) = Self::greeted(address, version);
        assert_eq!(reply.opcode, AUTHENTICATE, "{reply:?}");
        let reply = raw.authenticate(format!("\0{user}\0{password}").as_bytes());
        (raw, reply)
    }

    /// Sends a SASL token.
    ///
    /// # Panics
    /// The server closes instead of answering.
    pub fn authenticate(&mut self, token: &[u8]) -> Reply {
        self.send_login(token);
        self.receive().expect("an answer to the login")
    }

    /// Sends a SASL token and waits for nothing.
    pub fn send_login(&mut self, token: &[u8]) {
        let mut body = (token.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(token);
        let request = frame(self.version, 0, 1, AUTH_RESPONSE, &body);
        let bytes = if self.segmented { segments(&request) } else { request };
        self.send(&bytes);
    }

    /// Sends any request and returns the answer.
    ///
    /// # Panics
    /// The server closes instead of answering.
    pub fn ask(&mut self, opcode: u8, body: &[u8]) -> Reply {
        self.try_ask(opcode, body)
            .unwrap_or_else(|| panic!("the server closed instead of answering {opcode}"))
    }

    /// As `ask`; `None` if the server closes instead of answering.
    pub fn try_ask(&mut self, opcode: u8, body: &[u8]) -> Option<Reply> {
        let request = frame(self.version, 0, 1, opcode, body);
        let bytes = if self.segmented { segments(&request) } else { request };
        self.send(&bytes);
        self.receive()
    }

    /// Prepares a statement. Returns its id, and the answer.
    ///
    /// # Panics
    /// It cannot be prepared.
    pub fn prepare(&mut self, text: &str) -> (Vec<u8>, Reply) {
        self.try_prepare(text).unwrap_or_else(|| panic!("the server closed instead of preparing {text}"))
    }

    /// The same; `None` if the server closes instead of answering.
    ///
    /// # Panics
    /// It cannot be prepared.
    pub fn try_prepare(&mut self, text: &str) -> Option<(Vec<u8>, Reply)> {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        if self.version >= 5 {
            body.extend_from_slice(&[0; 4]);
        }
        let reply = self.try_ask(PREPARE, &body)?;
        assert_eq!(reply.opcode, RESULT, "{text}: {reply:?}");
        // The kind of the result, then the id with its length. A warning may come before (of USE with prepared statements).
        let kind = [0, 0, 0, 4];
        let at =
            reply.body.windows(4).position(|bytes| bytes == kind).expect("a prepared statement") + kind.len();
        let length = usize::from(u16::from_be_bytes([reply.body[at], reply.body[at + 1]]));
        Some((reply.body[at + 2..at + 2 + length].to_vec(), reply))
    }

    /// As `ready`; `None` if the server is gone.
    pub fn try_ready(address: &str, version: u8) -> Option<Self> {
        let socket = TcpStream::connect(address).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        let mut raw = Self { socket, version, segmented: false, input: Vec::new(), frames: Vec::new() };
        raw.send(&frame(version, 0, 0, STARTUP, &startup()));
        raw.receive().filter(|reply| reply.opcode == READY)?;
        raw.segmented = version >= 5;
        Some(raw)
    }

    /// Runs a statement; `None` if the server closes instead of answering.
    pub fn try_query(&mut self, text: &str) -> Option<Reply> {
        self.try_ask(QUERY, &query(self.version, text, &[]))
    }

    /// Sends bytes as they are. An error is ignored: answers of a server that has closed can still be read.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Runs a statement.
    ///
    /// # Panics
    /// The server closes instead of answering.
    pub fn query(&mut self, text: &str) -> Reply {
        self.query_with(text, &[])
    }

    /// Runs a statement with values; `None` is null.
    ///
    /// # Panics
    /// The server closes instead of answering.
    pub fn query_with(&mut self, text: &str, values: &[Option<&[u8]>]) -> Reply {
        self.try_ask(QUERY, &query(self.version, text, values))
            .unwrap_or_else(|| panic!("the server closed instead of answering {text}"))
    }

    /// Runs a statement that must succeed.
    ///
    /// # Panics
    /// It fails.
    pub fn run(&mut self, text: &str) {
        let reply = self.query(text);
        let shown: String = text.chars().take(200).collect();
        assert_eq!(reply.opcode, RESULT, "{shown}: {:?}", reply.error());
    }

    /// The next answer; `None` if the server has closed.
    ///
    /// # Panics
    /// There is no answer within a minute.
    pub fn receive(&mut self) -> Option<Reply> {
        loop {
            if self.segmented {
                self.unwrap_segments();
            }
            let from = if self.segmented { &mut self.frames } else { &mut self.input };
            if let Some(reply) = take_frame(from) {
                return Some(reply);
            }
            let mut buffer = vec![0; 1 << 16];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    return None;
                }
                // Happens when the process is stopped and continued.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    fn unwrap_segments(&mut self) {
        while self.input.len() >= 6 {
            let length =
                (u32::from_le_bytes([self.input[0], self.input[1], self.input[2], 0]) & 0x1_FFFF) as usize;
            if self.input.len() < 6 + length + 4 {
                return;
            }
            self.frames.extend_from_slice(&self.input[6..6 + length]);
            self.input.drain(..6 + length + 4);
        }
    }
}

fn take_frame(from: &mut Vec<u8>) -> Option<Reply> {
    let version = *from.first()?;
    // Before version 3 the stream id had one byte. Clients of those versions get answers in their own format.
    let stream_bytes = if matches!(version & 0x7F, 1 | 2) { 1 } else { 2 };
    let (opcode, header) = (2 + stream_bytes, 7 + stream_bytes);
    let length =
        from.get(header - 4..header)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let body = from.get(header..header + length)?.to_vec();
    let stream = match from[2..opcode] {
        [high, low] => i16::from_be_bytes([high, low]),
        _ => i16::from(from[2] as i8),
    };
    let reply = Reply { version, stream, opcode: from[opcode], body };
    from.drain(..header + length);
    Some(reply)
}

/// A frame.
pub fn frame(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.push(opcode);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// The body of a STARTUP.
pub fn startup() -> Vec<u8> {
    let mut out = vec![0, 1];
    for text in ["CQL_VERSION", "3.0.0"] {
        out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The body of a QUERY at consistency ONE.
pub fn query(version: u8, text: &str, values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = (text.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(&[0, 1]);
    let flags = u8::from(!values.is_empty());
    if version >= 5 {
        out.extend_from_slice(&u32::from(flags).to_be_bytes());
    } else {
        out.push(flags);
    }
    if !values.is_empty() {
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            match value {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(bytes) => {
                    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                    out.extend_from_slice(bytes);
                }
            }
        }
    }
    out
}

/// Frames in v5 segments: a single self-contained segment if they fit, otherwise several.
pub fn segments(frames: &[u8]) -> Vec<u8> {
    const MOST: usize = (1 << 17) - 12;
    let self_contained = frames.len() <= MOST;
    frames.chunks(MOST).flat_map(|part| segment(part, self_contained)).collect()
}

/// A segment without compression.
pub fn segment(payload: &[u8], self_contained: bool) -> Vec<u8> {
    let head = payload.len() as u32 | u32::from(self_contained) << 17;
    let mut out = head.to_le_bytes()[..3].to_vec();
    let crc = crc24(&out);
    out.extend_from_slice(&crc.to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
    out
}

/// The checksum of a segment's header (`net.Crc.crc24`).
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x87_5060, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc: u32, _| {
            if crc & 0x80_0000 != 0 { crc << 1 ^ 0x197_4F0B } else { crc << 1 }
        })
    })
}

/// The checksum of a segment's payload: CRC-32 with four bytes prepended.
fn crc32(bytes: &[u8]) -> u32 {
    let seeded = [0xFA, 0x2D, 0x55, 0xCA].into_iter().chain(bytes.iter().copied());
    !seeded.fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}
