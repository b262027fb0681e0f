//! Many requests at once: order, waiting, slow clients, limits, stopping.

use std::sync::atomic::Ordering;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

fn query(query: &str) -> Request<'_> {
    Request::Query(Query { query, parameters: QueryParameters::default() })
}

#[test]
fn a_thousand_requests_in_one_write_are_all_answered() {
    let server = Server::start();
    for version in Version::ALL {
        for options in [&[][..], &[("COMPRESSION", "lz4")]] {
            let mut client = Client::ready(server.address(), version, options);
            let requests: Vec<_> = (0..1000)
                .map(|stream| (stream, query(if stream % 2 == 0 { "rows 3 100" } else { "write" })))
                .collect();
            client.send(&requests);
            for stream in 0..1000 {
                let answer = client.receive().unwrap();
                assert_eq!(answer.header.stream, stream, "what is done at once is answered in order");
                let rows = matches!(answer.message().response, Response::Result(ResultMessage::Rows(_)));
                assert_eq!(rows, stream % 2 == 0);
            }
        }
    }
}

#[test]
fn frames_may_arrive_byte_by_byte() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[("COMPRESSION", "lz4")]);
        let bytes = client.frame(&[(1, query("rows 1 10")), (2, query("write"))]);
        for byte in bytes {
            client.raw(&[byte]);
        }
        assert_eq!(client.receive().unwrap().header.stream, 1);
        assert_eq!(client.receive().unwrap().header.stream, 2);
    }
}

#[test]
fn answers_overtake_those_that_wait_for_the_log() {
    let server = Server::start();
    for version in Version::ALL {
        server.canned.gate.store(false, Ordering::Release);
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[(1, query("wait")), (2, query("rows 1 1")), (3, query("wait")), (4, query("write"))]);
        assert_eq!(client.receive().unwrap().header.stream, 2);
        assert_eq!(client.receive().unwrap().header.stream, 4);
        assert!(matches!(client.ask(Request::Options).message().response, Response::Supported(_)));
        server.canned.open_gate();
        for stream in [1, 3] {
            let answer = client.receive().unwrap();
            assert_eq!(answer.header.stream, stream);
            assert_eq!(answer.message().response, Response::Result(ResultMessage::Void));
        }
    }
}

#[test]
fn the_log_is_told_to_write_once_for_requests_that_came_together() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    let requests: Vec<_> = (0..100).map(|stream| (stream, query("wait"))).collect();
    client.send(&requests);
    client.ask(Request::Options);
    assert!(server.canned.written_out.load(Ordering::Relaxed) <= 3, "not once a request");
    server.canned.open_gate();
    (0..100).for_each(|_| drop(client.receive().unwrap()));
}

#[test]
fn reads_that_miss_memory_wait_elsewhere_and_others_overtake_them() {
    let server = Server::start();
    for version in Version::ALL {
        server.canned.disk.store(false, Ordering::Release);
        let mut client = Client::ready(server.address(), version, &[("COMPRESSION", "lz4")]);
        client.send(&[(1, query("disk 5 70000")), (2, query("disk 1 1")), (3, query("rows 1 1"))]);
        assert_eq!(client.receive().unwrap().header.stream, 3);
        server.canned.disk.store(true, Ordering::Release);
        let mut rows = [0; 3];
        for _ in 0..2 {
            let answer = client.receive().unwrap();
            let Response::Result(ResultMessage::Rows(found)) = answer.message().response else {
                panic!("rows")
            };
            rows[answer.header.stream as usize] = found.row_count;
        }
        assert_eq!(rows[1..], [5, 1]);
    }
}

