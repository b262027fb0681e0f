//! Compares with the crate `cassandra-protocol`, except where that is wrong.
//!
//! It is wrong, and not used, for: CDC_WRITE_FAILURE, CAS_WRITE_UNKNOWN and MOVED_NODE (it lacks them), the addresses
//! of v5 failures (it expects a port), custom payloads of requests (it does not skip them), CAS write timeouts before
//! v5 (it expects the contentions, which came with v5), and Prepared in v3 (it reads it correctly, but writes a
//! partition key, which came with v4).

use cassandra_protocol::compression::Compression as TheirCompression;
use cassandra_protocol::frame::message_request::RequestBody;
use cassandra_protocol::frame::message_response::ResponseBody;
use cassandra_protocol::frame::{Envelope as TheirEnvelope, Serialize, Version as TheirVersion};
use helenus_wire::native::*;

use crate::samples::{encoded, requests, responses};

fn theirs(version: Version) -> TheirVersion {
    match version {
        Version::V3 => TheirVersion::V3,
        Version::V4 => TheirVersion::V4,
        Version::V5 => TheirVersion::V5,
    }
}

fn their_envelope(bytes: &[u8], compression: TheirCompression) -> TheirEnvelope {
    TheirEnvelope::from_buffer(bytes, compression).expect("an envelope").envelope
}

#[test]
fn the_other_implementation_reads_our_requests_and_writes_the_same() {
    for version in Version::ALL {
        for (name, request) in requests(version) {
            let bytes = encoded(&request, &RequestHead::new(version, 77));
            let envelope = their_envelope(&bytes, TheirCompression::None);
            assert_eq!((envelope.stream_id, envelope.version), (77, theirs(version)), "{name}");
            let body: RequestBody = envelope.request_body().unwrap_or_else(|error| panic!("{name}: {error}"));
            let again = body.serialize_to_vec(theirs(version));
            // The crate has no skip_metadata, so the flag is lost.
            let mut ours = bytes[HEADER_LENGTH..].to_vec();
            if name.ends_with("with all") && !name.starts_with("batch") {
                let request = without_skip(&request);
                ours = encoded(&request, &RequestHead::new(version, 77)).split_off(HEADER_LENGTH);
            }
            if name == "query with names" {
                assert_eq!(again.len(), ours.len(), "a hash map: the order is lost");
            } else {
                assert_eq!(again, ours, "{name} of {version}");
            }
        }
    }
}

fn without_skip<'a>(request: &Request<'a>) -> Request<'a> {
    let mut request = *request;
    match &mut request {
        Request::Query(query) => query.parameters.skip_metadata = false,
        Request::Execute(execute) => execute.parameters.skip_metadata = false,
        _ => {}
    }
    request
}

#[test]
fn the_other_implementation_reads_our_compressed_requests() {
    for version in [Version::V3, Version::V4] {
        for (ours, other) in
            [(Compression::Lz4, TheirCompression::Lz4), (Compression::Snappy, TheirCompression::Snappy)]
        {
            let mut codec = BodyCodec::new(ours);
            for (name, request) in requests(version) {
                let mut bytes = Vec::new();
                request.encode_compressed(&RequestHead::new(version, 1), &mut codec, &mut bytes).unwrap();
                let plain = encoded(&request, &RequestHead::new(version, 1));
                assert_eq!(their_envelope(&bytes, other).body, plain[HEADER_LENGTH..], "{name}");
            }
        }
    }
}

#[test]
fn the_other_implementation_reads_our_responses_and_writes_the_same() {
    for version in Version::ALL {
        for (name, bytes) in responses(version) {
            let envelope = their_envelope(&bytes, TheirCompression::None);
            let code = bytes[HEADER_LENGTH..].first_chunk::<4>().map(|code| i32::from_be_bytes(*code));
            let unknown = matches!(code, Some(0x1600 | 0x1700));
            let addresses = version == Version::V5 && matches!(code, Some(0x1300 | 0x1500));
            if bytes.windows(10).any(|word| word == b"MOVED_NODE") {
                continue;
            }
            let cas = version < Version::V5 && code == Some(0x1100) && bytes.ends_with(b"\x03CAS");
            if name == "error" && (unknown || addresses || cas) {
                continue;
            }
            let body =
                envelope.response_body().unwrap_or_else(|error| panic!("{name} of {version}: {error}"));
            let again = match body {
                ResponseBody::Result(_) if name == "prepared" && version == Version::V3 => continue,
                ResponseBody::Error(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::Result(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::Event(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::Authenticate(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::AuthChallenge(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::AuthSuccess(body) => body.serialize_to_vec(theirs(version)),
                ResponseBody::Supported(body) => {
                    assert_eq!(body.data["PROTOCOL_VERSIONS"], SUPPORTED_VERSIONS);
                    continue; // its hash map loses the order
                }
                ResponseBody::Ready => Vec::new(),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(again, bytes[HEADER_LENGTH..], "{name} of {version}");
        }
    }
}
