//! Log records with a valid checksum that no table can store: they are refused with segment and offset, skipped if the
//! options say so, and ignored for tables that are flushed beyond them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::read::{RowOutcome, RowSink};
use helenus_engine::{Database, DatabaseOptions, Error, OpenReport, ReadRequest};
use helenus_host::sim::Machine;
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use std::sync::Arc;
use support::log_file::{Segment, first_change};
use support::random::{Random, from_environment};
use support::*;
use uuid::Uuid;

fn open_again(machine: &Machine, skips: bool) -> Result<(Arc<Database>, OpenReport), Error> {
    let options = DatabaseOptions { skip_damaged_log: skips, ..DatabaseOptions::new("/db") };
    Database::open(machine.host(), options)
}

fn put(database: &Database, name: &str, c: i32, v: &str) {
    let table = table_of(database, name);
    let changes = Write::default().insert(&table, c, v, 1).changes;
    let update = PartitionUpdate { table, key: b"key".to_vec(), changes };
    database.write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
}

/// The clustering values of a table's rows.
fn present(database: &Database, name: &str) -> Vec<i32> {
    rows_of(database, name, "key").into_iter().map(|(c, _)| c).collect()
}

/// A machine with two tables of four rows each, which are only in the log.
fn written() -> Machine {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false), table("other", 2, false)]);
    for c in 0..4 {
        put(&database, "t", c, &format!("text of {c}"));
        put(&database, "other", c, &format!("other's {c}"));
    }
    let cut = machine.crash();
    machine.end_tasks();
    cut
}

