//! Files of tables and of their indexes that somebody adds, removes or replaces between two runs: a search through an index
//! finds what a read of the whole table finds, or is refused until the index is built anew. It never answers less.
//!
//! `MOVED_RUNS` is the number of runs, `MOVED_SEED` says which.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::backend::{Backend, Identity, Request};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, Event, Journal, JournalSlot};
use helenus_host::Disk;
use helenus_host::sim::{Call, Fault, Machine};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Collected, run_on};

/// Whether a search finds a row with these values.
type Keep<'k> = &'k dyn Fn(Option<&[u8]>, Option<i32>) -> bool;

const TABLES: &str = "/db/data/ks";

/// Names of the indexes of which a start said that they may lack entries, and how often one said that their files were not recorded.
#[derive(Default)]
struct Told(Mutex<Vec<String>>, Mutex<u32>);

impl Journal for Told {
    fn note(&self, event: &Event<'_>) {
        if let Event::IndexIncomplete { index, .. } = event {
            self.0.lock().push((*index).to_owned());
        }
        if let Event::IndexFilesNotKept { .. } = event {
            *self.1.lock() += 1;
        }
    }
}

/// The bytes of files by their paths.
type Files = BTreeMap<PathBuf, Vec<u8>>;

struct Run {
    machine: Machine,
    random: u64,
    told: Arc<Told>,
    /// Files below the table's folder as they were at earlier stops.
    copies: Vec<Files>,
    open: Option<(Arc<Database>, Arc<LocalBackend>)>,
    writes: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let told = Arc::new(Told::default());
        let mut run =
            Run { machine: Machine::new(seed), random, told, copies: Vec::new(), open: None, writes: 0 };
        run.start();
        run.run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        run.run("CREATE TABLE ks.t (k int, c int, v text, w int, PRIMARY KEY (k, c))");
        run.run("CREATE INDEX on_v ON ks.t (v)");
        run.run("CREATE CUSTOM INDEX on_w ON ks.t (w) USING 'StorageAttachedIndex'");
        run.machine.run_until_idle();
        run
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }

    fn start(&mut self) {
        let journal = JournalSlot::of(self.told.clone());
        let options = DatabaseOptions { journal, ..DatabaseOptions::new("/db") };
        let (database, _) = Database::open(self.machine.host(), options).unwrap();
        let backend = LocalBackend::new(database.clone(), LocalOptions::default());
        self.open = Some((database, backend));
    }

    /// Ends the process: cleanly, or by a cut that keeps what was synced.
    fn stop(&mut self, cleanly: bool) {
        let Some((database, backend)) = self.open.take() else { return };
        if cleanly {
            database.close().unwrap();
        }
        drop((database, backend));
        let next = self.machine.crash();
        self.machine.end_tasks();
        self.machine = next;
    }

    fn backend(&self) -> &LocalBackend {
        &self.open.as_ref().unwrap().1
    }

    fn run(&self, statement: &str) {
        run_on(self.backend(), statement);
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.writes += 1;
            let (k, c, v, w) = (self.below(5), self.below(8), self.below(4), self.below(20));
            match self.below(6) {
                0 => self.run(&format!("DELETE FROM ks.t WHERE k = {k} AND c = {c}")),
                1 => self.run(&format!("DELETE v FROM ks.t WHERE k = {k} AND c = {c}")),
                _ => self.run(&format!("INSERT INTO ks.t (k, c, v, w) VALUES ({k}, {c}, 'v{v}', {w})")),
            }
            if self.below(25) == 0 {
                self.open.as_ref().unwrap().0.flush_all().unwrap();
            }
            if self.below(20) == 0 {
                // The flusher chooses hidden tables apart.
                let table = self.open.as_ref().unwrap().0.schema().table("ks", "t").cloned().unwrap();
                let hidden: Vec<_> = table.indexes.values().map(|index| index.id).collect();
                let at = self.below(hidden.len() as u64) as usize;
                self.open.as_ref().unwrap().0.flush(hidden[at]).unwrap();
            }
            if self.below(60) == 0 {
                self.machine.run_until_idle();
            }
        }
    }

    fn files(&self) -> Files {
        let files = self.machine.files_below(Path::new(TABLES)).unwrap_or_default();
        let disk = self.machine.host().disk;
        files.into_iter().map(|path| (path.clone(), read(&*disk, &path))).collect()
    }

    /// Replaces all files below the folder of the keyspace by these.
    fn set_files(&self, files: &Files) {
        let disk = self.machine.host().disk;
        for path in self.files().keys() {
            disk.remove(path).unwrap();
        }
        for (path, bytes) in files {
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            let file = disk.create(path).unwrap();
            file.write_all_at(bytes, 0).unwrap();
            file.sync().unwrap();
            path.ancestors().skip(1).take(5).for_each(|folder| _ = disk.sync_dir(folder));
        }
    }

    /// Does to the files of a stopped database what somebody may do. Returns a name for it.
    fn tamper(&mut self) -> &'static str {
        let now = self.files();
        // The last one half the time: it is of the run before.
        let at = match self.below(2) {
            0 => self.copies.len().saturating_sub(1),
            _ => self.below(self.copies.len() as u64 + 1) as usize,
        };
        let old = self.copies.get(at).cloned().unwrap_or_default();
        let is_index = |path: &Path| path.to_string_lossy().contains("/.helenus-on_");
        let (next, what): (Files, _) = match self.below(9) {
            0 => (old.clone(), "the whole folder of an earlier stop"),
            1 => (old.into_iter().chain(now).collect(), "earlier files put back beside those of now"),
            2 => (now.into_iter().filter(|(path, _)| !is_index(path)).collect(), "index folders removed"),
            3 => {
                let of_table = now.into_iter().filter(|(path, _)| is_index(path) || is_hidden(path));
                (of_table.collect(), "the table's files taken away")
            }
            4 => {
                let indexes = now.into_iter().filter(|(path, _)| is_index(path) || is_hidden(path));
                let tables = old.into_iter().filter(|(path, _)| !is_index(path) && !is_hidden(path));
                (
                    indexes.chain(tables).collect(),
                    "the table's files of an earlier stop, as `cp *` puts them back",
                )
            }
            5 => {
                let tables = now.into_iter().filter(|(path, _)| !is_index(path));
                let indexes = old.into_iter().filter(|(path, _)| is_index(path));
                (tables.chain(indexes).collect(), "index folders of an earlier stop")
            }
            6 => {
                let prefixes: Vec<PathBuf> = now
                    .keys()
                    .filter(|path| path.to_string_lossy().ends_with("Data.db"))
                    .map(|path| {
                        path.with_file_name(
                            path.file_name().unwrap().to_str().unwrap().replace("Data.db", ""),
                        )
                    })
                    .collect();
                match prefixes.is_empty() {
                    true => (now, "nothing"),
                    false => {
                        let gone = &prefixes[self.below(prefixes.len() as u64) as usize];
                        let stays =
                            |path: &Path| !path.to_string_lossy().starts_with(&*gone.to_string_lossy());
                        (now.into_iter().filter(|(path, _)| stays(path)).collect(), "one SSTable removed")
                    }
                }
            }
            7 => (
                now.into_iter().filter(|(path, _)| !is_hidden(path)).collect(),
                "the record of files removed",
            ),
            _ => (now, "nothing"),
        };
        self.set_files(&next);
        what
    }

    /// Compares each search with a read of all rows.
    fn check(&self, what: &str, may_be_refused: bool) {
        let all = support::rows_of(self.backend(), "SELECT k, c, v, w FROM ks.t");
        let found = |keep: Keep<'_>| -> Vec<Vec<Option<Vec<u8>>>> {
            let int = |bytes: &Vec<u8>| i32::from_be_bytes(bytes.as_slice().try_into().unwrap());
            let rows = all.iter().filter(|row| keep(row[2].as_deref(), row[3].as_ref().map(int)));
            rows.map(|row| row[..2].to_vec()).collect()
        };
        let mut searches = Vec::new();
        for v in 0..4 {
            let value = format!("v{v}");
            searches.push((
                format!("SELECT k, c FROM ks.t WHERE v = '{value}'"),
                found(&|v, _| v == Some(value.as_bytes())),
            ));
        }
        for w in [0, 5, 13] {
            searches
                .push((format!("SELECT k, c FROM ks.t WHERE w = {w}"), found(&|_, found| found == Some(w))));
        }
        let range = "SELECT k, c FROM ks.t WHERE w >= 4 AND w < 15".to_owned();
        searches.push((range, found(&|_, found| found.is_some_and(|w| (4..15).contains(&w)))));
        for (statement, expected) in searches {
            match asked_once(self.backend(), &statement) {
                Ok(rows) => assert_eq!(rows, expected, "{what}: {statement}"),
                Err(error) => {
                    assert!(may_be_refused && is_refusal(&error), "{what}: {statement}: {error}");
                }
            }
        }
    }
}

