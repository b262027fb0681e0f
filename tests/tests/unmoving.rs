//! Clients that do not move: half a request and no more, or requests whose answers nobody reads. Every listener of the binary closes
//! them after a minute at most (docs/reliability.md), and memory stays within its bound meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use end_to_end::raw::{QUERY, RESULT, Raw, frame, query, segments};
use end_to_end::{Calls, Server, process};
use helenus_wire::thrift::{
    Compression, ConsistencyLevel, Field as _, Method, args, begin_call, end_message,
};

/// A minute, and what a busy machine adds.
const CLOSED_WITHIN: Duration = Duration::from_secs(90);
const VALUE_BYTES: usize = 1 << 20;
const SELECT: &str = "SELECT v FROM k.t WHERE k = 0";

/// What a client does that does not move.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stuck {
    /// It sends half a request and stops.
    SendsHalf,
    /// It sends requests and reads no answer.
    ReadsNothing,
}

/// A socket of any listener.
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Sends what the server takes, and does not wait.
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                socket.write(bytes)
            }
            Socket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                socket.write(bytes)
            }
        }
    }

    fn receive(&mut self) -> std::io::Result<usize> {
        let mut buffer = [0; 4096];
        match self {
            Socket::Tcp(socket) => socket.read(&mut buffer),
            Socket::Unix(socket) => socket.read(&mut buffer),
        }
    }

    /// Whether the server has closed the connection. One that reads nothing finds out by sending more.
    fn is_closed(&mut self, stuck: Stuck) -> bool {
        let found = match stuck {
            Stuck::SendsHalf => self.receive(),
            Stuck::ReadsNothing => self.send(b"x"),
        };
        match found {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// A connection that has begun, a request for it, and a name for people.
type Begun = (String, Socket, Vec<u8>);

fn statement(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(Method::ExecuteCql3Query, 1, &mut bytes);
    let (compression, consistency) = (Compression::None, ConsistencyLevel::One);
    args::Cql3Query { query: text.as_bytes(), compression, consistency }.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

/// A connection to each listener, in each protocol version and framing.
fn all_listeners(server: &Server) -> Vec<Begun> {
    let mut all = Vec::new();
    for version in [3, 4, 5] {
        let request = frame(version, 0, 1, QUERY, &query(version, SELECT, &[]));
        let request = if version >= 5 { segments(&request) } else { request };
        let socket = Socket::Tcp(Raw::ready(server.address(), version).socket);
        all.push((format!("CQL v{version}"), socket, request));
    }
    let call = statement(SELECT);
    for (name, request) in [("RPC framed", &call[..]), ("RPC unframed", &call[4..])] {
        let socket = TcpStream::connect(Calls::address_of(server)).expect("the RPC interface");
        all.push((name.to_owned(), Socket::Tcp(socket), request.to_vec()));
    }
    let line = server.head().iter().find(|line| line.starts_with("http")).expect("the HTTP port");
    let http = line.split_whitespace().nth(1).expect("an address").to_owned();
    for path in ["/metrics", "/changes/k/fed?from=oldest"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {http}\r\n\r\n").into_bytes();
        let socket = TcpStream::connect(&http).expect("the HTTP port");
        all.push((format!("HTTP {path}"), Socket::Tcp(socket), request));
    }
    let socket = UnixStream::connect(server.data().join("admin.sock")).expect("the admin socket");
    all.push(("admin".to_owned(), Socket::Unix(socket), b"{\"verb\":\"status\"}\n".to_vec()));
    all
}

fn server() -> Server {
    let server =
        Server::start_with(&["--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--set", "memory_limit=64MiB"]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    client.run("CREATE TABLE k.fed (k int PRIMARY KEY, v blob) WITH cdc = true");
    let value = "v".repeat(VALUE_BYTES);
    client.run(&format!("INSERT INTO k.t (k, v) VALUES (0, '{value}')"));
    for row in 0..24 {
        client.run(&format!("INSERT INTO k.fed (k, v) VALUES ({row}, 0x{})", "ab".repeat(VALUE_BYTES)));
    }
    server
}

#[test]
fn who_does_not_move_for_a_minute_is_closed_on_every_listener() {
    let server = server();
    let mut waiting = Vec::new();
    for stuck in [Stuck::SendsHalf, Stuck::ReadsNothing] {
        for (name, mut socket, request) in all_listeners(&server) {
            let bytes = match stuck {
                Stuck::SendsHalf => request[..request.len() / 2].to_vec(),
                // Far more answers than both ends have buffers for.
                Stuck::ReadsNothing => request.repeat(if name == "admin" { 5_000 } else { 300 }),
            };
            let sent = socket.send(&bytes).expect("sent");
            assert!(stuck == Stuck::ReadsNothing || sent == bytes.len(), "{name}");
            waiting.push((name, stuck, socket));
        }
    }
    let begin = Instant::now();
    let mut other = Raw::ready(server.address(), 5);
    while !waiting.is_empty() {
        waiting.retain_mut(|(name, stuck, socket)| {
            let is_closed = socket.is_closed(*stuck);
            if is_closed {
                println!("{name}, {stuck:?}: closed after {:?}", begin.elapsed());
            }
            !is_closed
        });
        let open: Vec<_> = waiting.iter().map(|(name, stuck, _)| (name, stuck)).collect();
        assert!(begin.elapsed() < CLOSED_WITHIN, "still open: {open:?}");
        // Others are served meanwhile.
        assert_eq!(other.query("SELECT key FROM system.local").opcode, RESULT);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The memory of a server at rest. From now on its peak is counted.
fn at_rest(server: &Server) -> u64 {
    std::fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5").expect("a running process");
    process::memory_kib(server.process_id(), "VmRSS")
}

/// Checks the peak against the bound of a memory limit of 64 MiB: 102 MiB, of which the program without data has 26. (A build with
/// more code has more at rest.)
fn assert_bounded(server: &Server, at_rest_kib: u64, what: &str) {
    let peak_kib = process::memory_kib(server.process_id(), "VmHWM");
    println!("{what}: {} MiB at rest, {} MiB at its peak", at_rest_kib >> 10, peak_kib >> 10);
    assert!(peak_kib < at_rest_kib.max(26 << 10) + (76 << 10), "{what}: {} MiB", peak_kib >> 10);
}

#[test]
fn readers_of_changes_that_take_nothing_stay_within_the_bound() {
    let server = server();
    let mut client = Raw::ready(server.address(), 4);
    for row in 0..4 {
        client.run(&format!("INSERT INTO k.fed (k, v) VALUES ({row}, 0x{})", "cd".repeat(7 << 20)));
    }
    let at_rest = at_rest(&server);
    let mut readers = Vec::new();
    for _ in 0..40 {
        let found = all_listeners(&server).into_iter().find(|(name, ..)| name.contains("changes"));
        let (_, mut socket, request) = found.expect("the stream");
        socket.send(&request).expect("sent");
        readers.push(socket);
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(12) {
        assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_bounded(&server, at_rest, "40 readers of changes");
    // One that reads gets everything.
    drop(readers);
    let found = all_listeners(&server).into_iter().find(|(name, ..)| name.contains("changes"));
    let (_, mut socket, request) = found.expect("the stream");
    socket.send(&request).expect("sent");
    let (mut received, begin) = (0, Instant::now());
    while received < 24 * 4 * VALUE_BYTES + 4 * 28 * VALUE_BYTES {
        match socket.receive() {
            Ok(0) => panic!("the stream ended after {received} bytes"),
            Ok(count) => received += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(begin.elapsed() < CLOSED_WITHIN, "{received} bytes");
    }
}

#[test]
fn unfinished_requests_of_thousands_of_connections_stay_within_the_bound() {
    let server = server();
    let at_rest = at_rest(&server);
    let text = "x".repeat(120_000);
    let call = statement(&text);
    let rpc = Calls::address_of(&server);
    for (name, request) in [("framed", &call[..]), ("unframed", &call[4..])] {
        let mut held = Vec::new();
        for _ in 0..1500 {
            // A server at its limit refuses some.
            let Ok(socket) = TcpStream::connect(&rpc) else { continue };
            let mut socket = Socket::Tcp(socket);
            let _taken = socket.send(&request[..request.len() - 10]);
            held.push(socket);
        }
        let begin = Instant::now();
        let mut client = Raw::ready(server.address(), 4);
        while begin.elapsed() < Duration::from_secs(4) {
            assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_bounded(&server, at_rest, name);
    }
}
