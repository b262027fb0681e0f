//! Counters move under increments and deletions, through a kill -9 of the server and one of a node; then each has the same value.

use std::time::{Duration, Instant};

use end_to_end::{Cql, Server, draw, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::moving::wait_for_tail;
use crate::ring::Ring;

const TABLES: [(&str, &str); 2] =
    [("cut_counts.wide", "p, c, a, b"), ("cut_counts.statics", "p, c, total, n")];

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
    let mut server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let moving = |args: &[&str]| {
        let all: Vec<&str> = ["move"].iter().chain(args).copied().chain(["--data", &data]).collect();
        tool(&all)
    };
    let source = Cql::connect(server.address());
    for text in [
        "CREATE KEYSPACE cut_counts WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE cut_counts.wide (p int, c int, a counter, b counter, PRIMARY KEY (p, c))",
        "CREATE TABLE cut_counts.statics (p int, c int, total counter static, n counter, PRIMARY KEY (p, c))",
    ] {
        source.run(text);
    }
    let target = Cql::connect(&ring.address(1)).at_all();
    target.run("DROP KEYSPACE IF EXISTS cut_counts");
    let mut random = draw::Draw::new("counters", 11);
    count(&source, &mut random, 3_000);
    let to = ring.address(1);
    let plan: Value =
        serde_json::from_str(&moving(&["plan", "--to", &to, "--tables", "cut_counts", "--json"]))
            .expect("a plan");
    assert_eq!(plan["tables"].as_array().map(Vec::len), Some(2), "{plan}");
    moving(&["start", "--to", &to, "--tables", "cut_counts"]);
    count(&source, &mut random, 500);
    drop(source);
    // Additions are under way.
    server.kill();
    server.restart();
    let source = Cql::connect(server.address());
    count(&source, &mut random, 500);
    wait_for_tail(&data);
    ring.kill(3);
    count(&source, &mut random, 1_000);
    ring.restart(3);
    count(&source, &mut random, 200);
    source.run("DELETE FROM cut_counts.wide WHERE p = 3");
    source.run("DELETE FROM cut_counts.wide WHERE p = 4 AND c > 1 AND c <= 3");
    source.run("DELETE FROM cut_counts.statics WHERE p = 1 AND c = 1");
    wait_for_tail(&data);
    let began = Instant::now();
    loop {
        let differing = differences(&source, &target);
        if differing.is_empty() {
            break;
        }
        if began.elapsed() >= Duration::from_secs(120) {
            // A node alone may lack what the others have acknowledged.
            let nodes = [1, 2, 3].map(|node| differences(&source, &Cql::connect(&ring.address(node))));
            panic!("at ALL {differing:#?}\nat ONE, node by node {nodes:#?}\n{}", server.log());
        }
    }
    moving(&["abort"]);
    target.run("DROP KEYSPACE cut_counts");
}

/// Runs drawn increments, some of them by a negative number.
fn count(cql: &Cql, random: &mut draw::Draw, times: u32) {
    for _ in 0..times {
        let by = random.below(1000) as i64 - 300;
        let (p, c) = (random.below(5), random.below(6));
        let statement = match random.below(4) {
            0 => format!("UPDATE cut_counts.wide SET a = a + {by}, b = b + 1 WHERE p = {p} AND c = {c}"),
            1 => format!("UPDATE cut_counts.wide SET b = b - {by} WHERE p = {p} AND c = {c}"),
            2 => format!("UPDATE cut_counts.statics SET total = total + {by} WHERE p = {p}"),
            _ => format!("UPDATE cut_counts.statics SET n = n + {by} WHERE p = {p} AND c = {c}"),
        };
        cql.run(&statement);
    }
}

fn differences(source: &Cql, target: &Cql) -> Vec<String> {
    let mut lines = Vec::new();
    for (table, columns) in TABLES {
        let read = |cql: &Cql| -> Vec<String> {
            let rows = cql.rows(&format!("SELECT {columns} FROM {table}"));
            rows.iter().map(|row| format!("{row:?}")).collect()
        };
        let (here, there) = (read(source), read(target));
        assert!(here.len() >= 10, "{table} has rows: {here:?}");
        let only = |these: &[String], those: &[String], side: &str| -> Vec<String> {
            these
                .iter()
                .filter(|row| !those.contains(row))
                .map(|row| format!("{table} {side}: {row}"))
                .collect()
        };
        lines.extend(only(&here, &there, "here"));
        lines.extend(only(&there, &here, "there"));
    }
    lines
}
