//! Checks whether a mutation can be stored, before its record is logged and before a record is replayed.
//!
//! Nothing is refused after this check: replay, memtable, flush and SSTable writer accept whatever passes it. Each of
//! them would fail permanently on anything else, because the log returns the record at every start. Therefore the
//! memtable takes a change only together with the `TimeRange` that this check has computed.
//!
//! The check reads each row once and keeps nothing of it. The memtable needs a pass over all times in any case, so for
//! a row without deletion and TTL the check costs nothing extra.

use helenus_model::byte_comparable::component;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::{DeletionTime, EXPIRED_LIVENESS_TTL, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Change, Changes, PartitionUpdate, RangeBound};
use helenus_model::packed::{Damaged, RowReader};
use helenus_model::schema::{CellShape, CellShapes, ClusteringShape, Table};
use helenus_sstable::deletion_time::INVALID_LOCAL_S;
use helenus_sstable::index_bti::DeletionTimeBytes;

/// Longest serialised partition key: SSTables store its length in two bytes.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Why something cannot be stored.
pub(crate) type Problem = &'static str;

const DAMAGED: Problem = "its bytes are not those of a change";

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        refused.0
    }
}

/// A `Problem` that can be made from `Damaged`.
struct Refused(Problem);

impl From<Damaged> for Refused {
    fn from(_: Damaged) -> Refused {
        Refused(DAMAGED)
    }
}

type Checked = Result<(), Refused>;

/// The range of times in the checked changes, as the memtable keeps it for its content. Only a check makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeRange {
    /// Smallest and greatest write timestamp, microseconds; `i64::MAX` and `i64::MIN` if there is none.
    pub(crate) timestamp_us_min: i64,
    pub(crate) timestamp_us_max: i64,
    /// Smallest local deletion time, seconds; `NO_EXPIRY` if there is none.
    pub(crate) local_deletion_s_min: i64,
    /// Smallest TTL, seconds; `i32::MAX` if there is none.
    pub(crate) ttl_s_min: i32,
}

/// Checks all updates of one mutation, including those of the hidden tables of indexes.
pub(crate) fn check<'a>(
    updates: impl Iterator<Item = &'a PartitionUpdate>,
) -> Result<TimeRange, (&'a PartitionUpdate, Problem)> {
    let mut extent = TimeRange::nothing();
    for update in updates {
        let checked = extent.update(&update.table, &update.key, &update.changes);
        checked.map_err(|refused| (update, refused.0))?;
    }
    Ok(extent)
}

/// Checks the changes of one partition.
pub(crate) fn check_changes(table: &Table, key: &[u8], changes: &Changes) -> Result<TimeRange, Problem> {
    let mut extent = TimeRange::nothing();
    extent.update(table, key, changes)?;
    Ok(extent)
}

impl TimeRange {
    fn nothing() -> TimeRange {
        TimeRange {
            timestamp_us_min: i64::MAX,
            timestamp_us_max: i64::MIN,
            local_deletion_s_min: NO_EXPIRY,
            ttl_s_min: i32::MAX,
        }
    }

