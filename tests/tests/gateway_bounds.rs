//! What one client of a gateway cannot do to the others: change the keyspace of shared connections, guess passwords together, take all
//! connections, or keep them for nothing. The cluster is a Helenus, which answers as a node of Cassandra does.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use end_to_end::process::memory_kib;
use end_to_end::raw::{
    AUTH_RESPONSE, AUTH_SUCCESS, ERROR, OPTIONS, QUERY, READY, RESULT, Raw, STARTUP, frame, query, startup,
};
use end_to_end::{Calls, Cql, Server, tool};
use helenus_tls::rustls::{ClientConnection, StreamOwned};
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, client_config, server_name};
use helenus_wire::thrift::{ColumnParent, ConsistencyLevel, Method, SlicePredicate, args};
use tempfile::TempDir;

const BAD_CREDENTIALS: i32 = 0x0100;
const OVERLOADED: i32 = 0x1001;

fn gateway_of(cluster: &Server, more: &[&str]) -> Server {
    Server::start_with(&[&["--gateway", cluster.address()], more].concat())
}

/// A cluster with two keyspaces that have a table of the same name.
fn two_keyspaces() -> Server {
    let cluster = Server::start_with(&["--memory"]);
    let cql = Cql::connect(cluster.address());
    for keyspace in ["app", "evil"] {
        cql.run(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        cql.run(&format!("CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)"));
        cql.run(&format!("INSERT INTO {keyspace}.t (k, v) VALUES (1, 'from {keyspace}')"));
    }
    cluster
}

#[test]
fn a_hidden_use_changes_the_keyspace_of_nobody_else() {
    let cluster = two_keyspaces();
    let gateway = gateway_of(&cluster, &[]);
    for version in [3, 4, 5] {
        let mut attacker = Raw::ready(gateway.address(), version);
        let mut victim = Raw::ready(gateway.address(), version);
        let mut other = Raw::ready(gateway.address(), version);
        victim.run("USE app");
        attacker.run("USE app");
        for text in [
            "--\rUSE evil\n",
            "//\rUSE evil",
            "-- a comment\r/* another */USE evil;",
            "/*\r*/ USE \"evil\"",
            "--\r\n--\rUSE evil\n",
            "-- SELECT\rUSE evil -- more\r",
        ] {
            for _ in 0..4 {
                // Understood as USE, or failed: never passed on.
                let reply = attacker.query(text);
                assert!(matches!(reply.opcode, RESULT | ERROR), "{text:?}: {reply:?}");
            }
            for _ in 0..4 {
                let described = victim.query("DESCRIBE TABLE t");
                let text_of = String::from_utf8_lossy(&described.body).into_owned();
                assert!(text_of.contains("app") && !text_of.contains("evil"), "{text:?}: {text_of}");
                let read = victim.query("SELECT v FROM t WHERE k = 1");
                assert!(String::from_utf8_lossy(&read.body).contains("from app"), "{text:?}");
                let none = other.query("SELECT v FROM t WHERE k = 1");
                assert_eq!(none.opcode, ERROR, "{text:?}: {none:?}");
            }
        }
        // The gateway answers for itself, behind whatever comment.
        let plain = other.query("SELECT rpc_address FROM system.local");
        let hidden = other.query("--\rSELECT rpc_address FROM system.local\n");
        assert_eq!((plain.opcode, &plain.body), (hidden.opcode, &hidden.body));
    }
}

#[test]
fn guesses_that_come_together_are_counted_and_do_not_refuse_the_right_password() {
    let cluster = Server::start_with(&[
        "--memory",
        "--authenticator",
        "PasswordAuthenticator",
        "--set",
        "handshake_timeout=120s",
    ]);
    let admin = Cql::connect_as(cluster.address(), ("cassandra", "cassandra")).expect("the first login");
    admin.run("CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'right'");
    let folder = TempDir::with_prefix("helenus-gateway-").expect("a temporary directory");
    let password = folder.path().join("password");
    std::fs::write(&password, "cassandra\n").expect("a file");
    let password = password.to_str().expect("UTF-8");
    let own = ["--cluster-username", "cassandra", "--cluster-password-file", password, "--cluster-logins"];
    let gateway = gateway_of(&cluster, &[&own[..], &["--set", "handshake_timeout=120s"]].concat());
    let guesses = |count: usize| {
        let guess = || {
            let address = gateway.address().to_owned();
            std::thread::spawn(move || Raw::login(&address, 4, ("app", "wrong")).1.error())
        };
        (0..count).map(|_| guess()).collect::<Vec<_>>()
    };
    let (begun, count) = (Instant::now(), 16);
    let answers: Vec<_> = guesses(count).into_iter().map(|guess| guess.join().expect("an answer")).collect();
    assert!(answers.iter().all(|(code, _)| *code == BAD_CREDENTIALS), "{answers:?}");
    // Three are answered at once, eight wait, four are under way by then; later two a second, as the first waits end.
    let at_most = 3 + 8 + 4 + 2 * begun.elapsed().as_secs() as usize;
    assert!(count <= at_most, "{count} were checked, and {at_most} may be: {answers:?}");
    // While others guess the right one waits for its turn.
    let others = guesses(4);
    let (_, reply) = Raw::login(gateway.address(), 4, ("app", "right"));
    assert_eq!(reply.opcode, AUTH_SUCCESS, "{reply:?}");
    others.into_iter().for_each(|guess| assert_eq!(guess.join().expect("an answer").0, BAD_CREDENTIALS));
}

#[test]
fn before_its_login_a_client_sends_nothing_that_decompresses_to_much() {
    let cluster = Server::start_with(&["--memory", "--authenticator", "PasswordAuthenticator"]);
    let folder = TempDir::with_prefix("helenus-gateway-").expect("a temporary directory");
    let password = folder.path().join("password");
    std::fs::write(&password, "cassandra\n").expect("a file");
    let password = password.to_str().expect("UTF-8");
    let own = ["--cluster-username", "cassandra", "--cluster-password-file", password, "--cluster-logins"];
    let gateway = gateway_of(&cluster, &own);
    let mut raw = Raw::connect(gateway.address(), 4);
    let mut startup = 2_u16.to_be_bytes().to_vec();
    for text in ["CQL_VERSION", "3.0.0", "COMPRESSION", "lz4"] {
        startup.extend_from_slice(&(text.len() as u16).to_be_bytes());
        startup.extend_from_slice(text.as_bytes());
    }
    raw.send(&frame(4, 0, 1, 1, &startup));
    raw.receive().expect("AUTHENTICATE");
    // A body whose stated length is 16 MiB: one literal, then a match that repeats it.
    let mut body = (16_u32 << 20).to_be_bytes().to_vec();
    body.extend_from_slice(&[0x1F, 0, 1, 0]);
    let repeated = (16 << 20) - 1 - 4 - 5 - 15;
    body.extend(std::iter::repeat_n(255, repeated / 255));
    body.extend_from_slice(&[(repeated % 255) as u8, 0x50, 0, 0, 0, 0, 0]);
    raw.send(&frame(4, 1, 2, AUTH_RESPONSE, &body));
    let (_, text) = raw.receive().expect("an answer").error();
    assert!(!text.contains("username") && !text.contains("must not be null"), "it was decompressed: {text}");
}

#[test]
fn connections_of_an_address_are_limited_and_those_that_wait_for_nothing_end() {
    let cluster = two_keyspaces();
    let limits = [
        "--set",
        "native_transport_max_concurrent_connections_per_ip=2",
        "--set",
        "native_transport_idle_timeout=2s",
        "--set",
        "request_arrival_timeout=1s",
    ];
    let gateway = gateway_of(&cluster, &limits);
    let mut first = Raw::ready(gateway.address(), 4);
    let mut second = Raw::ready(gateway.address(), 4);
    let mut third = Raw::connect(gateway.address(), 4);
    third.send(&frame(4, 0, 1, OPTIONS, &[]));
    let (code, text) = third.receive().expect("a refusal").error();
    assert!(code == OVERLOADED && text.contains("2 connections from 127.0.0.1"), "{code:#x} {text}");
    // Half a request, and silence.
    let whole = frame(4, 0, 1, QUERY, &query(4, "SELECT v FROM app.t", &[]));
    first.send(&whole[..whole.len() - 1]);
    let ended = |raw: &mut Raw| {
        raw.socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        match raw.socket.read(&mut [0; 1]) {
            Ok(0) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
            Ok(_) => false,
        }
    };
    assert!(ended(&mut first), "half a request");
    assert_eq!(second.query("SELECT v FROM app.t").opcode, RESULT);
    assert!(ended(&mut second), "silence");
    // Both have made room.
    Raw::ready(gateway.address(), 4).run("USE app");
}

/// Names of columns that one call asks for: what is kept of them needs more than a small `memory_limit` allows.
const NAMES: u32 = 1_000_000;

#[test]
fn the_memory_limit_holds_for_calls_of_the_old_interface_in_front_of_a_cluster() {
    let cluster = Server::start_with(&["--memory"]);
    let cql = Cql::connect(cluster.address());
    cql.run("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE app.t (key blob, column1 blob, value blob, PRIMARY KEY (key, column1))");
    let limit = 64;
    let memory = format!("memory_limit={limit}MiB");
    let gateway = gateway_of(&cluster, &["--rpc", "127.0.0.1:0", "--set", &memory]);
    let mut calls = Calls::of(&gateway);
    calls.answer(Method::SetKeyspace, &args::OfKeyspace { keyspace: "app" });
    let names: Vec<[u8; 4]> = (0..NAMES).map(u32::to_be_bytes).collect();
    let of_names = SlicePredicate {
        column_names: Some(names.iter().map(|name| &name[..]).collect()),
        slice_range: None,
    };
    let slice = args::GetSlice {
        key: b"k",
        column_parent: ColumnParent { column_family: "t", super_column: None },
        predicate: of_names,
        consistency_level: ConsistencyLevel::One,
    };
    // Unavailable, which has no text.
    let refusal = calls.exception(Method::GetSlice, &slice);
    assert!(refusal.ends_with(&[12, 0, 2, 0, 0]), "{}", String::from_utf8_lossy(&refusal));
    let peak = memory_kib(gateway.process_id(), "VmHWM").div_ceil(1024);
    assert!(peak <= limit + limit / 10 + 32, "{peak} MiB");
}

/// A handshake of TLS that announces almost 64 KiB and stops after this many records of 16 KiB, the longest.
const RECORDS: usize = 3;
/// Half handshakes that are open together, if the gateway lets them: their bytes exceed its bound.
const HALF_HANDSHAKES: usize = 1500;

fn half_handshake() -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in 0..RECORDS {
        bytes.extend_from_slice(&[22, 3, 1, 0x40, 0]);
        let begin = if record == 0 { &[1, 0, 0xFF, 0xF0][..] } else { &[] };
        bytes.extend_from_slice(begin);
        bytes.resize(bytes.len() + (16 << 10) - begin.len(), 0);
    }
    bytes
}

