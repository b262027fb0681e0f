//! Bytes that no client should send: the answer is an error, at most the connection is closed, and all other clients
//! are served.

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn is_served(server: &Server) {
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
}

fn query(query: &str) -> Request<'_> {
    Request::Query(Query { query, parameters: QueryParameters::default() })
}

#[test]
fn garbage_hurts_only_its_own_connection() {
    let server = Server::start();
    for seed in 0..200 {
        let mut client = if seed % 2 == 0 {
            Client::connect(server.address(), Version::V4)
        } else {
            Client::ready(server.address(), if seed % 4 == 1 { Version::V4 } else { Version::V5 }, &[])
        };
        let mut bytes = noise(seed, 3000);
        if seed % 3 == 0 {
            bytes[0] = 4; // a supported version, so that the rest is parsed
        }
        // The server may have closed the connection before all is sent.
        let _sent = std::io::Write::write_all(&mut client.socket, &bytes);
    }
    is_served(&server);
}

#[test]
fn flipped_bits_of_a_segment_end_its_connection_with_the_checksums() {
    let server = Server::start();
    for options in [&[][..], &[("COMPRESSION", "lz4")]] {
        let whole = {
            let mut client = Client::ready(server.address(), Version::V5, options);
            client.frame(&[(3, query("rows 1 1"))])
        };
        for bit in (0..whole.len() * 8).step_by(5) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut client = Client::ready(server.address(), Version::V5, options);
            client.raw(&bytes);
            let answer = client.receive().expect("an error before the end");
            assert_eq!(answer.header.stream, 0);
            let error = answer.error();
            assert_eq!(error.detail, ErrorDetail::Plain(ErrorCode::Protocol));
            assert!(
                error.message.contains("unrecoverable CRC mismatch detected in frame"),
                "{}",
                error.message
            );
            assert!(client.is_closed());
        }
    }
    is_served(&server);
}

#[test]
fn flipped_bits_of_a_bare_frame_are_answered_or_close_it() {
    let server = Server::start();
    let whole = Client::connect(server.address(), Version::V4).frame(&[(3, query("rows 1 1"))]);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut client = Client::ready(server.address(), Version::V4, &[]);
        client.raw(&bytes);
        client.socket.shutdown(std::net::Shutdown::Write).unwrap();
        // A flipped version may be answered in the same version, which our reader does not accept.
        std::io::Read::read_to_end(&mut client.socket, &mut Vec::new()).unwrap();
    }
    is_served(&server);
}

#[test]
fn truncated_frames_wait_for_their_rest_and_end_with_the_connection() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let whole = client.frame(&[(3, query("rows 1 1"))]);
        for cut in 0..whole.len() {
            let mut client = Client::ready(server.address(), version, &[]);
            client.raw(&whole[..cut]);
            client.socket.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(client.is_closed());
        }
    }
    is_served(&server);
}

#[test]
fn frames_over_the_limit_are_refused_and_the_connection_goes_on() {
    let server = Server::with(|limits| {
        limits.frame_bytes_max = 1 << 20;
        limits.message_bytes_max = 1 << 20;
    });
    let text = format!("write {}", "x".repeat(2 << 20));
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[(1, query(&text)), (2, query("write"))]);
        let answer = client.receive().unwrap();
        assert_eq!(answer.header.stream, 1);
        let error = answer.error();
        assert_eq!(error.detail, ErrorDetail::Plain(ErrorCode::Invalid));
        let expected = if version < Version::V5 {
            "exceeds maximum allowed length 1048576."
        } else {
            "bytes exceeds allowed maximum of 1048576 bytes"
        };
        assert!(error.message.contains(expected), "{}", error.message);
        let answer = client.receive().unwrap();
        assert_eq!(answer.message().response, Response::Result(ResultMessage::Void));
    }
}

#[test]
fn a_body_that_cannot_be_read_is_answered_on_its_stream() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let bytes = client.wrap(&[version.number(), 0, 0, 8, 7, 0, 0, 0, 2, 1, 2]);
        client.raw(&bytes);
        let answer = client.receive().unwrap();
        assert_eq!(answer.header.stream, 8);
        assert_eq!(answer.error().detail, ErrorDetail::Plain(ErrorCode::Protocol));
        assert!(matches!(client.ask(Request::Options).message().response, Response::Supported(_)));
    }
}

#[test]
fn two_wrong_messages_in_one_segment_close_the_connection() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    let wrong = [5, 0, 0, 8, 7, 0, 0, 0, 2, 1, 2];
    let bytes = client.wrap(&wrong.repeat(3));
    client.raw(&bytes);
    for _ in 0..2 {
        assert_eq!(client.receive().unwrap().error().detail, ErrorDetail::Plain(ErrorCode::Protocol));
    }
    assert!(client.is_closed());
}

#[test]
fn a_compressed_body_that_is_not_one_is_answered() {
    let server = Server::start();
    for (name, text) in [("lz4", "LZ4"), ("snappy", "Snappy")] {
        let mut client = Client::ready(server.address(), Version::V4, &[("COMPRESSION", name)]);
        client.raw(&[4, 1, 0, 8, 7, 0, 0, 0, 6, 0, 0, 0, 9, 1, 2]);
        let answer = client.receive().unwrap();
        assert_eq!(answer.header.stream, 8);
        assert!(answer.error().message.contains(text));
        assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
    }
}

#[test]
fn a_panic_in_one_request_costs_that_request_alone() {
    let server = Server::start();
    for version in [Version::V3, Version::V4, Version::V5] {
        let mut client = Client::ready(server.address(), version, &[]);
        client.send(&[
            (1, query("write")),
            (2, query("panic")),
            (3, query("rows 2 10")),
            (4, query("panic")),
        ]);
        for stream in 1..5 {
            let answer = client.receive().unwrap();
            assert_eq!(answer.header.stream, stream);
            if stream % 2 == 0 {
                assert_eq!(answer.error().detail, ErrorDetail::Plain(ErrorCode::Server));
            } else {
                assert!(matches!(answer.message().response, Response::Result(_)));
            }
        }
        assert!(matches!(client.query("write").message().response, Response::Result(ResultMessage::Void)));
    }
    is_served(&server);
}
