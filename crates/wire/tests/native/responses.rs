//! A client decodes the responses that the server encodes.

use helenus_model::cell::{ColumnId, Span};
use helenus_model::row_batch::{BatchColumn, BatchValue, RowBatch};
use helenus_model::types::CqlType;
use helenus_wire::native::*;
use uuid::Uuid;

use crate::samples::{ID, METADATA_ID, columns, columns_of_two_tables, errors, events, schema_changes};

fn read(bytes: &[u8]) -> (Header, ResponseMessage<'_>) {
    let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: u64::MAX };
    let envelope = reader.read(bytes).unwrap().unwrap();
    assert_eq!(envelope.size(), bytes.len());
    let header = envelope.header;
    (header, decode_response(header.version, header.opcode, header.flags, envelope.body).unwrap())
}

fn encoded(outgoing: Outgoing<'_>, head: &ResponseHead<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    outgoing.encode(head, None, &mut out).unwrap();
    out
}

fn response(bytes: &[u8]) -> Response<'_> {
    read(bytes).1.response
}

#[test]
fn every_error_comes_back_as_it_was_sent() {
    for version in Version::ALL {
        for error in errors(version) {
            let bytes = encoded(Outgoing::Error(&error), &ResponseHead::new(version, -7));
            assert_eq!(read(&bytes).0.stream, -7);
            assert_eq!(response(&bytes), Response::Error(error), "{version}");
        }
    }
}

#[test]
fn old_versions_get_the_errors_they_know() {
    let progress = Progress { consistency: Consistency::Quorum, received: 1, block_for: 2 };
    let sent = |version, detail: ErrorDetail| {
        let error = ErrorMessage { message: "text".into(), detail };
        let bytes = encoded(Outgoing::Error(&error), &ResponseHead::new(version, 0));
        match response(&bytes) {
            Response::Error(error) => error,
            other => panic!("{other:?}"),
        }
    };
    let timed_out = "Operation timed out - received only 1 responses.";
    let failures = Failures::Replicas(Vec::new());
    let read = sent(
        Version::V3,
        ErrorDetail::ReadFailure { progress, failures: failures.clone(), data_present: true },
    );
    assert_eq!(read.detail, ErrorDetail::ReadTimeout { progress, data_present: true });
    assert_eq!(read.message, timed_out);
    let write_type = WriteType::Batch;
    let write = sent(Version::V3, ErrorDetail::WriteFailure { progress, failures, write_type });
    assert_eq!(write.detail, ErrorDetail::WriteTimeout { progress, write_type, contentions: None });
    for version in [Version::V3, Version::V4] {
        let cas = ErrorDetail::WriteTimeout { progress, write_type: WriteType::Cas, contentions: None };
        let unknown = sent(version, ErrorDetail::CasWriteUnknown { progress });
        assert_eq!((unknown.detail, unknown.message.as_str()), (cas.clone(), timed_out));
        let contended =
            ErrorDetail::WriteTimeout { progress, write_type: WriteType::Cas, contentions: Some(3) };
        assert_eq!(sent(version, contended).detail, cas);
    }
    let cdc = sent(Version::V3, ErrorDetail::Plain(ErrorCode::CdcWriteFailure));
    assert_eq!(cdc, ErrorMessage::plain(ErrorCode::Invalid, "ERROR CDC_WRITE_FAILURE: text"));
}

#[test]
fn every_event_comes_back_as_it_was_sent() {
    for version in Version::ALL {
        for event in events(version) {
            let bytes = encoded(Outgoing::Event(&event), &ResponseHead::new(version, EVENT_STREAM));
            let (header, message) = read(&bytes);
            assert_eq!((header.stream, header.opcode), (-1, Opcode::Event));
            assert_eq!(message.response, Response::Event(event), "{version}");
        }
    }
}

