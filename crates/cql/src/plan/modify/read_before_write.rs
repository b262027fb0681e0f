//! The rows that a write depends on, because of its conditions, list operations or additions.
//!
//! Every statement of a request adds the rows it needs to `ReadSet`. `local/writing.rs` locks those partitions and reads
//! them like any other read (`ReadSet::read`). It keeps the locks until the write that `PriorRows` determines is logged and
//! visible. Reads may answer `WouldBlock`: nothing has been written then.

use super::prepare::ModifyPlan;
use crate::analysis::Bindings;
use crate::super_family;
use helenus_engine::account;
use helenus_engine::read::{PartitionKey, Partitions, Probe, ReadCommand, RowOutcome, RowSink};
use helenus_engine::{Database, ReadRequest, Result, Ticket};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Table, TableId};
use helenus_model::token::Token;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The size of a row from which memory for its copy is reserved first.
const LARGE_ROW_BYTES: usize = 64 << 10;

/// A statement with the values of one execution.
#[derive(Clone)]
pub(crate) struct Statement<'a> {
    /// The statement.
    pub(crate) plan: &'a ModifyPlan,
    /// Its values.
    pub(crate) bindings: Bindings<'a>,
}

/// The rows to read, and the partitions to lock.
#[derive(Default)]
pub(crate) struct ReadSet {
    partitions: Vec<ReadPartition>,
    /// The index of each partition in `partitions`.
    places: HashMap<(TableId, Vec<u8>), usize>,
}

/// What to read of a partition.
pub(crate) struct ReadPartition {
    pub(crate) table: Arc<Table>,
    pub(crate) key: Vec<u8>,
    /// Its static row.
    pub(crate) statics: bool,
    /// The first row of the partition; not together with `rows`.
    pub(crate) first_row: bool,
    /// The rows to read, by their ordered clustering.
    pub(crate) rows: BTreeSet<Vec<u8>>,
}

impl ReadSet {
    /// What to read of this partition, to be added to.
    pub(crate) fn partition(&mut self, table: &Arc<Table>, key: &[u8]) -> &mut ReadPartition {
        let place = (table.id, key.to_vec());
        let index = self.places.get(&place).copied().unwrap_or_else(|| {
            self.places.insert(place, self.partitions.len());
            self.partitions.push(ReadPartition {
                table: table.clone(),
                key: key.to_vec(),
                statics: false,
                first_row: false,
                rows: BTreeSet::new(),
            });
            self.partitions.len() - 1
        });
        &mut self.partitions[index]
    }

    /// What to read of each partition.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &ReadPartition> {
        self.partitions.iter()
    }

    /// Whether there is no partition to read or lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// The partitions to lock.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (TableId, Token)> {
        self.partitions.iter().map(|partition| (partition.table.id, Token::of_key(&partition.key)))
    }

    /// Reads the rows. `now_s` decides what has expired.
    ///
    /// # Errors
    /// As for a read.
    pub(crate) fn read(
        &self,
        database: &Database,
        request: ReadRequest<'_>,
        now_s: i64,
        mut probe: Option<&mut Probe>,
    ) -> Result<PriorRows> {
        let mut partitions = HashMap::with_capacity(self.partitions.len());
        for wanted in self.partitions.iter().filter(|wanted| wanted.reads()) {
            let mut sink =
                Keep { table: &wanted.table, statics: None, rows: BTreeMap::new(), newest_dead_us: i64::MIN };
            let command = wanted.command(now_s);
            super_family::read(database, &command, request, &mut sink, probe.as_deref_mut())?;
            let Keep { statics, rows, newest_dead_us, .. } = sink;
            let found = PriorPartition { statics, rows, newest_dead_us };
            partitions.insert((wanted.table.id, wanted.key.clone()), found);
        }
        Ok(PriorRows { partitions })
    }
}

impl ReadPartition {
    /// Whether anything of it is to be read; if not, it is only locked.
    fn reads(&self) -> bool {
        self.statics || self.first_row || !self.rows.is_empty()
    }

