//! Imports and adopts data directories of real nodes, and compares the rows with the node's own answers.
//!
//! The nodes are Cassandra 3.0 to 5.0, with numbers and with UUIDs as SSTable ids. Some directories hold what a
//! transaction of the node left unfinished. `tests/fixtures/sstables/README.md` of the repository says how they were
//! made.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod support;

use helenus_cql::{ImportRequest, LocalBackend, LocalOptions};
use helenus_engine::CheckedName;
use helenus_engine::import::Imports;
use helenus_engine::import::{FindOptions, ImportError, ImportProgress, SourceDisk, adopt};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::{Machine, Survives};
use helenus_host::{Disk, Host, memory, real};
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::{Record, RecordKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn nodes() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nodes");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 4, "{found:?}");
    found
}

/// What the node answered: a table and a row of it as JSON a line.
fn expected(node: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(node.join("rows.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The same of ours.
fn answered(backend: &LocalBackend, expected: &[String]) -> Vec<String> {
    let mut tables: Vec<&str> = expected.iter().filter_map(|line| line.split(' ').next()).collect();
    tables.dedup();
    let rows = |table: &&str| {
        let rows = support::rows_of(backend, &format!("SELECT JSON * FROM fx.{table}"));
        let table = (*table).to_owned();
        rows.into_iter()
            .map(move |row| format!("{table} {}", String::from_utf8(row[0].clone().unwrap()).unwrap()))
    };
    tables.iter().flat_map(rows).collect()
}

fn opened(host: Host, options: DatabaseOptions) -> (Arc<Database>, Arc<LocalBackend>) {
    let (database, _) = Database::open(host, options).unwrap();
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    (database, backend)
}

fn import(backend: &LocalBackend, disk: &SourceDisk, directory: &Path) -> Result<Vec<String>, ImportError> {
    let request = ImportRequest { directory: directory.to_owned(), ..ImportRequest::default() };
    backend.import(disk, &request, &ImportProgress::default()).map(|report| report.notes)
}

/// Copies a directory of the real disk onto another.
fn copy(from: &Path, to: &dyn Disk, into: &Path) {
    to.create_dir_all(into).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = into.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, to, &target);
        } else {
            put(to, &target, &std::fs::read(&entry).unwrap());
        }
    }
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let file = disk.create(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
}

fn assert_goes_on(database: &Database, backend: &LocalBackend, expected: &[String], what: &str) {
    assert_eq!(answered(backend, expected), expected, "{what}");
    // An import has indexes built behind it.
    database.wait_for_indexes();
    let indexed = support::rows_of(backend, "SELECT k FROM fx.indexed WHERE v = 'x'");
    assert_eq!(indexed.len(), 3, "{what}");
    support::run_on(backend, "UPDATE fx.counts SET n = n + 1 WHERE k = 'a'");
    support::run_on(backend, "UPDATE fx.counts SET n = n - 1 WHERE k = 'a'");
    support::run_on(backend, "INSERT INTO fx.wide (k, c) VALUES (77, 'written here')");
    database.flush_all().unwrap();
    support::run_on(backend, "DELETE FROM fx.wide WHERE k = 77");
    assert_eq!(answered(backend, expected), expected, "{what}, written to");
    let schema = database.schema();
    let tables = schema.keyspaces["fx"].tables.values().map(|table| table.id).collect();
    database.compact(tables).wait().unwrap();
    assert_eq!(answered(backend, expected), expected, "{what}, compacted");
}

#[test]
fn a_directory_of_every_version_is_imported_and_answers_as_the_node_did() {
    for node in nodes() {
        let from: SourceDisk = real::host().disk;
        let what = node.display().to_string();
        let expected = expected(&node);
        let (database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
        import(&backend, &from, &node.join("data")).unwrap();
        assert_eq!(answered(&backend, &expected), expected, "{what}");
        // Once more: the same rows twice are the same rows.
        import(&backend, &from, &node.join("data")).unwrap();
        assert_goes_on(&database, &backend, &expected, &what);
    }
}

#[test]
fn an_import_that_comes_into_the_build_of_an_index_has_it_begin_anew() {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nodes/oa/data");
    let machine = Machine::new(7);
    let (database, backend) = opened(machine.host(), DatabaseOptions::new("/db"));
    let building = || database.index_builds().unfinished().iter().any(|build| build.index == "by_v");
    for _ in 0..3 {
        import(&backend, &real::host().disk, &node).unwrap();
        assert!(building(), "no step of the build has been taken");
    }
    database.wait_for_indexes();
    assert!(!building());
    assert_eq!(support::rows_of(&backend, "SELECT k FROM fx.indexed WHERE v = 'x'").len(), 3);
    machine.end_tasks();
}

#[test]
fn the_folder_of_one_table_makes_no_other() {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nodes/oa");
    let (database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
    let mut folders = std::fs::read_dir(node.join("data/fx")).unwrap().map(|entry| entry.unwrap().path());
    let wide = folders.find(|path| path.to_string_lossy().contains("/wide-")).unwrap();
    import(&backend, &real::host().disk, &wide).unwrap();
    let schema = database.schema();
    let made: Vec<&str> = schema.keyspaces["fx"].tables.keys().map(|name| &**name).collect();
    assert_eq!(made, ["wide"]);
    import(&backend, &real::host().disk, wide.parent().unwrap()).unwrap();
    assert!(database.schema().keyspaces["fx"].tables.len() > 5);
}

#[test]
fn an_import_that_finds_nothing_says_what_is_there() {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nodes/oa/data");
    let host = memory::host();
    copy(&node, &*host.disk, Path::new("/node/data"));
    let (folder, _) = table(&*host.disk, Path::new("/node/data"), "wide");
    copy(&node.join("fx").join(folder.file_name().unwrap()), &*host.disk, &folder.join("snapshots/monday"));
    let (_database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
    let refused = |directory: &str, find: FindOptions| {
        let request = ImportRequest { directory: directory.into(), find, ..ImportRequest::default() };
        backend.import(&host.disk, &request, &ImportProgress::default()).unwrap_err().to_string()
    };
    let some = |text: &str| Some(text.to_owned());
    let tuesday =
        FindOptions { snapshot: CheckedName::new("a snapshot", "tuesday").ok(), ..FindOptions::default() };
    assert!(refused("/node/data", tuesday).contains("there are snapshots: monday (--snapshot NAME)"));
    let other = FindOptions { keyspace: some("fx"), table: some("wid"), ..FindOptions::default() };
    let told = refused("/node/data", other);
    assert!(told.contains("no SSTables of fx.wid to import; there is fx.collections, fx.counts"), "{told}");
    let told = refused("/node/data/system_schema", FindOptions::default());
    assert!(told.contains("the node's own"), "{told}");
    let file = host.disk.list(&folder).unwrap().into_iter().find(|path| !host.disk.is_dir(path)).unwrap();
    let told = refused(&file.to_string_lossy(), FindOptions::default());
    assert!(told.contains("is a file: name the folder"), "{told}");
    assert!(refused("/nowhere", FindOptions::default()).contains("there is no such directory"));
}

#[test]
fn a_server_without_a_log_imports_too() {
    for node in nodes() {
        let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
        let (database, backend) = opened(memory::host(), options);
        import(&backend, &real::host().disk, &node.join("data")).unwrap();
        assert_goes_on(&database, &backend, &expected(&node), &node.display().to_string());
    }
}

#[test]
fn a_directory_of_every_version_is_adopted_and_goes_on_after_a_restart() {
    for node in nodes() {
        let what = node.display().to_string();
        let expected = expected(&node);
        let host = memory::host();
        copy(&node.join("data"), &*host.disk, Path::new("/db/data"));
        let adoption = adopt(&host, Path::new("/db"), true, &ImportProgress::default()).unwrap();
        assert!(adoption.sstables > adoption.tables, "{adoption:?}");
        let (database, backend) = opened(host.clone(), DatabaseOptions::new("/db"));
        Imports::of(&database).finish_adoption(&adoption).unwrap();
        assert_goes_on(&database, &backend, &expected, &what);
        database.close().unwrap();
        drop((database, backend));
        let again = adopt(&host, Path::new("/db"), true, &ImportProgress::default()).unwrap();
        assert_eq!(again.notes, ["adopted before: opened as it is"]);
        let (database, backend) = opened(host, DatabaseOptions::new("/db"));
        assert_eq!(answered(&backend, &expected), expected, "{what}, opened again");
        database.close().unwrap();
    }
}

/// Puts what a folder holds into a folder of a snapshot, with the schema that a node writes there.
fn snapshot(disk: &dyn Disk, from: &Path, folder: &Path, schema: &str) -> PathBuf {
    let snapshot = folder.join("snapshots/monday");
    copy(from, disk, &snapshot);
    put(disk, &snapshot.join("schema.cql"), schema.as_bytes());
    snapshot
}

fn import_snapshot(
    (disk, directory): (&SourceDisk, &str),
) -> Result<(Arc<LocalBackend>, Vec<String>), ImportError> {
    let (_database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
    let request = ImportRequest {
        directory: directory.into(),
        find: FindOptions {
            snapshot: CheckedName::new("a snapshot", "monday").ok(),
            ..FindOptions::default()
        },
        ..ImportRequest::default()
    };
    let report = backend.import(disk, &request, &ImportProgress::default())?;
    Ok((backend, report.notes))
}

#[test]
fn of_a_table_that_was_dropped_and_made_again_the_living_ones_snapshot_is_taken() {
    const EARLIER: &str = "dense-00000000000011f180000000000000ab";
    const LIVING: &str = "dense-afbcae80e62611f1a30fb9fba63c9cd2";
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nodes/oa");
    let host = memory::host();
    let disk = &*host.disk;
    let of_table = |name: &str| {
        let mut folders = std::fs::read_dir(node.join("data/fx")).unwrap().map(|entry| entry.unwrap().path());
        folders.find(|path| path.to_string_lossy().contains(&format!("/{name}-"))).unwrap()
    };
    let expected: Vec<String> =
        expected(&node).into_iter().filter(|line| line.starts_with("dense ")).collect();
    let schema_of = |backend: &LocalBackend| {
        let schema = backend.database().schema();
        let keyspace = &schema.keyspaces["fx"];
        LocalBackend::table_text(keyspace, &keyspace.tables["dense"])
    };
    let (_database, whole) = opened(memory::host(), DatabaseOptions::new("/db"));
    import(&whole, &real::host().disk, &node.join("data")).unwrap();
    let schema = schema_of(&whole);

    // Two folders of one name, each with a snapshot of it: the earlier table was of other columns.
    let fx = Path::new("/node/data/fx");
    let living = snapshot(disk, &of_table("dense"), &fx.join(LIVING), &schema);
    let earlier = "CREATE TABLE fx.dense (k int PRIMARY KEY, gone text);";
    let earlier = snapshot(disk, &of_table("wide"), &fx.join(EARLIER), earlier);
    let error = import_snapshot((&host.disk, "/node/data")).err().unwrap().to_string();
    for told in
        [&*living.to_string_lossy(), &*earlier.to_string_lossy(), "fx.dense", "by the name of its folder"]
    {
        assert!(error.contains(told), "{told} in {error}");
    }
    // What the error says to do.
    let (_database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
    import(&backend, &host.disk, &living).unwrap();
    assert_eq!(answered(&backend, &expected), expected);

    // With the node's schema beside them, it is known.
    copy(&node.join("data/system_schema"), disk, Path::new("/node/data/system_schema"));
    let (backend, notes) = import_snapshot((&host.disk, "/node/data")).unwrap();
    assert_eq!(answered(&backend, &expected), expected);
    let told = format!("not imported: {} is of an earlier table of that name", earlier.display());
    assert!(notes.contains(&told), "{notes:?}");
}

/// A table's folder on a disk, and its SSTables.
fn table(disk: &dyn Disk, data: &Path, name: &str) -> (PathBuf, Vec<Descriptor>) {
    let is_it = |path: &&PathBuf| path.to_string_lossy().contains(&format!("/{name}-"));
    let folder = disk.list(&data.join("fx")).unwrap().iter().find(is_it).unwrap().clone();
    let files = disk.list(&folder).unwrap();
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let data = names.filter_map(Descriptor::parse).filter(|(_, name)| *name == Component::Data.name());
    let descriptors: Vec<Descriptor> = data.map(|(descriptor, _)| descriptor).collect();
    assert_eq!(descriptors.len(), 2, "{}", folder.display());
    (folder, descriptors)
}

/// How a transaction of the node stood when it died, and what that makes of the table's second SSTable.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    /// It added the second, and nothing more is known.
    Added,
    /// The same, and the last record was being written.
    AddedAndCut,
    /// It was given up.
    Aborted,
    /// It replaced the second by what it wrote, which is a copy of it.
    Committed,
    /// The same, and some of the old files are gone already.
    CommittedAndHalfRemoved,
    /// It was to remove the second, and did not come to its end: that stays.
    NotCommitted,
}

const ALL_LEFT: [Left; 6] = [
    Left::Added,
    Left::AddedAndCut,
    Left::Aborted,
    Left::Committed,
    Left::CommittedAndHalfRemoved,
    Left::NotCommitted,
];

/// Leaves a transaction in the folder of table `wide`: its files, as a node at another path writes them. Returns the SSTables
/// that must not count.
fn leave(disk: &dyn Disk, data: &Path, left: Left) -> Vec<(PathBuf, Descriptor)> {
    let (folder, descriptors) = table(disk, data, "wide");
    let second = descriptors[1];
    let copied = Descriptor { id: next_id(&descriptors), ..second };
    let files: Vec<PathBuf> = disk.list(&folder).unwrap();
    let of_second =
        |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&second.prefix());
    let of_second: Vec<&PathBuf> = files.iter().filter(of_second).collect();
    for path in &of_second {
        let name = path.file_name().unwrap().to_str().unwrap().replace(&second.prefix(), &copied.prefix());
        let file = disk.open(path).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        put(disk, &folder.join(name), &bytes);
    }
    let record = |kind, descriptor: Option<&Descriptor>| Record {
        kind,
        // The node's own path, not that of the copy.
        path: descriptor
            .map_or(String::new(), |d| format!("/var/lib/cassandra/data/fx/wide-1/{}", d.prefix())),
        modified_ms: if kind == RecordKind::Remove { 1_700_000_000_123 } else { 0 },
        files: if descriptor.is_some() { of_second.len() as i32 } else { 0 },
    };
    let (add, remove) = (record(RecordKind::Add, Some(&copied)), record(RecordKind::Remove, Some(&second)));
    let lines = match left {
        Left::Added | Left::AddedAndCut => vec![add],
        Left::Aborted => vec![add, record(RecordKind::Abort, None)],
        Left::NotCommitted => vec![add, remove],
        Left::Committed | Left::CommittedAndHalfRemoved => {
            vec![add, remove, record(RecordKind::Commit, None)]
        }
    };
    let mut text: String = lines.iter().map(|record| record.to_line() + "\n").collect();
    if left == Left::AddedAndCut {
        text.push_str("REMOVE:[/var/lib/cassandra/da");
    }
    // `LogFile.getFileName`: without the format for BIG.
    let version = second.version;
    let of_format = if version.format().name() == "big" { String::new() } else { "bti-".to_owned() };
    let id = "50554d6e-29bb-11e5-b345-feff819cdc9f";
    put(disk, &folder.join(format!("{of_format}{version}_txn_compaction_{id}.log")), text.as_bytes());
    if left == Left::CommittedAndHalfRemoved {
        // Oldest first; Data.db among the first.
        disk.remove(&second.path(&folder, Component::Data)).unwrap();
        disk.remove(&second.path(&folder, Component::Filter)).unwrap();
    }
    let useless =
        if matches!(left, Left::Committed | Left::CommittedAndHalfRemoved) { second } else { copied };
    vec![(folder, useless)]
}

/// An id that comes after others, of their kind.
fn next_id(descriptors: &[Descriptor]) -> helenus_sstable::names::SsTableId {
    use helenus_sstable::names::SsTableId;
    match descriptors.iter().map(|descriptor| descriptor.id).max().unwrap() {
        SsTableId::Sequence(number) => SsTableId::Sequence(number + 1),
        SsTableId::Time { ticks, node } => SsTableId::Time { ticks: ticks + 1, node },
    }
}

#[test]
fn what_a_transaction_left_unfinished_counts_as_it_would_for_the_node() {
    for node in nodes() {
        for left in ALL_LEFT {
            let what = format!("{} {left:?}", node.display());
            let expected = expected(&node);
            // Adopted: the log is honoured, and gone.
            let host = memory::host();
            copy(&node.join("data"), &*host.disk, Path::new("/db/data"));
            let useless = leave(&*host.disk, Path::new("/db/data"), left);
            let adoption = adopt(&host, Path::new("/db"), true, &ImportProgress::default()).unwrap();
            let (database, backend) = opened(host.clone(), DatabaseOptions::new("/db"));
            Imports::of(&database).finish_adoption(&adoption).unwrap();
            assert_eq!(answered(&backend, &expected), expected, "{what}");
            for (folder, descriptor) in &useless {
                for path in host.disk.list(folder).unwrap() {
                    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                    assert!(
                        !name.starts_with(&descriptor.prefix()) && !name.ends_with(".log"),
                        "{what}: {name}"
                    );
                }
            }
            database.close().unwrap();
            // Imported: the log is honoured, and the node's folder is left as it is.
            let from = memory::host();
            copy(&node.join("data"), &*from.disk, Path::new("/node/data"));
            leave(&*from.disk, Path::new("/node/data"), left);
            let before = listing(&*from.disk, Path::new("/node"));
            let (_database, backend) = opened(memory::host(), DatabaseOptions::new("/db"));
            import(&backend, &from.disk, Path::new("/node/data")).unwrap();
            assert_eq!(answered(&backend, &expected), expected, "{what}, imported");
            assert_eq!(listing(&*from.disk, Path::new("/node")), before, "{what}");
        }
    }
}

fn listing(disk: &dyn Disk, folder: &Path) -> Vec<PathBuf> {
    let entries = disk.list(folder).unwrap();
    entries
        .iter()
        .flat_map(|path| {
            let below = if disk.is_dir(path) { listing(disk, path) } else { Vec::new() };
            [path.clone()].into_iter().chain(below)
        })
        .collect()
}

#[test]
fn a_log_that_cannot_be_trusted_is_refused_by_name_and_nothing_is_touched() {
    for node in nodes() {
        let host = memory::host();
        copy(&node.join("data"), &*host.disk, Path::new("/db/data"));
        let (folder, descriptors) = table(&*host.disk, Path::new("/db/data"), "wide");
        let log = folder.join("nb_txn_compaction_50554d6e-29bb-11e5-b345-feff819cdc9f.log");
        let path = format!("/d/{}", descriptors[1].prefix());
        let add = Record { kind: RecordKind::Add, path, modified_ms: 0, files: 8 }.to_line();
        let damaged = add.replace(",8]", ",9]");
        put(&*host.disk, &log, format!("{damaged}\n{add}\n").as_bytes());
        let before = listing(&*host.disk, Path::new("/db"));
        for verify in [true, false] {
            let error = adopt(&host, Path::new("/db"), verify, &ImportProgress::default()).unwrap_err();
            let ImportError::Refused { problems } = error else { panic!("{error}") };
            assert!(problems[0].contains("_txn_compaction_"), "{problems:?}");
        }
        assert_eq!(listing(&*host.disk, Path::new("/db")), before);
        let (_database, backend) = opened(memory::host(), DatabaseOptions::new("/other"));
        let error = import(&backend, &host.disk, Path::new("/db/data")).unwrap_err();
        assert!(error.to_string().contains("_txn_compaction_"), "{error}");
    }
}

/// A machine's state at every sync of an import.
#[test]
fn an_import_that_is_cut_at_any_sync_is_there_whole_or_not_at_all() {
    for (number, node) in nodes().into_iter().enumerate() {
        let expected = expected(&node);
        let machine = Machine::new(number as u64);
        let cuts = Arc::new(Mutex::new(Vec::new()));
        let (database, backend) = opened(machine.host(), DatabaseOptions::new("/db"));
        let watched = cuts.clone();
        machine.on_every_sync(move |cut| watched.lock().unwrap().push(cut.clone()));
        import(&backend, &real::host().disk, &node.join("data")).unwrap();
        machine.stop_watching();
        assert_eq!(answered(&backend, &expected), expected);
        drop((database, backend));
        machine.end_tasks();
        let cuts = std::mem::take(&mut *cuts.lock().unwrap());
        assert!(cuts.len() > 50, "{}", cuts.len());
        let (mut none, mut all) = (0, 0);
        // Every cut near the steps that count, and some of the many of copying.
        let last = cuts.len().saturating_sub(80);
        for (number, cut) in cuts.iter().enumerate().filter(|(number, _)| *number >= last || number % 9 == 0)
        {
            let survives = [Survives::OnlySynced, Survives::Torn { seed: number as u64 }][number % 2];
            let cut_off = cut.machine.crash_image(survives);
            let (database, backend) = opened(cut_off.host(), DatabaseOptions::new("/db"));
            cut_off.run_until_idle();
            if database.schema().table("fx", "wide").is_none() {
                none += 1;
            } else {
                let answered = answered(&backend, &expected);
                // The schema is made in a step of its own, before.
                let is_empty = answered.is_empty();
                assert!(is_empty || answered == expected, "{} cut {number}: {answered:?}", node.display());
                none += u64::from(is_empty);
                all += u64::from(!is_empty);
            }
            let disk = cut_off.host().disk;
            let imports = Path::new("/db/import");
            let left = if disk.is_dir(imports) { listing(&*disk, imports) } else { Vec::new() };
            assert!(left.is_empty(), "{left:?}");
            drop((database, backend));
            cut_off.end_tasks();
        }
        assert!(none > 3 && all > 3, "{none} {all}");
    }
}
