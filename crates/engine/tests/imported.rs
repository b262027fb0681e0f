//! What an import takes, compactions and flushes take too: every fixture of every version is imported, written to and
//! compacted into the current version, and its rows stay what they were; so do partitions whose deletions have
//! timestamps that only older versions have a form for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../../sstable/tests/render/mod.rs"]
mod render;
mod support;

use helenus_engine::Database;
use helenus_engine::import::{ImportOptions, ImportProgress, ImportTable, Imports};
use helenus_engine::read::{Partitions, ReadCommand, ReadEnd, RowOutcome, RowSink};
use helenus_engine::{ReadRequest, Result};
use helenus_host::{Disk, memory, real};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::partitions::{KeyRange, PartitionKey};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use helenus_model::unfiltered::Unfiltered;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::*;
use uuid::Uuid;

/// All live data as text, a row a line.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    partition: String,
    has_static: bool,
}

fn line(view: RowView<'_>) -> String {
    let values: Vec<_> =
        (0..view.row.clustering.len()).map(|at| view.clustering(at).map(render::hex)).collect();
    // A row is given with its dead cells, which a compaction may purge.
    let live = view.row.cells.iter().filter(|cell| cell.local_deletion_s == NO_EXPIRY || cell.is_expiring());
    let cells = live.map(|cell| {
        let (path, value) = (render::hex(view.path(cell)), render::hex(view.value(cell)));
        format!(
            "{:?}/{path}={value}@{}/{}/{}",
            cell.column, cell.timestamp_us, cell.ttl_s, cell.local_deletion_s
        )
    });
    format!("{values:?} {:?} {}", view.row.liveness, cells.collect::<Vec<_>>().join(" "))
}

impl RowSink for Lines {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.partition = render::hex(key);
        self.has_static = static_row.is_some();
        self.lines.extend(static_row.map(|row| format!("{} static {}", self.partition, line(row))));
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        self.lines.push(format!("{} {}", self.partition, line(row)));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

fn lines(database: &Database, table: &Arc<Table>) -> Vec<String> {
    let mut command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Range(KeyRange::all()),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: true,
        columns: None,
        limits: Limits::NONE,
        now_s: database.now_s(),
        resume: None,
        page_rows: None,
    };
    let mut found = Lines::default();
    loop {
        let view = database.view(table).unwrap();
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        match database.read(&command, &view, request, &mut found, None).expect("the read succeeds") {
            ReadEnd::Complete => return found.lines,
            ReadEnd::Page(resume) => command.resume = Some(resume),
        }
    }
}