#[test]
fn a_record_that_no_table_could_keep_is_refused_by_segment_and_offset_unless_told_to_skip() {
    // The row's kind changes to one that does not match its bytes: a partition deletion, a static row, a range
    // deletion, and an unknown kind.
    for kind in [1, 2, 4, 9] {
        let base = written();
        let segment = Segment::with(&base, "text of 2");
        let record = segment.record("text of 2");
        segment.rewrite(&base, record, |content| {
            let at = first_change(content);
            content[at] = kind;
        });
        let refused = base.crash();
        let Err(error) = open_again(&refused, false) else { panic!("kind {kind}: opened") };
        let told = error.to_string();
        assert!(told.ends_with("start with --skip-damaged-log to go on without it"), "{told}");
        let Error::Unappliable(found) = error else { panic!("kind {kind}: {told}") };
        assert_eq!((&found.segment, found.offset), (&segment.path, record.0 as u64), "kind {kind}: {told}");
        assert_eq!(found.table, "ks.t");
        let kept = |machine: &Machine| {
            let file = machine.host().disk.open(&found.kept).expect("the record is kept");
            let mut bytes = vec![0; file.size().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let as_logged = Segment::with(&refused, "text of 2").bytes[record.0..record.1].to_vec();
        assert_eq!(kept(&refused), as_logged, "kind {kind}: byte for byte, whatever becomes of the segment");
        refused.end_tasks();

        let skipping = refused.crash();
        let (database, report) = open_again(&skipping, true).unwrap();
        assert_eq!((report.skipped.len(), report.unappliable), (0, vec![*found.clone()]), "kind {kind}");
        assert_eq!(present(&database, "t"), [0, 1, 3], "kind {kind}: the rows before and behind it");
        assert_eq!(present(&database, "other"), [0, 1, 2, 3], "kind {kind}: another table");
        // Once the table is flushed beyond the record, it is not reported again.
        database.flush_all().unwrap();
        drop(database);
        skipping.end_tasks();
        let after = skipping.crash();
        let (database, report) = open_again(&after, false).unwrap();
        assert_eq!(report.unappliable, [], "kind {kind}");
        assert_eq!(kept(&after), as_logged, "kind {kind}: and it is there still");
        assert_eq!(present(&database, "t"), [0, 1, 3], "kind {kind}");
        after.end_tasks();
    }
}

#[test]
fn a_record_of_a_schema_table_that_cannot_be_kept_is_refused_likewise() {
    let base = written();
    let segment = Segment::with(&base, "text of 2");
    // The rows of the new tables in the schema tables, which are applied before the new tables are known.
    let record = segment.record("SimpleStrategy");
    segment.rewrite(&base, record, |content| {
        let at = first_change(content);
        content[at] = 9;
    });
    let refused = base.crash();
    let Err(error) = open_again(&refused, false) else { panic!("opened") };
    let told = error.to_string();
    let offset = record.0.to_string();
    assert!(told.contains(&*segment.path.to_string_lossy()) && told.contains(&offset), "{told}");
    refused.end_tasks();
}

/// `k text, c int, m map<text, text>`.
fn table_with_map() -> Table {
    let text = || Arc::new(CqlType::Text);
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
        Column::new("c", ColumnKind::Clustering, CqlType::Int),
        Column::new("m", ColumnKind::Regular, CqlType::Map { key: text(), value: text(), frozen: false }),
    ];
    Table::new(("ks", "m"), TableId(Uuid::from_u128(3)), columns)
}

/// A row with a map of this number of elements, byte for byte as earlier versions logged it: their count of cells had
/// two bytes and had overflowed.
fn row_as_logged(table: &Table, elements: usize) -> Vec<u8> {
    const LIVENESS: u8 = 1;
    const SAME_TIMESTAMP_AND_PATH: u8 = 1 | 8;
    let column = table.column("m").unwrap().id.0.to_le_bytes();
    let mut row = vec![5, 0, 0, 0, 7, LIVENESS];
    row.extend_from_slice(&1_i64.to_le_bytes());
    row.extend_from_slice(&(elements as u16).to_le_bytes());
    for element in 0..elements {
        row.extend_from_slice(&[column[0], column[1], SAME_TIMESTAMP_AND_PATH, 7]);
        row.extend_from_slice(format!("{element:07}").as_bytes());
        row.extend_from_slice(&[1, b'v']);
    }
    const ROW: u8 = 3;
    let mut changes = vec![ROW];
    changes.extend_from_slice(&(row.len() as u32).to_le_bytes());
    changes.extend_from_slice(&row);
    changes
}

/// Counts the cells of each row.
#[derive(Default)]
struct Cells(Vec<usize>);

impl RowSink for Cells {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        self.0.push(row.row.cells.len());
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

fn cells(database: &Database) -> Vec<usize> {
    let command = command(database, "m", "key");
    let view = database.view(&command.table).unwrap();
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    let mut cells = Cells::default();
    database.read(&command, &view, request, &mut cells, None).unwrap();
    cells.0
}

#[test]
fn a_row_of_more_cells_than_its_count_says_is_applied_as_earlier_versions_logged_it() {
    let mut random = Random::new(from_environment("COUNT_SEED", 1));
    for elements in [65_535, 65_536, 65_537, 131_072, 65_536 + random.below(70_000)] {
        println!("{elements} elements");
        let machine = Machine::new(1);
        let database = open(&machine.host());
        create(&database, vec![table_with_map()]);
        let table = table_of(&database, "m");
        let changes = Changes::from_bytes(row_as_logged(&table, elements));
        let update = PartitionUpdate { table, key: b"key".to_vec(), changes };
        database.write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
        assert_eq!(cells(&database), [elements]);
        let after = machine.crash();
        machine.end_tasks();
        drop(database);
        let (database, report) = open_again(&after, false).unwrap();
        assert_eq!(report.unappliable, []);
        assert_eq!(cells(&database), [elements], "replayed");
        database.flush_all().unwrap();
        assert_eq!(cells(&database), [elements], "flushed");
        // A row without its last cell is invalid, whatever its count is.
        let mut short = row_as_logged(&table_of(&database, "m"), elements);
        let (cell, content) = (13, short.len() - 5 - 13);
        short.truncate(short.len() - cell);
        short[1..5].copy_from_slice(&(content as u32).to_le_bytes());
        let table = table_of(&database, "m");
        let update = PartitionUpdate { table, key: b"key".to_vec(), changes: Changes::from_bytes(short) };
        let refused = database.write(&Mutation { updates: vec![update] });
        assert!(matches!(refused, Err(Error::Unstorable { .. })), "{:?}", refused.err());
        after.end_tasks();
    }
}
