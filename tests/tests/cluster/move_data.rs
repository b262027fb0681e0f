//! `helenus move`: rows of every kind go to the cluster under writes and a kill -9 of the server; then each cell is compared by
//! CQL from both sides, with its timestamp and TTL.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use end_to_end::{Cql, Server, draw, refused, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::ring::Ring;

/// Tables with the columns that are compared; the first number is that of key columns.
const TABLES: [(&str, &[&str], &[&str]); 3] = [
    ("mv_ks.kinds", &["p", "c"], &["st", "sm", "a", "b", "m", "s", "l", "u", "f"]),
    ("mv_ks.wide", &["p", "c"], &["v"]),
    ("mv_ks.\"Keys\"", &["\"P\""], &[]),
];
/// Columns whose elements have times of their own.
const OF_SEVERAL_CELLS: [&str; 5] = ["sm", "m", "s", "l", "u"];
/// Rows of the wide partition.
const WIDE: u32 = 3_000;
/// How long the tail may take.
const PATIENCE: Duration = Duration::from_secs(90);
/// Seconds by which a TTL may differ: it is sent as what is left.
const TTL_SLACK_S: i64 = 3;

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
    let mut server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let moving = |args: &[&str]| {
        let all: Vec<&str> = ["move"].iter().chain(args).copied().chain(["--data", &data]).collect();
        tool(&all)
    };
    make(&Cql::connect(server.address()));
    let target = Cql::connect(&ring.address(1)).at_all();
    target.run("DROP KEYSPACE IF EXISTS mv_ks");
    let mut random = draw::Draw::new("move", 7);
    fill(&Cql::connect(server.address()), &mut random, 400);
    let to = ring.address(1);
    let plan: Value =
        serde_json::from_str(&moving(&["plan", "--to", &to, "--tables", "mv_ks", "--json"])).expect("a plan");
    assert_eq!(plan["problems"].as_array().map(Vec::len), Some(0), "{plan}");
    assert!(plan["to_make"].to_string().contains("mv_ks.place"), "{plan}");
    let wrong = refused(&["move", "start", "--to", "127.0.0.1:1", "--data", &data]);
    assert!(wrong.contains("127.0.0.1:1"), "{wrong}");
    moving(&["start", "--to", &to, "--tables", "mv_ks", "--rows-per-second", "2000"]);
    fill(&Cql::connect(server.address()), &mut random, 150);
    server.kill();
    server.restart();
    let source = Cql::connect(server.address());
    fill(&source, &mut random, 150);
    let began = Instant::now();
    loop {
        let status: Value = serde_json::from_str(&moving(&["status", "--json"])).expect("a status");
        let tables = status["tables"].as_array().expect("tables").clone();
        assert!(tables.iter().all(|table| table["phase"] != "stopped"), "{status}");
        let is_there = |table: &Value| table["phase"] == "tail" && table["lag_s"] == 0.0;
        let differing = match tables.iter().all(is_there) {
            true => compare(&source, &target),
            false => vec![status.to_string()],
        };
        if differing.is_empty() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{differing:#?}\n{}", server.log());
    }
    assert!(refused(&["move", "start", "--to", &to, "--data", &data]).contains("under way"));
    assert!(moving(&["abort"]).contains("ended"));
    let cdc = source
        .rows("SELECT cdc FROM system_schema.tables WHERE keyspace_name = 'mv_ks' AND table_name = 'wide'");
    assert_eq!(format!("{:?}", cdc[0][0]), "Some(Boolean(false))");
    assert!(refused(&["move", "status", "--data", &data]).contains("no move is under way"));
    target.run("DROP KEYSPACE mv_ks");
}

fn make(cql: &Cql) {
    for text in [
        "CREATE KEYSPACE mv_ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TYPE mv_ks.place (street text, number int)",
        "CREATE TABLE mv_ks.kinds (p int, c int, st int static, sm map<int, text> static, a int, b text, m map<text, int>, s set<int>, \
         l list<text>, u place, f frozen<list<int>>, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)",
        "CREATE TABLE mv_ks.wide (p int, c int, v text, PRIMARY KEY (p, c))",
        "CREATE TABLE mv_ks.\"Keys\" (\"P\" text PRIMARY KEY)",
        "INSERT INTO mv_ks.\"Keys\" (\"P\") VALUES ('it''s')",
    ] {
        cql.run(text);
    }
    for hundred in 0..WIDE / 100 {
        let rows: Vec<String> = (0..100)
            .map(|row| {
                let c = hundred * 100 + row;
                format!(
                    "INSERT INTO mv_ks.wide (p, c, v) VALUES (1, {c}, 'value {c}') USING TIMESTAMP {}",
                    10 + c
                )
            })
            .collect();
        cql.run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.join("; ")));
    }
    cql.run("DELETE FROM mv_ks.wide USING TIMESTAMP 1500 WHERE p = 1 AND c > 100 AND c <= 2000");
}

