//! The native protocol: frames, segments, requests, responses.

use helenus_wire::native::*;

const MAX: u64 = 1 << 20;

fn parameters<'a>(values: &'a [Value<'a>]) -> QueryParameters<'a> {
    QueryParameters {
        values: Values::positional(values),
        page_size: Some(100),
        paging_state: Some(b"state"),
        timestamp: Some(7),
        ..QueryParameters::default()
    }
}

/// Requests of each kind, whole frames of a version.
fn requests(version: Version) -> Vec<Vec<u8>> {
    let values = [Value::Bytes(b"value"), Value::Null, Value::Bytes(&[0; 40])];
    let query = "SELECT * FROM ks.t WHERE k = ?";
    let statements = [
        BatchStatement { statement: StatementRef::Query(query), values: Values::positional(&values) },
        BatchStatement {
            statement: StatementRef::Prepared(&[7; 16]),
            values: Values::positional(&values[..1]),
        },
    ];
    let keyspace = (version >= Version::V5).then_some("ks");
    let all = [
        Request::Query(Query { query, parameters: parameters(&values) }),
        Request::Prepare(Prepare { query, keyspace }),
        Request::Execute(Execute {
            id: &[7; 16],
            result_metadata_id: Some(&[9; 16]),
            parameters: parameters(&values),
        }),
        Request::Batch(Batch {
            kind: BatchKind::Unlogged,
            statements: Statements::Slice(&statements),
            parameters: QueryParameters::default(),
        }),
        Request::Options,
        Request::Register(EventTypes::default().with(EventType::SchemaChange)),
    ];
    let head = RequestHead::new(version, 7);
    let encode = |request: &Request<'_>| {
        let mut out = Vec::new();
        request.encode(&head, &mut out).ok().map(|()| out)
    };
    let mut frames: Vec<_> = all.iter().filter_map(encode).collect();
    let mut startup = Vec::new();
    let options = [("CQL_VERSION", "3.0.0"), ("COMPRESSION", "lz4"), ("THROW_ON_OVERLOAD", "1")];
    if encode_startup(&options, &head, &mut startup).is_ok() {
        frames.push(startup);
    }
    frames
}

/// Requests and responses as frames.
pub(super) fn frames() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = Version::ALL.into_iter().flat_map(requests).collect();
    for compression in [Compression::Lz4, Compression::Snappy] {
        let mut codec = BodyCodec::new(compression);
        let query = "SELECT * FROM ks.ttttttttttttttttttttttttttttttttttttttttttttttttttt";
        let request = Request::Query(Query { query, parameters: QueryParameters::default() });
        let mut out = Vec::new();
        if request.encode_compressed(&RequestHead::new(Version::V4, 1), &mut codec, &mut out).is_ok() {
            corpus.push(out);
        }
    }
    let together = corpus.concat();
    corpus.push(together);
    corpus
}

/// Bodies alone.
pub(super) fn bodies() -> Vec<Vec<u8>> {
    let body = |frame: Vec<u8>| frame.get(HEADER_LENGTH..).unwrap_or_default().to_vec();
    let mut corpus: Vec<_> = Version::ALL.into_iter().flat_map(requests).map(body).collect();
    // A RESULT of rows: kind, flags (global table), two columns, a type in a type, two rows.
    let mut rows = vec![0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, b'k', b's', 0, 1, b't'];
    rows.extend_from_slice(&[0, 1, b'a', 0, 9, 0, 1, b'b', 0, 0x20, 0, 0x0D, 0, 0, 0, 2]);
    for _ in 0..2 {
        rows.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]);
    }
    corpus.push(rows);
    for detail in [ErrorCode::Server, ErrorCode::Overloaded] {
        let mut out = Vec::new();
        let message = ErrorMessage::plain(detail, "text");
        let head = ResponseHead::new(Version::V5, 3);
        if Outgoing::Error(&message).encode(&head, None, &mut out).is_ok() {
            corpus.push(body(out));
        }
    }
    corpus
}

pub(super) fn segments() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for format in [SegmentFormat::Plain, SegmentFormat::Lz4] {
        let mut writer = SegmentWriter::new(format);
        let requests = requests(Version::V5).concat();
        let mut out = Vec::new();
        writer.append(&requests, &mut out);
        corpus.push(out);
    }
    corpus
}

