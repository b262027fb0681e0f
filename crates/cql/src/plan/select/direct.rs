//! The fast path for selections of plain columns: no function, no collection, no JSON. Most SELECTs are of this kind.
//! Their rows are copied to the answer a few cells at a time, without a decision for each column.

use super::row::RowAt;
use crate::analysis::selection::{RowValue, Selected, Selection, Shape, Source};
use crate::answer::RowsOut;
use helenus_model::cell::ColumnId;
use helenus_model::row::RowView;
use helenus_model::row_batch::{BatchColumn, RowBatch};
use helenus_model::schema::Table;
use std::collections::HashMap;

/// The output columns, if each is a plain stored value.
#[derive(Debug)]
pub(super) struct DirectColumns {
    columns: Vec<DirectColumn>,
    copies: usize,
}

/// The bytes of a cell's length in an answer.
const LENGTH_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DirectColumn {
    Key(usize),
    Clustering(usize),
    /// A column of one cell, and the position of the cell in a row that has all columns.
    Cell(ColumnId, usize),
    Static(ColumnId),
}

/// The number of cells copied to the answer at once.
const CELLS: usize = 8;

/// The most columns that can be taken from row batches.
const RUN_COLUMNS: usize = 16;

impl DirectColumns {
    /// `None` if any part of the selection has to be computed.
    pub(super) fn of(selection: &Selection, table: &Table) -> Option<DirectColumns> {
        if selection.json.is_some() || selection.combines_rows() {
            return None;
        }
        let mut regulars: Vec<ColumnId> = table.regulars.iter().map(|column| column.id).collect();
        regulars.sort_unstable();
        let column = |selected: &Selected| {
            let Selected::Leaf(RowValue::Column(source)) = selected else { return None };
            Some(match *source {
                Source::Key(index) => DirectColumn::Key(index),
                Source::Clustering(index) => DirectColumn::Clustering(index),
                Source::Cell { id, is_static: true, shape: Shape::Simple } => DirectColumn::Static(id),
                Source::Cell { id, is_static: false, shape: Shape::Simple } => {
                    DirectColumn::Cell(id, regulars.partition_point(|other| *other < id))
                }
                Source::Cell { .. } => return None,
            })
        };
        let columns = selection.columns.iter().map(column).collect::<Option<Vec<_>>>()?;
        let mut times = HashMap::new();
        columns.iter().for_each(|column| *times.entry(*column).or_insert(0) += 1);
        let copies = times.into_values().max().unwrap_or(1);
        Some(DirectColumns { columns, copies })
    }

    /// The greatest number of times that one column is selected; at least 1.
    #[inline]
    pub(super) fn copies(&self) -> usize {
        self.copies
    }

    /// The bytes of the values of a row's answer.
    #[cold]
    pub(super) fn row_bytes<'a>(&self, row: RowView<'a>, at: impl Fn() -> RowAt<'a>, now_s: i64) -> usize {
        let at = at();
        let bytes = |column: &DirectColumn| {
            let value = match *column {
                DirectColumn::Cell(id, place) => {
                    row.cell_near(id, place).filter(|cell| cell.is_live(now_s)).map(|cell| row.value(cell))
                }
                DirectColumn::Clustering(index) => row.clustering(index),
                DirectColumn::Key(index) => at.key_part(index),
                DirectColumn::Static(id) => at.static_value(id),
            };
            LENGTH_BYTES + value.map_or(0, <[u8]>::len)
        };
        self.columns.iter().map(bytes).sum()
    }

    /// The bytes of the values of the answer for a row batch.
    #[cold]
    pub(super) fn batch_bytes(&self, batch: &RowBatch<'_>, at: &RowAt<'_>) -> usize {
        let columns = self.batch_columns(batch, at);
        let of_row = |column: &BatchColumn<'_>| match *column {
            BatchColumn::Fixed(value) => batch.len() * (LENGTH_BYTES + value.map_or(0, <[u8]>::len)),
            BatchColumn::Value(place) => {
                let values =
                    batch.rows().map(|row| row.get(place).map_or(0, |value| value.value.len as usize));
                values.map(|bytes| LENGTH_BYTES + bytes).sum()
            }
        };
        columns.iter().take(self.columns.len()).map(of_row).sum()
    }

    /// The regular and static columns among the output columns.
    pub(super) fn cells(&self) -> impl Iterator<Item = ColumnId> {
        self.columns.iter().filter_map(|column| match column {
            DirectColumn::Cell(id, _) | DirectColumn::Static(id) => Some(*id),
            DirectColumn::Key(_) | DirectColumn::Clustering(_) => None,
        })
    }

    /// Whether row batches can be written.
    #[inline]
    pub(super) fn takes_batches(&self) -> bool {
        self.columns.len() <= RUN_COLUMNS
    }

    /// Writes the rows of a row batch of the partition of `at`. There are at most `RUN_COLUMNS` columns.
    pub(super) fn write_batch(&self, batch: &RowBatch<'_>, at: &RowAt<'_>, out: &mut dyn RowsOut) {
        let columns = self.batch_columns(batch, at);
        out.rows(batch, columns.get(..self.columns.len()).unwrap_or(&columns));
    }

    #[inline]
    fn batch_columns<'a>(&self, batch: &RowBatch<'_>, at: &RowAt<'a>) -> [BatchColumn<'a>; RUN_COLUMNS] {
        let mut columns = [BatchColumn::Fixed(None); RUN_COLUMNS];
        for (taken, column) in columns.iter_mut().zip(&self.columns) {
            *taken = match *column {
                DirectColumn::Clustering(index) => BatchColumn::Value(index),
                DirectColumn::Cell(id, near) => {
                    batch.value_index_of(id, near).map_or(BatchColumn::Fixed(None), BatchColumn::Value)
                }
                DirectColumn::Key(index) => BatchColumn::Fixed(at.key_part(index)),
                DirectColumn::Static(id) => BatchColumn::Fixed(at.static_value(id)),
            };
        }
        columns
    }

    /// Writes a row. `at` is called only for columns of the partition.
    #[inline]
    pub(super) fn write<'a>(
        &self,
        row: RowView<'a>,
        at: impl Fn() -> RowAt<'a>,
        now_s: i64,
        out: &mut dyn RowsOut,
    ) {
        let mut cells = [None; CELLS];
        for columns in self.columns.chunks(CELLS) {
            for (cell, column) in cells.iter_mut().zip(columns) {
                *cell = match *column {
                    DirectColumn::Cell(id, place) => row
                        .cell_near(id, place)
                        .filter(|cell| cell.is_live(now_s))
                        .map(|cell| row.value(cell)),
                    DirectColumn::Clustering(index) => row.clustering(index),
                    DirectColumn::Key(index) => at().key_part(index),
                    DirectColumn::Static(id) => at().static_value(id),
                };
            }
            out.cells(cells.get(..columns.len()).unwrap_or(&cells));
        }
        out.end_row();
    }
}