#[test]
fn version_3_hears_of_functions_as_an_updated_keyspace() {
    let target = SchemaTarget::Function("f".into(), vec!["int".into()]);
    let change = SchemaChange { verb: SchemaVerb::Created, keyspace: "ks".into(), target };
    let bytes = encoded(Outgoing::SchemaChange(&change), &ResponseHead::new(Version::V3, 0));
    let read =
        SchemaChange { verb: SchemaVerb::Updated, keyspace: "ks".into(), target: SchemaTarget::Keyspace };
    assert_eq!(response(&bytes), Response::Result(ResultMessage::SchemaChange(read)));
}

#[test]
fn small_responses_come_back_as_they_were_sent() {
    for version in Version::ALL {
        let head = ResponseHead::new(version, 3);
        let check = |outgoing: Outgoing<'_>, expected: Response<'_>| {
            assert_eq!(response(&encoded(outgoing, &head)), expected);
        };
        check(Outgoing::Ready, Response::Ready);
        check(Outgoing::Authenticate("a.B"), Response::Authenticate("a.B"));
        check(Outgoing::AuthChallenge(Some(b"x")), Response::AuthChallenge(Some(b"x")));
        check(Outgoing::AuthSuccess(None), Response::AuthSuccess(None));
        check(Outgoing::Void, Response::Result(ResultMessage::Void));
        check(Outgoing::SetKeyspace("k"), Response::Result(ResultMessage::SetKeyspace("k")));
        for change in schema_changes(version) {
            let expected = Response::Result(ResultMessage::SchemaChange(change.clone()));
            check(Outgoing::SchemaChange(&change), expected);
        }
    }
}

/// The bytes that a 5.0.6 node sent on 21 Nov 2026.
#[test]
fn supported_is_cassandras() {
    let sent = b"\x84\x00\x00\x09\x06\x00\x00\x00\x66\x00\x03\x00\x11PROTOCOL_VERSIONS\x00\x04\x00\x043/v3\x00\x04\
        4/v4\x00\x045/v5\x00\x096/v6-beta\x00\x0bCOMPRESSION\x00\x02\x00\x06snappy\x00\x03lz4\x00\x0bCQL_VERSION\
        \x00\x01\x00\x053.4.7";
    let bytes = encoded(Outgoing::Supported { cql_version: "3.4.7" }, &ResponseHead::new(Version::V4, 9));
    assert_eq!(bytes, sent);
    let Response::Supported(options) = response(&bytes) else { panic!() };
    let read: Vec<_> = options.iter().map(|(name, values)| (name, values.len())).collect();
    assert_eq!(read, [("PROTOCOL_VERSIONS", 4), ("COMPRESSION", 2), ("CQL_VERSION", 1)]);
}

/// The bytes that a 5.0.6 node sent for `SELECT key FROM system.local`.
#[test]
fn rows_are_cassandras() {
    let sent =
        b"\x85\x00\x00\x05\x08\x00\x00\x00/\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x06system\
        \x00\x05local\x00\x03key\x00\x0d\x00\x00\x00\x01\x00\x00\x00\x05local";
    let column = ColumnSpec {
        keyspace: "system".into(),
        table: "local".into(),
        name: "key".into(),
        ty: CqlType::Text,
    };
    let columns = [column];
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let mut out = Vec::new();
    let mut rows = RowsWriter::begin(&mut out, &ResponseHead::new(Version::V5, 5), &metadata, None);
    rows.cell(b"local");
    rows.end_row();
    rows.finish(None).unwrap();
    assert_eq!(out, sent);
}

