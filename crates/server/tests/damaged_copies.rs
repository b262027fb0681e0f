//! Flips bits in copies of tables: snapshots, exports, and backups as folders and as archives. Restoring a damaged copy
//! must give the original rows and table, or an error that names a file; never another row or another table.
//!
//! `FLIPS` is the number of bits for each file, ten times as many for texts. `FLIP_SEED` selects them.
#![expect(clippy::unwrap_used, reason = "what fails here fails the run")]

use helenus_engine::Exports;
use helenus_engine::Snapshots;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{ImportRequest, LocalBackend, LocalOptions};
use helenus_engine::import::{FindOptions, ImportOptions, ImportProgress, SourceDisk};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_host::{Host, memory};
use helenus_server::admin::{RestoreOrder, export};
use helenus_server::backup::{
    ArchiveWriter, BackedUpFile, BackedUpTable, BackupManifest, digest_of, restore,
};

#[derive(Default)]
struct Texts(Vec<String>);

impl RowsOut for Texts {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(String::from_utf8_lossy(value.unwrap_or_default()).into_owned());
    }

    fn end_row(&mut self) {}

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

fn open(host: Host) -> Arc<LocalBackend> {
    let (database, _) = Database::open(host, DatabaseOptions::new("/db")).unwrap();
    LocalBackend::new(database, LocalOptions::default())
}

fn try_run(backend: &LocalBackend, query: &str) -> Result<Vec<String>, String> {
    let identity = Identity::default();
    let request = Request { keyspace: None, ..Request::plain(&identity, &[]) };
    let mut out = Texts::default();
    let answer = backend.query(query, &request, &mut out).map_err(|error| format!("{query}: {error}"))?;
    if let Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) = answer.outcome {
        ticket.wait().map_err(|error| format!("{query}: {error}"))?;
    }
    Ok(out.0)
}

fn run(backend: &LocalBackend, query: &str) -> Vec<String> {
    try_run(backend, query).unwrap()
}

/// The content of a database: its rows, and its tables as statements without their ids, because every import makes new
/// ids.
fn content(backend: &LocalBackend) -> Result<(Vec<String>, Vec<String>), String> {
    let mut rows = try_run(backend, "SELECT JSON * FROM ks.t")?;
    rows.push("empty".to_owned());
    rows.extend(try_run(backend, "SELECT JSON * FROM ks.empty")?);
    let schema = backend.database().schema();
    let keyspace = &schema.keyspaces["ks"];
    let mut statements = Vec::new();
    for table in keyspace.tables.values() {
        let text = LocalBackend::table_text(keyspace, table);
        // The first line is a digest of the others.
        let lines = text.lines().skip(1);
        statements.extend(lines.filter(|line| !line.contains(" ID = ")).map(str::to_owned));
    }
    Ok((rows, statements))
}

