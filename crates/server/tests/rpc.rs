//! The connections of the old RPC interface: clients that do not behave.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_rpc::{Node, Rpc};
use helenus_server::rpc::{RpcLimits, RpcServer};
use helenus_wire::thrift::{
    ColumnParent, Compression, ConsistencyLevel, Field, KeyRange, Limits, Method, SlicePredicate, SliceRange,
    args, begin_call, end_message,
};

/// Longer than any step of these tests.
const LONG: Duration = Duration::from_secs(60);

fn server(directory: &std::path::Path, reader_grace: Duration, answer_bytes_max: usize) -> RpcServer {
    let host = helenus_host::real::host();
    let database = Database::open(helenus_host::real::host(), DatabaseOptions::new(directory)).unwrap().0;
    let node = Node {
        cluster_name: "tests".into(),
        datacenter: "datacenter1".into(),
        rack: "rack1".into(),
        address: Ipv4Addr::LOCALHOST.into(),
    };
    let rpc = Rpc::new(
        LocalBackend::new(database, LocalOptions { answer_bytes_max, ..LocalOptions::default() }),
        node,
    );
    let limits = RpcLimits {
        threads: 1,
        messages: Limits::default(),
        in_flight_bytes_max: (1 << 30, 1 << 30),
        disk_threads_max: 1,
        write_timeout: LONG,
        handshake_timeout: LONG,
        budget: helenus_server::connection_budget::ConnectionBudget::unbounded(),
        message_grace: LONG,
        reader_grace,
        keeps_alive: false,
        busy_poll: Duration::ZERO,
        audit: None,
        logins: None,
        tls: None,
    };
    RpcServer::start(&host, rpc, "127.0.0.1:0".parse().unwrap(), limits, None).unwrap()
}

fn call<'a>(method: Method, arguments: &impl Field<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(method, 1, &mut bytes);
    arguments.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

fn statement(text: &str) -> Vec<u8> {
    let (compression, consistency) = (Compression::None, ConsistencyLevel::One);
    let asked = args::Cql3Query { query: text.as_bytes(), compression, consistency };
    call(Method::ExecuteCql3Query, &asked)
}

fn answer_of(client: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut answer).unwrap();
    answer
}

fn read_answer(client: &mut TcpStream) -> usize {
    answer_of(client).len()
}

/// A number of calls whose answers exceed the socket buffers of both ends, while the calls themselves do not.
const CALLS: usize = 256;
const VALUE_BYTES: usize = 256 << 10;

/// A client, a call with a long answer, and the length of the answer.
fn client_with_long_answers(server: &RpcServer) -> (TcpStream, Vec<u8>, usize) {
    let mut client = TcpStream::connect(server.address()).unwrap();
    let insert = format!("INSERT INTO k.t (k, v) VALUES (0, '{}')", "v".repeat(VALUE_BYTES));
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
        &insert,
    ] {
        client.write_all(&statement(text)).unwrap();
        read_answer(&mut client);
    }
    let call = statement("SELECT v FROM k.t WHERE k = 0");
    client.write_all(&call).unwrap();
    let answer = read_answer(&mut client);
    assert!(answer > VALUE_BYTES);
    (client, call, answer)
}

#[test]
fn a_client_that_takes_none_of_its_answers_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), Duration::from_millis(50), usize::MAX);
    let (mut client, call, answer) = client_with_long_answers(&server);
    client.write_all(&call.repeat(CALLS)).unwrap();
    let begin = Instant::now();
    while server.figures().connections > 0 {
        assert!(begin.elapsed() < LONG, "a client that does not read keeps its connection");
        std::thread::yield_now();
    }
    // Other clients connect and are served as before.
    let mut other = TcpStream::connect(server.address()).unwrap();
    other.write_all(&call).unwrap();
    assert_eq!(read_answer(&mut other), answer);
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), LONG, usize::MAX);
    let (mut client, call, answer) = client_with_long_answers(&server);
    client.write_all(&call.repeat(CALLS)).unwrap();
    (0..CALLS).for_each(|_| assert_eq!(read_answer(&mut client), answer));
}

#[test]
fn an_answer_that_would_take_the_memory_is_refused_and_a_shorter_one_is_given() {
    const ROWS: usize = 8;
    const MIB: usize = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), LONG, MIB);
    let mut client = TcpStream::connect(server.address()).unwrap();
    let mut ask = |call: Vec<u8>| {
        client.write_all(&call).unwrap();
        let answer = answer_of(&mut client);
        (answer.len(), String::from_utf8_lossy(&answer).into_owned())
    };
    ask(statement(
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    ));
    ask(statement("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE"));
    ask(call(Method::SetKeyspace, &args::OfKeyspace { keyspace: "k" }));
    let value = "v".repeat(VALUE_BYTES);
    for row in 0..2 * ROWS {
        ask(statement(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, '{value}')", row % 2)));
    }
    let predicate = |count| SlicePredicate {
        column_names: None,
        slice_range: Some(SliceRange { start: b"", finish: b"", reversed: false, count }),
    };
    let column_parent = || ColumnParent { column_family: "t", super_column: None };
    let level = ConsistencyLevel::One;
    let slice = |count| {
        let asked = args::GetSlice {
            key: &[0; 4],
            column_parent: column_parent(),
            predicate: predicate(count),
            consistency_level: level,
        };
        call(Method::GetSlice, &asked)
    };
    let range = |count| {
        let asked = args::GetRangeSlices {
            column_parent: column_parent(),
            predicate: predicate(count),
            range: KeyRange {
                start_key: Some(b""),
                end_key: Some(b""),
                start_token: None,
                end_token: None,
                row_filter: None,
                count: 10,
            },
            consistency_level: level,
        };
        call(Method::GetRangeSlices, &asked)
    };
    for too_much in [slice(100), range(3)] {
        let (length, text) = ask(too_much);
        assert!(length < 1000 && text.contains("longer than 1 MiB"), "{length} bytes: {text:.200}");
    }
    assert!(ask(slice(3)).0 > 3 * VALUE_BYTES);
    assert!(ask(range(1)).0 > 2 * VALUE_BYTES);
}
