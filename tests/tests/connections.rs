//! Opens any number of unused connections to every listener of the binary: they are closed in time, other clients are
//! served, and the log and data files never lack descriptors. The incomplete requests are random.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{ERROR, QUERY, READY, RESULT, Raw, STARTUP, frame, query, segments, startup};
use tempfile::TempDir;

const OVERLOADED: i32 = 0x1001;
/// Maximum time for the server's own reactions, which are configured to take a fraction of a second.
const SOON: Duration = Duration::from_secs(30);
const ALL_SERVERS: [&str; 4] = ["--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];

fn start_after(before: &str, configuration: &str, arguments: &[&str]) -> Server {
    let folder = TempDir::with_prefix("helenus-connections-").expect("a temporary directory");
    let path: PathBuf = folder.path().join("server.yaml");
    std::fs::write(&path, configuration).expect("a configuration");
    let config = ["--config", path.to_str().expect("UTF-8")];
    Server::start_after(before, folder, &[&config, arguments].concat())
}

/// The address that the server printed at its start after a key word.
fn address_of(server: &Server, word: &str) -> String {
    let line = server.head().iter().find(|line| line.split_whitespace().next() == Some(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in {:?}", server.head()));
    line.split_whitespace().nth(1).expect("an address").to_owned()
}

fn connect(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap_or_else(|error| panic!("connect to {address}: {error}"));
    socket.set_read_timeout(Some(SOON)).expect("a socket option");
    socket
}

/// Everything that a server sends before it closes.
fn until_closed(mut socket: impl Read, what: &str) -> Vec<u8> {
    let mut said = Vec::new();
    match socket.read_to_end(&mut said) {
        Ok(_) => said,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => said,
        Err(error) => panic!("{what}: not closed within {SOON:?}: {error}"),
    }
}

fn get(address: &str, path: &str, host: &str) -> (u16, String) {
    let mut stream = connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
    let text = String::from_utf8_lossy(&until_closed(stream, "an answer over HTTP")).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status in {text:?}")), text)
}

/// Sends one byte after each short silence of the server, until it closes or all bytes are sent.
fn drip(socket: &mut TcpStream, bytes: &[u8], what: &str) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket option");
    let begin = Instant::now();
    let mut said = Vec::new();
    for byte in bytes {
        assert!(begin.elapsed() < SOON, "{what}: still open after {SOON:?} of single bytes");
        let mut buffer = [0; 4096];
        match socket.read(&mut buffer) {
            Ok(0) => return said,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return said,
        }
        if socket.write_all(&[*byte]).is_err() {
            return said;
        }
    }
    panic!("{what}: all {} bytes were taken one by one", bytes.len());
}

#[test]
fn who_does_not_begin_is_told_so_and_closed() {
    let mut draw = Draw::new("who_does_not_begin", 20);
    let server =
        start_after("true", "handshake_timeout: 300ms\nrpc_handshake_timeout: 300ms\n", &ALL_SERVERS[..2]);
    for _ in 0..rounds(8) {
        let version = 3 + draw.below(3) as u8;
        let whole = frame(version, 0, 0, STARTUP, &startup());
        let options = frame(version, 0, 0, 5, &[]);
        let part = match draw.below(3) {
            0 => Vec::new(),
            // Any number of OPTIONS may come first, but they do not start up a connection.
            1 => options.repeat(1 + draw.below(3)),
            _ => whole[..1 + draw.below(whole.len() - 1)].to_vec(),
        };
        let what = format!("version {version}, {part:?}");
        let mut socket = connect(server.address());
        socket.write_all(&part).expect("sent");
        let said = until_closed(&mut socket, &what);
        let text = String::from_utf8_lossy(&said);
        assert!(text.contains("No STARTUP came in time"), "{what}: {text:?}");
    }
    let mut slow = connect(server.address());
    let said = drip(&mut slow, &frame(4, 0, 0, STARTUP, &vec![0; 4_000]), "a slow STARTUP");
    assert!(String::from_utf8_lossy(&said).contains("No STARTUP came in time"));
    let rpc = connect(&address_of(&server, "rpc"));
    assert_eq!(until_closed(rpc, "a silent client of RPC"), b"");
    // A connection that was started up stays open.
    let mut begun = Raw::ready(server.address(), 5);
    let silent = connect(server.address());
    until_closed(silent, "a silent client");
    assert_eq!(begun.query("SELECT key FROM system.local").opcode, RESULT);
}

#[test]
fn who_sends_half_a_request_is_closed_and_who_sends_nothing_is_not() {
    let mut draw = Draw::new("half_a_request", 21);
    let server = start_after("true", "request_arrival_timeout: 300ms\n", &ALL_SERVERS[..2]);
    let mut idle = Raw::ready(server.address(), 4);
    for _ in 0..rounds(8) {
        let version = 3 + draw.below(3) as u8;
        let text = format!("SELECT '{}'", "x".repeat(draw.below(100_000)));
        let request = frame(version, 0, 1, QUERY, &query(version, &text, &[]));
        let whole = if version >= 5 { segments(&request) } else { request };
        let part = &whole[..1 + draw.below(whole.len().min(60_000) - 1)];
        let what = format!("version {version}, {} of {} bytes", part.len(), whole.len());
        let mut client = Raw::ready(server.address(), version);
        client.send(part);
        let told = client.receive().unwrap_or_else(|| panic!("{what}: closed without a word"));
        assert_eq!(told.opcode, ERROR, "{what}");
        assert!(told.error().1.contains("did not arrive in time"), "{what}: {:?}", told.error());
        assert!(client.receive().is_none(), "{what}");
    }
    let mut slow = Raw::ready(server.address(), 4);
    let whole = frame(4, 0, 1, QUERY, &query(4, &"x".repeat(40_000), &[]));
    drip(&mut slow.socket, &whole, "a slow request");
    let mut rpc = connect(&address_of(&server, "rpc"));
    // A frame that announces 60,000 bytes, with a call of protocol version 1 in it.
    let mut call = 60_000_u32.to_be_bytes().to_vec();
    call.extend_from_slice(&[0x80, 1, 0, 1]);
    call.resize(60_000, 0);
    drip(&mut rpc, &call, "a slow call");
    assert_eq!(idle.query("SELECT key FROM system.local").opcode, RESULT, "nothing is no half request");
}

#[test]
fn who_is_idle_is_closed_if_that_is_wanted() {
    let server = start_after("true", "native_transport_idle_timeout: 400ms\n", &[]);
    let mut busy = Raw::ready(server.address(), 4);
    let idle = Raw::ready(server.address(), 4);
    idle.socket.set_nonblocking(true).expect("a socket option");
    let begin = Instant::now();
    let mut asked = 0;
    loop {
        assert_eq!(busy.query("SELECT key FROM system.local").opcode, RESULT);
        asked += 1;
        match (&idle.socket).read(&mut [0; 1]) {
            Ok(0) => break,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < SOON, "the idle connection is still open");
    }
    println!("closed after {:?}, {asked} requests of the other", begin.elapsed());
    assert_eq!(busy.query("SELECT key FROM system.local").opcode, RESULT);
}

#[test]
fn half_requests_and_silence_keep_nobody_from_http_and_the_admin_socket() {
    let mut draw = Draw::new("half_requests_over_http", 22);
    let server = start_after("true", "http_request_timeout: 2s\n", &ALL_SERVERS);
    let http = address_of(&server, "http");
    let whole = format!("GET /metrics HTTP/1.1\r\nHost: {http}\r\nAccept: */*\r\n\r\n").into_bytes();
    let mut held = Vec::new();
    for round in 0..3 {
        for _ in 0..250 {
            let mut socket = connect(&http);
            // The last line is never sent, because it would complete the request.
            let part = &whole[..draw.below(whole.len() - 2)];
            // An early connection may be closed already.
            let _sent = socket.write_all(part);
            held.push(socket);
        }
        for path in ["/health", "/ready"] {
            let (status, text) = get(&http, path, &http);
            assert_eq!(status, 200, "round {round}, {path}: {text}");
        }
    }
    let last = held.pop().expect("a connection");
    until_closed(last, "half a request over HTTP");
    let socket = server.data().join("admin.sock");
    let silent: Vec<UnixStream> = (0..100)
        .map(|number| {
            let mut socket = UnixStream::connect(&socket).expect("the admin socket");
            if number % 2 == 0 {
                // Early connections may be closed already.
                let _sent = socket.write_all(b"{\"verb\": \"sta");
            }
            socket
        })
        .collect();
    assert!(server.admin(&["overview"]).contains("listening"));
    drop(silent);
    assert_eq!(get(&http, "/health", &http).0, 200);
}

fn descriptors(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.process_id())).expect("a running server").count()
}