/// A machine with two tables: one with two SSTables and a dropped column, and one without rows, which only the schema
/// mentions.
fn written() -> Machine {
    let machine = Machine::new(1);
    let backend = open(machine.host());
    let make = |text: &str| _ = run(&backend, text);
    make("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    make("CREATE TYPE ks.pair (a int, b text)");
    make(
        "CREATE TABLE ks.t (k int, c int, s text static, v text, gone text, m map<text, int>, p frozen<pair>, \
         PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND gc_grace_seconds = 864000",
    );
    make(
        "CREATE TABLE ks.empty (a text PRIMARY KEY, b int) WITH default_time_to_live = 60 AND comment = 'none'",
    );
    for round in 0..2 {
        for row in 0..60 {
            let (k, c) = (row % 4, row + round * 30);
            make(&format!(
                "INSERT INTO ks.t (k, c, s, v, gone, m, p) VALUES ({k}, {c}, 's{k}', 'v{row}', 'x', {{'a': {row}}}, \
                 {{a: {c}, b: 'b'}})"
            ));
        }
        if round == 1 {
            make("DELETE FROM ks.t WHERE k = 1 AND c > 40 AND c < 60");
        }
        backend.database().flush_all().unwrap();
    }
    make("ALTER TABLE ks.t DROP gone");
    backend.database().close().unwrap();
    drop(backend);
    let cut = machine.crash();
    machine.end_tasks();
    cut
}

/// Makes a manifest of an export. `add` adds each file.
fn manifest_of(
    machine: &Machine,
    export: &Path,
    mut add: impl FnMut(&str, &Path) -> (String, u64),
) -> BackupManifest {
    let mut manifest = BackupManifest::new("1f0c".to_owned(), "2026-11-22T00:00:00Z".to_owned(), "1.0.0");
    for table in ["empty", "t"] {
        let sstables = if table == "t" { 2 } else { 0 };
        manifest.tables.push(BackedUpTable { keyspace: "ks".into(), table: table.into(), sstables });
    }
    for path in machine.files_below(export).unwrap() {
        let name = path.strip_prefix(export).unwrap().to_string_lossy().into_owned();
        let (sha256, bytes) = add(&name, &path);
        manifest.files.push(BackedUpFile {
            path: helenus_engine::CheckedPath::new("a file", &name).unwrap(),
            bytes,
            sha256,
        });
    }
    manifest
}

/// Makes a backup in a folder, whose files are hard links.
fn back_up(machine: &Machine, export: &Path, to: &Path) {
    let disk = machine.host().disk;
    let manifest = manifest_of(machine, export, |name, path| {
        let target = to.join(name);
        disk.create_dir_all(target.parent().unwrap()).unwrap();
        disk.hard_link(path, &target).unwrap();
        digest_of(&*disk, &target, &mut |_| {}).unwrap()
    });
    manifest.write(&*disk, to).unwrap();
}

/// Makes a backup as an archive.
fn archive(machine: &Machine, export: &Path, to: &Path) {
    let disk = machine.host().disk;
    let mut archive = ArchiveWriter::begin(&disk, to, 1_795_000_000).unwrap();
    let manifest = manifest_of(machine, export, |name, path| archive.add(name, path, &mut |_| {}).unwrap());
    archive.finish(&manifest).unwrap();
}

fn import(backend: &LocalBackend, from: &SourceDisk, directory: &Path, link: bool) -> Result<(), String> {
    let request = ImportRequest {
        directory: directory.to_owned(),
        find: FindOptions::default(),
        options: ImportOptions { link, ..ImportOptions::default() },
        ..ImportRequest::default()
    };
    let imported = backend.import(from, &request, &ImportProgress::default());
    imported.map(|_| ()).map_err(|error| error.to_string())
}

/// Restores a copy into an empty database on another machine.
fn take(machine: &Machine, copy: &Path) -> Result<Arc<LocalBackend>, String> {
    let backend = open(memory::host());
    let from: SourceDisk = machine.host().disk;
    if copy.starts_with("/backup") || copy.starts_with("/backup.tar") {
        let order = RestoreOrder { directory: copy.to_owned(), ..RestoreOrder::default() };
        restore(&backend, (&from, Some(Path::new("/db"))), &order, &ImportProgress::default())?;
    } else {
        import(&backend, &from, copy, false)?;
    }
    Ok(backend)
}

/// Selects the bits that are flipped.
struct Bits {
    random: Arc<dyn helenus_host::Random>,
    flips: u64,
}

impl Bits {
    fn from_environment() -> Bits {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        Bits { random: Machine::new(number("FLIP_SEED", 1)).host().random, flips: number("FLIPS", 3) }
    }

    fn below(&self, n: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % n
    }

    /// Some bits of a file, each as the byte's offset and the bit in it.
    fn of(&self, machine: &Machine, path: &Path) -> Vec<(u64, u8)> {
        let size = machine.host().disk.open(path).unwrap().size().unwrap();
        let is_text = [".cql", ".json", ".tar"].iter().any(|ending| path.to_string_lossy().ends_with(ending));
        let flips = if size == 0 { 0 } else { self.flips * if is_text { 10 } else { 1 } };
        (0..flips).map(|_| (self.below(size), self.below(8) as u8)).collect()
    }
}

/// Whether an error names a file, at least by its SSTable and the component.
fn names(error: &str, path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.split("-bti-").all(|part| error.contains(part))
}

#[test]
fn a_flipped_bit_in_a_copy_of_tables_is_named_or_changes_neither_rows_nor_tables() {
    let machine = written();
    let backend = open(machine.host());
    let expected = content(&backend).unwrap();
    assert_eq!(expected.0.len(), 1 + 110);
    let exported = export(backend.database(), None, None).unwrap().folder;
    back_up(&machine, &exported, Path::new("/backup"));
    archive(&machine, &exported, Path::new("/backup.tar"));
    let bits = Bits::from_environment();
    let (mut told, mut wrong) = (BTreeMap::<(String, String), (u64, u64)>::new(), Vec::new());
    for copy in [&*exported, Path::new("/backup"), Path::new("/backup.tar")] {
        assert_eq!(content(&take(&machine, copy).unwrap()), Ok(expected.clone()), "{}", copy.display());
        let files = match machine.host().disk.is_dir(copy) {
            true => machine.files_below(copy).unwrap(),
            false => vec![copy.to_owned()],
        };
        for path in files {
            let component = path.to_string_lossy().rsplit(['-', '/']).next().unwrap().to_owned();
            for (offset, bit) in bits.of(&machine, &path) {
                let what = format!("{} at byte {offset}, bit {bit}", path.display());
                machine.flip_bit(&path, offset, bit).unwrap();
                let copied = copy.to_string_lossy().replace(&*exported.to_string_lossy(), "export");
                let (flips, refused) = told.entry((copied, component.clone())).or_default();
                *flips += 1;
                match take(&machine, copy) {
                    Ok(backend) if content(&backend) == Ok(expected.clone()) => {}
                    Ok(backend) => wrong.push(format!("{what}: {:?}", content(&backend))),
                    Err(error) if names(&error, &path) => *refused += 1,
                    Err(error) => wrong.push(format!("{what}: not named: {error}")),
                }
                machine.flip_bit(&path, offset, bit).unwrap();
            }
        }
    }
    machine.end_tasks();
    for ((copy, component), (flips, refused)) in &told {
        println!("{copy} {component}: {flips} flips, {refused} refused");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A snapshot shares its files with the table, so a flipped bit is in both. The table is emptied, or dropped in every
/// second round, and the snapshot is restored by links.
/// snapshot taken back by links.
#[test]
fn a_snapshot_with_a_flipped_bit_is_taken_back_rightly_or_refused_by_name() {
    let machine = written();
    let backend = open(machine.host());
    let expected = content(&backend).unwrap();
    let database = backend.database();
    let schema = database.schema();
    let (keyspace, table) = (&schema.keyspaces["ks"], schema.table("ks", "t").unwrap());
    let monday = helenus_engine::CheckedName::new("a snapshot", "monday").unwrap();
    let taken = Snapshots::of(database).take(std::slice::from_ref(table), &monday, true).unwrap();
    let snapshot = taken[0].folder.clone();
    Exports::of(database)
        .add_file(&snapshot.join("schema.cql"), &LocalBackend::table_text(keyspace, table))
        .unwrap();
    let manifest = "{\"files\": [], \"created_at\": \"2026-11-22T00:00:00Z\"}";
    Exports::of(database).add_file(&snapshot.join("manifest.json"), manifest).unwrap();
    database.close().unwrap();
    drop(backend);
    let base = machine.crash();
    machine.end_tasks();
    let bits = Bits::from_environment();
    let (mut told, mut wrong) = (BTreeMap::<String, (u64, u64)>::new(), Vec::new());
    for path in base.files_below(&snapshot).unwrap() {
        let component = path.to_string_lossy().rsplit(['-', '/']).next().unwrap().to_owned();
        for (turn, (offset, bit)) in bits.of(&base, &path).into_iter().enumerate() {
            let how = ["TRUNCATE ks.t", "DROP TABLE ks.t"][turn % 2];
            let what = format!("{} at byte {offset}, bit {bit}, after {how}", path.display());
            let cut = base.crash();
            cut.flip_bit(&path, offset, bit).unwrap();
            let backend = open(cut.host());
            run(&backend, how);
            let (flips, refused) = told.entry(component.clone()).or_default();
            *flips += 1;
            match import(&backend, &cut.host().disk, &snapshot, true) {
                Ok(()) if content(&backend) == Ok(expected.clone()) => {}
                Ok(()) => wrong.push(format!("{what}: {:?}", content(&backend))),
                Err(error) if names(&error, &path) => *refused += 1,
                Err(error) => wrong.push(format!("{what}: not named: {error}")),
            }
            run(&backend, "SELECT * FROM ks.empty");
            cut.end_tasks();
        }
    }
    for (component, (flips, refused)) in &told {
        println!("snapshot {component}: {flips} flips, {refused} refused");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
