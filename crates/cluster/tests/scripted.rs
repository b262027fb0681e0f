//! The client against a node that answers by a script: versions, ids of prepared statements, and what was sent when a connection
//! ends.
#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helenus_cluster::{CallError, Cluster, ClusterError, ClusterOptions};
use helenus_model::types::CqlType;
use helenus_wire::native::{
    ColumnSource, ColumnSpec, Consistency, Direction, EnvelopeReader, ErrorCode, ErrorDetail, ErrorMessage,
    Outgoing, Prepared, Put, QueryParameters, Request, ResponseHead, RowsMetadata, RowsWriter, Version,
    decode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const HOST: [u8; 16] = [7; 16];

/// What the node does with a QUERY or an EXECUTE of the application.
#[derive(Clone, Copy)]
enum Then {
    Void,
    Close,
    Silence,
    /// UNPREPARED, the first time.
    UnpreparedOnce,
}

/// A node of version 4. Returns its address and the number of statements that it was asked to prepare.
async fn node(then: Then) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let prepared = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&prepared);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, then, Arc::clone(&count)));
        }
    });
    (address, prepared)
}

async fn serve(mut socket: TcpStream, then: Then, prepared: Arc<AtomicUsize>) {
    let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame: 1 << 20 };
    let mut input = Vec::new();
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
                Request::Startup(_) | Request::Register(_) => say(Outgoing::Ready),
                Request::Options => say(Outgoing::Supported { cql_version: "3.4.4" }),
                Request::Prepare(_) => {
                    let number = prepared.fetch_add(1, Ordering::SeqCst);
                    say(Outgoing::Prepared(&Prepared {
                        id: &[number as u8; 16],
                        result_metadata_id: &[],
                        variables: &[],
                        partition_key: &[],
                        result_columns: &[],
                    }));
                }
                Request::Query(query) if query.query.contains("system") => {
                    table(query.query, &head, &mut output)
                }
                Request::Execute(execute)
                    if matches!(then, Then::UnpreparedOnce) && execute.id == [0; 16] =>
                {
                    let detail = ErrorDetail::Unprepared { id: execute.id.to_vec() };
                    say(Outgoing::Error(&ErrorMessage { message: "not prepared".to_owned(), detail }));
                }
                _ => match then {
                    Then::Void | Then::UnpreparedOnce => say(Outgoing::Void),
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

/// The system tables of a node that is alone, as Cassandra 3.11 has them.
fn table(text: &str, head: &ResponseHead<'_>, out: &mut Vec<u8>) {
    if text.contains("peers_v2") {
        let error = ErrorMessage::plain(ErrorCode::Invalid, "unconfigured table peers_v2");
        return Outgoing::Error(&error).encode(head, None, out).unwrap();
    }
    let mut tokens = Vec::new();
    tokens.put_int(1);
    tokens.put_bytes(b"42");
    let row: Vec<(&str, CqlType, Vec<u8>)> = if text.contains("system.local") {
        vec![
            ("host_id", CqlType::Uuid, HOST.to_vec()),
            ("schema_version", CqlType::Uuid, HOST.to_vec()),
            ("data_center", CqlType::Text, b"east".to_vec()),
            ("release_version", CqlType::Text, b"3.11.19".to_vec()),
            ("partitioner", CqlType::Text, b"org.apache.cassandra.dht.Murmur3Partitioner".to_vec()),
            ("tokens", CqlType::Set { element: Arc::new(CqlType::Text), frozen: false }, tokens),
        ]
    } else {
        Vec::new()
    };
    let spec = |name: &str, ty: &CqlType| ColumnSpec {
        keyspace: "system".into(),
        table: "local".into(),
        name: name.into(),
        ty: ty.clone(),
    };
    let columns: Vec<ColumnSpec> = row.iter().map(|(name, ty, _)| spec(name, ty)).collect();
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
    let mut writer = RowsWriter::begin(out, head, &metadata, None);
    if !row.is_empty() {
        row.iter().for_each(|(_, _, cell)| writer.cell(cell));
        writer.end_row();
    }
    writer.finish(None).unwrap();
}

fn options(address: String) -> ClusterOptions {
    ClusterOptions {
        timeout: Duration::from_millis(300),
        connections: 1,
        ..ClusterOptions::new(vec![address])
    }
}

#[tokio::test]
async fn an_older_node_is_asked_in_its_version() {
    let (address, _) = node(Then::Void).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let topology = cluster.topology();
    assert_eq!((topology.local_dc.as_str(), topology.tokens()), ("east", [42].as_slice()));
    assert_eq!(topology.oldest_release(), "3.11.19");
    let node = cluster.pick(None).unwrap();
    assert_eq!(node.connection().unwrap().version(), Version::V4);
    cluster.query("INSERT", &[], Consistency::One).await.unwrap();
    cluster.wait_for_agreement(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn a_data_center_that_is_not_there_is_named_with_those_that_are() {
    let (address, _) = node(Then::Void).await;
    let error = Cluster::connect(ClusterOptions { local_dc: Some("west".to_owned()), ..options(address) })
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the cluster has no data center 'west'; it has east");
}

#[tokio::test]
async fn a_statement_that_a_node_has_forgotten_is_prepared_again() {
    let (address, prepared) = node(Then::UnpreparedOnce).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let statement = cluster.prepare("INSERT", None).await.unwrap();
    cluster.execute(&statement, &QueryParameters::default()).await.unwrap();
    cluster.execute(&statement, &QueryParameters::default()).await.unwrap();
    assert_eq!(prepared.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_that_is_lost_says_that_the_request_was_sent() {
    let (address, _) = node(Then::Close).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let error = cluster.query("INSERT", &[], Consistency::One).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Call(CallError::Lost { .. })), "{error}");
    assert!(!error.may_repeat(false) && error.may_repeat(true));
}

#[tokio::test]
async fn a_request_without_an_answer_times_out_and_the_connection_goes_on() {
    let (address, _) = node(Then::Silence).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let error = cluster.query("INSERT", &[], Consistency::One).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Call(CallError::Timeout { .. })), "{error}");
    assert!(!error.may_repeat(false));
    cluster.wait_for_agreement(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_said_for_each_contact_point() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let error = Cluster::connect(options(free.clone())).await.unwrap_err();
    assert!(error.to_string().contains(&free), "{error}");
}