#[test]
fn a_full_queue_before_the_disk_answers_overloaded() {
    let server = Server::with(|limits| {
        limits.disk_threads_max = 1;
        limits.disk_queue_max = 2;
    });
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    let requests: Vec<_> = (0..20).map(|stream| (stream, query("disk 1 1"))).collect();
    client.send(&requests);
    let refused = client.receive().unwrap();
    assert_eq!(refused.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
    server.canned.disk.store(true, Ordering::Release);
    let others = (1..20).map(|_| client.receive().unwrap());
    let served = others.filter(|answer| answer.header.opcode == Opcode::Result).count();
    assert!((2..=4).contains(&served), "one running and two waiting, not {served}");
}

#[test]
fn a_client_that_does_not_read_is_not_read_either() {
    let server = Server::start();
    for version in [Version::V4, Version::V5] {
        let mut client = Client::ready(server.address(), version, &[]);
        // 2,000 answers of 100 KB: 200 MB would wait in memory.
        let requests: Vec<_> = (0..2000).map(|stream| (stream, query("rows 10 10000"))).collect();
        client.send(&requests);
        // Other clients are served meanwhile.
        let mut other = Client::ready(server.address(), version, &[]);
        assert!(matches!(other.query("write").message().response, Response::Result(ResultMessage::Void)));
        for stream in 0..2000 {
            assert_eq!(client.receive().unwrap().header.stream, stream);
        }
    }
}

#[test]
fn a_client_that_never_reads_its_answers_is_let_go() {
    let server = Server::with(|limits| limits.reader_grace = std::time::Duration::from_millis(50));
    for version in [Version::V4, Version::V5] {
        let mut client = Client::ready(server.address(), version, &[]);
        let requests: Vec<_> = (0..2000).map(|stream| (stream, query("rows 10 10000"))).collect();
        client.send(&requests);
        while server.native.connections_count() > 0 {
            std::thread::yield_now();
        }
        // Other clients connect and are served as before.
        let mut other = Client::ready(server.address(), version, &[]);
        assert!(matches!(other.query("write").message().response, Response::Result(ResultMessage::Void)));
        drop(other);
        while server.native.connections_count() > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn beyond_the_bytes_in_flight_a_client_that_asked_for_it_gets_overloaded() {
    let limits = |limits: &mut helenus_server::native::Limits| {
        limits.in_flight_bytes_max = 3000;
        limits.in_flight_bytes_max_per_address = 3000;
    };
    let text = "w".repeat(1000);
    let long = format!("wait {text}");
    for version in Version::ALL {
        let server = Server::with(limits);
        let mut client = Client::ready(server.address(), version, &[("THROW_ON_OVERLOAD", "1")]);
        let requests: Vec<_> = (0..5).map(|stream| (stream, query(&long))).collect();
        client.send(&requests);
        for _ in 0..3 {
            let error = client.receive().unwrap().error();
            assert_eq!(error.detail, ErrorDetail::Plain(ErrorCode::Overloaded));
            assert!(
                error.message.starts_with("Request breached limit on bytes in flight. ("),
                "{}",
                error.message
            );
        }
        server.canned.open_gate();
        for stream in [0, 1] {
            assert_eq!(client.receive().unwrap().header.stream, stream);
        }
        assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
    }
}

#[test]
fn a_long_request_beyond_the_bytes_in_flight_is_dropped_and_answered_overloaded_if_asked_for() {
    let text = format!("write {}", "x".repeat(300_000));
    for version in Version::ALL {
        let server = Server::with(|limits| {
            limits.in_flight_bytes_max = 400_000;
            limits.in_flight_bytes_max_per_address = 400_000;
        });
        let mut client = Client::ready(server.address(), version, &[("THROW_ON_OVERLOAD", "1")]);
        // The request alone fits, and does not compete with itself.
        client.send(&[(1, query(&text))]);
        assert!(matches!(
            client.receive().unwrap().message().response,
            Response::Result(ResultMessage::Void)
        ));
        // Another client uses the room: it holds 200,000 bytes until the log is ready.
        let held = format!("wait {}", "w".repeat(200_000));
        let mut other = Client::ready(server.address(), version, &[]);
        other.send(&[(1, query(&held)), (2, Request::Options)]);
        assert_eq!(other.receive().unwrap().header.stream, 2);
        client.send(&[(3, query(&text)), (4, query("write"))]);
        let refused = client.receive().unwrap();
        assert_eq!(refused.header.stream, 3);
        assert_eq!(refused.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
        assert!(refused.error().message.starts_with("Request breached limit on bytes in flight. ("));
        assert_eq!(client.receive().unwrap().header.stream, 4);
        server.canned.open_gate();
        assert_eq!(other.receive().unwrap().header.stream, 1);
        client.send(&[(5, query(&text))]);
        assert!(matches!(
            client.receive().unwrap().message().response,
            Response::Result(ResultMessage::Void)
        ));
    }
}

/// Others of its address always have something in flight, so it would wait for ever.
#[test]
fn a_request_longer_than_an_address_may_have_is_refused_when_it_has_waited_long() {
    let (held, text) = (format!("wait {}", "w".repeat(100_000)), format!("write {}", "x".repeat(350_000)));
    for version in Version::ALL {
        let server = Server::with(|limits| {
            limits.in_flight_bytes_max = 400_000;
            limits.in_flight_bytes_max_per_address = 300_000;
            limits.frame_grace = std::time::Duration::from_millis(300);
        });
        let mut other = Client::ready(server.address(), version, &[]);
        other.send(&[(1, query(&held)), (2, Request::Options)]);
        assert_eq!(other.receive().unwrap().header.stream, 2);
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[(3, query(&text)), (4, query("write"))]);
        let refused = client.receive().unwrap();
        assert_eq!(refused.header.stream, 3);
        assert_eq!(refused.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
        assert_eq!(client.receive().unwrap().header.stream, 4, "the connection goes on");
        server.canned.open_gate();
        assert_eq!(other.receive().unwrap().header.stream, 1);
        client.send(&[(5, query(&text))]);
        assert_eq!(client.receive().unwrap().header.stream, 5);
    }
}

#[test]
fn a_long_request_that_does_not_come_gives_its_room_back() {
    let server = Server::with(|limits| {
        limits.in_flight_bytes_max = 100_000;
        limits.in_flight_bytes_max_per_address = 100_000;
        limits.frame_grace = std::time::Duration::ZERO;
    });
    let text = format!("write {}", "x".repeat(90_000));
    for version in Version::ALL {
        // All but the end of a request that takes all the room; in v5 all but the end of its first segment.
        let long = format!("write {}", "x".repeat(if version < Version::V5 { 90_000 } else { 200_000 }));
        let mut slow = Client::ready(server.address(), version, &[]);
        let bytes = slow.frame(&[(1, query(&long))]);
        slow.raw(&bytes[..bytes.len() - 1000]);
        let mut other = Client::ready(server.address(), version, &[]);
        other.send(&[(2, query(&text))]);
        assert_eq!(other.receive().unwrap().header.stream, 2, "once the slow one is given up");
        let error = slow.receive().unwrap().error();
        assert_eq!(
            error,
            ErrorMessage::plain(
                ErrorCode::Protocol,
                "The request did not arrive in time; send it without pauses"
            )
        );
        assert!(slow.is_closed());
    }
}

#[test]
fn beyond_the_bytes_in_flight_others_wait_and_then_go_on() {
    let server = Server::with(|limits| {
        limits.in_flight_bytes_max = 3000;
        limits.in_flight_bytes_max_per_address = 3000;
    });
    let text = "w".repeat(1000);
    let long = format!("wait {text}");
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    let requests: Vec<_> = (0..100).map(|stream| (stream, query(&long))).collect();
    client.send(&requests);
    server.canned.open_gate();
    // A request that arrives after the gate is opened may be answered before those that were held.
    let mut answered: Vec<_> = (0..100).map(|_| client.receive().unwrap().header.stream).collect();
    answered.sort_unstable();
    assert_eq!(answered, Vec::from_iter(0..100));
}

#[test]
fn a_request_of_many_reads_is_taken_whatever_the_limit() {
    let server = Server::with(|limits| {
        limits.in_flight_bytes_max = 3000;
        limits.in_flight_bytes_max_per_address = 3000;
    });
    let text = format!("write {}", "x".repeat(5 << 20));
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[(1, query(&text)), (2, query("write"))]);
        // The large request runs on a disk thread, so the other may overtake it.
        let mut answered = [0; 2].map(|_: i16| client.receive().unwrap().header.stream);
        answered.sort_unstable();
        assert_eq!(answered, [1, 2]);
    }
}

#[test]
fn a_stopping_server_answers_what_it_has_and_closes() {
    let server = Server::start();
    let mut waits = Client::ready(server.address(), Version::V5, &[]);
    let mut idle = Client::ready(server.address(), Version::V4, &[]);
    waits.send(&[(1, query("wait")), (2, query("write"))]);
    assert_eq!(waits.receive().unwrap().header.stream, 2);
    let address = server.address();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.native.stop());
        assert!(idle.is_closed());
        server.canned.open_gate();
        assert_eq!(waits.receive().unwrap().header.stream, 1);
        assert!(waits.is_closed());
        stopping.join().unwrap();
    });
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens");
    assert_eq!(server.native.connections_count(), 0);
}