#[test]
fn rows_of_a_run_are_written_as_their_cells_one_by_one() {
    let columns = columns();
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let head = ResponseHead::new(Version::V5, 1);
    // Values with lengths around the limit up to which a fixed number of bytes is copied. The last value ends with the
    // data.
    let lengths = [0_u32, 1, 4, 31, 32, 33, 100, 32, 31, 0, 2, 1];
    let mut start = 0;
    let value = |len: &u32| {
        let value = Span { start, len: *len };
        start += len;
        BatchValue { value, timestamp_us: 1 }
    };
    let values: Vec<BatchValue> = lengths.iter().map(value).collect();
    let data: Vec<u8> = (0..start).map(|byte| byte as u8).collect();
    let ids = [ColumnId(3), ColumnId(7)];
    let run = RowBatch { values: &values, data: &data, clustering: 1, columns: &ids };
    let pick = [
        BatchColumn::Value(2),
        BatchColumn::Fixed(Some(b"key")),
        BatchColumn::Fixed(None),
        BatchColumn::Value(0),
    ];
    let picked: Vec<BatchColumn<'_>> = (0..columns.len()).map(|column| pick[column % pick.len()]).collect();

    let mut in_runs = vec![9];
    let mut writer = RowsWriter::begin(&mut in_runs, &head, &metadata, None);
    writer.row_batch(&run, &picked);
    writer.row_batch(&RowBatch { values: &[], ..run }, &picked);
    writer.row_batch(&run, &picked);
    assert_eq!(writer.rows(), 8);
    writer.finish(None).unwrap();

    let mut by_cells = vec![9];
    let mut writer = RowsWriter::begin(&mut by_cells, &head, &metadata, None);
    for row in run.rows().chain(run.rows()) {
        for column in &picked {
            match *column {
                BatchColumn::Value(place) => writer.cell(run.bytes(&row[place])),
                BatchColumn::Fixed(Some(value)) => writer.cell(value),
                BatchColumn::Fixed(None) => writer.null(),
            }
        }
        writer.end_row();
    }
    writer.finish(None).unwrap();
    assert_eq!(in_runs, by_cells);
}

#[test]
fn warnings_and_a_tracing_id_stand_before_the_response() {
    let warnings = ["first".to_owned(), "drugie ż".to_owned()];
    let tracing_id = Some(Uuid::from_u128(0x1234));
    for version in Version::ALL {
        let head = ResponseHead { version, stream: 1, tracing_id, warnings: &warnings };
        let bytes = encoded(Outgoing::Void, &head);
        let (_, message) = read(&bytes);
        assert_eq!(message.tracing_id, tracing_id);
        assert_eq!(message.response, Response::Result(ResultMessage::Void));
        let expected = if version == Version::V3 { &[] } else { warnings.as_slice() };
        assert!(message.warnings.iter().eq(expected), "{version}");
    }
}

#[test]
fn prepared_statements_come_back_as_they_were_sent() {
    for version in Version::ALL {
        for (variables, result_columns) in
            [(columns(), columns_of_two_tables()), (columns_of_two_tables(), vec![])]
        {
            let prepared = Prepared {
                id: ID,
                result_metadata_id: METADATA_ID,
                variables: &variables,
                partition_key: &[1, 0],
                result_columns: &result_columns,
            };
            let bytes = encoded(Outgoing::Prepared(&prepared), &ResponseHead::new(version, 0));
            let Response::Result(ResultMessage::Prepared(read)) = response(&bytes) else { panic!() };
            assert_eq!(read.id, ID);
            assert_eq!(read.result_metadata_id, (version == Version::V5).then_some(METADATA_ID));
            assert_eq!(read.variables.to_vec().unwrap(), variables, "{version}");
            assert_eq!(read.result.columns.to_vec().unwrap(), result_columns, "{version}");
            assert_eq!(read.result.column_count, result_columns.len());
            let has_key = version >= Version::V4 && variables.len() > 2;
            assert_eq!(read.partition_key, if has_key { vec![1, 0] } else { vec![] });
        }
    }
}

