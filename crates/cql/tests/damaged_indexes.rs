//! Flipped bits in the SSTables of secondary indexes, which stand in folders of their own below their table's: a search through
//! the index finds the right rows or names the file, and the table, its other indexes and its writes go on.
//!
//! `FLIPS` bits of each file; `FLIP_SEED` says which.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{run_on, try_rows_of};

type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// Each index with statements that go through it: an entry a row, several, a range.
const SEARCHES: [(&str, &[&str]); 3] = [
    ("on_v", &["SELECT k, c FROM ks.t WHERE v = 'v1'", "SELECT k, c FROM ks.t WHERE k = 3 AND v = 'v4'"]),
    ("on_w", &["SELECT k, c FROM ks.t WHERE w >= 40 AND w < 60", "SELECT k, c FROM ks.t WHERE w = 13"]),
    ("on_m", &["SELECT k, c FROM ks.t WHERE m CONTAINS KEY 'm2'"]),
];

fn open(machine: &Machine) -> (Arc<Database>, Arc<LocalBackend>) {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    (database, backend)
}

/// Two SSTables of the table and of each index, the second with updates and deletions of what the first has.
fn written() -> Machine {
    let machine = Machine::new(1);
    let (database, backend) = open(&machine);
    run_on(
        &backend,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run_on(&backend, "CREATE TABLE ks.t (k int, c int, v text, w int, m map<text, int>, PRIMARY KEY (k, c))");
    run_on(&backend, "CREATE INDEX on_v ON ks.t (v)");
    run_on(&backend, "CREATE CUSTOM INDEX on_w ON ks.t (w) USING 'StorageAttachedIndex'");
    run_on(&backend, "CREATE INDEX on_m ON ks.t (KEYS(m))");
    machine.run_until_idle();
    for row in 0..300 {
        let (k, c, v) = (row % 7, row / 7, row % 9);
        let insert = format!(
            "INSERT INTO ks.t (k, c, v, w, m) VALUES ({k}, {c}, 'v{v}', {row}, {{'m{}': 1}})",
            row % 5
        );
        run_on(&backend, &insert);
    }
    database.flush_all().unwrap();
    for row in (0..300).step_by(11) {
        let (k, c) = (row % 7, row / 7);
        match row % 2 {
            0 => run_on(&backend, &format!("UPDATE ks.t SET v = 'v1', w = 50 WHERE k = {k} AND c = {c}")),
            _ => run_on(&backend, &format!("DELETE FROM ks.t WHERE k = {k} AND c = {c}")),
        }
    }
    database.flush_all().unwrap();
    let cut = machine.crash();
    machine.end_tasks();
    cut
}

fn names(error: &CqlError, path: &Path) -> bool {
    error.to_string().contains(&*path.to_string_lossy())
}

fn right(backend: &LocalBackend) -> BTreeMap<&'static str, Rows> {
    let statements = SEARCHES.iter().flat_map(|(_, statements)| statements.iter());
    statements.map(|statement| (*statement, support::rows_of(backend, statement))).collect()
}

/// Looks at a database one of whose files is damaged. Whether a search has told of it.
fn check(
    (database, backend): (&Database, &LocalBackend),
    path: &Path,
    right: &BTreeMap<&str, Rows>,
    what: &str,
) -> bool {
    let mut told = false;
    for (index, statements) in SEARCHES {
        let is_its = path.to_string_lossy().contains(&format!("/.helenus-{index}-"));
        for statement in statements {
            match try_rows_of(backend, statement) {
                Ok(rows) => assert_eq!(rows, right[statement], "{what}: {statement}"),
                Err(error) => {
                    assert!(is_its, "{what}: {statement}, of another index: {error}");
                    assert!(names(&error, path), "{what}: {statement}: {error}");
                    told = true;
                }
            }
        }
    }
    let all = support::rows_of(backend, "SELECT count(*) FROM ks.t");
    assert_eq!(all, [[Some(286_i64.to_be_bytes().to_vec())]], "{what}: the table itself");
    run_on(backend, "INSERT INTO ks.t (k, c, v, w) VALUES (100, 1, 'new', 1000)");
    // A flush beside it throws nothing away that could not be read.
    let is_there = database.host().disk.exists(path);
    database.flush_all().unwrap();
    assert_eq!(database.host().disk.exists(path), is_there, "{what}: gone");
    told
}

#[test]
fn a_flipped_bit_in_an_index_is_named_by_its_searches_or_changes_nothing_and_the_table_goes_on() {
    let base = written();
    let (database, backend) = open(&base);
    let right = right(&backend);
    drop((database, backend));
    base.end_tasks();
    let base = base.crash();
    let files = base.files_below(Path::new("/db/data/ks")).unwrap();
    let files: Vec<_> =
        files.into_iter().filter(|path| path.to_string_lossy().contains("/.helenus-")).collect();
    for (index, _) in SEARCHES {
        let of_it = |path: &&PathBuf| path.to_string_lossy().contains(&format!("/.helenus-{index}-"));
        let mut data = files.iter().filter(of_it);
        assert!(data.any(|path| path.to_string_lossy().ends_with("-Data.db")), "{index} has entries");
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let random = Machine::new(number("FLIP_SEED", 1)).host().random;
    let below = |n: u64| {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % n
    };
    let (mut flips, mut told) = (0, BTreeMap::<String, u64>::new());
    for path in files {
        let size = base.host().disk.open(&path).unwrap().size().unwrap();
        for _ in 0..if size > 0 { number("FLIPS", 6) } else { 0 } {
            let (offset, bit) = (below(size), below(8) as u8);
            let component = path.to_string_lossy().rsplit('-').next().unwrap().to_owned();
            for before_opening in [true, false] {
                let what = format!("{} at byte {offset}, bit {bit}, {before_opening}", path.display());
                let cut = base.crash();
                if before_opening {
                    cut.flip_bit(&path, offset, bit).unwrap();
                }
                let (database, backend) = open(&cut);
                if !before_opening {
                    cut.flip_bit(&path, offset, bit).unwrap();
                }
                // Without the record of files the indexes are built anew.
                cut.run_until_idle();
                let has_told = check((&database, &backend), &path, &right, &what);
                *told.entry(component.clone()).or_default() += u64::from(has_told);
                flips += 1;
                cut.end_tasks();
            }
        }
    }
    println!("{flips} flips; told of {told:?}");
    assert!(told["Data.db"] > 0 && told["Partitions.db"] > 0, "{told:?}");
}
