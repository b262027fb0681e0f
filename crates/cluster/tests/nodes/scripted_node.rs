//! A node of version 4 that answers by a script, for the tests of the client and of the gateway.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helenus_model::types::{CqlType, UserType};
use helenus_wire::native::{
    ColumnSource, ColumnSpec, Direction, EnvelopeReader, ErrorCode, ErrorDetail, ErrorMessage, Outgoing,
    Prepared, Put, Request, ResponseHead, RowsMetadata, RowsWriter, SchemaChange, SchemaTarget, SchemaVerb,
    Version, decode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Markers whose types have many fields.
fn wide() -> Vec<ColumnSpec> {
    let field = |number: usize| (format!("field_{number}").into(), CqlType::Text);
    let fields = (0..500).map(field).collect();
    let udt = UserType { keyspace: "app".into(), name: "wide".into(), fields, frozen: true };
    let ty = CqlType::Udt(udt.into());
    let marker =
        || ColumnSpec { keyspace: "app".into(), table: "t".into(), name: "v".into(), ty: ty.clone() };
    std::iter::repeat_with(marker).take(100).collect()
}

/// What a node of several answers to a question for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Value(&'static str),
    /// It has no such setting.
    Nothing,
    Error(ErrorCode),
    /// It is not there.
    Down,
}

/// One node of several.
#[derive(Clone, Copy)]
pub struct Member {
    number: u8,
    count: u8,
    says: Says,
}

/// What the node does with a QUERY or an EXECUTE of the application.
#[derive(Clone, Copy)]
pub enum Then {
    Void,
    Close,
    Silence,
    /// An answer by the words of the text, whatever was asked for.
    ByText,
    /// UNPREPARED, the first time.
    UnpreparedOnce,
    /// Pages of as many rows as an EXECUTE asks for, each of 64 KiB.
    Pages,
    /// A node of several.
    Member(Member),
    /// As by text; answers that are long once this many have been asked for on a connection.
    Together(usize),
}

/// What a node has seen.
#[derive(Default)]
pub struct Counts {
    /// Statements that it was asked to prepare.
    pub prepared: AtomicUsize,
    /// Statements that it was asked to run, but of system tables.
    pub queries: AtomicUsize,
    /// Connections that were begun, and those that are open.
    pub connections: AtomicUsize,
    pub open: AtomicUsize,
}

/// An open connection, until it is dropped.
struct Open(Arc<Counts>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A node of version 4, and what it has seen.
pub async fn node(then: Then) -> (String, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, listen(listener, then))
}

fn listen(listener: TcpListener, then: Then) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let seen = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            seen.open.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(socket, then, Open(Arc::clone(&seen))));
        }
    });
    counts
}

/// The nodes of a cluster, at 127.0.0.1 and the addresses behind it; the address of the first, which is up.
pub async fn nodes(says: &[Says]) -> String {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let mut listeners = vec![first];
        for number in 1..says.len() as u8 {
            // Another test may have the port there.
            listeners
                .extend(TcpListener::bind(SocketAddr::from(([127, 0, 0, number + 1], address.port()))).await);
        }
        if listeners.len() < says.len() {
            continue;
        }
        let count = says.len() as u8;
        for ((number, listener), says) in (0..).zip(listeners).zip(says) {
            if *says != Says::Down {
                listen(listener, Then::Member(Member { number, count, says: *says }));
            }
        }
        return address.to_string();
    }
}

