//! Equal tables with and without indexes: a drawn SELECT answers the same rows in the same order from both, whole and in pages of two.
//!
//! `INDEX_TABLES` pairs of tables, the first of seed `INDEX_SEED`. A failing run prints both and the statement.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "pages/drawn.rs"]
#[allow(dead_code, reason = "its random numbers are used here")]
mod drawn;
mod support;

use drawn::Random;
use support::{KEYSPACE, Server};

type Row = Vec<Option<Vec<u8>>>;

/// Statements for each pair of tables.
const STATEMENTS: usize = 60;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn one<'c>(random: &mut Random, choices: &[&'c str]) -> &'c str {
    choices[random.below(choices.len() as u64) as usize]
}

/// Doubles, with NaNs of both signs: their bits differ, and they are equal.
const DOUBLES: &[&str] = &[
    "NaN",
    "blob_as_double(0xfff8000000000000)",
    "blob_as_double(0x7ff8000000000001)",
    "0.0",
    "-0.0",
    "1.5",
    "Infinity",
    "-Infinity",
];

/// A column and what its conditions compare it with. `c`, `d`, `e` and `n` are clustering columns.
const COLUMNS: [(&str, &str, &[&str]); 10] = [
    ("k", "int", &["0", "1", "2", "3"]),
    ("c", "int", &["0", "1", "2", "3"]),
    ("d", "decimal", &["0", "1", "1.0", "1.00", "2.5", "-1"]),
    ("e", "text", &["'a'", "'b'", "'B'", "''"]),
    ("n", "double", DOUBLES),
    ("s", "int static", &["0", "1", "2"]),
    ("v", "decimal", &["0", "1", "1.0", "1.00", "2.5", "-1", "1e3"]),
    ("w", "text", &["'a'", "'b'", "'B'", "'ab'"]),
    ("g", "double", DOUBLES),
    (
        "q",
        "frozen<tuple<int, double>>",
        &["(1, 1.5)", "(1, NaN)", "(1, blob_as_double(0xfff8000000000000))", "(2, 0.0)"],
    ),
];

fn values(column: &str) -> &'static [&'static str] {
    COLUMNS.iter().find(|(name, ..)| *name == column).unwrap().2
}

fn create(random: &mut Random) -> Vec<String> {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, ty, _)| format!("{name} {ty}")).collect();
    let orders: Vec<String> = ["c", "d", "e", "n"]
        .iter()
        .map(|column| format!("{column} {}", one(random, &["ASC", "DESC"])))
        .collect();
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} ({}, m map<text, int>, l set<int>, f frozen<list<int>>, PRIMARY KEY (k, c, d, e, n)) WITH \
             CLUSTERING ORDER BY ({})",
            columns.join(", "),
            orders.join(", ")
        )
    };
    let mut all = vec![table("plain"), table("indexed")];
    let indexed =
        ["c", "d", "e", "n", "s", "v", "w", "g", "q", "keys(m)", "values(m)", "entries(m)", "l", "full(f)"];
    for of in indexed {
        if random.below(100) < 45 {
            let kind = one(random, &["", " USING 'sai'"]);
            // One column may have several indexes of one kind only if these are of other parts of it.
            all.push(format!("CREATE INDEX ON indexed ({of}){kind}"));
        }
    }
    all
}

/// A statement with `TABLE` for the table.
fn write(random: &mut Random) -> String {
    let of = |random: &mut Random, column| one(random, values(column)).to_owned();
    let (k, c, d, e) = (of(random, "k"), of(random, "c"), of(random, "d"), of(random, "e"));
    // Of few doubles, so that rows are written again.
    let n = one(random, &DOUBLES[..4]);
    let row = format!("k = {k} AND c = {c} AND d = {d} AND e = {e} AND n = {n}");
    let (g, q) = (of(random, "g"), of(random, "q"));
    let (v, w, s) = (of(random, "v"), of(random, "w"), of(random, "s"));
    let (a, b) = (random.below(3), random.below(3));
    match random.below(28) {
        0 => format!("DELETE FROM TABLE WHERE k = {k} AND c = {c}"),
        1 => format!("DELETE FROM TABLE WHERE {row}"),
        2 => format!("DELETE FROM TABLE WHERE k = {k} AND (c, d) > ({c}, {d})"),
        3 => format!("UPDATE TABLE SET v = null, w = null WHERE {row}"),
        4 | 5 => format!("UPDATE TABLE SET s = {s} WHERE k = {k}"),
        6 | 7 => format!("UPDATE TABLE SET m['x{a}'] = {b}, l = l + {{{a}}} WHERE {row}"),
        8 => format!("UPDATE TABLE SET m = {{'x{a}': {b}, 'y': 1}}, l = l - {{{b}}} WHERE {row}"),
        9 => format!("UPDATE TABLE SET f = [{a}, {b}] WHERE {row}"),
        10 => format!("DELETE m['x{a}'] FROM TABLE WHERE {row}"),
        11..=13 => format!("UPDATE TABLE SET g = {g}, q = {q} WHERE {row}"),
        14 => format!("DELETE FROM TABLE WHERE k = {k} AND (c, d, e, n) <= ({c}, {d}, {e}, {n})"),
        _ => format!("UPDATE TABLE SET v = {v}, w = {w} WHERE {row}"),
    }
}

