//! The client half against a real server: `cargo test -p helenus-wire -- --ignored` with a Cassandra (or a Helenus) on
//! 127.0.0.1:9042. It creates its own keyspace, `wire_live`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use helenus_model::types::CqlType;
use helenus_wire::native::*;

/// A blocking connection with one request in flight.
struct Client {
    socket: TcpStream,
    version: Version,
    codec: Option<BodyCodec>,
    segments: Option<(SegmentReader, SegmentWriter)>,
    received: Vec<u8>,
}

impl Client {
    fn connect(version: Version, compression: Option<Compression>) -> Client {
        let socket = TcpStream::connect("127.0.0.1:9042").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Client { socket, version, codec: None, segments: None, received: Vec::new() };
        let mut options = vec![("CQL_VERSION", "3.0.0")];
        match compression {
            Some(Compression::Lz4) => options.push(("COMPRESSION", "lz4")),
            Some(Compression::Snappy) => options.push(("COMPRESSION", "snappy")),
            None => {}
        }
        let mut out = Vec::new();
        encode_startup(&options, &RequestHead::new(version, 0), &mut out).unwrap();
        client.socket.write_all(&out).unwrap();
        client.codec = compression.map(BodyCodec::new);
        client.answer(|response| assert_eq!(response, Response::Ready));
        if version >= Version::V5 {
            let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
            let reader = SegmentReader::new(format, Direction::Response, 256 << 20);
            client.segments = Some((reader, SegmentWriter::new(format)));
        }
        client
    }

    fn ask<T>(&mut self, request: &Request<'_>, look: impl FnOnce(Response<'_>) -> T) -> T {
        let head = RequestHead::new(self.version, 1);
        let mut out = Vec::new();
        match (&mut self.segments, &mut self.codec) {
            (Some((_, writer)), _) => {
                let open = writer.open(&mut out);
                request.encode(&head, &mut out).unwrap();
                writer.close(open, &mut out);
            }
            (None, Some(codec)) => request.encode_compressed(&head, codec, &mut out).unwrap(),
            (None, None) => request.encode(&head, &mut out).unwrap(),
        }
        self.socket.write_all(&out).unwrap();
        self.answer(look)
    }

    /// Waits for one response and calls `look` with it.
    fn answer<T>(&mut self, look: impl FnOnce(Response<'_>) -> T) -> T {
        let bare = EnvelopeReader { from: Direction::Response, connection: None, max_frame: u64::MAX };
        loop {
            let (used, envelope) = match &mut self.segments {
                None => match bare.read(&self.received).unwrap() {
                    Some(envelope) => (envelope.size(), Some(envelope)),
                    None => (0, None),
                },
                Some((reader, _)) => {
                    let inner = *reader.envelopes();
                    match reader.read(&self.received).unwrap() {
                        Step::Incomplete => (0, None),
                        Step::Part { used } => (used, None),
                        Step::Envelopes { used, payload, .. } => {
                            (used, Some(inner.read_in_segment(payload).unwrap()))
                        }
                    }
                }
            };
            if let Some(envelope) = envelope {
                let body = match &mut self.codec {
                    Some(codec) => codec.decompress(&envelope, 256 << 20).unwrap(),
                    None => envelope.body,
                };
                let Header { version, opcode, flags, .. } = envelope.header;
                let answer = look(decode_response(version, opcode, flags, body).unwrap().response);
                self.received.drain(..used);
                return answer;
            }
            self.received.drain(..used);
            if used == 0 {
                let mut piece = vec![0; 1 << 16];
                let length = self.socket.read(&mut piece).unwrap();
                assert_ne!(length, 0, "the server closed the connection");
                self.received.extend_from_slice(&piece[..length]);
            }
        }
    }

    fn query(&mut self, query: &str) {
        let request = Request::Query(Query { query, parameters: QueryParameters::default() });
        self.ask(&request, |response| {
            assert!(matches!(response, Response::Result(_)), "{query}: {response:?}")
        });
    }
}

