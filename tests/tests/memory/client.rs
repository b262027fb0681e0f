//! A client that does not keep the answers it receives, so that many clients fit beside the server.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use end_to_end::raw::{ERROR, QUERY, READY, STARTUP, frame, query, startup};

/// PREPARE.
const PREPARE: u8 = 0x09;
/// Bytes of an answer that are kept: everything before its rows, or an error's text.
const KEPT: usize = 64 << 10;
/// Errors for lack of memory or time, which a server within its limits may answer.
pub const OVERLOADED: i32 = 0x1001;
const WRITE_TIMEOUT: i32 = 0x1100;
const READ_TIMEOUT: i32 = 0x1200;
const INVALID: i32 = 0x2200;

/// The outcome of requests.
#[derive(Default)]
pub struct Tally {
    /// Number of requests answered with a result.
    pub done: u64,
    /// Requests answered with an error: by code, their number and the first text.
    pub errors: BTreeMap<i32, (u64, String)>,
    /// Number of requests where the server closed the connection instead.
    pub closed: u64,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.done += other.done;
        self.closed += other.closed;
        for (code, (count, text)) in other.errors {
            self.errors.entry(code).or_insert((0, text)).0 += count;
        }
    }

    /// Errors other than those for lack of memory or time.
    pub fn unexpected(&self) -> Vec<String> {
        let bounded = |code: i32, text: &str| {
            matches!(code, OVERLOADED | WRITE_TIMEOUT | READ_TIMEOUT)
                || code == INVALID && (text.contains("longer than") || text.contains("out of bound"))
        };
        let errors = self.errors.iter().filter(|(code, (_, text))| !bounded(**code, text));
        let mut unexpected: Vec<String> =
            errors.map(|(code, (count, text))| format!("{count} errors 0x{code:04x}: {text}")).collect();
        if self.closed > 0 {
            unexpected.push(format!("{} connections were closed", self.closed));
        }
        unexpected
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} done", self.done)?;
        self.errors.iter().try_for_each(|(code, (count, _))| write!(f, ", {count} of 0x{code:04x}"))
    }
}

/// A connection with protocol v4.
pub struct Client {
    /// The socket, for bytes of any kind.
    pub socket: TcpStream,
    /// The outcome of its requests.
    pub tally: Tally,
    /// The first bytes of the last answer's body.
    pub head: Vec<u8>,
    /// The compression of the last answer's body.
    compression: Option<Compression>,
    /// The compression of the connection, if any.
    algorithm: Option<Compression>,
}

#[derive(Clone, Copy)]
enum Compression {
    Lz4,
    Snappy,
}

/// The literal bytes at the start of a compressed body. They include an error's text, because nothing before it is
/// repeated.
fn first_literal(compression: Compression, body: &[u8]) -> &[u8] {
    let long = |at: usize| {
        // 15, plus bytes up to and including the first that is not 255.
        let more = body[at..].iter().take_while(|byte| **byte == 255).count();
        (15 + 255 * more + usize::from(body[at + more]), at + more + 1)
    };
    let (length, at) = match compression {
        Compression::Lz4 if body[4] >> 4 == 15 => long(5),
        Compression::Lz4 => (usize::from(body[4] >> 4), 5),
        Compression::Snappy => {
            let tag = body.iter().position(|byte| byte & 0x80 == 0).map_or(0, |last| last + 1);
            match body[tag] >> 2 {
                60 => (usize::from(body[tag + 1]) + 1, tag + 2),
                length => (usize::from(length) + 1, tag + 1),
            }
        }
    };
    &body[at..body.len().min(at + length)]
}

impl Client {
    /// Connects and starts up the connection.
    pub fn ready(address: &str) -> Client {
        Client::started(address, &startup())
    }

    /// As `ready`, with compressed bodies.
    pub fn compressed(address: &str, algorithm: &str) -> Client {
        let mut body = vec![0, 2];
        for text in ["CQL_VERSION", "3.0.0", "COMPRESSION", algorithm] {
            body.extend_from_slice(&(text.len() as u16).to_be_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        let mut client = Client::started(address, &body);
        client.algorithm = Some(if algorithm == "lz4" { Compression::Lz4 } else { Compression::Snappy });
        client
    }

    fn started(address: &str, body: &[u8]) -> Client {
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(120))).expect("a socket option");
        socket.set_nodelay(true).expect("a socket option");
        let (tally, head) = (Tally::default(), Vec::new());
        let mut client = Client { socket, tally, head, compression: None, algorithm: None };
        client.send(&frame(4, 0, 0, STARTUP, body));
        assert_eq!(client.receive(), Some(READY));
        client
    }

