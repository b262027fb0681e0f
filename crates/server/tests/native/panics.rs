//! A panic in a request of either interface, or in an admin request, fails only that request: its client gets an error,
//! its connection and the admin socket continue, and the table is marked. The disk panics, at random calls on a table's
//! files.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::backend::Backend;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Host;
use helenus_host::sim::{Call, Fault, Machine};
use helenus_rpc::{Node, Rpc};
use helenus_server::admin::*;
use helenus_server::native::{Limits, NativeServer};
use helenus_server::rpc::{RpcLimits, RpcServer};
use helenus_wire::native::*;
use helenus_wire::thrift;
use helenus_wire::thrift::{ConsistencyLevel, Field, Method, args, begin_call, end_message};

use super::client::{Answer, Client};

const ROWS: usize = 50;
const SELECT: &str = "SELECT v FROM k.t WHERE k = 1";

/// A server in which one admin request panics.
struct Failing;

impl ServerControl for Failing {
    fn connections(&self) -> usize {
        0
    }
    fn pools(&self) -> Vec<Pool> {
        Vec::new()
    }
    fn request_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
    fn resident_bytes(&self) -> Option<u64> {
        None
    }
    fn trace_probability(&self) -> f64 {
        0.0
    }
    fn set_trace_probability(&self, _: f64) {}
    fn close(&self) {}
    fn are_open(&self) -> bool {
        true
    }
    fn resume(&self) -> Result<(), String> {
        Ok(())
    }
    fn pause(&self) -> Result<(), String> {
        Ok(())
    }
    fn clients(&self) -> ClientsSeen {
        ClientsSeen::default()
    }
    fn clear_clients(&self) {}
    fn enable_audit(&self, _: &AuditOverrides) -> Result<(), String> {
        Err("there is no audit log".to_owned())
    }
    fn disable_audit(&self) {}
    fn reload_tls(&self) -> Result<(), String> {
        Err("no TLS".to_owned())
    }

    fn audit_change(&self, _: helenus_cql::audit::EventType, _: &str) {}
    fn audit(&self) -> AuditState {
        AuditState::default()
    }
    fn setting(&self, _: &'static str) -> String {
        String::new()
    }
    fn set(&self, key: &'static str, _: Option<&str>) -> Result<(), String> {
        Err(format!("{key} stays as it is"))
    }
    fn reload(&self) -> Result<Reloaded, String> {
        panic!("on purpose, by a test")
    }
}

/// The machine's own threads and clocks, with a disk that panics when told to.
fn machine() -> (Machine, Host) {
    let machine = Machine::new(1);
    let host = Host { disk: machine.host().disk, ..helenus_host::real::host() };
    (machine, host)
}

/// A database without a cache, so that reads go to the files.
fn backend(host: &Host) -> Arc<LocalBackend> {
    let mut options = DatabaseOptions::new("/db");
    options.memory.cache = 0;
    LocalBackend::new(Database::open(host.clone(), options).expect("opened").0, LocalOptions::default())
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn code(answer: &Answer) -> Option<ErrorCode> {
    match answer.message().response {
        Response::Error(error) => Some(error.detail.code()),
        _ => None,
    }
}

fn fill(client: &mut Client) {
    let mut run = |text: &str| assert_eq!(code(&client.query(text)), None, "{text}");
    run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))");
    for row in 0..ROWS {
        run(&format!("INSERT INTO k.t (k, c, v) VALUES (1, {row}, 'a value')"));
    }
}

fn rows(answer: &Answer) -> usize {
    let message = answer.message();
    match message.response {
        Response::Result(ResultMessage::Rows(rows)) => rows.row_count,
        other => panic!("rows were expected, not {other:?}"),
    }
}

