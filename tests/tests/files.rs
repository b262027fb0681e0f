//! Exchanges files with Cassandra in both directions: imports its snapshots, adopts its directory, loads exports with
//! its own tools, and compares dumps with sstabledump. Damaged files are refused without importing anything.

use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::{Cql, Oracle, Server, files, offline, refused, tool};
use scylla::value::CqlValue;
use tempfile::TempDir;

const TYPES: &str = "CREATE TYPE {ks}.place (street text, number int)";

/// Tables: name, definition, and writes.
const TABLES: &[(&str, &str, &[&str])] = &[
    (
        "plain",
        "(k int, c text, v blob, n bigint, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
        &[
            "INSERT INTO {t} (k, c, v, n) VALUES (1, 'a \"quoted\" name', 0x00ff, -5) USING TIMESTAMP 1000001",
            "INSERT INTO {t} (k, c, v) VALUES (1, 'b', 0x) USING TIMESTAMP 1000",
            "INSERT INTO {t} (k, c, n) VALUES (2, 'γαῖα', 7) USING TIMESTAMP 1700000000123456",
            "UPDATE {t} USING TIMESTAMP 5000000 SET n = 8 WHERE k = 2 AND c = 'only cells'",
        ],
    ),
    (
        "types",
        "(k uuid PRIMARY KEY, a ascii, b bigint, d boolean, e date, f decimal, g double, h duration, i float, j inet, \
         l int, m smallint, n text, o time, p timestamp, q timeuuid, r tinyint, s varint, t tuple<int, text>, \
         u frozen<list<int>>, w vector<float, 2>)",
        &[
            "INSERT INTO {t} (k, a, b, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, w) VALUES \
             (50554d6e-29bb-41e5-b345-feff819cdc9f, 'a', -1, true, '2026-11-21', -1.50, 1e300, 1y2mo3w4d5h, -1.5, \
             '2001:db8::1', 2147483647, -32768, 'line\nbreak \\ and \t tab', '01:02:03.000000004', \
             '2026-11-21 09:30:15.123+0000', 50554d6e-29bb-11e5-b345-feff819cdc9f, -128, \
             123456789012345678901234567890, (1, 'x'), [1, 2, 3], [0.5, -1.25]) USING TIMESTAMP 5",
            "INSERT INTO {t} (k, a, n) VALUES (00000000-0000-0000-0000-000000000000, '', '') USING TIMESTAMP 6",
        ],
    ),
    (
        "collections",
        "(a int, b text, c timestamp, l list<text>, s set<int>, m map<text, int>, p place, f frozen<place>, \
         PRIMARY KEY ((a, b), c))",
        &[
            "INSERT INTO {t} (a, b, c, l, s, m, p, f) VALUES (1, 'x:y', 0, ['one', 'two'], {3, 1, 2}, {'k': 1, 'j': 2}, \
             {street: 'High Street', number: 5}, {street: 'frozen', number: null}) USING TIMESTAMP 10",
            "UPDATE {t} USING TIMESTAMP 20 SET m['z'] = 3, s = s - {2}, p.number = 6 WHERE a = 1 AND b = 'x:y' AND c = 0",
            "DELETE m['j'] FROM {t} USING TIMESTAMP 30 WHERE a = 1 AND b = 'x:y' AND c = 0",
        ],
    ),
    (
        "deletions",
        "(k int, a int, b int, s text static, v text, PRIMARY KEY (k, a, b))",
        &[
            "INSERT INTO {t} (k, a, b, s, v) VALUES (0, 1, 1, 'static', 'kept') USING TIMESTAMP 10",
            "INSERT INTO {t} (k, a, b, v) VALUES (0, 2, 1, 'gone') USING TIMESTAMP 10",
            "INSERT INTO {t} (k, a, b, v) VALUES (0, 9, 9, 'last') USING TIMESTAMP 50",
            "DELETE FROM {t} USING TIMESTAMP 20 WHERE k = 0 AND a = 2",
            "DELETE FROM {t} USING TIMESTAMP 21 WHERE k = 0 AND a > 2 AND a <= 5",
            "DELETE FROM {t} USING TIMESTAMP 22 WHERE k = 0 AND a > 5 AND a < 7",
            "DELETE FROM {t} USING TIMESTAMP 23 WHERE k = 0 AND a = 1 AND b = 2",
            "DELETE v FROM {t} USING TIMESTAMP 24 WHERE k = 0 AND a = 9 AND b = 8",
            "DELETE FROM {t} USING TIMESTAMP 25 WHERE k = 1",
            "INSERT INTO {t} (k, a, b, v) VALUES (1, 1, 1, 'after') USING TIMESTAMP 26",
            "INSERT INTO {t} (k, a, b, v) VALUES (2, 1, 1, 'expires') USING TIMESTAMP 27 AND TTL 500000000",
            "UPDATE {t} USING TIMESTAMP 28 AND TTL 400000000 SET v = 'cell' WHERE k = 2 AND a = 1 AND b = 2",
        ],
    ),
    (
        "counts",
        "(k text PRIMARY KEY, n counter)",
        &["UPDATE {t} SET n = n + 5 WHERE k = 'a'", "UPDATE {t} SET n = n - 2 WHERE k = 'b'"],
    ),
    (
        "indexed",
        "(k int PRIMARY KEY, v text)",
        &[
            "INSERT INTO {t} (k, v) VALUES (1, 'x')",
            "INSERT INTO {t} (k, v) VALUES (2, 'y')",
            "INSERT INTO {t} (k, v) VALUES (3, 'x')",
        ],
    ),
    ("uncompressed", "(k int PRIMARY KEY, v text) WITH compression = {'enabled': 'false'}", MANY),
    ("empty", "(k int PRIMARY KEY, v text)", &[]),
];

