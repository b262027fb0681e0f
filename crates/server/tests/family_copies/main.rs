//! Copies tables of every shape that either interface can make, and compares the copies through both interfaces. The
//! copies are DESCRIBE and its statements run again, `schema.cql` of a snapshot and of an export, a backup and its
//! restore, a data directory, and a restart; all of these also after DROP COMPACT STORAGE.
//!
//! `FAMILIES=N` sets the number of rounds, each with some tables. `FAMILY_SEED` selects them:
//!
//!     FAMILIES=2000 FAMILY_SEED=7 cargo test --release -p helenus-server --test family_copies -- --nocapture
#![expect(clippy::unwrap_used, reason = "what fails here fails the run")]

mod interfaces;
mod shapes;

use helenus_engine::Exports;
use helenus_engine::Snapshots;
use std::path::Path;

use helenus_cql::{ImportRequest, syntax::split_statements};
use helenus_engine::CheckedName;
use helenus_engine::import::{FindOptions, ImportProgress, SourceDisk};
use helenus_host::sim::Machine;
use helenus_host::{Host, memory};
use helenus_server::admin::{RestoreOrder, export};
use helenus_server::backup::{BackedUpFile, BackedUpTable, BackupManifest, digest_of, restore};
use interfaces::{KEYSPACE, TestDatabase};
use shapes::{Draw, family, table};

const TABLES: usize = 7;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn make_keyspace(doors: &TestDatabase) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    doors.cql(&format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")).unwrap();
    doors.cql(&format!("CREATE TYPE {KEYSPACE}.pair (a int)")).unwrap();
}

/// A database with random tables; returns also the number of tables.
fn drawn(host: Host, draw: &mut Draw) -> (TestDatabase, usize) {
    let mut doors = TestDatabase::open(host);
    make_keyspace(&doors);
    doors.use_keyspace();
    let mut made = 0;
    for number in 0..TABLES {
        let name = format!("t{number}");
        made += usize::from(match draw.chance(3) {
            true => table(&name, draw, &doors),
            false => family(&name, draw, &mut doors).is_some(),
        });
    }
    (doors, made)
}