/// The rows of a SELECT; an index that is being built is not waited for.
fn asked_once(backend: &LocalBackend, query: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, CqlError> {
    let identity = Identity::default();
    let request = Request { keyspace: None, ..Request::plain(&identity, &[]) };
    let mut out = Collected::default();
    backend.query(query, &request, &mut out)?;
    Ok(out.into_rows())
}

fn is_refusal(error: &CqlError) -> bool {
    error.to_string().contains("not yet available") || matches!(error, CqlError::ReadFailure { .. })
}

/// A file of ours in the table's folder that `cp *` does not take.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn read(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn an_index_never_answers_less_than_its_table_whatever_was_done_to_the_files() {
    let mut rebuilt = 0;
    let seeds = number("MOVED_SEED", 1)..number("MOVED_SEED", 1) + number("MOVED_RUNS", 60);
    for seed in seeds {
        let mut run = Run::new(seed);
        for round in 0..6 {
            let count = run.below(80);
            run.write(count);
            let cleanly = run.below(3) > 0;
            run.stop(cleanly);
            let what = if round % 2 == 1 { run.tamper() } else { "nothing" };
            let what = format!("seed {seed}, round {round}, {what}");
            run.told.0.lock().clear();
            run.start();
            run.check(&what, true);
            let told = std::mem::take(&mut *run.told.0.lock());
            if what.ends_with("nothing") {
                assert_eq!(told, Vec::<String>::new(), "{what}: nothing was changed");
            }
            rebuilt += told.len();
            run.machine.run_until_idle();
            run.check(&what, false);
            // A copy of a cold folder, after a clean stop or another, with more writes behind it.
            let count = run.below(10);
            run.write(count);
            let cleanly = run.below(2) > 0;
            run.stop(cleanly);
            run.copies.push(run.files());
            run.start();
        }
        run.stop(true);
    }
    assert!(rebuilt > 0);
}