/// Compares line by line, so that the first difference is shown alone.
fn assert_same(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn import(database: &Database, from: &Arc<dyn Disk>, table: &Arc<Table>, sstable: (PathBuf, Descriptor)) {
    let tables = [ImportTable { table: table.clone(), sstables: vec![sstable] }];
    let imports = Imports::of(database);
    let options = ImportOptions { link: false, ..ImportOptions::default() };
    let staged = imports.stage(from, &tables, options, &ImportProgress::default()).unwrap();
    imports.commit(staged).unwrap();
}

fn write(database: &Database, table: &Arc<Table>, key: &[u8], changes: Changes) {
    let update = PartitionUpdate { table: table.clone(), key: key.to_vec(), changes };
    database.write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
}

/// The folders of all fixtures, one table each.
fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sstable/tests/fixtures");
    let mut found = Vec::new();
    let mut left = vec![root];
    while let Some(folder) = left.pop() {
        let entries: Vec<PathBuf> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let count = |wanted: &str| {
            let names = entries.iter().filter_map(|path| Descriptor::parse(path.file_name()?.to_str()?));
            names.filter(|(_, component)| *component == wanted).count()
        };
        if count("Data.db") == 1 && count("Statistics.db") == 1 {
            found.push(folder);
        }
        left.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

#[test]
fn every_fixture_is_imported_written_to_and_compacted_and_its_rows_stay() {
    let from = real::host().disk;
    let database = open(&memory::host());
    let (mut compacted, mut refused) = (0, Vec::new());
    for (number, folder) in fixtures().into_iter().enumerate() {
        let what = folder.display().to_string();
        let descriptor = render::only_table(&real::host(), &folder);
        let header = render::schema_in(&real::host(), &folder);
        let columns = header.partition_key.iter().chain(&header.clustering).chain(&header.statics);
        let columns: Vec<Column> = columns.chain(&header.regulars).cloned().collect();
        let name = format!("t{number}");
        create(
            &database,
            vec![Table::new(("ks", &name), TableId(Uuid::from_u128(100 + number as u128)), columns)],
        );
        let table = table_of(&database, &name);
        let sstables = vec![(folder.clone(), descriptor)];
        let tables = [ImportTable { table: table.clone(), sstables: sstables.clone() }];
        let checked = Imports::of(&database).check(
            &from,
            &tables,
            ImportOptions::default(),
            &ImportProgress::default(),
        );
        if let Err(error) = checked {
            refused.push(format!("{what}: {error}"));
            continue;
        }
        import(&database, &from, &table, (folder.clone(), descriptor));
        let before = lines(&database, &table);
        // Once more: the same rows twice are the same rows. And a deletion that is older than all of them.
        import(&database, &from, &table, (folder.clone(), descriptor));
        assert_same(&lines(&database, &table), &before, &format!("{what}, twice"));
        if let Some(first) = before.first() {
            let key: Vec<u8> = first
                .split(' ')
                .next()
                .unwrap()
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            let mut changes = Changes::default();
            changes.delete_partition(DeletionTime { timestamp_us: 1, local_s: 1 });
            write(&database, &table, &key, changes);
            database.flush(table.id).unwrap();
        }
        database.compact(vec![table.id]).wait().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_same(&lines(&database, &table), &before, &format!("{what}, compacted"));
        compacted += 1;
    }
    println!("{compacted} compacted, refused: {refused:#?}");
    assert!(compacted > 90, "{compacted} compacted, refused: {refused:#?}");
}

/// A table with and one without clustering columns, both with a static or regular column.
fn shape(name: &str, id: u128, clustered: bool) -> Table {
    let mut columns = vec![
        Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
        Column::new("v", ColumnKind::Regular, CqlType::Int),
    ];
    if clustered {
        columns.push(Column::new("c", ColumnKind::Clustering, CqlType::Int));
        columns.push(Column::new("s", ColumnKind::Static, CqlType::Int));
    }
    let mut table = Table::new(("ks", name), TableId(Uuid::from_u128(id)), columns);
    table.options.gc_grace_seconds = i32::MAX;
    table
}

/// One change of a partition.
#[derive(Clone, Copy, Debug)]
enum Part {
    Row(i32, i64),
    Static(i64),
    Range(i32, i32, i64),
    Partition(i64),
}

fn changes_of(table: &Table, parts: &[Part]) -> Changes {
    let mut write = Write::default();
    for part in parts {
        let at = |timestamp_us| DeletionTime { timestamp_us, local_s: 1_600_000_000 };
        match *part {
            Part::Row(c, us) => {
                let key = c.to_be_bytes();
                let clustering = (!table.clustering.is_empty()).then_some(Some(&key[..]));
                let head = (Liveness::at(us), DeletionTime::LIVE);
                write.changes.row(clustering.into_iter(), head, &[], |row| {
                    row.cell(&cell(table, "v", us), None, &key);
                });
            }
            Part::Static(us) => write.changes.static_row(&[], |row| {
                row.cell(&cell(table, "s", us), None, &[0, 0, 0, 1]);
            }),
            Part::Range(from, to, us) => write = write.delete_range(from, to, us),
            Part::Partition(us) => write.changes.delete_partition(at(us)),
        }
    }
    write.changes
}

/// A key, the deletion of the partition, and its rows with their timestamps.
type OldPartition = (i32, DeletionTime, Vec<(i32, i64)>);

/// Writes an SSTable of a version by hand: a partition deletion, and rows that are newer.
fn write_old(disk: &Arc<dyn Disk>, table: &Arc<Table>, keys: &[OldPartition]) -> (PathBuf, Descriptor) {
    let folder = PathBuf::from("/old").join(&*table.name);
    disk.create_dir_all(&folder).unwrap();
    let descriptor = Descriptor { version: Version::Nb, id: SsTableId::Sequence(1) };
    let options = WriterOptions::of_table(table.clone(), 8, EncodingStats::NONE).for_version(Version::Nb);
    let mut writer = SsTableWriter::create(disk.clone(), &folder, descriptor, options).unwrap();
    let mut keys: Vec<_> =
        keys.iter().map(|key| (PartitionKey::new(key.0.to_be_bytes().to_vec()), key)).collect();
    keys.sort_by(|a, b| a.0.decorated.cmp(&b.0.decorated));
    for (key, (_, deletion, rows)) in keys {
        writer.begin_partition(&key.bytes, &key.hash, *deletion, None).unwrap();
        for (c, us) in rows {
            let mut row = RowBuf::default();
            let value = c.to_be_bytes();
            let clustering: Vec<Option<&[u8]>> = table.clustering.iter().map(|_| Some(&value[..])).collect();
            helenus_model::byte_comparable::clustering_key(clustering, &table.clustering, &mut row.key)
                .unwrap();
            if !table.clustering.is_empty() {
                let span = row.push_bytes(&value);
                row.clustering.push(span);
            }
            row.liveness = Liveness::at(*us);
            let value = row.push_bytes(&value);
            row.cells.push(helenus_model::cell::Cell { value, ..cell(table, "v", *us) });
            writer.add(Unfiltered::Row(row.view())).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    (folder, descriptor)
}

#[test]
fn partition_deletions_that_the_present_version_has_no_form_for_delete_the_same_after_a_compaction() {
    let mut random = random::Random::new(5);
    for round in 0..40_u128 {
        let host = memory::host();
        let database = open(&host);
        // Nothing is purged, so that the two tables stay comparable.
        database.compactions().keep_tombstones(true);
        let clustered = round % 4 != 3;
        create(&database, vec![shape("t", 7, clustered), shape("expected", 8, clustered)]);
        let tables = [table_of(&database, "t"), table_of(&database, "expected")];
        let us = [-1, -5, -1_000_000, i64::MIN + 1][random.below(4)];
        let deletion = DeletionTime { timestamp_us: us, local_s: 1_600_000_000 };
        let rows: Vec<(i32, i64)> = if clustered {
            (0..4).map(|c| (c * 10, us + 1 + i64::from(c))).collect()
        } else {
            vec![(0, us + 1)]
        };
        let rows = if round % 3 == 0 { Vec::new() } else { rows };
        // Around the deletion: rows, ranges and static rows before and after it.
        let near = |random: &mut random::Random| match random.below(3) {
            0 => us.saturating_sub(random.below(3) as i64).max(i64::MIN + 1),
            1 => us.saturating_add(random.below(4) as i64),
            _ => 1_000,
        };
        let mut parts = Vec::new();
        for _ in 0..random.below(12) {
            let (c, d) = (random.below(40) as i32, random.below(20) as i32);
            let at = near(&mut random);
            parts.push(match random.below(4) {
                _ if !clustered => Part::Row(0, at),
                0 => Part::Static(at),
                // A deletion of CQL has no negative timestamp.
                1 if at >= 0 => Part::Range(c, c + 1 + d, at),
                _ => Part::Row(c, at),
            });
        }
        println!("round {round}: {deletion:?} {rows:?} {parts:?}");
        for table in &tables {
            for (at, part) in parts.iter().enumerate() {
                write(&database, table, &1_i32.to_be_bytes(), changes_of(table, &[*part]));
                if at % 4 == 3 {
                    database.flush(table.id).unwrap();
                }
            }
            database.flush(table.id).unwrap();
            let old =
                write_old(&host.disk, table, &[(1, deletion, rows.clone()), (2, deletion, rows.clone())]);
            import(&database, &host.disk, table, old);
        }
        let [table, expected] = &tables;
        let before = lines(&database, expected);
        assert_same(&lines(&database, table), &before, "the two are the same");
        database.compact(vec![table.id]).wait().unwrap_or_else(|error| panic!("{error}"));
        assert_same(&lines(&database, table), &before, "compacted");
        // What is older than the deletion, and comes later, stays deleted; what is newer does not.
        for table in &tables {
            let later = match clustered {
                true => vec![
                    Part::Row(5, us),
                    Part::Row(6, us + 1),
                    Part::Static(us),
                    Part::Row(30, us.saturating_sub(1).max(i64::MIN + 1)),
                ],
                false => vec![Part::Row(0, us)],
            };
            write(&database, table, &1_i32.to_be_bytes(), changes_of(table, &later));
            write(&database, table, &2_i32.to_be_bytes(), changes_of(table, &later));
        }
        assert_same(&lines(&database, table), &lines(&database, expected), "written to");
        for _ in 0..2 {
            database.flush(table.id).unwrap();
            database.compact(vec![table.id]).wait().unwrap_or_else(|error| panic!("{error}"));
            assert_same(&lines(&database, table), &lines(&database, expected), "compacted again");
        }
        let newer = changes_of(table, &[Part::Partition(2_000)]);
        for table in &tables {
            write(&database, table, &1_i32.to_be_bytes(), newer.clone());
        }
        assert_same(&lines(&database, table), &lines(&database, expected), "deleted");
    }
}
