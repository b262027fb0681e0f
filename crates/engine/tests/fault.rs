//! Failing calls of the disk, a full disk, a medium that loses data: checks what is refused, what goes on, and that no
//! answer is ever wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions, Error, SyncMode};
use helenus_host::sim::{Call, Fault, Machine};
use helenus_model::mutation::Mutation;
use helenus_sstable::Error as TableError;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::random::{Random, from_environment};
use support::*;

const CALLS: [Call; 11] = [
    Call::Open,
    Call::Create,
    Call::Read,
    Call::Write,
    Call::Allocate,
    Call::Sync,
    Call::SyncDir,
    Call::Rename,
    Call::Remove,
    Call::CreateDir,
    Call::List,
];

fn small(options: &mut DatabaseOptions) {
    options.segment_bytes = 16 << 10;
}

fn try_open(machine: &Machine) -> Result<Arc<Database>, Error> {
    let mut options = DatabaseOptions::new("/db");
    small(&mut options);
    Database::open(machine.host(), options).map(|(database, _)| database)
}

/// Writes one row and waits for it.
fn put(database: &Database, name: &str, key: &str, c: i32, v: &str, at: i64) -> Result<(), Error> {
    let table = table_of(database, name);
    let changes = Write::default().insert(&table, c, v, at).changes;
    let update = helenus_model::mutation::PartitionUpdate { table, key: key.as_bytes().to_vec(), changes };
    database.write(&Mutation { updates: vec![update] })?.wait()
}

/// All rows of a table by key and clustering, or the error of the read.
fn all(database: &Database, name: &str) -> Result<BTreeMap<(String, i32), String>, Error> {
    let mut whole = command(database, name, "");
    whole.partitions = helenus_engine::read::Partitions::Range(helenus_engine::read::KeyRange::all());
    let mut rows = Rows::default();
    let view = database.view(&whole.table)?;
    let request = helenus_engine::ReadRequest { may_block: true, ..Default::default() };
    database.read(&whole, &view, request, &mut rows, None)?;
    Ok(rows.rows.into_iter().map(|(key, _, c, v)| ((key, c), v.unwrap_or_default())).collect())
}

/// The expected rows. A write is either acknowledged, or refused; a refused write may be there or not.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeMap<(String, i32), String>,
    /// Refused values since the last acknowledged value of the row.
    doubtful: BTreeMap<(String, i32), Vec<Option<String>>>,
    clock: i64,
}

impl Ledger {
    fn write(&mut self, database: &Database, random: &mut Random) {
        let place = (["a", "b", "c"][random.below(3)].to_string(), random.below(20) as i32);
        self.clock += 1;
        let value = format!("{}-{}", self.clock, "x".repeat(random.below(400)));
        match put(database, "t", &place.0, place.1, &value, self.clock) {
            Ok(()) => {
                self.acknowledged.insert(place.clone(), value);
                self.doubtful.remove(&place);
            }
            Err(_) => self.doubtful.entry(place).or_default().push(Some(value)),
        }
    }

    fn truncate(&mut self, database: &Database) {
        match database.truncate(&table_of(database, "t")) {
            Ok(()) => {
                self.acknowledged.clear();
                self.doubtful.clear();
            }
            Err(_) => {
                let places: Vec<_> = self.acknowledged.keys().chain(self.doubtful.keys()).cloned().collect();
                for place in places {
                    self.doubtful.entry(place).or_default().push(None);
                }
            }
        }
    }

    fn check(&self, found: &BTreeMap<(String, i32), String>, what: &str) {
        let places: std::collections::BTreeSet<_> =
            self.acknowledged.keys().chain(found.keys()).chain(self.doubtful.keys()).collect();
        for place in places {
            let (found, sure) = (found.get(place), self.acknowledged.get(place));
            let doubtful = self
                .doubtful
                .get(place)
                .is_some_and(|values| values.iter().any(|value| value.as_ref() == found));
            assert!(found == sure || doubtful, "{what}: {place:?} is {found:?} and must be {sure:?}");
        }
    }
}