fn assert_same(found: &[(String, String)], expected: &[(String, String)], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

/// Runs the statements of DESCRIBE KEYSPACE in another database.
fn replayed(doors: &TestDatabase, internals: &str) -> TestDatabase {
    let cells = doors.cql(&format!("DESCRIBE KEYSPACE {KEYSPACE}{internals}")).unwrap();
    let other = TestDatabase::open(memory::host());
    for described in cells.chunks(4) {
        for statement in split_statements(&described[3]) {
            other.cql(statement).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    other
}

fn imported(disk: &SourceDisk, folders: &[&Path]) -> TestDatabase {
    let other = TestDatabase::open(memory::host());
    make_keyspace(&other);
    for folder in folders {
        let find = FindOptions { keyspace: None, ..FindOptions::default() };
        let request = ImportRequest { directory: folder.to_path_buf(), find, ..ImportRequest::default() };
        other.backend.import(disk, &request, &ImportProgress::default()).unwrap();
    }
    other.backend.database().wait_for_indexes();
    other
}

/// Takes snapshots of all tables, each with its schema as the server writes it.
fn snapshots(doors: &TestDatabase, name: &str) -> Vec<std::path::PathBuf> {
    let database = doors.backend.database();
    let schema = database.schema();
    let keyspace = &schema.keyspaces[KEYSPACE];
    let tables: Vec<_> = keyspace.tables.values().cloned().collect();
    let name = CheckedName::new("a snapshot", name).unwrap();
    let taken = Snapshots::of(database).take(&tables, &name, true).unwrap();
    let described = taken.iter().map(|taken| {
        let text = helenus_cql::LocalBackend::table_text(keyspace, &taken.table);
        Exports::of(database).add_file(&taken.folder.join("schema.cql"), &text).unwrap();
        taken.folder.clone()
    });
    described.collect()
}

fn restored(machine: &Machine, exported: &Path, tables: &[String], to: &Path) -> TestDatabase {
    let disk = machine.host().disk;
    let mut manifest = BackupManifest::new("1f0c".to_owned(), "2026-11-26T00:00:00Z".to_owned(), "1.0.0");
    for table in tables {
        manifest.tables.push(BackedUpTable { keyspace: KEYSPACE.into(), table: table.clone(), sstables: 0 });
    }
    for path in machine.files_below(exported).unwrap() {
        let name = path.strip_prefix(exported).unwrap().to_string_lossy().into_owned();
        let target = to.join(&name);
        disk.create_dir_all(target.parent().unwrap()).unwrap();
        disk.hard_link(&path, &target).unwrap();
        let (sha256, bytes) = digest_of(&*disk, &target, &mut |_| {}).unwrap();
        let path = helenus_engine::CheckedPath::new("a file", &name).unwrap();
        manifest.files.push(BackedUpFile { path, bytes, sha256 });
    }
    manifest.write(&*disk, to).unwrap();
    let other = TestDatabase::open(memory::host());
    let order = RestoreOrder { directory: to.to_owned(), ..RestoreOrder::default() };
    restore(&other.backend, (&disk, Some(Path::new("/db"))), &order, &ImportProgress::default()).unwrap();
    other.backend.database().wait_for_indexes();
    other
}

/// Makes every kind of copy of a database and compares it.
fn copy_all(machine: &Machine, doors: &mut TestDatabase, (what, name): (&str, &str)) {
    let what = format!("{what}, {name}");
    let disk: SourceDisk = machine.host().disk;
    // A flush drops the cells of dropped columns that are older than the drop, although they were written later.
    doors.backend.database().flush_all().unwrap();
    let (schema, rows) = (doors.schema(), doors.rows());
    let is_kept = |(name, _): &&(String, String)| !name.starts_with("dropped_columns");
    let undropped: Vec<_> = schema.iter().filter(is_kept).cloned().collect();
    assert_same(&replayed(doors, "").schema(), &undropped, &format!("{what}, described"));
    assert_same(&replayed(doors, " WITH INTERNALS").schema(), &schema, &format!("{what}, described wholly"));
    let compare = |mut other: TestDatabase, how: &str| {
        assert_same(&other.schema(), &schema, &format!("{what}, {how}"));
        assert_same(&other.rows(), &rows, &format!("{what}, {how}"));
    };
    let exported = export(doors.backend.database(), Some(KEYSPACE), None).unwrap().folder;
    compare(imported(&disk, &[&exported]), "exported");
    compare(restored(machine, &exported, &doors.tables(), &Path::new("/backups").join(name)), "backed up");
    let folders = snapshots(doors, name);
    let folders: Vec<&Path> = folders.iter().map(|folder| &**folder).collect();
    compare(imported(&disk, &folders), "in snapshots");
    compare(imported(&disk, &[Path::new("/db/data")]), "as a data directory");
}

#[test]
fn a_table_of_any_shape_comes_back_from_every_copy_as_both_doors_see_it() {
    let (rounds, seed) = (setting("FAMILIES", 16), setting("FAMILY_SEED", 20_261_126));
    println!("FAMILY_SEED={seed} FAMILIES={rounds}");
    let mut tables = 0;
    for round in 0..rounds {
        let mut draw = Draw(seed.wrapping_add(round));
        let what = format!("FAMILY_SEED={} FAMILIES=1", seed.wrapping_add(round));
        let machine = Machine::new(round);
        let (mut doors, made) = drawn(machine.host(), &mut draw);
        tables += made;
        copy_all(&machine, &mut doors, (&what, "made"));
        let (schema, rows) = (doors.schema(), doors.rows());
        doors.backend.database().close().unwrap();
        drop(doors);
        let again = machine.crash();
        machine.end_tasks();
        let mut doors = TestDatabase::open(again.host());
        assert_same(&doors.schema(), &schema, &format!("{what}, opened again"));
        assert_same(&doors.rows(), &rows, &format!("{what}, opened again"));
        for table in doors.tables() {
            let _ordinary = doors.cql(&format!("ALTER TABLE {KEYSPACE}.{table} DROP COMPACT STORAGE"));
        }
        copy_all(&again, &mut doors, (&what, "made_ordinary"));
        again.end_tasks();
    }
    println!("{tables} tables");
    assert!(tables as u64 > rounds * TABLES as u64 / 2, "only {tables} tables were made");
}