/// One condition; `None` for columns that have one.
fn condition(random: &mut Random, used: &mut Vec<&'static str>) -> Option<String> {
    let mut free = |names: &[&'static str]| {
        let is_free = names.iter().all(|name| !used.contains(name));
        used.extend(names);
        is_free
    };
    let compare = ["=", "=", "<", "<=", ">", ">="];
    let (a, b) = (random.below(3), random.below(3));
    match random.below(16) {
        0..=6 => {
            let (name, _, values) = COLUMNS[random.below(COLUMNS.len() as u64) as usize];
            let sign = if name == "k" { "=" } else { one(random, &compare) };
            free(&[name]).then(|| format!("{name} {sign} {}", one(random, values)))
        }
        7 | 8 => {
            let (name, _, values) = COLUMNS[random.below(5) as usize];
            free(&[name]).then(|| format!("{name} IN ({}, {})", one(random, values), one(random, values)))
        }
        9..=12 => {
            let all =
                [&["c", "d"][..], &["c", "d", "e"], &["d", "e"], &["c"], &["c", "d", "e", "n"], &["e", "n"]];
            let columns = all[random.below(6) as usize];
            if !free(columns) {
                return None;
            }
            let tuple = |random: &mut Random| {
                let all: Vec<&str> = columns.iter().map(|column| one(random, values(column))).collect();
                format!("({})", all.join(", "))
            };
            let names = columns.join(", ");
            Some(match random.below(4) {
                0 => format!("({names}) IN ({}, {})", tuple(random), tuple(random)),
                1 => format!("({names}) >= {} AND ({names}) < {}", tuple(random), tuple(random)),
                _ => format!("({names}) {} {}", one(random, &compare), tuple(random)),
            })
        }
        13 => free(&["m"]).then(|| {
            let all =
                [format!("m CONTAINS {b}"), format!("m CONTAINS KEY 'x{a}'"), format!("m['x{a}'] = {b}")];
            all[random.below(3) as usize].clone()
        }),
        14 => free(&["l"]).then(|| format!("l CONTAINS {a}")),
        _ => free(&["f"]).then(|| format!("f = [{a}, {b}]")),
    }
}

fn select(random: &mut Random) -> String {
    let what = one(random, &["*", "k, c, d, e, n, v", "k, s", "g, q", "count(*)", "DISTINCT k, s", "w, v"]);
    let mut used = Vec::new();
    let conditions: Vec<String> =
        (0..1 + random.below(3)).filter_map(|_| condition(random, &mut used)).collect();
    let conditions = if conditions.is_empty() { vec!["v > 0".to_owned()] } else { conditions };
    let limit = one(random, &["", "", "", " LIMIT 3", " PER PARTITION LIMIT 2"]);
    format!("SELECT {what} FROM TABLE WHERE {}{limit} ALLOW FILTERING", conditions.join(" AND "))
}

fn rows(server: &Server, text: &str, table: &str, size: Option<u32>) -> Result<Vec<Row>, String> {
    let text = text.replace("TABLE", table);
    let (mut rows, mut state) = (Vec::new(), None::<Vec<u8>>);
    for _ in 0..1000 {
        let page = size.map(|size| (size, state.as_deref()));
        let answer = server.select(&text, page).map_err(|error| error.to_string())?;
        rows.extend(answer.rows);
        state = answer.paging_state;
        if state.is_none() {
            return Ok(rows);
        }
    }
    panic!("{text}: pages do not come to an end");
}

#[test]
fn a_table_with_indexes_answers_as_one_without() {
    let (tables, first) = (number("INDEX_TABLES", 25), number("INDEX_SEED", 1));
    let mut compared = 0;
    for seed in first..first + tables {
        let mut random = Random(seed);
        let server = Server::open(seed);
        server.run(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        let mut script = String::new();
        for text in create(&mut random) {
            if server.try_run(&text).is_ok() {
                script.push_str(&format!("{text};\n"));
            }
        }
        server.machine().run_until_idle();
        for at in 0..40 + random.below(40) {
            let text = write(&mut random);
            script.push_str(&format!("{text};\n"));
            for table in ["plain", "indexed"] {
                server.run(&text.replace("TABLE", table));
            }
            if at % 25 == 24 && seed % 2 == 0 {
                server.flush();
            }
        }
        for _ in 0..STATEMENTS {
            let text = select(&mut random);
            let Ok(plain) = rows(&server, &text, "plain", None) else { continue };
            // What an index alone refuses, as a value that it cannot hold, is no answer.
            let Ok(indexed) = rows(&server, &text, "indexed", None) else { continue };
            compared += 1;
            assert_eq!(indexed, plain, "seed {seed}\n{script}{text}");
            let paged = rows(&server, &text, "indexed", Some(2)).unwrap();
            assert_eq!(paged, plain, "in pages of two; seed {seed}\n{script}{text}");
        }
    }
    assert!(compared as u64 > tables * 10, "only {compared} statements were valid");
    println!("{compared} statements compared");
}
