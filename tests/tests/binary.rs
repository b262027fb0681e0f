//! Tests the binary at the command line: start, stop, wrong usage.

use std::process::{Command, Output};

use end_to_end::{Cql, Server};

fn helenus(args: &[&str]) -> Output {
    Command::new(end_to_end::binary()).args(args).output().expect("run helenus")
}

/// Runs the binary with arguments that it must refuse, and returns its message.
fn refusal(args: &[&str]) -> String {
    let output = helenus(args);
    assert!(!output.status.success(), "helenus {args:?} succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_says_where_it_listens_and_stores_and_what_it_promises() {
    let server = Server::start();
    let head = server.head().join("\n");
    assert!(server.address().starts_with("127.0.0.1:") && !server.address().ends_with(":0"), "{head}");
    for expected in [server.data().to_str().expect("a path in UTF-8"), "group", "cqlsh"] {
        assert!(head.contains(expected), "`{expected}` is missing in what it prints:\n{head}");
    }
}

#[test]
fn the_port_answers_as_soon_as_it_is_printed() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    assert_eq!(cql.rows("SELECT key FROM system.local").len(), 1);
}

#[test]
fn what_was_acknowledged_survives_kill_and_sigterm_alike() {
    let mut server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    for round in 0..4 {
        let cql = Cql::connect(server.address());
        assert_eq!(cql.rows("SELECT * FROM k.t").len(), round * 100);
        for k in 0..100 {
            cql.run(&format!("INSERT INTO k.t (k, v) VALUES ({}, 'round {round}')", round * 100 + k));
        }
        if round % 2 == 0 {
            server.kill();
        } else {
            assert!(server.stop().success(), "{}", server.log());
        }
        server.restart();
    }
    let cql = Cql::connect(server.address());
    assert_eq!(cql.rows("SELECT * FROM k.t").len(), 400);
}

#[test]
fn a_second_server_on_a_directory_says_who_holds_it() {
    let server = Server::start();
    let data = server.data();
    let message =
        refusal(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().expect("a path in UTF-8")]);
    assert!(message.contains(&server.process_id().to_string()), "{message}");
}

#[test]
fn memory_keeps_nothing_on_disk() {
    let mut server = Server::start_with(&["--memory"]);
    let cql = Cql::connect(server.address());
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (k int PRIMARY KEY)");
    cql.run("INSERT INTO k.t (k) VALUES (1)");
    assert_eq!(cql.rows("SELECT * FROM k.t").len(), 1);
    assert!(server.stop().success());
    assert!(!server.data().exists(), "{}", server.data().display());
}

#[test]
fn status_answers_while_the_server_runs() {
    let server = Server::start();
    assert!(server.admin(&["overview"]).contains(server.address()));
}

#[test]
fn an_unknown_option_is_an_error() {
    assert!(refusal(&["serve", "--no-such-option"]).contains("--no-such-option"));
}

#[test]
fn a_wrong_value_in_the_configuration_names_key_value_and_what_is_allowed() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("cassandra.yaml");
    let try_with = |yaml: &str| {
        std::fs::write(&file, yaml).expect("write the configuration");
        let data = folder.path().join("data");
        let [file, data] = [&file, &data].map(|path| path.to_str().expect("a path in UTF-8"));
        refusal(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", file])
    };
    let message = try_with("commitlog_sync: sometimes\n");
    for expected in ["commitlog_sync", "sometimes", "periodic", "batch", "group"] {
        assert!(message.contains(expected), "`{expected}` is missing: {message}");
    }
    // An unsupported key that restricts access must be refused rather than ignored.
    assert!(try_with("network_authorizer: CassandraNetworkAuthorizer\n").contains("network_authorizer"));
}
