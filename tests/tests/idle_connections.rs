//! Ten thousand idle connections, hundreds that do not read their answers and hundreds that ask nothing, beside active ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use end_to_end::Server;
use end_to_end::process::memory_kib;
use end_to_end::raw::{QUERY, RESULT, Raw, frame, query};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const WANTED: u64 = 10_000;

/// Raises the limit of open files of this process and the server to the maximum. Returns the number of connections that
/// it allows.
fn connections_allowed() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("up to the hard limit");
    // One address may use seven eighths of the descriptors that the log, files and HTTP leave, which is more than half
    // of all.
    limit.maximum.map_or(WANTED, |most| WANTED.min(most / 2))
}

#[test]
fn ten_thousand_idle_connections_do_not_hurt_the_others() {
    let count = connections_allowed();
    if count < WANTED {
        println!("only {count} connections: the hard limit of open files is lower (ulimit -Hn)");
    }
    let server = Server::start_with(&["--memory"]);
    let mut busy = Raw::ready(server.address(), 5);
    busy.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    busy.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    let before = memory_kib(server.process_id(), "VmRSS");
    // A third of them sends nothing; the others have started up and sent one request.
    let idle: Vec<Raw> = (0..count)
        .map(|number| match number % 3 {
            0 => Raw::connect(server.address(), 4),
            version => {
                let mut client = Raw::ready(server.address(), 3 + version as u8);
                assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT);
                client
            }
        })
        .collect();
    for number in 0..200 {
        busy.run(&format!("INSERT INTO k.t (k, v) VALUES ({number}, 'v')"));
        assert_eq!(busy.query(&format!("SELECT v FROM k.t WHERE k = {number}")).opcode, RESULT);
    }
    let after = memory_kib(server.process_id(), "VmRSS");
    let each = (after.saturating_sub(before)) * 1024 / count;
    println!("{count} idle connections: {before} KiB before, {after} KiB with them, {each} bytes each");
    assert!(each < 16 << 10, "an idle connection owns no buffers");
    drop(idle);
    assert_eq!(busy.query("SELECT count(*) FROM k.t").opcode, RESULT);
}

#[test]
fn clients_that_do_not_read_cost_a_bounded_part_of_what_they_asked_for() {
    const CLIENTS: u64 = 200;
    const REQUESTS: i16 = 200;
    const VALUE_BYTES: usize = 100_000;
    let server = Server::start_with(&["--memory"]);
    let mut busy = Raw::ready(server.address(), 4);
    busy.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    busy.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    busy.run(&format!("INSERT INTO k.t (k, v) VALUES (0, '{}')", "v".repeat(VALUE_BYTES)));
    let before = memory_kib(server.process_id(), "VmHWM");
    let clients: Vec<Raw> = (0..CLIENTS)
        .map(|_| {
            let mut client = Raw::ready(server.address(), 4);
            let ask = |stream| frame(4, 0, stream, QUERY, &query(4, "SELECT v FROM k.t WHERE k = 0", &[]));
            client.send(&(0..REQUESTS).flat_map(ask).collect::<Vec<u8>>());
            client
        })
        .collect();
    for _ in 0..500 {
        assert_eq!(busy.query("SELECT k FROM k.t WHERE k = 0").opcode, RESULT, "others are served");
    }
    let grown = (memory_kib(server.process_id(), "VmHWM") - before) << 10;
    let asked = CLIENTS * REQUESTS as u64 * VALUE_BYTES as u64;
    println!(
        "{} MB of answers asked for and not read: the server's peak grew by {} MB",
        asked / 1_000_000,
        grown / 1_000_000
    );
    // Each connection holds up to a megabyte of unsent answers and the answer that exceeded it, in a buffer that
    // doubles. The other answers wait as unprocessed requests.
    assert!(grown < CLIENTS * (2 * (1 << 20) + 4 * VALUE_BYTES as u64), "{grown} bytes");
    drop(clients);
    assert_eq!(busy.query("SELECT k FROM k.t WHERE k = 0").opcode, RESULT);
}

#[test]
fn clients_that_send_nothing_end_no_stream() {
    const SILENT: usize = 300;
    let server = Server::start_with(&["--http", "127.0.0.1:0"]);
    let mut session = Raw::ready(server.address(), 4);
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.run("CREATE TABLE feed.t (p int PRIMARY KEY, n int) WITH cdc = true");
    let line = server.head().iter().find_map(|line| line.trim().strip_prefix("http "));
    let http = line.and_then(|line| line.split_whitespace().next()).expect("the HTTP port").to_owned();
    let ask = |path: &str| {
        let mut socket = TcpStream::connect(&http).expect("the HTTP port");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {http}\r\n\r\n").expect("sent");
        let mut status = [0; 12];
        socket.read_exact(&mut status).expect("an answer");
        assert_eq!(&status, b"HTTP/1.1 200");
        socket
    };
    let stream = ask("/changes/feed/t");
    let silent: Vec<TcpStream> =
        (0..SILENT).map(|_| TcpStream::connect(&http).expect("the HTTP port")).collect();
    // Those beyond the limit have closed the first of them.
    let mut first = &silent[0];
    first.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
    assert_eq!(first.read(&mut [0]).expect("an end"), 0);
    session.run("INSERT INTO feed.t (p, n) VALUES (1, 17)");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    assert!(lines.any(|line| line.starts_with("data:") && line.contains("17")), "the event comes");
    ask("/ready");
}