/// Runs drawn writes of every kind.
fn fill(cql: &Cql, random: &mut draw::Draw, count: u32) {
    for _ in 0..count {
        let number = random.below(1000);
        let row = format!("p = {} AND c = {}", random.below(12), random.below(5));
        let partition = row.split(" AND ").next().unwrap_or_default();
        let ttl = if random.below(4) == 0 { "USING TTL 4000 " } else { "" };
        let set = match random.below(10) {
            0 => format!("a = {number}, b = 'text {number}'"),
            1 => format!("m['k{}'] = {number}", number % 3),
            2 => format!("m = {{'k': {number}}}, s = {{1, {number}}}"),
            3 => format!("s = s - {{1}}, s = s + {{{number}}}")
                .split(", s =")
                .next()
                .unwrap_or_default()
                .to_owned(),
            4 => format!("l = l + ['{number}']"),
            5 => format!("l = ['a', 'b{number}'], a = null"),
            6 => format!("u.street = 'street {number}'"),
            7 => format!("u = {{street: 'x', number: {number}}}, f = [1, {number}]"),
            8 => "b = null, u.number = null".to_owned(),
            _ => format!("l = ['{number}'] + l"),
        };
        let statement = match random.below(14) {
            0 => format!(
                "INSERT INTO mv_ks.kinds (p, c, a) VALUES ({}, {}, {number}) {ttl}",
                number % 12,
                number % 5
            ),
            1 => format!(
                "UPDATE mv_ks.kinds {ttl}SET st = {number}, sm[{}] = 'x' WHERE {partition}",
                number % 3
            ),
            2 => format!("DELETE m['k'], b, s FROM mv_ks.kinds WHERE {row}"),
            3 => format!("DELETE FROM mv_ks.kinds WHERE {row}"),
            4 => format!("DELETE FROM mv_ks.kinds WHERE {partition} AND c >= {} AND c < 5", number % 5),
            5 if number < 100 => format!("DELETE FROM mv_ks.kinds WHERE {partition}"),
            6 => format!("INSERT INTO mv_ks.wide (p, c, v) VALUES (1, {number}, 'again {number}') {ttl}"),
            _ => format!("UPDATE mv_ks.kinds {ttl}SET {set} WHERE {row}"),
        };
        cql.run(&statement);
    }
}

/// Cells by table and key, in words; the second number is a TTL.
type Cells = BTreeMap<String, (String, i64)>;

fn cells(cql: &Cql, (table, keys, columns): (&str, &[&str], &[&str])) -> Cells {
    let mut all = BTreeMap::new();
    let key = keys.join(", ");
    for row in cql.rows(&format!("SELECT {key} FROM {table}")) {
        all.insert(format!("{table} {row:?}"), (String::new(), 0));
    }
    for column in columns {
        let values = cql.rows(&format!("SELECT {key}, {column} FROM {table}"));
        // TTLs differ by what has passed, so their shape is compared and the first one.
        let times: Vec<(String, String)> = match OF_SEVERAL_CELLS.contains(column) {
            true => {
                let times = cql.times_of_elements(column, table);
                times.iter().map(|(times, ttls)| (format!("{times:?}"), format!("{ttls:?}"))).collect()
            }
            false => {
                let times = cql.rows(&format!("SELECT WRITETIME({column}), TTL({column}) FROM {table}"));
                times.iter().map(|row| (format!("{:?}", row[0]), format!("{:?}", row[1]))).collect()
            }
        };
        assert_eq!(values.len(), times.len(), "{table} {column}");
        for (row, (times, ttls)) in values.iter().zip(times) {
            let (of, value) = row.split_at(keys.len());
            let digits = |text: &str| {
                text.split(|sign: char| !sign.is_ascii_digit()).find_map(|part| part.parse().ok())
            };
            let shape: String = ttls.chars().filter(|sign| !sign.is_ascii_digit()).collect();
            let value = format!("{value:?} @{times} {shape}");
            all.insert(format!("{table} {of:?} {column}"), (value, digits(&ttls).unwrap_or(0)));
        }
    }
    all
}

/// What differs between both sides.
fn compare(source: &Cql, target: &Cql) -> Vec<String> {
    let mut lines = Vec::new();
    for table in TABLES {
        let (here, there) = (cells(source, table), cells(target, table));
        for name in here.keys().chain(there.keys()) {
            let (one, other) = (here.get(name), there.get(name));
            let is_same = match (one, other) {
                (Some((one, ttl)), Some((other, other_ttl))) => {
                    one == other && (ttl - other_ttl).abs() <= TTL_SLACK_S
                }
                _ => false,
            };
            if !is_same {
                lines.push(format!("{name}: {one:?} here, {other:?} there"));
            }
        }
    }
    lines.truncate(20);
    lines
}
