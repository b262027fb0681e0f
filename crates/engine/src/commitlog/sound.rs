//! Whether what a record says can be kept at all.
//!
//! A record with a right checksum and wrong content comes from a writer in error, never from a disk. Once in a memtable it would
//! stop each flush of its table: the writer of SSTables asserts what is looked at here. Called by `remap`, once for each update that
//! is replayed: 1,214 instructions where that is a row of five columns, most of them for unpacking it.

use helenus_model::cell::{Cell, ColumnId};
use helenus_model::mutation::{Change, Changes, RangeBound};
use helenus_model::packed::{Damaged, unpack};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use helenus_sstable::index_bti::DeletionTimeBytes;

/// What cells of a column look like.
#[derive(Clone, Copy)]
struct Shape {
    is_static: bool,
    is_multi_cell: bool,
    /// Bytes of a value that is not empty.
    fixed: Option<usize>,
}

/// The columns of a table as replay looks at them.
pub(super) struct Shapes {
    /// By column number.
    columns: Vec<Option<Shape>>,
    /// Of clustering columns.
    clustering: Vec<Option<usize>>,
    /// The row looked at last, for its memory.
    row: RowBuf,
}

impl Shapes {
    pub(super) fn of(table: &Table) -> Shapes {
        let all = table.statics.iter().map(|column| (column, true));
        let all = all.chain(table.regulars.iter().map(|column| (column, false)));
        let mut columns: Vec<Option<Shape>> = Vec::new();
        for (column, is_static) in all {
            let at = usize::from(column.id.0);
            if columns.len() <= at {
                columns.resize(at + 1, None);
            }
            let is_multi_cell = column.ty.is_multi_cell();
            let fixed = if is_multi_cell { None } else { column.ty.fixed_length() };
            if let Some(place) = columns.get_mut(at) {
                *place = Some(Shape { is_static, is_multi_cell, fixed });
            }
        }
        let clustering = table.clustering.iter().map(|column| column.ty.fixed_length()).collect();
        Shapes { columns, clustering, row: RowBuf::default() }
    }

    /// Refuses an update that no SSTable could hold.
    pub(super) fn check(&mut self, key: &[u8], changes: &Changes) -> Result<(), Damaged> {
        let mut row = std::mem::take(&mut self.row);
        let checked = self.check_with(&mut row, key, changes);
        self.row = row;
        checked
    }

    fn check_with(&self, row: &mut RowBuf, key: &[u8], changes: &Changes) -> Result<(), Damaged> {
        let wrong = Damaged { offset: 0 };
        if key.len() > usize::from(u16::MAX) {
            return Err(wrong);
        }
        for change in changes.iter() {
            let is_sound = match change? {
                Change::PartitionDeletion(deletion) => DeletionTimeBytes::new(deletion).is_some(),
                Change::RangeDeletion { start, end, deletion } => {
                    !deletion.is_live() && self.is_bound(&start) && self.is_bound(&end)
                }
                Change::StaticRow(bytes) => {
                    unpack(bytes, 0, row)?;
                    self.is_row(RowView { row, data: bytes }, true)
                }
                Change::Row(bytes) => {
                    unpack(bytes, self.clustering.len(), row)?;
                    self.is_row(RowView { row, data: bytes }, false)
                }
            };
            if !is_sound {
                return Err(wrong);
            }
        }
        Ok(())
    }

    fn is_bound(&self, bound: &RangeBound<'_>) -> bool {
        let mut values = bound.values().zip(&self.clustering);
        // One that cannot be read ends the values.
        bound.count <= self.clustering.len()
            && bound.values().count() == bound.count
            && values.all(|(value, fixed)| fits(value, *fixed))
    }

    fn is_row(&self, row: RowView<'_>, is_static: bool) -> bool {
        let clustering = row.row.clustering.iter().map(|value| value.get(row.data));
        clustering.zip(&self.clustering).all(|(value, fixed)| fits(value, *fixed))
            && self.are_deletions(row.row, is_static)
            && self.are_cells(row, is_static)
    }

    fn are_deletions(&self, row: &RowBuf, is_static: bool) -> bool {
        let of_column = |(column, _): &(ColumnId, _)| {
            self.shape(*column).is_some_and(|shape| shape.is_multi_cell && shape.is_static == is_static)
        };
        row.complex_deletions.iter().all(of_column)
            && row.complex_deletions.is_sorted_by(|(a, _), (b, _)| a < b)
    }

    /// Cells of one column, if it has several, are told apart by their paths; their order is that of the paths' type, which
    /// the merge of rows restores.
    fn are_cells(&self, row: RowView<'_>, is_static: bool) -> bool {
        let mut last: Option<ColumnId> = None;
        for cell in &row.row.cells {
            let Some(shape) = self.shape(cell.column) else { return false };
            let follows =
                last.is_none_or(|last| last < cell.column || last == cell.column && shape.is_multi_cell);
            if !follows || shape.is_static != is_static || !shape.takes(cell, row) {
                return false;
            }
            last = Some(cell.column);
        }
        true
    }

    fn shape(&self, column: ColumnId) -> Option<Shape> {
        self.columns.get(usize::from(column.0)).copied().flatten()
    }
}

impl Shape {
    fn takes(self, cell: &Cell, row: RowView<'_>) -> bool {
        self.is_multi_cell == cell.path.get(row.data).is_some() && fits(Some(row.value(cell)), self.fixed)
    }
}

/// Whether a value has the length of its type. None and empty ones have none.
fn fits(value: Option<&[u8]>, fixed: Option<usize>) -> bool {
    match (value, fixed) {
        (Some(value), Some(length)) => value.len() == length || value.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::cell::Span;
    use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
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
        Shapes::of(&table()).check(b"k", &changes).is_ok()
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
