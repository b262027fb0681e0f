//! How a connection begins. Texts and streams are those of a 5.0.6 node's answers.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

const VERSIONS: &str = "supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)";

#[test]
fn an_unknown_version_is_refused_in_version_5_and_another_may_follow() {
    let server = Server::start();
    for version in [66, 65, 7] {
        let mut client = Client::connect(server.address(), Version::V5);
        client.raw(&[version, 0, 0, 9, 5, 0, 0, 0, 0]);
        let answer = client.receive().unwrap();
        assert_eq!((answer.header.version, answer.header.stream), (Version::V5, 9));
        let text = format!("Invalid or unsupported protocol version ({version}); {VERSIONS}");
        assert_eq!(answer.error(), ErrorMessage::plain(ErrorCode::Protocol, text));
        assert!(client.startup(&[]).is_ready(), "on the same connection");
    }
}

#[test]
fn version_6_wants_its_beta_flag_and_has_options_alone() {
    const STARTUP: u8 = 1;
    const OPTIONS: u8 = 5;
    let server = Server::start();
    for (flags, opcode, text) in [
        (0, OPTIONS, "USE_BETA flag is unset"),
        (0, STARTUP, "USE_BETA flag is unset"),
        (0x10, OPTIONS, "6/v6-beta"),
        (0x10, STARTUP, "unsupported protocol version (6)"),
    ] {
        let mut client = Client::connect(server.address(), Version::V5);
        client.raw(&[6, flags, 0, 0, opcode, 0, 0, 0, 0]);
        let mut header = [0; 9];
        std::io::Read::read_exact(&mut client.socket, &mut header).unwrap();
        assert_eq!(header[0], 0x86, "answered in kind");
        let mut body = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
        std::io::Read::read_exact(&mut client.socket, &mut body).unwrap();
        assert!(String::from_utf8_lossy(&body).contains(text));
    }
}

#[test]
fn options_are_answered_before_and_after_startup() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::connect(server.address(), version);
        for round in 0..2 {
            let answer = client.ask(Request::Options);
            let Response::Supported(options) = answer.message().response else { panic!("SUPPORTED") };
            let texts: Vec<String> = options
                .iter()
                .map(|(key, values)| format!("{key}={:?}", values.iter().collect::<Vec<_>>()))
                .collect();
            assert_eq!(
                texts,
                [
                    r#"PROTOCOL_VERSIONS=["3/v3", "4/v4", "5/v5", "6/v6-beta"]"#,
                    r#"COMPRESSION=["snappy", "lz4"]"#,
                    r#"CQL_VERSION=["3.4.7"]"#
                ]
            );
            if round == 0 {
                assert!(client.startup(&[("DRIVER_NAME", "raw"), ("NO_COMPACT", "true")]).is_ready());
            }
        }
    }
}

#[test]
fn requests_work_in_every_version_and_compression() {
    let server = Server::start();
    let compressions: [&[(&str, &str)]; 3] = [&[], &[("COMPRESSION", "lz4")], &[("COMPRESSION", "snappy")]];
    for version in Version::ALL {
        for options in compressions {
            if version == Version::V5 && options.iter().any(|(_, name)| *name == "snappy") {
                continue;
            }
            let mut client = Client::ready(server.address(), version, options);
            for (rows, size) in [(0, 1), (3, 10), (1000, 300), (3, 200_000)] {
                let answer = client.query(&format!("rows {rows} {size}"));
                let Response::Result(ResultMessage::Rows(found)) = answer.message().response else {
                    panic!("rows")
                };
                assert_eq!(found.row_count, rows);
                for row in found.iter() {
                    let cells: Vec<_> = row.unwrap().cells().collect();
                    assert!(cells.len() == 1 && cells[0].is_some_and(|cell| cell.len() == size));
                }
            }
        }
    }
}

#[test]
fn v5_refuses_snappy_and_goes_on_in_segments() {
    let server = Server::start();
    let mut client = Client::connect(server.address(), Version::V5);
    let error = client.startup(&[("COMPRESSION", "snappy")]).error();
    assert_eq!(error.message, "Snappy compression is not supported in protocol V5");
    let head = RequestHead::new(Version::V5, 1);
    let mut envelope = Vec::new();
    encode_startup(&[("CQL_VERSION", "3.0.0")], &head, &mut envelope).unwrap();
    // The client now sends LZ4 segments, as it asked for. The server sends plain ones, because it did not agree.
    let mut bytes = Vec::new();
    SegmentWriter::new(SegmentFormat::Plain).append(&envelope, &mut bytes);
    client.raw(&bytes);
    let mut answer = vec![0; 6 + 9 + 4];
    std::io::Read::read_exact(&mut client.socket, &mut answer).unwrap();
    assert_eq!(answer[6..15], [0x85, 0, 0, 1, 2, 0, 0, 0, 0], "READY");
}