async fn serve(mut socket: TcpStream, then: Then, open: Open) {
    let counts = &open.0;
    let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame: 64 << 20 };
    let mut input = Vec::new();
    let mut together = Vec::new();
    loop {
        let mut output = Vec::new();
        while let Some(envelope) = reader.read(&input).unwrap() {
            let (header, size) = (envelope.header, envelope.size());
            let head = ResponseHead::new(Version::V4, header.stream);
            let request = decode_request(header.version, header.opcode, header.flags, envelope.body).unwrap();
            let mut say = |message: Outgoing<'_>| message.encode(&head, None, &mut output).unwrap();
            match request.request {
                Request::Startup(_) if header.version > Version::V4 => {
                    let text = "Invalid or unsupported protocol version (5)";
                    say(Outgoing::Error(&ErrorMessage::plain(ErrorCode::Protocol, text)));
                }
                Request::Startup(_) => {
                    counts.connections.fetch_add(1, Ordering::SeqCst);
                    say(Outgoing::Ready);
                }
                Request::Register(_) => say(Outgoing::Ready),
                Request::Options => say(Outgoing::Supported { cql_version: "3.4.4" }),
                Request::Prepare(prepare) if prepare.query.contains("silence") => {
                    counts.prepared.fetch_add(1, Ordering::SeqCst);
                }
                Request::Prepare(prepare) => {
                    let number = counts.prepared.fetch_add(1, Ordering::SeqCst);
                    let variables = if prepare.query.contains("wide") { wide() } else { Vec::new() };
                    say(Outgoing::Prepared(&Prepared {
                        id: &[number as u8; 16],
                        result_metadata_id: &[],
                        variables: &variables,
                        partition_key: &[],
                        result_columns: &[],
                    }));
                }
                Request::Query(query) if query.query.contains("WHERE keyspace_name") => {
                    let name = query.parameters.values.iter().next().and_then(|(_, name)| name.bytes());
                    keyspace(name.unwrap_or_default(), query.query, (&head, &mut output));
                }
                Request::Query(query) if query.query.contains("system_views.settings") => {
                    setting(then, &head, &mut output);
                }
                Request::Query(query) if query.query.contains("system") => {
                    table(query.query, then, (&head, &mut output));
                }
                // It has the keyspace, and loses the connection.
                Request::Query(query) if query.query.contains("USE \"broken") => return,
                Request::Query(query) if query.query.starts_with("USE") => say(Outgoing::SetKeyspace("app")),
                Request::Execute(execute)
                    if matches!(then, Then::UnpreparedOnce) && execute.id == [0; 16] =>
                {
                    let detail = ErrorDetail::Unprepared { id: execute.id.to_vec() };
                    say(Outgoing::Error(&ErrorMessage { message: "not prepared".to_owned(), detail }));
                }
                Request::Execute(execute) if matches!(then, Then::Pages) => {
                    let count = execute.parameters.page_size.unwrap_or_default();
                    blobs(&head, (count, 64 << 10), &mut output);
                }
                Request::Query(query) if matches!(then, Then::ByText | Then::Together(_)) => {
                    counts.queries.fetch_add(1, Ordering::SeqCst);
                    match query.query {
                        text if text.contains("keyspace") => say(Outgoing::SetKeyspace("evil")),
                        text if text.contains("schema") => {
                            let target = SchemaTarget::Keyspace;
                            let change =
                                SchemaChange { verb: SchemaVerb::Created, target, keyspace: "k".into() };
                            say(Outgoing::SchemaChange(&change));
                        }
                        text if text.contains("rows") => table("peers", then, (&head, &mut output)),
                        text if text.contains("ready") => say(Outgoing::Ready),
                        text if text.contains("long") => {
                            together.push(head);
                            let least = if let Then::Together(count) = then { count } else { 1 };
                            if together.len() >= least {
                                together.drain(..).for_each(|head| blobs(&head, (1, 4 << 20), &mut output));
                            }
                        }
                        text if text.contains("silence") => {}
                        _ => say(Outgoing::Void),
                    }
                }
                Request::Query(query) if query.query.contains("silence") => {
                    counts.queries.fetch_add(1, Ordering::SeqCst);
                }
                _ => match then {
                    Then::ByText | Then::Together(_) | Then::Pages => {}
                    Then::Void | Then::UnpreparedOnce | Then::Member(_) => say(Outgoing::Void),
                    Then::Close => return,
                    Then::Silence => {}
                },
            }
            input.drain(..size);
        }
        if socket.write_all(&output).await.is_err() || socket.read_buf(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// So many rows, each of so many bytes and a number.
fn blobs(head: &ResponseHead<'_>, (count, bytes): (i32, usize), out: &mut Vec<u8>) {
    let column = |name: &str, ty: CqlType| ColumnSpec {
        keyspace: "k".into(),
        table: "t".into(),
        name: name.into(),
        ty,
    };
    let columns = [column("v", CqlType::Blob), column("n", CqlType::BigInt)];
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let mut writer = RowsWriter::begin(out, head, &metadata, None);
    for _ in 0..count {
        writer.cell(&vec![7; bytes]);
        writer.cell(&1_i64.to_be_bytes());
        writer.end_row();
    }
    writer.finish(None).unwrap();
}

/// The error by which a node fails to read the row of a keyspace of this name.
fn failure(name: &[u8]) -> Option<ErrorCode> {
    let failures = [
        (b"overloaded".as_slice(), ErrorCode::Overloaded),
        (b"bootstrapping", ErrorCode::IsBootstrapping),
        (b"server", ErrorCode::Server),
        (b"unauthorized", ErrorCode::Unauthorized),
    ];
    failures.into_iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, code)| code)
}

