//! Refusals have Cassandra's texts. The bytes and texts were recorded from a 5.0.9 node.

use helenus_wire::native::*;

fn server(connection: Option<Version>) -> EnvelopeReader {
    EnvelopeReader { from: Direction::Request, connection, max_frame: DEFAULT_MAX_FRAME }
}

fn header(version: u8, flags: u8, stream: i16, opcode: u8, length: i32) -> Vec<u8> {
    let mut bytes = vec![version, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.push(opcode);
    bytes.extend(length.to_be_bytes());
    bytes
}

fn refusal(connection: Option<Version>, bytes: &[u8]) -> (Refusal, Vec<u8>) {
    let refusal = server(connection).read(bytes).unwrap_err();
    let mut answer = Vec::new();
    refusal.encode(connection, &mut answer);
    (refusal, answer)
}

#[test]
fn a_version_from_the_future_is_refused_in_a_frame_of_version_5() {
    let (refusal, answer) = refusal(None, &header(66, 0, 5, 5, 0));
    assert_eq!(
        answer,
        b"\x85\x00\x00\x05\x00\x00\x00\x00h\x00\x00\x00\n\x00bInvalid or unsupported protocol version (66); \
        supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
    );
    assert_eq!(refusal.then, AfterRefusal::DiscardReceived);
}

#[test]
fn version_2_is_refused_in_its_own_shorter_frame() {
    let (refused, answer) = refusal(None, b"\x02\x00\x05\x01\x00\x00\x00\x02\x00\x00");
    assert_eq!(refused.then, AfterRefusal::DiscardReceived);
    assert_eq!(
        answer,
        b"\x82\x00\x05\x00\x00\x00\x00g\x00\x00\x00\n\x00aInvalid or unsupported protocol version (2); \
        supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
    );
    for (short, name) in [
        (&b"\x02"[..], "byte"),
        (b"\x02\x00\x05\x05\x00\x00\x00\x00", "shorter header"),
        (b"\x42\x00", "part"),
    ] {
        let refused = server(None).read(short).unwrap_err();
        assert_eq!(refused.then, AfterRefusal::CloseUnanswered, "a {name} has no stream to answer on");
    }
}

#[test]
fn the_beta_version_is_refused_as_such() {
    let (_, answer) = refusal(None, &header(6, 0, 5, 5, 0));
    assert_eq!(
        answer,
        b"\x86\x10\x00\x05\x00\x00\x00\x00O\x00\x00\x00\n\x00IBeta version of the protocol used \
        (6/v6-beta), but USE_BETA flag is unset"
    );
    assert_eq!(server(None).read(b"\x06"), Ok(None));
    let (with_flag, _) = refusal(None, &header(6, Flags::USE_BETA, 5, 1, 0));
    assert!(with_flag.error.to_string().starts_with("Invalid or unsupported protocol version (6)"));
}

#[test]
fn options_of_the_beta_version_are_answered_in_it() {
    let mut bytes = header(6, Flags::USE_BETA, 5, 5, 3);
    bytes.extend(b"abc");
    let (answered, answer) = refusal(None, &bytes);
    assert_eq!((answered.stream, answered.then), (5, AfterRefusal::Skip(12)));
    assert!(!answered.is_error());
    let mut in_five = Vec::new();
    let message = Outgoing::Supported { cql_version: SUPPORTED_CQL };
    message.encode(&ResponseHead::new(Version::V5, 5), None, &mut in_five).unwrap();
    assert_eq!(answer[..2], [0x86, Flags::USE_BETA]);
    assert_eq!(answer[2..], in_five[2..]);
    // After STARTUP it is of another version than the connection.
    let (after, _) = refusal(Some(Version::V4), &header(6, Flags::USE_BETA, 5, 5, 0));
    assert!(after.is_error());
}

#[test]
fn headers_are_refused_in_cassandras_words() {
    for (connection, version, opcode, text) in [
        (None, 4, 99, "Unknown opcode 99"),
        (None, 0x84, 5, "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 5 (OPTIONS)"),
        (
            Some(Version::V4),
            4,
            2,
            "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode 2 (READY)",
        ),
        (
            Some(Version::V4),
            3,
            7,
            "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4",
        ),
    ] {
        let mut bytes = header(version, 0, 5, opcode, 3);
        bytes.extend(b"abc");
        let (refusal, answer) = refusal(connection, &bytes);
        assert_eq!(refusal.error.to_string(), text);
        assert_eq!((refusal.stream, refusal.then), (5, AfterRefusal::Skip(12)), "{text}");
        assert_eq!(answer[0] & 0x7F, connection.unwrap_or(Version::V5).number(), "{text}");
    }
    let (negative, _) = refusal(Some(Version::V4), &header(4, 0, 5, 7, -1));
    assert_eq!(negative.error.to_string(), "Invalid value for envelope header body length field: -1");
    assert_eq!(negative.then, AfterRefusal::Close);
}

#[test]
fn a_request_that_is_too_big_is_invalid_and_skipped() {
    let (refusal, answer) = refusal(Some(Version::V4), &header(4, 0, 5, 7, 17 << 20));
    assert_eq!(
        answer,
        b"\x84\x00\x00\x05\x00\x00\x00\x00R\x00\x00\"\x00\x00LRequest is too big: length 17825801 exceeds \
        maximum allowed length 16777216."
    );
    assert_eq!(refusal.then, AfterRefusal::Skip(17_825_801));
    assert_eq!(server(None).read(&header(4, 0, 5, 7, (16 << 20) - 9)), Ok(None), "exactly the limit");
}

#[test]
fn envelopes_in_segments_are_refused_in_cassandras_words() {
    let reader = server(Some(Version::V5));
    let negative = reader.read_in_segment(&header(66, 0, 5, 99, -1)).unwrap_err();
    assert_eq!(negative.error.to_string(), "Invalid value for envelope header body length field: -1");
    assert_eq!((negative.then, negative.stream), (AfterRefusal::Close, 5));
    let unknown = reader.read_in_segment(&header(5, 0, 5, 99, 0)).unwrap_err();
    assert_eq!(
        (unknown.error.to_string().as_str(), unknown.then),
        ("Unknown opcode 99", AfterRefusal::Skip(9))
    );
    let future = reader.read_in_segment(&header(66, 0, 5, 5, 4)).unwrap_err();
    assert_eq!((future.stream, future.then), (5, AfterRefusal::Skip(13)));
    let long = reader.read_in_segment(&header(5, 0, 5, 7, 100)).unwrap_err();
    assert_eq!(long.then, AfterRefusal::Close);
    assert_eq!(reader.read_in_segment(b"\x05\x00\x00").unwrap_err().then, AfterRefusal::Close);
    let flagged = header(5, Flags::COMPRESSED, 5, 5, 0);
    let compressed = reader.read_in_segment(&flagged).unwrap();
    assert_eq!(compressed.header.opcode, Opcode::Options, "v5 ignores the flag, as Cassandra does");
}

#[test]
fn bodies_are_refused_in_cassandras_words() {
    let query = |rest: &[u8]| [b"\x00\x00\x00\x03abc".as_slice(), rest].concat();
    for (version, opcode, flags, body, text) in [
        (
            Version::V4,
            Opcode::Query,
            0,
            vec![],
            "Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length",
        ),
        (
            Version::V4,
            Opcode::Query,
            0,
            b"\xff\xff\xff\xfbabc".to_vec(),
            "Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length",
        ),
        (
            Version::V4,
            Opcode::Register,
            0,
            b"\x00\x01\x00\x09FOO".to_vec(),
            "Not enough bytes to read an UTF8 serialized string preceded by its 2 bytes length",
        ),
        (
            Version::V4,
            Opcode::Execute,
            0,
            b"\x00".to_vec(),
            "Not enough bytes to read a byte array preceded by its 2 bytes length",
        ),
        (Version::V4, Opcode::Query, 0, query(b"\x00\x63\x00"), "Unknown code 99 for a consistency level"),
        (
            Version::V4,
            Opcode::Query,
            0,
            query(b"\0\x01\x01\0\x01\xff\xff\xff\xfd"),
            "Invalid ByteBuf length -3",
        ),
        (Version::V4, Opcode::Batch, 0, b"\x09\x00\x00\x00\x01\x00".to_vec(), "Invalid BATCH message type 9"),
        (
            Version::V4,
            Opcode::Batch,
            0,
            b"\x00\x00\x01\x09".to_vec(),
            "Invalid query kind in BATCH messages. Must be 0 or 1 but got 9",
        ),
        (Version::V4, Opcode::Register, 0, b"\x00\x01\x00\x03FOO".to_vec(), "Invalid value 'FOO' for Type"),
        (
            Version::V3,
            Opcode::Register,
            0,
            b"\x00\x01\x00\x0eTRACE_COMPLETE".to_vec(),
            "Event TRACE_COMPLETE not valid for protocol version 3/v3",
        ),
        (
            Version::V3,
            Opcode::Query,
            Flags::CUSTOM_PAYLOAD,
            query(b"\x00\x01\x00"),
            "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4",
        ),
        (
            Version::V4,
            Opcode::Query,
            0,
            query(b"\x00\x01\x20\x80\x00\x00\x00\x00\x00\x00\x00"),
            "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got -9223372036854775808)",
        ),
    ] {
        let error = decode_request(version, opcode, Flags(flags), &body).unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.code(), ErrorCode::Protocol);
    }
    let bad = decode_request(Version::V4, Opcode::Query, Flags(0), b"\x00\x00\x00\x03a\xff\xfe").unwrap_err();
    assert!(bad.to_string().starts_with("Cannot decode string as UTF8: 'fffe'; "), "{bad}");
}

