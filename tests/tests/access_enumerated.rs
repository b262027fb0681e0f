//! Each kind of statement as a role with one permission on one resource, or all on it: the server refuses it if and only if Cassandra
//! does, but for those where it is stricter on purpose.
//!
//! `tests/conformance/access/enumerated.txt` has the statements, and says where the server is stricter;
//! `crates/cql/tests/access_enumerated.rs` holds the server alone against the needs that stand there.
//!
//! A definition takes a Cassandra a tenth of a second, so the check asks both one question in five, each statement with some grants
//! and each grant with some statements; `HELENUS_SEED` chooses which. `HELENUS_ROUNDS=5` asks all.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{AUTH_SUCCESS, ERROR, Raw};
use end_to_end::{Calls, Oracle, Server, root};
use helenus_wire::thrift::{AuthenticationRequest, Compression, ConsistencyLevel, Map, Method, args};
use tempfile::TempDir;

const UNAUTHORIZED: i32 = 0x2100;

/// The lines of the file that begin with a word, without it.
fn after<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.strip_prefix(word)).collect()
}

fn logged_in(address: &str, login: (&str, &str)) -> Raw {
    let (raw, reply) = Raw::login(address, 4, login);
    assert_eq!(reply.opcode, AUTH_SUCCESS, "{login:?}: {reply:?}");
    raw
}

/// The questions are divided into so many parts.
const PARTS: usize = 5;

/// For each grant and statement of the chosen parts whether it was refused for a missing permission.
fn answers(address: &str, text: &str, parts: &[usize]) -> Vec<(String, bool)> {
    let mut own = logged_in(address, ("cassandra", "cassandra"));
    for statement in after(text, "setup ") {
        own.run(statement);
    }
    let mut role = logged_in(address, ("enu_r", "r"));
    let mut found = Vec::new();
    for (row, grant) in after(text, "grant ").into_iter().enumerate() {
        own.run(&format!("GRANT {grant} TO enu_r"));
        for (column, line) in after(text, "both | ").into_iter().enumerate() {
            if !parts.contains(&((row + column) % PARTS)) {
                continue;
            }
            let fields: Vec<&str> = line.split(" |").map(str::trim).collect();
            let [statement, _, undo] = fields[..] else { panic!("{line}") };
            let reply = role.query(statement);
            let is_refused = reply.opcode == ERROR && reply.error().0 == UNAUTHORIZED;
            if !is_refused && !undo.is_empty() {
                own.query(undo);
            }
            found.push((format!("{grant}: {statement}"), is_refused));
        }
        own.run(&format!("REVOKE {grant} FROM enu_r"));
    }
    found
}

