//! Connections that wait, and those that another server goes on with.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

const LONG: Duration = Duration::from_secs(20);

fn query(query: &str) -> Request<'_> {
    Request::Query(Query { query, parameters: QueryParameters::default() })
}

/// Hands all connections over to the receiver, once no request is in flight.
fn hand_over(server: &Server) -> (Receiver<(TcpStream, HandedOver)>, helenus_server::native::Listeners) {
    let (sender, handed) = sync_channel(16);
    server.native.halt(LONG).expect("requests end");
    let taker = move |socket, state| sender.send((socket, state)).expect("the test takes it");
    let listeners = server.native.give_listeners().expect("it listens");
    server.native.hand_over(Box::new(taker));
    (handed, listeners)
}

/// The next connection that is handed over; its socket blocks.
fn taken(handed: &Receiver<(TcpStream, HandedOver)>) -> (TcpStream, HandedOver) {
    let (socket, state) = handed.recv_timeout(LONG).expect("a connection is handed over");
    socket.set_nonblocking(false).expect("a socket option");
    socket.set_read_timeout(Some(LONG)).expect("a socket option");
    (socket, state)
}

/// Waits until the server has begun another request than these.
fn begun(server: &Server, before: u64) {
    while server.native.figures().requests == before {
        std::thread::yield_now();
    }
}

#[test]
fn a_halt_waits_for_requests_in_flight_and_begins_no_other() {
    let server = Server::start();
    for version in Version::ALL {
        server.canned.gate.store(false, Ordering::Release);
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[(1, query("wait")), (2, query("write"))]);
        assert_eq!(client.receive().unwrap().header.stream, 2);
        let busy = server.native.halt(Duration::from_millis(20)).expect_err("one waits for the log");
        assert_eq!(busy.connections, 1);
        client.send(&[(3, query("write"))]);
        assert_eq!(client.receive().unwrap().header.stream, 3, "after a halt in vain it goes on");
        server.canned.open_gate();
        server.native.halt(LONG).expect("the log is written");
        assert_eq!(client.receive().unwrap().header.stream, 1, "what was begun is answered");
        client.send(&[(4, query("write"))]);
        // Who connects meanwhile waits too.
        let mut later = Client::connect(server.address(), version);
        later.raw(&startup(version));
        let before = server.native.figures().requests;
        server.native.halt(LONG).expect("nothing was begun");
        assert_eq!(server.native.figures().requests, before);
        server.native.go_on();
        assert_eq!(client.receive().unwrap().header.stream, 4);
        assert!(later.receive().unwrap().is_ready());
    }
}

/// A login that fails is in flight until its answer is sent.
#[test]
fn a_halt_waits_for_no_answer_that_is_delayed() {
    for version in Version::ALL {
        let server = Server::start();
        server.canned.has_logins.store(true, Ordering::Release);
        let begin = |logins: usize| {
            let mut client = Client::connect(server.address(), version);
            client.startup(&[]);
            client.send(&[(1, Request::AuthResponse(Some(b"late")))]);
            while server.canned.logins.load(Ordering::Acquire) < logins {
                std::thread::yield_now();
            }
            client
        };
        // One whose answer waits already.
        server.canned.disk.store(true, Ordering::Release);
        let mut client = begin(1);
        server.native.halt(LONG).expect("nothing is in flight");
        assert_eq!(client.receive().expect("an answer").error().message, "late");
        server.native.go_on();
        // One whose password is checked while all come to rest.
        server.canned.disk.store(false, Ordering::Release);
        let mut client = begin(2);
        std::thread::scope(|scope| {
            let halting = scope.spawn(|| server.native.halt(LONG));
            server.canned.disk.store(true, Ordering::Release);
            assert_eq!(client.receive().expect("an answer").error().message, "late");
            halting.join().expect("no panic").expect("nothing is in flight");
        });
        server.native.go_on();
        // Those after it wait as before.
        let client = begin(3);
        client.socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket option");
        assert!(client.socket.peek(&mut [0]).is_err(), "the answer is not delayed");
    }
}

/// A connection that has ended waits until its client ends it too.
#[test]
fn a_halt_does_not_wait_for_clients_that_do_not_close_their_end() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    client.raw(&[0x7F; 9]);
    client.receive().expect("an answer").error();
    server.native.halt(LONG).expect("nothing is in flight");
    assert_eq!(server.native.connections_count(), 1, "it has not ended yet");
}

fn startup(version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_startup(&[("CQL_VERSION", "3.0.0")], &RequestHead::new(version, 0), &mut bytes).expect("short");
    bytes
}

#[test]
fn a_connection_is_handed_over_with_its_state_and_every_byte() {
    for version in Version::ALL {
        for options in [&[][..], &[("COMPRESSION", "lz4")]] {
            let server = Server::start();
            let mut client = Client::ready(server.address(), version, options);
            client.query("use ks");
            client.ask(Request::Register(EventTypes::default().with(EventType::TopologyChange)));
            // A long answer that the client does not read yet, and the beginning of a request behind it.
            let before = server.native.figures().requests;
            client.send(&[(5, query("rows 200 100000"))]);
            begun(&server, before);
            let request = client.frame(&[(6, query("write"))]);
            let (first, rest) = request.split_at(request.len() / 2);
            client.raw(first);
            let (handed, _listeners) = hand_over(&server);
            let (mut socket, state) = taken(&handed);
            client.raw(rest);
            let agreed = state.agreed.expect("after STARTUP");
            assert_eq!(agreed.version, version);
            assert_eq!(agreed.compression, (!options.is_empty()).then_some(Compression::Lz4));
            assert_eq!(agreed.keyspace.as_deref(), Some("ks"));
            assert!(agreed.events.contains(EventType::TopologyChange));
            assert!(!agreed.events.contains(EventType::SchemaChange));
            assert!(state.unserved.envelopes.is_empty() && state.unserved.skip.is_none());
            assert_eq!(state.unserved.segments.is_some(), version >= Version::V5);
            let mut input = state.unserved.bytes;
            while input.len() < request.len() {
                let mut more = vec![0; request.len() - input.len()];
                let count = socket.read(&mut more).expect("the rest");
                input.extend_from_slice(&more[..count]);
            }
            let at = input.iter().zip(&request).position(|(one, other)| one != other);
            assert!(
                input == request,
                "{version:?} {options:?}: {} bytes for {}, the first that differs is {at:?}",
                input.len(),
                request.len()
            );
            let writes = std::thread::spawn(move || {
                socket.write_all(&state.unsent).expect("the client reads");
                socket
            });
            let answer = client.receive().expect("an answer");
            let Response::Result(ResultMessage::Rows(rows)) = answer.message().response else {
                panic!("rows")
            };
            assert_eq!((answer.header.stream, rows.row_count), (5, 200));
            drop(writes.join());
        }
    }
}

