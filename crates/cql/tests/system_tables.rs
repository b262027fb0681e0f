//! What drivers ask when they connect (seen on the wire): every question gets an answer with what they need in it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use support::Server;

const ASKED: &[&str] = &[
    "SELECT * FROM system.peers_v2",
    "SELECT * FROM system.peers",
    "SELECT * FROM system.local WHERE key='local'",
    "select * from system.local where key = 'local'",
    "SELECT * FROM system.local",
    "SELECT cluster_name FROM system.local",
    "SELECT schema_version FROM system.local WHERE key='local'",
    "SELECT host_id, peer, peer_port, native_address, native_port, schema_version FROM system.peers_v2",
    "SELECT host_id, rpc_address, data_center, rack, tokens FROM system.peers",
    "SELECT host_id, rpc_address, data_center, rack, tokens, cluster_name FROM system.local",
    "SELECT * FROM system_schema.keyspaces",
    "SELECT * FROM system_schema.tables",
    "SELECT * FROM system_schema.columns",
    "SELECT * FROM system_schema.types",
    "SELECT * FROM system_schema.functions",
    "SELECT * FROM system_schema.aggregates",
    "SELECT * FROM system_schema.triggers",
    "SELECT * FROM system_schema.indexes",
    "SELECT * FROM system_schema.views",
    "SELECT * from system_virtual_schema.keyspaces",
    "SELECT * from system_virtual_schema.tables",
    "SELECT * from system_virtual_schema.columns",
    "SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces WHERE keyspace_name = 'system'",
    "SELECT keyspace_name, table_name, column_name, clustering_order, type, kind, position FROM system_schema.columns WHERE keyspace_name = 'system'",
    "SELECT * FROM system_schema.tables WHERE keyspace_name = 'system' AND table_name = 'local'",
];

#[test]
fn every_question_of_a_driver_is_answered_whole_and_in_pages() {
    let server = Server::open(1);
    for query in ASKED {
        let whole = server.select(query, None).unwrap_or_else(|error| panic!("{query}: {error}"));
        for size in [1, 2, 3, 7, 100] {
            assert_eq!(server.paged(query, size), whole.rows, "{query} in pages of {size}");
        }
    }
    server.end();
}

#[test]
fn the_local_row_has_what_drivers_choose_by() {
    let server = Server::open(2);
    let of = |column: &str| {
        let query = format!("SELECT {column} FROM system.local WHERE key = 'local'");
        let mut answer = server.select(&query, None).expect("answered");
        answer.rows.pop().expect("a row").pop().expect("a cell").unwrap_or_default()
    };
    assert_eq!(of("release_version"), b"5.0.9");
    assert_eq!(of("partitioner"), b"org.apache.cassandra.dht.Murmur3Partitioner");
    assert_eq!(of("data_center"), b"datacenter1");
    assert_eq!(of("rack"), b"rack1");
    assert_eq!(of("rpc_address"), [127, 0, 0, 1]);
    assert_eq!(of("rpc_port"), 9042_i32.to_be_bytes());
    assert_eq!(of("host_id").len(), 16);
    assert_eq!(of("schema_version").len(), 16);
    assert_eq!(of("tokens")[..4], 16_i32.to_be_bytes());
    let version = of("schema_version");
    server.run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    assert_ne!(of("schema_version"), version, "a change of the schema shows");
    server.end();
}

#[test]
fn virtual_tables_are_restricted_ordered_and_limited_as_others() {
    let server = Server::open(3);
    let names = |query: &str| -> Vec<String> {
        let answer = server.select(query, None).unwrap_or_else(|error| panic!("{query}: {error}"));
        let text =
            |row: Vec<Option<Vec<u8>>>| String::from_utf8(row[0].clone().unwrap_or_default()).expect("text");
        answer.rows.into_iter().map(text).collect()
    };
    let of = "SELECT table_name FROM system_virtual_schema.tables";
    assert_eq!(
        names(&format!("{of} WHERE keyspace_name = 'system_virtual_schema'")),
        ["columns", "keyspaces", "tables"]
    );
    let key = "WHERE keyspace_name = 'system_virtual_schema'";
    assert_eq!(names(&format!("{of} {key} ORDER BY table_name DESC")), ["tables", "keyspaces", "columns"]);
    assert_eq!(names(&format!("{of} {key} AND table_name > 'columns' LIMIT 1")), ["keyspaces"]);
    assert_eq!(names(&format!("{of} {key} AND table_name IN ('tables', 'columns')")), ["columns", "tables"]);
    assert_eq!(names(&format!("{of} WHERE comment = 'virtual table definitions'")), ["tables"]);
    assert_eq!(names(&format!("{of} WHERE table_name = 'tables'")), ["tables"]);
    let columns =
        format!("SELECT column_name FROM system_virtual_schema.columns {key} AND table_name = 'tables'");
    assert_eq!(names(&columns), ["comment", "keyspace_name", "table_name"]);
    server.end();
}

#[test]
fn tables_of_others_are_unknown_as_in_cassandra() {
    let server = Server::open(4);
    for (query, text) in [
        ("SELECT * FROM system_schema.scylla_keyspaces", "table scylla_keyspaces does not exist"),
        ("SELECT * FROM system_schema.scylla_tables", "table scylla_tables does not exist"),
        ("SELECT * FROM system_nothing.x", "keyspace system_nothing does not exist"),
    ] {
        assert_eq!(server.select(query, None).err().expect("refused").to_string(), text);
    }
    server.end();
}

#[test]
fn an_option_that_is_set_back_to_its_default_is_so_in_the_schemas_tables() {
    let server = Server::open(2);
    let keyspace = support::KEYSPACE;
    server.run(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    server.run(&format!("CREATE TABLE {keyspace}.t (a int PRIMARY KEY)"));
    for (option, default) in [("cdc", false), ("incremental_backups", true), ("allow_auto_snapshot", true)] {
        for value in [!default, default] {
            server.run(&format!("ALTER TABLE {keyspace}.t WITH {option} = {value}"));
            let text =
                format!("SELECT {option} FROM system_schema.tables WHERE keyspace_name = '{keyspace}'");
            assert_eq!(server.select(&text, None).unwrap().rows, [[Some(vec![u8::from(value)])]], "{option}");
        }
    }
    server.end();
}