#[test]
fn a_flood_of_connections_costs_no_write_and_leaves_the_owner_in() {
    const ALLOWED: usize = 256;
    let mut draw = Draw::new("a_flood", 23);
    let mut server = start_after(&format!("ulimit -n {ALLOWED}"), "", &ALL_SERVERS);
    let (http, rpc) = (address_of(&server, "http"), address_of(&server, "rpc"));
    let mut writer = Raw::ready(server.address(), 4);
    writer.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    writer.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    let mut flood: Vec<TcpStream> = Vec::new();
    let mut written = 0;
    for round in 0..6 {
        for _ in 0..80 {
            let mut socket = connect(if draw.below(4) == 0 { &rpc } else { server.address() });
            let begins = frame(4, 0, 0, STARTUP, &startup());
            // A server at its limit may have closed it already.
            let _sent = match draw.below(3) {
                0 => socket.write_all(&begins),
                1 => socket.write_all(&begins[..draw.below(begins.len())]),
                _ => Ok(()),
            };
            flood.push(socket);
        }
        for _ in 0..20 {
            writer.run(&format!("INSERT INTO k.t (k, v) VALUES ({written}, 'v')"));
            written += 1;
        }
        // Files are created, opened and listed during the flood.
        server.admin(&["flush", "k", "t"]);
        assert_eq!(get(&http, "/health", &http).0, 200, "round {round}");
        let open = descriptors(&server);
        assert!(open + 16 < ALLOWED, "round {round}: {open} of {ALLOWED} descriptors");
    }
    server.admin(&["compact", "k", "t"]);
    refused_with_a_word(server.address());
    server.kill();
    drop(flood);
    server.restart();
    let mut reader = Raw::ready(server.address(), 4);
    for row in 0..written {
        let reply = reader.query(&format!("SELECT v FROM k.t WHERE k = {row}"));
        assert!(reply.body.ends_with(b"\0\0\0\x01v"), "row {row}: {reply:?}");
    }
}