#[test]
fn events_that_wait_until_the_client_has_read_are_handed_over_with_its_answers() {
    for version in Version::ALL {
        let server = Server::start();
        let mut client = Client::ready(server.address(), version, &[]);
        client.ask(Request::Register(EventTypes::default().with(EventType::SchemaChange)));
        let mut other = Client::ready(server.address(), version, &[]);
        let before = server.native.figures().requests;
        // The client reads nothing of it, and has so much to read that the event waits.
        client.send(&[(5, query("rows 200 100000"))]);
        begun(&server, before);
        other.query("create");
        let (handed, _listeners) = hand_over(&server);
        let mut both = [taken(&handed), taken(&handed)];
        both.sort_by_key(|(_, state)| state.unsent.len());
        let [_, (mut socket, state)] = both;
        let writes = std::thread::spawn(move || {
            socket.write_all(&state.unsent).expect("the client reads");
        });
        assert_eq!(client.receive().expect("the answer").header.stream, 5);
        assert_eq!(client.receive().expect("the event").header.opcode, Opcode::Event);
        assert!(client.receive().is_none());
        writes.join().expect("it ends");
    }
}

const REQUESTS: i16 = 256;

#[test]
fn requests_that_were_read_and_not_served_are_handed_over() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    // The client reads nothing, so that the answers to the first fill what may be unsent, and the others stay unserved.
    let long = query("rows 200 100000");
    let many: Vec<_> = (0..REQUESTS).map(|stream| (stream, long)).collect();
    let before = server.native.figures().requests;
    client.send(&many);
    begun(&server, before);
    let (handed, _listeners) = hand_over(&server);
    let (mut socket, state) = taken(&handed);
    let writes = std::thread::spawn(move || {
        socket.write_all(&state.unsent).expect("the client reads");
        drop(socket);
        (state.unserved, state.agreed)
    });
    let mut answered = 0;
    while client.receive().is_some() {
        answered += 1;
    }
    let (unserved, _) = writes.join().expect("it ends");
    let reader =
        EnvelopeReader { from: Direction::Request, connection: Some(Version::V5), max_frame: 1 << 20 };
    let (mut rest, mut streams) = (&unserved.envelopes[..], Vec::new());
    while !rest.is_empty() {
        let envelope = reader.read_in_segment(rest).expect("whole envelopes");
        streams.push(envelope.header.stream);
        rest = &rest[envelope.size()..];
    }
    assert!(!streams.is_empty(), "some are not served");
    assert_eq!(streams, (answered..REQUESTS).collect::<Vec<i16>>(), "each is answered or handed over");
}

#[test]
fn whoever_connects_before_startup_is_handed_over_and_the_listener_too() {
    let server = Server::start();
    let mut early = Client::connect(server.address(), Version::V4);
    early.raw(&startup(Version::V4)[..4]);
    // Until then it is the listener's.
    while server.native.figures().accepted == 0 {
        std::thread::yield_now();
    }
    let (handed, listeners) = hand_over(&server);
    let (mut socket, state) = taken(&handed);
    assert!(state.agreed.is_none());
    let mut input = state.unserved.bytes;
    while input.len() < 4 {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("what was sent");
        input.push(byte[0]);
    }
    assert_eq!(input, startup(Version::V4)[..4]);
    // The socket is open all the time.
    let mut late = Client::connect(server.address(), Version::V5);
    listeners.first.set_nonblocking(false).expect("a socket option");
    let (accepted, _) = listeners.first.accept().expect("the client waits there");
    drop(accepted);
    assert!(late.is_closed());
    listeners.first.set_nonblocking(true).expect("a socket option");
    assert!(!server.native.is_running());
    server.native.take_back(listeners).expect("it listens again");
    let mut again = Client::connect(server.address(), Version::V4);
    again.raw(&startup(Version::V4));
    server.native.go_on();
    assert!(server.native.is_running() && again.receive().unwrap().is_ready());
}

#[test]
fn whoever_is_accepted_while_a_server_comes_to_rest_is_handed_over() {
    for _ in 0..50 {
        let server = Server::start();
        let address = server.address();
        let connects =
            std::thread::spawn(move || (0..30).map(|_| TcpStream::connect(address)).collect::<Vec<_>>());
        while server.native.figures().accepted == 0 {
            std::thread::yield_now();
        }
        let (handed, _listeners) = hand_over(&server);
        let accepted = server.native.figures().accepted;
        let mut taken_over = Vec::new();
        while (taken_over.len() as u64) < accepted {
            taken_over.push(taken(&handed));
        }
        drop(connects.join().expect("the system keeps them in the backlog"));
    }
}
