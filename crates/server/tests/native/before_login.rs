//! What a client without a login may take of the server: little, however it is compressed, divided or repeated.

use std::sync::atomic::Ordering;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

/// The combinations of version and compression that there are.
fn combinations() -> Vec<(Version, &'static str)> {
    let all = Version::ALL.into_iter().flat_map(|version| [(version, "lz4"), (version, "snappy")]);
    all.filter(|(version, name)| *version < Version::V5 || *name == "lz4").collect()
}

fn server() -> Server {
    let server = Server::start();
    server.canned.has_logins.store(true, Ordering::Release);
    server
}

/// A client that has been asked to log in.
fn client(server: &Server, version: Version, name: &str) -> Client {
    let mut client = Client::connect(server.address(), version);
    let asked = client.startup(&[("COMPRESSION", name)]);
    assert!(matches!(asked.message().response, Response::Authenticate(_)), "{:?}", asked.message());
    client
}

/// Requests whose bodies are much longer than they are on the wire.
fn bombs(text: &str) -> Vec<Request<'_>> {
    let query = QueryParameters::default();
    vec![
        Request::AuthResponse(Some(text.as_bytes())),
        Request::Query(Query { query: text, parameters: query }),
        Request::Prepare(Prepare { query: text, keyspace: None }),
    ]
}

#[test]
fn a_short_message_that_decompresses_to_a_long_one_is_refused_before_the_login() {
    let server = server();
    for (version, name) in combinations() {
        for length in [200_000, 16 << 20] {
            let text = "a".repeat(length);
            for request in bombs(&text) {
                let mut client = client(&server, version, name);
                let bytes = client.frame(&[(3, request)]);
                assert!(bytes.len() < length / 10, "{version:?} {name}: {} bytes", bytes.len());
                // The server may have closed the connection before all is sent.
                let _sent = std::io::Write::write_all(&mut client.socket, &bytes);
                let error = client.receive().expect("a refusal").error();
                assert_eq!(error.detail, ErrorDetail::Plain(ErrorCode::Protocol), "{}", error.message);
                assert!(client.is_closed(), "{version:?} {name}, {length} bytes");
            }
        }
    }
    assert_eq!(server.canned.logins.load(Ordering::Acquire), 0, "none of them is a login");
}

#[test]
fn a_login_of_any_length_that_is_allowed_works_compressed() {
    let server = server();
    server.canned.disk.store(true, Ordering::Release);
    for (version, name) in combinations() {
        for length in [10, 2_000, 4_000] {
            let token = ["\0a\0", &"p".repeat(length)].concat();
            let mut client = client(&server, version, name);
            let answer = client.ask(Request::AuthResponse(Some(token.as_bytes())));
            assert!(matches!(answer.message().response, Response::AuthSuccess(_)), "{version:?} {name}");
        }
    }
}

#[test]
fn a_short_request_that_is_not_for_the_backend_stays_short_after_the_login() {
    let server = Server::start();
    let text = "a".repeat(8 << 20);
    for name in ["lz4", "snappy"] {
        let mut client = Client::ready(server.address(), Version::V4, &[("COMPRESSION", name)]);
        let answer = client.ask(Request::AuthResponse(Some(text.as_bytes())));
        assert!(answer.error().message.contains("131072"), "{}", answer.error().message);
        assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
    }
}

#[test]
fn logins_that_come_together_are_checked_one_after_the_other() {
    let server = server();
    for version in Version::ALL {
        let before = server.canned.logins.load(Ordering::Acquire);
        server.canned.disk.store(false, Ordering::Release);
        let mut client = client(&server, version, "lz4");
        let logins: Vec<_> =
            (0..20).map(|stream| (stream, Request::AuthResponse(Some(&b"wrong"[..])))).collect();
        client.send(&logins);
        while server.canned.logins.load(Ordering::Acquire) == before {
            std::thread::yield_now();
        }
        // Others are served meanwhile, so this one was polled.
        for _ in 0..3 {
            Client::connect(server.address(), version).ask(Request::Options);
        }
        assert_eq!(server.canned.logins.load(Ordering::Acquire), before + 1, "{version:?}");
        server.canned.disk.store(true, Ordering::Release);
    }
}

#[test]
fn logins_that_wait_have_room_of_their_own_and_the_others_are_refused_in_words() {
    let server = Server::with(|limits| {
        limits.in_flight_bytes_max = 42_000;
        limits.in_flight_bytes_max_per_address = 42_000;
        limits.login_threads_max = 1;
    });
    server.canned.has_logins.store(true, Ordering::Release);
    let token = ["\0a\0", &"p".repeat(4_000)].concat();
    for (version, name) in combinations() {
        server.canned.disk.store(false, Ordering::Release);
        let mut clients: Vec<Client> = (0..30).map(|_| client(&server, version, name)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&[(3, Request::AuthResponse(Some(token.as_bytes())))]);
            // The event loops take them in any order, so the first ten are waited for: they fill the room.
            let arrived = (number as u64 + 1) * 4_000;
            while number < 10 && server.native.request_bytes().0 < arrived {
                std::thread::yield_now();
            }
        }
        // The refusals come at once, whatever the logins before them wait for.
        for answer in clients.iter_mut().skip(10).map(|client| client.receive().expect("an answer")) {
            assert_eq!(answer.error().detail, ErrorDetail::Plain(ErrorCode::Overloaded));
            assert!(answer.error().message.contains("Too many logins"), "{}", answer.error().message);
        }
        server.canned.disk.store(true, Ordering::Release);
        let mut first = clients.swap_remove(0);
        assert!(matches!(first.receive().unwrap().message().response, Response::AuthSuccess(_)));
        drop(clients);
        drop(first);
        while server.native.request_bytes().0 > 0 || server.native.connections_count() > 0 {
            std::thread::yield_now();
        }
    }
}

/// A long message asks for its room before it is decompressed, and has all of its bytes in its client's segments already: it is
/// served as soon as there is room, without another byte from its client.
#[test]
fn a_compressed_message_waits_for_its_room_and_is_served_without_further_input() {
    let server = Server::with(|limits| {
        limits.in_flight_bytes_max = 2 << 20;
        limits.in_flight_bytes_max_per_address = 2 << 20;
    });
    let held = format!("wait {}", "w".repeat(1_000_000));
    let text = format!("write {}", " ".repeat(1_500_000));
    let mut holder = Client::ready(server.address(), Version::V5, &[]);
    holder.send(&[(1, Request::Query(Query { query: &held, parameters: QueryParameters::default() }))]);
    while server.native.request_bytes().0 < held.len() as u64 {
        std::thread::yield_now();
    }
    let mut client = Client::ready(server.address(), Version::V5, &[("COMPRESSION", "lz4")]);
    let query = Request::Query(Query { query: &text, parameters: QueryParameters::default() });
    let bytes = client.frame(&[(2, query)]);
    assert!(bytes.len() < 60_000, "one read has all of it: {}", bytes.len());
    client.raw(&bytes);
    let mut other = Client::ready(server.address(), Version::V5, &[]);
    for _ in 0..5 {
        other.ask(Request::Options);
    }
    assert!(server.native.request_bytes().0 < (held.len() + text.len()) as u64, "it waits");
    server.canned.open_gate();
    assert_eq!(client.receive().expect("an answer").header.stream, 2);
    assert_eq!(holder.receive().expect("an answer").header.stream, 1);
}
