//! Profiles the engine in this process: the execution of a statement below CQL, which "Cassandra Query Plans" and
//! "Reversed Comparators" (2011) measured inside the server.
//!
//! The measured time of a query covers building the command, taking the view, reading, and copying the cells out as an
//! encoder would.

use super::answer::Answer;
use super::cases::{Query, Slice};
use super::options::RunOptions;
use super::progress::{Progress, compacting, show, while_waiting};
use super::results::Settled;
use super::rows::Partition;
use super::subject::Subject;
use crate::commands::stress::content::{name, wide_value};
use crate::commands::stress::{WideOrder as Order, create_wide_table};
use anyhow::{Context, Result, ensure};
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::read::{PartitionKey, Partitions, Probe, ReadCommand, ReadEnd, RowOutcome, RowSink};
use helenus_engine::{Database, DatabaseOptions, MemoryShares, ReadRequest, SyncMode};
use helenus_model::byte_comparable;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Limits, Slice as Positions};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::{Table, TableId};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory for memtables: two of them, each flushed at about two million columns.
const MEMTABLE_BYTES: usize = 1 << 30;
/// Time between two syncs of the log, as with Cassandra's default.
const SYNC_PERIOD_MS: u64 = 10_000;
/// Number of columns in a write.
const BATCH: u64 = 100;

/// A database opened in this process.
pub(super) struct Embedded {
    database: Arc<Database>,
    /// Runs the statements that make the tables.
    backend: Arc<LocalBackend>,
    keyspace: String,
    tables: Option<Tables>,
    _scratch: Option<TemporaryDirectory>,
}

struct Tables {
    ascending: Arc<Table>,
    reversed: Arc<Table>,
}

/// A directory that is removed when this value is dropped.
struct TemporaryDirectory(PathBuf);

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            note!("cannot remove {}: {error}", self.0.display());
        }
    }
}

impl Embedded {
    /// Opens the directory of the options, or a temporary one.
    pub fn open(options: &RunOptions) -> Result<Embedded> {
        let own = || std::env::temp_dir().join(format!("helenus-profile-{}", std::process::id()));
        let dir = options.data.clone().unwrap_or_else(own);
        ensure!(options.data.is_some() || !options.keep, "--keep needs --data: a temporary database is new");
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let scratch = options.data.is_none().then(|| TemporaryDirectory(dir.clone()));
        note!("database in {}{}", dir.display(), if scratch.is_some() { ", removed at the end" } else { "" });
        let mut database = DatabaseOptions::new(dir);
        database.sync = Some(SyncMode::Periodic { period_ms: SYNC_PERIOD_MS });
        database.memory = MemoryShares { memtables: MEMTABLE_BYTES, cache: options.cache };
        let (database, _) = Database::open(helenus_host::real::host(), database)?;
        let backend = LocalBackend::new(Arc::clone(&database), LocalOptions::default());
        let keyspace = options.keyspace.clone();
        Ok(Embedded { database, backend, keyspace, tables: None, _scratch: scratch })
    }

    fn table(&self, order: Order) -> Result<&Arc<Table>> {
        let tables = self.tables.as_ref().context("the tables are not made yet")?;
        Ok(match order {
            Order::Asc => &tables.ascending,
            Order::Desc => &tables.reversed,
        })
    }

    /// The storage engine.
    pub fn engine(&self) -> &Database {
        &self.database
    }

    /// Runs a schema statement.
    fn execute(&self, cql: &str) -> Result<()> {
        let identity = Identity::default();
        let statement = self.backend.prepare(cql, None, &identity)?;
        let request = Request::plain(&identity, &[]);
        let done = self.backend.execute(&statement, &request, &mut NoRows)?;
        if let Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) = done.outcome {
            ticket.wait()?;
        }
        Ok(())
    }

    /// Drops and creates a table of the profile's keyspace.
    pub fn make_table(&self, name: &str, columns: &str) -> Result<Arc<Table>> {
        let keyspace = &self.keyspace;
        self.make_keyspace()?;
        self.execute(&format!("DROP TABLE IF EXISTS {keyspace}.{name}"))?;
        self.execute(&format!("CREATE TABLE {keyspace}.{name} ({columns})"))?;
        let schema = self.engine().schema();
        schema.table(keyspace, name).cloned().with_context(|| format!("no table {keyspace}.{name}"))
    }

    fn make_keyspace(&self) -> Result<()> {
        self.execute(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            self.keyspace
        ))
    }

    /// Flushes all tables and compacts the given ones.
    pub fn settle_tables(&self, tables: &[TableId]) -> Result<Settled> {
        let begun = Instant::now();
        show("flush");
        self.database.flush_all()?;
        let flush_s = Some(begun.elapsed().as_secs_f64());
        let compact_s = Some(self.compact(tables)?.as_secs_f64());
        let status = self.engine().status();
        let ours = || status.tables.iter().filter(|table| table.keyspace == self.keyspace);
        Ok(Settled {
            flush_s,
            compact_s,
            sstables: Some(ours().map(|table| table.sstables).sum()),
            disk_bytes: Some(ours().map(|table| table.disk_bytes).sum()),
            after_load: None,
        })
    }

    /// Compacts tables and shows the progress.
    fn compact(&self, tables: &[TableId]) -> Result<Duration> {
        let begun = Instant::now();
        let engine = self.engine();
        let request = engine.compact(tables.to_vec());
        let ended = while_waiting(
            || request.wait(),
            || {
                let running = engine.status().compactions;
                let ours = running.iter().find(|one| one.keyspace == self.keyspace);
                ours.map_or("compact".into(), |one| compacting(&one.table, one.bytes_done, one.bytes_total))
            },
        );
        ended.map_err(|failure| anyhow::anyhow!("the compaction: {failure}"))?;
        Ok(begun.elapsed())
    }

    fn read(
        &self,
        partition: Partition,
        query: &Query,
        answer: &mut Answer,
        probe: Option<&mut Probe>,
    ) -> Result<Duration> {
        let table = self.table(partition.order)?;
        let engine = self.engine();
        answer.clear();
        let begun = Instant::now();
        let command = command(table, engine.now_s(), partition, query)?;
        let view = engine.view(table)?;
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        let end =
            engine.read(&command, &view, request, &mut Cells { answer, now_s: command.now_s }, probe)?;
        let took = begun.elapsed();
        ensure!(end == ReadEnd::Complete, "a read without pages has ended early");
        Ok(took)
    }
}