/// A row with a setting.
fn setting(then: Then, head: &ResponseHead<'_>, out: &mut Vec<u8>) {
    let says = if let Then::Member(member) = then { member.says } else { Says::Nothing };
    let value = match says {
        Says::Value(value) => Some(value),
        Says::Nothing | Says::Down => None,
        Says::Error(code) => {
            return Outgoing::Error(&ErrorMessage::plain(code, "no")).encode(head, None, out).unwrap();
        }
    };
    let columns = [ColumnSpec {
        keyspace: "system_views".into(),
        table: "settings".into(),
        name: "value".into(),
        ty: CqlType::Text,
    }];
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let mut writer = RowsWriter::begin(out, head, &metadata, None);
    if let Some(value) = value {
        writer.cell(value.as_bytes());
        writer.end_row();
    }
    writer.finish(None).unwrap();
}

/// The row of a keyspace, if the node has it: those are called `app..` and `broken..`. Others are named after a failure, with `virtual` in
/// front if that is of the other table.
fn keyspace(name: &[u8], text: &str, (head, out): (&ResponseHead<'_>, &mut Vec<u8>)) {
    let is_there = name.starts_with(b"app") || name.starts_with(b"broken");
    let columns = [ColumnSpec {
        keyspace: "system_schema".into(),
        table: "keyspaces".into(),
        name: "keyspace_name".into(),
        ty: CqlType::Text,
    }];
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let of_table = match text.contains("virtual") {
        true => name.strip_prefix(b"virtual").unwrap_or_default(),
        false => name,
    };
    if let Some(code) = failure(of_table) {
        return Outgoing::Error(&ErrorMessage::plain(code, "no")).encode(head, None, out).unwrap();
    }
    if text.contains("virtual") {
        let error = ErrorMessage::plain(ErrorCode::Invalid, "keyspace system_virtual_schema does not exist");
        return Outgoing::Error(&error).encode(head, None, out).unwrap();
    }
    let mut writer = RowsWriter::begin(out, head, &metadata, None);
    if is_there {
        writer.cell(name);
        writer.end_row();
    }
    writer.finish(None).unwrap();
}

/// The system tables of a node, as Cassandra 3.11 has them.
fn table(text: &str, then: Then, (head, out): (&ResponseHead<'_>, &mut Vec<u8>)) {
    if text.contains("peers_v2") {
        let error = ErrorMessage::plain(ErrorCode::Invalid, "unconfigured table peers_v2");
        return Outgoing::Error(&error).encode(head, None, out).unwrap();
    }
    let (number, count) = if let Then::Member(of) = then { (of.number, of.count) } else { (0, 1) };
    let mut tokens = Vec::new();
    tokens.put_int(1);
    tokens.put_bytes(b"42");
    let rows: Vec<u8> = match text {
        text if text.contains("system.local") => vec![number],
        text if text.contains("system.peers") => (0..count).filter(|other| *other != number).collect(),
        _ => Vec::new(),
    };
    let cells = |number: u8| {
        let (host, inet) = (vec![7 + number; 16], vec![127, 0, 0, number + 1]);
        vec![
            ("host_id", CqlType::Uuid, host.clone()),
            ("schema_version", CqlType::Uuid, vec![7; 16]),
            ("rpc_address", CqlType::Inet, inet),
            ("data_center", CqlType::Text, b"east".to_vec()),
            ("release_version", CqlType::Text, b"3.11.19".to_vec()),
            ("partitioner", CqlType::Text, b"org.apache.cassandra.dht.Murmur3Partitioner".to_vec()),
            ("tokens", CqlType::Set { element: Arc::new(CqlType::Text), frozen: false }, tokens.clone()),
        ]
    };
    let spec = |name: &str, ty: &CqlType| ColumnSpec {
        keyspace: "system".into(),
        table: "local".into(),
        name: name.into(),
        ty: ty.clone(),
    };
    let columns: Vec<ColumnSpec> = match rows.first() {
        Some(number) => cells(*number).iter().map(|(name, ty, _)| spec(name, ty)).collect(),
        None => Vec::new(),
    };
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let mut writer = RowsWriter::begin(out, head, &metadata, None);
    for number in rows {
        cells(number).iter().for_each(|(_, _, cell)| writer.cell(cell));
        writer.end_row();
    }
    writer.finish(None).unwrap();
}