/// The paging state given at the beginning of the rows, and the one given at their end.
type States<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Writes two rows and returns the message, decompressed by the client's codec.
fn write_rows(
    head: &ResponseHead<'_>,
    metadata: &RowsMetadata<'_>,
    width: usize,
    state: States<'_>,
    codec: Option<&mut BodyCodec>,
) -> Vec<u8> {
    let mut out = b"others".to_vec();
    let mut rows = RowsWriter::begin(&mut out, head, metadata, state.0);
    for row in 0..2_u8 {
        rows.cell(b"to be taken back");
        rows.abort_row();
        for cell in 0..width {
            match (usize::from(row) + cell) % 3 {
                0 => rows.null(),
                1 => rows.cell(&[row; 40]),
                _ => rows.cell_with(|out| out.extend_from_slice(b"in place")),
            }
        }
        rows.end_row();
    }
    assert_eq!(rows.rows(), 2);
    rows.cell(b"of a row that never ends");
    match state.1 {
        Some(late) => rows.finish_with_more(late, codec).unwrap(),
        None => rows.finish(codec).unwrap(),
    }
    assert_eq!(&out[..6], b"others");
    out.split_off(6)
}

fn check_rows(rows: &Rows<'_>, width: usize) {
    assert_eq!((rows.row_count, rows.metadata.column_count), (2, width));
    for (number, row) in rows.iter().enumerate() {
        let row = row.unwrap();
        assert_eq!(row.cells().count(), width);
        for (at, cell) in row.cells().enumerate() {
            let filled = [number as u8; 40];
            let expected: Option<&[u8]> = match (number + at) % 3 {
                0 => None,
                1 => Some(&filled),
                _ => Some(b"in place"),
            };
            assert_eq!(cell, expected);
        }
    }
}

#[test]
fn rows_come_back_as_they_were_written() {
    let states: [States<'_>; 3] = [(None, None), (Some(b"more"), None), (None, Some(b"more"))];
    for version in Version::ALL {
        for specs in [columns(), columns_of_two_tables()] {
            let encoded = EncodedColumns::new(&specs, version);
            let head = ResponseHead::new(version, 4);
            for source in [ColumnSource::Specs(&specs), ColumnSource::Encoded(&encoded)] {
                for (skip, changed_id) in
                    [(false, None), (true, None), (false, Some(METADATA_ID)), (true, Some(ID))]
                {
                    let metadata = RowsMetadata { columns: source, skip, changed_id };
                    let count = specs.len();
                    let are_of_one_table = specs.iter().all(|column| column.table == specs[0].table);
                    let known = ColumnSource::Known { count, are_of_one_table };
                    for state in states {
                        let bytes = write_rows(&head, &metadata, specs.len(), state, None);
                        if skip && changed_id.is_none() {
                            let metadata = RowsMetadata { columns: known, skip, changed_id };
                            let of_known = write_rows(&head, &metadata, count, state, None);
                            assert_eq!(of_known, bytes, "as those that are left out");
                        }
                        let Response::Result(ResultMessage::Rows(rows)) = response(&bytes) else { panic!() };
                        check_rows(&rows, specs.len());
                        let v5 = version == Version::V5;
                        assert_eq!(rows.metadata.changed_id, changed_id.filter(|_| v5));
                        assert_eq!(rows.metadata.paging_state, state.0.or(state.1));
                        let skipped = skip && rows.metadata.changed_id.is_none();
                        let expected = if skipped { &[] } else { specs.as_slice() };
                        assert_eq!(rows.metadata.columns.to_vec().unwrap(), expected);
                    }
                }
            }
        }
    }
}

#[test]
fn compressed_rows_come_back_as_they_were_written() {
    let specs = columns();
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&specs), skip: false, changed_id: None };
    let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: u64::MAX };
    for version in [Version::V3, Version::V4] {
        for compression in [Compression::Lz4, Compression::Snappy] {
            let mut codec = BodyCodec::new(compression);
            let head = ResponseHead::new(version, 4);
            let bytes = write_rows(&head, &metadata, specs.len(), (None, Some(b"state")), Some(&mut codec));
            let envelope = reader.read(&bytes).unwrap().unwrap();
            assert!(envelope.header.flags.has(Flags::COMPRESSED));
            let mut client = BodyCodec::new(compression);
            let body = client.decompress(&envelope, 1 << 20).unwrap();
            let message =
                decode_response(version, envelope.header.opcode, envelope.header.flags, body).unwrap();
            let Response::Result(ResultMessage::Rows(rows)) = message.response else { panic!() };
            check_rows(&rows, specs.len());
        }
    }
}