#[test]
fn startup_takes_any_cql_version_from_three_on() {
    let server = Server::start();
    for (version, fault) in [
        ("3.0.0", None),
        ("3.4.7", None),
        ("4.0.0", None),
        (
            "2.0.0",
            Some(
                "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)",
            ),
        ),
        ("three", Some("Invalid version value: three")),
    ] {
        let mut client = Client::connect(server.address(), Version::V4);
        let mut bytes = Vec::new();
        encode_startup(&[("cql_version", version)], &RequestHead::new(Version::V4, 3), &mut bytes).unwrap();
        client.raw(&bytes);
        let answer = client.receive().unwrap();
        assert_eq!(answer.header.stream, 3);
        match fault {
            None => assert!(answer.is_ready()),
            Some(text) => {
                assert_eq!(answer.error(), ErrorMessage::plain(ErrorCode::Protocol, text));
                assert!(client.startup(&[]).is_ready(), "a second try is allowed");
            }
        }
    }
    let mut client = Client::connect(server.address(), Version::V4);
    let error = client.startup(&[("COMPRESSION", "zip")]).error();
    assert_eq!(error.message, "Unknown compression algorithm: zip");
}

#[test]
fn requests_before_startup_and_a_second_startup_are_refused() {
    let server = Server::start();
    let mut client = Client::connect(server.address(), Version::V4);
    client.send(&[(5, Request::Query(Query { query: "write", parameters: QueryParameters::default() }))]);
    let answer = client.receive().unwrap();
    assert_eq!(answer.header.stream, 5);
    assert_eq!(answer.error().message, "Unexpected message QUERY, expecting STARTUP or OPTIONS");
    assert!(client.is_closed(), "as from Cassandra 5.0.8 on");
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    let error = client.startup(&[]).error();
    assert_eq!(error.message, "Unexpected message STARTUP, the connection is already initialized");
    assert_eq!(error.detail.code(), ErrorCode::Protocol);
    assert!(matches!(
        client.ask(Request::AuthResponse(Some(b"x"))).message().response,
        Response::AuthSuccess(None)
    ));
}

#[test]
fn another_version_on_the_same_connection_is_refused() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    client.raw(&[3, 0, 0, 9, 5, 0, 0, 0, 0]);
    let answer = client.receive().unwrap();
    assert_eq!(answer.header.stream, 9);
    let text = "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4";
    assert_eq!(answer.error().message, text);
    assert!(matches!(client.ask(Request::Options).message().response, Response::Supported(_)));
}

