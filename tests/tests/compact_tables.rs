//! Exchanges tables with COMPACT STORAGE between Cassandra and Helenus: each reads the other's files and statements and
//! then has equal tables and rows. Also tests that a backup is restored by the real binary.
//!
//! The tables are random, from a seed that is printed: `HELENUS_SEED` sets another seed, `HELENUS_ROUNDS` more tables.

use std::path::Path;

use end_to_end::draw::{Draw, rounds};
use end_to_end::{Cql, Oracle, Server, files, tool};
use tempfile::TempDir;

const TYPES: [&str; 10] = [
    "text",
    "ascii",
    "blob",
    "bigint",
    "int",
    "varint",
    "boolean",
    "timestamp",
    "frozen<list<int>>",
    "'org.apache.cassandra.db.marshal.DateType'",
];
const NAMES: [&str; 7] = ["value", "column1", "a", "value1", "\"Key\"", "key", "\"it's\""];
const REPLICATION: &str = "{'class': 'SimpleStrategy', 'replication_factor': 1}";

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn literal(ty: &str, number: usize) -> String {
    match ty {
        "text" | "ascii" => format!("'t{number}'"),
        "blob" => format!("0x0{number}"),
        "boolean" => "true".to_owned(),
        "timestamp" => format!("{number}000"),
        "frozen<list<int>>" => format!("[{number}]"),
        "'org.apache.cassandra.db.marshal.DateType'" => format!("{number}000"),
        _ => number.to_string(),
    }
}

