//! The audit log: its lines beside Cassandra's, its files, its switch, and that it holds no password.
//!
//! `tests/conformance/audit/lines.txt` has the lines that Cassandra 5.0.9 writes for `SCRIPT`. To record them again:
//!
//!     tests/tools/cassandra.sh start DIR --authenticator PasswordAuthenticator --settings FILE
//!     AUDIT_RECORD=127.0.0.1:19042 AUDIT_LOG=DIR/log cargo test --test audit record -- --ignored
//!
//! FILE has `authorizer: CassandraAuthorizer` and `audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}]}`.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{self, AUTH_SUCCESS, Raw, Reply};
use end_to_end::{Calls, Server, binary, refused, root, tool};
use helenus_wire::thrift::{AuthenticationRequest, Compression, ConsistencyLevel, Map, Method, args};
use tempfile::TempDir;

const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0A;
const BATCH: u8 = 0x0D;

/// What is asked, in order. `login USER PASSWORD` begins a connection, `prepare` a statement that `execute` runs with one
/// value; `batch` has statements between bars, `?` for the prepared one.
const SCRIPT: &str = "\
login cassandra cassandra
query CREATE KEYSPACE audited WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
query CREATE TABLE audited.t (p int PRIMARY KEY, v text)
query CREATE TYPE audited.ty (a int)
query CREATE INDEX i ON audited.t (v)
query ALTER TABLE audited.t ADD w int
query ALTER TYPE audited.ty ADD b int
query ALTER KEYSPACE audited WITH durable_writes = true
query INSERT INTO audited.t (p, v) VALUES (1, 'a|b')
query UPDATE audited.t SET v = 'x' WHERE p = 1;
query DELETE FROM audited.t WHERE p = 2
query SELECT * FROM audited.t
query BEGIN BATCH INSERT INTO audited.t (p) VALUES (5); INSERT INTO audited.t (p) VALUES (6); APPLY BATCH
query TRUNCATE audited.t
query SELECT * FROM t
query USE audited
query SELECT * FROM t
query INSERT INTO nosuch (p) VALUES (1)
query SELEKT
query DESCRIBE TABLES
query CREATE ROLE audited_a WITH PASSWORD = 'se''cret' AND LOGIN = true
query CREATE USER audited_b WITH PASSWORD 'secret'
query CREATE ROLE audited_r
query CREATE ROLE audited_h WITH HASHED PASSWORD = '$2a$04$JSEVJfVYJoYTzM7vKuVAO.dHKS9ZGjV7vrCPJqxRPbYxyyLHPzQUu'
query CREATE ROLE broken WITH PASSWORD = 'secret' AND
query CREATE ROLE audited_a WITH PASSWORD = 'secret'
query ALTER ROLE audited_r WITH PASSWORD = 'secret'
query ALTER USER audited_b SUPERUSER
query GRANT audited_r TO audited_a
query REVOKE audited_r FROM audited_a
query GRANT SELECT ON audited.t TO audited_r
query GRANT SELECT ON KEYSPACE audited TO audited_r
query GRANT ALL ON ALL KEYSPACES TO audited_r
query GRANT MODIFY ON ALL TABLES IN KEYSPACE audited TO audited_r
query REVOKE MODIFY ON t FROM audited_r
query GRANT ALTER ON ROLE audited_a TO audited_r
query GRANT CREATE ON ALL ROLES TO audited_r
query GRANT EXECUTE ON ALL FUNCTIONS TO audited_r
query GRANT EXECUTE ON ALL MBEANS TO audited_r
query GRANT EXECUTE ON ALL FUNCTIONS IN KEYSPACE audited TO audited_r
query LIST ALL PERMISSIONS OF audited_r
query LIST ROLES
query LIST USERS
query ADD IDENTITY 'spiffe://a/b' TO ROLE 'audited_a'
query DROP IDENTITY 'spiffe://a/b'
query DROP INDEX audited.i
query DROP TYPE ty
query DROP KEYSPACE nosuch
query SELECT * FROM nosuchks.t
query SELECT key FROM system.local
query CREATE TABLE IF NOT EXISTS t (p int PRIMARY KEY)
query CREATE ROLE 'with password'
query DROP ROLE 'with password'
query SELECT * FROM t WHERE v = 'password'
query SELEKT password 'secret'
prepare INSERT INTO audited.t (p) VALUES (?)
execute 7
prepare SELECT * FROM audited.t WHERE p = ?
execute 7
prepare UPDATE audited.t SET v = 'y' WHERE p = ?
batch ? | INSERT INTO t (p) VALUES (8)
batch SELECT * FROM t
prepare SELECT * FROM nosuch
prepare SELEKT
prepare CREATE ROLE z WITH PASSWORD = 'secret'
login audited_a se'cret
query SELECT * FROM system_auth.roles
query CREATE KEYSPACE z WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
query CREATE ROLE nope WITH PASSWORD = 'secret'
prepare SELECT v FROM audited.t WHERE p = ?
execute 7
batch INSERT INTO audited.t (p) VALUES (8)
login audited_a wrong
login nobody secret
login cassandra cassandra
query DROP ROLE audited_a
query DROP USER audited_b
query DROP ROLE audited_h
query DROP ROLE audited_r
query DROP TABLE audited.t
query DROP KEYSPACE audited
";

