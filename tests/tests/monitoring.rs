//! Tests the HTTP port, the log and the failure policies of the real binary from outside.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Client, Server, files, root};
use serde_json::Value;

/// Maximum time for the server's own reactions.
const SOON: Duration = Duration::from_secs(60);

/// The address that the server printed at its start after a key word.
fn address_of(server: &Server, word: &str) -> String {
    let line = server.head().iter().find_map(|line| line.strip_prefix(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in {:?}", server.head()));
    line.split_whitespace().next().expect("an address").to_owned()
}

/// The status and the body of a GET.
fn get(address: &str, path: &str) -> (u16, String) {
    ask(address, "GET", path)
}

fn ask(address: &str, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the HTTP port");
    stream.set_read_timeout(Some(SOON)).expect("a socket option");
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"))
}

/// Waits until a reaction of the server has happened.
fn soon(what: &str, server: &Server, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < SOON, "{what} did not come to pass\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn table(client: &mut Raw) {
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))");
}

/// The value of a sample with this name and these labels.
fn sample(families: &Value, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let samples =
        families.as_array()?.iter().flat_map(|family| family["samples"].as_array().into_iter().flatten());
    let mut found = samples.filter(|sample| sample[0] == name);
    let found = found.find(|sample| labels.iter().all(|(label, value)| sample[1][label] == *value))?;
    found[2].as_f64()
}

