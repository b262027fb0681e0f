//! What requests are answered with.

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

#[test]
fn every_error_has_its_code_and_fields() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let mut error = |name: &str| client.query(&format!("error {name}")).error();
        for (name, code, text) in [
            ("invalid", ErrorCode::Invalid, "i"),
            ("config", ErrorCode::Config, "c"),
            ("unauthorized", ErrorCode::Unauthorized, "u"),
            ("overloaded", ErrorCode::Overloaded, "o"),
            ("server", ErrorCode::Server, "s"),
        ] {
            assert_eq!(error(name), ErrorMessage::plain(code, text));
        }
        let exists = ErrorDetail::AlreadyExists { keyspace: "ks".into(), table: "t".into() };
        assert_eq!(error("exists"), ErrorMessage { message: "m".into(), detail: exists });
        assert_eq!(error("unprepared").detail, ErrorDetail::Unprepared { id: vec![3; 16] });
        let progress = |consistency| Progress { consistency, received: 0, block_for: 1 };
        let late = ErrorDetail::ReadTimeout { progress: progress(Consistency::One), data_present: false };
        assert_eq!(error("read").detail, late);
        let write_type = WriteType::Simple;
        let progress = progress(Consistency::LocalQuorum);
        let late = ErrorDetail::WriteTimeout { progress, write_type, contentions: None };
        assert_eq!(error("write").detail, late);
    }
}

#[test]
fn use_changes_the_keyspace_of_later_requests_and_a_request_may_name_its_own() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    assert_eq!(client.query("keyspace").error().message, "none");
    let answer = client.query("use k1");
    assert_eq!(answer.message().response, Response::Result(ResultMessage::SetKeyspace("k1")));
    assert_eq!(client.query("keyspace").error().message, "k1");
    let parameters = QueryParameters { keyspace: Some("k2"), ..QueryParameters::default() };
    let answer = client.ask(Request::Query(Query { query: "keyspace", parameters }));
    assert_eq!(answer.error().message, "k2");
}

#[test]
fn warnings_stand_before_the_rows_from_v4_on() {
    let server = Server::start();
    for version in Version::ALL {
        for options in [&[][..], &[("COMPRESSION", "lz4")]] {
            let mut client = Client::ready(server.address(), version, options);
            let answer = client.query("warn");
            let message = answer.message();
            let warnings: Vec<_> = message.warnings.iter().collect();
            let expected: &[&str] = if version >= Version::V4 { &["careful", "slow"] } else { &[] };
            assert_eq!(warnings, expected);
            assert!(
                matches!(message.response, Response::Result(ResultMessage::Rows(rows)) if rows.row_count == 1)
            );
        }
    }
}

#[test]
fn a_traced_request_is_answered_with_a_session_id_and_its_warnings() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let mut envelope = Vec::new();
        let parameters = QueryParameters::default();
        let head = RequestHead { tracing: true, ..RequestHead::new(version, 4) };
        for query in ["warn", "error invalid", "write"] {
            Request::Query(Query { query, parameters }).encode(&head, &mut envelope).unwrap();
        }
        let bytes = client.wrap(&envelope);
        client.raw(&bytes);
        let ids: Vec<_> = (0..3)
            .map(|_| {
                let answer = client.receive().unwrap();
                answer.message().tracing_id.expect("a session id")
            })
            .collect();
        assert!(ids[0] != ids[1] && ids[0].get_version_num() == 1, "a time UUID each");
    }
}

#[test]
fn columns_are_left_out_on_request_and_pages_carry_a_state() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        for skip_metadata in [false, true] {
            for page_size in [None, Some(2), Some(-1)] {
                let parameters = QueryParameters { skip_metadata, page_size, ..QueryParameters::default() };
                let answer = client.ask(Request::Query(Query { query: "rows 2 5", parameters }));
                let message = answer.message();
                let Response::Result(ResultMessage::Rows(rows)) = message.response else { panic!("rows") };
                assert_eq!(rows.metadata.columns.is_empty(), skip_metadata);
                assert_eq!(rows.metadata.column_count, 1);
                let state = (page_size == Some(2)).then_some([0, 0, 0, 2].as_slice());
                assert_eq!(rows.metadata.paging_state, state);
                assert_eq!(rows.iter().filter(|row| row.is_ok()).count(), 2);
            }
        }
        let parameters = QueryParameters { page_size: Some(0), ..QueryParameters::default() };
        let error = client.ask(Request::Query(Query { query: "rows 2 5", parameters })).error();
        assert_eq!(error, ErrorMessage::plain(ErrorCode::Protocol, "The page size cannot be 0"));
    }
}

#[test]
fn schema_changes_are_results_and_events_for_who_registered() {
    let server = Server::start();
    for version in Version::ALL {
        let mut hears = Client::ready(server.address(), version, &[]);
        let mut deaf = Client::ready(server.address(), version, &[]);
        let events = EventTypes::default()
            .with(EventType::StatusChange)
            .with(EventType::TopologyChange)
            .with(EventType::SchemaChange);
        assert!(hears.ask(Request::Register(events)).is_ready());
        let created = deaf.query("create");
        let Response::Result(ResultMessage::SchemaChange(change)) = created.message().response else {
            panic!("a schema change")
        };
        let event = hears.receive().unwrap();
        assert_eq!(event.header.stream, EVENT_STREAM);
        assert_eq!(event.message().response, Response::Event(Event::Schema(change)));
        assert!(matches!(deaf.query("write").message().response, Response::Result(ResultMessage::Void)));
    }
}

#[test]
fn each_statement_of_a_batch_keeps_its_values() {
    let server = Server::start();
    let texts: Vec<String> = (0..200).map(|i| format!("statement {i}")).collect();
    let values: Vec<[Value<'_>; 1]> = texts.iter().map(|text| [Value::Bytes(text.as_bytes())]).collect();
    let statements: Vec<_> = texts
        .iter()
        .zip(&values)
        .map(|(text, values)| BatchStatement {
            statement: StatementRef::Query(text),
            values: Values::positional(values),
        })
        .collect();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let parameters = QueryParameters::default();
        let statements = Statements::Slice(&statements);
        let answer = client.ask(Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters }));
        assert_eq!(answer.message().response, Response::Result(ResultMessage::Void));
    }
}

#[test]
fn an_unknown_statement_is_unprepared_with_its_id() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    for id in [&[9; 16][..], b"short", b""] {
        let parameters = QueryParameters::default();
        let answer = client.ask(Request::Execute(Execute { id, result_metadata_id: Some(&[]), parameters }));
        assert_eq!(answer.error().detail, ErrorDetail::Unprepared { id: id.to_vec() });
    }
}

#[test]
fn a_custom_payload_is_taken_and_not_echoed() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    let custom_payload = [("key", Some(b"value".as_slice())), ("empty", None)];
    let head = RequestHead { custom_payload: &custom_payload, ..RequestHead::new(Version::V4, 1) };
    let mut bytes = Vec::new();
    let parameters = QueryParameters::default();
    Request::Query(Query { query: "write", parameters }).encode(&head, &mut bytes).unwrap();
    client.raw(&bytes);
    let answer = client.receive().unwrap();
    assert!(answer.message().custom_payload.is_none());
    assert_eq!(answer.message().response, Response::Result(ResultMessage::Void));
}