/// Creates a table with rows, and in some cases drops one of its columns.
fn make(cql: &Cql, name: &str, draw: &mut Draw) {
    let mut names = NAMES.to_vec();
    let mut column = |draw: &mut Draw| (names.remove(draw.below(names.len())), *draw.one(&TYPES));
    let partition: Vec<_> = (0..1 + draw.below(2)).map(|_| column(draw)).collect();
    let clustering: Vec<_> = (0..draw.below(3)).map(|_| column(draw)).collect();
    let most = if clustering.is_empty() { 1 + draw.below(3) } else { draw.below(2) };
    let mut others: Vec<_> = (0..most).map(|_| column(draw)).collect();
    if draw.below(5) == 0 {
        others.iter_mut().for_each(|(_, ty)| *ty = "counter");
    }
    let columns = [&partition[..], &clustering, &others].concat();
    let declared: Vec<String> = columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    let joined = |of: &[(&str, &str)], end: &str| {
        of.iter().map(|(name, _)| format!("{name}{end}")).collect::<Vec<_>>().join(", ")
    };
    let key = if clustering.is_empty() { String::new() } else { format!(", {}", joined(&clustering, "")) };
    let order = match clustering.is_empty() || draw.below(2) == 0 {
        true => String::new(),
        false => format!(" AND CLUSTERING ORDER BY ({})", joined(&clustering, " DESC")),
    };
    cql.run(&format!(
        "CREATE TABLE {name} ({}, PRIMARY KEY (({}){key})) WITH COMPACT STORAGE AND comment = 'it''s; one'{order}",
        declared.join(", "),
        joined(&partition, "")
    ));
    let counts = others.iter().any(|(_, ty)| *ty == "counter");
    for _ in 0..12 {
        let stored = columns.iter().filter(|(_, ty)| *ty != "counter");
        let values: Vec<_> = stored.map(|(name, ty)| (*name, literal(ty, draw.below(5)))).collect();
        if counts {
            let at: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let count = others[0].0;
            cql.run(&format!("UPDATE {name} SET {count} = {count} + 2 WHERE {}", at.join(" AND ")));
        } else {
            let (names, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
            cql.run(&format!("INSERT INTO {name} ({}) VALUES ({})", names.join(", "), values.join(", ")));
        }
    }
    if clustering.is_empty() && others.len() > 1 {
        let (column, _) = others[0];
        match draw.below(2) {
            0 => cql.run(&format!("ALTER TABLE {name} DROP {column}")),
            // Frozen lists get no index.
            _ if !counts => _ = cql.try_run(&format!("CREATE INDEX ON {name} ({column})")),
            _ => {}
        }
    }
}

/// The content of a keyspace: `system_schema` without ids and times, and all rows.
fn content(cql: &Cql, keyspace: &str) -> Vec<String> {
    let of = |columns: &str, table: &str| {
        let query = format!("SELECT {columns} FROM system_schema.{table} WHERE keyspace_name = '{keyspace}'");
        cql.rows(&query).into_iter().map(|row| format!("{table}: {row:?}")).collect::<Vec<_>>()
    };
    let mut found = of("table_name, flags, comment", "tables");
    found.extend(of("table_name, column_name, clustering_order, kind, position, type", "columns"));
    found.extend(of("table_name, column_name, kind, type", "dropped_columns"));
    found.extend(of("table_name, index_name, kind, options", "indexes"));
    for table in tables(cql, keyspace) {
        let rows = cql.rows(&format!("SELECT * FROM {keyspace}.{table}"));
        found.extend(rows.into_iter().map(|row| format!("{table}: {row:?}")));
    }
    // Helenus writes this type by its class, so that it stays the same after a restart; Cassandra writes it as
    // `timestamp`.
    found.iter().map(|line| line.replace("'org.apache.cassandra.db.marshal.DateType'", "timestamp")).collect()
}

fn tables(cql: &Cql, keyspace: &str) -> Vec<String> {
    let query = format!("SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{keyspace}'");
    let names = cql.rows(&query).into_iter().flatten().flatten();
    names.map(|name| name.into_string().expect("a name")).collect()
}

fn assert_same(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

/// Runs the statements of an export, and loads its files.
fn load(oracle: &Oracle, cql: &Cql, (export, keyspace): (&Path, &str)) {
    cql.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    let statements = std::fs::read_to_string(export.join("schema.cql")).expect("the statements");
    let statements = statements.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    for statement in statements.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        cql.run(statement);
    }
    for table in tables(cql, keyspace) {
        let folder = export.join(keyspace).join(&table);
        if !files::tables(&folder).is_empty() {
            oracle.import(keyspace, &table, &folder);
        }
    }
}

#[test]
fn compact_tables_go_to_helenus_and_back_and_are_what_they_were() {
    let mut draw = Draw::new("compact_tables", 20_261_126);
    let keyspace = format!("compact_{}", std::process::id());
    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    theirs.run(&format!("CREATE KEYSPACE {keyspace} WITH replication = {REPLICATION}"));
    for number in 0..rounds(12) {
        make(&theirs, &format!("{keyspace}.t{number}"), &mut draw);
    }
    oracle.nodetool(&["flush", &keyspace]);
    oracle.nodetool(&["snapshot", "-t", "compact", &keyspace]);
    let expected = content(&theirs, &keyspace);

    let server = Server::start();
    let (data, ours) = (oracle.data(), server.data());
    let ours = text(&ours);
    tool(&["import", text(&data), "--snapshot", "compact", "--keyspace", &keyspace, "--data", ours]);
    let cql = Cql::connect(server.address());
    assert_same(&content(&cql, &keyspace), &expected, "imported");

    // A single snapshot describes its table only by a comment in schema.cql.
    let other = Server::start();
    let scratch = TempDir::with_prefix("helenus-compact-").expect("a temporary directory");
    for table in tables(&theirs, &keyspace) {
        let copied = scratch.path().join(&table);
        files::copy(&oracle.table_folder(&keyspace, &table).join("snapshots/compact"), &copied);
        tool(&["import", text(&copied), "--data", text(&other.data())]);
    }
    assert_same(&content(&Cql::connect(other.address()), &keyspace), &expected, "imported alone");

    let backup = scratch.path().join("backup");
    tool(&["backup", text(&backup), &keyspace, "--data", ours]);
    let restored = Server::start();
    tool(&["restore", text(&backup), "--data", text(&restored.data())]);
    assert_same(&content(&Cql::connect(restored.address()), &keyspace), &expected, "restored");

    // The same values must survive COPY TO and COPY FROM.
    let address = restored.address();
    for table in tables(&cql, &keyspace) {
        let file = scratch.path().join(format!("{table}.csv"));
        let rows = cql.rows(&format!("SELECT * FROM {keyspace}.{table}"));
        tool(&["shell", address, "-e", &format!("COPY {keyspace}.{table} TO '{}'", text(&file))]);
        if !rows.iter().flatten().any(|value| matches!(value, Some(scylla::value::CqlValue::Counter(_)))) {
            tool(&["shell", address, "-e", &format!("TRUNCATE {keyspace}.{table}")]);
            tool(&["shell", address, "-e", &format!("COPY {keyspace}.{table} FROM '{}'", text(&file))]);
        }
    }
    assert_same(&content(&Cql::connect(address), &keyspace), &expected, "copied");

    let out = scratch.path().join("export");
    tool(&["export", text(&out), &keyspace, "--data", ours]);
    load(&oracle, &theirs, (&out, &keyspace));
    assert_same(&content(&theirs, &keyspace), &expected, "back");
    theirs.run(&format!("DROP KEYSPACE {keyspace}"));
}

#[test]
fn cassandra_reads_a_family_that_it_cannot_make() {
    let keyspace = format!("family_{}", std::process::id());
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE {keyspace} WITH replication = {REPLICATION}"));
    cql.run(&format!(
        "CREATE TABLE {keyspace}.numbered (key blob, column1 bigint, value blob, \"5\" text static, PRIMARY KEY (key, column1)) \
         WITH extensions = {{'helenus.flags': ''}}"
    ));
    cql.run(&format!(
        "CREATE TABLE {keyspace}.single (key blob, column1 text, value int, PRIMARY KEY (key, column1)) \
         WITH extensions = {{'helenus.flags': 'compound, dense'}}"
    ));
    for number in 0..20 {
        cql.run(&format!(
            "INSERT INTO {keyspace}.numbered (key, \"5\") VALUES (0x0{}, 'v{number}')",
            number % 8
        ));
        cql.run(&format!(
            "INSERT INTO {keyspace}.single (key, column1, value) VALUES (0x0{}, 'c{number}', {number})",
            number % 8
        ));
    }
    let scratch = TempDir::with_prefix("helenus-family-").expect("a temporary directory");
    let out = scratch.path().join("export");
    tool(&["export", text(&out), &keyspace, "--data", text(&server.data())]);
    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    load(&oracle, &theirs, (&out, &keyspace));
    for query in ["SELECT key, \"5\" FROM {}.numbered", "SELECT key, column1, value FROM {}.single"] {
        let query = query.replace("{}", &keyspace);
        let (found, expected) = (theirs.rows(&query), cql.rows(&query));
        assert!(expected.len() >= 8, "{expected:?}");
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{query}");
    }
    theirs.run(&format!("DROP KEYSPACE {keyspace}"));
}
