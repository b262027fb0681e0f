//! A row as CQL shows it: its live cells, each with value, timestamp and expiry. Rows of both sides are read into this form.
//!
//! Cells are in the order of column ids, then of their paths as bytes. The elements of a list have no path, because their ids differ
//! from side to side; they keep their order.

use crate::source::{RowName, SourceError, list_columns, list_of_row, nullable};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::counter_context;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::CqlType;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// When a cell was written, and until when it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    /// Write timestamp, microseconds.
    pub timestamp_us: i64,
    /// When it expires, seconds since the epoch; `NO_EXPIRY` without a TTL.
    pub expires_s: i64,
}

/// A live cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeenCell {
    /// Its column.
    pub column: ColumnId,
    /// Element of a set, key of a map, position of a field of a user type (two bytes); empty otherwise.
    pub path: Vec<u8>,
    /// The value; of a counter its sum.
    pub value: Vec<u8>,
    /// `None` for counters, and where the cluster cannot tell.
    pub times: Option<Times>,
}

/// A live row.
#[derive(Clone, Debug)]
pub struct SeenRow {
    /// Its partition.
    pub partition: Arc<PartitionKey>,
    /// The clustering values; `None` for the static row. A row of a compact table may have fewer than there are columns.
    pub clustering: Option<Vec<Vec<u8>>>,
    /// The ordered encoding of the clustering; empty for the static row.
    pub order: Vec<u8>,
    /// The cells in order.
    pub cells: Vec<SeenCell>,
    /// The row's live marker, known of local rows only.
    pub marker: Option<Times>,
    /// The newest timestamp of each list, also of its dead elements and its deletion; known of local rows only.
    pub lists_us: Vec<(ColumnId, i64)>,
}

impl SeenRow {
    /// A row with cells in any order; elements of a list in theirs.
    ///
    /// # Errors
    /// The clustering values have no order.
    pub fn new(
        table: &Table,
        partition: &Arc<PartitionKey>,
        clustering: Option<Vec<Vec<u8>>>,
        mut cells: Vec<SeenCell>,
    ) -> Result<SeenRow, SourceError> {
        let mut order = Vec::new();
        if let Some(values) = &clustering {
            let column = || table.clustering.first().map(|column| column.name.to_string());
            clustering_key(nullable(table, values), &table.clustering, &mut order)
                .map_err(|_| SourceError::NoClustering { column: column().unwrap_or_default() })?;
        }
        // Stable: elements of a list have equal paths.
        cells.sort_by(|one, other| (one.column, &one.path).cmp(&(other.column, &other.path)));
        Ok(SeenRow {
            partition: Arc::clone(partition),
            clustering,
            order,
            cells,
            marker: None,
            lists_us: Vec::new(),
        })
    }

    /// What a row of the database shows at a time; `None` if nothing of it is alive.
    ///
    /// # Errors
    /// A clustering value is null.
    pub fn of_local(
        table: &Table,
        partition: &Arc<PartitionKey>,
        row: RowView<'_>,
        (is_static, now_s): (bool, i64),
    ) -> Result<Option<SeenRow>, SourceError> {
        let mut cells = Vec::new();
        for cell in row.row.cells.iter().filter(|cell| cell.is_live(now_s)) {
            let Some(column) = table.column_by_id(cell.column) else { continue };
            let is_list = matches!(column.ty, CqlType::List { frozen: false, .. });
            let (value, times) = match column.ty {
                CqlType::Counter => (counter_context::total(row.value(cell)).to_be_bytes().to_vec(), None),
                _ => {
                    let Cell { timestamp_us, local_deletion_s: expires_s, .. } = *cell;
                    (row.value(cell).to_vec(), Some(Times { timestamp_us, expires_s }))
                }
            };
            let path = if is_list { Vec::new() } else { row.path(cell).to_vec() };
            cells.push(SeenCell { column: cell.column, path, value, times });
        }
        let liveness = row.row.liveness;
        let marker = (!is_static && !liveness.is_none() && liveness.is_live(now_s))
            .then_some(Times { timestamp_us: liveness.timestamp_us, expires_s: liveness.expires_s });
        if cells.is_empty() && marker.is_none() {
            return Ok(None);
        }
        let name = RowName::of(table, &[], row, is_static)?;
        let seen = SeenRow::new(table, partition, name.clustering, cells)?;
        let newest_us = |column: &Column| Some((column.id, list_of_row(row, column.id, now_s)?.newest_us));
        let lists_us = list_columns(table, is_static).filter_map(newest_us).collect();
        Ok(Some(SeenRow { marker, lists_us, ..seen }))
    }

    /// Its place in the order of the ring and of the clustering.
    pub fn position(&self) -> (&[u8], &[u8]) {
        (&self.partition.decorated, &self.order)
    }

    /// The values that name it.
    pub fn name(&self) -> RowName {
        RowName { key: self.partition.bytes.clone(), clustering: self.clustering.clone() }
    }

    /// A number that changes with its cells.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.cells.hash(&mut hasher);
        hasher.finish()
    }

    /// The bytes of its values, about.
    pub fn bytes(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.value.len() + cell.path.len() + size_of::<SeenCell>());
        self.order.len() + cells.sum::<usize>()
    }

    /// The greatest timestamp of its cells and its marker, if any is known.
    pub fn newest_us(&self) -> Option<i64> {
        let cells = self.cells.iter().filter_map(|cell| cell.times);
        cells.chain(self.marker).map(|times| times.timestamp_us).max()
    }
}

/// Whether a time is that of a cell without a TTL.
pub(super) fn has_no_ttl(times: Times) -> bool {
    times.expires_s == NO_EXPIRY
}