/// One run: operations with a fault at some call, then operations without faults, then a restart.
fn run_with_fault(seed: u64, call: Call, nth: u64, lasting: bool) {
    let what = format!("seed {seed}, {call:?} number {nth}, lasting: {lasting}");
    let machine = Machine::new(seed);
    let mut random = Random::new(seed);
    let database = open_with(&machine.host(), small);
    create(&database, vec![table("t", 1, false), table("other", 2, false)]);
    put(&database, "other", "k", 1, "other", 1).unwrap();
    database.flush_all().unwrap();
    let mut ledger = Ledger::default();
    let fault = Fault::new(call, nth, ErrorKind::Other);
    machine.fail(if lasting { fault.lasting() } else { fault });
    for step in 0..60 {
        if step == 45 {
            machine.clear_faults();
        }
        match random.below(20) {
            0..3 => drop(database.flush(table_of(&database, "t").id)),
            3 => ledger.truncate(&database),
            4 => drop(database.flush_all()),
            7 => drop(database.compact(vec![table_of(&database, "t").id]).wait()),
            5 => match all(&database, "t") {
                Ok(found) => ledger.check(&found, &format!("{what}, step {step}")),
                Err(error) => assert!(
                    step < 45 || matches!(error, Error::Unlogged { .. }),
                    "{what}: a read fails without a fault: {error}"
                ),
            },
            6 => drop(machine.step()),
            _ => ledger.write(&database, &mut random),
        }
    }
    match all(&database, "t") {
        Ok(found) => ledger.check(&found, &format!("{what}, at the end")),
        // Refused writes are only in memory, and are not returned.
        Err(error) => assert!(matches!(error, Error::Unlogged { .. }), "{what}: {error}"),
    }
    assert_eq!(all(&database, "other").unwrap().len(), 1, "{what}");
    for clean in [false, true] {
        let after = if clean {
            let database = try_open(&machine.crash()).ok();
            drop(database);
            machine.crash()
        } else {
            machine.crash()
        };
        let database = try_open(&after).unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
        ledger.check(&all(&database, "t").unwrap(), &format!("{what}, reopened"));
        assert_eq!(all(&database, "other").unwrap().len(), 1, "{what}");
        after.end_tasks();
    }
    machine.end_tasks();
}

#[test]
fn a_failing_call_is_reported_and_loses_nothing_acknowledged() {
    let runs = from_environment("FAULT_RUNS", 5);
    for seed in 1..=runs {
        for (index, call) in CALLS.into_iter().enumerate() {
            let mut random = Random::new(seed * 100 + index as u64);
            run_with_fault(seed, call, 1 + random.below(40) as u64, random.chance(40));
        }
    }
}

