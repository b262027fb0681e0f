//! Attacks the other parsers: `schema.cql` of an import, settings in YAML, requests on the admin socket. Each input is
//! answered or refused, and the process stays alive.

use super::productions::Growth;
use super::productions::Growth::{Nest as N, Repeat as R};
use end_to_end::{Server, binary, files, root};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum time of any step, in any build on any machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Statements that a `schema.cql` may contain.
const SCHEMAS: &[Growth] = &[
    R("", "CREATE TYPE fx.t# (a int);", "\n", ""),
    R("", "CREATE TABLE fx.t# (k int PRIMARY KEY);", "\n", ""),
    R(
        "",
        "CREATE KEYSPACE ks# WITH replication = {'class':'SimpleStrategy','replication_factor':1};",
        "\n",
        "",
    ),
    R("CREATE TABLE fx.t (k int PRIMARY KEY,", "a# int", ",", ");"),
    R("CREATE TABLE fx.t (k int PRIMARY KEY) WITH ", "comment='a'", " AND ", ";"),
    R("", ";", "", ""),
    R("", "-- a\n", "", ""),
    R("", "/* ", "", ""),
    N("CREATE TABLE fx.t (k int PRIMARY KEY, v ", "int", ");"),
    N("CREATE TABLE fx.t (k int PRIMARY KEY, v frozen<list<", "int", ">>);"),
    N("frozen<list<", "int", ">>"),
    N("(", "1", ")"),
];

/// Settings in YAML.
const SETTINGS: &[Growth] = &[
    N("[", "1", "]"),
    N("{a: ", "1", "}"),
    N("- ", "1", ""),
    N("a:\n ", "1", ""),
    R("unknown: [", "#", ",", "]"),
    R("unknown: {", "a#: #", ",", "}"),
    R("", "unknown#: 1", "\n", ""),
    R("", "a", "", ": 1"),
    R("cluster_name: \"", "\\x41", "", ""),
    R("unknown: &a [x]\n", "b#: [*a,*a,*a,*a,*a,*a]", "\n", ""),
    R("listen: ", "1", ".", ""),
];

/// Requests on the admin socket.
const ORDERS: &[Growth] = &[
    N("[", "1", "]"),
    N("{\"verb\":", "1", "}"),
    N("{\"verb\":\"flush\",\"which\":{\"tables\":[", "\"a\"", "]}}"),
    R("{\"verb\":\"flush\",\"which\":{\"keyspace\":\"k\",\"tables\":[", "\"a#\"", ",", "]}}"),
    R("{\"verb\":\"flush\",\"which\":{\"keyspace\":\"", "a", "", "\"}}"),
    R("{\"verb\":\"", "a", "", "\"}"),
    R("{", "\"a#\":1", ",", "}"),
    R("", "{", "", ""),
];

/// Numbers of units that each piece is tried with.
const COUNTS: [usize; 3] = [100, 3_000, 20_000];

#[test]
fn a_schema_file_that_nests_or_repeats_is_answered_and_the_server_lives() {
    let server = Server::start();
    let scratch = TempDir::with_prefix("helenus-hostile-").expect("a temporary directory");
    let tables = root().join("crates/cql/tests/fixtures/nodes/oa/data/fx");
    let table =
        std::fs::read_dir(tables).expect("the node's tables").flatten().next().expect("a table").path();
    let folder = scratch.path().join("fx").join(table.file_name().expect("its name"));
    files::copy_all(&table, &folder);
    for growth in SCHEMAS {
        for count in COUNTS {
            std::fs::write(folder.join("schema.cql"), growth.text(count)).expect("a schema file");
            let mut import = Command::new(binary());
            import.arg("import").arg(&folder).arg("--socket").arg(server.data().join("admin.sock"));
            ends(&mut import, &format!("{count} x {growth:?}"));
        }
    }
    assert!(!server.admin(&["status"]).is_empty());
}

#[test]
fn settings_that_nest_or_repeat_are_refused_by_a_process_that_ends_by_itself() {
    let scratch = TempDir::with_prefix("helenus-hostile-").expect("a temporary directory");
    let file = scratch.path().join("helenus.yaml");
    for growth in SETTINGS {
        for count in COUNTS {
            // This unknown setting makes the file invalid, whatever the rest means.
            std::fs::write(&file, format!("{}\nthere_is_no_such_setting: 1\n", growth.text(count)))
                .expect("settings");
            let mut serve = Command::new(binary());
            serve.args(["serve", "--memory", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
            ends(&mut serve, &format!("{count} x {growth:?}"));
        }
    }
}

#[test]
fn orders_that_nest_or_repeat_are_answered_and_the_server_lives() {
    let server = Server::start();
    for growth in ORDERS {
        for count in COUNTS {
            let mut socket = UnixStream::connect(server.data().join("admin.sock")).expect("the admin socket");
            socket.set_read_timeout(Some(WAIT_MAX)).expect("a socket option");
            // The server may refuse by closing before it has read everything.
            let _ = socket.write_all(format!("{}\n", growth.text(count)).as_bytes());
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let mut answer = String::new();
            if let Err(error) = BufReader::new(&socket).read_line(&mut answer) {
                let closed = matches!(
                    error.kind(),
                    std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
                );
                assert!(closed, "{count} x {growth:?}: {error}");
            }
        }
    }
    assert!(!server.admin(&["status"]).is_empty());
}

/// Waits for a command that must end by itself, successfully or not.
fn ends(command: &mut Command, what: &str) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("run helenus");
    let pid = Pid::from_child(&child);
    let (sender, ended) = mpsc::sync_channel(1);
    let waits = std::thread::spawn(move || sender.send(child.wait()));
    let Ok(status) = ended.recv_timeout(WAIT_MAX) else {
        let _ = kill_process(pid, Signal::KILL);
        let _ = waits.join();
        panic!("{what}: it did not end within {WAIT_MAX:?}");
    };
    let status = status.expect("its end");
    assert!(matches!(status.code(), Some(0..=100)), "{what}: it ended with {status}");
}
