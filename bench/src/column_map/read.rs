//! The read: 3,000 columns of a memtable, put together in either kind of map, and as Helenus reads them.

use crate::{Column, NAME, Options, VALUE, add, line, median_us};
use anyhow::{Result, anyhow, ensure};
use helenus_engine::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_engine::{Concurrent, Database, DatabaseOptions, ReadRequest};
use helenus_model::cell::{Cell, Span};
use helenus_model::column_map::{Arrays, ColumnMap, ColumnMapFactory};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::{Column as Definition, ColumnKind, Keyspace, Table, TableId};
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Columns of the row.
const COLUMNS: u64 = 3_000;
const KEY: &[u8] = b"row";
const TIMESTAMP_US: i64 = 1_700_000_000_000_000;
const NOW_S: i64 = 1_700_000_001;

/// Reads the row in three ways.
pub fn run(options: Options) -> Result<()> {
    let (database, table) = load()?;
    let expected = expected();
    let check = |answer: &[u8]| {
        ensure!(answer == expected, "an answer of {} bytes that is not what was written", answer.len());
        Ok(())
    };
    let mut answer = Vec::new();
    let array = median_us(options.seconds, || {
        answer.clear();
        through(&Arrays, (&database, &table), &mut answer)
    })?;
    check(&answer)?;
    let concurrent = median_us(options.seconds, || {
        answer.clear();
        through(&Concurrent::default(), (&database, &table), &mut answer)
    })?;
    check(&answer)?;
    let claim = "16 ms, about half of it array-backed";
    line("a read of 3,000 columns in memory, through a map", (array, concurrent), claim);
    let streamed = median_us(options.seconds, || {
        answer.clear();
        read(&database, &table, &mut |name, value| put(&mut answer, name, value))
    })?;
    check(&answer)?;
    println!("\nThe same read as Helenus does it, without a map: {streamed:.0} us.");
    Ok(())
}

/// The row in a memtable, in memory, without a log.
fn load() -> Result<(Arc<Database>, Arc<Table>)> {
    let mut options = DatabaseOptions::new("/memory");
    options.sync = None;
    let (database, _) = Database::open(helenus_host::memory::host(), options)?;
    let (_, ticket) = database
        .change_schema::<()>(|schema, _| {
            let mut next = schema.clone();
            let keyspace = Keyspace {
                name: "bench".into(),
                durable_writes: true,
                replication: BTreeMap::from([
                    ("class".into(), "org.apache.cassandra.locator.SimpleStrategy".into()),
                    ("replication_factor".into(), "1".into()),
                ]),
                tables: BTreeMap::from([("wide".into(), Arc::new(table()))]),
                types: BTreeMap::new(),
            };
            next.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
            Ok(next)
        })
        .map_err(|error| anyhow!("the schema: {error:?}"))?;
    ticket.wait()?;
    let schema = database.schema();
    let table = schema.table("bench", "wide").cloned().ok_or_else(|| anyhow!("no table"))?;
    let mut changes = Changes::default();
    for number in 0..COLUMNS {
        let head = (Liveness::at(TIMESTAMP_US), DeletionTime::LIVE);
        changes.row(std::iter::once(Some(&name(number)[..])), head, &[], |writer| {
            for regular in &table.regulars {
                let cell = Cell {
                    column: regular.id,
                    ttl_s: 0,
                    timestamp_us: TIMESTAMP_US,
                    local_deletion_s: NO_EXPIRY,
                    path: Span::NULL,
                    value: Span::EMPTY,
                };
                writer.cell(&cell, None, &value(number));
            }
        });
    }
    let update = PartitionUpdate { table: table.clone(), key: KEY.to_vec(), changes };
    database.write(&Mutation { updates: vec![update] })?.wait()?;
    Ok((database, table))
}

fn table() -> Table {
    let kinds =
        [("key", ColumnKind::PartitionKey), ("name", ColumnKind::Clustering), ("value", ColumnKind::Regular)];
    let columns = kinds.map(|(name, kind)| Definition::new(name, kind, CqlType::Blob));
    Table::new(("bench", "wide"), TableId(Uuid::new_v4()), columns)
}

fn name(number: u64) -> [u8; NAME] {
    number.to_be_bytes()
}

fn value(number: u64) -> [u8; VALUE] {
    let mut bytes = [0; VALUE];
    bytes.iter_mut().zip(0..).for_each(|(byte, at)| *byte = number.wrapping_mul(31).wrapping_add(at) as u8);
    bytes
}

fn put(answer: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, value] {
        answer.extend_from_slice(&(part.len() as u32).to_be_bytes());
        answer.extend_from_slice(part);
    }
}

fn expected() -> Vec<u8> {
    let mut answer = Vec::new();
    (0..COLUMNS).for_each(|number| put(&mut answer, &name(number), &value(number)));
    answer
}

/// Reads the row into a map, and the map into an answer.
fn through(
    factory: &impl ColumnMapFactory<Column>,
    (database, table): (&Database, &Arc<Table>),
    answer: &mut Vec<u8>,
) -> Result<()> {
    let mut map = factory.make();
    read(database, table, &mut |name, value| add(&mut map, name, Column::new(TIMESTAMP_US, value)))?;
    for (name, column) in map.at_or_after(&[]) {
        put(answer, name, &column.value);
    }
    Ok(())
}

fn read(database: &Database, table: &Arc<Table>, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    let command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Keys(vec![PartitionKey::new(KEY.to_vec())]),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: false,
        columns: None,
        limits: Limits::NONE,
        now_s: NOW_S,
        resume: None,
        page_rows: None,
    };
    let view = database.view(table)?;
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    database.read(&command, &view, request, &mut Rows(take), None)?;
    Ok(())
}

/// Takes name and value of each row.
struct Rows<'a>(&'a mut dyn FnMut(&[u8], &[u8]));

impl RowSink for Rows<'_> {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let cell = row.row.cells.iter().find(|cell| cell.is_live(NOW_S));
        (self.0)(row.clustering(0).unwrap_or_default(), cell.map_or(&[], |cell| row.value(cell)));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
