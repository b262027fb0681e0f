//! Clients that do not read, that are slow, and that send several calls.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use helenus_server::rpc::RpcServer;
use helenus_wire::thrift::{
    ColumnParent, ConsistencyLevel, KeyRange, Method, Nothing, SlicePredicate, SliceRange, args,
};

use crate::server::{LONG, answer_of, call, read_answer, server, server_with, statement};

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

/// A second call that comes while the first runs on a thread is answered after it, whether it came in one piece or in parts.
#[test]
fn a_call_that_comes_while_another_runs_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), LONG, usize::MAX);
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // `describe_keyspaces` always runs on a thread.
    let first = call(Method::DescribeKeyspaces, &Nothing {});
    let second = call(Method::DescribeVersion, &Nothing {});
    for round in 0..60 {
        let pause = Duration::from_micros(10 * (round % 20));
        client.write_all(&first).unwrap();
        let begin = Instant::now();
        while begin.elapsed() < pause {
            std::hint::spin_loop();
        }
        let (begins, ends) = second.split_at(if round % 3 == 0 { 7 } else { second.len() });
        client.write_all(begins).unwrap();
        client.write_all(&[ends, &second[..]].concat()).unwrap();
        for expected in ["describe_keyspaces", "describe_version", "describe_version"] {
            let answer = String::from_utf8_lossy(&answer_of(&mut client)).into_owned();
            assert!(answer.contains(expected), "round {round}: {answer:?}");
        }
    }
}

/// The beginnings of a message of 120,000 bytes, framed and not.
fn unfinished() -> [Vec<u8>; 2] {
    let text = "x".repeat(120_000);
    let framed = statement(&text);
    let bare = framed[4..].to_vec();
    [framed, bare].map(|whole| whole[..whole.len() - 10].to_vec())
}

#[test]
fn a_request_that_finds_no_room_or_does_not_arrive_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let server = server_with(directory.path(), usize::MAX, |limits| {
        limits.in_flight_bytes_max = (300_000, 300_000);
        limits.message_grace = Duration::from_millis(300);
    });
    for part in unfinished() {
        let mut clients: Vec<TcpStream> = (0..8)
            .map(|_| {
                let mut client = TcpStream::connect(server.address()).unwrap();
                client.set_read_timeout(Some(LONG)).unwrap();
                let mut writer = client.try_clone().unwrap();
                let part = part.clone();
                // A server that has no room does not take all of it.
                std::thread::spawn(move || drop(writer.write_all(&part)));
                client.flush().unwrap();
                client
            })
            .collect();
        for client in &mut clients {
            let mut said = Vec::new();
            let _reset = client.read_to_end(&mut said);
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains("execute_cql3_query"), "{said:?}");
            assert!(said.contains("no room") || said.contains("did not arrive in time"), "{said:?}");
        }
        while server.figures().connections > 0 {
            std::thread::yield_now();
        }
    }
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.write_all(&call(Method::DescribeVersion, &Nothing {})).unwrap();
    assert!(read_answer(&mut client) > 10);
}
