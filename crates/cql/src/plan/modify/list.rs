//! Operations on a list that must be read first: by index, and by value (`Lists.SetterByIndex`, `Discarder`,
//! `DiscarderByIndex`).

use super::cells::Cells;
use super::operation::Action;
use crate::analysis::{Bound, Term};
use crate::error::{CqlError, Result};
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::row::RowView;
use helenus_model::types::Elements;
use std::collections::HashSet;

/// The list as it was read: its live cells, in the order of the list.
pub(super) struct PresentList<'a> {
    row: Option<RowView<'a>>,
    cells: Vec<&'a Cell>,
}

impl<'a> PresentList<'a> {
    /// The list of this column in a row; nothing of it if there is no row.
    pub(super) fn of(row: Option<RowView<'a>>, column: ColumnId, now_s: i64) -> PresentList<'a> {
        let cells = row.map_or(&[][..], |row| row.cells_of(column));
        PresentList { row, cells: cells.iter().filter(|cell| cell.is_live(now_s)).collect() }
    }

    fn path(&self, cell: &Cell) -> &'a [u8] {
        self.row.map_or(&[], |row| row.path(cell))
    }

    fn value(&self, cell: &Cell) -> &'a [u8] {
        self.row.map_or(&[], |row| row.value(cell))
    }

    /// The path of the element at an index; `attempt` says what it is wanted for.
    fn path_at(&self, index: &[u8], attempt: &str) -> Result<&'a [u8]> {
        let index = index.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
        let size = self.cells.len();
        if size == 0 {
            return invalid(format!("Attempted to {attempt} a list which is null"));
        }
        let found = usize::try_from(index).ok().and_then(|index| self.cells.get(index));
        match found {
            Some(cell) => Ok(self.path(cell)),
            None => invalid(format!("List index {index} out of bound, list has size {size}")),
        }
    }
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// Writes the cells of an operation on a list that was read.
pub(super) fn change_list(
    action: &Action,
    list: &PresentList<'_>,
    cells: &mut Cells<'_, '_, '_>,
) -> Result<()> {
    match action {
        Action::SetIndex(index, value) => set_at(index, value, list, cells),
        Action::DiscardValues(values) => discard(values, list, cells),
        Action::DeleteIndex(index) => match index.bind(&cells.context.bindings)? {
            Bound::Null => invalid("Invalid null value for list index".into()),
            Bound::Unset => Ok(()),
            Bound::Bytes(index) => {
                cells.tombstone(Some(list.path_at(&index, "delete an element from")?));
                Ok(())
            }
        },
        _ => Ok(()),
    }
}

fn set_at(index: &Term, value: &Term, list: &PresentList<'_>, cells: &mut Cells<'_, '_, '_>) -> Result<()> {
    let bindings = &cells.context.bindings;
    let (index, value) = (index.bind(bindings)?, value.bind(bindings)?);
    let index = match index {
        Bound::Null => return invalid("Invalid null value for list index".into()),
        Bound::Unset => return invalid("Invalid unset value for list index".into()),
        Bound::Bytes(index) => index,
    };
    let path = list.path_at(&index, "set an element on")?;
    match value {
        Bound::Bytes(value) => cells.live(Some(path), &value),
        Bound::Null => cells.tombstone(Some(path)),
        Bound::Unset => {}
    }
    Ok(())
}

fn discard(values: &Term, list: &PresentList<'_>, cells: &mut Cells<'_, '_, '_>) -> Result<()> {
    let Bound::Bytes(values) = values.bind(&cells.context.bindings)? else { return Ok(()) };
    let values: HashSet<&[u8]> = Elements::of_list(&values).flatten().collect();
    for cell in &list.cells {
        if values.contains(list.value(cell)) {
            cells.tombstone(Some(list.path(cell)));
        }
    }
    Ok(())
}