/// READY to a STARTUP that asked for compression, as sent by a 5.0.6 node.
#[test]
fn an_empty_body_is_compressed_as_cassandra_does() {
    for (compression, version, sent) in [
        (
            Compression::Lz4,
            Version::V4,
            b"\x84\x01\x00\x07\x02\x00\x00\x00\x05\x00\x00\x00\x00\x00".as_slice(),
        ),
        (Compression::Snappy, Version::V3, b"\x83\x01\x00\x07\x02\x00\x00\x00\x01\x00".as_slice()),
    ] {
        let mut out = Vec::new();
        let head = ResponseHead::new(version, 7);
        Outgoing::Ready.encode(&head, Some(&mut BodyCodec::new(compression)), &mut out).unwrap();
        assert_eq!(out, sent);
        let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: u64::MAX };
        let envelope = reader.read(&out).unwrap().unwrap();
        assert_eq!(BodyCodec::new(compression).decompress(&envelope, 100), Ok([].as_slice()));
    }
}

#[test]
fn rows_that_are_aborted_or_dropped_leave_nothing() {
    let specs = columns_of_two_tables();
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&specs), skip: false, changed_id: None };
    let mut out = b"others".to_vec();
    let mut rows = RowsWriter::begin(&mut out, &ResponseHead::new(Version::V4, 0), &metadata, None);
    rows.cell(b"x");
    rows.abort();
    assert_eq!(out, b"others");
    let mut rows = RowsWriter::begin(&mut out, &ResponseHead::new(Version::V4, 0), &metadata, None);
    rows.null();
    drop(rows);
    assert_eq!(out, b"others");
}

#[test]
fn a_text_that_is_too_long_keeps_its_begin_and_its_end() {
    let error = ErrorMessage::plain(ErrorCode::Invalid, "ż".repeat(40_000));
    let bytes = encoded(Outgoing::Error(&error), &ResponseHead::new(Version::V4, 0));
    let Response::Error(read) = response(&bytes) else { panic!() };
    let (begin, rest) = read.message.split_once(" ... (").expect("a text with a gap");
    let (bytes, end) = rest.split_once(" bytes) ... ").expect("the length of the gap");
    assert!([begin, end].iter().all(|part| part.len() >= 1000 && part.chars().all(|c| c == 'ż')));
    assert_eq!(bytes.parse(), Ok(80_000 - begin.len() - end.len()));
}

#[test]
fn types_a_version_does_not_know_travel_as_class_names() {
    let bytes_of = |ty: &CqlType, version| {
        let mut out = Vec::new();
        put_type(&mut out, ty, version);
        out
    };
    let custom = |class: &str| {
        let name = format!("org.apache.cassandra.db.marshal.{class}");
        [b"\x00\x00".as_slice(), &(name.len() as u16).to_be_bytes(), name.as_bytes()].concat()
    };
    assert_eq!(bytes_of(&CqlType::Date, Version::V3), custom("SimpleDateType"));
    assert_eq!(bytes_of(&CqlType::Date, Version::V4), b"\x00\x11");
    assert_eq!(bytes_of(&CqlType::Duration, Version::V4), custom("DurationType"));
    assert_eq!(bytes_of(&CqlType::Duration, Version::V5), b"\x00\x15");
    let list = CqlType::List { element: std::sync::Arc::new(CqlType::TinyInt), frozen: true };
    assert_eq!(bytes_of(&list, Version::V3), [b"\x00\x20".as_slice(), &custom("ByteType")].concat());
}
