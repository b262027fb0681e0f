//! `helenus serve --gateway --cluster-logins`: clients log in as roles of the cluster, which permits their statements. The cluster is a
//! Helenus with logins, which answers as a node of Cassandra does; `cluster` has real nodes, without logins.

use std::path::Path;
use std::time::{Duration, Instant};

use end_to_end::raw::{
    AUTH_SUCCESS, AUTHENTICATE, ERROR, EXECUTE, OPTIONS, PREPARE, QUERY, RESULT, Raw, query,
};
use end_to_end::{Calls, Cql, Server, refused};
use helenus_wire::thrift::{
    AuthenticationRequest, CfDef, Column, ColumnParent, Compression, ConsistencyLevel, Map, Method, args,
};
use tempfile::TempDir;

const BAD_CREDENTIALS: i32 = 0x0100;
const PROTOCOL: i32 = 0x000A;
const UNAUTHORIZED: i32 = 0x2100;

/// A cluster with a keyspace and three roles, and a gateway to it.
struct Gateway {
    cluster: Server,
    server: Server,
    _folder: TempDir,
}

fn gateway() -> Gateway {
    let cluster = Server::start_with(&[
        "--memory",
        "--authenticator",
        "PasswordAuthenticator",
        "--authorizer",
        "CassandraAuthorizer",
        "--set",
        "permissions_validity=0ms",
    ]);
    let admin = Cql::connect_as(cluster.address(), ("cassandra", "cassandra")).expect("the first login");
    for statement in [
        "CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE app.t (key blob PRIMARY KEY, v text)",
        "CREATE ROLE gateway WITH LOGIN = true AND PASSWORD = 'own'",
        "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'r'",
        "CREATE ROLE writer WITH LOGIN = true AND PASSWORD = 'w'",
        "GRANT SELECT ON app.t TO reader",
        "GRANT MODIFY ON app.t TO writer",
    ] {
        admin.run(statement);
    }
    let folder = TempDir::with_prefix("helenus-gateway-").expect("a temporary directory");
    let password = folder.path().join("password");
    std::fs::write(&password, "own\n").expect("a file");
    let server = Server::start_with(&[
        "--gateway",
        cluster.address(),
        "--cluster-username",
        "gateway",
        "--cluster-password-file",
        text(&password),
        "--cluster-logins",
        "--rpc",
        "127.0.0.1:0",
    ]);
    Gateway { cluster, server, _folder: folder }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn client(gateway: &Gateway, version: u8, login: (&str, &str)) -> Raw {
    let (raw, reply) = Raw::login(gateway.server.address(), version, login);
    assert_eq!(reply.opcode, AUTH_SUCCESS, "{reply:?}");
    raw
}

const READ: &str = "SELECT v FROM app.t WHERE key = 0x01";
const WRITE: &str = "INSERT INTO app.t (key, v) VALUES (0x01, 'x')";

#[test]
fn the_cluster_permits_what_a_client_s_role_may_do_in_every_version() {
    let gateway = gateway();
    for version in 3..=5 {
        let mut reader = client(&gateway, version, ("reader", "r"));
        let mut writer = client(&gateway, version, ("writer", "w"));
        assert_eq!(writer.query(WRITE).opcode, RESULT);
        assert_eq!(reader.query(READ).opcode, RESULT);
        let (code, why) = reader.query(WRITE).error();
        assert_eq!((code, why.contains("reader has no MODIFY permission")), (UNAUTHORIZED, true), "{why}");
        let (code, why) = writer.query(READ).error();
        assert_eq!((code, why.contains("writer has no SELECT permission")), (UNAUTHORIZED, true), "{why}");
    }
}

#[test]
fn a_statement_that_one_role_has_prepared_is_checked_for_another() {
    let gateway = gateway();
    let mut writer = client(&gateway, 4, ("writer", "w"));
    let mut reader = client(&gateway, 4, ("reader", "r"));
    let long = |statement: &str| [&(statement.len() as i32).to_be_bytes()[..], statement.as_bytes()].concat();
    let prepared = writer.ask(PREPARE, &long(WRITE));
    assert_eq!(prepared.opcode, RESULT, "{prepared:?}");
    // The kind, and the id with its length.
    let id = prepared.body[4..22].to_vec();
    let execute = [&id[..], &[0, 1, 0]].concat();
    assert_eq!(writer.ask(EXECUTE, &execute).opcode, RESULT);
    let (code, why) = reader.ask(EXECUTE, &execute).error();
    assert_eq!(code, UNAUTHORIZED, "{why}");
    assert_eq!(writer.ask(EXECUTE, &execute).opcode, RESULT);
}

#[test]
fn logins_are_refused_in_the_cluster_s_words_and_nothing_runs_before_them() {
    let gateway = gateway();
    let (mut raw, reply) = Raw::greeted(gateway.server.address(), 4);
    assert_eq!(reply.opcode, AUTHENTICATE);
    assert!(String::from_utf8_lossy(&reply.body).contains("PasswordAuthenticator"));
    for (opcode, body) in [(QUERY, query(4, READ, &[])), (OPTIONS, Vec::new())] {
        let (code, why) = raw.ask(opcode, &body).error();
        assert_eq!((code, why.contains("expecting SASL_RESPONSE")), (PROTOCOL, true), "{why}");
    }
    for (token, expected) in [
        (&b"\0reader\0wrong"[..], "Provided username reader and/or password are incorrect"),
        (b"\0nobody\0r", "Provided username nobody and/or password are incorrect"),
        (b"reader\0r", "Authentication ID must not be null"),
        (b"\0reader\0", "Password must not be null"),
    ] {
        assert_eq!(raw.authenticate(token).error(), (BAD_CREDENTIALS, expected.to_owned()));
    }
    let (code, _) = raw.ask(QUERY, &query(4, READ, &[])).error();
    assert_eq!(code, PROTOCOL);
    assert_eq!(raw.authenticate(b"\0reader\0r").opcode, AUTH_SUCCESS);
    assert_eq!(raw.query(READ).opcode, RESULT);
}

#[test]
fn a_password_that_was_changed_is_not_taken_from_an_earlier_login() {
    let gateway = gateway();
    let mut before = client(&gateway, 4, ("reader", "r"));
    let admin = Cql::connect_as(gateway.cluster.address(), ("cassandra", "cassandra")).expect("a login");
    // By its hash: a plain password may be changed only some seconds after the role was made.
    admin.run("CREATE ROLE other WITH PASSWORD = 'two'");
    let found = admin.rows("SELECT salted_hash FROM system_auth.roles WHERE role = 'other'");
    let hash = found[0][0].as_ref().and_then(|value| value.as_text()).expect("a hash");
    admin.run(&format!("ALTER ROLE reader WITH HASHED PASSWORD = '{hash}'"));
    let (_, reply) = Raw::login(gateway.server.address(), 4, ("reader", "r"));
    assert_eq!(reply.opcode, ERROR, "{reply:?}");
    let mut after = client(&gateway, 4, ("reader", "two"));
    assert_eq!(after.query(READ).opcode, RESULT);
    // Who is connected stays so, as at Cassandra.
    assert_eq!(before.query(READ).opcode, RESULT);
}

#[test]
fn the_old_interface_logs_in_too() {
    let gateway = gateway();
    let mut calls = Calls::of(&gateway.server);
    let login = |user: &'static str, password: &'static str| {
        let credentials = Map(vec![("username".into(), user.into()), ("password".into(), password.into())]);
        args::Login { auth_request: AuthenticationRequest { credentials } }
    };
    let enter = args::OfKeyspace { keyspace: "app" };
    let column = Column { name: b"v", value: Some(b"x"), timestamp: Some(1), ttl: None };
    let column_parent = ColumnParent { column_family: "t", super_column: None };
    let consistency_level = ConsistencyLevel::One;
    let insert = args::Insert { key: &[1], column_parent, column, consistency_level };
    let least = "-9223372036854775808";
    let splits = args::DescribeSplits {
        column_family: "t",
        start_token: least,
        end_token: least,
        keys_per_split: 100,
    };
    let family = |name| args::WithCfDef { cf_def: CfDef::named("app", name) };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let told = text(calls.exception(Method::SetKeyspace, &enter));
    assert!(told.contains("You have not logged in"), "{told}");
    let told = text(calls.exception(Method::Login, &login("writer", "wrong")));
    assert!(told.contains("Provided username writer and/or password are incorrect"), "{told}");
    calls.answer(Method::Login, &login("reader", "r"));
    calls.answer(Method::SetKeyspace, &enter);
    let told = text(calls.exception(Method::Insert, &insert));
    assert!(told.contains("reader has no MODIFY permission"), "{told}");
    for method in [Method::DescribeSplits, Method::DescribeSplitsEx] {
        calls.answer(method, &splits);
    }
    let told = text(calls.exception(Method::SystemAddColumnFamily, &family("made")));
    assert!(told.contains("reader has no CREATE permission"), "{told}");
    let drop = args::OfColumnFamily { column_family: "t" };
    let told = text(calls.exception(Method::SystemDropColumnFamily, &drop));
    assert!(told.contains("reader has no DROP permission"), "{told}");
    calls.answer(Method::Login, &login("writer", "w"));
    calls.answer(Method::Insert, &insert);
    for method in [Method::DescribeSplits, Method::DescribeSplitsEx] {
        let told = text(calls.exception(method, &splits));
        assert!(told.contains("writer has no SELECT permission"), "{told}");
    }
}

#[test]
fn a_gateway_with_logins_needs_a_cluster_that_has_them_and_no_insecure_flag() {
    let open = Server::start_with(&["--memory"]);
    let told =
        refused(&["serve", "--gateway", open.address(), "--cluster-logins", "--listen", "127.0.0.1:0"]);
    assert!(told.contains("asks nobody to log in"), "{told}");
    let gateway = gateway();
    let told = refused(&["serve", "--gateway", gateway.cluster.address(), "--listen", "127.0.0.1:0"]);
    assert!(told.contains("--cluster-username NAME"), "{told}");
    let told = refused(&["serve", "--gateway", gateway.cluster.address(), "--listen", "0.0.0.0:0"]);
    assert!(told.contains("--cluster-logins"), "{told}");
}

/// An address of this machine that is not the loopback.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

#[test]
fn the_default_password_is_refused_from_elsewhere_though_the_gateway_is_at_the_cluster_s_machine() {
    let Some(address) = own_address() else { return };
    let cluster = Server::start_with(&["--memory", "--authenticator", "PasswordAuthenticator"]);
    let folder = TempDir::with_prefix("helenus-gateway-").expect("a temporary directory");
    let password = folder.path().join("password");
    std::fs::write(&password, "cassandra\n").expect("a file");
    let own =
        ["--cluster-username", "cassandra", "--cluster-password-file", text(&password), "--cluster-logins"];
    let (listen, rpc) = (format!("{address}:0"), format!("{address}:0"));
    let ports = ["--gateway", cluster.address(), "--listen", &listen, "--rpc", &rpc];
    let start = |more: &[&str]| Server::start_with(&[&ports[..], &own, more].concat());
    let default = ("cassandra", "cassandra");
    let credentials = [("username", default.0), ("password", default.1)];
    let credentials = Map(credentials.map(|(name, value)| (name.into(), value.into())).into());
    let login = args::Login { auth_request: AuthenticationRequest { credentials } };
    let server = start(&[]);
    let (code, said) = Raw::login(server.address(), 4, default).1.error();
    assert!(code == BAD_CREDENTIALS && said.contains("--allow-default-password"), "{said}");
    let said = String::from_utf8_lossy(&Calls::of(&server).exception(Method::Login, &login)).into_owned();
    assert!(said.contains("--allow-default-password"), "{said}");
    let (_, wrong) = Raw::login(server.address(), 4, ("cassandra", "x")).1.error();
    assert_eq!(wrong, "Provided username cassandra and/or password are incorrect");
    let server = start(&["--allow-default-password"]);
    assert_eq!(Raw::login(server.address(), 4, default).1.opcode, AUTH_SUCCESS);
}

/// The cluster ends the connections of a role that is dropped, and takes no new ones.
#[test]
fn the_session_of_a_role_that_is_dropped_ends_with_an_error_that_says_so() {
    let gateway = gateway();
    let mut reader = client(&gateway, 4, ("reader", "r"));
    assert_eq!(reader.query(READ).opcode, RESULT);
    let mut calls = Calls::of(&gateway.server);
    let credentials = Map(vec![("username".into(), "reader".into()), ("password".into(), "r".into())]);
    calls.answer(Method::Login, &args::Login { auth_request: AuthenticationRequest { credentials } });
    let read = args::Cql3Query {
        query: READ.as_bytes(),
        compression: Compression::None,
        consistency: ConsistencyLevel::One,
    };
    calls.answer(Method::ExecuteCql3Query, &read);
    let admin = Cql::connect_as(gateway.cluster.address(), ("cassandra", "cassandra")).expect("a login");
    admin.run("DROP ROLE reader");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let (code, why) = reader.query(READ).error();
        if why.contains("cannot log in at the cluster any more") {
            assert_eq!(code, UNAUTHORIZED, "{why}");
            break;
        }
        assert!(Instant::now() < until, "{code:x} {why}");
    }
    assert!(reader.receive().is_none(), "the session ends");
    loop {
        let told = calls.exchange(Method::ExecuteCql3Query, &read);
        let told = String::from_utf8_lossy(&told).into_owned();
        if told.contains("cannot log in at the cluster any more") {
            break;
        }
        assert!(Instant::now() < until, "{told}");
    }
    assert!(calls.is_closed(), "so does one of the old interface");
    let (_, reply) = Raw::login(gateway.server.address(), 4, ("reader", "r"));
    assert_eq!(reply.error().0, BAD_CREDENTIALS);
    // It comes back with the same password: nothing of before stands in its way.
    admin.run("CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'r'");
    admin.run("GRANT SELECT ON app.t TO reader");
    let mut reader = client(&gateway, 4, ("reader", "r"));
    assert_eq!(reader.query(READ).opcode, RESULT);
}