fn long(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn short(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// The id of a prepared statement; `None` if it was refused.
fn prepared_id(reply: &Reply) -> Option<Vec<u8>> {
    let id = reply.body.strip_prefix(&4_i32.to_be_bytes())?;
    let length = usize::from(u16::from_be_bytes([id[0], id[1]]));
    Some(id[2..2 + length].to_vec())
}

/// Sends the script.
fn run(address: &str) {
    let mut raw = None;
    let mut prepared = Vec::new();
    for line in SCRIPT.lines() {
        let (word, rest) = line.split_once(' ').expect("a word and what follows");
        if word == "login" {
            raw = Some(Raw::login(address, 4, rest.split_once(' ').expect("user and password")).0);
            continue;
        }
        let raw = raw.as_mut().expect("a login first");
        match word {
            "query" => drop(raw.query(rest)),
            "prepare" => prepared = prepared_id(&raw.ask(PREPARE, &long(rest))).unwrap_or_default(),
            "execute" => {
                let value: i32 = rest.parse().expect("a number");
                let body =
                    [&short(&prepared)[..], &[0, 1, 1, 0, 1, 0, 0, 0, 4], &value.to_be_bytes()].concat();
                raw.ask(EXECUTE, &body);
            }
            "batch" => {
                let statements: Vec<&str> = rest.split(" | ").collect();
                let mut body = vec![0];
                body.extend((statements.len() as u16).to_be_bytes());
                for statement in statements {
                    if statement == "?" {
                        body.push(1);
                        body.extend(short(&prepared));
                        body.extend([0, 1, 0, 0, 0, 4, 0, 0, 0, 7]);
                    } else {
                        body.push(0);
                        body.extend(long(statement));
                        body.extend([0, 0]);
                    }
                }
                body.extend([0, 1, 0]);
                raw.ask(BATCH, &body);
            }
            other => panic!("{other}"),
        }
    }
}

/// The lines of events in a log, without the prefix, and with what differs from run to run replaced.
fn events(log: &str) -> Vec<String> {
    let from = |line: &str| line.find("user:").map(|at| line[at..].to_owned());
    let is_event = |line: &&str| line.contains("FileAuditLogger") && line.contains("|timestamp:");
    log.lines().filter(is_event).filter_map(from).map(|line| settled(&line)).collect()
}

fn settled(line: &str) -> String {
    let batch = line.split('|').find_map(|field| field.strip_prefix("batch:")).map(str::to_owned);
    let fields = line.split('|').map(|field| match field.split_once(':') {
        Some((name @ ("host" | "port" | "timestamp" | "batch"), _)) => format!("{name}:_"),
        _ => field.to_owned(),
    });
    let mut line = fields.collect::<Vec<_>>().join("|");
    if let Some(batch) = batch {
        line = line.replace(&batch, "_");
    }
    // Of a syntax error the text is ours.
    match line.find("; line ") {
        Some(at) => line[..at + "; line ".len()].to_owned(),
        None => line,
    }
}

fn recorded() -> std::path::PathBuf {
    root().join("tests/conformance/audit/lines.txt")
}

#[test]
#[ignore = "writes lines.txt from a Cassandra's log"]
fn record() {
    let address = std::env::var("AUDIT_RECORD").expect("AUDIT_RECORD=HOST:PORT of a Cassandra");
    let log = std::env::var("AUDIT_LOG").expect("AUDIT_LOG: its log");
    run(&address);
    let text = fs::read_to_string(log).expect("the log");
    fs::write(recorded(), events(&text).join("\n") + "\n").expect("written");
}

/// A server with logins and an audit log of these options.
fn audited(options: &str) -> Server {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let text = format!(
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\naudit_logging_options: {{{options}}}\n"
    );
    fs::write(&config, text).expect("a configuration");
    Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")])
}

const FILE_LOGGER: &str = "enabled: true, logger: [{class_name: FileAuditLogger}]";

fn log_text(server: &Server) -> String {
    fs::read_to_string(server.data().join("audit/audit.log")).expect("audit.log")
}

#[test]
fn every_kind_of_event_is_written_as_cassandra_writes_it() {
    let mut server = audited(FILE_LOGGER);
    run(server.address());
    server.stop();
    let text = log_text(&server);
    let theirs = fs::read_to_string(recorded()).expect("lines.txt");
    // Cassandra writes no line for a part of a batch that came as text, or that failed.
    let is_theirs = |line: &String| {
        let fails = line.contains("UNAUTHORIZED_ATTEMPT") || line.contains("REQUEST_FAILURE");
        !(line.contains("|batch:") && (fails || line.contains("VALUES (5)") || line.contains("VALUES (6)")))
    };
    let all = events(&text);
    let parts: Vec<&String> = all.iter().filter(|line| !is_theirs(line)).collect();
    assert_eq!(parts.len(), 4, "{parts:#?}");
    for (part, words) in parts.iter().zip([
        ["type:UPDATE|category:DML|batch:_|ks:audited|scope:t|", "INSERT INTO audited.t (p) VALUES (5)"],
        ["type:UPDATE|category:DML|batch:_|ks:audited|scope:t|", "INSERT INTO audited.t (p) VALUES (6)"],
        ["type:REQUEST_FAILURE|category:ERROR|batch:_|ks:audited|scope:t|", "SELECT * FROM t"],
        [
            "type:UNAUTHORIZED_ATTEMPT|category:AUTH|batch:_|ks:audited|scope:t|",
            "INSERT INTO audited.t (p) VALUES (8)",
        ],
    ]) {
        assert!(part.contains(words[0]) && part.ends_with(words[1]), "{part}: {words:?}");
    }
    let ours: Vec<String> = all.iter().filter(|line| is_theirs(line)).cloned().collect();
    let theirs = theirs.lines().map(str::to_owned).collect::<Vec<_>>();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len(), "{ours:#?}");
    for secret in ["secret", "se''cret", "se'cret", "$2a$"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn a_client_cannot_hide_its_refused_statements_or_forge_a_line() {
    let mut server = audited(FILE_LOGGER);
    let (mut admin, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    admin.run("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
    let (mut app, reply) = Raw::login(server.address(), 4, ("app", "pw"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    // Statements about the data of this keyspace are not written; whatever else is done in it is.
    app.run("USE system");
    app.query("SELECT * FROM system_auth.roles");
    app.query("SELECT /* \nINFO  [x] 2026-01-01 00:00:00,000 FileAuditLogger.java:51 - user:cassandra|timestamp:1\n */ * FROM system.local");
    app.query("DROP ROLE app /* \nFileAuditLogger user:cassandra|timestamp:1 */");
    server.stop();
    let text = log_text(&server);
    let of_app: Vec<String> = events(&text).into_iter().filter(|line| line.starts_with("user:app")).collect();
    assert_eq!(of_app.len(), 4, "{of_app:#?}");
    assert!(of_app[1].contains("USE_KEYSPACE"), "{of_app:#?}");
    assert!(
        of_app[2].contains("UNAUTHORIZED_ATTEMPT") && of_app[2].contains("system_auth.roles"),
        "{of_app:#?}"
    );
    assert!(text.lines().all(|line| line.starts_with("INFO  [audit] ")), "{text}");
}

/// By the old interface a client gets an invalid request where it lacks a permission, as from Cassandra 3.11. The log has it
/// as what it is, so no list of categories or keyspaces hides it.
#[test]
fn refusals_of_the_old_interface_and_of_http_are_always_written() {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let text = format!(
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\naudit_logging_options: \
         {{{FILE_LOGGER}, included_categories: 'AUTH,DCL,DDL', included_keyspaces: nope}}\n"
    );
    fs::write(&config, text).expect("a configuration");
    let options =
        ["--config", config.to_str().expect("UTF-8"), "--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let mut server = Server::start_in(folder, &options);
    let (mut admin, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k text PRIMARY KEY, v text) WITH COMPACT STORAGE",
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true",
    ] {
        admin.run(statement);
    }
    let mut calls = Calls::connect(&Calls::address_of(&server));
    let truncate = args::OfColumnFamily { column_family: "t" };
    let keyspace = args::OfKeyspace { keyspace: "ks" };
    calls.exception(Method::Truncate, &truncate);
    for password in ["wrong", "pw"] {
        let credentials = [("username", "app"), ("password", password)];
        let credentials = Map(credentials.map(|(key, value)| (key.into(), value.into())).to_vec());
        let login = args::Login { auth_request: AuthenticationRequest { credentials } };
        match password {
            "pw" => drop(calls.answer(Method::Login, &login)),
            _ => drop(calls.exception(Method::Login, &login)),
        }
    }
    calls.answer(Method::SetKeyspace, &keyspace);
    calls.exception(Method::Truncate, &truncate);
    for text in ["SELECT * FROM t", "GRANT SELECT ON ks.t TO app", "DROP TABLE t"] {
        let (query, compression, consistency) = (text.as_bytes(), Compression::None, ConsistencyLevel::One);
        calls.exception(Method::ExecuteCql3Query, &args::Cql3Query { query, compression, consistency });
    }
    let query =
        |text: &'static str| args::CqlQuery { query: text.as_bytes(), compression: Compression::None };
    for text in ["DROP COLUMNFAMILY t", "SELECT FIRST 2 * FROM t", "UPDATE t SET v = 'x' WHERE KEY = 'a'"] {
        calls.exception(Method::ExecuteCqlQuery, &query(text));
    }
    let line = server.head().iter().find(|line| line.starts_with("http")).expect("the HTTP port's address");
    let address = line.split("//").nth(1).or(line.split_whitespace().nth(1)).expect("an address");
    let address = address.split(['/', ' ']).next().expect("HOST:PORT");
    let mut socket = std::net::TcpStream::connect(address).expect("connect");
    // app:wrong
    let request = format!(
        "GET /changes/ks/t HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Basic YXBwOndyb25n\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut socket, &mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    server.stop();
    let text = log_text(&server);
    let events = events(&text);
    let mut rest = events.iter().skip_while(|line| !line.contains("CREATE ROLE app"));
    for (event, operation) in [
        ("UNAUTHORIZED_ATTEMPT", "truncate; You have not logged in"),
        ("LOGIN_ERROR", "LOGIN FAILURE; "),
        ("UNAUTHORIZED_ATTEMPT", "truncate of ks.t; User app has no MODIFY permission"),
        ("UNAUTHORIZED_ATTEMPT", "SELECT * FROM t; User app has no SELECT permission"),
        ("UNAUTHORIZED_ATTEMPT", "GRANT SELECT ON ks.t TO app; "),
        ("UNAUTHORIZED_ATTEMPT", "DROP TABLE t; User app has no DROP permission"),
        ("UNAUTHORIZED_ATTEMPT", "DROP COLUMNFAMILY t; User app has no DROP permission"),
        ("UNAUTHORIZED_ATTEMPT", "SELECT FIRST 2 * FROM t; User app has no SELECT permission"),
        ("UNAUTHORIZED_ATTEMPT", "UPDATE t SET v = 'x' WHERE KEY = 'a'; User app has no MODIFY permission"),
        ("LOGIN_ERROR", "LOGIN FAILURE; "),
    ] {
        let is_it = |line: &String| {
            line.contains(&format!("type:{event}|category:AUTH"))
                && line.contains(&format!("operation:{operation}"))
        };
        assert!(rest.any(is_it), "{event} {operation}: {events:#?}");
    }
}

#[test]
fn the_log_is_switched_on_and_off_by_nodetools_verbs() {
    let mut server = audited("enabled: false");
    let data = server.data().to_str().expect("UTF-8").to_owned();
    let admin = |words: &[&str]| tool(&[&["admin", "--data", &data], words].concat());
    let (mut raw, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    raw.run("SELECT key FROM system.local");
    let shown = admin(&["getauditlog"]);
    assert!(shown.contains("enabled             false"), "{shown}");
    assert!(shown.contains("logger              BinAuditLogger"), "{shown}");
    let said = refused(&["admin", "--data", &data, "enableauditlog"]);
    assert!(said.contains("BinAuditLogger") && said.contains("FileAuditLogger"), "{said}");
    let said = refused(&[
        "admin",
        "--data",
        &data,
        "enableauditlog",
        "--logger",
        "FileAuditLogger",
        "--included-categories",
        "NONE",
    ]);
    assert!(said.contains("category NONE not found"), "{said}");
    assert!(!server.data().join("audit").exists());
    admin(&[
        "enableauditlog",
        "--logger",
        "FileAuditLogger",
        "--included-categories",
        "query",
        "--excluded-keyspaces",
        "none",
    ]);
    raw.run("SELECT key FROM system.local");
    admin(&["enableauditlog", "--logger", "FileAuditLogger", "--excluded-keyspaces", "system"]);
    raw.run("SELECT cql_version FROM system.local");
    raw.run("CREATE ROLE one");
    let shown = admin(&["getauditlog", "--json"]);
    assert!(shown.contains("\"enabled\":true") || shown.contains("\"enabled\": true"), "{shown}");
    admin(&["disableauditlog"]);
    raw.run("CREATE ROLE two");
    let text = log_text(&server);
    let events = events(&text);
    assert_eq!(events.len(), 2, "{text}");
    assert!(events[0].contains("type:SELECT|category:QUERY|ks:system|scope:local"), "{text}");
    assert!(events[1].ends_with("operation:CREATE ROLE one"), "{text}");
    server.stop();
}

#[test]
fn what_cannot_be_audited_is_said_at_the_start() {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let file = folder.path().join("a-file");
    fs::write(&file, "x").expect("a file");
    let below = file.join("audit");
    for (options, words) in [
        ("enabled: true".to_owned(), "FileAuditLogger"),
        ("enabled: true, logger: org.apache.cassandra.audit.BinAuditLogger".to_owned(), "Chronicle"),
        (FILE_LOGGER.to_owned(), "audit_logs_dir"),
        (format!("{FILE_LOGGER}, audit_logs_dir: {}", below.display()), below.to_str().expect("UTF-8")),
    ] {
        fs::write(&config, format!("audit_logging_options: {{{options}}}\n")).expect("a configuration");
        let said = refused(&[
            "serve",
            "--memory",
            "--listen",
            "127.0.0.1:0",
            "--config",
            config.to_str().expect("UTF-8"),
        ]);
        assert!(said.contains(words), "{options}: {said}");
    }
}

/// Runs `helenus admin` with lines on its standard input.
fn admin_with_input(server: &Server, words: &[&str], input: &str) {
    let mut command = Command::new(binary());
    command.args(["admin", "--data", server.data().to_str().expect("UTF-8")]).args(words);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("run helenus");
    child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("written");
    assert!(child.wait().expect("its end").success(), "{words:?}");
}

#[test]
fn changes_of_rights_without_a_client_are_written_too() {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let at = |name: &str| folder.path().join(name);
    let scripts = at("init");
    fs::create_dir(&scripts).expect("a folder");
    fs::write(
        scripts.join("1.cql"),
        "CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         CREATE TABLE made.t (p int PRIMARY KEY);
         CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'secret';
         GRANT SELECT ON made.t TO app;",
    )
    .expect("a script");
    let shell = format!("{} shell", binary().display());
    let script = format!(
        "set -e\n{shell} -e \"CREATE ROLE by_sh\"\nHELENUS_PASSWORD=secret {shell} -u app -e \"SELECT * FROM made.t\"\n"
    );
    fs::write(scripts.join("2.sh"), script).expect("a script");
    fs::write(at("password"), "first\n").expect("a password");
    fs::write(
        at("server.yaml"),
        format!(
            "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\npassword_file: {}\naudit_logging_options: \
             {{{FILE_LOGGER}, included_categories: AUTH, excluded_keyspaces: system_auth}}\n",
            at("password").display()
        ),
    )
    .expect("a configuration");
    let (config, init) = (at("server.yaml"), scripts.to_str().expect("UTF-8").to_owned());
    let options = ["--config", config.to_str().expect("UTF-8"), "--init", &init];
    let mut server = Server::start_with(&options);
    let (_, reply) = Raw::login(server.address(), 4, ("helenus-init", "x"));
    assert_ne!(reply.opcode, AUTH_SUCCESS);
    admin_with_input(&server, &["passwd", "app"], "secret2\n");
    let (mut app, reply) = Raw::login(server.address(), 4, ("app", "secret2"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    app.run("SELECT * FROM made.t");
    admin_with_input(&server, &["updatecidrgroup", "office", "10.0.0.0/8"], "");
    admin_with_input(&server, &["dropcidrgroup", "office"], "");
    let (mut first, _) = Raw::login(server.address(), 4, ("cassandra", "first"));
    first.run("INSERT INTO system_auth.role_members (role, member) VALUES ('cassandra', 'app')");
    server.stop();
    let text = log_text(&server);
    assert!(!text.contains("secret") && !text.contains("first"), "{text}");
    let events = events(&text);
    let mut rest = events.iter();
    for wanted in [
        "user:(server)|host:_|source:/0.0.0.0|timestamp:_|type:ALTER_ROLE|category:DCL|ks:system_auth|operation:--password-file",
        "user:(server)|host:_|source:/127.0.0.1|port:_|timestamp:_|type:LOGIN_SUCCESS",
        "type:CREATE_ROLE|category:DCL|operation:CREATE ROLE app WITH LOGIN = true AND PASSWORD = '*******'",
        "type:GRANT",
        "operation:CREATE ROLE by_sh",
        "user:app|host:_|source:/127.0.0.1|port:_|timestamp:_|type:LOGIN_SUCCESS",
        "user:null|host:_|source:/127.0.0.1|port:_|timestamp:_|type:LOGIN_ERROR",
        "user:(admin socket)|host:_|source:/0.0.0.0|timestamp:_|type:ALTER_ROLE|category:DCL|ks:system_auth|operation:passwd app",
        "operation:updatecidrgroup office 10.0.0.0/8",
        "operation:dropcidrgroup office",
        "user:cassandra|host:_|source:/127.0.0.1|port:_|timestamp:_|type:UPDATE|category:DML|ks:system_auth|scope:role_members",
    ] {
        assert!(rest.any(|line| line.contains(wanted)), "{wanted}: {events:#?}");
    }
}

#[test]
fn no_line_is_lost_while_the_log_takes_other_options() {
    const CLIENTS: usize = 3;
    const STATEMENTS: usize = 400;
    let mut server = audited(FILE_LOGGER);
    let data = server.data().to_str().expect("UTF-8").to_owned();
    let address = server.address();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let (mut raw, _) = Raw::login(address, 4, ("cassandra", "cassandra"));
                raw.run("CREATE ROLE IF NOT EXISTS r");
                let statement = "SELECT role FROM system_auth.roles WHERE role = 'counted'";
                let prepared = prepared_id(&raw.ask(PREPARE, &long(statement))).expect("prepared");
                for number in 0..STATEMENTS {
                    match number % 2 {
                        0 => drop(raw.query(statement)),
                        _ => drop(raw.ask(EXECUTE, &[&short(&prepared)[..], &[0, 1, 0]].concat())),
                    }
                }
            });
        }
        for _ in 0..4 {
            tool(&["admin", "--data", &data, "enableauditlog", "--logger", "FileAuditLogger"]);
        }
    });
    server.stop();
    let text = log_text(&server);
    let counted = |line: &&str| line.contains("type:SELECT") && line.contains("'counted'");
    assert_eq!(text.lines().filter(counted).count(), CLIENTS * STATEMENTS);
}

/// Names and statements with whatever could end a field or a line: each event stays one line with its own fields.
#[test]
fn drawn_names_and_statements_forge_nothing() {
    const PIECES: [&str; 14] = [
        "a",
        "|type:GRANT",
        "|category:DCL",
        "|operation:",
        "\n",
        "\r\n",
        "INFO  [audit] ",
        "user:cassandra|",
        "\u{2028}",
        "\u{202e}",
        "''",
        "\u{1b}[2J",
        "\u{85}",
        "|",
    ];
    let mut server = audited(FILE_LOGGER);
    let mut draw = Draw::new("drawn_names_and_statements_forge_nothing", 36);
    let (mut admin, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    let mut wanted = 1;
    for round in 0..rounds(5) {
        let mut text =
            |most: usize| (0..1 + draw.below(most)).map(|_| *draw.one(&PIECES)).collect::<String>();
        let (name, comment) = (format!("{}{round}", text(3)), text(4));
        let quoted = name.replace("''", "'").replace('\'', "''");
        admin.run(&format!("CREATE ROLE '{quoted}' WITH PASSWORD = 'p' AND LOGIN = true"));
        admin.run(&format!("GRANT DESCRIBE ON ALL ROLES TO '{quoted}'"));
        let (mut drawn, reply) = Raw::login(server.address(), 4, (&quoted.replace("''", "'"), "p"));
        assert_eq!(reply.opcode, AUTH_SUCCESS, "{name:?}");
        drawn.query(&format!("LIST ROLES /* {comment} */"));
        drawn.query(&format!("SELECT /* {comment} */ * FROM system_auth.roles"));
        drawn.query(&format!("SELEKT '{}'", comment.replace("''", "")));
        Raw::login(server.address(), 4, (&name, "wrong"));
        wanted += 7;
    }
    server.stop();
    let text = log_text(&server);
    assert_eq!(text.lines().count(), wanted);
    for line in text.lines() {
        let begins =
            line.starts_with("INFO  [audit] 2") && !line.chars().any(|c| c.is_control() || c == '\u{202e}');
        let (fields, _) = line.split_once("|operation:").expect("an operation");
        let (user, rest) = fields.split_once('|').expect("a user and more");
        let names: Vec<&str> = rest.split('|').filter_map(|field| Some(field.split_once(':')?.0)).collect();
        let expected = ["host", "source", "port", "timestamp", "type", "category"];
        let others = names.iter().skip(6).all(|name| ["ks", "scope"].contains(name));
        let is_whole = user.contains(" - user:") && names.iter().take(6).eq(&expected) && others;
        assert!(begins && is_whole, "{line}");
    }
}

/// In a keyspace that is excluded: a batch in every form, statements that fail, DESCRIBE and USE have their lines.
#[test]
fn a_keyspace_in_use_hides_no_statement() {
    let mut server = audited(FILE_LOGGER);
    let (mut raw, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    raw.run("USE system");
    let update = |mark: &str| {
        format!("UPDATE system_auth.roles SET can_login = true WHERE role = '{mark}' /* secret */")
    };
    raw.run(&format!("BEGIN BATCH {}; {}; APPLY BATCH", update("text one"), update("text two")));
    let prepared = format!("BEGIN UNLOGGED BATCH {} APPLY BATCH;", update("prepared"));
    let id = prepared_id(&raw.ask(PREPARE, &long(&prepared))).expect("prepared");
    for _ in 0..2 {
        raw.ask(EXECUTE, &[&short(&id)[..], &[0, 1, 0]].concat());
    }
    let one = prepared_id(&raw.ask(PREPARE, &long(&update("entry one")))).expect("prepared");
    let mut body = vec![0, 0, 2, 1];
    body.extend(short(&one));
    body.extend([0, 0, 0]);
    body.extend(long(&update("entry two")));
    body.extend([0, 0, 0, 1, 0]);
    raw.ask(BATCH, &body);
    raw.query("SELECT nosuch FROM local");
    raw.query("SELEKT 1");
    raw.query("BEGIN BATCH UPDATE system_auth.roles SET nosuch = 1 WHERE role = 'failed part'; APPLY BATCH");
    raw.run("DESCRIBE KEYSPACES");
    raw.run("USE system_schema");
    raw.run("SELECT key FROM system.local");
    server.stop();
    let text = log_text(&server);
    let events = events(&text);
    for (words, count) in [
        (["type:UPDATE", "|batch:_|ks:system_auth|scope:roles|", "text one"], 1),
        (["type:UPDATE", "|batch:_|ks:system_auth|scope:roles|", "text two"], 1),
        (["type:BATCH", "|ks:system|", "text one"], 1),
        (["type:UPDATE", "|batch:_|ks:system_auth|scope:roles|", "prepared"], 2),
        (["type:UPDATE", "|batch:_|ks:system_auth|scope:roles|", "entry one"], 1),
        (["type:UPDATE", "|batch:_|ks:system_auth|scope:roles|", "entry two"], 1),
        (["type:REQUEST_FAILURE", "|ks:system|", "SELECT nosuch"], 1),
        (["type:REQUEST_FAILURE", "|ks:system|", "SELEKT ?"], 1),
        (["type:REQUEST_FAILURE", "|batch:_|ks:system_auth|scope:roles|", "failed part"], 1),
        (["type:DESCRIBE", "|ks:system|", "DESCRIBE KEYSPACES"], 1),
        (["type:USE_KEYSPACE", "|ks:system_schema|", "USE system_schema"], 1),
        (["type:SELECT", "system.local", ""], 0),
    ] {
        let found = events.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
        assert_eq!(found, count, "{words:?}: {events:#?}");
    }
}

/// Each kind of statement of CQL 2 that succeeds has the event of what it does, with names as they are written.
#[test]
fn statements_of_cql_2_have_their_own_events() {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    fs::write(&config, format!("audit_logging_options: {{{FILE_LOGGER}}}\n")).expect("a configuration");
    let options = ["--config", config.to_str().expect("UTF-8"), "--rpc", "127.0.0.1:0"];
    let mut server = Server::start_in(folder, &options);
    let mut calls = Calls::connect(&Calls::address_of(&server));
    let texts = [
        (
            "CREATE_KEYSPACE",
            "ks:Old",
            "CREATE KEYSPACE Old WITH strategy_class = SimpleStrategy AND strategy_options:replication_factor = 1",
        ),
        ("USE_KEYSPACE", "ks:Old", "USE Old"),
        ("CREATE_TABLE", "scope:Mixed", "CREATE COLUMNFAMILY Mixed (KEY text PRIMARY KEY)"),
        ("UPDATE", "scope:Mixed", "INSERT INTO Mixed (KEY, a) VALUES (k, v)"),
        ("UPDATE", "scope:Mixed", "UPDATE Mixed SET a = b WHERE KEY = k"),
        ("SELECT", "scope:Mixed", "SELECT FIRST 2 * FROM Mixed"),
        ("DELETE", "scope:Mixed", "DELETE a FROM Mixed WHERE KEY = k"),
        ("BATCH", "", "BEGIN BATCH UPDATE Mixed SET a = c WHERE KEY = k APPLY BATCH"),
        ("TRUNCATE", "scope:Mixed", "TRUNCATE Mixed"),
        ("DROP_TABLE", "scope:Mixed", "DROP COLUMNFAMILY Mixed"),
        ("DROP_KEYSPACE", "ks:Old", "DROP KEYSPACE Old"),
    ];
    for (_, _, text) in texts {
        calls.answer(
            Method::ExecuteCqlQuery,
            &args::CqlQuery { query: text.as_bytes(), compression: Compression::None },
        );
    }
    server.stop();
    let log = log_text(&server);
    for (event, words, text) in texts {
        let found = log.lines().any(|line| {
            line.contains(&format!("type:{event}")) && line.contains(words) && line.contains(text)
        });
        assert!(found, "{event} {words} {text}: {log}");
    }
    let part = |line: &&str| {
        line.contains("type:UPDATE") && line.ends_with("operation:UPDATE Mixed SET a = c WHERE KEY = k")
    };
    assert_eq!(log.lines().filter(part).count(), 1, "the part of the batch: {log}");
    assert!(!log.contains("REQUEST_FAILURE"), "{log}");
}

/// Nobody's secret stands in the audit log, in traces, in the server's log or among the prepared statements, whatever text it was in.
#[test]
fn texts_near_statements_about_roles_show_no_secret() {
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let text = format!(
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\naudit_logging_options: {{{FILE_LOGGER}}}\n"
    );
    fs::write(&config, text).expect("a configuration");
    let options = ["--config", config.to_str().expect("UTF-8"), "--rpc", "127.0.0.1:0"];
    let mut server = Server::start_in(folder, &options);
    let (mut raw, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    let texts = [
        "ALTER ROLE app WITH PASSWORD='topsecret'",
        "CREATE ROLE a WITH PASSWRD = 'topsecret'",
        "CREATE ROLE a 'topsecret'",
        "CREATE USER a IDENTIFIED BY 'topsecret'",
        "CREATE ROLE a IDENTIFIED BY topsecret",
        "CREATE ROLE a WITH OPTIONS = {'PASSWORD': 'topsecret'}",
        "CREATE ROL a WITH PASS = 'topsecret'",
        "ALTER ROLE a WITH PASSWORD = pre-topsecret",
        "ALTER ROLE a WITH PASSWORD = 'abc'topsecret",
        "ALTER ROLE a WITH PASSWORD = 'topsecret",
        "CREATE ROLE a WITH LOGIN = true -- was topsecret",
        "SET PASSWD 'topsecret'",
        "SELECT * FROM t; ALTER ROLE a WITH PASS 'topsecret'",
        "INSERT INTO system_auth.roles (role, salted_hash) VALUES ('ROLE', 'topsecret')",
        "INSERT INTO system_auth.roles JSON '{\"role\": \"ROLE\", \"salted_hash\": \"topsecret\"}'",
        "UPDATE system_auth.roles SET salted_hash = 'topsecret' WHERE role = 'ROLE'",
        "UPDATE system_auth.roles SET can_login = 'topsecret' WHERE role = 'ROLE'",
        "UPDATE roles SET salted_hash = 'topsecret' WHERE role = 'ROLE'",
        "SELECT * FROM system_auth.roles WHERE salted_hash = 'topsecret'",
        "BEGIN BATCH UPDATE system_auth.roles SET salted_hash = 'topsecret' WHERE role = 'ROLE'; APPLY BATCH",
    ];
    let mut calls = Calls::connect(&Calls::address_of(&server));
    let credentials = [("username", "cassandra"), ("password", "cassandra")];
    let credentials = Map(credentials.map(|(key, value)| (key.into(), value.into())).to_vec());
    calls.answer(Method::Login, &args::Login { auth_request: AuthenticationRequest { credentials } });
    for text in texts {
        raw.query(text);
        // Traced.
        raw.send(&raw::frame(4, 2, 1, raw::QUERY, &raw::query(4, text, &[])));
        raw.receive();
        raw.ask(PREPARE, &long(text));
        let mut body = vec![0, 0, 1, 0];
        body.extend(long(text));
        body.extend([0, 0, 0, 1, 0]);
        raw.ask(BATCH, &body);
        let (query, compression, consistency) = (text.as_bytes(), Compression::None, ConsistencyLevel::One);
        calls.exchange(Method::ExecuteCql3Query, &args::Cql3Query { query, compression, consistency });
        calls.exchange(Method::ExecuteCqlQuery, &args::CqlQuery { query: text.as_bytes(), compression });
        calls.exchange(Method::PrepareCql3Query, &args::CqlQuery { query: text.as_bytes(), compression });
        calls.exchange(Method::PrepareCqlQuery, &args::CqlQuery { query: text.as_bytes(), compression });
    }
    // As a bound value, traced.
    let text = "UPDATE system_auth.roles SET salted_hash = ? WHERE role = 'ROLE'";
    let id = prepared_id(&raw.ask(PREPARE, &long(text))).expect("prepared");
    let body = [&short(&id)[..], &[0, 1, 1, 0, 1], &long("topsecret")].concat();
    raw.send(&raw::frame(4, 2, 1, EXECUTE, &body));
    raw.receive();
    for table in ["system_traces.sessions", "system_traces.events", "system.prepared_statements"] {
        let reply = raw.query(&format!("SELECT * FROM {table}"));
        let shown = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(!shown.contains("topsecret"), "{table}: {shown}");
        assert!(table.ends_with("events") || shown.contains("ROLE"), "{table}: {shown}");
    }
    server.stop();
    let text = log_text(&server);
    assert!(text.lines().count() > texts.len() * 7);
    assert!(!text.contains("topsecret"), "{text}");
}
