//! The changes that one call makes to one row of a family.

use crate::error::Result;
use crate::family::{Family, Shape};
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, PartitionUpdate};
use std::sync::Arc;

/// The latest expiry time that files can hold, in seconds (`Cell.MAX_DELETION_TIME`).
const EXPIRY_SECONDS_MAX: i64 = u32::MAX as i64 - 2;

/// The change of a column.
#[derive(Clone, Copy)]
pub(crate) enum Change<'a> {
    /// A value, its timestamp and its TTL (0: none).
    Value(&'a [u8], i64, i32),
    /// A deletion with this timestamp.
    Deletion(i64),
    /// An addition to a counter, and its timestamp.
    Sum([u8; 8], i64),
}

/// Collects changes to one row.
pub(crate) struct RowChanges<'a> {
    family: &'a Arc<Family>,
    key: Vec<u8>,
    now_s: i64,
    changes: Changes,
    /// Changes of declared columns, which are written together.
    declared: Vec<(ColumnId, Change<'a>)>,
}

impl<'a> RowChanges<'a> {
    pub(crate) fn new(family: &'a Arc<Family>, key: &[u8], now_s: i64) -> RowChanges<'a> {
        RowChanges { family, key: key.to_vec(), now_s, changes: Changes::default(), declared: Vec::new() }
    }

    /// Changes a column. Its name must be validated.
    pub(crate) fn column(
        &mut self,
        super_column: Option<&[u8]>,
        name: &[u8],
        change: Change<'a>,
    ) -> Result<()> {
        let family = self.family;
        let now_s = self.now_s;
        match (family.shape, super_column) {
            (Shape::Super, super_column) => {
                let row = super_column.unwrap_or_default();
                let declared = family.declared(name);
                let (column, path) = match declared {
                    Some(declared) => (declared.column, None),
                    None => (family.value, Some(name)),
                };
                self.changes.row([Some(row)].into_iter(), NO_MARKER, &[], |writer| {
                    let (cell, value) = change.cell(column, now_s);
                    writer.cell(&cell, path, value);
                });
            }
            (Shape::Composite, _) => {
                let values = family.comparator.values(name)?;
                self.changes.row(values.iter(), NO_MARKER, &[], |writer| {
                    let (cell, value) = change.cell(family.value, now_s);
                    writer.cell(&cell, None, value);
                });
            }
            (Shape::Static, _) if let Some(declared) = family.declared(name) => {
                self.declared.push((declared.column, change));
            }
            (Shape::Static | Shape::Dynamic, _) => {
                self.changes.row([Some(name)].into_iter(), NO_MARKER, &[], |writer| {
                    let (cell, value) = change.cell(family.value, now_s);
                    writer.cell(&cell, None, value);
                });
            }
        }
        Ok(())
    }

    /// Deletes the whole row.
    pub(crate) fn delete_row(&mut self, timestamp_us: i64) {
        self.changes.delete_partition(DeletionTime { timestamp_us, local_s: self.now_s });
    }

    /// Deletes a whole super column.
    pub(crate) fn delete_super_column(&mut self, name: &[u8], timestamp_us: i64) {
        let deletion = DeletionTime { timestamp_us, local_s: self.now_s };
        self.changes.row([Some(name)].into_iter(), (Liveness::NONE, deletion), &[], |_| {});
    }

    /// Deletes the columns between two names. Declared columns are deleted one by one.
    pub(crate) fn delete_range(&mut self, start: &[u8], finish: &[u8], timestamp_us: i64) -> Result<()> {
        let family = self.family;
        let comparator = family.comparator_within(None);
        let deletion = DeletionTime { timestamp_us, local_s: self.now_s };
        let (first, last) = (comparator.bound(start, true)?, comparator.bound(finish, false)?);
        self.changes.delete_range((&first.0, first.1), (&last.0, last.1), deletion);
        if family.shape == Shape::Static {
            let (mut low, mut high) = (Vec::new(), Vec::new());
            comparator.put_bound(start, true, &mut low)?;
            comparator.put_bound(finish, false, &mut high)?;
            let within =
                family.declared.iter().filter(|known| low <= known.position && known.position < high);
            self.declared.extend(within.map(|known| (known.column, Change::Deletion(timestamp_us))));
        }
        Ok(())
    }

    /// The collected changes as an update.
    pub(crate) fn finish(mut self) -> PartitionUpdate {
        self.declared.sort_by_key(|(column, _)| *column);
        let mut rest = &self.declared[..];
        while !rest.is_empty() {
            // A second change of the same column goes into another update of the static row; the memtable reconciles
            // them.
            let repeats = rest.windows(2).position(|pair| pair[0].0 == pair[1].0);
            let (round, after) = rest.split_at(repeats.map_or(rest.len(), |at| at + 1));
            self.changes.static_row(&[], |writer| {
                for (column, change) in round {
                    let (cell, value) = change.cell(*column, self.now_s);
                    writer.cell(&cell, None, value);
                }
            });
            rest = after;
        }
        PartitionUpdate { table: self.family.table.clone(), key: self.key, changes: self.changes }
    }
}

const NO_MARKER: (Liveness, DeletionTime) = (Liveness::NONE, DeletionTime::LIVE);

impl<'a> Change<'a> {
    fn cell(&self, column: ColumnId, now_s: i64) -> (Cell, &[u8]) {
        let cell = |timestamp_us, ttl_s, local_deletion_s| Cell {
            column,
            ttl_s,
            timestamp_us,
            local_deletion_s,
            path: Span::NULL,
            value: Span::EMPTY,
        };
        match self {
            Change::Value(value, timestamp_us, 0) => (cell(*timestamp_us, 0, NO_EXPIRY), *value),
            Change::Value(value, timestamp_us, ttl_s) => {
                let expires_s = now_s.saturating_add(i64::from(*ttl_s)).min(EXPIRY_SECONDS_MAX);
                (cell(*timestamp_us, *ttl_s, expires_s), *value)
            }
            Change::Deletion(timestamp_us) => (cell(*timestamp_us, 0, now_s), &[]),
            Change::Sum(number, timestamp_us) => (cell(*timestamp_us, 0, NO_EXPIRY), number),
        }
    }
}
