//! Runs Cassandra's own tools on the files of the binary: sstabledump prints the same as for Cassandra's file of the
//! same writes, sstableverify finds no fault, and a node that imports the files gives the same answers.

use end_to_end::{Cql, Oracle, Server, files, offline};

/// A table and its writes. Every write has a timestamp, so that two servers store the same.
struct Example {
    table: &'static str,
    /// The columns and options, as written after `CREATE TABLE name`.
    definition: &'static str,
    writes: fn(&str) -> Vec<String>,
}

const KEYSPACE: &str = "tools";

/// One example for each feature of the files.
const EXAMPLES: &[Example] = &[
    Example {
        table: "plain",
        definition: "(k int, c text, v blob, n bigint, PRIMARY KEY (k, c))",
        writes: |table| {
            let row = |i: i32| {
                format!(
                    "INSERT INTO {table} (k, c, v, n) VALUES ({}, 'name {i:03}', 0x{i:08x}, {i}) USING TIMESTAMP {i}",
                    i % 7
                )
            };
            (1..200).map(row).collect()
        },
    },
    Example {
        table: "wide",
        definition: "(k text, c text, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
        writes: one_wide_partition,
    },
    // Cassandra accepts Helenus's extension in the schema, and any granularity in the file.
    Example {
        table: "fine",
        definition: "(k text, c text, v text, PRIMARY KEY (k, c)) \
                     WITH extensions = {'helenus.row_index_granularity': '1KiB'}",
        writes: one_wide_partition,
    },
    Example {
        table: "coarse",
        definition: "(k text, c text, v text, PRIMARY KEY (k, c)) \
                     WITH CLUSTERING ORDER BY (c DESC) AND extensions = {'helenus.row_index_granularity': '64KiB'}",
        writes: one_wide_partition,
    },
    Example {
        table: "deletions",
        definition: "(k int, a int, b int, s text static, v text, w int, PRIMARY KEY (k, a, b))",
        writes: |table| {
            let mut writes = Vec::new();
            for i in 0..60 {
                let (k, a, b) = (i / 20, i / 4 % 5, i % 4);
                writes.push(format!("INSERT INTO {table} (k, a, b, v, w) VALUES ({k}, {a}, {b}, 'v{i}', {i}) USING TIMESTAMP 10"));
            }
            for tail in [
                "v FROM {t} USING TIMESTAMP 20 WHERE k = 0 AND a = 0 AND b = 0",
                "FROM {t} USING TIMESTAMP 21 WHERE k = 0 AND a = 0 AND b = 1",
                "FROM {t} USING TIMESTAMP 22 WHERE k = 0 AND a = 1",
                "FROM {t} USING TIMESTAMP 23 WHERE k = 0 AND a >= 2 AND a < 4",
                "FROM {t} USING TIMESTAMP 24 WHERE k = 0 AND a = 3 AND b > 1",
                "FROM {t} USING TIMESTAMP 25 WHERE k = 1",
                "s FROM {t} USING TIMESTAMP 26 WHERE k = 2",
            ] {
                writes.push(format!("DELETE {}", tail.replace("{t}", table)));
            }
            for (s, k, at) in [("still", 0, 30), ("gone", 1, 24), ("back", 1, 40)] {
                writes.push(format!("UPDATE {table} USING TIMESTAMP {at} SET s = '{s}' WHERE k = {k}"));
            }
            writes.push(format!(
                "INSERT INTO {table} (k, a, b, v) VALUES (1, 9, 9, 'after') USING TIMESTAMP 41"
            ));
            writes
                .push(format!("UPDATE {table} USING TIMESTAMP 42 SET w = 5 WHERE k = 3 AND a = 1 AND b = 1"));
            writes.push(format!(
                "INSERT INTO {table} (k, a, b, w) VALUES (3, 2, 2, 1) USING TIMESTAMP 43 AND TTL 500000"
            ));
            writes.push(format!("UPDATE {table} USING TTL 600000 AND TIMESTAMP 44 SET v = 'short' WHERE k = 3 AND a = 2 AND b = 3"));
            writes
        },
    },
    Example {
        table: "types",
        definition: "(k uuid PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, h duration, \
                     i float, j inet, l int, m smallint, n text, o time, p timestamp, q timeuuid, r tinyint, s varint)",
        writes: |table| {
            vec![
                format!(
                    "INSERT INTO {table} (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s) VALUES \
                     (50554d6e-29bb-41e5-b345-feff819cdc9f, 'a', -1, 0x00ff, true, '2026-11-21', -1.50, 1e300, 1y2mo3w4d5h, \
                     -1.5, '2001:db8::1', 2147483647, -32768, 'γαῖα', '01:02:03.000000004', '2026-11-21 09:30:15.123+0000', \
                     50554d6e-29bb-11e5-b345-feff819cdc9f, -128, 123456789012345678901234567890) USING TIMESTAMP 5"
                ),
                format!(
                    "INSERT INTO {table} (k, a, c, n) VALUES (00000000-0000-0000-0000-000000000000, '', 0x, '') USING TIMESTAMP 6"
                ),
                format!(
                    "INSERT INTO {table} (k, b, s) VALUES (ffffffff-ffff-ffff-ffff-ffffffffffff, null, 0) USING TIMESTAMP 7"
                ),
            ]
        },
    },
    Example {
        table: "composite",
        definition: "(a int, b text, c timestamp, d varint, e boolean, v int, PRIMARY KEY ((a, b), c, d, e)) \
                     WITH CLUSTERING ORDER BY (c DESC, d ASC, e DESC) AND compression = {'class': 'ZstdCompressor'}",
        writes: |table| {
            let row = |i: i64| {
                let (c, d, e) = (i * 86_400_000 - 40 * 86_400_000, (i - 50) * 1_000_003, i % 2 == 0);
                format!(
                    "INSERT INTO {table} (a, b, c, d, e, v) VALUES ({}, 'p', {c}, {d}, {e}, {i}) USING TIMESTAMP {i}",
                    i % 3
                )
            };
            (1..100).map(row).collect()
        },
    },
    Example {
        table: "snappy",
        definition: "(k int PRIMARY KEY, v text) WITH compression = {'class': 'SnappyCompressor', 'chunk_length_in_kb': '4'}",
        writes: many_partitions,
    },
    Example {
        table: "deflate",
        definition: "(k int PRIMARY KEY, v text) WITH compression = {'class': 'DeflateCompressor'}",
        writes: many_partitions,
    },
    Example {
        table: "uncompressed",
        definition: "(k int PRIMARY KEY, v text) WITH compression = {'enabled': 'false'}",
        writes: many_partitions,
    },
];