#[test]
fn compressed_bodies_that_are_none_are_refused() {
    let envelope = |body| Envelope {
        header: Header {
            version: Version::V4,
            flags: Flags(Flags::COMPRESSED),
            stream: 0,
            opcode: Opcode::Query,
            length: 0,
        },
        body,
    };
    let mut lz4 = BodyCodec::new(Compression::Lz4);
    let mut snappy = BodyCodec::new(Compression::Snappy);
    for body in
        [b"".as_slice(), b"\0\0", b"\0\0\0\x10garbage!", b"\xff\xff\xff\xffabc", b"\0\0\0\0", b"\0\0\x03\0aa"]
    {
        assert!(lz4.decompress(&envelope(body), u64::MAX).is_err(), "{body:?}");
    }
    let error = snappy.decompress(&envelope(b"\0\0\0\x10garbage!"), u64::MAX).unwrap_err();
    assert_eq!(error.to_string(), "Provided frame does not appear to be Snappy compressed");
    for body in [b"".as_slice(), b"\xff\xff\xff\xff\x0f", b"\xff\xff\x03aaa"] {
        assert!(snappy.decompress(&envelope(body), u64::MAX).is_err(), "{body:?}");
    }
    let error = lz4.decompress(&envelope(b"\0\0\x01\0aaaaaaaaaaaaa"), 100).unwrap_err();
    assert_eq!(error.to_string(), "Compressed frame unfolds to 256 bytes, more than the allowed 100");
}