#[test]
fn the_time_in_which_the_server_checks_a_login_is_not_the_clients() {
    let server = Server::with(|limits| limits.handshake_timeout = std::time::Duration::from_millis(500));
    server.canned.has_logins.store(true, Ordering::Release);
    let late = "No login succeeded in time; log in as soon as AUTHENTICATE has come";
    let begin = |logins: &[(i16, Request<'_>)]| {
        let mut client = Client::connect(server.address(), Version::V4);
        let mut bytes = Vec::new();
        encode_startup(&[("CQL_VERSION", "3.0.0")], &RequestHead::new(Version::V4, 0), &mut bytes).unwrap();
        bytes.extend(client.frame(logins));
        client.raw(&bytes);
        assert!(matches!(client.receive().unwrap().message().response, Response::Authenticate(_)));
        client
    };
    let mut right = begin(&[(1, Request::AuthResponse(Some(b"right")))]);
    let mut wrong =
        begin(&[(1, Request::AuthResponse(Some(b"wrong"))), (2, Request::AuthResponse(Some(b"right")))]);
    // One that came later is late, so the time of the first two is over as well.
    let mut silent = begin(&[]);
    assert_eq!(silent.receive().unwrap().error().message, late);
    server.canned.disk.store(true, Ordering::Release);
    assert!(matches!(right.receive().unwrap().message().response, Response::AuthSuccess(_)));
    assert!(matches!(right.query("write").message().response, Response::Result(ResultMessage::Void)));
    assert_eq!(wrong.receive().unwrap().error().message, "wrong");
    assert_eq!(wrong.receive().unwrap().error().message, late, "no further login is taken");
    assert!(wrong.is_closed());
}

#[test]
fn a_login_whose_client_has_gone_is_not_checked() {
    for version in [Version::V4, Version::V5] {
        let server = Server::with(|limits| limits.login_threads_max = 1);
        server.canned.has_logins.store(true, Ordering::Release);
        let begin = || {
            let mut client = Client::connect(server.address(), version);
            client.startup(&[]);
            client.send(&[(1, Request::AuthResponse(Some(b"right")))]);
            client
        };
        let mut first = begin();
        while server.canned.logins.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let mut waiting: Vec<Client> = (0..8).map(|_| begin()).collect();
        // One of them sends on before it goes, and one sends more than anybody does.
        waiting[0].raw(&[0; 100]);
        let _cut_off = std::io::Write::write_all(&mut waiting[1].socket, &[0; 64 << 10]);
        drop(waiting);
        while server.native.connections_count() > 1 {
            std::thread::yield_now();
        }
        let mut last = begin();
        server.canned.disk.store(true, Ordering::Release);
        for client in [&mut first, &mut last] {
            assert!(matches!(client.receive().unwrap().message().response, Response::AuthSuccess(_)));
        }
        assert_eq!(server.canned.logins.load(Ordering::Acquire), 2, "the first and the last");
    }
}

/// A segment of v5 has many requests, and any number of them may be logins.
#[test]
fn of_the_logins_of_a_connection_one_is_checked_at_a_time() {
    const LOGINS: i16 = 20;
    for (version, first) in [(Version::V4, false), (Version::V5, false), (Version::V5, true)] {
        let server = Server::start();
        server.canned.has_logins.store(true, Ordering::Release);
        let mut client = Client::connect(server.address(), version);
        client.startup(&[]);
        if first {
            // Further logins of a client that has logged in.
            server.canned.disk.store(true, Ordering::Release);
            assert!(matches!(
                client.ask(Request::AuthResponse(Some(b"right"))).message().response,
                Response::AuthSuccess(_)
            ));
            server.canned.disk.store(false, Ordering::Release);
        }
        let before = usize::from(first);
        let logins: Vec<(i16, Request<'_>)> =
            (0..LOGINS).map(|stream| (stream, Request::AuthResponse(Some(b"right")))).collect();
        client.send(&logins);
        wait_for_logins(&server, before + 1);
        // Every event loop has served others meanwhile.
        for _ in 0..20 {
            let mut other = Client::connect(server.address(), version);
            other.startup(&[]);
        }
        assert_eq!(server.canned.logins.load(Ordering::Acquire), before + 1, "{version:?} {first}");
        assert_eq!(server.native.pools()[1].pending, 0, "{version:?} {first}");
        server.canned.disk.store(true, Ordering::Release);
        for _ in 0..LOGINS {
            assert!(matches!(client.receive().unwrap().message().response, Response::AuthSuccess(_)));
        }
        let checked = server.canned.logins.load(Ordering::Acquire);
        assert_eq!(checked, before + LOGINS as usize, "one after the other");
    }
}

/// Logins of an address that waits, on a server whose logins wait for `disk`.
fn begin_login(server: &Server, from: [u8; 4], token: &[u8]) -> Client {
    let mut client = Client::connect_from(from, server.address(), Version::V4);
    client.startup(&[]);
    client.send(&[(1, Request::AuthResponse(Some(token)))]);
    client
}

fn wait_for_logins(server: &Server, count: usize) {
    while server.canned.logins.load(Ordering::Acquire) < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_flood_of_logins_delays_and_refuses_those_of_its_own_address() {
    const HERE: [u8; 4] = [127, 0, 0, 1];
    const THERE: [u8; 4] = [127, 0, 0, 2];
    // One runs, 128 wait.
    const TAKEN: usize = 129;
    let server = Server::with(|limits| limits.login_threads_max = 1);
    server.canned.has_logins.store(true, Ordering::Release);
    let mut first = begin_login(&server, HERE, b"\0a\0right");
    wait_for_logins(&server, 1);
    let mut flood: Vec<Client> = (1..TAKEN).map(|_| begin_login(&server, HERE, b"\0a\0right")).collect();
    let pending = |server: &Server| server.native.pools()[1].pending;
    while pending(&server) < TAKEN as u64 - 1 {
        std::thread::yield_now();
    }
    for _ in 0..20 {
        let mut refused = begin_login(&server, HERE, b"\0b\0right");
        let error = refused.receive().unwrap().error();
        assert_eq!(
            error,
            ErrorMessage::plain(ErrorCode::Overloaded, "Too many logins wait; try again later")
        );
    }
    let mut elsewhere = begin_login(&server, THERE, b"\0a\0right");
    while pending(&server) < TAKEN as u64 {
        std::thread::yield_now();
    }
    server.canned.disk.store(true, Ordering::Release);
    for client in flood.iter_mut().chain([&mut first, &mut elsewhere]) {
        assert!(matches!(client.receive().unwrap().message().response, Response::AuthSuccess(_)));
    }
    let place =
        server.canned.login_clients.lock().iter().position(|client| client.ip() == IpAddr::from(THERE));
    assert!(place.is_some_and(|place| place <= 2), "behind one check of the flood: {place:?}");
}

#[test]
fn one_thread_is_left_for_other_addresses() {
    let server = Server::with(|limits| limits.login_threads_max = 2);
    server.canned.has_logins.store(true, Ordering::Release);
    let mut clients: Vec<Client> =
        (0..5).map(|_| begin_login(&server, [127, 0, 0, 1], b"\0a\0right")).collect();
    wait_for_logins(&server, 1);
    clients.push(begin_login(&server, [127, 0, 0, 2], b"\0a\0right"));
    // While the first one is being checked.
    wait_for_logins(&server, 2);
    assert_eq!(server.canned.login_clients.lock()[1].ip(), IpAddr::from([127, 0, 0, 2]));
    server.canned.disk.store(true, Ordering::Release);
    for client in &mut clients {
        assert!(matches!(client.receive().unwrap().message().response, Response::AuthSuccess(_)));
    }
}
