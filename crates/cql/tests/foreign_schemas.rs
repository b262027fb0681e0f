//! Snapshots with a `schema.cql` of other versions and makers: everything that can be taken is taken, the rest is passed over with a
//! note, or refused by its line, and then nothing was made.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::{ImportReport, ImportRequest, LocalBackend, LocalOptions};
use helenus_engine::import::{ImportError, ImportProgress};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Disk;
use helenus_host::sim::Machine;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{rows_of, run_on};

const FROM: &str = "/from/shop/t-7ad54392bcdd35a684174e047860b377";

fn open(machine: &Machine, dir: &str) -> (Arc<Database>, Arc<LocalBackend>) {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new(dir)).unwrap();
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    (database, backend)
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    disk.create_dir_all(path.parent().unwrap()).unwrap();
    if disk.exists(path) {
        disk.remove(path).unwrap();
    }
    let file = disk.create(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

fn read(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Files of a table `shop.t` that these statements make, with this `schema.cql`. Returns the table's rows.
fn snapshot(machine: &Machine, statements: &[&str], schema: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let (database, backend) = open(machine, "/source");
    run_on(
        &backend,
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    statements.iter().for_each(|statement| run_on(&backend, statement));
    database.flush_all().unwrap();
    let disk = machine.host().disk;
    for path in machine.files_below(Path::new("/source/data/shop")).unwrap() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with('.') && !path.to_string_lossy().contains("/.helenus-") {
            put(&*disk, &Path::new(FROM).join(name), &read(&*disk, &path));
        }
    }
    put(&*disk, &Path::new(FROM).join("schema.cql"), schema.as_bytes());
    let rows = rows_of(&backend, "SELECT * FROM shop.t");
    database.close().unwrap();
    rows
}

fn import(machine: &Machine, backend: &LocalBackend) -> Result<ImportReport, ImportError> {
    import_from(machine, backend, "/from")
}

fn import_from(
    machine: &Machine,
    backend: &LocalBackend,
    directory: &str,
) -> Result<ImportReport, ImportError> {
    let request = ImportRequest { directory: PathBuf::from(directory), ..ImportRequest::default() };
    backend.import(&machine.host().disk, &request, &ImportProgress::default())
}

/// A type in which `u` stands, by the number of its shape, and a literal of it.
fn shape(kind: usize, inner: (String, String)) -> (String, String) {
    let (ty, value) = inner;
    match kind {
        0 => (format!("frozen<list<{ty}>>"), format!("[{value}]")),
        1 => (format!("frozen<set<{ty}>>"), format!("{{{value}}}")),
        2 => (format!("frozen<map<int, {ty}>>"), format!("{{1: {value}}}")),
        3 => (format!("frozen<map<{ty}, int>>"), format!("{{{value}: 1}}")),
        4 => (format!("frozen<tuple<int, {ty}>>"), format!("(1, {value})")),
        _ => (format!("vector<{ty}, 2>"), format!("[{value}, {value}]")),
    }
}

#[test]
fn types_that_a_table_uses_only_within_others_come_from_the_headers_of_its_files() {
    for kind in 0..36 {
        let machine = Machine::new(kind as u64);
        let u = ("frozen<u>".to_owned(), "{a: 1, n: {b: 'x'}}".to_owned());
        let (ty, value) = shape(kind % 6, if kind < 6 { u } else { shape(kind / 6 - 1, u) });
        let table = format!("CREATE TABLE shop.t (k int PRIMARY KEY, v {ty})").replace("<u>", "<shop.u>");
        let insert = format!("INSERT INTO shop.t (k, v) VALUES (1, {value})");
        let made =
            ["CREATE TYPE shop.n (b text)", "CREATE TYPE shop.u (a int, n frozen<shop.n>)", &table, &insert];
        let rows = snapshot(&machine, &made, &format!("{};\n", table.replace("shop.u", "u")));
        let (database, backend) = open(&machine, "/to");
        import(&machine, &backend).unwrap_or_else(|error| panic!("{table}: {error}"));
        assert_eq!(rows_of(&backend, "SELECT * FROM shop.t"), rows, "{table}");
        assert_eq!(rows.len(), 1);
        run_on(&backend, &insert);
        assert_eq!(types_here(&database), ["n", "u"], "{table}");
    }
}

fn types_here(database: &Database) -> Vec<String> {
    database.schema().keyspaces["shop"].types.keys().map(ToString::to_string).collect()
}

const NESTED: [&str; 4] = [
    "CREATE TYPE shop.n (b text)",
    "CREATE TYPE shop.u (a list<int>, n frozen<shop.n>)",
    "CREATE TABLE shop.t (k int PRIMARY KEY, v frozen<list<frozen<shop.u>>>)",
    "INSERT INTO shop.t (k, v) VALUES (1, [{a: [1], n: {b: 'x'}}])",
];

#[test]
fn the_types_of_a_snapshot_that_lies_under_another_name_are_found() {
    let machine = Machine::new(1);
    let rows = snapshot(&machine, &NESTED, NESTED[2]);
    let disk = machine.host().disk;
    for path in machine.files_below(Path::new(FROM)).unwrap() {
        put(&*disk, &Path::new("/moved/backup/here").join(path.file_name().unwrap()), &read(&*disk, &path));
    }
    let (database, backend) = open(&machine, "/to");
    import_from(&machine, &backend, "/moved").unwrap();
    assert_eq!(rows_of(&backend, "SELECT * FROM shop.t"), rows);
    assert_eq!(types_here(&database), ["n", "u"]);
}

/// `ColumnFamilyStoreCQLHelper` of Cassandra 3.11 has no IF NOT EXISTS for types, and marks fields as frozen where the column is.
#[test]
fn types_that_each_table_of_a_snapshot_repeats_are_made_once_with_all_their_fields() {
    let first = "CREATE TYPE shop.n(b text);\nCREATE TYPE shop.u(a frozen<list<int>>, n frozen<shop.n>);\n";
    let more = "CREATE TYPE shop.n(b text, c int);\nCREATE TYPE shop.u(a list<int>, n n);\n";
    for (of_t, of_s) in [(first, first), (first, more), (more, first)] {
        let machine = Machine::new(1);
        snapshot(&machine, &NESTED, &format!("{of_t}{};\n", NESTED[2]));
        let other = "CREATE TABLE IF NOT EXISTS shop.s (k int PRIMARY KEY, v frozen<shop.u>);\n";
        let folder = Path::new("/from/shop/s-8ad54392bcdd35a684174e047860b377");
        put(&*machine.host().disk, &folder.join("schema.cql"), format!("{of_s}{other}").as_bytes());
        let (database, backend) = open(&machine, "/to");
        import(&machine, &backend).unwrap_or_else(|error| panic!("{of_t} and {of_s}: {error}"));
        assert_eq!(rows_of(&backend, "SELECT k FROM shop.t").len(), 1);
        assert_eq!(types_here(&database), ["n", "u"]);
        if (of_t, of_s) != (first, first) {
            run_on(&backend, "INSERT INTO shop.s (k, v) VALUES (1, {a: [1], n: {b: 'x', c: 1}})");
            run_on(&backend, "INSERT INTO shop.t (k, v) VALUES (2, [{a: [1], n: {b: 'x', c: 1}}])");
        }
    }
}

#[test]
fn types_that_say_other_things_in_the_next_table_are_refused() {
    let machine = Machine::new(1);
    let types = "CREATE TYPE shop.n(b text);\nCREATE TYPE shop.u(a list<int>, n frozen<shop.n>);\n";
    snapshot(&machine, &NESTED, &format!("{types}CREATE TYPE shop.n(b int);\n{};\n", NESTED[2]));
    let (_database, backend) = open(&machine, "/to");
    let error = import(&machine, &backend).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
}

#[test]
fn the_next_import_takes_types_that_an_earlier_one_made_or_that_have_grown_since() {
    let machine = Machine::new(1);
    snapshot(&machine, &NESTED, NESTED[2]);
    let (_database, backend) = open(&machine, "/to");
    import(&machine, &backend).unwrap();
    run_on(&backend, "ALTER TYPE shop.n ADD c int");
    let types = "CREATE TYPE shop.n(b text);\nCREATE TYPE shop.u(a list<int>, n frozen<shop.n>);\n";
    let table = "CREATE TABLE IF NOT EXISTS shop.s (k int PRIMARY KEY, v frozen<shop.u>);\n";
    let schema = Path::new("/next/shop/s-8ad54392bcdd35a684174e047860b377/schema.cql");
    put(&*machine.host().disk, schema, format!("{types}{table}").as_bytes());
    import_from(&machine, &backend, "/next").unwrap();
    run_on(&backend, "INSERT INTO shop.s (k, v) VALUES (1, {a: [1], n: {b: 'x', c: 1}})");
}

#[test]
fn a_type_that_is_here_with_more_fields_is_taken() {
    let machine = Machine::new(1);
    let table = "CREATE TABLE shop.t (k int PRIMARY KEY, v frozen<list<frozen<shop.u>>>)";
    let insert = "INSERT INTO shop.t (k, v) VALUES (1, [{a: 1}])";
    snapshot(&machine, &["CREATE TYPE shop.u (a int)", table, insert], table);
    let (_database, backend) = open(&machine, "/to");
    run_on(
        &backend,
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run_on(&backend, "CREATE TYPE shop.u (a int, b text)");
    import(&machine, &backend).unwrap();
    assert_eq!(rows_of(&backend, "SELECT k FROM shop.t").len(), 1);
}

const TABLE: &str = "CREATE TABLE shop.t (k int PRIMARY KEY, v text)";
const INSERT: &str = "INSERT INTO shop.t (k, v) VALUES (1, 'x')";

/// Statements and options as other versions and makers write them, each with a part of its note; `""` for those that are taken.
const OPTIONS: [(&str, &str); 26] = [
    ("dclocal_read_repair_chance = 0.1", "dclocal_read_repair_chance"),
    ("read_repair_chance = 0.0", "read_repair_chance"),
    ("speculative_retry = '99PERCENTILE'", ""),
    ("speculative_retry = '99.0PERCENTILE'", ""),
    ("speculative_retry = 'NONE'", ""),
    ("caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}", ""),
    ("caching = {'keys': 'ALL', 'rows_per_partition': 'ALL', 'enabled': 'true'}", "caching"),
    ("caching = 'KEYS_ONLY'", "caching"),
    (
        "compaction = {'class': 'org.apache.cassandra.db.compaction.DateTieredCompactionStrategy', 'base_time_seconds': '60'}",
        "compaction",
    ),
    ("compaction = {'class': 'IncrementalCompactionStrategy'}", "compaction"),
    (
        "compaction = {'class': 'SizeTieredCompactionStrategy', 'cold_reads_to_omit': '0.05', 'min_threshold': '5'}",
        "cold_reads_to_omit",
    ),
    ("compression = {'sstable_compression': 'org.apache.cassandra.io.compress.LZ4Compressor'}", ""),
    (
        "compression = {'sstable_compression': 'SnappyCompressor', 'chunk_length_kb': '64', 'crc_check_chance': '0.5'}",
        "",
    ),
    ("compression = {'sstable_compression': ''}", ""),
    ("compression = {'sstable_compression': 'LZ4WithDictsCompressor'}", "compression"),
    ("nodesync = {'enabled': 'true', 'incremental': 'true'}", "nodesync"),
    ("tombstone_gc = {'mode': 'timeout', 'propagation_delay_in_seconds': '3600'}", "tombstone_gc"),
    ("paxos_grace_seconds = 864000", "paxos_grace_seconds"),
    ("cdc = {'enabled': 'true', 'preimage': 'true'}", "cdc"),
    ("cdc = true", ""),
    ("in_memory = true", "in_memory"),
    ("populate_io_cache_on_flush = 'false'", "populate_io_cache_on_flush"),
    ("memtable = {'class': 'SkipListMemtable'}", "memtable"),
    ("extensions = {'DSE_GRAPH': 'x'}", ""),
    ("allow_auto_snapshot = true", ""),
    ("default_time_to_live = 0", ""),
];

#[test]
fn options_of_other_versions_and_makers_are_taken_or_passed_over_with_a_note() {
    for seed in 0..60_u64 {
        let machine = Machine::new(seed);
        let mut random = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut chosen: Vec<(&str, &str)> = Vec::new();
        let at = |random: &mut u64| {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            OPTIONS[(*random % OPTIONS.len() as u64) as usize]
        };
        chosen.push(OPTIONS[seed as usize % OPTIONS.len()]);
        for _ in 0..3 {
            let next = at(&mut random);
            let name = |option: &str| option.split(' ').next().unwrap().to_owned();
            if chosen.iter().all(|(option, _)| name(option) != name(next.0)) {
                chosen.push(next);
            }
        }
        let options: Vec<&str> = chosen.iter().map(|(option, _)| *option).collect();
        let schema = format!("{TABLE} WITH {};\n", options.join("\n    AND "));
        snapshot(&machine, &[TABLE, INSERT], &schema);
        let (_database, backend) = open(&machine, "/to");
        let report = import(&machine, &backend).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let notes = report.notes.join("\n");
        for (option, note) in chosen {
            assert!(notes.contains(note), "{option}: {notes}");
            if note.is_empty() {
                assert!(!notes.contains(option.split(' ').next().unwrap()), "{option}: {notes}");
            }
        }
        assert_eq!(rows_of(&backend, "SELECT k FROM shop.t").len(), 1, "{schema}");
    }
}

/// Statements beside the table's, and a part of the note of each.
const STATEMENTS: [(&str, &str); 15] = [
    (
        "CREATE OR REPLACE FUNCTION shop.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS $$ return a; $$",
        "functions",
    ),
    ("CREATE AGGREGATE shop.s (int) SFUNC f STYPE int", "aggregates"),
    (
        "CREATE MATERIALIZED VIEW shop.by_v AS SELECT * FROM shop.t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k) WITH comment = 'x'",
        "materialized views",
    ),
    (
        "CREATE CUSTOM INDEX by_sasi ON shop.t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {'mode': 'CONTAINS'}",
        "by_sasi",
    ),
    (
        "CREATE CUSTOM INDEX by_sasi3 ON shop.t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS { 'mode': 'CONTAINS' }",
        "by_sasi3",
    ),
    ("CREATE TRIGGER tr ON shop.t USING 'org.x.Trigger'", "triggers"),
    (
        "CREATE KEYSPACE system_auth WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}",
        "node itself",
    ),
    ("CREATE TABLE system_auth.roles (role text PRIMARY KEY, can_login boolean)", "node itself"),
    ("CREATE TABLE system_distributed_everywhere.cdc_generations (id uuid PRIMARY KEY)", "node itself"),
    ("CREATE TABLE dse_system.x (id uuid PRIMARY KEY)", "node itself"),
    ("CREATE ROLE bob WITH PASSWORD = 'x' AND LOGIN = true", "roles"),
    ("GRANT SELECT ON KEYSPACE shop TO bob", "grants"),
    ("CREATE SERVICE LEVEL sl WITH timeout = 5ms", "nothing like it"),
    (
        "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3'} AND durable_writes = true AND tablets = {'enabled': false}",
        "tablets",
    ),
    ("CREATE INDEX by_v2 ON shop.t (v)", ""),
];

#[test]
fn other_statements_are_passed_over_with_a_note_in_any_order_and_with_a_byte_order_mark() {
    for seed in 0..30_usize {
        let machine = Machine::new(seed as u64);
        let first = STATEMENTS[seed % STATEMENTS.len()];
        let second = STATEMENTS[(seed * 4 + 3) % STATEMENTS.len()];
        let is_of_table = |text: &str| text.contains("ON shop.t") || text.contains("FROM shop.t");
        let table = format!("CREATE TABLE IF NOT EXISTS{}", TABLE.strip_prefix("CREATE TABLE").unwrap());
        let mut statements = vec![first.0, second.0, &table];
        if first.0 == second.0 {
            statements.remove(1);
        }
        statements.sort_by_key(|text| (is_of_table(text), !text.contains("KEYSPACE IF NOT")));
        let mark = if seed % 2 == 0 { "\u{feff}" } else { "" };
        let schema = format!("{mark}{};\n", statements.join(";\n\n"));
        snapshot(&machine, &[TABLE, INSERT], &schema);
        let (_database, backend) = open(&machine, "/to");
        let report = import(&machine, &backend).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let notes = report.notes.join("\n");
        for note in [first.1, second.1] {
            assert!(notes.contains(note), "{schema}: {notes}");
        }
        assert_eq!(rows_of(&backend, "SELECT k FROM shop.t").len(), 1, "{schema}");
    }
}

#[test]
fn what_is_no_statement_of_a_schema_is_refused_by_its_line_and_nothing_is_made() {
    for bad in [
        "INSERT INTO shop.t (k) VALUES (1)",
        "CREATE TABEL x",
        "SELECT * FROM shop.t",
        "CREATE TABLE shop.x (a nosuch PRIMARY KEY)",
    ] {
        let machine = Machine::new(3);
        snapshot(&machine, &[TABLE, INSERT], &format!("-- a comment\n{TABLE};\n\n{bad};\n"));
        let (database, backend) = open(&machine, "/to");
        let error = import(&machine, &backend).unwrap_err().to_string();
        assert!(error.contains("schema.cql: line 4: "), "{bad}: {error}");
        assert!(!database.schema().keyspaces.contains_key("shop"), "{bad}");
    }
}
