//! A gateway in front of a node that answers by a script: answers that nobody takes, requests that find no room, and what is not sent
//! again.
#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

#[path = "../../cluster/tests/nodes/scripted_node.rs"]
mod scripted_node;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cluster::{AnswerRoom, Cluster, ClusterOptions};
use helenus_gateway::{Gateway, GatewayOptions, Newcomer, Place, Roles, RolesOptions};
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, CQL_VERSION, Direction, EnvelopeReader, ErrorCode, ErrorMessage,
    Opcode, Prepare, Query, QueryParameters, Request, RequestHead, Response, StatementRef, Statements, Value,
    Values, Version, decode_response, encode_startup,
};
use scripted_node::{Counts, Then, node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MIB: u64 = 1 << 20;

fn options() -> GatewayOptions {
    GatewayOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        listen_encrypted: None,
        listen_also: None,
        frame_bytes_max: 16 * MIB,
        message_bytes_max: 16 * MIB,
        connections_max: None,
        connections_max_per_address: None,
        admission: None,
        bytes_max: 16 * MIB,
        unread_bytes_max: 16 * MIB,
        statements_bytes_max: 16 * MIB,
        handshake_timeout: Duration::from_secs(60),
        idle_timeout: None,
        frame_grace: Duration::from_secs(60),
        reader_grace: Duration::from_secs(60),
        tls: None,
        shows_nodes: false,
        known_statements: None,
        own_node: None,
    }
}

/// A gateway of a node that does this, with this room for long answers.
async fn gateway(then: Then, room: &Arc<AnswerRoom>, options: GatewayOptions) -> (Gateway, Arc<Counts>) {
    let (address, counts) = node(then).await;
    let cluster = ClusterOptions {
        connections: 1,
        answers: Arc::clone(room),
        timeout: Duration::from_millis(match then {
            Then::ByText => 500,
            _ => 60_000,
        }),
        ..ClusterOptions::new(vec![address])
    };
    let roles = Arc::new(Roles::new(
        Cluster::connect(cluster).await.unwrap(),
        RolesOptions { are_needed: false, allows_default_password: false },
    ));
    (Gateway::start(roles, options).await.unwrap(), counts)
}

/// A client of version 4.
struct Client {
    socket: TcpStream,
    input: Vec<u8>,
}

impl Client {
    async fn of(gateway: &Gateway) -> Client {
        let socket = TcpStream::connect(gateway.address()).await.unwrap();
        let mut client = Client { socket, input: Vec::new() };
        let mut startup = Vec::new();
        encode_startup(&[(CQL_VERSION, "3.0.0")], &RequestHead::new(Version::V4, 0), &mut startup).unwrap();
        client.socket.write_all(&startup).await.unwrap();
        assert_eq!(client.receive().await.0, Opcode::Ready);
        client
    }

    /// The next answer: its opcode, its length, and the error if it is one.
    async fn receive(&mut self) -> (Opcode, usize, Option<ErrorMessage>) {
        let reader = EnvelopeReader { from: Direction::Response, connection: None, max_frame: 64 * MIB };
        loop {
            if let Some(envelope) = reader.read(&self.input).unwrap() {
                let (header, size) = (envelope.header, envelope.size());
                let decoded = decode_response(header.version, header.opcode, header.flags, envelope.body);
                let error = match decoded.unwrap().response {
                    Response::Error(error) => Some(error),
                    _ => None,
                };
                self.input.drain(..size);
                return (header.opcode, size, error);
            }
            assert!(self.socket.read_buf(&mut self.input).await.unwrap() > 0, "the connection was closed");
        }
    }

    async fn ask(&mut self, text: &str) -> (Opcode, Option<ErrorCode>) {
        self.socket.write_all(&query(text, 1, &[])).await.unwrap();
        let (opcode, _, error) = self.receive().await;
        (opcode, error.map(|error| error.detail.code()))
    }
}