    fn update(&mut self, table: &Table, key: &[u8], changes: &Changes) -> Checked {
        if key.len() > KEY_BYTES_MAX {
            return Err(Refused("a partition key is at most 65535 bytes"));
        }
        let rule = CheckedTable { table, shapes: table.cell_shapes() };
        for change in changes.iter() {
            match change? {
                Change::Row(bytes) => rule.row(bytes, false, self)?,
                Change::StaticRow(bytes) => rule.row(bytes, true, self)?,
                Change::PartitionDeletion(deletion) => {
                    if DeletionTimeBytes::new(deletion).is_none() {
                        return Err(Refused(
                            "the deletion of a partition cannot have a timestamp below 0 or a time after 2106",
                        ));
                    }
                    self.deletion(deletion)?;
                }
                Change::RangeDeletion { start, end, deletion } => {
                    if deletion.is_live() {
                        return Err(Refused("the deletion of a range of rows has no time"));
                    }
                    rule.bound(&start)?;
                    rule.bound(&end)?;
                    self.deletion(deletion)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn timestamp(&mut self, timestamp_us: i64) {
        self.timestamp_us_min = self.timestamp_us_min.min(timestamp_us);
        self.timestamp_us_max = self.timestamp_us_max.max(timestamp_us);
    }

    fn deletion(&mut self, deletion: DeletionTime) -> Checked {
        if deletion.is_live() {
            return Ok(());
        }
        self.timestamp(deletion.timestamp_us);
        self.local(deletion.local_s)
    }

    #[inline(always)]
    fn liveness(&mut self, liveness: Liveness) -> Checked {
        if liveness.is_none() {
            return Ok(());
        }
        self.timestamp(liveness.timestamp_us);
        match (liveness.ttl_s, liveness.expires_s) {
            (0, NO_EXPIRY) => Ok(()),
            (0, _) => Err(Refused("a row expires without a time to live")),
            (ttl_s, expires_s) => self.expiry(ttl_s, expires_s),
        }
    }

    #[inline(always)]
    fn cell(&mut self, cell: &Cell) -> Checked {
        self.timestamp(cell.timestamp_us);
        match (cell.ttl_s, cell.local_deletion_s) {
            (0, NO_EXPIRY) => Ok(()),
            (0, local_s) => self.local(local_s),
            (ttl_s, expires_s) => self.expiry(ttl_s, expires_s),
        }
    }

    fn expiry(&mut self, ttl_s: i32, expires_s: i64) -> Checked {
        if ttl_s < 0 || ttl_s != EXPIRED_LIVENESS_TTL && expires_s < i64::from(ttl_s) {
            return Err(Refused("a time to live below 0, or longer than until its end"));
        }
        self.ttl_s_min = self.ttl_s_min.min(ttl_s);
        self.local(expires_s)
    }

    /// Adds a time of deletion or expiry, seconds.
    fn local(&mut self, local_s: i64) -> Checked {
        if !(0..=INVALID_LOCAL_S).contains(&local_s) {
            return Err(Refused("a time of deletion or expiry lies before 1970 or after 2106"));
        }
        self.local_deletion_s_min = self.local_deletion_s_min.min(local_s);
        Ok(())
    }
}

/// The table that the changes are checked against.
struct CheckedTable<'a> {
    table: &'a Table,
    shapes: &'a CellShapes,
}

impl CheckedTable<'_> {
    fn row(&self, bytes: &[u8], is_static: bool, extent: &mut TimeRange) -> Checked {
        let mut row = RowReader::new(bytes);
        if !is_static {
            for (position, shape) in self.shapes.clustering.iter().enumerate() {
                let value = row.clustering_value()?;
                self.clustering(position, *shape, value.get(bytes))?;
            }
        }
        let head = row.head()?;
        extent.liveness(head.liveness)?;
        extent.deletion(head.deletion)?;
        let mut last = None;
        for _ in 0..head.complex_deletions {
            let (column, deletion) = row.complex_deletion()?;
            if !self.shape(column, is_static)?.is_multi_cell || last.is_some_and(|last| last >= column) {
                return Err(Refused("a collection is deleted that is none, or twice"));
            }
            last = Some(column);
            extent.deletion(deletion)?;
        }
        row.begin_cells()?;
        let mut last: Option<ColumnId> = None;
        while let Some(cell) = row.next_cell()? {
            let shape = self.shape(cell.column, is_static)?;
            if last.is_some_and(|last| last > cell.column || last == cell.column && !shape.is_multi_cell) {
                return Err(Refused(
                    "cells are not in the order of their columns, or a column has two values",
                ));
            }
            last = Some(cell.column);
            check_cell(shape, &cell)?;
            extent.cell(&cell)?;
        }
        Ok(())
    }

    fn bound(&self, bound: &RangeBound<'_>) -> Checked {
        if bound.count > self.shapes.clustering.len() {
            return Err(Refused(
                "the bound of a range has more values than the table has clustering columns",
            ));
        }
        let mut values = bound.values().zip(&self.shapes.clustering).enumerate();
        values.try_for_each(|(position, (value, shape))| self.clustering(position, *shape, value))
    }

    #[inline(always)]
    fn clustering(&self, position: usize, shape: ClusteringShape, value: Option<&[u8]>) -> Checked {
        let Some(value) = value else { return Ok(()) };
        if !has_length(value.len(), shape.fixed_bytes) {
            return Err(Refused("a clustering value has another length than its type"));
        }
        if shape.is_always_ordered { Ok(()) } else { self.order(position, value) }
    }

    /// Checks a value of a type for which some byte strings have no position in the clustering order.
    fn order(&self, position: usize, value: &[u8]) -> Checked {
        let Some(column) = self.table.clustering.get(position) else { return Ok(()) };
        match component((&column.ty, column.reversed), Some(value), &mut Vec::new()) {
            Ok(()) => Ok(()),
            Err(_) => Err(Refused("a clustering value is none of its type")),
        }
    }

    #[inline(always)]
    fn shape(&self, column: ColumnId, is_static: bool) -> Result<CellShape, Refused> {
        match self.shapes.column(column) {
            Some(shape) if shape.is_static == is_static => Ok(shape),
            Some(_) => Err(Refused("a static column is written in a row, or another in the static row")),
            None => Err(Refused("a column is written that the table does not have")),
        }
    }
}

/// Checks a cell's path and the length of its value. The cells of a multi-cell column differ by their paths. Their
/// order is the order of the path's type: statements write them so, and the merge of rows relies on it.
#[inline(always)]
fn check_cell(shape: CellShape, cell: &Cell) -> Checked {
    if cell.path.is_null() == shape.is_multi_cell {
        return Err(Refused("a cell of a collection without a path, or of another column with one"));
    }
    if !has_length(cell.value.len as usize, shape.fixed_bytes) {
        return Err(Refused("a value has another length than its type"));
    }
    Ok(())
}

/// Whether a value has the length of its type. An empty value is valid for every type.
#[inline(always)]
fn has_length(bytes: usize, fixed: Option<u32>) -> bool {
    fixed.is_none_or(|fixed| bytes == fixed as usize || bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::cell::Span;
    use helenus_model::schema::{Column, ColumnKind, TableId};
    use helenus_model::types::CqlType;
    use std::sync::Arc;
    use uuid::Uuid;

    fn table() -> Table {
        let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: false };
        let columns = [
            Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
            Column::new("c", ColumnKind::Clustering, CqlType::Int),
            Column::new("s", ColumnKind::Static, CqlType::Text),
            Column::new("n", ColumnKind::Regular, CqlType::Int),
            Column::new("m", ColumnKind::Regular, map),
        ];
        Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns)
    }

    fn is_sound(changes: Changes) -> bool {
        check_changes(&table(), b"k", &changes).is_ok()
    }

    type Written<'a> = (&'a str, Option<&'a [u8]>, &'a [u8]);