#[test]
fn without_its_commit_log_an_index_is_built_anew() {
    let mut run = Run::new(7);
    run.write(50);
    run.open.as_ref().unwrap().0.flush_all().unwrap();
    run.write(50);
    let table = run.open.as_ref().unwrap().0.schema().table("ks", "t").unwrap().id;
    run.open.as_ref().unwrap().0.flush(table).unwrap();
    run.stop(false);
    let disk = run.machine.host().disk;
    for path in run.machine.files_below(Path::new("/db/commitlog")).unwrap() {
        disk.remove(&path).unwrap();
    }
    run.start();
    run.check("no log", true);
    run.machine.run_until_idle();
    run.check("no log", false);
    assert!(!run.told.0.lock().is_empty());
}

/// As after `cp -r` by another user: the record is there and may not be opened.
#[test]
fn a_record_that_cannot_be_read_is_as_none_and_the_start_goes_on() {
    for (call, error) in [(Call::Open, ErrorKind::PermissionDenied), (Call::Read, ErrorKind::Other)] {
        let mut run = Run::new(3);
        run.write(50);
        run.stop(true);
        run.machine.fail(Fault::new(call, 1, error).on(".helenus-indexed").lasting());
        run.start();
        run.check("no record", true);
        run.machine.clear_faults();
        run.machine.run_until_idle();
        run.check("no record", false);
        assert_eq!(run.told.0.lock().len(), 2, "{call:?}: both indexes are built anew");
        run.stop(true);
        run.told.0.lock().clear();
        run.start();
        run.check("a new record", false);
        assert!(run.told.0.lock().is_empty(), "{call:?}: they are complete again");
    }
}

/// The log takes its reserve first, and another file that it gives up may have room for the record. Where none has, the start says so,
/// and the record of the run before is as right.
#[test]
fn a_start_with_a_full_disk_goes_on_and_its_indexes_are_complete() {
    for (has_reserve, has_room) in [(true, true), (true, false), (false, true)] {
        let mut run = Run::new(5);
        run.write(60);
        run.stop(true);
        let reserve = Path::new("/db/commitlog/reserve.log");
        let disk = run.machine.host().disk;
        if !has_reserve && disk.exists(reserve) {
            disk.remove(reserve).unwrap();
        }
        run.machine.set_capacity(run.machine.used_bytes());
        if !has_room {
            let full = Fault::new(Call::Create, 1, ErrorKind::StorageFull).on(".helenus-indexed").lasting();
            run.machine.fail(full);
        }
        run.start();
        run.check("a full disk", false);
        assert!(has_reserve && has_room || *run.told.1.lock() > 0, "{has_reserve} {has_room}: it is told");
        run.stop(false);
        run.start();
        run.check("a full disk, and a crash", false);
        run.machine.clear_faults();
        run.machine.set_capacity(u64::MAX);
        run.write(60);
        run.machine.run_until_idle();
        run.check("room again", false);
        for cleanly in [false, true] {
            run.stop(cleanly);
            run.start();
            run.check("the next start", false);
        }
        assert!(run.told.0.lock().is_empty(), "no index is built anew");
    }
}

/// An index that is not complete, which a full disk does not let be recorded.
#[test]
fn an_index_in_doubt_at_a_start_with_a_full_disk_stays_in_doubt() {
    let mut run = Run::new(7);
    run.write(60);
    run.stop(true);
    let files = run.files();
    run.start();
    run.write(60);
    run.stop(true);
    run.set_files(&files);
    run.machine.set_capacity(run.machine.used_bytes());
    run.start();
    run.check("a full disk", true);
    run.stop(false);
    run.machine.set_capacity(u64::MAX);
    run.start();
    run.check("room again", true);
    run.machine.run_until_idle();
    run.check("built anew", false);
}