pub(super) fn run_frames(input: &[u8]) {
    let mut codecs = [Compression::Lz4, Compression::Snappy].map(BodyCodec::new);
    for from in [Direction::Request, Direction::Response] {
        for connection in [None, Some(Version::V3), Some(Version::V4)] {
            let reader = EnvelopeReader { from, connection, max_frame: MAX };
            let mut rest = input;
            while let Ok(Some(envelope)) = reader.read(rest) {
                for codec in &mut codecs {
                    if let Ok(body) = codec.decompress(&envelope, MAX) {
                        decode(&envelope.header, body);
                    }
                }
                rest = rest.get(envelope.size()..).unwrap_or_default();
            }
        }
    }
}

pub(super) fn run_segments(input: &[u8]) {
    for format in [SegmentFormat::Plain, SegmentFormat::Lz4] {
        let mut input = input.to_vec();
        mend_checksums(&mut input, format);
        let mut reader = SegmentReader::new(format, Direction::Request, MAX);
        let envelopes = *reader.envelopes();
        let mut rest = input.as_slice();
        loop {
            let used = match reader.read(rest) {
                Ok(Step::Part { used }) => used,
                Ok(Step::Envelopes { used, payload, .. }) => {
                    let mut payload = payload;
                    while let Ok(envelope) = envelopes.read_in_segment(payload) {
                        decode(&envelope.header, envelope.body);
                        payload = payload.get(envelope.size()..).unwrap_or_default();
                    }
                    used
                }
                Ok(Step::Incomplete) | Err(_) => break,
            };
            rest = rest.get(used.max(1)..).unwrap_or_default();
        }
    }
}

fn decode(header: &Header, body: &[u8]) {
    if header.opcode.direction() == Direction::Request {
        look(decode_request(header.version, header.opcode, header.flags, body).ok().as_ref());
    } else {
        read(header.version, header.opcode, header.flags, body);
    }
}

/// Everything of a request that is decoded only when it is asked for.
fn look(message: Option<&RequestMessage<'_>>) {
    let Some(message) = message else { return };
    match &message.request {
        Request::Query(query) => drop(query.parameters.values.iter().count()),
        Request::Execute(execute) => drop(execute.parameters.values.iter().count()),
        Request::Batch(batch) => {
            for statement in batch.statements.iter() {
                std::hint::black_box(statement.values.iter().count());
            }
        }
        _ => {}
    }
}

fn read(version: Version, opcode: Opcode, flags: Flags, body: &[u8]) {
    let Ok(message) = decode_response(version, opcode, flags, body) else { return };
    if let Response::Result(ResultMessage::Rows(rows)) = message.response {
        for row in rows.iter().flatten() {
            row.cells().for_each(drop);
        }
    }
}

pub(super) fn run_requests(input: &[u8]) {
    for version in Version::ALL {
        for opcode in Opcode::ALL {
            for flags in [0, Flags::CUSTOM_PAYLOAD] {
                look(decode_request(version, *opcode, Flags(flags), input).ok().as_ref());
            }
        }
    }
}

pub(super) fn run_responses(input: &[u8]) {
    for version in Version::ALL {
        for opcode in Opcode::ALL {
            for flags in [0, Flags::CUSTOM_PAYLOAD | Flags::WARNING | Flags::TRACING] {
                read(version, *opcode, Flags(flags), input);
            }
        }
    }
}

/// Makes the checksums of the first segment right, so that what is behind them is reached (`net.Crc`).
fn mend_checksums(input: &mut [u8], format: SegmentFormat) {
    let lengths = if format == SegmentFormat::Plain { 3 } else { 5 };
    let Some((head, rest)) = input.split_at_mut_checked(lengths + 3) else { return };
    let length = (u32::from_le_bytes([head[0], head[1], head[2], 0]) & 0x1_FFFF) as usize;
    let crc = head[..lengths].iter().fold(0x87_5060, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc: u32, _| {
            if crc & 0x80_0000 != 0 { crc << 1 ^ 0x197_4F0B } else { crc << 1 }
        })
    });
    head[lengths..].copy_from_slice(&crc.to_le_bytes()[..3]);
    let Some((payload, rest)) = rest.split_at_mut_checked(length) else { return };
    let Some(trailer) = rest.first_chunk_mut::<4>() else { return };
    let seeded = [0xFA, 0x2D, 0x55, 0xCA].into_iter().chain(payload.iter().copied());
    let crc = !seeded.fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    *trailer = crc.to_le_bytes();
}
