//! The answers to requests.

use std::sync::atomic::Ordering;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::Client;

/// Every code of the protocol, when Cassandra 5.0.9 sends it, and how it is produced here: the canned error that makes
/// the server send it, or why it is never sent.
const CODES: &[(ErrorCode, &str, Result<&str, &str>)] = &[
    (ErrorCode::Server, "whatever is no other: bugs, a failed schema change", Ok("error server")),
    (ErrorCode::Protocol, "frames, options and paging states it cannot read", Ok("error protocol")),
    (ErrorCode::BadCredentials, "a login that fails", Err("tests/tests/logins.rs asks for it")),
    (
        ErrorCode::Unavailable,
        "too few replicas are alive",
        Err("one node holds every replica, and it answers"),
    ),
    (ErrorCode::Overloaded, "bytes in flight, for clients that asked for it; hints", Ok("error overloaded")),
    (
        ErrorCode::IsBootstrapping,
        "reads of a node that is joining",
        Err("nothing joins; the port opens when all is read"),
    ),
    (ErrorCode::Truncate, "a TRUNCATE that a node did not finish", Ok("error truncate")),
    (ErrorCode::WriteTimeout, "replicas did not acknowledge in time", Ok("error write")),
    (ErrorCode::ReadTimeout, "replicas did not answer in time", Ok("error read")),
    (ErrorCode::ReadFailure, "a replica failed: damaged files, too many tombstones", Ok("error readfailure")),
    (ErrorCode::FunctionFailure, "a user's function threw", Err("user functions are not built yet")),
    (ErrorCode::WriteFailure, "a replica failed: its log, its disk", Ok("error writefailure")),
    (
        ErrorCode::CdcWriteFailure,
        "the folder of captured changes is full",
        Err("change capture is not built yet"),
    ),
    (
        ErrorCode::CasWriteUnknown,
        "a conditional write of unknown outcome",
        Err("conditional writes are not built yet"),
    ),
    (ErrorCode::Syntax, "text that is not CQL", Ok("error syntax")),
    (ErrorCode::Unauthorized, "no permission; changes of system keyspaces", Ok("error unauthorized")),
    (ErrorCode::Invalid, "a statement that is wrong under the schema", Ok("error invalid")),
    (ErrorCode::Config, "options of keyspaces and tables", Ok("error config")),
    (ErrorCode::AlreadyExists, "CREATE of what is there", Ok("error exists")),
    (ErrorCode::Unprepared, "an id that is not known", Ok("error unprepared")),
];

#[test]
fn every_code_of_the_protocol_is_sent_or_has_a_reason_not_to_be() {
    assert_eq!(CODES.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), ErrorCode::ALL);
    let server = Server::start();
    for version in [Version::V4, Version::V5] {
        let mut client = Client::ready(server.address(), version, &[]);
        for (code, when, by) in CODES {
            if let Ok(query) = by {
                assert_eq!(client.query(query).error().detail.code(), *code, "{when}");
            }
        }
    }
    let mut old = Client::ready(server.address(), Version::V3, &[]);
    assert_eq!(
        old.query("error readfailure").error().detail.code(),
        ErrorCode::ReadTimeout,
        "v3 knows no failures"
    );
    assert_eq!(old.query("error writefailure").error().detail.code(), ErrorCode::WriteTimeout);
}

#[test]
fn errors_carry_the_fields_of_their_codes() {
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
            ("protocol", ErrorCode::Protocol, "p"),
            ("truncate", ErrorCode::Truncate, "Error during truncate: t"),
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
        let late = ErrorDetail::WriteTimeout {
            progress: progress(Consistency::LocalQuorum),
            write_type,
            contentions: None,
        };
        assert_eq!(error("write").detail, late);
        if version >= Version::V4 {
            let failed = error("readfailure");
            assert_eq!(failed.message, "Operation failed - received 0 responses and 1 failures: f");
            let ErrorDetail::ReadFailure { progress: found, .. } = failed.detail else {
                panic!("a read failure")
            };
            assert_eq!(found, progress(Consistency::One));
        }
    }
}

#[test]
fn a_write_that_waits_for_the_log_too_long_times_out() {
    let server = Server::with(|limits| limits.write_timeout = std::time::Duration::ZERO);
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let parameters = QueryParameters { consistency: Consistency::Two, ..QueryParameters::default() };
        let error = client.ask(Request::Query(Query { query: "wait", parameters })).error();
        assert_eq!(error.message, "Operation timed out - received only 0 responses.");
        let ErrorDetail::WriteTimeout { progress, .. } = error.detail else { panic!("a write timeout") };
        assert_eq!(progress, Progress { consistency: Consistency::Two, received: 0, block_for: 1 });
    }
}

#[test]
fn writes_and_schema_changes_carry_warnings_too() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[("COMPRESSION", "lz4")]);
        server.canned.gate.store(false, Ordering::Release);
        for query in ["write warn careful", "wait warn careful", "create warn careful"] {
            client.send(&[(7, Request::Query(Query { query, parameters: QueryParameters::default() }))]);
            if query.starts_with("wait") {
                server.canned.open_gate();
            }
            let answer = client.receive().unwrap();
            let warnings: Vec<_> = answer.message().warnings.iter().collect();
            assert_eq!(warnings, if version >= Version::V4 { &["careful"][..] } else { &[] }, "{query}");
            assert!(matches!(answer.message().response, Response::Result(_)));
        }
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
