//! Every command ends in order when nobody reads its output: no panic, whose exit code is 101, and no message of one.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use end_to_end::{Cql, Server, binary, tool};
use tempfile::TempDir;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

/// The exit code of a program of Rust that has panicked.
const PANICKED: i32 = 101;

/// A pipe whose reader has closed it.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Runs a command in a folder three times: without readers of its standard output, of its errors, of both.
fn tried(folder: &Path, args: &[&str], input: &str) {
    for (out, error) in [(true, false), (false, true), (true, true)] {
        let pipe = |is_closed: bool| if is_closed { closed() } else { Stdio::piped() };
        let mut command = Command::new(binary());
        command.args(args).current_dir(folder).env("HOME", folder).env_remove("HELENUS_HOST");
        command.stdin(Stdio::piped()).stdout(pipe(out)).stderr(pipe(error));
        let mut running = command.spawn().expect("helenus runs");
        // It may end before it has read all of it.
        let _read = running.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let output = running.wait_with_output().expect("it ends");
        let code = output.status.code().unwrap_or_else(|| panic!("{args:?}: {}", output.status));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(code != PANICKED && !text.contains("panicked"), "{args:?}: {code}: {text}");
    }
}

fn database(address: &str) {
    let cql = Cql::connect(address);
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (a int PRIMARY KEY, b text) WITH cdc = true");
    cql.run("INSERT INTO k.t (a, b) VALUES (1, 'x')");
}

#[test]
fn commands_that_ask_a_server_end_in_order_without_readers() {
    let folder = TempDir::with_prefix("helenus-pipes-").expect("a folder");
    let (source, target) = (Server::start(), Server::start());
    database(source.address());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let at = |args: &[&str]| -> Vec<String> {
        args.iter().copied().chain(["--data", &data]).map(str::to_owned).collect()
    };
    let of_server =
        |args: &[&str]| tried(folder.path(), &at(args).iter().map(String::as_str).collect::<Vec<_>>(), "");
    for verb in [
        "status",
        "info",
        "version",
        "tablestats",
        "tpstats",
        "compactionstats",
        "clientstats",
        "describecluster",
        "gossipinfo",
        "ring",
        "listsnapshots",
        "proxyhistograms",
        "statusbinary",
        "gettraceprobability",
        "overview",
        "netstats",
        "getlogginglevels",
        "compactionhistory",
        "gcstats",
        "datapaths",
    ] {
        of_server(&["admin", verb]);
        of_server(&["admin", verb, "--json"]);
    }
    for args in [
        &["admin", "snapshot", "-t", "s"][..],
        &["admin", "clearsnapshot", "-t", "s"],
        &["admin", "tablehistograms", "k", "t"],
        &["admin", "gettimeout", "read"],
        &["admin", "flush"],
        &["admin", "verify", "k", "t"],
        &["admin", "no-such-verb"],
        &["changes", "k.t", "--from", "oldest"],
        &["changes", "--consumers"],
        &["backup", "kept"],
        &["export", "files"],
        &["move", "status"],
        &["move", "plan", "--to", target.address()],
        &["move", "plan", "--to", target.address(), "--json"],
        &["pull", "--stop"],
        &["pull", target.address(), "--tables", "k"],
    ] {
        of_server(args);
    }
    tool(&at(&["move", "start", "--to", target.address()]));
    wait_for_tail(&data);
    until_done(&at(&["move", "cutover", "--dry-run"]));
    for args in [
        &["move", "start", "--to", target.address()][..],
        &["move", "status"],
        &["move", "status", "--json"],
        &["move", "verify"],
        &["move", "verify", "--json"],
        &["move", "verify", "--stop"],
        &["move", "cutover", "--dry-run"],
        &["move", "rollback"],
        &["move", "resume"],
        &["move", "abort"],
    ] {
        of_server(args);
    }
    let port = source.address();
    for args in [
        &["stress", "insert", "--operations", "20", "--host", port][..],
        &["stress", "insert", "--operations", "20", "--json", "--host", port],
        &["stress", "read", "--operations", "20", "--rows", "20", "--host", port],
        &["pull", port, "--tables", "k.t", "--data", "pulled"],
        &["pull", port, "--tables", "k.t", "--data", "pulled", "--json"],
    ] {
        tried(folder.path(), args, "");
    }
}

