//! Compares the system keyspaces of the real binary with Cassandra's: the same tables, correct estimates, and
//! persistent changes by operators.

use end_to_end::{Cql, Oracle, Server};
use scylla::value::CqlValue;

const KEYSPACES: [&str; 5] =
    ["system", "system_schema", "system_auth", "system_distributed", "system_traces"];
const COLUMNS: &str = "table_name, column_name, clustering_order, column_name_bytes, kind, position, type";
const OPTIONS: &str = "table_name, id, comment, bloom_filter_fp_chance, caching, compaction, compression, default_time_to_live, \
                       flags, gc_grace_seconds, memtable_flush_period_in_ms, speculative_retry";

#[test]
fn tables_and_columns_are_those_of_cassandra() {
    let oracle = Oracle::shared();
    let server = Server::start();
    let (theirs, ours) = (Cql::connect(oracle.address()), Cql::connect(server.address()));
    for keyspace in KEYSPACES {
        for (what, from) in [(OPTIONS, "tables"), (COLUMNS, "columns")] {
            let select =
                format!("SELECT {what} FROM system_schema.{from} WHERE keyspace_name = '{keyspace}'");
            let (expected, found) = (theirs.rows(&select), ours.rows(&select));
            assert!(!expected.is_empty(), "{select}");
            for row in &expected {
                assert!(found.contains(row), "{keyspace}: {row:?} is not there");
            }
            assert_eq!(found.len(), expected.len(), "{select}");
        }
        // Each table is readable; those about several nodes are empty.
        let select =
            format!("SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{keyspace}'");
        for row in ours.rows(&select) {
            let Some(Some(CqlValue::Text(table))) = row.first() else { panic!("a name: {row:?}") };
            ours.rows(&format!("SELECT * FROM {keyspace}.\"{table}\" LIMIT 5"));
        }
    }
}

fn sum(cql: &Cql, select: &str) -> i64 {
    let number = |row: &Vec<Option<CqlValue>>| match row.first() {
        Some(Some(CqlValue::BigInt(number))) => *number,
        other => panic!("{select}: {other:?}"),
    };
    cql.rows(select).iter().map(number).sum()
}

#[test]
fn estimates_add_up_to_what_is_on_disk() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    let of_table = "WHERE keyspace_name = 'k' AND table_name = 't'";
    let counts = format!("SELECT partitions_count FROM system.size_estimates {of_table}");
    assert_eq!(sum(&cql, &counts), 0);
    let value = "v".repeat(500);
    for (from, to) in [(0, 400), (400, 1000)] {
        for k in from..to {
            cql.run(&format!("INSERT INTO k.t (k, v) VALUES ({k}, '{value}')"));
        }
        server.admin(&["flush"]);
        assert_eq!(sum(&cql, &counts), to, "each partition is in one SSTable");
    }
    let sizes = cql.rows(&format!("SELECT mean_partition_size FROM system.size_estimates {of_table}"));
    for size in &sizes {
        let Some(Some(CqlValue::BigInt(bytes))) = size.first() else { panic!("a size: {size:?}") };
        assert!((500..1000).contains(bytes), "{bytes} bytes for a value of 500");
    }
    // One node owns every range: there are equally many of each kind, and half of the ring has about half of the
    // partitions.
    for kind in ["primary", "local_primary"] {
        let select = format!(
            "SELECT partitions_count FROM system.table_estimates {of_table} AND range_type = '{kind}'"
        );
        assert_eq!(cql.rows(&select).len(), sizes.len());
        assert_eq!(sum(&cql, &select), 1000);
    }
    let rows = cql.rows(&format!(
        "SELECT range_start, range_end, partitions_count FROM system.size_estimates {of_table}"
    ));
    let token = |value: &Option<CqlValue>| match value {
        Some(CqlValue::Text(text)) => text.parse::<i64>().expect("a token"),
        other => panic!("{other:?}"),
    };
    for row in rows {
        let (start, end) = (token(&row[0]), token(&row[1]));
        let end = if end == i64::MIN { i64::MAX } else { end };
        let counted =
            cql.rows(&format!("SELECT count(*) FROM k.t WHERE token(k) > {start} AND token(k) <= {end}"));
        let (Some(CqlValue::BigInt(there)), Some(CqlValue::BigInt(estimated))) = (&counted[0][0], &row[2])
        else {
            panic!("{counted:?} {row:?}")
        };
        assert!(
            (there - estimated).abs() <= 40,
            "{estimated} estimated of {there} between {start} and {end}"
        );
    }
    server.admin(&["compact"]);
    let history = cql.rows(
        "SELECT columnfamily_name, bytes_in, bytes_out, compaction_properties FROM system.compaction_history",
    );
    assert!(history.iter().any(|row| row[0] == Some(CqlValue::Text("t".into()))), "{history:?}");
}