/// Opens connections until one is refused. The refusal must have the client's protocol version and stream id.
fn refused_with_a_word(address: &str) {
    let mut begun = Vec::new();
    for number in 0..400_u16 {
        let version = 3 + (number % 3) as u8;
        let mut client = Raw::connect(address, version);
        client.send(&frame(version, 0, 77, STARTUP, &startup()));
        let Some(reply) = client.receive() else { continue };
        if reply.opcode == READY {
            begun.push(client);
            continue;
        }
        assert_eq!((reply.version & 0x7F, reply.stream), (version, 77));
        let (code, text) = reply.error();
        assert_eq!(code, OVERLOADED, "{text}");
        assert!(text.contains("as many as"), "{text}");
        return;
    }
    panic!("{} connections and none was refused", begun.len());
}

#[test]
fn sstables_are_read_with_fewer_descriptors_than_there_are_of_them() {
    const SSTABLES: usize = 70;
    let server = start_after("ulimit -n 256", "", &[]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    server.admin(&["disableautocompaction", "k", "t"]);
    for row in 0..SSTABLES {
        client.run(&format!("INSERT INTO k.t (k, v) VALUES ({row}, 'v')"));
        server.admin(&["flush", "k", "t"]);
    }
    for _ in 0..2 {
        for row in 0..SSTABLES {
            let reply = client.query(&format!("SELECT v FROM k.t WHERE k = {row}"));
            assert!(reply.body.ends_with(b"\0\0\0\x01v"), "row {row}: {reply:?}");
        }
        let open = std::fs::read_dir(format!("/proc/{}/fd", server.process_id())).expect("a running server");
        let of_tables = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let of_tables = of_tables.filter(|path| path.to_string_lossy().ends_with(".db")).count();
        println!("{of_tables} descriptors for {SSTABLES} SSTables");
        assert!(of_tables <= SSTABLES, "{of_tables}");
    }
    // A reader continues although compaction removes its SSTables.
    server.admin(&["compact", "k", "t"]);
    assert_eq!(client.query("SELECT count(*) FROM k.t").body.last(), Some(&(SSTABLES as u8)));
}

#[test]
fn a_page_of_another_site_does_not_read_the_loopback() {
    let mut draw = Draw::new("hosts", 24);
    let server = start_after("true", "http_hosts: [metrics.example]\n", &ALL_SERVERS);
    let http = address_of(&server, "http");
    let port = http.rsplit(':').next().expect("a port").to_owned();
    let known = ["localhost", "127.0.0.1", "[::1]", "metrics.example", "LOCALHOST"];
    let strange = [
        "evil.example",
        "127.0.0.1.nip.io",
        "localhost.evil.example",
        "10.0.0.7",
        "0x7f.1",
        "xn--lcalhost-8za",
    ];
    for _ in 0..rounds(30) {
        let path = *draw.one(&["/health", "/ready", "/metrics", "/", "/nothing"]);
        let is_known = draw.below(2) == 0;
        let name = *draw.one(if is_known { &known[..] } else { &strange[..] });
        let host = if draw.below(2) == 0 { name.to_owned() } else { format!("{name}:{port}") };
        let (status, text) = get(&http, path, &host);
        if is_known {
            assert_eq!(status, if path == "/nothing" { 404 } else { 200 }, "{host} {path}: {text}");
        } else {
            assert_eq!(status, 421, "{host} {path}: {text}");
            assert!(text.contains("http_hosts") && !text.contains("helenus_"), "{text}");
        }
    }
}

#[test]
fn a_server_that_others_reach_says_so_loudly() {
    let mut draw = Draw::new("open_to_all", 25);
    for _ in 0..rounds(2) {
        let far = ["0.0.0.0:0", "[::]:0"];
        let open: Vec<bool> = (0..3).map(|_| draw.below(2) == 0).collect();
        let mut address = |is_open: bool| if is_open { *draw.one(&far) } else { "127.0.0.1:0" };
        let addresses = ["--listen", address(open[0]), "--rpc", address(open[1]), "--http", address(open[2])];
        let arguments = [&addresses[..], &["--insecure-no-login"]].concat();
        let mut server = start_after("true", "", &arguments);
        let overview = server.admin(&["overview"]);
        for (name, is_open) in ["CQL", "RPC", "HTTP"].iter().zip(&open) {
            let says = |text: &str, word: &str| {
                text.lines().any(|line| line.contains(word) && line.contains(&format!("{name} listens on")))
            };
            assert_eq!(says(&server.head().join("\n"), "WARNING"), *is_open, "{arguments:?}");
            assert_eq!(says(&overview, "WARNING"), *is_open, "{arguments:?}: {overview}");
        }
        // The log is complete only after the server has ended.
        assert!(server.stop().success());
        let told = server.log().lines().filter(|line| line.contains("open_to_all")).count();
        assert_eq!(told, open.iter().filter(|open| **open).count(), "{}", server.log());
    }
}