/// 3,000 rows of 100 bytes, which make several blocks, so that the partition has a row index.
fn one_wide_partition(table: &str) -> Vec<String> {
    let row = |i: i32| {
        let value = format!("{i:04}").repeat(20);
        format!("INSERT INTO {table} (k, c, v) VALUES ('row', '{i:010}', '{value}') USING TIMESTAMP 1000")
    };
    (0..3000).map(row).collect()
}

fn many_partitions(table: &str) -> Vec<String> {
    (0..500)
        .map(|k| {
            format!("INSERT INTO {table} (k, v) VALUES ({k}, '{}') USING TIMESTAMP 9", "text ".repeat(k % 50))
        })
        .collect()
}

/// Creates and fills the tables of all examples on the server at `address`.
fn fill(address: &str) -> Cql {
    let cql = Cql::connect(address);
    cql.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    cql.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    for Example { table, definition, writes } in EXAMPLES {
        let table = format!("{KEYSPACE}.{table}");
        cql.run(&format!("CREATE TABLE {table} {definition}"));
        for write in writes(&table) {
            cql.run(&write);
        }
    }
    cql
}

#[test]
fn cassandra_dumps_verifies_imports_and_answers_what_we_wrote() {
    let server = Server::start();
    let ours = fill(server.address());
    server.admin(&["flush"]);
    let oracle = Oracle::shared();
    let theirs = fill(oracle.address());
    oracle.nodetool(&["flush", KEYSPACE]);
    let mut dumps = Vec::new();

    for Example { table, .. } in EXAMPLES {
        let folder = files::table_folder(&server.tables(), &ours, KEYSPACE, table);
        let our_files = files::tables(&folder);
        let their_files = files::tables(&oracle.table_folder(KEYSPACE, table));
        assert_eq!(
            (our_files.len(), their_files.len()),
            (1, 1),
            "one flush, one SSTable: {our_files:?} {their_files:?}"
        );
        let dump = |files: &[std::path::PathBuf]| offline::comparable(offline::dump(&files[0]));
        let dumped = dump(&our_files);
        assert_eq!(dumped, dump(&their_files), "{table}");
        offline::verify_as_oracle(&oracle, KEYSPACE, table, &folder);

        let select = format!("SELECT * FROM {KEYSPACE}.{table}");
        let written = ours.rows(&select);
        assert!(!written.is_empty(), "{table}");
        theirs.run(&format!("TRUNCATE {KEYSPACE}.{table}"));
        assert!(theirs.rows(&select).is_empty(), "{table}");
        oracle.import(KEYSPACE, table, &folder);
        assert_eq!(theirs.rows(&select), written, "{table}, imported");
        dumps.push((folder, dumped));
    }

    // The same writes again: the compacted result equals each of the two inputs, and Cassandra's tools accept it too.
    for Example { table, writes, .. } in EXAMPLES {
        writes(&format!("{KEYSPACE}.{table}")).iter().for_each(|write| ours.run(write));
    }
    server.admin(&["flush"]);
    let told = server.admin(&["compact", KEYSPACE]);
    assert!(told.contains(&format!("to {} ", EXAMPLES.len())), "{told}");
    for (Example { table, .. }, (folder, dumped)) in EXAMPLES.iter().zip(dumps) {
        let compacted = files::tables(&folder);
        assert_eq!(compacted.len(), 1, "{table}: {compacted:?}");
        assert_eq!(offline::comparable(offline::dump(&compacted[0])), dumped, "{table}, compacted");
        offline::verify_as_oracle(&oracle, KEYSPACE, table, &folder);
    }
}

#[test]
fn sstableverify_finds_the_schema_in_our_own_directory() {
    let mut server = Server::start();
    let cql = fill(server.address());
    server.admin(&["flush"]);
    let folder = |keyspace, table| files::table_folder(&server.tables(), &cql, keyspace, table);
    let (deletions, columns) = (folder(KEYSPACE, "deletions"), folder("system_schema", "columns"));
    assert!(server.stop().success());
    offline::verify(&server.tables(), KEYSPACE, "deletions", &deletions);
    offline::verify(&server.tables(), "system_schema", "columns", &columns);
}
