//! A server with one event loop, and its clients.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Host;
use helenus_rpc::{Node, Rpc};
use helenus_server::audit::{Audit, AuditLogger, AuditNode, AuditOptions, FileParameters};
use helenus_server::log::{Format, Log};
use helenus_server::rpc::{RpcLimits, RpcServer};
use helenus_wire::thrift::{
    AuthenticationRequest, Compression, ConsistencyLevel, Field, Limits, Map, Method, args, begin_call,
    end_message,
};

/// Longer than any step of these tests.
pub const LONG: Duration = Duration::from_secs(60);

pub fn server(directory: &Path, reader_grace: Duration, answer_bytes_max: usize) -> RpcServer {
    server_with(directory, answer_bytes_max, |limits| limits.reader_grace = reader_grace)
}

pub fn server_with(
    directory: &Path,
    answer_bytes_max: usize,
    change: impl FnOnce(&mut RpcLimits),
) -> RpcServer {
    let options = LocalOptions { answer_bytes_max, ..LocalOptions::default() };
    start(&helenus_host::real::host(), directory, options, change).0
}

/// A server on a host whose database is on the real one.
pub fn start(
    host: &Host,
    directory: &Path,
    options: LocalOptions,
    change: impl FnOnce(&mut RpcLimits),
) -> (RpcServer, Arc<LocalBackend>) {
    let (rpc, limits, backend) = parts(directory, options, change);
    let server = RpcServer::start(host, rpc, "127.0.0.1:0".parse().unwrap(), limits, None).unwrap();
    (server, backend)
}

/// What a server is made of.
pub fn parts(
    directory: &Path,
    options: LocalOptions,
    change: impl FnOnce(&mut RpcLimits),
) -> (Rpc, RpcLimits, Arc<LocalBackend>) {
    let database = Database::open(helenus_host::real::host(), DatabaseOptions::new(directory)).unwrap().0;
    let node = Node {
        cluster_name: "tests".into(),
        datacenter: "datacenter1".into(),
        rack: "rack1".into(),
        address: Ipv4Addr::LOCALHOST.into(),
    };
    let backend = LocalBackend::new(database, options);
    backend.begin_logins(None).unwrap();
    let rpc = Rpc::new(backend.clone(), node);
    let mut limits = RpcLimits {
        threads: 1,
        messages: Limits::default(),
        in_flight_bytes_max: (1 << 30, 1 << 30),
        disk_threads_max: 1,
        write_timeout: LONG,
        handshake_timeout: LONG,
        budget: helenus_server::connection_budget::ConnectionBudget::unbounded(),
        message_grace: LONG,
        reader_grace: LONG,
        keeps_alive: false,
        busy_poll: Duration::ZERO,
        audit: None,
        logins: None,
        tls: None,
    };
    change(&mut limits);
    (rpc, limits, backend)
}

/// A server where clients log in: `bob` with the password `b`.
pub struct WithLogins {
    pub server: RpcServer,
    pub backend: Arc<LocalBackend>,
}

impl WithLogins {
    pub fn start(directory: &Path, change: impl FnOnce(&mut RpcLimits)) -> WithLogins {
        let access = AccessOptions {
            authenticator: Authenticator::Password,
            authorizer: Authorizer::Cassandra,
            roles_validity: Duration::ZERO,
            permissions_validity: Duration::ZERO,
            ..AccessOptions::default()
        };
        let options = LocalOptions { access, ..LocalOptions::default() };
        let (server, backend) = start(&helenus_host::real::host(), directory, options, change);
        let server = WithLogins { server, backend };
        server.own("CREATE ROLE bob WITH LOGIN = true AND PASSWORD = 'b'");
        server
    }

    /// Runs a statement as the superuser.
    pub fn own(&self, statement: &str) {
        let identity = Identity::of_role("cassandra");
        let answer = self.backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{statement}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    /// A client that has logged in as `bob`.
    pub fn bob(&self) -> TcpStream {
        let mut client = connect(self.server.address());
        let credentials = Map(vec![("username".into(), "bob".into()), ("password".into(), "b".into())]);
        let login = args::Login { auth_request: AuthenticationRequest { credentials } };
        client.write_all(&call(Method::Login, &login)).unwrap();
        assert_eq!(name_and_number(&answer_of(&mut client)), ("login".to_owned(), 1));
        client
    }
}

/// A switched-on audit log with its files in a folder.
pub fn audit(directory: &Path) -> Arc<Audit> {
    let host = helenus_host::real::host();
    let log = Log::start(&host, Format::Json, None);
    let (address, directory) = (Ipv4Addr::LOCALHOST.into(), Some(directory.to_owned()));
    let node = AuditNode { address, directory, memory_limit: 1 << 30 };
    let logger = AuditLogger::File(FileParameters::default());
    Audit::new(&host, &log, node, AuditOptions { enabled: true, logger, ..AuditOptions::default() }).unwrap()
}

/// All that the files in a folder, and in those in it, say.
pub fn text_of_files(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    let text = |path: &PathBuf| match path.is_dir() {
        true => text_of_files(path),
        false => String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned(),
    };
    entries.iter().map(text).collect()
}

/// A client that does not wait for ever.
pub fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.set_write_timeout(Some(LONG)).unwrap();
    client
}

pub fn call<'a>(method: Method, arguments: &impl Field<'a>) -> Vec<u8> {
    numbered(method, 1, arguments)
}

/// A call with the client's number for it.
pub fn numbered<'a>(method: Method, number: i32, arguments: &impl Field<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_call(method, number, &mut bytes);
    arguments.write(&mut bytes);
    end_message(at, &mut bytes);
    bytes
}

pub fn statement(text: &str) -> Vec<u8> {
    query(text.as_bytes(), Compression::None)
}

pub fn query(query: &[u8], compression: Compression) -> Vec<u8> {
    let asked = args::Cql3Query { query, compression, consistency: ConsistencyLevel::One };
    call(Method::ExecuteCql3Query, &asked)
}

pub fn answer_of(client: &mut impl Read) -> Vec<u8> {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut answer).unwrap();
    answer
}

pub fn read_answer(client: &mut impl Read) -> usize {
    answer_of(client).len()
}

/// The name of the call that a message answers, and the client's number for it.
pub fn name_and_number(answer: &[u8]) -> (String, i32) {
    let mut reader = helenus_wire::thrift::Reader::new(answer);
    let head = helenus_wire::thrift::MessageHead::read(&mut reader).unwrap();
    (String::from_utf8_lossy(head.name).into_owned(), head.number)
}
