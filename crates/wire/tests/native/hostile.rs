//! No bytes make the decoders panic, and nothing but complete messages is accepted.

use helenus_wire::native::*;
use proptest::prelude::*;

use crate::samples::{encoded, requests, responses};

/// Decodes `bytes` with every decoder.
fn decode_all(bytes: &[u8]) {
    for from in [Direction::Request, Direction::Response] {
        for connection in [None, Some(Version::V3), Some(Version::V5)] {
            let reader = EnvelopeReader { from, connection, max_frame: 1 << 20 };
            let read = reader.read(bytes);
            if let Err(refusal) = &read {
                refusal.encode(connection, &mut Vec::new());
            }
            for envelope in [read.ok().flatten(), reader.read_in_segment(bytes).ok()].into_iter().flatten() {
                let Header { version, opcode, flags, .. } = envelope.header;
                for compression in [Compression::Lz4, Compression::Snappy] {
                    if let Ok(body) = BodyCodec::new(compression).decompress(&envelope, 1 << 20) {
                        decode_body(version, opcode, flags, body);
                    }
                }
            }
        }
    }
    for format in [SegmentFormat::Plain, SegmentFormat::Lz4] {
        let _ = SegmentReader::new(format, Direction::Request, 1 << 20).read(bytes);
    }
}

fn decode_body(version: Version, opcode: Opcode, flags: Flags, body: &[u8]) {
    if let Ok(message) = decode_request(version, opcode, flags, body) {
        // An accepted message can be read to its end and encoded again.
        let mut out = Vec::new();
        message.request.encode(&RequestHead::new(version, 0), &mut out).unwrap();
        let again = decode_request(version, opcode, Flags(0), &out[HEADER_LENGTH..]).unwrap();
        assert_eq!(again.request, message.request);
        match message.request {
            Request::Batch(batch) => {
                assert_eq!(batch.statements.iter().count(), batch.statements.len());
                for statement in batch.statements.iter() {
                    assert_eq!(statement.values.iter().count(), statement.values.len());
                }
            }
            Request::Startup(startup) => {
                let _ = startup.check(version);
            }
            _ => {}
        }
    }
    let response = decode_response(version, opcode, flags, body).map(|message| message.response);
    if let Ok(Response::Result(ResultMessage::Rows(rows))) = response {
        let _ = rows.metadata.columns.to_vec();
        for row in rows.iter().take(1000).map_while(Result::ok) {
            assert_eq!(row.cells().count(), rows.metadata.column_count);
        }
    }
}

#[test]
fn a_request_cut_anywhere_is_an_error() {
    for version in Version::ALL {
        for (name, request) in requests(version) {
            let bytes = encoded(&request, &RequestHead::new(version, 0));
            let reader = EnvelopeReader {
                from: Direction::Request,
                connection: Some(version),
                max_frame: DEFAULT_MAX_FRAME,
            };
            for end in 0..bytes.len() {
                assert_eq!(reader.read(&bytes[..end]), Ok(None), "{name} cut to {end}");
                let Some(body) = bytes.get(HEADER_LENGTH..end) else { continue };
                let decoded = decode_request(version, request.opcode(), Flags(0), body);
                assert!(decoded.is_err(), "{name} of {version} with a body cut to {}", body.len());
            }
        }
    }
}

#[test]
fn a_response_cut_anywhere_is_an_error() {
    for version in Version::ALL {
        for (name, bytes) in responses(version) {
            let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: u64::MAX };
            let header = reader.read(&bytes).unwrap().unwrap().header;
            for end in HEADER_LENGTH..bytes.len() {
                let body = &bytes[HEADER_LENGTH..end];
                let decoded = decode_response(version, header.opcode, header.flags, body);
                let broken = match decoded.map(|message| message.response) {
                    Err(_) => true,
                    // Rows are checked one by one. A CAS timeout without its contentions is that of Cassandra 3.
                    Ok(Response::Result(ResultMessage::Rows(rows))) => rows.iter().any(|row| row.is_err()),
                    Ok(Response::Error(error)) => {
                        matches!(error.detail, ErrorDetail::WriteTimeout { contentions: None, .. })
                    }
                    Ok(_) => false,
                };
                assert!(broken, "{name} of {version} with a body cut to {}", body.len());
            }
        }
    }
}

#[test]
fn messages_with_any_byte_changed_do_not_panic() {
    for version in Version::ALL {
        let requests = requests(version);
        let requests = requests.iter().map(|(_, request)| encoded(request, &RequestHead::new(version, 0)));
        let mut all: Vec<_> = requests.collect();
        all.extend(responses(version).into_iter().map(|(_, bytes)| bytes));
        for mut bytes in all {
            for at in 0..bytes.len() {
                let was = bytes[at];
                for changed in [0, 0x7F, 0x80, 0xFF, was ^ 1] {
                    bytes[at] = changed;
                    decode_all(&bytes);
                }
                bytes[at] = was;
            }
        }
    }
}

#[test]
fn types_nested_without_end_are_refused() {
    let body =
        [b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01c".as_slice(), &b"\0\x20".repeat(100_000)]
            .concat();
    let error = decode_response(Version::V4, Opcode::Result, Flags(0), &body).unwrap_err();
    assert_eq!(error.to_string(), "Type is nested more than 64 levels deep");
}

#[test]
fn counts_without_bytes_behind_them_cost_nothing() {
    for columns in [b"\x7f\xff\xff\xff", b"\0\0\0\0"] {
        let rows = [b"\0\0\0\x02\0\0\0\x04".as_slice(), columns, b"\x7f\xff\xff\xff"].concat();
        let error = decode_response(Version::V4, Opcode::Result, Flags(0), &rows).unwrap_err();
        assert!(
            error.to_string().contains("remaining in the message")
                || error.to_string().starts_with("Message ends too early"),
            "{error}"
        );
    }
    for body in [b"\x7f\xff\xff\xffSELECT".as_slice(), b"\0\0\0\x01q\0\x01\x01\xff\xff\x7f\xff\xff\xff"] {
        assert!(decode_request(Version::V4, Opcode::Query, Flags(0), body).is_err());
    }
}

proptest! {
    #[test]
    fn garbage_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode_all(&bytes);
        for version in Version::ALL {
            for opcode in Opcode::ALL {
                decode_body(version, *opcode, Flags(0), &bytes);
                decode_body(version, *opcode, Flags(0x0F), &bytes);
            }
        }
    }

    #[test]
    fn garbage_of_likely_bytes_does_not_panic(
        bytes in proptest::collection::vec(prop_oneof![3 => Just(0_u8), 2 => 0..8_u8, 1 => any::<u8>()], 0..200),
    ) {
        for version in Version::ALL {
            for opcode in Opcode::ALL {
                decode_body(version, *opcode, Flags(0), &bytes);
            }
        }
    }
}
