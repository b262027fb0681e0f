//! Real drivers across `helenus move cutover`: each runs a load without a pause, no request of theirs fails, and everything is read
//! back from the cluster, each write once. They end at the nodes, which they have found by themselves.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use end_to_end::{Client, Cql, Server, tool};
use tempfile::TempDir;

use crate::moving::{until_done, wait_for_tail};
use crate::ring::Ring;

const KEYSPACE: &str = "drivers_cut";
/// The server's address: the port of the nodes, which the driver for Node.js expects at every host.
const LISTEN: &str = "127.0.0.8:9142";

const CLIENTS: [(Client, &str); 4] =
    [(Client::Python, "python"), (Client::Node, "node"), (Client::Go, "go"), (Client::Java, "java")];

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-cut-").expect("a temporary directory");
    // The Java driver refuses nodes whose cluster has another name than the first that it has seen.
    let options = ["--listen", LISTEN, "--set", "cluster_name=helenus-tests"];
    let server = Server::start_in(folder, &options);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let moving = |args: &[&str]| {
        let all: Vec<&str> = ["move"].iter().chain(args).copied().chain(["--data", &data]).collect();
        tool(&all)
    };
    let target = Cql::connect(&ring.address(1)).at_all();
    target.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    let source = Cql::connect(LISTEN);
    source.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    for (_, name) in CLIENTS {
        source.run(&format!("CREATE TABLE {KEYSPACE}.{name}_rows (k int PRIMARY KEY, v int)"));
        source.run(&format!("CREATE TABLE {KEYSPACE}.{name}_lists (k int PRIMARY KEY, l list<int>)"));
    }
    drop(source);
    // The nodes, the server and the drivers share this machine: a slow answer of a node is no reason here to send less.
    moving(&["start", "--to", &ring.address(1), "--tables", KEYSPACE, "--target-p99", "5000"]);
    wait_for_tail(&data);
    let mut loads: Vec<Load> = CLIENTS.map(|(client, name)| Load::start(client, name)).into();
    for load in &mut loads {
        assert_eq!(load.line(), "running", "{}", load.name);
    }
    let args = ["move", "cutover", "--pause", "1s", "--rollback-within", "0", "--data", &data];
    println!("{}", until_done(&args).trim());
    let mut failed = Vec::new();
    for load in &mut loads {
        load.child.stdin.as_mut().expect("its input").write_all(b"end\n").expect("it waits");
    }
    for mut load in loads {
        let lines: Vec<String> =
            std::iter::from_fn(|| Some(load.line()).filter(|line| !line.is_empty())).collect();
        let is_well = load.child.wait().expect("its end").success();
        let last = lines.last().cloned().unwrap_or_default();
        println!("{}: {last}", load.name);
        let has_found = (1..=3).any(|node| last.contains(&format!("127.0.0.{node}")));
        if !is_well || !last.starts_with("ok ") || !has_found {
            failed.push(format!("{}: {lines:#?}", load.name));
        }
    }
    assert!(failed.is_empty(), "{}\n{}", failed.join("\n"), server.log());
    target.run(&format!("DROP KEYSPACE {KEYSPACE}"));
}

/// A running program.
struct Load {
    name: &'static str,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Load {
    fn start(client: Client, name: &'static str) -> Load {
        let mut command = client.load_across_a_cut(LISTEN, KEYSPACE);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Load { name, child, output }
    }

    /// Its next line; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }
}
