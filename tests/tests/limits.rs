//! Tests that clients cannot make the server work for disconnected clients, exceed its timeouts, or exceed its memory,
//! which is measured as the peak of the process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::process::{cpu_ticks, memory_kib};
use end_to_end::raw::{ERROR, QUERY, READY, RESULT, Raw, Reply, STARTUP, frame, query};
use tempfile::TempDir;

/// Maximum peak of a process with a `memory_limit` of 256 MiB, in KiB: the limit, a tenth of it and 32 MiB.
const PEAK_KIB_MAX: u64 = 313 << 10;
/// The field of UnavailableException in the answer to execute_cql3_query, which means that there is no memory for the
/// call.
const NO_ROOM: u8 = 2;
const INVALID: i32 = 0x2200;
const OVERLOADED: i32 = 0x1001;
const READ_TIMEOUT: i32 = 0x1200;
/// A query over all these rows takes longer than 10 ms, the minimum of a timeout, even at 60 million rows a second.
const ROWS: u32 = 1_200_000;
const ROWS_PER_BATCH: u32 = 200;
/// Reads all rows and returns none.
const SCAN: &str = "SELECT c FROM k.t WHERE v = 'nothing' ALLOW FILTERING";
const SCAN_BY_KEY: &str = "SELECT c FROM k.t WHERE k = 0 AND v = 'nothing' ALLOW FILTERING";

/// Starts a server with this configuration.
fn start(configuration: &str) -> Server {
    start_with(configuration, &[])
}

fn start_with(configuration: &str, arguments: &[&str]) -> Server {
    let folder = TempDir::with_prefix("helenus-limits-").expect("a temporary directory");
    let path: PathBuf = folder.path().join("limits.yaml");
    std::fs::write(&path, configuration).expect("a configuration");
    Server::start_in(folder, &[&["--config", path.to_str().expect("UTF-8")], arguments].concat())
}

/// As `start`, with Thrift RPC; also returns its address.
fn start_with_rpc(configuration: &str) -> (Server, String) {
    let server = start_with(configuration, &["--rpc", "127.0.0.1:0"]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let address = line.split_whitespace().nth(1).expect("an address").to_owned();
    (server, address)
}

fn make_table(client: &mut Raw) {
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))");
}

/// Writes one partition of many small rows.
fn fill(client: &mut Raw) {
    make_table(client);
    for batch in 0..ROWS / ROWS_PER_BATCH {
        let row = |at: u32| {
            let c = batch * ROWS_PER_BATCH + at;
            format!("INSERT INTO k.t (k, c, v) VALUES (0, {c}, 'v{c}');")
        };
        let rows: String = (0..ROWS_PER_BATCH).map(row).collect();
        client.run(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"));
    }
}

/// Number of reads that disk threads run or that wait for one.
fn reads_under_way(server: &Server) -> u64 {
    let told = server.admin(&["tpstats"]);
    let line = told.lines().find(|line| line.starts_with("ReadStage")).expect("a line of the pool");
    line.split_whitespace().skip(1).take(2).map(|number| number.parse::<u64>().expect("a number")).sum()
}

#[test]
fn queries_end_when_their_client_leaves() {
    const CLIENTS: u64 = 20;
    const REQUESTS: i16 = 10;
    // After half of the slow-query time, a query moves from its event loop to the disk threads. With only two of these,
    // they fall behind on any machine.
    let server = start(
        "slow_query_log_timeout: 2ms\nrange_request_timeout: 600s\nread_request_timeout: 10ms\nconcurrent_reads: 2\n",
    );
    let mut client = Raw::ready(server.address(), 4);
    fill(&mut client);
    let process = server.process_id();
    let before = cpu_ticks(process);
    (0..10).for_each(|_| client.run(SCAN));
    let of_ten = (cpu_ticks(process) - before).max(1);
    // All clients connect before the first query, because an event loop busy with queries answers no new client.
    let mut leaving: Vec<Raw> = (0..CLIENTS).map(|_| Raw::ready(server.address(), 4)).collect();
    let ask = |stream| frame(4, 0, stream, QUERY, &query(4, SCAN, &[]));
    let asked = (0..REQUESTS).flat_map(ask).collect::<Vec<u8>>();
    leaving.iter_mut().for_each(|client| client.send(&asked));
    let begin = Instant::now();
    while reads_under_way(&server) < 50 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the queries run");
    }
    let before = cpu_ticks(process);
    drop(leaving);
    let begin = Instant::now();
    while reads_under_way(&server) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "queries of nobody go on");
    }
    let spent = cpu_ticks(process) - before;
    let asked = of_ten * CLIENTS * REQUESTS as u64 / 10;
    println!("{spent} hundredths of a second after the clients left; all they had asked for takes {asked}");
    assert!(spent < asked / 3, "{spent} hundredths of a second of work for nobody, of {asked}");
    only_the_next_is_logged_as_failed(&server, &mut client);
}