#[test]
fn every_command_of_the_shells_ends_in_order_without_readers() {
    let folder = TempDir::with_prefix("helenus-pipes-").expect("a folder");
    let server = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    database(server.address());
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let rpc = line.split_whitespace().nth(1).expect("an address");
    for statement in [
        "HELP",
        "HELP SELECT",
        "CLEAR",
        "CONSISTENCY",
        "CONSISTENCY ONE",
        "SERIAL CONSISTENCY",
        "SERIAL CONSISTENCY SERIAL",
        "TRACING",
        "TRACING ON; SELECT * FROM k.t",
        "TIMING",
        "TIMING ON; SELECT * FROM k.t",
        "EXPAND",
        "EXPAND AUTO",
        "EXPAND ON; SELECT * FROM k.t",
        "PAGING",
        "PAGING OFF",
        "PAGING 5",
        "FORMAT",
        "FORMAT JSON; SELECT * FROM k.t",
        "FORMAT CSV; SELECT * FROM k.t",
        "SHOW VERSION",
        "SHOW HOST",
        "HISTORY",
        "CAPTURE",
        "CAPTURE 'c'; SELECT * FROM k.t",
        "SELECT * FROM k.t",
        "DESCRIBE KEYSPACE k",
        "DESC CLUSTER",
        "EXPLAIN SELECT * FROM k.t",
        "COPY k.t TO 'out.csv'",
        "COPY k.t TO STDOUT",
        "COPY k.t FROM 'in.csv'",
        "SOURCE 'none'",
        "SELEC",
        "SELECT * FROM k.tt",
    ] {
        fs::write(folder.path().join("in.csv"), "2,y\nwrong,z\n").expect("a file");
        tried(folder.path(), &["shell", "--host", server.address(), "-e", statement], "");
    }
    tried(folder.path(), &["shell", "--tty", "--host", server.address()], "SELECT * FROM k.t;\nHELP\n");
    for statement in [
        "show api version;",
        "show cluster name;",
        "show keyspaces;",
        "describe cluster;",
        "describe;",
        "describe k;",
        "describe none;",
        "use k;",
        "use k; create column family f with key_validation_class = UTF8Type and comparator = UTF8Type;",
        "use k; set f['a']['b'] = utf8('c');",
        "use k; get f['a'];",
        "use k; get f['a']['b'];",
        "use k; get f['a']['none'];",
        "use k; list f;",
        "use k; count f['a'];",
        "use k; assume f validator as utf8;",
        "consistencylevel as QUORUM;",
        "use k; del f['a']['b'];",
        "use k; truncate f;",
        "wrong;",
    ] {
        for more in [&[][..], &["--keep-going"]] {
            tried(folder.path(), &[&["cli", "--host", rpc], more].concat(), statement);
        }
    }
}

#[test]
fn commands_without_a_server_end_in_order_without_readers() {
    let folder = TempDir::with_prefix("helenus-pipes-").expect("a folder");
    let at = folder.path();
    let create = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; \
                  CREATE TABLE k.t (a int PRIMARY KEY, b text); INSERT INTO k.t (a, b) VALUES (1, 'x')";
    tool(&["shell", "--data", at.join("data").to_str().expect("UTF-8"), "-e", create]);
    for args in [
        &["--version"][..],
        &["version"],
        &["--help"],
        &["admin", "--help"],
        &["no-such-command"],
        &["completions", "bash"],
        &["man", "pages"],
        &["cert", "certs"],
        &["export", "files"],
        &["backup", "kept.tar"],
        &["restore", "kept.tar", "--data", "back"],
        &["import", "files", "--data", "other"],
        &["import", "files", "--dry-run"],
        &["changes", "k.t"],
        &["changes", "k.t", "--offline"],
        &["move", "status"],
        &["sstable", "verify", "files"],
        &["sstable", "dump", "files"],
        &["sstable", "scrub", "files"],
        &["shell", "--memory", "-e", "SELECT cluster_name FROM system.local"],
        &["profile", "--in-process", "--rows", "small-row", "--repeats", "2"],
        &["serve", "--no-such-option"],
    ] {
        tried(at, args, "");
    }
    let files = fs::read_dir(at.join("files")).expect("the export");
    assert!(files.count() > 0, "something was exported without a reader");
}