const MANY: &[&str] = &[
    "INSERT INTO {t} (k, v) VALUES (1, 'one') USING TIMESTAMP 1",
    "INSERT INTO {t} (k, v) VALUES (2, 'two') USING TIMESTAMP 2",
    "INSERT INTO {t} (k, v) VALUES (3, 'three') USING TIMESTAMP 3",
];

/// Creates and fills the tables.
fn fill(cql: &Cql, keyspace: &str) {
    make(cql, keyspace);
    for (table, _, writes) in TABLES {
        for write in *writes {
            cql.run(&write.replace("{t}", &format!("{keyspace}.{table}")));
        }
    }
}

/// Creates the tables.
fn make(cql: &Cql, keyspace: &str) {
    cql.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    cql.run(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    cql.run(&TYPES.replace("{ks}", keyspace));
    for (table, definition, _) in TABLES {
        cql.run(&format!("CREATE TABLE {keyspace}.{table} {definition}"));
    }
    cql.run(&format!("CREATE INDEX by_v ON {keyspace}.indexed (v)"));
}

/// All rows of all tables, in token order.
fn rows(cql: &Cql, keyspace: &str) -> Vec<(&'static str, Vec<Vec<Option<CqlValue>>>)> {
    let of = |table: &'static str| (table, cql.rows(&format!("SELECT * FROM {keyspace}.{table}")));
    TABLES.iter().map(|(table, _, _)| of(table)).collect()
}

fn assert_indexed(cql: &Cql, keyspace: &str) {
    let found = cql.rows_once_indexed(&format!("SELECT k FROM {keyspace}.indexed WHERE v = 'x'"));
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Creates a keyspace on the shared node, fills and flushes it, and takes a snapshot.
fn snapshot(oracle: &Oracle, keyspace: &str) -> Cql {
    let cql = Cql::connect(oracle.address());
    fill(&cql, keyspace);
    oracle.nodetool(&["flush", keyspace]);
    oracle.nodetool(&["snapshot", "-t", "files", keyspace]);
    cql
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn our_dump_is_sstabledumps_byte_for_byte() {
    let oracle = Oracle::shared();
    let cql = Cql::connect(oracle.address());
    fill(&cql, "files_dump");
    oracle.nodetool(&["flush", "files_dump"]);
    for (table, _, writes) in TABLES.iter().filter(|(_, _, writes)| !writes.is_empty()) {
        for file in files::tables(&oracle.table_folder("files_dump", table)) {
            let flags: &[&[&str]] = match *table {
                "deletions" => &[&[], &["-l"], &["-t"], &["-e"], &["-d"], &["-k", "1", "2"], &["-x", "0"]],
                // Without `-d`, because Cassandra's tool runs out of memory on cells of a user-defined type.
                "collections" => &[&[], &["-k", "1:x\\:y"]],
                _ => &[&[]],
            };
            for flags in flags {
                let theirs = offline::dump_text(&file, flags);
                let mut args = vec!["sstable", "dump", "--sstabledump", text(&file)];
                let repeated: Vec<&str> = match flags {
                    ["-k", keys @ ..] => keys.iter().flat_map(|key| ["-k", key]).collect(),
                    other => other.to_vec(),
                };
                args.extend(repeated);
                let ours = tool(&args);
                assert_eq!(ours.trim_end(), theirs.trim_end(), "{table} {flags:?}, {} writes", writes.len());
            }
        }
    }
}

/// The columns of `sstablepartitions --csv`, by Helenus's names.
const FIGURES: [&str; 11] = [
    "position",
    "bytes",
    "rows",
    "cells",
    "tombstones",
    "row_tombstones",
    "range_tombstones",
    "collection_tombstones",
    "cell_tombstones",
    "expired_rows",
    "expired_cells",
];

#[test]
fn sizes_of_partitions_are_those_that_sstablepartitions_counts() {
    let oracle = Oracle::shared();
    let cql = Cql::connect(oracle.address());
    fill(&cql, "files_partitions");
    oracle.nodetool(&["flush", "files_partitions"]);
    // At a time when nothing has expired, and at one when everything with a TTL has.
    for (table, at) in [("plain", "0"), ("collections", "0"), ("deletions", "0"), ("deletions", "2147483646")]
    {
        for file in files::tables(&oracle.table_folder("files_partitions", table)) {
            let theirs = offline::partitions(&file, &["--csv", "-t", "0", "-u", at]);
            let ours = tool(&["sstable", "partitions", "--json", "-t", "0", "-u", at, text(&file)]);
            let theirs: Vec<Vec<&str>> =
                theirs.lines().skip(1).map(|line| line.split(',').collect()).collect();
            let ours: Vec<serde_json::Value> =
                ours.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
            // The last line is the summary.
            assert_eq!(theirs.len() + 1, ours.len(), "{table}");
            for (theirs, ours) in theirs.iter().zip(&ours) {
                let front =
                    [ours["key_bytes"].as_str(), Some(if ours["live"] == true { "true" } else { "false" })];
                assert_eq!(front, [Some(theirs[1]), Some(theirs[2])], "{table}");
                for (name, theirs) in FIGURES.iter().zip(&theirs[3..]) {
                    assert_eq!(ours[name].to_string(), *theirs, "{table} at {at}: {name} of {ours}");
                }
            }
        }
    }
}

#[test]
fn a_snapshot_of_a_node_is_imported_and_answers_as_the_node_does() {
    let oracle = Oracle::shared();
    let theirs = snapshot(&oracle, "files_import");
    let expected = rows(&theirs, "files_import");
    let server = Server::start();
    let data = oracle.data();
    let (data, ours) = (text(&data), server.data());
    let import = |extra: &[&str]| {
        let mut args =
            vec!["import", data, "--snapshot", "files", "--keyspace", "files_import", "--data", text(&ours)];
        args.extend(extra);
        tool(&args)
    };
    let told = import(&["--dry-run"]);
    assert!(told.contains("to make     keyspace files_import"), "{told}");
    let cql = Cql::connect(server.address());
    assert!(cql.refusal("SELECT * FROM files_import.plain").contains("does not exist"));
    let told = import(&[]);
    assert!(told.contains("imported    files_import.deletions: 1 SSTable\n"), "{told}");
    let cql = Cql::connect(server.address());
    assert_eq!(rows(&cql, "files_import"), expected);
    assert_indexed(&cql, "files_import");
    // A second import of the same rows changes nothing. Nor do counters, because a shard is not added to itself.
    import(&["--copy-data"]);
    assert_eq!(rows(&cql, "files_import"), expected);
    cql.run("INSERT INTO files_import.plain (k, c) VALUES (77, 'written here')");
    assert_eq!(cql.rows("SELECT * FROM files_import.plain WHERE k = 77").len(), 1);
}

#[test]
fn an_import_without_a_server_survives_to_the_next_start() {
    let oracle = Oracle::shared();
    let theirs = snapshot(&oracle, "files_offline");
    let expected = rows(&theirs, "files_offline");
    let mut server = Server::start();
    assert!(server.stop().success());
    let told = tool(&[
        "import",
        text(&oracle.data()),
        "--snapshot",
        "files",
        "--keyspace",
        "files_offline",
        "--data",
        text(&server.data()),
    ]);
    assert!(told.contains("imported    files_offline.plain: 1 SSTable\n"), "{told}");
    server.restart();
    let cql = Cql::connect(server.address());
    assert_eq!(rows(&cql, "files_offline"), expected);
    assert_indexed(&cql, "files_offline");
}

#[test]
fn what_we_export_cassandra_imports_and_streams() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    fill(&cql, "files_export");
    let expected = rows(&cql, "files_export");
    let scratch = TempDir::with_prefix("helenus-export-").expect("a temporary directory");
    let out = scratch.path().join("out");
    let told = tool(&["export", text(&out), "files_export", "--data", text(&server.data())]);
    assert!(told.contains("version da"), "{told}");
    assert!(refused(&["export", text(&out), "--data", text(&server.data())]).contains("is not empty"));

    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    theirs.run("DROP KEYSPACE IF EXISTS files_export");
    let schema = fs::read_to_string(out.join("schema.cql")).expect("the schema");
    for statement in schema.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        theirs.run(statement);
    }
    for (table, _, _) in TABLES.iter().filter(|(_, _, writes)| !writes.is_empty()) {
        oracle.import("files_export", table, &out.join("files_export").join(table));
    }
    assert_eq!(rows(&theirs, "files_export"), expected);
    theirs.run("TRUNCATE files_export.plain");
    offline::load(&oracle, &out.join("files_export/plain"));
    assert_eq!(rows(&theirs, "files_export"), expected);
}

#[test]
fn what_is_damaged_or_does_not_fit_is_refused_whole() {
    let oracle = Oracle::shared();
    snapshot(&oracle, "files_damage");
    let server = Server::start();
    let cql = Cql::connect(server.address());
    let scratch = TempDir::with_prefix("helenus-damage-").expect("a temporary directory");
    let folder = |table: &str| oracle.table_folder("files_damage", table).join("snapshots/files");
    let spoilt = |spoil: &dyn Fn(&Path)| {
        let keyspace = scratch.path().join("copy/files_damage");
        let _ = fs::remove_dir_all(&keyspace);
        for table in ["plain", "deletions"] {
            files::copy(&folder(table), &keyspace.join(table));
        }
        spoil(&keyspace.join("deletions"));
        refused(&["import", text(&scratch.path().join("copy")), "--data", text(&server.data())])
    };
    let file = |folder: &Path, ending: &str| -> PathBuf {
        let all = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        all.into_iter().find(|path| text(path).ends_with(ending)).expect("the component")
    };
    let flip = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).expect("the component");
        bytes[at] ^= 1;
        fs::write(path, bytes).expect("write the component");
    };
    type Spoil<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Spoil<'_>); 6] = [
        ("Data.db", &|folder| flip(&file(folder, "-Data.db"), 20)),
        ("Statistics.db", &|folder| flip(&file(folder, "-Statistics.db"), 300)),
        ("Digest.crc32", &|folder| fs::write(file(folder, "-Digest.crc32"), "1").expect("write")),
        ("Partitions.db", &|folder| fs::remove_file(file(folder, "-Partitions.db")).expect("remove")),
        ("Data.db", &|folder| {
            let data = file(folder, "-Data.db");
            let bytes = fs::read(&data).expect("the data");
            fs::write(&data, &bytes[..bytes.len() / 2]).expect("write");
        }),
        ("schema.cql", &|folder| fs::write(folder.join("schema.cql"), "CREATE TABLE (").expect("write")),
    ];
    for (name, spoil) in cases {
        let told = spoilt(spoil);
        assert!(told.contains(name) || (name == "Digest.crc32" && told.contains("digest")), "{name}: {told}");
        assert!(told.contains("nothing was imported"), "{told}");
        assert!(cql.refusal("SELECT * FROM files_damage.plain").contains("does not exist"), "{name}");
    }
    // The table exists here, and a column has another type.
    cql.run("CREATE KEYSPACE files_damage WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE files_damage.deletions (k int, a int, b int, s text static, v int, PRIMARY KEY (k, a, b))");
    let told = spoilt(&|_| {});
    assert!(told.contains("column v is text in the file and int in files_damage.deletions"), "{told}");
    assert!(cql.refusal("SELECT * FROM files_damage.plain").contains("does not exist"));
    assert!(cql.rows("SELECT * FROM files_damage.deletions").is_empty());
    let imports = server.data().join("import");
    let left: Vec<_> = fs::read_dir(&imports).map(|dir| dir.flatten().collect()).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_copy_of_a_nodes_directory_is_adopted_and_goes_on() {
    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    fill(&theirs, "files_adopt");
    oracle.nodetool(&["flush"]);
    let expected = rows(&theirs, "files_adopt");
    let scratch = TempDir::with_prefix("helenus-adopt-").expect("a temporary directory");
    let copy = scratch.path().join("node");
    for keyspace in ["system_schema", "files_adopt"] {
        files::copy_all(&oracle.data().join(keyspace), &copy.join("data").join(keyspace));
    }
    fs::create_dir_all(copy.join("commitlog")).expect("a folder");
    fs::write(copy.join("commitlog/CommitLog-7-1.log"), "of the node").expect("a segment");
    // Imitates a compaction of the node that was interrupted before its commit: the files it wrote must be ignored.
    let folder = fs::read_dir(copy.join("data/files_adopt"))
        .expect("the keyspace")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| text(path).contains("/plain-"))
        .expect("the table");
    let data = files::tables(&folder).remove(0);
    let prefix = text(&data).strip_suffix("Data.db").expect("a data file").to_owned();
    let cut = prefix.replace(".db", "");
    let unfinished = cut.rsplit_once("/da-").expect("a name").0.to_owned() + "/da-77-bti-";
    for entry in fs::read_dir(&folder).expect("the table").map(|entry| entry.expect("an entry").path()) {
        if let Some(component) = text(&entry).strip_prefix(&prefix) {
            fs::copy(&entry, format!("{unfinished}{component}")).expect("copy");
        }
    }
    let log = folder.join("bti-da_txn_compaction_50554d6e-29bb-11e5-b345-feff819cdc9f.log");
    fs::write(&log, add_record(&unfinished)).expect("write the log");

    let args = ["--adopt", text(&copy)];
    let mut server = Server::start_in(TempDir::with_prefix("helenus-adopted-").expect("a directory"), &args);
    let head = server.head().join("\n");
    assert!(head.contains("adopted ") && head.contains("nodetool drain"), "{head}");
    let cql = Cql::connect(server.address());
    assert_eq!(rows(&cql, "files_adopt"), expected);
    assert_indexed(&cql, "files_adopt");
    assert!(!Path::new(&format!("{unfinished}Data.db")).exists(), "an unfinished transaction is undone");
    cql.run("INSERT INTO files_adopt.plain (k, c) VALUES (77, 'written here')");
    cql.run("UPDATE files_adopt.counts SET n = n + 1 WHERE k = 'a'");
    assert!(server.stop().success());
    server.restart();
    let cql = Cql::connect(server.address());
    assert_eq!(cql.rows("SELECT * FROM files_adopt.plain WHERE k = 77").len(), 1);
    let counted = cql.rows("SELECT n FROM files_adopt.counts WHERE k = 'a'");
    assert_eq!(counted, [[Some(CqlValue::Counter(scylla::value::Counter(6)))]]);
}

/// A record of Cassandra's transaction log that adds the SSTable with these files.
fn add_record(prefix: &str) -> String {
    // CRC32 of path, kind, time (two ints) and number of files, as `LogRecord` computes it.
    let mut bytes = prefix.as_bytes().to_vec();
    bytes.extend_from_slice(b"ADD");
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&8_i32.to_be_bytes());
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    format!("ADD:[{prefix},0,8][{}]\n", !crc)
}