/// Makes a query fail, and checks that no other failure was logged before it. Reads of one partition time out after 10
/// ms.
fn only_the_next_is_logged_as_failed(server: &Server, client: &mut Raw) {
    let (code, text) = client.query(SCAN_BY_KEY).error();
    assert_eq!(code, READ_TIMEOUT, "{text}");
    let begin = Instant::now();
    let failed = loop {
        let log = server.log();
        let failed: Vec<_> = log.lines().filter(|line| line.contains("statement_failed")).collect();
        if let Some(first) = failed.first() {
            break (*first).to_owned();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the log tells of a timeout");
    };
    assert!(failed.contains("READ_TIMEOUT"), "queries of clients that left are no failures: {failed}");
}

/// A framed call of execute_cql3_query.
fn rpc_query(text: &str) -> Vec<u8> {
    let name = b"execute_cql3_query";
    let mut message = vec![0x80, 1, 0, 1];
    message.extend_from_slice(&(name.len() as u32).to_be_bytes());
    message.extend_from_slice(name);
    message.extend_from_slice(&1_u32.to_be_bytes());
    // 1: binary query, 2: i32 compression (2: none), 3: i32 consistency (1: ONE), end.
    message.extend_from_slice(&[11, 0, 1]);
    message.extend_from_slice(&(text.len() as u32).to_be_bytes());
    message.extend_from_slice(text.as_bytes());
    message.extend_from_slice(&[8, 0, 2, 0, 0, 0, 2, 8, 0, 3, 0, 0, 0, 1, 0]);
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

/// The fields of the reply to a framed call.
fn rpc_reply(socket: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer).expect("all of it");
    assert_eq!(answer[..4], [0x80, 1, 0, 2], "a reply: {}", String::from_utf8_lossy(&answer));
    // The fields follow the name and the number.
    answer.split_off(8 + 18 + 4)
}

/// As `rpc_reply`, for a reply that must not be an exception. Returns its length.
fn rpc_answer(socket: &mut TcpStream) -> usize {
    let fields = rpc_reply(socket);
    // Field 0 is the result; an exception has another number.
    assert_eq!(fields[..3], [12, 0, 0], "a result: {}", String::from_utf8_lossy(&fields));
    fields.len()
}

#[test]
fn calls_of_the_old_interface_end_when_their_client_leaves() {
    // A connection runs one call at a time, so many connections are needed.
    const CLIENTS: u64 = 160;
    /// Bytes of further calls that three of four clients send: the 64 KiB that the server reads meanwhile, and as much
    /// as the system surely buffers for an unread socket.
    const BEHIND_BYTES: usize = 112 << 10;
    // Two threads for calls that block, beside each of the threads that serve.
    let configuration = "slow_query_log_timeout: 2ms\nrange_request_timeout: 600s\nread_request_timeout: 10ms\n\
                         concurrent_reads: 2\n";
    let (server, address) = start_with_rpc(configuration);
    let mut over_cql = Raw::ready(server.address(), 4);
    fill(&mut over_cql);
    let connect = || TcpStream::connect(&address).expect("connect");
    let process = server.process_id();
    let mut client = connect();
    let before = cpu_ticks(process);
    for _ in 0..10 {
        client.write_all(&rpc_query(SCAN)).expect("sent");
        rpc_answer(&mut client);
    }
    let of_ten = (cpu_ticks(process) - before).max(1);
    let mut leaving: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut client = connect();
            client.write_all(&rpc_query(SCAN)).expect("sent");
            client
        })
        .collect();
    // After the first answer, the calls of the other clients are running or waiting for a thread.
    rpc_answer(&mut leaving[0]);
    let behind = rpc_query(SCAN).repeat(BEHIND_BYTES / rpc_query(SCAN).len());
    let with_more = leaving.iter_mut().enumerate().filter(|(number, _)| number % 4 != 0);
    with_more.for_each(|(_, client)| client.write_all(&behind).expect("sent"));
    let before = cpu_ticks(process);
    drop(leaving);
    // Enough clients to occupy each thread, so that their answers come after the remaining calls of the others.
    let mut staying: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
    for client in &mut staying {
        client.write_all(&rpc_query(SCAN)).expect("sent");
    }
    staying.iter_mut().for_each(|client| _ = rpc_answer(client));
    let spent = cpu_ticks(process) - before;
    let asked = of_ten * CLIENTS / 10;
    println!("{spent} hundredths of a second after the clients left; all they had under way takes {asked}");
    // The calls of the staying clients are a twentieth of it. Calls that ran when their clients left end as soon as a
    // busy machine notices it.
    assert!(spent < asked / 3, "{spent} hundredths of a second of work for nobody, of {asked}");
    only_the_next_is_logged_as_failed(&server, &mut over_cql);
}

