//! The server decodes the requests that a client encodes.

use helenus_wire::WireError;
use helenus_wire::native::*;

use crate::samples::{ID, METADATA_ID, encoded, requests};

fn reader(connection: Version) -> EnvelopeReader {
    EnvelopeReader { from: Direction::Request, connection: Some(connection), max_frame: DEFAULT_MAX_FRAME }
}

fn decode(version: Version, bytes: &[u8]) -> (Header, RequestMessage<'_>) {
    let envelope = reader(version).read(bytes).unwrap().unwrap();
    assert_eq!(envelope.size(), bytes.len());
    let header = envelope.header;
    (header, decode_request(header.version, header.opcode, header.flags, envelope.body).unwrap())
}

#[test]
fn every_request_comes_back_as_it_was_sent() {
    for version in Version::ALL {
        for (name, request) in requests(version) {
            let bytes = encoded(&request, &RequestHead::new(version, 300));
            let (header, message) = decode(version, &bytes);
            assert_eq!((header.version, header.stream), (version, 300), "{name}");
            assert_eq!(
                message,
                RequestMessage { tracing: false, custom_payload: None, request },
                "{name} {version}"
            );
            let again = encoded(&message.request, &RequestHead::new(version, 300));
            assert_eq!(again, bytes, "{name} {version}");
        }
    }
}

#[test]
fn tracing_and_a_custom_payload_stand_before_the_request() {
    let payload: [(&str, Option<&[u8]>); 2] = [("k", Some(b"v")), ("null", None)];
    for version in [Version::V4, Version::V5] {
        for (name, request) in requests(version) {
            let head = RequestHead { version, stream: 1, tracing: true, custom_payload: &payload };
            let bytes = encoded(&request, &head);
            let (_, message) = decode(version, &bytes);
            assert!(message.tracing, "{name}");
            assert!(message.custom_payload.unwrap().iter().eq(payload), "{name}");
            assert_eq!(message.request, request, "{name} {version}");
        }
    }
}

#[test]
fn compressed_requests_come_back_as_they_were_sent() {
    for version in [Version::V3, Version::V4] {
        for compression in [Compression::Lz4, Compression::Snappy] {
            let (mut ours, mut theirs) = (BodyCodec::new(compression), BodyCodec::new(compression));
            for (name, request) in requests(version) {
                let mut bytes = b"before".to_vec();
                request.encode_compressed(&RequestHead::new(version, 1), &mut ours, &mut bytes).unwrap();
                let envelope = reader(version).read(&bytes[6..]).unwrap().unwrap();
                assert_eq!(envelope.header.flags.has(Flags::COMPRESSED), request != Request::Options);
                let body = theirs.decompress(&envelope, 1 << 20).unwrap();
                let header = envelope.header;
                let message = decode_request(version, header.opcode, header.flags, body).unwrap();
                assert_eq!(message.request, request, "{name}");
            }
        }
    }
}

#[test]
fn values_are_picked_by_number() {
    let mut index = ValueIndex::default();
    for version in Version::ALL {
        for (name, request) in requests(version) {
            let bytes = encoded(&request, &RequestHead::new(version, 0));
            let (_, message) = decode(version, &bytes);
            let values = match message.request {
                Request::Query(query) => query.parameters.values,
                Request::Execute(execute) => execute.parameters.values,
                _ => continue,
            };
            index.fill(&values);
            for (number, (_, value)) in values.iter().enumerate() {
                assert_eq!(index.get(&values, number), Some(value), "{name}");
            }
            assert_eq!(index.get(&values, values.len()), None, "{name}");
        }
    }
}

#[test]
fn a_query_of_version_4_is_these_bytes() {
    let parameters = QueryParameters {
        consistency: Consistency::One,
        values: Values::positional(&[Value::Bytes(b"\x07"), Value::Null, Value::Unset]),
        page_size: Some(100),
        ..QueryParameters::default()
    };
    let query = Request::Query(Query { query: "SELECT", parameters });
    let body = b"\x00\x00\x00\x06SELECT\x00\x01\x05\x00\x03\x00\x00\x00\x01\x07\xff\xff\xff\xff\xff\xff\xff\xfe\x00\x00\x00\x64";
    let expected = [b"\x04\x00\x01\x02\x07\x00\x00\x00\x20".as_slice(), body].concat();
    assert_eq!(encoded(&query, &RequestHead::new(Version::V4, 0x102)), expected);
}

