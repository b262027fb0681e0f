//! Messages of every kind, with every field set in some and absent in others.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, LazyLock};

use helenus_model::types::{CqlType, UserType};
use helenus_wire::native::*;

pub const ID: &[u8] = b"0123456789abcdef";
pub const METADATA_ID: &[u8] = b"fedcba9876543210";

const POSITIONAL: &[Value<'static>] =
    &[Value::Bytes(b"\x00\x00\x00\x01"), Value::Null, Value::Bytes(b""), Value::Bytes("zażółć".as_bytes())];
const NAMED: &[(&str, Value<'static>)] = &[("a", Value::Bytes(b"x")), ("Ü", Value::Null)];
const WITH_UNSET: &[Value<'static>] = &[Value::Unset, Value::Bytes(b"y")];

/// All parameters of `version`, set.
pub fn all_parameters(version: Version) -> QueryParameters<'static> {
    let v5 = version >= Version::V5;
    QueryParameters {
        consistency: Consistency::LocalQuorum,
        values: Values::positional(POSITIONAL),
        skip_metadata: true,
        page_size: Some(5000),
        paging_state: Some(b"\x00state"),
        serial_consistency: Some(Consistency::LocalSerial),
        timestamp: Some(-5),
        keyspace: v5.then_some("ks"),
        now_in_seconds: v5.then_some(1_700_000_000),
    }
}

/// The statements of a batch: one set for v3, and one with an unset value for v4 and later.
static STATEMENTS: LazyLock<[[BatchStatement<'static>; 3]; 2]> = LazyLock::new(|| {
    let with_values = |values| {
        [
            BatchStatement { statement: StatementRef::Query("INSERT INTO t (k) VALUES (?)"), values },
            BatchStatement { statement: StatementRef::Prepared(ID), values: Values::positional(POSITIONAL) },
            BatchStatement {
                statement: StatementRef::Query("DELETE FROM t WHERE k = 1"),
                values: Values::NONE,
            },
        ]
    };
    [with_values(Values::positional(&POSITIONAL[..1])), with_values(Values::positional(WITH_UNSET))]
});

/// At least one request of every kind, with a name for test messages.
pub fn requests(version: Version) -> Vec<(&'static str, Request<'static>)> {
    let plain = QueryParameters::default();
    let all = all_parameters(version);
    let v5 = version >= Version::V5;
    let statements: &'static [BatchStatement<'static>] = &STATEMENTS[usize::from(version >= Version::V4)];
    let batch = |kind, statements, parameters| Request::Batch(Batch { kind, statements, parameters });
    let batch_parameters = QueryParameters {
        values: Values::NONE,
        skip_metadata: false,
        page_size: None,
        paging_state: None,
        ..all
    };
    let execute = |parameters| {
        Request::Execute(Execute { id: ID, result_metadata_id: v5.then_some(METADATA_ID), parameters })
    };
    let mut events = EventTypes::default().with(EventType::TopologyChange).with(EventType::StatusChange);
    events = events.with(EventType::SchemaChange);
    let prepare = |keyspace| Request::Prepare(Prepare { query: "SELECT * FROM t", keyspace });
    vec![
        ("options", Request::Options),
        ("query", Request::Query(Query { query: "SELECT * FROM system.local", parameters: plain })),
        ("query with all", Request::Query(Query { query: "SELECT 'ż'", parameters: all })),
        (
            "query with names",
            Request::Query(Query {
                query: "SELECT :a",
                parameters: QueryParameters { values: Values::named(NAMED), ..plain },
            }),
        ),
        ("prepare", prepare(None)),
        ("prepare in a keyspace", prepare(v5.then_some("ks"))),
        ("execute", execute(plain)),
        ("execute with all", execute(all)),
        ("batch", batch(BatchKind::Logged, Statements::Slice(statements), plain)),
        ("batch with all", batch(BatchKind::Counter, Statements::Slice(statements), batch_parameters)),
        ("empty batch", batch(BatchKind::Unlogged, Statements::Slice(&[]), plain)),
        ("register", Request::Register(events)),
        ("auth response", Request::AuthResponse(Some(b"\0user\0password"))),
    ]
}

fn column(name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec { keyspace: "ks".into(), table: "t".into(), name: name.into(), ty }
}

/// A column of every type, as a client of `version` reads it. All are from one table.
pub fn columns() -> Vec<ColumnSpec> {
    let mut columns: Vec<_> = CqlType::SIMPLE.into_iter().map(|ty| column("c", ty)).collect();
    let list = CqlType::List { element: Arc::new(CqlType::Duration), frozen: false };
    let udt = CqlType::Udt(Arc::new(UserType {
        keyspace: "ks".into(),
        name: "address".into(),
        fields: vec![("street".into(), CqlType::Text), ("Zip Code".into(), list.clone())],
        frozen: false,
    }));
    let tuple = CqlType::Tuple([CqlType::Int, udt.clone()].into());
    let set = CqlType::Set { element: Arc::new(tuple), frozen: false };
    let map = CqlType::Map { key: Arc::new(CqlType::TinyInt), value: Arc::new(set), frozen: false };
    columns.push(column("list", list));
    columns.push(column("udt", udt));
    columns.push(column("map", map));
    columns.push(column("v", CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 1536 }));
    columns.push(column("odd", CqlType::Custom("com.example.Odd".into())));
    columns
}

/// Columns of two tables.
pub fn columns_of_two_tables() -> Vec<ColumnSpec> {
    let mut columns = vec![column("a", CqlType::Int), column("b", CqlType::Text)];
    columns[1].table = "other".into();
    columns
}

/// An event of every kind.
pub fn events(version: Version) -> Vec<Event<'static>> {
    let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 9042);
    let v4 = SocketAddr::from(([10, 0, 0, 1], 65535));
    let mut events: Vec<_> =
        TopologyChange::ALL.into_iter().map(|change| Event::Topology(change, v4)).collect();
    events.extend(StatusChange::ALL.into_iter().map(|change| Event::Status(change, v6)));
    events.extend(schema_changes(version).into_iter().map(Event::Schema));
    events
}