impl Subject for Embedded {
    fn make_tables(&mut self, anew: bool) -> Result<()> {
        let keyspace = &self.keyspace;
        if anew {
            self.execute(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        }
        self.make_keyspace()?;
        for order in [Order::Asc, Order::Desc] {
            self.execute(&create_wide_table(keyspace, order, false))?;
        }
        let schema = self.engine().schema();
        let table = |order: Order| {
            let found = schema.table(keyspace, order.table()).cloned();
            found.with_context(|| format!("no table {keyspace}.{}", order.table()))
        };
        self.tables = Some(Tables { ascending: table(Order::Asc)?, reversed: table(Order::Desc)? });
        Ok(())
    }

    fn load(&mut self, partition: Partition, progress: &Progress) -> Result<()> {
        let table = self.table(partition.order)?;
        let engine = self.engine();
        let width = partition.row.width;
        for first in (0..width).step_by(BATCH as usize) {
            let columns = first..(first + BATCH).min(width);
            let count = columns.end - columns.start;
            let timestamp_us = engine.next_timestamp()?;
            engine.write(&batch(table, partition, columns, timestamp_us))?.wait()?;
            progress.add(count);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<Settled> {
        let tables = self.tables.as_ref().context("the tables are not made yet")?;
        self.settle_tables(&[tables.ascending.id, tables.reversed.id])
    }

    fn ask(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Duration> {
        self.read(partition, query, answer, None)
    }

    fn probe(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Option<Probe>> {
        let mut probe = Probe::default();
        self.read(partition, query, answer, Some(&mut probe))?;
        Ok(Some(probe))
    }
}

/// The partition key of a row, the same as in `stress`.
fn key(partition: Partition) -> Vec<u8> {
    format!("row-{}", partition.row.width).into_bytes()
}

/// The mutation that writes some columns of a row.
fn batch(
    table: &Arc<Table>,
    partition: Partition,
    columns: std::ops::Range<u64>,
    timestamp_us: i64,
) -> Mutation {
    let mut changes = Changes::default();
    let head = (Liveness::at(timestamp_us), DeletionTime::LIVE);
    for column in columns {
        changes.row(std::iter::once(Some(&name(column)[..])), head, &[], |writer| {
            for regular in &table.regulars {
                let cell = Cell {
                    column: regular.id,
                    ttl_s: 0,
                    timestamp_us,
                    local_deletion_s: NO_EXPIRY,
                    path: Span::NULL,
                    value: Span::EMPTY,
                };
                writer.cell(&cell, None, &wide_value(partition.row.width, column));
            }
        });
    }
    Mutation { updates: vec![PartitionUpdate { table: table.clone(), key: key(partition), changes }] }
}

/// The read command of a query.
fn command(table: &Arc<Table>, now_s: i64, partition: Partition, query: &Query) -> Result<ReadCommand> {
    let (filter, reversed, rows) = match query {
        Query::Names(columns) => {
            (ClusteringFilter::Names(positions(table, partition, columns)?), false, None)
        }
        Query::Slice(slice) => {
            (ClusteringFilter::Slices(vec![range(table, slice)?]), slice.reversed, Some(slice.count))
        }
    };
    Ok(ReadCommand {
        table: table.clone(),
        partitions: Partitions::Keys(vec![PartitionKey::new(key(partition))]),
        filter: Arc::new(filter),
        reversed,
        statics: false,
        columns: None,
        limits: rows.map_or(Limits::NONE, |rows| Limits { rows, ..Limits::NONE }),
        now_s,
        resume: None,
        page_rows: None,
    })
}

/// The byte-comparable keys of columns, in the order of the table.
fn positions(table: &Table, partition: Partition, columns: &[u64]) -> Result<Vec<Vec<u8>>> {
    let mut positions = Vec::with_capacity(columns.len());
    for column in columns {
        let mut key = Vec::with_capacity(16);
        byte_comparable::clustering_key(
            std::iter::once(Some(&name(*column)[..])),
            &table.clustering,
            &mut key,
        )?;
        positions.push(key);
    }
    if partition.order == Order::Desc {
        positions.reverse();
    }
    Ok(positions)
}

fn range(table: &Table, slice: &Slice) -> Result<Positions> {
    let mut all = Positions { start: BEFORE_ALL.to_vec(), end: AFTER_ALL.to_vec() };
    if let Some(start) = slice.start {
        let mut bound = Vec::with_capacity(16);
        let name = name(start);
        byte_comparable::clustering_bound(
            std::iter::once(Some(&name[..])),
            &table.clustering,
            !slice.reversed,
            &mut bound,
        )?;
        *(if slice.reversed { &mut all.end } else { &mut all.start }) = bound;
    }
    Ok(all)
}

/// A row sink that adds the rows of the table to the answer as columns.
struct Cells<'a> {
    answer: &'a mut Answer,
    now_s: i64,
}

impl RowSink for Cells<'_> {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let cell = row.row.cells.iter().find(|cell| cell.is_live(self.now_s));
        self.answer.push(row.clustering(0), cell.map(|cell| row.value(cell)));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