#[test]
fn an_execute_of_version_5_is_these_bytes() {
    let parameters =
        QueryParameters { keyspace: Some("k"), now_in_seconds: Some(9), ..QueryParameters::default() };
    let execute = Request::Execute(Execute { id: ID, result_metadata_id: Some(METADATA_ID), parameters });
    let expected = [
        b"\x05\x00\x00\x01\x0a\x00\x00\x00\x31\x00\x10".as_slice(),
        ID,
        b"\x00\x10",
        METADATA_ID,
        b"\x00\x01\x00\x00\x01\x80\x00\x01k\x00\x00\x00\x09",
    ]
    .concat();
    assert_eq!(encoded(&execute, &RequestHead::new(Version::V5, 1)), expected);
}

#[test]
fn startup_is_read_without_regard_to_case() {
    let mut bytes = Vec::new();
    let options = [("cql_version", "3.0.0"), ("Compression", "LZ4"), ("THROW_ON_OVERLOAD", "1")];
    encode_startup(&options, &RequestHead::new(Version::V5, 0), &mut bytes).unwrap();
    let (_, message) = decode(Version::V5, &bytes);
    let Request::Startup(startup) = message.request else { panic!("{message:?}") };
    assert_eq!(startup.check(Version::V5), Ok(Some(Compression::Lz4)));
    assert!(startup.throws_on_overload());
    assert_eq!(startup.option(DRIVER_NAME), None);
    assert_eq!(encoded(&message.request, &RequestHead::new(Version::V5, 0)), bytes);
}

#[test]
fn startup_is_refused_with_cassandras_texts() {
    let check = |options: &[(&str, &str)], version| {
        let mut bytes = Vec::new();
        encode_startup(options, &RequestHead::new(version, 0), &mut bytes).unwrap();
        let (_, message) = decode(version, &bytes);
        let Request::Startup(startup) = message.request else { panic!("{message:?}") };
        startup.check(version).map_err(|error| error.to_string())
    };
    let cql = ("CQL_VERSION", "4.0.0");
    assert_eq!(check(&[cql], Version::V4), Ok(None));
    assert_eq!(check(&[cql, ("COMPRESSION", "snappy")], Version::V4), Ok(Some(Compression::Snappy)));
    let refused = |options: &[(&str, &str)], version, text: &str| {
        assert_eq!(check(options, version), Err(text.to_owned()))
    };
    refused(&[], Version::V4, "Missing value CQL_VERSION in STARTUP message");
    refused(&[cql, ("COMPRESSION", "Foo")], Version::V4, "Unknown compression algorithm: foo");
    let snappy = "Snappy compression is not supported in protocol V5";
    refused(&[cql, ("COMPRESSION", "snappy")], Version::V5, snappy);
    let old = "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)";
    refused(&[("CQL_VERSION", "2.0.0")], Version::V3, old);
}

#[test]
fn negative_lengths_of_values_mean_what_the_version_says() {
    let body =
        |length: i32| [b"\x00\x00\x00\x01q\x00\x01\x01\x00\x01".as_slice(), &length.to_be_bytes()].concat();
    let value_of = |version, length| {
        let body = body(length);
        let message = decode_request(version, Opcode::Query, Flags::default(), &body)?;
        let Request::Query(query) = message.request else { panic!("{message:?}") };
        let value = query.parameters.values.iter().next().unwrap().1;
        Ok(value == Value::Unset)
    };
    assert_eq!(value_of(Version::V3, -1), Ok(false));
    assert_eq!(value_of(Version::V3, -2), Ok(false));
    assert_eq!(value_of(Version::V3, -3), Ok(false));
    assert_eq!(value_of(Version::V4, -1), Ok(false));
    assert_eq!(value_of(Version::V4, -2), Ok(true));
    assert_eq!(value_of(Version::V4, -3), Err(WireError::InvalidValueLength { length: -3 }));
}