fn query(text: &str, stream: i16, values: &[Value<'_>]) -> Vec<u8> {
    let parameters = QueryParameters { values: Values::positional(values), ..QueryParameters::default() };
    let mut bytes = Vec::new();
    let request = Request::Query(Query { query: text, parameters });
    request.encode(&RequestHead::new(Version::V4, stream), &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn answers_that_a_client_does_not_take_have_a_limit_and_the_rest_gets_an_error() {
    const COUNT: usize = 60;
    let room = AnswerRoom::new(24 * MIB);
    let (gateway, counts) = gateway(Then::Together(COUNT), &room, options()).await;
    let mut client = Client::of(&gateway).await;
    let requests: Vec<u8> = (0..COUNT).flat_map(|at| query("SELECT long", at as i16, &[])).collect();
    client.socket.write_all(&requests).await.unwrap();
    let mut other = Client::of(&gateway).await;
    while counts.queries.load(Ordering::SeqCst) < COUNT {
        tokio::task::yield_now().await;
    }
    // It comes behind all of them on the connection to the node.
    assert_eq!(other.ask("SELECT rows").await, (Opcode::Result, None));
    assert!(room.used() > 4 * MIB && room.used() <= 24 * MIB, "{}", room.used());
    let mut taken = 0;
    for _ in 0..COUNT {
        match client.receive().await {
            (Opcode::Result, size, None) => {
                assert!(size > 4 << 20);
                taken += 1;
            }
            (_, _, Some(error)) => {
                // Beyond the client's share, or beyond the room of all.
                let code = error.detail.code();
                assert!(matches!(code, ErrorCode::Overloaded | ErrorCode::Server), "{error:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((1..=8).contains(&taken), "{taken} were kept for it");
    while room.used() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.ask("SELECT rows").await, (Opcode::Result, None));
}

#[tokio::test]
async fn a_select_without_an_answer_in_time_is_asked_once() {
    let (gateway, counts) = gateway(Then::ByText, &AnswerRoom::new(MIB), options()).await;
    let mut client = Client::of(&gateway).await;
    for number in 1..=3 {
        let answer = client.ask("SELECT silence").await;
        assert_eq!(answer, (Opcode::Error, Some(ErrorCode::ReadTimeout)));
        assert_eq!(counts.queries.load(Ordering::SeqCst), number);
    }
}

#[tokio::test]
async fn an_answer_without_room_is_told_as_what_it_means_for_its_statement() {
    let (gateway, _) = gateway(Then::ByText, &AnswerRoom::new(MIB), options()).await;
    let mut client = Client::of(&gateway).await;
    for (text, code) in [
        ("SELECT long", ErrorCode::Server),
        ("INSERT long IF NOT EXISTS", ErrorCode::WriteTimeout),
        ("UPDATE long", ErrorCode::WriteTimeout),
    ] {
        assert_eq!(client.ask(text).await, (Opcode::Error, Some(code)), "{text}");
    }
    assert_eq!(client.ask("SELECT rows").await, (Opcode::Result, None));
}

#[tokio::test]
async fn an_answer_takes_no_more_than_its_share_of_the_room_for_long_ones() {
    // The answer has 4 MiB and some bytes.
    for (room, fits) in [(7 * MIB, false), (8 * MIB, false), (9 * MIB, true)] {
        let room = AnswerRoom::new(room);
        let (gateway, _) = gateway(Then::ByText, &room, options()).await;
        let mut client = Client::of(&gateway).await;
        let answer = client.ask("SELECT long").await;
        assert_eq!(answer.0, if fits { Opcode::Result } else { Opcode::Error }, "{answer:?}");
        let expected = if fits { None } else { Some(ErrorCode::WriteTimeout) };
        assert_eq!(client.ask("UPDATE long").await.1.filter(|_| !fits), expected);
        while room.used() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_request_that_finds_no_room_in_time_is_refused_and_its_connection_goes_on() {
    let options = GatewayOptions { frame_grace: Duration::from_millis(200), ..options() };
    let (gateway, counts) = gateway(Then::Together(1), &AnswerRoom::new(MIB), options).await;
    let (mut first, mut second) = (Client::of(&gateway).await, Client::of(&gateway).await);
    let value = vec![7; 10 << 20];
    let request = query("INSERT", 1, &[Value::Bytes(&value)]);
    let (begin, end) = request.split_at(request.len() / 2);
    first.socket.write_all(begin).await.unwrap();
    // While this one is answered, the gateway has read the beginning.
    assert_eq!(Client::of(&gateway).await.ask("SELECT rows").await, (Opcode::Result, None));
    let refused = async {
        let (mut input, mut output) = second.socket.split();
        let writes = async { output.write_all(&request).await.unwrap() };
        let mut answer = [0; 13];
        let (_, read) = tokio::join!(writes, input.read_exact(&mut answer));
        read.unwrap();
        answer
    };
    let answer = refused.await;
    let code = i32::from_be_bytes([answer[9], answer[10], answer[11], answer[12]]);
    assert_eq!((answer[4], code), (Opcode::Error as u8, ErrorCode::Overloaded.number()));
    assert_eq!(counts.queries.load(Ordering::SeqCst), 1);
    let length = u32::from_be_bytes([answer[5], answer[6], answer[7], answer[8]]) as usize;
    let mut rest = vec![0; length - 4];
    second.socket.read_exact(&mut rest).await.unwrap();
    assert_eq!(second.ask("SELECT rows").await, (Opcode::Result, None));
    first.socket.write_all(end).await.unwrap();
    assert_eq!(first.receive().await.0, Opcode::Result);
}

/// Whether a client that comes now has a place.
async fn is_served(gateway: &Gateway) -> bool {
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    let mut startup = Vec::new();
    encode_startup(&[(CQL_VERSION, "3.0.0")], &RequestHead::new(Version::V4, 0), &mut startup).unwrap();
    socket.write_all(&startup).await.unwrap();
    let mut front = [0; 5];
    socket.read_exact(&mut front).await.unwrap();
    front[4] == Opcode::Ready as u8
}

#[tokio::test]
async fn a_keyspace_that_a_node_fails_to_look_up_is_not_one_that_does_not_exist() {
    let (gateway, _) = gateway(Then::ByText, &AnswerRoom::new(MIB), options()).await;
    let mut client = Client::of(&gateway).await;
    for (name, code) in [
        ("overloaded", ErrorCode::Overloaded),
        ("virtualoverloaded", ErrorCode::Overloaded),
        ("bootstrapping", ErrorCode::IsBootstrapping),
        ("server", ErrorCode::Server),
        ("nothing", ErrorCode::Invalid),
    ] {
        assert_eq!(client.ask(&format!("USE {name}")).await, (Opcode::Error, Some(code)), "{name}");
    }
    assert_eq!(client.ask("USE app").await, (Opcode::Result, None));
    assert_eq!(client.ask("SELECT rows").await, (Opcode::Result, None));
}

fn batch(id: [u8; 16], count: usize, also: [u8; 16]) -> Vec<u8> {
    let statement = |id| BatchStatement { statement: StatementRef::Prepared(id), values: Values::NONE };
    let mut statements: Vec<BatchStatement<'_>> = (0..count).map(|_| statement(&id)).collect();
    statements.push(statement(&also));
    let (kind, parameters) = (BatchKind::Logged, QueryParameters::default());
    let batch = Batch { kind, statements: Statements::Slice(&statements), parameters };
    let mut bytes = Vec::new();
    Request::Batch(batch).encode(&RequestHead::new(Version::V4, 1), &mut bytes).unwrap();
    bytes
}

/// A statement that the server had prepared which the gateway continues, if `text` is a text for its id.
fn continues(text: fn(&[u8; 16]) -> Option<&'static str>) -> GatewayOptions {
    let known: helenus_gateway::KnownStatements = Arc::new(move |id| Some((None, text(id)?.to_owned())));
    GatewayOptions { known_statements: Some(known), ..options() }
}

#[tokio::test]
async fn a_batch_prepares_each_of_its_statements_once_and_none_that_is_prepared() {
    let text = |id: &[u8; 16]| (*id == [1; 16]).then_some("INSERT");
    let (gateway, counts) = gateway(Then::ByText, &AnswerRoom::new(MIB), continues(text)).await;
    let mut client = Client::of(&gateway).await;
    for times in [1, 300, 5_000] {
        client.socket.write_all(&batch([1; 16], times, [2; 16])).await.unwrap();
        let (opcode, _, error) = client.receive().await;
        let code = error.map(|error| error.detail.code());
        assert_eq!((opcode, code), (Opcode::Error, Some(ErrorCode::Unprepared)), "the other is not known");
        assert_eq!(counts.prepared.load(Ordering::SeqCst), 1, "{times}");
    }
}

#[tokio::test]
async fn a_statement_that_many_clients_execute_is_prepared_once() {
    let text = |id: &[u8; 16]| (*id == [1; 16]).then_some("INSERT");
    let (gateway, counts) = gateway(Then::Void, &AnswerRoom::new(MIB), continues(text)).await;
    let mut clients = Vec::new();
    for _ in 0..50 {
        clients.push(Client::of(&gateway).await);
    }
    for client in &mut clients {
        client.socket.write_all(&batch([1; 16], 1, [1; 16])).await.unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.receive().await.0, Opcode::Result);
    }
    assert_eq!(counts.prepared.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn requests_that_wait_count_with_what_they_take_besides_their_bodies() {
    // A node that answers nothing, and room for as many requests as take 4 KiB each.
    let options = GatewayOptions { bytes_max: 64 << 10, ..options() };
    let (gateway, counts) = gateway(Then::Void, &AnswerRoom::new(MIB), options).await;
    let mut client = Client::of(&gateway).await;
    let requests: Vec<u8> = (0..100).flat_map(|at| query("SELECT silence", at, &[])).collect();
    client.socket.write_all(&requests).await.unwrap();
    let mut other = Client::of(&gateway).await;
    assert_eq!(other.ask("INSERT").await, (Opcode::Result, None), "each client has one");
    let sent = counts.queries.load(Ordering::SeqCst);
    assert!((10..=20).contains(&sent), "{sent} requests were sent");
}

#[tokio::test]
async fn statements_are_not_prepared_for_a_client_that_has_gone_or_a_gateway_that_stops() {
    let text = |id: &[u8; 16]| (*id == [1; 16]).then_some("INSERT silence");
    for client_goes in [true, false] {
        let options = GatewayOptions { connections_max: Some(1), ..continues(text) };
        let (gateway, counts) = gateway(Then::Void, &AnswerRoom::new(MIB), options).await;
        let mut client = Client::of(&gateway).await;
        client.socket.write_all(&batch([1; 16], 1, [1; 16])).await.unwrap();
        while counts.prepared.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        if client_goes {
            drop(client);
            // The node answers nothing for a minute.
            let place = async { while !is_served(&gateway).await {} };
            tokio::time::timeout(Duration::from_secs(30), place).await.expect("its place is free again");
            continue;
        }
        gateway.stop();
        let (opcode, _, error) = client.receive().await;
        let code = error.map(|error| error.detail.code());
        assert_eq!((opcode, code), (Opcode::Error, Some(ErrorCode::Unprepared)));
    }
}

#[tokio::test]
async fn who_is_not_admitted_by_the_process_is_told_why() {
    let admission: helenus_gateway::Admission = Arc::new(|_| Err("no more files".to_owned()));
    let options = GatewayOptions { admission: Some(admission), ..options() };
    let (gateway, _) = gateway(Then::Void, &AnswerRoom::new(MIB), options).await;
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    socket.write_all(&[4, 0, 0, 1, 5, 0, 0, 0, 0]).await.unwrap();
    let mut told = Vec::new();
    socket.read_to_end(&mut told).await.unwrap();
    assert!(String::from_utf8_lossy(&told).contains("no more files"));
}

/// A process that has memory for so many bytes of connections.
#[derive(Clone)]
struct Process(Arc<AtomicU64>);

struct Held {
    process: Process,
    bytes: AtomicU64,
}

impl Place for Held {
    fn take_memory(&self, bytes: u64) -> bool {
        let before = self.bytes.load(Ordering::SeqCst);
        let left = |free: u64| (free + before).checked_sub(bytes);
        let is_taken = self.process.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok();
        if is_taken {
            self.bytes.store(bytes, Ordering::SeqCst);
        }
        is_taken
    }

    fn show_newcomer(&self, _newcomer: Weak<dyn Newcomer>) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        self.take_memory(0);
    }
}

#[tokio::test]
async fn clients_that_have_not_begun_make_room_for_others_and_those_that_have_stay() {
    const CONNECTIONS: u64 = 16;
    const NEWCOMER_BYTES: u64 = 20 << 10;
    // For those that may not have begun, one that comes, and those that have.
    const BYTES: u64 = (CONNECTIONS + 1) * NEWCOMER_BYTES + 8 * (4 << 10);
    let process = Process(Arc::new(AtomicU64::new(BYTES)));
    let place = |process: &Process| Held { process: process.clone(), bytes: AtomicU64::new(0) };
    let admitting = process.clone();
    let admission: helenus_gateway::Admission = Arc::new(move |_| Ok(Box::new(place(&admitting))));
    let bytes_max = 2 * CONNECTIONS * NEWCOMER_BYTES;
    let options = GatewayOptions { admission: Some(admission), bytes_max, ..options() };
    let (gateway, _) = gateway(Then::Void, &AnswerRoom::new(MIB), options).await;
    let mut begun = vec![Client::of(&gateway).await];
    let mut silent = Vec::new();
    for number in 0..10 * CONNECTIONS {
        silent.push(TcpStream::connect(gateway.address()).await.unwrap());
        if number % 20 == 0 && begun.len() < 8 {
            begun.push(Client::of(&gateway).await);
        }
    }
    // The oldest of those that say nothing are closed.
    assert_eq!(silent[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    for client in &mut begun {
        let mut options = Vec::new();
        Request::Options.encode(&RequestHead::new(Version::V4, 1), &mut options).unwrap();
        client.socket.write_all(&options).await.unwrap();
        assert_eq!(client.receive().await.0, Opcode::Supported, "who has begun is served on");
    }
    drop((begun, silent));
    gateway.drain(Duration::from_secs(60)).await;
    assert_eq!(process.0.load(Ordering::SeqCst), BYTES, "all memory came back");
}

#[tokio::test]
async fn while_a_login_waits_little_more_of_its_client_is_read() {
    let (address, _) = node(Then::Void).await;
    let cluster = ClusterOptions { connections: 1, ..ClusterOptions::new(vec![address]) };
    let roles = RolesOptions { are_needed: true, allows_default_password: false };
    let roles = Arc::new(Roles::new(Cluster::connect(cluster).await.unwrap(), roles));
    let gateway = Gateway::start(Arc::clone(&roles), options()).await.unwrap();
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(roles.place("app", [127, 0, 0, 1].into()).await.expect("as many are checked at a time"));
    }
    let socket = TcpStream::connect(gateway.address()).await.unwrap();
    let mut client = Client { socket, input: Vec::new() };
    let mut startup = Vec::new();
    encode_startup(&[(CQL_VERSION, "3.0.0")], &RequestHead::new(Version::V4, 0), &mut startup).unwrap();
    client.socket.write_all(&startup).await.unwrap();
    assert_eq!(client.receive().await.0, Opcode::Authenticate);
    // The login, and more than a client may send before it is done.
    let mut bytes = Vec::new();
    let login = Request::AuthResponse(Some(b"\0app\0wrong"));
    login.encode(&RequestHead::new(Version::V4, 1), &mut bytes).unwrap();
    bytes.resize(bytes.len() + (300 << 10), 0);
    let (mut input, mut output) = client.socket.into_split();
    let sends = tokio::spawn(async move {
        // The connection ends before all is taken.
        let _ = output.write_all(&bytes).await;
        output
    });
    for _ in 0..200 {
        let mut other = TcpStream::connect(gateway.address()).await.unwrap();
        other.write_all(&[4, 0, 0, 1, 5, 0, 0, 0, 0]).await.unwrap();
        other.read_exact(&mut [0; 9]).await.unwrap();
    }
    drop(places);
    let mut head = [0; 13];
    input.read_exact(&mut head).await.unwrap();
    let code = i32::from_be_bytes([head[9], head[10], head[11], head[12]]);
    // The node lets everybody in, so the gateway cannot check a login; it is no refusal of what came behind it.
    assert_eq!((head[4], code), (Opcode::Error as u8, ErrorCode::Server.number()));
    drop(input);
    drop(sends.await);
}

/// The few columns of a text may have types of thousands of fields, each with a name.
#[tokio::test]
async fn a_statement_that_needs_more_memory_than_statements_may_have_is_refused_in_words() {
    let options = GatewayOptions { statements_bytes_max: 4 * MIB, ..options() };
    let (gateway, counts) = gateway(Then::Void, &AnswerRoom::new(64 * MIB), options).await;
    let mut client = Client::of(&gateway).await;
    let mut prepare = async |text: &str| {
        let mut bytes = Vec::new();
        let request = Request::Prepare(Prepare { query: text, keyspace: None });
        request.encode(&RequestHead::new(Version::V4, 1), &mut bytes).unwrap();
        client.socket.write_all(&bytes).await.unwrap();
        let (opcode, _, error) = client.receive().await;
        (opcode, error.map(|error| (error.detail.code(), error.message)))
    };
    let (opcode, error) = prepare("INSERT wide").await;
    let (code, message) = error.expect("its types need more");
    assert_eq!((opcode, code), (Opcode::Error, ErrorCode::Invalid), "{message}");
    assert!(message.contains("prepared_statements_cache_size"), "{message}");
    assert_eq!(prepare("INSERT short").await, (Opcode::Result, None));
    let before = counts.prepared.load(Ordering::SeqCst);
    assert_eq!(prepare("INSERT short").await, (Opcode::Result, None));
    assert_eq!(counts.prepared.load(Ordering::SeqCst), before, "it is kept");
    // Its text counts twice: a little less than half of all.
    let long = format!("INSERT {}", "x".repeat(900_000));
    assert_eq!(prepare(&long).await, (Opcode::Result, None));
    let before = counts.prepared.load(Ordering::SeqCst);
    assert_eq!(prepare(&long).await, (Opcode::Result, None));
    assert_eq!(counts.prepared.load(Ordering::SeqCst), before, "every statement is kept that is not refused");
}
