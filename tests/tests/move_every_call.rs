//! A move whose target fails at every call: the connection ends at the n-th request of the mover, before it arrives or before its answer
//! does, for every n that a small move has. Whatever fails, both sides are equal at the end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use end_to_end::draw::{Draw, rounds};
use end_to_end::{Cql, Server, tool};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
/// Packets of the mover that a small move has, about.
const CALLS: usize = 120;

/// A way to the target on which one packet fails.
struct Proxy {
    address: String,
    /// Packets that pass until one fails.
    left: Arc<AtomicUsize>,
}

impl Proxy {
    fn to(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let (target, of_all) = (target.to_owned(), Arc::clone(&left));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(node) = TcpStream::connect(&target) else { continue };
                let left = Arc::clone(&of_all);
                std::thread::spawn(move || connection(&client, &node, &left));
            }
        });
        Proxy { address, left }
    }
}

fn connection(client: &TcpStream, node: &TcpStream, left: &AtomicUsize) {
    let (mut from_node, mut to_client) =
        (node.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
    let back = std::thread::spawn(move || {
        let _ended = std::io::copy(&mut from_node, &mut to_client);
        let _closed = to_client.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (client, node);
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let before = left.fetch_sub(1, Ordering::AcqRel);
        if before == 1 {
            // The answers of this packet are lost, and with an even count the packet too.
            let _closed = client.shutdown(Shutdown::Both);
            if count % 2 == 0 {
                let _closed = node.shutdown(Shutdown::Both);
                break;
            }
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _closed = (client.shutdown(Shutdown::Both), node.shutdown(Shutdown::Write));
    back.join().expect("the way back");
}

fn rows(cql: &Cql) -> Vec<String> {
    let selects = [
        "SELECT k, c, v, WRITETIME(v), s FROM calls.t",
        "SELECT k, m, l FROM calls.t",
        "SELECT index_name, options FROM system_schema.indexes WHERE keyspace_name = 'calls'",
        "SELECT table_name, comment, default_time_to_live FROM system_schema.tables WHERE keyspace_name = 'calls'",
    ];
    let rows = selects.iter().flat_map(|select| cql.rows(select));
    let mut rows: Vec<String> = rows.map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[test]
fn both_sides_are_equal_whichever_call_fails() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let proxy = Proxy::to(target.address());
    let (here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    here.run("CREATE KEYSPACE calls WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    let mut draw = Draw::new("failing calls", 51);
    for round in 0..rounds(8) {
        here.run("CREATE TABLE calls.t (k int, c int, v text, s text static, m map<text, int>, l list<int>, PRIMARY KEY (k, c)) WITH comment = 'x'");
        here.run("CREATE INDEX of_v ON calls.t (v)");
        for k in 0..20 {
            here.run(&format!(
                "INSERT INTO calls.t (k, c, v, s, m, l) VALUES ({k}, 1, 'a', 's', {{'x': {k}}}, [1, {k}])"
            ));
        }
        let fails_at = 1 + draw.below(CALLS);
        proxy.left.store(fails_at, Ordering::Release);
        let began = Instant::now();
        // A plan that fails has started nothing.
        while !std::process::Command::new(end_to_end::binary())
            .args(["move", "start", "--to", &proxy.address, "--data", &data])
            .output()
            .expect("the tool runs")
            .status
            .success()
        {
            assert!(began.elapsed() < PATIENCE, "call {fails_at}: it does not start");
        }
        here.run("DELETE FROM calls.t WHERE k = 3");
        here.run("UPDATE calls.t SET l = l + [7], m['y'] = 1 WHERE k = 4 AND c = 1");
        if round % 2 == 0 {
            here.run("TRUNCATE calls.t");
        }
        here.run("INSERT INTO calls.t (k, c, v) VALUES (100, 1, 'late')");
        loop {
            let status: Value = serde_json::from_str(&tool(&["move", "status", "--json", "--data", &data]))
                .expect("a status");
            let table = &status["tables"][0];
            assert_ne!(table["phase"], "stopped", "call {fails_at}: {status}");
            if table["phase"] == "tail" && table["lag_s"] == 0.0 && rows(&here) == rows(&there) {
                break;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "call {fails_at}: {status}: {:#?}",
                (rows(&here), rows(&there))
            );
        }
        tool(&["move", "abort", "--data", &data]);
        here.run("DROP TABLE calls.t");
        there.run("DROP KEYSPACE calls");
    }
}
