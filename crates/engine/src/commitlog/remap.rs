//! Translates column numbers of the last run to those of this one.
//!
//! Numbers are stable within a process only. A segment describes, before a table's first record, the name of each
//! column number; replay translates them to the present numbers. Cells of a column that no longer exists are dropped.
//! If a column was dropped and added again, cells written before the drop are dropped.

use super::record::LoggedUpdate;
use crate::check_mutation::{Problem, TimeRange, check_changes};
use helenus_model::cell::ColumnId;
use helenus_model::mutation::{Change, Changes};
use helenus_model::packed::{Damaged, unpack};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Table, TableId};
use std::collections::HashMap;
use std::sync::Arc;

const DAMAGED: Problem = "its bytes are not those of a change";

/// The meaning of column numbers in the log, as described so far.
#[derive(Default)]
pub(crate) struct Layouts {
    tables: HashMap<TableId, Described>,
}

/// The columns of a table, in the log and now.
#[derive(Default)]
struct Described {
    names: HashMap<ColumnId, String>,
    present: Option<Present>,
}

/// Data about the present table, looked up once and not for each record.
struct Present {
    table: Arc<Table>,
    /// The present number of each logged number, and the time when the column of that name was last dropped.
    numbers: HashMap<ColumnId, (ColumnId, Option<i64>)>,
    /// Whether every number still has its old meaning.
    is_same: bool,
}

impl Present {
    fn new(table: &Arc<Table>, names: &HashMap<ColumnId, String>) -> Present {
        let now = |name: &str| {
            let column = table.statics.iter().chain(&table.regulars).find(|column| *column.name == *name)?;
            Some((column.id, table.dropped.get(name).map(|dropped| dropped.dropped_us)))
        };
        let numbers: HashMap<_, _> =
            names.iter().filter_map(|(old, name)| Some((*old, now(name)?))).collect();
        let is_same = names.keys().all(|old| numbers.get(old) == Some(&(*old, None)));
        Present { table: table.clone(), numbers, is_same }
    }

    /// The present number of a cell's column; `None` if the column is gone or the cell was written before a drop.
    fn number(&self, old: ColumnId, timestamp_us: i64) -> Option<ColumnId> {
        let (id, dropped_us) = self.numbers.get(&old)?;
        dropped_us.is_none_or(|dropped_us| timestamp_us > dropped_us).then_some(*id)
    }
}

impl Layouts {
    /// Records a layout description.
    pub(crate) fn note(&mut self, table: TableId, columns: &[(ColumnId, String)]) {
        let described = self.tables.entry(table).or_default();
        described.names.extend(columns.iter().map(|(id, name)| (*id, name.clone())));
        described.present = None;
    }

    /// A copy of an update's changes with the column numbers of `table`, checked as a write is.
    ///
    /// # Errors
    /// The reason why they cannot be stored.
    pub(crate) fn renumber(
        &mut self,
        update: &LoggedUpdate<'_>,
        table: &Arc<Table>,
    ) -> Result<(Changes, TimeRange), Problem> {
        let Described { names, present } = self.tables.entry(update.table).or_default();
        let present = match present {
            Some(known) if Arc::ptr_eq(&known.table, table) => known,
            outdated => outdated.insert(Present::new(table, names)),
        };
        let mut changes = Changes::from_bytes(update.changes.to_vec());
        if !present.is_same {
            changes = renumbered(&changes, present).map_err(|_| DAMAGED)?;
        }
        let extent = check_changes(table, update.key, &changes)?;
        Ok((changes, extent))
    }
}

/// The changes without the cells of columns that a table does not have: those of a statement that was bound before the
/// columns were dropped.
pub(crate) fn of_present_columns(changes: &Changes, table: &Arc<Table>) -> Result<Changes, Problem> {
    let columns = table.statics.iter().chain(&table.regulars);
    let numbers = columns.map(|column| (column.id, (column.id, None))).collect();
    let present = Present { table: table.clone(), numbers, is_same: false };
    renumbered(changes, &present).map_err(|_| DAMAGED)
}

/// The changes with the present column numbers.
fn renumbered(logged: &Changes, present: &Present) -> Result<Changes, Damaged> {
    let clustering = present.table.clustering.len();
    let mut changes = Changes::default();
    let mut row = RowBuf::default();
    for change in logged.iter() {
        match change? {
            Change::PartitionDeletion(deletion) => changes.delete_partition(deletion),
            Change::RangeDeletion { start, end, deletion } => {
                let (from, until): (Vec<_>, Vec<_>) = (start.values().collect(), end.values().collect());
                changes.delete_range((&from, start.before), (&until, end.before), deletion);
            }
            Change::StaticRow(bytes) => {
                unpack(bytes, 0, &mut row)?;
                renumber_row(&mut row, present);
                let view = RowView { row: &row, data: bytes };
                changes.static_row(&row.complex_deletions, |writer| write_cells(writer, view));
            }
            Change::Row(bytes) => {
                unpack(bytes, clustering, &mut row)?;
                renumber_row(&mut row, present);
                let view = RowView { row: &row, data: bytes };
                let clustering = row.clustering.iter().map(|value| value.get(bytes));
                let head = (row.liveness, row.deletion);
                changes.row(clustering, head, &row.complex_deletions, |writer| write_cells(writer, view));
            }
        }
    }
    Ok(changes)
}

fn renumber_row(row: &mut RowBuf, present: &Present) {
    row.cells.retain_mut(|cell| {
        present.number(cell.column, cell.timestamp_us).map(|id| cell.column = id).is_some()
    });
    row.cells.sort_by_key(|cell| cell.column);
    row.complex_deletions.retain_mut(|(column, deletion)| {
        present.number(*column, deletion.timestamp_us).map(|id| *column = id).is_some()
    });
    row.complex_deletions.sort_by_key(|(column, _)| *column);
}

fn write_cells(writer: &mut helenus_model::packed::RowWriter<'_>, row: RowView<'_>) {
    for cell in &row.row.cells {
        writer.cell(cell, cell.path.get(row.data), row.value(cell));
    }
}