#[test]
fn what_operators_change_of_system_keyspaces_stays_changed_and_the_rest_is_refused() {
    let mut server = Server::start();
    let mut cql = Cql::connect(server.address());
    let changes = [
        ("system_auth", "{'class': 'NetworkTopologyStrategy', 'datacenter1': '3'}"),
        ("system_distributed", "{'class': 'SimpleStrategy', 'replication_factor': '1'}"),
        ("system_traces", "{'class': 'NetworkTopologyStrategy', 'datacenter1': '2'}"),
    ];
    for (keyspace, replication) in changes {
        cql.run(&format!("ALTER KEYSPACE {keyspace} WITH replication = {replication}"));
    }
    cql.run("ALTER KEYSPACE system_distributed WITH durable_writes = false");
    let select = "SELECT keyspace_name, replication, durable_writes FROM system_schema.keyspaces";
    let before = cql.rows(select);
    for kill in 0..2 {
        server.kill();
        server.restart();
        cql = Cql::connect(server.address());
        assert_eq!(cql.rows(select), before, "after {kill} more kills");
    }
    let replication =
        cql.rows("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'system_auth'");
    assert!(format!("{replication:?}").contains("NetworkTopologyStrategy"), "{replication:?}");
    // Any user may write to the replicated keyspaces, as in Cassandra without an authorizer.
    cql.run("INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('a', 'b', 0x00)");
    assert_eq!(cql.rows("SELECT * FROM system_distributed.partition_denylist").len(), 1);
    cql.run("TRUNCATE system_distributed.partition_denylist");
    assert_eq!(cql.rows("SELECT * FROM system_distributed.partition_denylist").len(), 0);
    for (statement, words) in [
        ("ALTER KEYSPACE system WITH durable_writes = false", "system keyspace is not user-modifiable."),
        (
            "ALTER KEYSPACE system_auth WITH replication = {'class': 'LocalStrategy'}",
            "LocalStrategy is reserved for internal use",
        ),
        (
            "CREATE KEYSPACE system_auth WITH replication = {'class': 'SimpleStrategy'}",
            "Cannot add existing keyspace \"system_auth\"",
        ),
        ("DROP KEYSPACE system_auth", "Cannot DROP <keyspace system_auth>"),
        ("CREATE TABLE system_auth.x (a int PRIMARY KEY)", "Cannot CREATE <all tables in system_auth>"),
        ("ALTER TABLE system_auth.roles ADD x int", "Cannot ALTER <table system_auth.roles>"),
        ("DROP TABLE system_traces.events", "Cannot DROP <table system_traces.events>"),
        ("CREATE INDEX ON system_auth.roles (can_login)", "Cannot ALTER <table system_auth.roles>"),
        ("INSERT INTO system.peers (peer) VALUES ('127.0.0.9')", "system keyspace is not user-modifiable."),
        ("TRUNCATE system.size_estimates", "system keyspace is not user-modifiable."),
        ("TRUNCATE system.batches", "system keyspace is not user-modifiable."),
    ] {
        let said = cql.refusal(statement);
        assert!(said.contains(words), "{statement}: {said}");
    }
}
