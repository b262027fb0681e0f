//! Tests the wide rows of "Cassandra Query Plans" (2011): through a flush, a crash, and Cassandra's reading of the files.

use end_to_end::{Client, Cql, Oracle, Server, files, offline};

/// Rows of 100 to 1,000,000 columns, in an ascending and a reversed table.
const TEXT: &str = "wide_rows.py";

#[test]
fn wide_rows_read_the_same_from_memory_from_disk_and_after_kill_and_restart() {
    let mut server = Server::start();
    println!("{}", Client::text(TEXT, &["load", server.address()]));
    println!("{}", Client::text(TEXT, &["check", server.address()]));
    server.admin(&["flush"]);
    let folder =
        files::table_folder(&server.tables(), &Cql::connect(server.address()), "wide_rows", "ascending");
    assert!(!files::tables(&folder).is_empty(), "a flush writes SSTables");
    println!("{}", Client::text(TEXT, &["check", server.address()]));
    server.kill();
    server.restart();
    println!("{}", Client::text(TEXT, &["check", server.address()]));
}

#[test]
fn unflushed_wide_rows_survive_kill_and_restart() {
    let widths = ["100", "10000"];
    let mut server = Server::start();
    Client::text(TEXT, &["load", server.address(), widths[0], widths[1]]);
    server.kill();
    server.restart();
    Client::text(TEXT, &["check", server.address(), widths[0], widths[1]]);
}

#[test]
fn cassandra_verifies_and_imports_our_wide_rows_and_reads_them_the_same() {
    let widths = ["100", "1200", "5000", "10000", "100000"];
    let server = Server::start();
    let arguments = |mode, address| [&[mode, address], &widths[..]].concat();
    Client::text(TEXT, &arguments("load", server.address()));
    server.admin(&["flush"]);

    let ours = Cql::connect(server.address());
    let oracle = Oracle::shared();
    let cql = Cql::connect(oracle.address());
    cql.run("DROP KEYSPACE IF EXISTS wide_rows");
    cql.run(
        "CREATE KEYSPACE wide_rows WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    for (table, order) in [("ascending", "ASC"), ("reversed", "DESC")] {
        cql.run(&format!(
            "CREATE TABLE wide_rows.{table} (key text, name text, value text, PRIMARY KEY (key, name)) \
             WITH CLUSTERING ORDER BY (name {order})"
        ));
        let folder = files::table_folder(&server.tables(), &ours, "wide_rows", table);
        offline::verify_as_oracle(&oracle, "wide_rows", table, &folder);
        oracle.import("wide_rows", table, &folder);
    }
    Client::text(TEXT, &arguments("check", oracle.address()));
}
