//! Values that are equal by their type and differ in their bytes, and what else keeps a type in a second place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::LocalOptions;
use helenus_engine::DatabaseOptions;
use helenus_host::sim::Machine;
use support::{KEYSPACE, Server};

fn server() -> Server {
    server_with(LocalOptions::default())
}

fn server_with(options: LocalOptions) -> Server {
    let server = Server::with_options(Machine::new(1), &DatabaseOptions::new("/db"), options);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    server
}

fn bigint(server: &Server, text: &str) -> Vec<i64> {
    let rows = server.select(text, None).unwrap().rows;
    rows.iter().map(|row| i64::from_be_bytes(row[0].clone().unwrap().try_into().unwrap())).collect()
}

#[test]
fn a_write_changes_rows_of_equal_clusterings_once() {
    let server = server();
    let kinds = [
        ("decimal", "1.0, 1.00, 1, 10e-1"),
        ("varint", "blob_as_varint(0x01), blob_as_varint(0x0001), 1"),
        ("boolean", "blob_as_boolean(0x01), blob_as_boolean(0x02), true"),
        ("frozen<list<decimal>>", "[1.0], [1.00], [1]"),
        ("frozen<tuple<decimal, int>>", "(1.0, 2), (1.00, 2)"),
    ];
    for (at, (ty, values)) in kinds.into_iter().enumerate() {
        for (column, prefix) in [("", ""), ("b int, ", "b = 1 AND ")] {
            for order in ["ASC", "DESC"] {
                let table = format!("t{at}_{}_{order}", prefix.len());
                let (key, orders) = match prefix {
                    "" => ("k, c", String::new()),
                    _ => ("k, b, c", "b ASC, ".to_owned()),
                };
                server.run(&format!(
                    "CREATE TABLE {table} (k int, {column}c {ty}, n counter, PRIMARY KEY ({key})) WITH CLUSTERING ORDER BY \
                     ({orders}c {order})"
                ));
                server.run(&format!("UPDATE {table} SET n = n + 1 WHERE k = 1 AND {prefix}c IN ({values})"));
                assert_eq!(bigint(&server, &format!("SELECT n FROM {table}")), [1], "{ty} {order}");
            }
        }
    }
}

#[test]
fn a_mask_of_a_type_that_grows_or_whose_fields_are_renamed_goes_on() {
    let server = server_with(LocalOptions { masks_columns: true, ..LocalOptions::default() });
    server.run("CREATE TYPE u (a int, b text)");
    let columns = [
        ("v", "frozen<u>", "{a: 0, b: 'x''y'}"),
        ("w", "frozen<list<u>>", "[{a: 0, b: null}]"),
        ("x", "tuple<int, frozen<u>>", "(1, {a: 2, b: 'z'})"),
        ("y", "u", "{a: 5}"),
        ("z", "frozen<map<text, u>>", "{'k': {a: 1, b: 'c'}}"),
    ];
    for (name, ty, argument) in columns {
        let table = format!("t_{name}");
        let made = server.try_run(&format!(
            "CREATE TABLE {table} (k int PRIMARY KEY, {name} {ty} MASKED WITH mask_replace({argument}))"
        ));
        made.unwrap_or_else(|error| panic!("{ty}: {error}"));
        server.run(&format!("INSERT INTO {table} (k) VALUES (1)"));
    }
    let changes =
        ["ALTER TYPE u ADD c int", "ALTER TYPE u RENAME a TO first", "ALTER TYPE u ADD d frozen<list<int>>"];
    for change in changes {
        server.run(change);
        for (name, ..) in columns {
            let table = format!("t_{name}");
            assert_eq!(
                server.select(&format!("SELECT * FROM {table}"), None).unwrap().rows.len(),
                1,
                "{change}"
            );
            // What DESCRIBE prints can be run.
            let made = server.select(&format!("DESCRIBE TABLE {table}"), None).unwrap().rows;
            let text = String::from_utf8(made[0].last().unwrap().clone().unwrap()).unwrap();
            server.run(&format!("DROP TABLE {table}"));
            server.run(&text);
            server.run(&format!("INSERT INTO {table} (k) VALUES (1)"));
        }
    }
}
