//! The old interface's connections: what becomes of clients that do not behave.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_rpc::{Node, Rpc};
use helenus_server::rpc::{RpcLimits, RpcServer};
use helenus_wire::thrift::{
    Compression, ConsistencyLevel, Field, Limits, Method, args, begin_call, end_message,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn server(directory: &std::path::Path, reader_grace: Duration) -> RpcServer {
    let host = helenus_host::real::host();
    let database = Database::open(helenus_host::real::host(), DatabaseOptions::new(directory)).unwrap().0;
    let node = Node {
        cluster_name: "tests".into(),
        datacenter: "datacenter1".into(),
        rack: "rack1".into(),
        address: Ipv4Addr::LOCALHOST.into(),
    };
    let rpc = Rpc::new(LocalBackend::new(database, LocalOptions::default()), node);
    let limits = RpcLimits {
        threads: 1,
        messages: Limits::default(),
        in_flight_bytes_max: (1 << 30, 1 << 30),
        disk_threads_max: 1,
        write_timeout: LONG,
        message_grace: LONG,
        reader_grace,
        keeps_alive: false,
        busy_poll: Duration::ZERO,
    };
    RpcServer::start(&host, rpc, "127.0.0.1:0".parse().unwrap(), limits, None).unwrap()
}

fn statement(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(Method::ExecuteCql3Query, 1, &mut bytes);
    let (compression, consistency) = (Compression::None, ConsistencyLevel::One);
    args::Cql3Query { query: text.as_bytes(), compression, consistency }.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

fn read_answer(client: &mut TcpStream) -> usize {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut answer).unwrap();
    answer.len()
}

/// Calls whose answers are more than the sockets of both ends keep, and which are themselves less.
const CALLS: usize = 256;
const VALUE_BYTES: usize = 256 << 10;

/// A client, a call whose answer is long, and how long it is.
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
    let server = server(directory.path(), Duration::from_millis(50));
    let (mut client, call, answer) = client_with_long_answers(&server);
    client.write_all(&call.repeat(CALLS)).unwrap();
    let begin = Instant::now();
    while server.figures().connections > 0 {
        assert!(begin.elapsed() < LONG, "a client that does not read keeps its connection");
        std::thread::yield_now();
    }
    // Others come as before.
    let mut other = TcpStream::connect(server.address()).unwrap();
    other.write_all(&call).unwrap();
    assert_eq!(read_answer(&mut other), answer);
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), LONG);
    let (mut client, call, answer) = client_with_long_answers(&server);
    client.write_all(&call.repeat(CALLS)).unwrap();
    (0..CALLS).for_each(|_| assert_eq!(read_answer(&mut client), answer));
}