#[test]
fn a_stopping_server_answers_the_writes_that_wait_for_the_log_too_long() {
    for version in Version::ALL {
        let server = Server::with(|limits| limits.write_timeout = std::time::Duration::from_secs(2));
        server.canned.gate.store(false, Ordering::Release);
        let mut client = Client::ready(server.address(), version, &[]);
        // Once the second is answered, the first is held.
        client.send(&[(1, query("wait")), (2, query("rows 1 1"))]);
        assert_eq!(client.receive().unwrap().header.stream, 2);
        let stops = std::thread::spawn(move || server.native.stop());
        let answer = client.receive().expect("an answer, and not the end");
        assert_eq!(answer.header.stream, 1);
        assert_eq!(answer.error().detail.code(), ErrorCode::WriteTimeout);
        stops.join().unwrap();
    }
}

#[test]
fn connections_beyond_the_limits_are_told_so_and_closed() {
    let server = Server::with(|limits| limits.connections_max_per_address = Some(2));
    let first = Client::ready(server.address(), Version::V4, &[]);
    let _second = Client::ready(server.address(), Version::V4, &[]);
    for version in [Version::V3, Version::V4, Version::V5] {
        let mut third = Client::connect(server.address(), version);
        let refused = third.startup(&[]);
        assert_eq!(refused.header.version, version, "in the client's own version");
        assert_eq!(refused.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
        assert!(
            refused.error().message.contains("this address has as many connections"),
            "{:?}",
            refused.error()
        );
        assert!(third.is_closed());
    }
    drop(first);
    // The place is free once the server has seen the connection end.
    while server.native.connections_count() > 1 {
        std::thread::yield_now();
    }
    Client::ready(server.address(), Version::V4, &[]);
}

#[test]
fn a_thousand_idle_connections_leave_the_others_alone() {
    let server = Server::start();
    let idle: Vec<_> = (0..1000).map(|_| std::net::TcpStream::connect(server.address()).unwrap()).collect();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
    drop(idle);
}

#[test]
fn requests_that_wait_for_a_thread_take_turns_by_connection() {
    let server = Server::with(|limits| {
        limits.disk_threads_max = 1;
        limits.disk_queue_max = 8;
    });
    for version in Version::ALL {
        server.canned.disk.store(false, Ordering::Release);
        let mut greedy = Client::ready(server.address(), version, &[]);
        let requests: Vec<_> = (0..50).map(|stream| (stream, query("disk 1 1"))).collect();
        greedy.send(&requests);
        // The queue is full: its first refusal has come.
        assert_eq!(greedy.receive().unwrap().error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
        let mut other = Client::ready(server.address(), version, &[]);
        other.send(&[(1, query("disk 1 1")), (2, query("rows 1 1"))]);
        assert_eq!(other.receive().unwrap().header.stream, 2, "which needs no thread");
        server.canned.disk.store(true, Ordering::Release);
        let answer = other.receive().unwrap();
        assert_eq!((answer.header.stream, answer.header.opcode), (1, Opcode::Result), "{version:?}");
        let others: Vec<_> = (1..50).map(|_| greedy.receive().unwrap().header.opcode).collect();
        assert!(others.iter().filter(|opcode| **opcode == Opcode::Result).count() >= 7);
    }
}

#[test]
fn a_stopping_server_answers_the_requests_that_it_does_not_run() {
    let server = Server::with(|limits| limits.disk_threads_max = 1);
    let mut clients: Vec<_> =
        Version::ALL.into_iter().map(|version| Client::ready(server.address(), version, &[])).collect();
    for client in &mut clients {
        let requests: Vec<_> = (0..50).map(|stream| (stream, query("disk 1 1"))).collect();
        client.send(&requests);
    }
    while server.native.figures().disk_queue < 149 {
        std::thread::yield_now();
    }
    std::thread::scope(|scope| {
        let begin = std::time::Instant::now();
        let stopping = scope.spawn(|| server.native.stop());
        for client in &mut clients {
            let mut refused = 0;
            while let Some(answer) = client.receive() {
                if answer.header.opcode == Opcode::Error {
                    assert_eq!(answer.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
                    refused += 1;
                }
            }
            assert_eq!(refused, 50, "{:?}", client.version);
        }
        drop(clients);
        stopping.join().unwrap();
        assert!(begin.elapsed() < std::time::Duration::from_secs(6), "{:?}", begin.elapsed());
    });
}

/// A client that sends without a pause and reads slowly gets every answer that the server has given before it stopped.
#[test]
fn a_stopping_server_loses_no_answer_by_input_that_it_does_not_read() {
    for version in [Version::V4, Version::V5] {
        let server = Server::start();
        let mut client = Client::ready(server.address(), version, &[]);
        let mut writer = client.socket.try_clone().unwrap();
        let bytes: Vec<u8> = (0..200).flat_map(|stream| client.frame(&[(stream, query("write"))])).collect();
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let mut sent = 0;
                while std::io::Write::write_all(&mut writer, &bytes).is_ok() {
                    sent += 1;
                }
                sent
            });
            while server.native.figures().requests < 20_000 {
                std::thread::yield_now();
            }
            let stopping = scope.spawn(|| server.native.stop());
            let mut answers = 0_u64;
            while client.receive().is_some() {
                answers += 1;
            }
            stopping.join().unwrap();
            client.socket.shutdown(std::net::Shutdown::Both).ok();
            sending.join().unwrap();
            // STARTUP is a request too, and was answered before.
            assert_eq!(answers + 1, server.native.figures().requests, "{version:?}");
        });
    }
}