/// The names of Helenus's metrics in a text.
fn named_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = words.filter(|word| word.starts_with("helenus_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

#[test]
fn prometheus_reads_the_figures_and_they_are_those_of_the_requests() {
    let server = Server::start_with(&["--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"]);
    let http = address_of(&server, "http ");
    let mut client = Raw::ready(server.address(), 4);
    table(&mut client);
    for row in 0..50 {
        client.run(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, 'v')", row % 5));
    }
    for row in 0..30 {
        client.run(&format!("SELECT v FROM k.t WHERE k = {}", row % 5));
    }
    client.run("DELETE FROM k.t WHERE k = 1 AND c = 1");
    client.run("SELECT * FROM k.t");
    assert_ne!(client.query("SELECT nothing FROM k.t").opcode, RESULT);
    server.admin(&["flush", "k", "t"]);
    for row in 0..20 {
        client.run(&format!("SELECT v FROM k.t WHERE k = {}", row % 5));
    }

    let families = Client::scrape(&format!("http://{http}/metrics"));
    let of_table = [("keyspace", "k"), ("table", "t")];
    let value = |name: &str, labels: &[(&str, &str)]| {
        sample(&families, name, labels).unwrap_or_else(|| panic!("{name}{labels:?} is missing"))
    };
    assert_eq!(value("helenus_table_writes_total", &of_table), 51.0);
    assert_eq!(value("helenus_table_reads_total", &of_table), 50.0);
    assert_eq!(value("helenus_table_scans_total", &of_table), 1.0);
    assert_eq!(value("helenus_table_sstables", &of_table), 1.0);
    assert_eq!(value("helenus_table_flushes_total", &of_table), 1.0);
    assert_eq!(value("helenus_errors_total", &[("kind", "INVALID")]), 1.0);
    assert_eq!(value("helenus_connections", &[]), 1.0);
    assert_eq!(value("helenus_ready", &[]), 1.0);
    assert!(value("helenus_commitlog_sync_seconds_count", &[]) >= 1.0);
    assert!(value("helenus_table_sstables_per_read_count", &of_table) >= 1.0);
    // The same values under Cassandra's names.
    let cassandra = |name: &str| format!("org_apache_cassandra_metrics_{name}");
    assert_eq!(value(&cassandra("table_write_latency_count"), &of_table), 51.0);
    assert_eq!(value(&cassandra("table_read_latency_count"), &of_table), 50.0);
    assert_eq!(value(&cassandra("table_live_ss_table_count"), &of_table), 1.0);
    let quantile = [("keyspace", "k"), ("table", "t"), ("quantile", "0.99"), ("datacenter", "datacenter1")];
    assert!(value(&cassandra("table_read_latency"), &quantile) > 0.0);
    assert!(value(&cassandra("client_request_latency_count"), &[("request_type", "Write")]) >= 51.0);
    // The same value in system_views, for clients.
    let mut rows = client.query(
        "SELECT count FROM system_views.local_read_latency WHERE keyspace_name = 'k' AND table_name = 't'",
    );
    let count = rows.body.split_off(rows.body.len() - 8);
    assert_eq!(i64::from_be_bytes(count.try_into().expect("eight bytes")), 50);

    assert!(!get(&http, "/metrics").1.contains("keyspace=\"system"), "tables of the system are left out");

    let dashboard = fs::read_to_string(root().join("docs/grafana/helenus.json")).expect("the dashboard");
    json(&dashboard);
    let (_, page) = get(&http, "/metrics");
    let there = named_in(&page);
    let missing: Vec<_> = named_in(&dashboard).into_iter().filter(|name| !there.contains(name)).collect();
    assert!(missing.is_empty(), "the dashboard asks for what is not there: {missing:?}");
    let book = fs::read_to_string(root().join("docs/book/monitoring.md")).expect("the page");
    let missing: Vec<_> = named_in(&book)
        .into_iter()
        .filter(|name| !there.iter().any(|metric| metric.starts_with(name.as_str())))
        .collect();
    assert!(missing.is_empty(), "the book names what is not there: {missing:?}");

    assert_eq!(
        get(&http, "/ready"),
        (200, format!("{{\"listening\":\"{}\",\"ready\":true}}\n", server.address()))
    );
    let (status, health) = get(&http, "/health");
    assert_eq!((status, &json(&health)["status"]), (200, &"up".into()));
    assert_eq!(get(&http, "/else").0, 404);
    assert_eq!(ask(&http, "POST", "/metrics").0, 405);
}

/// The entries of a JSON log; each line must be one.
fn entries(server: &Server) -> Vec<Value> {
    server.log().lines().map(json).collect()
}

/// The first entry of this kind. It may come after the answer, because the log is written asynchronously.
fn entry(server: &Server, event: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut found = None;
    soon(event, server, || {
        found = entries(server).into_iter().find(|entry| entry["event"] == event && is_it(entry));
        found.is_some()
    });
    found.expect("an entry")
}

#[test]
fn the_log_tells_what_happens_as_json_and_slow_statements_with_what_they_touched_and_no_value() {
    let args = ["--log-format", "json", "--log-level", "debug", "--slow-query-log-timeout", "1ms"];
    let mut server = Server::start_with(&args);
    assert!(server.head().iter().all(|line| json(line)["event"].is_string()), "{:?}", server.head());
    let mut client = Raw::ready(server.address(), 4);
    table(&mut client);
    let filler = "f".repeat(300);
    for row in 0..3_000 {
        client.run(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, 'secret-{filler}')", row % 50));
    }
    assert_ne!(
        client.query("SELECT * FROM k.t WHERE v = 'secret-2'").opcode,
        RESULT,
        "without ALLOW FILTERING"
    );
    server.admin(&["flush", "k", "t"]);
    soon("a slow statement with its probe", &server, || {
        client.run("SELECT k FROM k.t WHERE v = 'secret-3' ALLOW FILTERING");
        entries(&server).iter().any(|entry| {
            entry["event"] == "slow_statement"
                && entry["statement"] == "SELECT k FROM k.t WHERE v = ? ALLOW FILTERING"
                && entry["probe"]["rows_filtered"].as_u64() > Some(0)
        })
    });
    let changed = entry(&server, "schema_changed", |_| true);
    assert_eq!((&changed["name"], &changed["change"]), (&"k".into(), &"created".into()));
    let flushed = entry(&server, "flushed", |entry| entry["keyspace"] == "k");
    assert!(flushed["bytes"].as_u64() > Some(0));
    let failed = entry(&server, "statement_failed", |_| true);
    assert_eq!(failed["level"], "debug");
    assert_eq!(failed["statement"], "SELECT * FROM k.t WHERE v = ?");
    assert!(!server.log().contains("secret"), "no value is logged: {}", server.log());
    server.stop();
}

/// A framed call of Thrift RPC, and its answer.
fn call(rpc: &mut TcpStream, name: &str, arguments: &[u8]) -> Vec<u8> {
    let mut message = 0x8001_0001_u32.to_be_bytes().to_vec();
    message.extend_from_slice(&(name.len() as u32).to_be_bytes());
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&[0, 0, 0, 9]);
    message.extend_from_slice(arguments);
    rpc.write_all(&(message.len() as u32).to_be_bytes())
        .and_then(|()| rpc.write_all(&message))
        .expect("sent");
    let mut length = [0; 4];
    rpc.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    rpc.read_exact(&mut answer).expect("a whole answer");
    answer
}

/// The arguments of `execute_cql3_query`: the uncompressed text, at consistency ONE.
fn statement(text: &str) -> Vec<u8> {
    let mut bytes = vec![11, 0, 1];
    bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(&[8, 0, 2, 0, 0, 0, 2, 8, 0, 3, 0, 0, 0, 1, 0]);
    bytes
}

#[test]
fn calls_of_the_old_interface_are_counted_and_logged_as_statements_are() {
    let args = ["--log-format", "json", "--log-level", "debug", "--slow-query-log-timeout", "1ms"];
    let server =
        Server::start_with(&[&args[..], &["--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]].concat());
    let address = |event: &str| {
        let line = server.head().iter().map(|line| json(line)).find(|line| line["event"] == event);
        let message = line.expect("the line of a door")["message"].as_str().unwrap_or_default().to_owned();
        message.split_whitespace().next().expect("an address").to_owned()
    };
    let (rpc, http) = (address("rpc"), address("http"));
    let mut client = Raw::ready(server.address(), 4);
    table(&mut client);
    // 30 MB to decompress take more than a tick of the clock on any machine.
    let filler = "f".repeat(10_000);
    for row in 0..3_000 {
        client.run(&format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, 'secret-{filler}')", row % 50));
    }
    server.admin(&["flush", "k", "t"]);
    let mut rpc = TcpStream::connect(rpc).expect("the door of the old interface");
    rpc.set_read_timeout(Some(SOON)).expect("a socket option");
    let slow = statement("SELECT k FROM k.t WHERE v = 'secret-3' ALLOW FILTERING");
    soon("a slow call with its probe", &server, || {
        forget_pages(&server);
        call(&mut rpc, "execute_cql3_query", &slow);
        entries(&server).iter().any(|entry| {
            entry["event"] == "slow_statement"
                && entry["kind"] == "rpc_query"
                && entry["statement"] == "SELECT k FROM k.t WHERE v = ? ALLOW FILTERING"
                && entry["client"].is_string()
                && entry["probe"]["rows_filtered"].as_u64() > Some(0)
        })
    });
    call(&mut rpc, "execute_cql3_query", &statement("SELECT nothing FROM k.t WHERE v = 'secret-4'"));
    let told = String::from_utf8_lossy(&call(&mut rpc, "no_such_call", &[0])).into_owned();
    assert!(told.contains("Invalid method name"), "{told}");
    let failed = |code: &str| entry(&server, "statement_failed", |entry| entry["code"] == code);
    assert_eq!(failed("InvalidRequestException")["statement"], "SELECT nothing FROM k.t WHERE v = ?");
    assert_eq!(failed("UNKNOWN_METHOD")["statement"], "a message that is no call");
    let families = Client::scrape(&format!("http://{http}/metrics"));
    let value = |name: &str, labels: &[(&str, &str)]| sample(&families, name, labels);
    assert_eq!(value("helenus_rpc_errors_total", &[("kind", "InvalidRequestException")]), Some(1.0));
    assert_eq!(value("helenus_rpc_errors_total", &[("kind", "UNKNOWN_METHOD")]), Some(1.0));
    assert_eq!(value("helenus_rpc_errors_total", &[("kind", "TimedOutException")]), Some(0.0));
    assert_eq!(value("helenus_rpc_connections", &[]), Some(1.0));
    assert!(value("helenus_rpc_calls_total", &[]) >= Some(3.0));
    assert!(value("helenus_slow_statements_total", &[]) >= Some(1.0));
    assert!(!server.log().contains("secret"), "no value is logged: {}", server.log());
}

/// The Data.db of the table's first SSTable.
fn data_file(server: &Server) -> PathBuf {
    let folders = fs::read_dir(server.tables().join("k")).expect("the keyspace's folder");
    let folder = folders.map(|folder| folder.expect("an entry").path()).next().expect("the table's");
    files::tables(&folder).first().expect("an SSTable").clone()
}

/// Drops the table's data from the system's page cache, so that a read waits for the disk.
fn forget_pages(server: &Server) {
    let file = format!("if={}", data_file(server).display());
    let dd = Command::new("dd").args([&file, "iflag=nocache", "count=0", "status=none"]).status();
    assert!(dd.expect("dd is there").success());
}

/// Flips a bit of the table's data.
fn damage(server: &Server) {
    let path = data_file(server);
    let mut bytes = fs::read(&path).expect("its data");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&path, bytes).expect("written back");
}

#[test]
fn a_damaged_file_closes_the_doors_where_the_policy_says_so_and_one_statement_where_it_does_not() {
    let mut server = Server::start_with(&["--http", "127.0.0.1:0"]);
    let mut client = Raw::ready(server.address(), 4);
    table(&mut client);
    client.run("INSERT INTO k.t (k, c, v) VALUES (1, 1, 'v')");
    server.admin(&["flush", "k", "t"]);
    server.stop();
    damage(&server);

    server.restart();
    let http = address_of(&server, "http ");
    let mut client = Raw::ready(server.address(), 4);
    assert_ne!(client.query("SELECT v FROM k.t WHERE k = 1").opcode, RESULT);
    client.run("INSERT INTO k.t (k, c, v) VALUES (2, 1, 'v')");
    assert_eq!((get(&http, "/ready").0, get(&http, "/health").0), (200, 200), "ignore: the rest goes on");
    soon("a line with file and offset", &server, || {
        let log = server.log();
        log.contains("read_failed: k.t") && log.contains("-Data.db at byte")
    });
    server.stop();

    server.add_args(&["--disk-failure-policy", "stop_paranoid"]);
    server.restart();
    let http = address_of(&server, "http ");
    let mut client = Raw::ready(server.address(), 4);
    assert_eq!(get(&http, "/ready").0, 200);
    let _an_error_or_the_end = client.try_query("SELECT v FROM k.t WHERE k = 1");
    soon("an unready answer", &server, || get(&http, "/ready").0 == 503);
    soon("closed doors", &server, || TcpStream::connect(server.address()).is_err());
    let (status, health) = get(&http, "/health");
    assert_eq!((status, &json(&health)["status"]), (503, &"failing".into()));
    soon("a line of the policy", &server, || {
        server.log().contains("failure_policy: clients are no longer served, as disk_failure_policy says")
    });
    assert!(server.admin(&["status"]).contains("k"), "the owner is still answered");
    assert!(server.stop().success());
}