#[test]
fn statements_are_refused_where_cassandra_refuses_them() {
    let text =
        fs::read_to_string(root().join("tests/conformance/access/enumerated.txt")).expect("the statements");
    let folder = TempDir::with_prefix("helenus-access-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let settings = "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\nroles_validity: 0ms\npermissions_validity: 0ms\n";
    fs::write(&config, settings).expect("a configuration");
    let server = Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")]);
    let first = Draw::new("access_enumerated", 1).below(PARTS);
    let parts: Vec<usize> = (first..).take(rounds(1).min(PARTS)).map(|part| part % PARTS).collect();
    let ours = answers(server.address(), &text, &parts);
    let oracle = Oracle::with_logins();
    clean(oracle.address());
    let theirs = answers(oracle.address(), &text, &parts);
    clean(oracle.address());
    let mut wrong = String::new();
    for ((question, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        if ours != theirs {
            let _ok = writeln!(wrong, "{question}: refused here: {ours}, by Cassandra: {theirs}");
        }
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(ours.iter().filter(|(_, is_refused)| *is_refused).count() > 1000 / PARTS);
}

/// By the old interface a statement is refused with the words that it is refused with here, and the feed over HTTP asks for what a SELECT of
/// the table does.
#[test]
fn every_interface_refuses_what_the_native_protocol_refuses() {
    let text =
        fs::read_to_string(root().join("tests/conformance/access/enumerated.txt")).expect("the statements");
    let folder = TempDir::with_prefix("helenus-access-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let settings = "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\nroles_validity: 0ms\npermissions_validity: 0ms\n";
    fs::write(&config, settings).expect("a configuration");
    let config = config.to_str().expect("UTF-8").to_owned();
    let server =
        Server::start_in(folder, &["--config", &config, "--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut own = logged_in(server.address(), ("cassandra", "cassandra"));
    after(&text, "setup ").iter().for_each(|statement| own.run(statement));
    own.run("ALTER TABLE enu.t WITH cdc = true");
    let mut role = logged_in(server.address(), ("enu_r", "r"));
    let mut calls = Calls::connect(&Calls::address_of(&server));
    let credentials = Map([("username", "enu_r"), ("password", "r")]
        .map(|(key, value)| (key.into(), value.into()))
        .to_vec());
    calls.answer(Method::Login, &args::Login { auth_request: AuthenticationRequest { credentials } });
    let http =
        server.head().iter().find_map(|line| line.trim().strip_prefix("http ")).expect("the HTTP port");
    let http = http.split_whitespace().next().expect("an address");
    for grant in after(&text, "grant ") {
        own.run(&format!("GRANT {grant} TO enu_r"));
        for line in ["both | ", "stricter | ", "ours | "].iter().flat_map(|place| after(&text, place)) {
            let fields: Vec<&str> = line.split(" |").map(str::trim).collect();
            let [statement, _, undo] = fields[..] else { panic!("{line}") };
            let mut undone = || drop((!undo.is_empty()).then(|| own.query(undo)));
            let reply = role.query(statement);
            let refused =
                (reply.opcode == ERROR).then(|| reply.error()).filter(|(code, _)| *code == UNAUTHORIZED);
            if refused.is_none() {
                undone();
            }
            let (query, compression, consistency) =
                (statement.as_bytes(), Compression::None, ConsistencyLevel::One);
            let answer = calls
                .exchange(Method::ExecuteCql3Query, &args::Cql3Query { query, compression, consistency });
            let answer = String::from_utf8_lossy(&answer).into_owned();
            match refused {
                Some((_, words)) => {
                    assert!(answer.contains(&words), "{grant}: {statement}: {words}: {answer}")
                }
                None => {
                    undone();
                    assert!(
                        !answer.contains("User enu_r ") && !answer.contains("Only superusers"),
                        "{grant}: {statement}: {answer}"
                    );
                }
            }
        }
        let may_select = role.query("SELECT * FROM enu.t").opcode != ERROR;
        let mut socket = TcpStream::connect(http).expect("the HTTP port");
        // enu_r:r
        write!(
            socket,
            "GET /changes/enu/t HTTP/1.1\r\nHost: {http}\r\nAuthorization: Basic ZW51X3I6cg==\r\n\r\n"
        )
        .expect("sent");
        let mut status = String::new();
        BufReader::new(socket).read_line(&mut status).expect("a status");
        assert!(status.contains(if may_select { " 200 " } else { " 403 " }), "{grant}: {status}");
        own.run(&format!("REVOKE {grant} FROM enu_r"));
    }
}

/// Removes what an earlier run has left.
fn clean(address: &str) {
    let mut own = logged_in(address, ("cassandra", "cassandra"));
    for role in ["enu_r", "enu_x", "enu_y", "enu_d", "enu_super", "enu_heir", "enu_n"] {
        own.query(&format!("DROP ROLE IF EXISTS {role}"));
    }
    for keyspace in ["enu", "enu_d", "enu_n"] {
        own.query(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    }
    for identity in ["enu-x", "enu-heir", "enu-n"] {
        own.query(&format!("DROP IDENTITY IF EXISTS '{identity}'"));
    }
}