fn through_everything(version: Version, compression: Option<Compression>) {
    let client = &mut Client::connect(version, compression);
    client.ask(&Request::Options, |response| assert!(matches!(response, Response::Supported(_))));
    let events = EventTypes::default().with(EventType::StatusChange);
    client.ask(&Request::Register(events), |response| assert_eq!(response, Response::Ready));
    client.query(
        "CREATE KEYSPACE IF NOT EXISTS wire_live WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    client.query("CREATE TYPE IF NOT EXISTS wire_live.u (a int, b frozen<list<text>>)");
    client.query(
        "CREATE TABLE IF NOT EXISTS wire_live.t (k int, c int, d date, s set<text>, u frozen<u>, v vector<float, 3>, \
         x duration, tu tuple<int, smallint>, b blob, PRIMARY KEY (k, c))",
    );
    let query = "INSERT INTO wire_live.t (k, c, b, v) VALUES (?, ?, ?, ?)";
    let (id, metadata_id) = prepare(client, query, |prepared| {
        if prepared.result_metadata_id.is_some() || prepared.partition_key == [0] {
            assert_eq!(prepared.partition_key, [0]);
        }
        let types: Vec<_> =
            prepared.variables.to_vec().unwrap().into_iter().map(|column| column.ty).collect();
        let vector = CqlType::Vector { element: CqlType::Float.into(), dimension: 3 };
        assert_eq!(types, [CqlType::Int, CqlType::Int, CqlType::Blob, vector]);
    });
    let big: Vec<u8> = (0..1_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for row in 0..3_i32 {
        let number = row.to_be_bytes();
        let values = [
            Value::Bytes(&[0, 0, 0, 1]),
            Value::Bytes(&number),
            Value::Bytes(&big),
            if version >= Version::V4 { Value::Unset } else { Value::Null },
        ];
        let parameters = QueryParameters {
            values: Values::positional(&values),
            timestamp: Some(1),
            ..QueryParameters::default()
        };
        let execute = Execute { id: &id, result_metadata_id: metadata_id.as_deref(), parameters };
        client.ask(&Request::Execute(execute), |response| {
            assert_eq!(response, Response::Result(ResultMessage::Void));
        });
    }
    batch(client, &id);
    read_back(client, &big);
    let nonsense = Request::Query(Query { query: "SELECT nonsense", parameters: QueryParameters::default() });
    client.ask(&nonsense, |response| match response {
        Response::Error(error) => assert_eq!(error.detail.code(), ErrorCode::Syntax),
        other => panic!("{other:?}"),
    });
    let unknown = Execute {
        id: b"0123456789abcdef",
        result_metadata_id: Some(b"0123456789abcdef"),
        parameters: QueryParameters::default(),
    };
    client.ask(&Request::Execute(unknown), |response| match response {
        Response::Error(error) => {
            assert_eq!(error.detail, ErrorDetail::Unprepared { id: b"0123456789abcdef".to_vec() });
        }
        other => panic!("{other:?}"),
    });
}

fn prepare(
    client: &mut Client,
    query: &str,
    look: impl FnOnce(&ReadPrepared<'_>),
) -> (Vec<u8>, Option<Vec<u8>>) {
    client.ask(&Request::Prepare(Prepare { query, keyspace: None }), |response| match response {
        Response::Result(ResultMessage::Prepared(prepared)) => {
            look(&prepared);
            (prepared.id.to_vec(), prepared.result_metadata_id.map(<[u8]>::to_vec))
        }
        other => panic!("{other:?}"),
    })
}

fn batch(client: &mut Client, id: &[u8]) {
    let values = [Value::Bytes(&[0, 0, 0, 2]), Value::Bytes(&[0; 4]), Value::Null, Value::Bytes(&[0; 12])];
    let query = "INSERT INTO wire_live.t (k, c, d, s, u, x, tu) VALUES (2, 1, '2020-02-02', {'a', 'b'}, {a: 1, b: \
                 ['x']}, 1h, (1, 2))";
    let statements = [
        BatchStatement { statement: StatementRef::Prepared(id), values: Values::positional(&values) },
        BatchStatement { statement: StatementRef::Query(query), values: Values::NONE },
    ];
    let batch = Batch {
        kind: BatchKind::Logged,
        statements: Statements::Slice(&statements),
        parameters: QueryParameters {
            serial_consistency: Some(Consistency::LocalSerial),
            ..QueryParameters::default()
        },
    };
    client
        .ask(&Request::Batch(batch), |response| assert_eq!(response, Response::Result(ResultMessage::Void)));
}

/// Reads all rows in pages of two, and the columns of the first page.
fn read_back(client: &mut Client, big: &[u8]) {
    let (mut state, mut rows_read, mut pages) = (None::<Vec<u8>>, 0, 0);
    let version = client.version;
    loop {
        let parameters = QueryParameters {
            page_size: Some(2),
            paging_state: state.as_deref(),
            ..QueryParameters::default()
        };
        let select = Request::Query(Query { query: "SELECT * FROM wire_live.t", parameters });
        state = client.ask(&select, |response| {
            let Response::Result(ResultMessage::Rows(rows)) = response else { panic!("{response:?}") };
            let columns = rows.metadata.columns.to_vec().unwrap();
            let at = |name: &str| columns.iter().position(|column| &*column.name == name).unwrap();
            assert_eq!(columns[at("x")].ty, CqlType::Duration, "{version}");
            assert!(matches!(columns[at("u")].ty, CqlType::Udt(_)));
            for row in rows.iter() {
                let cells: Vec<_> = row.unwrap().cells().collect();
                if cells[at("k")] == Some(&[0, 0, 0, 1]) {
                    assert!(cells[at("b")] == Some(big));
                }
                rows_read += 1;
            }
            rows.metadata.paging_state.map(<[u8]>::to_vec)
        });
        pages += 1;
        if state.is_none() {
            break;
        }
    }
    assert_eq!((rows_read, pages), (5, 3));
}

#[test]
#[ignore = "needs a server on 127.0.0.1:9042"]
fn a_real_server_understands_and_is_understood() {
    for version in Version::ALL {
        through_everything(version, None);
        through_everything(version, Some(Compression::Lz4));
        if version < Version::V5 {
            through_everything(version, Some(Compression::Snappy));
        }
    }
}