/// A client with an encrypted connection; what its STARTUP is answered with.
fn started_by_tls(address: &str, ca: &str) -> Option<u8> {
    let options = ClientOptions { trust: ServerTrust::File(ca.to_owned()), certificate: None, key: None };
    let read: ReadFile = Arc::new(|path: &Path| fs::read(path));
    let config = client_config(&options, &read).expect("certificates");
    let socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket option");
    let session =
        ClientConnection::new(config, server_name("127.0.0.1").expect("a name")).expect("a session");
    let mut stream = StreamOwned::new(session, socket);
    stream.write_all(&frame(4, 0, 0, STARTUP, &startup())).ok()?;
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    Some(head[4])
}

#[test]
fn half_handshakes_keep_no_client_out_and_stay_within_the_memory() {
    let cluster = two_keyspaces();
    let folder = TempDir::with_prefix("helenus-half-").expect("a temporary directory");
    let certs = folder.path().join("certs");
    tool(&["cert", certs.to_str().expect("UTF-8")]);
    let file = |name: &str| certs.join(name).to_str().expect("UTF-8").to_owned();
    let limit = 64;
    let memory = format!("memory_limit={limit}MiB");
    let config = folder.path().join("helenus.yaml");
    let options =
        "  enabled: true\n  optional: true\n  ssl_context_factory: {class_name: PEMBasedSslContextFactory}\n";
    let text = format!("client_encryption_options:\n{options}  keystore: {}\n", file("server.pem"));
    fs::write(&config, text).expect("written");
    let config = config.to_str().expect("UTF-8");
    let gateway = gateway_of(&cluster, &["--set", &memory, "--config", config]);
    let half = half_handshake();
    let mut open = Vec::new();
    for number in 0..HALF_HANDSHAKES {
        let mut socket = TcpStream::connect(gateway.address()).expect("a connection");
        // Who has been displaced meanwhile finds its connection reset.
        let _sent = socket.write_all(&half);
        open.push(socket);
        if number % 300 == 299 {
            assert_eq!(started_by_tls(gateway.address(), &file("ca.pem")), Some(READY), "beside {number}");
            // In the clear too.
            Raw::ready(gateway.address(), 4).run("USE app");
        }
    }
    let peak = memory_kib(gateway.process_id(), "VmHWM").div_ceil(1024);
    println!("{peak} MiB");
    assert!(peak <= limit + limit / 10 + 32, "{peak} MiB");
}