#[test]
fn reads_take_as_long_as_the_configuration_lets_them() {
    let configurations = [
        ("read_request_timeout: 10ms\nrange_request_timeout: 600s\n", [SCAN_BY_KEY, SCAN]),
        ("read_request_timeout: 600s\nrange_request_timeout: 10ms\n", [SCAN, SCAN_BY_KEY]),
    ];
    for (configuration, [slow, other]) in configurations {
        let server = start(configuration);
        let mut client = Raw::ready(server.address(), 4);
        fill(&mut client);
        let (code, text) = client.query(slow).error();
        assert_eq!(code, READ_TIMEOUT, "{slow}: {text}");
        client.run(other);
        client.run("SELECT c FROM k.t WHERE k = 0 AND c = 1");
    }
}

/// Runs a SELECT with paging (v4). Returns the bytes of the page, its number of rows, and the state for the next page.
fn page(client: &mut Raw, text: &str, rows: i32, state: Option<&[u8]>) -> (usize, u32, Option<Vec<u8>>) {
    let mut body = (text.len() as u32).to_be_bytes().to_vec();
    body.extend_from_slice(text.as_bytes());
    body.extend_from_slice(&[0, 1, 0x04 | if state.is_some() { 0x08 } else { 0 } | 0x02]);
    body.extend_from_slice(&rows.to_be_bytes());
    if let Some(state) = state {
        body.extend_from_slice(&(state.len() as u32).to_be_bytes());
        body.extend_from_slice(state);
    }
    client.send(&frame(4, 0, 1, QUERY, &body));
    let reply = client.receive().expect("a page");
    assert_eq!(reply.opcode, RESULT, "{:?}", reply.error());
    let number = |at: usize| u32::from_be_bytes(reply.body[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(number(0), 2, "rows");
    let has_more = number(4) & 0x02 != 0;
    let mut at = 12;
    let state = has_more.then(|| {
        let length = number(at) as usize;
        at += 4 + length;
        reply.body[at - length..at].to_vec()
    });
    (reply.body.len(), number(at), state)
}

#[test]
fn a_query_over_everything_comes_in_pages_or_is_refused_before_it_takes_the_memory() {
    const VALUES: u32 = 300;
    let server = start("memory_limit: 256MiB\nrange_request_timeout: 600s\n");
    let mut client = Raw::ready(server.address(), 4);
    make_table(&mut client);
    let value = "v".repeat(1 << 20);
    for row in 0..VALUES {
        client.run(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, '{value}')", row % 7));
    }
    let before = memory_kib(server.process_id(), "VmHWM");
    let clients: Vec<Raw> = (0..8)
        .map(|_| {
            let mut client = Raw::ready(server.address(), 4);
            client.send(&frame(4, 0, 1, QUERY, &query(4, "SELECT * FROM k.t", &[])));
            client
        })
        .collect();
    for mut client in clients {
        let (code, text) = client.receive().expect("an answer").error();
        // Either longer than any answer may be, or more than the memory that the other requests leave.
        let named = if code == INVALID { "longer than 32 MiB" } else { "memory_limit" };
        assert!(code == INVALID || code == OVERLOADED, "{code:x}: {text}");
        assert!(text.contains(named) && text.contains("page size"), "{text}");
    }
    let (mut rows, mut state, mut longest) = (0, None, 0);
    loop {
        let (bytes, more, next) = page(&mut client, "SELECT * FROM k.t", 5000, state.as_deref());
        (rows, longest, state) = (rows + more, longest.max(bytes), next);
        if state.is_none() {
            break;
        }
    }
    assert_eq!(rows, VALUES, "every row, page by page");
    assert!(longest < 4 << 20, "a page of {longest} bytes");
    let after = memory_kib(server.process_id(), "VmHWM");
    println!(
        "peak {} MiB before, {} MiB after eight queries over 300 MiB and all their pages",
        before >> 10,
        after >> 10
    );
    assert!(after < PEAK_KIB_MAX, "peak of {} MiB", after >> 10);
}

#[test]
fn large_answers_of_the_old_interface_are_given_or_refused_within_the_memory() {
    const VALUES: u32 = 300;
    const CLIENTS: usize = 8;
    let (server, address) = start_with_rpc("memory_limit: 256MiB\nrange_request_timeout: 600s\n");
    let mut over_cql = Raw::ready(server.address(), 4);
    make_table(&mut over_cql);
    let value = "v".repeat(1 << 20);
    for row in 0..VALUES {
        over_cql.run(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, '{value}')", row % 7));
    }
    let before = memory_kib(server.process_id(), "VmHWM");
    // All clients send before one of them reads, so that all answers exist at once.
    let ask_all = |text: &str| -> Vec<TcpStream> {
        let ask = |_| {
            let mut client = TcpStream::connect(&address).expect("connect");
            client.write_all(&rpc_query(text)).expect("sent");
            client
        };
        (0..CLIENTS).map(ask).collect()
    };
    for mut client in ask_all("SELECT * FROM k.t") {
        let fields = rpc_reply(&mut client);
        let text = String::from_utf8_lossy(&fields);
        assert_ne!(fields[2], 0, "{text}");
        // UnavailableException means that there was no memory, and nothing else.
        assert!(fields[2] == NO_ROOM || text.contains("longer than 32 MiB"), "{text}");
    }
    let refused = memory_kib(server.process_id(), "VmHWM");
    let twenty_eight = |fields: &[u8]| {
        assert_eq!(fields[..3], [12, 0, 0], "a result");
        let bytes = fields.len();
        assert!((28 << 20..29 << 20).contains(&bytes), "28 rows of a mebibyte in {bytes} bytes");
    };
    let mut answered = 0;
    for mut client in ask_all("SELECT * FROM k.t WHERE k = 0 LIMIT 28") {
        let fields = rpc_reply(&mut client);
        if fields[2] != NO_ROOM {
            twenty_eight(&fields);
            answered += 1;
        }
    }
    assert!(answered > 0, "there is room for one");
    // The same answer must also succeed repeatedly, one client at a time.
    for _ in 0..3 {
        let mut client = TcpStream::connect(&address).expect("connect");
        client.write_all(&rpc_query("SELECT * FROM k.t WHERE k = 0 LIMIT 28")).expect("sent");
        twenty_eight(&rpc_reply(&mut client));
    }
    let given = memory_kib(server.process_id(), "VmHWM");
    println!(
        "peak {} MiB before, {} MiB after {CLIENTS} calls over 300 MiB, {} MiB after {CLIENTS} answers of 28 MiB",
        before >> 10,
        refused >> 10,
        given >> 10
    );
    assert!(given < PEAK_KIB_MAX, "peak of {} MiB", given >> 10);
}

#[test]
fn largest_requests_by_many_are_refused_as_overload_within_the_memory_and_then_served() {
    const CLIENTS: usize = 40;
    const REQUESTS: i16 = 6;
    const BYTES: usize = 7 << 20;
    let server = start(
        "memory_limit: 256MiB\nnative_transport_max_request_data_in_flight: 32MiB\n\
         native_transport_max_request_data_in_flight_per_ip: 32MiB\n",
    );
    let mut busy = Raw::ready(server.address(), 4);
    make_table(&mut busy);
    let value = "v".repeat(BYTES);
    let write = |k: usize, stream: i16| {
        let text = format!("INSERT INTO k.t (k, c, v) VALUES ({k}, {stream}, '{value}')");
        frame(4, 0, stream, QUERY, &query(4, &text, &[]))
    };
    let outcomes: Vec<(u32, u32)> = std::thread::scope(|scope| {
        let of_client = |k: usize| {
            let write = &write;
            let address = server.address();
            move || {
                let mut client = throwing(address);
                let (mut done, mut refused) = (0, 0);
                let mut sender = client.socket.try_clone().expect("a second handle");
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        (0..REQUESTS).for_each(|stream| sender.write_all(&write(k, stream)).expect("sent"));
                    });
                    for _ in 0..REQUESTS {
                        let reply: Reply = client.receive().expect("an answer to each");
                        if reply.opcode == ERROR {
                            let (code, text) = reply.error();
                            assert_eq!(code, OVERLOADED, "{text}");
                            refused += 1;
                        } else {
                            done += 1;
                        }
                    }
                });
                (done, refused)
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|k| scope.spawn(of_client(k))).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let (done, refused) = outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let peak = memory_kib(server.process_id(), "VmHWM") >> 10;
    println!(
        "{done} of {} requests of 7 MiB done, {refused} refused; peak {peak} MiB",
        CLIENTS * REQUESTS as usize
    );
    assert!(refused > 0, "more than fits was sent at once");
    assert!(peak < 384, "peak of {peak} MiB");
    busy.run("INSERT INTO k.t (k, c, v) VALUES (0, 100, 'after')");
    let reply = busy.query("SELECT count(*) FROM k.t");
    let rows = reply.body.last_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    assert_eq!(rows, Some(u64::from(done) + 1), "what was acknowledged is there, what was refused is not");
}

/// A client that wants an error on overload instead of waiting.
fn throwing(address: &str) -> Raw {
    let mut client = Raw::connect(address, 4);
    let mut body = vec![0, 2];
    for text in ["CQL_VERSION", "3.0.0", "THROW_ON_OVERLOAD", "1"] {
        body.extend_from_slice(&(text.len() as u16).to_be_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    client.send(&frame(4, 0, 0, STARTUP, &body));
    assert_eq!(client.receive().expect("an answer to STARTUP").opcode, READY);
    client
}
