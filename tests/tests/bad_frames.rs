//! Sends malformed frames to the real binary: at most their own connection closes, and other clients are answered.

use end_to_end::Server;
use end_to_end::raw::{ERROR, HEADER, QUERY, RESULT, Raw, STARTUP, frame, query, segment, segments, startup};

const PROTOCOL: i32 = 0x000A;
const INVALID: i32 = 0x2200;
const MAX_FRAME: usize = 16 << 20;

/// A server, and a client that must be answered whatever other clients send.
struct Scene {
    server: Server,
    witness: Raw,
}

impl Scene {
    fn new() -> Self {
        let server = Server::start_with(&["--memory"]);
        let witness = Raw::ready(server.address(), 4);
        Self { server, witness }
    }

    fn others_are_answered(&mut self) {
        assert_eq!(self.witness.query("SELECT key FROM system.local").opcode, RESULT);
    }

    fn connect(&self, version: u8) -> Raw {
        Raw::connect(self.server.address(), version)
    }

    fn ready(&self, version: u8) -> Raw {
        Raw::ready(self.server.address(), version)
    }
}

fn select(version: u8) -> Vec<u8> {
    frame(version, 0, 7, QUERY, &query(version, "SELECT key FROM system.local WHERE key = 'local'", &[]))
}

/// Pseudo-random bytes, the same for each run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn truncated_frames_end_with_their_connection() {
    let mut scene = Scene::new();
    for version in [3, 4, 5] {
        let whole = if version == 5 { segments(&select(5)) } else { select(version) };
        for length in 0..whole.len() {
            let mut client = scene.ready(version);
            client.send(&whole[..length]);
        }
        scene.others_are_answered();
    }
}

#[test]
fn no_flipped_bit_does_more_than_end_a_connection() {
    let mut scene = Scene::new();
    for version in [3, 4, 5] {
        let whole = select(version);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut client = scene.ready(version);
            let bytes = if version == 5 { segments(&bytes) } else { bytes };
            // A second, valid request follows, then the end of the stream, so that the server never waits for bytes of
            // a wrong length.
            client.send(&bytes);
            client.send(&if version == 5 { segments(&whole) } else { whole.clone() });
            client.socket.shutdown(std::net::Shutdown::Write).expect("our half");
            // The bytes left after a wrong length are parsed as requests too, and refused.
            let answers = std::iter::from_fn(|| client.receive()).filter(|reply| reply.opcode != ERROR);
            let rows = answers.count();
            assert!(rows <= 2, "bit {bit} of v{version}: {rows} answers to two requests");
        }
        scene.others_are_answered();
    }
    // The checksums of segments detect every flipped bit.
    let whole = segments(&select(5));
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut client = scene.ready(5);
        client.send(&bytes);
        client.socket.shutdown(std::net::Shutdown::Write).expect("our half");
        if let Some(reply) = client.receive() {
            let (code, text) = reply.error();
            assert_eq!(code, PROTOCOL, "{text}");
        }
        assert!(client.receive().is_none());
    }
    scene.others_are_answered();
}

#[test]
fn garbage_is_refused_before_and_after_startup() {
    let mut scene = Scene::new();
    for seed in 0..150 {
        let bytes = noise(seed, 100 + (seed as usize * 977) % 60_000);
        let mut strangers = vec![scene.connect(4)];
        strangers.extend([3, 4, 5].map(|version| scene.ready(version)));
        for client in &mut strangers {
            client.send(&bytes);
            client.socket.shutdown(std::net::Shutdown::Write).expect("our half");
            while client.receive().is_some() {}
        }
    }
    scene.others_are_answered();
    // A request of another protocol.
    let mut browser = scene.connect(4);
    browser.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (code, text) = browser.receive().expect("an answer").error();
    assert_eq!(code, PROTOCOL);
    assert!(text.starts_with("Invalid or unsupported protocol version (71)"), "{text}");
    scene.others_are_answered();
}