    /// An insertion of cells: column, path, value.
    fn row(clustering: &[u8], cells: &[Written<'_>]) -> Changes {
        let mut changes = Changes::default();
        let head = (Liveness::at(1), DeletionTime::LIVE);
        changes.row([Some(clustering)].into_iter(), head, &[], |row| {
            for (name, path, value) in cells {
                let column = table().column(name).unwrap().id;
                let (span, local_deletion_s) = (Span::NULL, NO_EXPIRY);
                let cell =
                    Cell { column, ttl_s: 0, timestamp_us: 1, local_deletion_s, path: span, value: span };
                row.cell(&cell, *path, value);
            }
        });
        changes
    }

    #[test]
    fn rows_that_a_table_cannot_keep_are_told_from_those_it_can() {
        let c = 7_i32.to_be_bytes();
        let mut cells: Vec<Written<'_>> =
            vec![("n", None, &c), ("m", Some(&[0, 0, 0, 1]), &c), ("m", Some(&[0, 0, 0, 2]), &c)];
        cells.sort_by_key(|(name, ..)| table().column(name).unwrap().id);
        assert!(is_sound(row(&c, &cells)));
        assert!(is_sound(row(&c, &[("n", None, b"")])), "a deleted cell has no value");
        assert!(!is_sound(row(&c, &[("n", None, b"abc")])), "three bytes are no int");
        assert!(!is_sound(row(b"abc", &[])), "neither in a key");
        assert!(!is_sound(row(&c, &[("n", Some(b"x"), &c)])), "a path where there is one value");
        assert!(!is_sound(row(&c, &[("m", None, &c)])), "no path where there are several");
        assert!(!is_sound(row(&c, &[("n", None, &c), ("n", None, &c)])), "two values of one");
        assert!(!is_sound(row(&c, &[("s", None, b"x")])), "a static column in a row");
    }

    #[test]
    fn deletions_that_a_table_cannot_keep_are_told_from_those_it_can() {
        let range = |deletion, bound: &[Option<&[u8]>]| {
            let mut changes = Changes::default();
            changes.delete_range((bound, true), (bound, false), deletion);
            changes
        };
        let (c, deletion) = (7_i32.to_be_bytes(), DeletionTime { timestamp_us: 1, local_s: 1 });
        assert!(is_sound(range(deletion, &[Some(&c)])));
        assert!(!is_sound(range(DeletionTime::LIVE, &[Some(&c)])), "a range that deletes nothing");
        assert!(!is_sound(range(deletion, &[Some(&c), Some(&c)])), "more values than clustering columns");
        let mut changes = Changes::default();
        changes.delete_partition(DeletionTime { timestamp_us: -1, local_s: 1 });
        assert!(!is_sound(changes), "no partition's deletion has a timestamp below 0");
    }
}
