//! Reads the rows that a write is about to change, for the feed of changes: the row before.
//!
//! Only of the tables that the option `row_images` names. Their partitions are locked while the rows are read and the write is
//! logged, so that no other write comes between. A row is recorded whole, without what is dead. Deletions of ranges and partitions,
//! and rows that are larger than a mutation may be, are not recorded.

use super::reading::ReadRequest;
use super::shared::Database;
use crate::commitlog::Ticket;
use crate::error::{Error, Result};
use crate::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::mutation::{Change, Changes, Mutation, PartitionUpdate};
use helenus_model::packed::{Damaged, RowWriter, unpack};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use std::sync::Arc;

impl Database {
    /// Whether rows that a mutation changes are recorded as they are.
    pub(super) fn wants_images(&self, mutation: &Mutation) -> bool {
        let images = &self.shared.options.row_images;
        !images.is_empty()
            && self.shared.log.is_some()
            && mutation.updates.iter().any(|update| images.wants(&update.table))
    }

    /// The rows that a mutation is about to change, as they are. The caller has locked its partitions.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) fn images(&self, mutation: &Mutation, may_block: bool) -> Result<Vec<PartitionUpdate>> {
        let mut all = Vec::new();
        if !self.wants_images(mutation) {
            return Ok(all);
        }
        let mut bytes = 0;
        for update in &mutation.updates {
            if !self.shared.options.row_images.wants(&update.table) {
                continue;
            }
            let image = self.image(update, may_block)?;
            bytes += image.changes.as_bytes().len();
            if bytes > self.shared.options.mutation_bytes_max {
                return Ok(all);
            }
            all.push(image);
        }
        Ok(all)
    }

    fn image(&self, update: &PartitionUpdate, may_block: bool) -> Result<PartitionUpdate> {
        let (rows, statics) = changed_rows(update)?;
        let mut sink = Images { now_s: self.now_s(), wants_static: statics, changes: Changes::default() };
        if statics || !rows.is_empty() {
            let command = ReadCommand {
                table: update.table.clone(),
                partitions: Partitions::Keys(vec![PartitionKey::new(update.key.clone())]),
                filter: Arc::new(ClusteringFilter::Names(rows)),
                reversed: false,
                statics,
                columns: None,
                limits: Limits::NONE,
                now_s: sink.now_s,
                resume: None,
                page_rows: None,
            };
            let view = self.view(&update.table)?;
            let request = ReadRequest { may_block, ..ReadRequest::default() };
            self.read(&command, &view, request, &mut sink, None)?;
        }
        Ok(PartitionUpdate { table: update.table.clone(), key: update.key.clone(), changes: sink.changes })
    }
}

/// The ordered clusterings of the rows that an update changes, ascending, and whether it changes the static row.
fn changed_rows(update: &PartitionUpdate) -> Result<(Vec<Vec<u8>>, bool)> {
    let (mut rows, mut statics) = (Vec::new(), false);
    let mut row = RowBuf::default();
    for change in update.changes.iter() {
        match change? {
            Change::Row(packed) => {
                unpack(packed, update.table.clustering.len(), &mut row)?;
                rows.push(row_key(&update.table, RowView { row: &row, data: packed })?);
            }
            Change::StaticRow(_) => statics = true,
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => {}
        }
    }
    rows.sort_unstable();
    rows.dedup();
    Ok((rows, statics))
}

/// The ordered clustering of a row.
fn row_key(table: &Table, row: RowView<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    let values = (0..table.clustering.len()).map(|index| row.clustering(index));
    clustering_key(values, &table.clustering, &mut key).map_err(|_| Error::from(Damaged { offset: 0 }))?;
    Ok(key)
}

/// Collects rows as changes that would write them.
struct Images {
    now_s: i64,
    wants_static: bool,
    changes: Changes,
}

fn put_live_cells(row: RowView<'_>, now_s: i64, writer: &mut RowWriter<'_>) {
    for cell in row.row.cells.iter().filter(|cell| cell.is_live(now_s)) {
        writer.cell(cell, cell.path.get(row.data), row.value(cell));
    }
}

impl RowSink for Images {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        if let Some(row) = static_row.filter(|_| self.wants_static) {
            self.changes.static_row(&[], |writer| put_live_cells(row, self.now_s, writer));
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let values = (0..row.row.clustering.len()).map(|index| row.clustering(index));
        let liveness = Some(row.row.liveness).filter(|liveness| liveness.is_live(self.now_s));
        let now_s = self.now_s;
        self.changes.row(values, (liveness.unwrap_or(Liveness::NONE), DeletionTime::LIVE), &[], |writer| {
            put_live_cells(row, now_s, writer);
        });
        Ok(RowOutcome::Counted)
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // The write is logged after the writes that were read, so its ticket covers them.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
