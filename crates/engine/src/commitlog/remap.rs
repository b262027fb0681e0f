//! Column numbers of the last run, to those of this one.
//!
//! Numbers are stable within a process only. A segment describes, before a table's first record, which name each
//! number meant; replay turns them into today's. A column that is gone takes its cells with it, and one that was dropped
//! and made again those written before the drop.

use super::record::LoggedUpdate;
use helenus_model::cell::ColumnId;
use helenus_model::mutation::{Change, Changes};
use helenus_model::packed::{Damaged, unpack};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Table, TableId};
use std::collections::HashMap;

/// What the numbers in the log mean, as described so far.
#[derive(Default)]
pub(crate) struct Layouts {
    tables: HashMap<TableId, HashMap<ColumnId, String>>,
}

impl Layouts {
    /// Takes note of a description.
    pub(crate) fn note(&mut self, table: TableId, columns: &[(ColumnId, String)]) {
        self.tables.entry(table).or_default().extend(columns.iter().map(|(id, name)| (*id, name.clone())));
    }

    /// An update's changes with the numbers of `table`.
    pub(crate) fn renumber(&self, update: LoggedUpdate, table: &Table) -> Result<Changes, Damaged> {
        let empty = HashMap::new();
        let names = self.tables.get(&update.table).unwrap_or(&empty);
        let to = |old: ColumnId| {
            let name = names.get(&old)?;
            table.statics.iter().chain(&table.regulars).find(|c| *c.name == **name).map(|c| c.id)
        };
        let dropped_us: HashMap<ColumnId, i64> = table
            .dropped
            .values()
            .filter_map(|dropped| Some((table.column(&dropped.name)?.id, dropped.dropped_us)))
            .collect();
        let to = |old: ColumnId, timestamp_us: i64| {
            to(old).filter(|id| dropped_us.get(id).is_none_or(|dropped_us| timestamp_us > *dropped_us))
        };
        if dropped_us.is_empty() && names.keys().all(|old| to(*old, i64::MAX) == Some(*old)) {
            check(&update.changes, table)?;
            return Ok(update.changes);
        }
        let mut changes = Changes::default();
        let mut row = RowBuf::default();
        for change in update.changes.iter() {
            match change? {
                Change::PartitionDeletion(deletion) => changes.delete_partition(deletion),
                Change::RangeDeletion { start, end, deletion } => {
                    let (from, until): (Vec<_>, Vec<_>) = (start.values().collect(), end.values().collect());
                    changes.delete_range((&from, start.before), (&until, end.before), deletion);
                }
                Change::StaticRow(bytes) => {
                    unpack(bytes, 0, &mut row)?;
                    renumber_row(&mut row, &to);
                    let view = RowView { row: &row, data: bytes };
                    changes.static_row(&row.complex_deletions, |writer| write_cells(writer, view));
                }
                Change::Row(bytes) => {
                    unpack(bytes, table.clustering.len(), &mut row)?;
                    renumber_row(&mut row, &to);
                    let view = RowView { row: &row, data: bytes };
                    let clustering = row.clustering.iter().map(|value| value.get(bytes));
                    let head = (row.liveness, row.deletion);
                    changes.row(clustering, head, &row.complex_deletions, |writer| write_cells(writer, view));
                }
            }
        }
        Ok(changes)
    }
}

/// Refuses rows whose cells are not in order, which only a writer in error can have put behind a right checksum.
fn check(changes: &Changes, table: &Table) -> Result<(), Damaged> {
    let mut row = RowBuf::default();
    for change in changes.iter() {
        let (bytes, clustering) = match change? {
            Change::StaticRow(bytes) => (bytes, 0),
            Change::Row(bytes) => (bytes, table.clustering.len()),
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => continue,
        };
        unpack(bytes, clustering, &mut row)?;
        let column =
            |id: ColumnId| table.statics.iter().chain(&table.regulars).find(|column| column.id == id);
        let many = |id| column(id).is_some_and(|column| column.ty.is_multi_cell());
        let ordered =
            row.cells.is_sorted_by(|a, b| a.column < b.column || a.column == b.column && many(a.column));
        if !ordered {
            return Err(Damaged { offset: 0 });
        }
    }
    Ok(())
}

fn renumber_row(row: &mut RowBuf, to: &dyn Fn(ColumnId, i64) -> Option<ColumnId>) {
    row.cells.retain_mut(|cell| to(cell.column, cell.timestamp_us).map(|id| cell.column = id).is_some());
    row.cells.sort_by_key(|cell| cell.column);
    row.complex_deletions
        .retain_mut(|(column, deletion)| to(*column, deletion.timestamp_us).map(|id| *column = id).is_some());
    row.complex_deletions.sort_by_key(|(column, _)| *column);
}

fn write_cells(writer: &mut helenus_model::packed::RowWriter<'_>, row: RowView<'_>) {
    for cell in &row.row.cells {
        writer.cell(cell, cell.path.get(row.data), row.value(cell));
    }
}