    fn command(&self, now_s: i64) -> ReadCommand {
        let filter = match self.first_row && self.rows.is_empty() {
            true => ClusteringFilter::Slices(vec![Slice::all()]),
            false => ClusteringFilter::Names(self.rows.iter().cloned().collect()),
        };
        let limit = if self.first_row { 1 } else { u64::MAX };
        ReadCommand {
            table: self.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(self.key.clone())]),
            filter: Arc::new(filter),
            reversed: false,
            statics: self.statics,
            columns: None,
            limits: Limits { rows: limit, per_partition: limit },
            now_s,
            resume: None,
            page_rows: None,
        }
    }
}

/// The rows that were read.
#[derive(Debug, Default)]
pub(crate) struct PriorRows {
    partitions: HashMap<(TableId, Vec<u8>), PriorPartition>,
}

#[derive(Debug)]
struct PriorPartition {
    statics: Option<RowBuf>,
    /// By ordered clustering.
    rows: BTreeMap<Vec<u8>, RowBuf>,
    /// The greatest timestamp of the deletions that hide rows, and of rows without live cells.
    newest_dead_us: i64,
}

impl PriorRows {
    fn partition(&self, table: TableId, key: &[u8]) -> Option<&PriorPartition> {
        self.partitions.get(&(table, key.to_vec()))
    }

    /// The static row of a partition, if it has live values.
    pub(crate) fn statics(&self, table: TableId, key: &[u8]) -> Option<RowView<'_>> {
        Some(self.partition(table, key)?.statics.as_ref()?.view())
    }

    /// A row, if it is live.
    pub(crate) fn row(&self, table: TableId, key: &[u8], clustering: &[u8]) -> Option<RowView<'_>> {
        Some(self.partition(table, key)?.rows.get(clustering)?.view())
    }

    /// The rows of a partition in clustering order.
    pub(crate) fn rows(&self, table: TableId, key: &[u8]) -> impl Iterator<Item = RowView<'_>> {
        self.partition(table, key).into_iter().flat_map(|found| found.rows.values().map(RowBuf::view))
    }

    /// The greatest timestamp in what was read, deletions included; `i64::MIN` if there is none.
    pub(crate) fn newest_us(&self) -> i64 {
        let of_partition = |found: &PriorPartition| {
            let rows = found.rows.values().chain(&found.statics).map(|row| row.view().newest_us());
            rows.fold(found.newest_dead_us, i64::max)
        };
        self.partitions.values().map(of_partition).max().unwrap_or(i64::MIN)
    }
}

struct Keep<'a> {
    table: &'a Table,
    statics: Option<RowBuf>,
    rows: BTreeMap<Vec<u8>, RowBuf>,
    newest_dead_us: i64,
}

impl RowSink for Keep<'_> {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        if let Some(row) = static_row {
            account::grow(row.data.len() + size_of_val(&*row.row.cells))?;
            let mut kept = RowBuf::default();
            kept.copy_from(row);
            self.statics = Some(kept);
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let values = (0..self.table.clustering.len()).map(|index| row.clustering(index));
        let mut key = Vec::new();
        clustering_key(values, &self.table.clustering, &mut key).map_err(|_| {
            helenus_engine::Error::Unstorable {
                keyspace: self.table.keyspace.to_string(),
                table: self.table.name.to_string(),
                problem: "a clustering that was read has no ordered form",
            }
        })?;
        if row.data.len() >= LARGE_ROW_BYTES {
            // A buffer that grows by doubling.
            account::grow(2 * row.value_bytes())?;
        }
        let mut kept = RowBuf::default();
        kept.copy_from(row);
        self.rows.insert(key, kept);
        Ok(RowOutcome::Counted)
    }

    fn dead(&mut self, newest_us: i64) {
        self.newest_dead_us = self.newest_dead_us.max(newest_us);
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // A write that depends on these rows is logged after them, and an answer without a write waits for the whole
        // log.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
