//! Reads the rows that a write is about to change, for the feed of changes: the row before.
//!
//! Only of the tables that the option `row_images` names. Their partitions are locked while the rows are read and the write is
//! logged, so that no other write comes between. A row is recorded whole, with what is dead, because a write with an older timestamp
//! has no effect there. Deletions of ranges and partitions, and rows that are larger than a mutation may be, are not recorded.

use super::counting::row_key;
use super::reading::ReadRequest;
use super::shared::Database;
use crate::commitlog::Ticket;
use crate::error::Result;
use crate::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_model::cell::Cell;
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::mutation::{Change, Changes, Mutation, PartitionUpdate};
use helenus_model::packed::{RowWriter, unpack};
use helenus_model::row::{RowBuf, RowView};
use std::collections::BTreeMap;
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
            for place in changed_rows(update)? {
                let image = self.image(update, place, may_block)?;
                bytes += image.key.len() + image.changes.as_bytes().len();
                if bytes > self.shared.options.mutation_bytes_max {
                    return Ok(all);
                }
                all.push(image);
            }
        }
        Ok(all)
    }

    /// A row as it is, as changes that would write it: the latest deletion of many rows that it is under, then the row, without
    /// cells if there is none.
    fn image(&self, update: &PartitionUpdate, place: Place, may_block: bool) -> Result<PartitionUpdate> {
        let now_s = self.now_s();
        let (rows, clustering) = match place {
            Place::Row { key, clustering } => (vec![key], Some(clustering)),
            Place::Static => (Vec::new(), None),
        };
        let command = ReadCommand {
            table: update.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(update.key.clone())]),
            filter: Arc::new(ClusteringFilter::Names(rows)),
            reversed: false,
            statics: clustering.is_none(),
            columns: None,
            limits: Limits::NONE,
            now_s,
            resume: None,
            page_rows: None,
        };
        let mut sink = Image { now_s, clustering, hidden_us: None, row: None };
        let view = self.view(&update.table)?;
        let request = ReadRequest { may_block, ..ReadRequest::default() };
        self.read(&command, &view, request, &mut sink, None)?;
        Ok(PartitionUpdate {
            table: update.table.clone(),
            key: update.key.clone(),
            changes: sink.into_changes(),
        })
    }
}

/// A row that a write changes.
enum Place {
    Row {
        /// Its ordered clustering.
        key: Vec<u8>,
        /// Its clustering by column.
        clustering: Vec<Option<Vec<u8>>>,
    },
    Static,
}

/// The rows that an update changes, each once.
fn changed_rows(update: &PartitionUpdate) -> Result<Vec<Place>> {
    let (mut rows, mut has_static) = (BTreeMap::new(), false);
    let mut row = RowBuf::default();
    for change in update.changes.iter() {
        match change? {
            Change::Row(packed) => {
                unpack(packed, update.table.clustering.len(), &mut row)?;
                let view = RowView { row: &row, data: packed };
                let clustering = (0..update.table.clustering.len())
                    .map(|index| view.clustering(index).map(<[u8]>::to_vec));
                rows.insert(row_key(&update.table, view)?, clustering.collect());
            }
            Change::StaticRow(_) => has_static = true,
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => {}
        }
    }
    let rows = rows.into_iter().map(|(key, clustering)| Place::Row { key, clustering });
    Ok(rows.chain(has_static.then_some(Place::Static)).collect())
}

/// Takes one row, dead or alive.
struct Image {
    now_s: i64,
    /// Of the row; `None`: the static row is wanted.
    clustering: Option<Vec<Option<Vec<u8>>>>,
    /// Time of the latest deletion of many rows, microseconds.
    hidden_us: Option<i64>,
    row: Option<Changes>,
}

impl Image {
    /// Keeps the row as a change. What has expired is kept as deleted.
    fn keep(&mut self, row: RowView<'_>) {
        let now_s = self.now_s;
        let put = |writer: &mut RowWriter<'_>| {
            for cell in &row.row.cells {
                let path = cell.path.get(row.data);
                match cell.is_live(now_s) {
                    true => writer.cell(cell, path, row.value(cell)),
                    false => writer.cell(&Cell { ttl_s: 0, ..*cell }, path, &[]),
                }
            }
        };
        let mut changes = Changes::default();
        let complex = &row.row.complex_deletions;
        match &self.clustering {
            None => changes.static_row(complex, put),
            Some(clustering) => {
                let liveness = Some(row.row.liveness).filter(|liveness| liveness.is_live(now_s));
                let head = (liveness.unwrap_or(Liveness::NONE), row.row.deletion);
                changes.row(clustering.iter().map(Option::as_deref), head, complex, put);
            }
        }
        self.row = Some(changes);
    }

    fn into_changes(mut self) -> Changes {
        if self.row.is_none() {
            self.keep(RowBuf::default().view());
        }
        let mut changes = Changes::default();
        if let Some(timestamp_us) = self.hidden_us {
            changes.delete_partition(DeletionTime { timestamp_us, local_s: self.now_s });
        }
        changes.append(&self.row.unwrap_or_default());
        changes
    }
}

impl RowSink for Image {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        if let Some(row) = static_row.filter(|_| self.clustering.is_none()) {
            self.keep(row);
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        if self.clustering.is_some() {
            self.keep(row);
        }
        Ok(RowOutcome::Counted)
    }

    fn dead(&mut self, newest_us: i64) {
        self.hidden_us = self.hidden_us.max(Some(newest_us));
    }

    fn dead_row(&mut self, row: RowView<'_>) {
        if self.clustering.is_some() {
            self.keep(row);
        }
    }

    fn dead_static_row(&mut self, row: RowView<'_>) {
        if self.clustering.is_none() {
            self.keep(row);
        }
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // The write is logged after the writes that were read, so its ticket covers them.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