/// A schema change of every kind in `version`.
pub fn schema_changes(version: Version) -> Vec<SchemaChange<'static>> {
    let name = || Cow::Borrowed("thing");
    let arguments = || vec![Cow::Borrowed("int"), Cow::Borrowed("list<text>")];
    let mut targets = vec![SchemaTarget::Keyspace, SchemaTarget::Table(name()), SchemaTarget::Type(name())];
    if version >= Version::V4 {
        targets.push(SchemaTarget::Function(name(), arguments()));
        targets.push(SchemaTarget::Aggregate(name(), Vec::new()));
    }
    let change = |verb, target| SchemaChange { verb, keyspace: "ks".into(), target };
    let verbs = SchemaVerb::ALL.into_iter();
    verbs.flat_map(|verb| targets.clone().into_iter().map(move |target| change(verb, target))).collect()
}

/// Every error, as a client of `version` must read it.
pub fn errors(version: Version) -> Vec<ErrorMessage> {
    let progress = Progress { consistency: Consistency::Quorum, received: 1, block_for: 2 };
    let failures = match version {
        Version::V5 => Failures::Replicas(vec![
            (IpAddr::from([127, 0, 0, 1]), FailureReason::Timeout),
            (IpAddr::V6(Ipv6Addr::LOCALHOST), FailureReason::ReadTooManyTombstones),
        ]),
        Version::V3 | Version::V4 => Failures::Count(2),
    };
    let plain = [
        ErrorCode::Server,
        ErrorCode::Protocol,
        ErrorCode::BadCredentials,
        ErrorCode::Overloaded,
        ErrorCode::IsBootstrapping,
        ErrorCode::Truncate,
        ErrorCode::Syntax,
        ErrorCode::Unauthorized,
        ErrorCode::Invalid,
        ErrorCode::Config,
    ];
    let mut details: Vec<_> = plain.into_iter().map(ErrorDetail::Plain).collect();
    details.extend([
        ErrorDetail::Unavailable { consistency: Consistency::All, required: 3, alive: 1 },
        ErrorDetail::ReadTimeout { progress, data_present: true },
        ErrorDetail::AlreadyExists { keyspace: "ks".into(), table: String::new() },
        ErrorDetail::Unprepared { id: ID.to_vec() },
    ]);
    details.extend(WriteType::ALL.iter().map(|write_type| ErrorDetail::WriteTimeout {
        progress,
        write_type: *write_type,
        contentions: (version == Version::V5 && *write_type == WriteType::Cas).then_some(7),
    }));
    if version >= Version::V4 {
        details.extend([
            ErrorDetail::Plain(ErrorCode::CdcWriteFailure),
            ErrorDetail::ReadFailure { progress, failures: failures.clone(), data_present: false },
            ErrorDetail::WriteFailure { progress, failures, write_type: WriteType::BatchLog },
            ErrorDetail::FunctionFailure {
                keyspace: "ks".into(),
                function: "f".into(),
                argument_types: vec!["int".into()],
            },
        ]);
    }
    if version >= Version::V5 {
        details.push(ErrorDetail::CasWriteUnknown { progress });
    }
    details.into_iter().map(|detail| ErrorMessage { message: "what went wrong: ü".into(), detail }).collect()
}

/// Encodes a request's envelope.
pub fn encoded(request: &Request<'_>, head: &RequestHead<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(head, &mut out).unwrap();
    out
}

/// At least one response of every kind, as complete envelopes, with a name.
pub fn responses(version: Version) -> Vec<(&'static str, Vec<u8>)> {
    let head = ResponseHead::new(version, 12);
    let mut all = Vec::new();
    let mut add = |name, outgoing: Outgoing<'_>| {
        let mut out = Vec::new();
        outgoing.encode(&head, None, &mut out).unwrap();
        all.push((name, out));
    };
    errors(version).iter().for_each(|error| add("error", Outgoing::Error(error)));
    events(version).iter().for_each(|event| add("event", Outgoing::Event(event)));
    schema_changes(version).iter().for_each(|change| add("schema change", Outgoing::SchemaChange(change)));
    add("ready", Outgoing::Ready);
    add("authenticate", Outgoing::Authenticate("org.apache.cassandra.auth.PasswordAuthenticator"));
    add("supported", Outgoing::Supported { cql_version: "3.4.7" });
    add("auth challenge", Outgoing::AuthChallenge(Some(b"token")));
    add("auth success", Outgoing::AuthSuccess(None));
    add("void", Outgoing::Void);
    add("set keyspace", Outgoing::SetKeyspace("ks"));
    for (variables, result_columns) in [(columns(), vec![]), (columns_of_two_tables(), columns())] {
        let prepared = Prepared {
            id: ID,
            result_metadata_id: METADATA_ID,
            variables: &variables,
            partition_key: &[2, 0],
            result_columns: &result_columns,
        };
        add("prepared", Outgoing::Prepared(&prepared));
    }
    let mut rows = Vec::new();
    let columns = columns();
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: Some(ID) };
    let mut writer = RowsWriter::begin(&mut rows, &head, &metadata, Some(b"state"));
    for _ in 0..3 {
        columns.iter().for_each(|column| match column.ty {
            CqlType::Int => writer.null(),
            _ => writer.cell(column.name.as_bytes()),
        });
        writer.end_row();
    }
    writer.finish(None).unwrap();
    all.push(("rows", rows));
    all
}