    /// Sends bytes as they are. Errors are ignored: the answers of a server that has closed can still be read.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Receives an answer. Returns its opcode, or `None` if the server has closed.
    pub fn receive(&mut self) -> Option<u8> {
        let mut header = [0; 9];
        self.socket.read_exact(&mut header).ok()?;
        let [_, flags, _, _, opcode, length @ ..] = header;
        self.compression = self.algorithm.filter(|_| flags & 0x01 != 0);
        let mut left = u32::from_be_bytes(length) as usize;
        self.head.resize(left.min(KEPT), 0);
        self.socket.read_exact(&mut self.head).ok()?;
        left -= self.head.len();
        let mut dropped = [0; KEPT];
        while left > 0 {
            let part = left.min(KEPT);
            self.socket.read_exact(&mut dropped[..part]).ok()?;
            left -= part;
        }
        Some(opcode)
    }

    /// Receives an answer and counts it. Returns whether it is a result.
    pub fn count(&mut self) -> bool {
        match self.receive() {
            Some(ERROR) => {
                let body = self.compression.map_or(&self.head[..], |by| first_literal(by, &self.head));
                let code = i32::from_be_bytes(body[..4].try_into().expect("four bytes"));
                // Of a compressed text, only the beginning is available.
                let length = usize::from(u16::from_be_bytes([body[4], body[5]])).min(body.len() - 6);
                let text = String::from_utf8_lossy(&body[6..6 + length]).into_owned();
                self.tally.errors.entry(code).or_insert((0, text)).0 += 1;
                false
            }
            Some(_) => {
                self.tally.done += 1;
                true
            }
            None => {
                self.tally.closed += 1;
                false
            }
        }
    }

    /// Runs a statement with values. Returns whether it succeeded.
    pub fn ask(&mut self, text: &str, values: &[&[u8]]) -> bool {
        let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
        self.send(&frame(4, 0, 1, QUERY, &query(4, text, &values)));
        self.count()
    }

    /// Runs a statement with tracing.
    pub fn ask_traced(&mut self, text: &str) -> bool {
        self.send(&frame(4, 0x02, 1, QUERY, &query(4, text, &[])));
        self.count()
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, text: &str) -> bool {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        self.send(&frame(4, 0, 1, PREPARE, &body));
        self.count()
    }

    /// Runs a statement that loads data, and repeats it while the server lacks memory.
    pub fn load(&mut self, text: &str, values: &[&[u8]]) {
        for _ in 0..1000 {
            if self.ask(text, values) {
                return;
            }
            let unexpected = self.tally.unexpected();
            assert!(unexpected.is_empty(), "{text}: {unexpected:?}");
        }
        panic!("{text}: the server has no room, {}", self.tally);
    }

    /// Runs a SELECT page by page to its end.
    pub fn ask_in_pages(&mut self, text: &str, rows: i32) {
        let mut state: Option<Vec<u8>> = None;
        loop {
            let mut body = (text.len() as u32).to_be_bytes().to_vec();
            body.extend_from_slice(text.as_bytes());
            body.extend_from_slice(&[0, 1, 0x04 | if state.is_some() { 0x08 } else { 0 }]);
            body.extend_from_slice(&rows.to_be_bytes());
            if let Some(state) = &state {
                body.extend_from_slice(&(state.len() as u32).to_be_bytes());
                body.extend_from_slice(state);
            }
            self.send(&frame(4, 0, 1, QUERY, &body));
            if !self.count() {
                return;
            }
            let number =
                |at: usize| u32::from_be_bytes(self.head[at..at + 4].try_into().expect("four bytes"));
            if number(0) != 2 || number(4) & 0x02 == 0 {
                return;
            }
            let length = number(12) as usize;
            state = Some(self.head[16..16 + length].to_vec());
        }
    }
}