#[test]
fn a_failing_call_while_opening_leaves_a_directory_that_opens() {
    for call in CALLS {
        for nth in 1..12 {
            let machine = Machine::new(nth);
            let database = open_with(&machine.host(), small);
            create(&database, vec![table("t", 1, false)]);
            for c in 0..30 {
                put(&database, "t", "a", c, &"x".repeat(600), 1).unwrap();
                if c == 20 {
                    database.flush_all().unwrap();
                }
            }
            let after = machine.crash();
            machine.end_tasks();
            after.fail(Fault::new(call, nth, ErrorKind::Other));
            let failed = try_open(&after).err();
            after.end_tasks();
            let again = after.crash();
            let database =
                try_open(&again).unwrap_or_else(|error| panic!("{call:?} {nth}, {failed:?}: {error}"));
            assert_eq!(all(&database, "t").unwrap().len(), 30, "{call:?} {nth}");
            again.end_tasks();
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_reads_go_on_and_room_ends_it() {
    let machine = Machine::new(1);
    let database = open_with(&machine.host(), small);
    create(&database, vec![table("t", 1, false)]);
    put(&database, "t", "a", 0, "first", 1).unwrap();
    machine.set_capacity(machine.used_bytes() + 20_000);
    let mut written = 1;
    let error = loop {
        match put(&database, "t", "a", written, &"x".repeat(1000), 1) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "the disk never fills");
    };
    assert!(matches!(error, Error::LogFull { .. }), "{error}");
    assert!(error.to_string().contains("free space"), "{error}");
    for _ in 0..3 {
        assert_eq!(all(&database, "t").unwrap().len() as i32, written, "a refused write is not there");
        assert!(matches!(put(&database, "t", "b", 0, &"x".repeat(1000), 1), Err(Error::LogFull { .. })));
        assert!(database.flush_all().is_err(), "a flush has no room either");
    }
    machine.set_capacity(u64::MAX);
    put(&database, "t", "a", written, "after", 1).unwrap();
    assert!(database.flush_all().is_ok());
    assert_eq!(all(&database, "t").unwrap().len() as i32, written + 1);
    let after = machine.crash();
    machine.end_tasks();
    let database = try_open(&after).unwrap();
    assert_eq!(all(&database, "t").unwrap().len() as i32, written + 1);
    after.end_tasks();
}

#[test]
fn a_failed_sync_of_the_log_is_final_until_a_restart() {
    for mode in [SyncMode::Group, SyncMode::Batch] {
        let machine = Machine::new(1);
        let database = open_with(&machine.host(), |options| options.sync = Some(mode));
        create(&database, vec![table("t", 1, false)]);
        put(&database, "t", "a", 1, "safe", 1).unwrap();
        put(&database, "t", "b", 1, "safe", 1).unwrap();
        machine.fail(Fault::new(Call::Sync, 1, ErrorKind::Other).on("/commitlog/"));
        for c in 2..5 {
            // The first write meets the failed sync, the others a log that has failed: no later sync repairs it.
            let error = put(&database, "t", "a", c, "lost", 1).unwrap_err();
            assert!(matches!(error, Error::LogFailed { .. }), "{error}");
            assert!(error.to_string().contains("until a restart"), "{error}");
        }
        assert!(database.flush_all().is_err(), "what the log may have lost does not become a file");
        assert_eq!(rows_of(&database, "t", "b"), [(1, "safe".into())]);
        let error = all(&database, "t").unwrap_err();
        assert!(error.to_string().contains("restart the server to read it"), "{error}");
        let after = machine.crash();
        machine.end_tasks();
        let database = try_open(&after).unwrap();
        assert_eq!(rows_of(&database, "t", "a")[0], (1, "safe".into()));
        assert_eq!(rows_of(&database, "t", "b"), [(1, "safe".into())]);
        put(&database, "t", "a", 6, "again", 1).unwrap();
        after.end_tasks();
    }
}

/// The kernel reports a failed write once: what a start reads may be in its page cache alone, and a sync does not mend that.
#[test]
fn what_a_start_shows_after_a_failed_sync_and_a_refused_cut_survives_a_power_cut() {
    let mut shown_refused = 0;
    for seed in 0..40 {
        let rows_before = [1, 2, 100, 400][seed as usize % 4];
        let machine = Machine::new(seed);
        let database = open_with(&machine.host(), |options| options.sync = Some(SyncMode::Group));
        create(&database, vec![table("t", 1, false)]);
        for c in 0..rows_before {
            put(&database, "t", "a", c, &"safe".repeat(50), 1).unwrap();
        }
        machine.fail(Fault::new(Call::Sync, 1, ErrorKind::Other).on("/commitlog/"));
        machine.fail(Fault::new(Call::SetSize, 1, ErrorKind::Other).on("/commitlog/").lasting());
        // The first write is the record's. The next one would end the log before it, and leaves a beginning of its bytes.
        machine.fail(Fault::new(Call::Write, 2, ErrorKind::Other).on("/commitlog/").lasting());
        put(&database, "t", "a", rows_before, &"refused".repeat(50), 1).unwrap_err();
        machine.end_tasks();
        drop(database);
        machine.clear_faults();
        let database = try_open(&machine).unwrap();
        let shown = rows_of(&database, "t", "a");
        shown_refused += shown.len() as i32 - rows_before;
        let after = machine.crash();
        machine.end_tasks();
        let database = try_open(&after).unwrap();
        assert_eq!(rows_of(&database, "t", "a"), shown, "seed {seed}");
        after.end_tasks();
    }
    assert!(shown_refused > 0, "some starts find the refused row in the page cache");
}

#[test]
fn a_failed_flush_keeps_what_it_was_to_write() {
    for call in [Call::Create, Call::Write, Call::Sync, Call::SyncDir, Call::Open] {
        for nth in 1..30 {
            let machine = Machine::new(nth);
            let database = open_with(&machine.host(), small);
            create(&database, vec![table("t", 1, false)]);
            for c in 0..5 {
                put(&database, "t", "a", c, "v", 1).unwrap();
            }
            machine.fail(Fault::new(call, nth, ErrorKind::StorageFull).on("/t-"));
            let t = table_of(&database, "t");
            let failed = database.flush(t.id).is_err();
            assert_eq!(failed, machine.faults_struck() > 0, "{call:?} {nth}");
            assert_eq!(rows_of(&database, "t", "a").len(), 5, "{call:?} {nth}");
            database.flush(t.id).unwrap();
            assert_eq!(rows_of(&database, "t", "a").len(), 5, "{call:?} {nth}");
            let files = data_files(&machine, "t-");
            assert_eq!(files.iter().filter(|path| path.ends_with("Data.db")).count(), 1, "{files:?}");
            machine.end_tasks();
            if !failed {
                break;
            }
        }
    }
}

/// The files of a table.
fn data_files(machine: &Machine, folder: &str) -> Vec<String> {
    let disk = machine.host().disk;
    let folders = disk.list(Path::new("/db/data/ks")).unwrap();
    let found = folders.iter().find(|path| path.to_string_lossy().contains(&format!("/{folder}"))).unwrap();
    disk.list(found).unwrap().iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn size(machine: &Machine, path: &str) -> u64 {
    machine.host().disk.open(Path::new(path)).unwrap().size().unwrap()
}

/// Whether an error reports damage of this file with an offset.
fn is_damage_of(error: &Error, path: &str) -> bool {
    match error {
        Error::Table(damage) => is_damage(damage, path),
        Error::Unreadable(damage) => is_damage(damage, path),
        _ => false,
    }
}

fn is_damage(error: &TableError, path: &str) -> bool {
    matches!(error, TableError::Corrupt { file, .. } if file == Path::new(path))
}

#[test]
fn a_flipped_bit_gives_damage_with_its_place_or_the_right_rows_and_other_tables_go_on() {
    let machine = Machine::new(1);
    let database = open_with(&machine.host(), small);
    create(&database, vec![table("t", 1, false), table("other", 2, false)]);
    for c in 0..400 {
        put(&database, "t", ["a", "b"][c as usize % 2], c, &format!("{c}-{}", "x".repeat(100)), 1).unwrap();
    }
    put(&database, "other", "k", 1, "other", 1).unwrap();
    database.flush_all().unwrap();
    let right = all(&database, "t").unwrap();
    let base = machine.crash();
    machine.end_tasks();
    let mut random = Random::new(1);
    let mut told = BTreeMap::new();
    for path in data_files(&base, "t-") {
        let count = if size(&base, &path) > 0 { from_environment("FLIPS", 12) } else { 0 };
        for _ in 0..count {
            let (offset, bit) = (random.next() % size(&base, &path), random.below(8) as u8);
            let what = format!("{path} at byte {offset}, bit {bit}");
            let component = path.rsplit('-').next().unwrap().to_string();
            // The bit is flipped before the table is opened.
            let cut = base.crash();
            cut.flip_bit(Path::new(&path), offset, bit).unwrap();
            match try_open(&cut) {
                Err(error) => panic!("{what}: one damaged table must not keep the others closed: {error}"),
                Ok(database) => {
                    check_damaged(&database, &right, &path, &what, (&component, "after open"), &mut told);
                }
            }
            cut.end_tasks();
            // The bit is flipped while the table is open, before anything is in the cache.
            let cut = base.crash();
            let database = try_open(&cut).unwrap();
            cut.flip_bit(Path::new(&path), offset, bit).unwrap();
            check_damaged(&database, &right, &path, &what, (&component, "while open"), &mut told);
            cut.end_tasks();
        }
    }
    for ((component, when), count) in &told {
        eprintln!("{component} {when}: {count} reported");
    }
    assert!(told.keys().any(|(component, _)| component == "Data.db"), "damage of the data is seen");
}

type Told = BTreeMap<(String, &'static str), u64>;

fn check_damaged(
    database: &Database,
    right: &BTreeMap<(String, i32), String>,
    path: &str,
    what: &str,
    (component, when): (&str, &'static str),
    told: &mut Told,
) {
    match all(database, "t") {
        Ok(found) => assert!(found == *right, "{what}: wrong rows"),
        Err(error) => {
            assert!(is_damage_of(&error, path), "{what}: {error}");
            *told.entry((component.to_string(), when)).or_insert(0) += 1;
        }
    }
    let mut rows = Rows::default();
    let one = command(database, "t", "a");
    let request = helenus_engine::ReadRequest { may_block: true, ..Default::default() };
    let read =
        database.view(&one.table).and_then(|view| database.read(&one, &view, request, &mut rows, None));
    match read {
        Ok(_) => assert_eq!(rows.rows.len(), 200, "{what}: wrong rows by key"),
        Err(error) => assert!(is_damage_of(&error, path), "{what}: {error}"),
    }
    assert_eq!(all(database, "other").unwrap().len(), 1, "{what}: another table suffers");
    put(database, "t", "z", 1, "new", 5).unwrap();
    assert_eq!(rows_of(database, "other", "k").len(), 1);
    // A flush of the same table removes no unreadable SSTable.
    let disk = &database.host().disk;
    let before = disk.exists(Path::new(path));
    database.flush_all().unwrap();
    assert_eq!(disk.exists(Path::new(path)), before, "{what}: gone");
}

/// The files below a folder.
fn files_below(machine: &Machine, folder: &Path) -> Vec<String> {
    let disk = machine.host().disk;
    let of = |path: PathBuf| match disk.is_dir(&path) {
        true => files_below(machine, &path),
        false => vec![path.to_string_lossy().into_owned()],
    };
    disk.list(folder).unwrap().into_iter().flat_map(of).collect()
}

#[test]
fn a_flipped_bit_in_a_file_of_the_system_keyspaces_is_refused_by_name_or_changes_nothing() {
    let machine = Machine::new(1);
    let database = open_with(&machine.host(), small);
    create(&database, vec![table("t", 1, false)]);
    put(&database, "t", "k", 1, "value", 1).unwrap();
    database.flush_all().unwrap();
    let base = machine.crash();
    machine.end_tasks();
    let (mut random, mut told) = (Random::new(1), 0);
    let files = files_below(&base, Path::new("/db/data"));
    let files: Vec<_> = files.into_iter().filter(|path| path.starts_with("/db/data/system")).collect();
    assert!(files.iter().any(|path| path.contains("/db/data/system_schema/columns-")), "{files:?}");
    for path in files.iter().filter(|path| size(&base, path) > 0) {
        for _ in 0..from_environment("FLIPS", 3) {
            let (offset, bit) = (random.next() % size(&base, path), random.below(8) as u8);
            let what = format!("{path} at byte {offset}, bit {bit}");
            let cut = base.crash();
            cut.flip_bit(Path::new(path), offset, bit).unwrap();
            match try_open(&cut) {
                Err(error) => {
                    assert!(is_damage_of(&error, path), "{what}: {error}");
                    told += 1;
                }
                Ok(database) => {
                    let rows = all(&database, "t").unwrap();
                    assert_eq!(rows.into_values().collect::<Vec<_>>(), ["value"], "{what}");
                }
            }
            cut.end_tasks();
        }
    }
    assert!(told > 0, "damage of the schema is seen");
}

#[test]
fn a_damaged_log_is_refused_with_segment_and_offset_unless_told_to_skip() {
    let machine = Machine::new(1);
    let database = open_with(&machine.host(), small);
    create(&database, vec![table("t", 1, false)]);
    for c in 0..60 {
        put(&database, "t", "a", c, &format!("{c:04}-{}", "y".repeat(600)), 1).unwrap();
    }
    let base = machine.crash();
    machine.end_tasks();
    let disk = base.host().disk;
    let segments: Vec<PathBuf> = disk.list(Path::new("/db/commitlog")).unwrap();
    let end_of = |segment: &Path| {
        let file = disk.open(segment).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
    };
    // After the segments with records there may be prepared ones, which have only a header.
    let has_records = |segment: &Path| end_of(segment) > 64;
    let segments: Vec<_> = segments
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("helenus-") && has_records(path))
        .collect();
    assert!(segments.len() >= 3, "{segments:?}");
    let (mut refused, mut random) = (0, Random::new(1));
    for (index, segment) in segments.iter().enumerate() {
        let end = end_of(segment);
        for _ in 0..12 {
            let (offset, bit) = (random.below(end) as u64, random.below(8) as u8);
            let cut = base.crash();
            cut.flip_bit(segment, offset, bit).unwrap();
            match try_open(&cut) {
                Err(Error::LogDamaged { path, offset: told, .. }) => {
                    assert_eq!(&path, segment);
                    // The reported offset is the start of the record; the record that defines the system tables is
                    // long.
                    assert!(told <= offset, "told {told}, flipped {offset}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
                Ok(database) => {
                    // Only damage of the last records: nothing after them proves that they were ever complete.
                    assert_eq!(index, segments.len() - 1, "byte {offset} of {}", segment.display());
                    assert!(all(&database, "t").unwrap().len() >= 55);
                }
            }
            cut.end_tasks();
            let again = cut.crash();
            let mut options = DatabaseOptions::new("/db");
            small(&mut options);
            options.skip_damaged_log = true;
            let (database, report) = Database::open(again.host(), options).unwrap();
            assert!(report.skipped.iter().all(|(path, _)| path == segment), "{report:?}");
            // The first segments contain the definition of the table.
            if database.schema().table("ks", "t").is_some() {
                let left = all(&database, "t").unwrap();
                assert!(left.len() >= 60 - 25, "{}", left.len());
                assert!(left.iter().all(|((_, c), v)| v.starts_with(&format!("{c:04}-"))));
            }
            again.end_tasks();
        }
    }
    assert!(refused > 20, "{refused}");
}