#[test]
fn a_panic_costs_one_request_of_the_native_protocol_and_one_admin_verb() {
    let (machine, host) = machine();
    let backend = backend(&host);
    let limits = Limits::for_memory(1 << 30, 2);
    let of_native: Arc<dyn Backend> = backend.clone();
    let native = NativeServer::start(&host, of_native, any_port(), limits).expect("a free port");
    let directory = tempfile::tempdir().expect("a directory");
    let socket = socket_for_data(directory.path());
    let facts = ServerInfo {
        version: "1",
        listening: native.address(),
        rpc: None,
        directory: Some("/db".into()),
        sync: None,
        warnings: Vec::new(),
        control: Arc::new(Failing),
        further: Default::default(),
    };
    let _admin = AdminServer::start(&host, &backend, &socket, facts).expect("a socket");
    let admin = |request: AdminRequest| ask(&socket, &request).expect("an answer");
    let flush = || admin(AdminRequest::Flush { which: TableSelection::keyspace("k") });
    let failures = || {
        let AdminAnswer::Status(status) = admin(AdminRequest::Status) else { panic!("a status") };
        let line = status.tables.into_iter().find(|line| line.keyspace == "k").expect("the table");
        line.failures
    };
    let mut clients = [Version::V4, Version::V5].map(|version| Client::ready(native.address(), version, &[]));
    fill(&mut clients[0]);

    for call in [Call::Create, Call::Write, Call::Sync] {
        machine.fail(Fault::new(call, 1, std::io::ErrorKind::Other).on("/k/t-").lasting().panicking());
        let AdminAnswer::Error(told) = flush() else { panic!("{call:?}: flushed") };
        assert!(told.contains("on purpose, by a test"), "{told}");
        assert!(failures().iter().any(|failure| failure.contains("flush")), "{:?}", failures());
        for client in &mut clients {
            assert_eq!(
                rows(&client.query(SELECT)),
                ROWS,
                "{call:?}: what is not flushed is read from memory"
            );
        }
        machine.clear_faults();
    }
    let AdminAnswer::Error(told) = admin(AdminRequest::ReloadSettings) else { panic!("reloaded") };
    assert!(told.contains("on purpose, by a test"), "{told}");
    assert!(matches!(flush(), AdminAnswer::Flushed(_)), "what failed goes well the next time");
    assert_eq!(failures(), Vec::<String>::new());

    for nth in 1..4 {
        for client in &mut clients {
            machine.fail(
                Fault::new(Call::Read, nth, std::io::ErrorKind::Other).on("/k/t-").lasting().panicking(),
            );
            let query = |text| Request::Query(Query { query: text, parameters: QueryParameters::default() });
            let write = "INSERT INTO k.t (k, c, v) VALUES (1, 0, 'a value')";
            client.send(&[(1, query(write)), (2, query(SELECT)), (3, query(write))]);
            let mut answers: Vec<Answer> = (0..3).map(|_| client.receive().expect("an answer")).collect();
            answers.sort_by_key(|answer| answer.header.stream);
            let codes: Vec<_> = answers.iter().map(code).collect();
            // If fewer reads are needed, nothing panics.
            assert!(
                codes == [None, Some(ErrorCode::Server), None] || nth > 1 && codes == [None; 3],
                "{codes:?}"
            );
            machine.clear_faults();
            assert_eq!(rows(&client.query(SELECT)), ROWS, "and the connection lives");
        }
    }
    assert!(failures().iter().any(|failure| failure.contains("a read of it failed")), "{:?}", failures());
    native.stop();
    backend.database().close().expect("closed");
}

fn call<'a>(method: Method, arguments: &impl Field<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(method, 1, &mut bytes);
    arguments.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

#[test]
fn a_panic_costs_one_call_of_the_old_interface() {
    let (machine, host) = machine();
    let backend = backend(&host);
    let node = Node {
        cluster_name: "tests".into(),
        datacenter: "datacenter1".into(),
        rack: "rack1".into(),
        address: Ipv4Addr::LOCALHOST.into(),
    };
    let long = Duration::from_secs(60);
    let limits = RpcLimits {
        threads: 1,
        messages: thrift::Limits::default(),
        in_flight_bytes_max: (1 << 30, 1 << 30),
        disk_threads_max: 1,
        write_timeout: long,
        handshake_timeout: long,
        budget: helenus_server::connection_budget::ConnectionBudget::unbounded(),
        message_grace: long,
        reader_grace: long,
        keeps_alive: false,
        busy_poll: Duration::ZERO,
        audit: None,
        logins: None,
        tls: None,
    };
    let server = RpcServer::start(&host, Rpc::new(backend.clone(), node), any_port(), limits, None);
    let server = server.expect("a free port");
    let mut client = TcpStream::connect(server.address()).expect("the server listens");
    client.set_read_timeout(Some(long)).expect("a socket option");
    let mut run = |text: &str| {
        let (compression, consistency) = (thrift::Compression::None, ConsistencyLevel::One);
        let asked = args::Cql3Query { query: text.as_bytes(), compression, consistency };
        client.write_all(&call(Method::ExecuteCql3Query, &asked)).expect("sent");
        let mut length = [0; 4];
        client.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        client.read_exact(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    };
    run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))");
    for round in 0..3 {
        // No block of a new SSTable is in the cache, so the next read must read the file.
        run(&format!("INSERT INTO k.t (k, c, v) VALUES (1, {round}, 'a value')"));
        backend.database().flush_all().expect("flushed");
        machine.fail(Fault::new(Call::Read, 1, std::io::ErrorKind::Other).on("/k/t-").lasting().panicking());
        let told = run(SELECT);
        assert!(!told.contains("a value") && told.contains("nternal error"), "{told}");
        machine.clear_faults();
        assert!(run(SELECT).contains("a value"), "and the connection lives");
    }
    server.stop();
    backend.database().close().expect("closed");
}