#[test]
fn wrong_opcodes_versions_and_directions_are_answered_in_cassandras_words() {
    let mut scene = Scene::new();
    for version in [3, 4] {
        let mut client = scene.ready(version);
        let mut refused = |bytes: &[u8]| {
            client.send(bytes);
            client.receive().expect("an answer").error()
        };
        assert_eq!(refused(&frame(version, 0, 5, 0x7F, b"")), (PROTOCOL, "Unknown opcode 127".to_owned()));
        let response = frame(version | 0x80, 0, 5, RESULT, b"");
        assert_eq!(
            refused(&response),
            (PROTOCOL, "Unexpected RESPONSE message RESULT, expecting REQUEST".to_owned())
        );
        let (code, text) = refused(&frame(version | 0x80, 0, 5, QUERY, b""));
        assert_eq!(
            (code, text.as_str()),
            (PROTOCOL, "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 7 (QUERY)")
        );
        let other = 7 - version;
        let (code, text) = refused(&select(other));
        assert_eq!(code, PROTOCOL);
        let expected = format!(
            "Invalid message version. Got {other}/v{other} but previous messages on this connection had version {version}/v{version}"
        );
        assert_eq!(text, expected);
        assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT, "and the connection goes on");
    }
    for version in [0, 1, 2, 7, 64, 127] {
        let mut client = scene.connect(version);
        client.send(&frame(version, 0, 0, STARTUP, &startup()));
        let (code, text) = client.receive().expect("an answer").error();
        assert_eq!(code, PROTOCOL);
        let expected = format!(
            "Invalid or unsupported protocol version ({version}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
        );
        assert_eq!(text, expected);
    }
    scene.others_are_answered();
}

#[test]
fn startup_comes_once_and_first() {
    let mut scene = Scene::new();
    for version in [3, 4, 5] {
        let mut early = scene.connect(version);
        early.send(&select(version));
        let (code, text) = early.receive().expect("an answer").error();
        assert_eq!(
            (code, text.as_str()),
            (PROTOCOL, "Unexpected message QUERY, expecting STARTUP or OPTIONS")
        );
        let mut twice = scene.ready(version);
        let again = frame(version, 0, 9, STARTUP, &startup());
        twice.send(&if version == 5 { segments(&again) } else { again });
        let reply = twice.receive().expect("an answer");
        let text = "Unexpected message STARTUP, the connection is already initialized";
        assert_eq!((reply.stream, reply.error()), (9, (PROTOCOL, text.to_owned())));
        assert_eq!(twice.query("SELECT key FROM system.local").opcode, RESULT, "and the connection goes on");
    }
    scene.others_are_answered();
}

#[test]
fn a_frame_over_16_mib_is_invalid_and_skipped() {
    let mut scene = Scene::new();
    let huge = vec![b' '; MAX_FRAME + 1];
    for version in [3, 4] {
        let mut client = scene.ready(version);
        client.send(&frame(version, 0, 3, QUERY, &huge));
        let reply = client.receive().expect("an answer");
        let text = format!(
            "Request is too big: length {} exceeds maximum allowed length {MAX_FRAME}.",
            MAX_FRAME + 1 + HEADER
        );
        assert_eq!((reply.stream, reply.error()), (3, (INVALID, text)));
        assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT, "and the connection goes on");
        // The length is only announced: no memory is allocated for it, and other clients are not affected.
        let mut liar = scene.ready(version);
        let mut header = frame(version, 0, 3, QUERY, b"");
        header[5..].copy_from_slice(&i32::MAX.to_be_bytes());
        liar.send(&header);
        scene.others_are_answered();
    }
    let mut client = scene.ready(5);
    client.send(&segments(&frame(5, 0, 3, QUERY, &huge)));
    let reply = client.receive().expect("an answer");
    let text =
        format!("CQL Message of size {} bytes exceeds allowed maximum of {MAX_FRAME} bytes", MAX_FRAME + 1);
    assert_eq!((reply.stream, reply.error()), (3, (INVALID, text)));
    assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT, "and the connection goes on");
    scene.others_are_answered();
}

#[test]
fn a_segment_with_a_wrong_checksum_ends_the_connection() {
    let mut scene = Scene::new();
    let sound = segment(&select(5), true);
    for (place, part) in [(4, "header"), (sound.len() - 1, "body")] {
        let mut bytes = sound.clone();
        bytes[place] ^= 1;
        let mut client = scene.ready(5);
        client.send(&bytes);
        let (code, text) = client.receive().expect("an answer").error();
        assert_eq!(code, PROTOCOL);
        let expected = format!("invalid, unrecoverable CRC mismatch detected in frame {part}. Read ");
        assert!(text.starts_with(&expected), "{text}");
        assert!(client.receive().is_none(), "closed");
    }
    scene.others_are_answered();
    assert!(scene.server.stop().success(), "and the server ends as it should");
}
