//! Operations on a list that must be read first: by index, and by value (`Lists.SetterByIndex`, `Discarder`,
//! `DiscarderByIndex`).

use super::cells::Cells;
use super::operation::Action;
use crate::analysis::{Bound, Term};
use crate::error::{CqlError, Result};
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::row::RowView;
use helenus_model::types::Elements;
use std::collections::{HashMap, HashSet};

/// The live cells of a list as it was read, in list order.
pub(super) struct PresentList<'a> {
    row: Option<RowView<'a>>,
    /// Each with its index among all cells of the column.
    cells: Vec<(usize, &'a Cell)>,
}

impl<'a> PresentList<'a> {
    /// The list of this column in a row, without its `deleted` elements; empty if there is no row.
    pub(super) fn of(
        row: Option<RowView<'a>>,
        column: ColumnId,
        now_s: i64,
        deleted: &DeletedElements,
    ) -> PresentList<'a> {
        let cells = row.map_or(&[][..], |row| row.cells_of(column));
        let deleted = deleted.0.get(&column);
        let is_there = |at: usize, cell: &Cell| {
            cell.is_live(now_s)
                && !deleted.is_some_and(|deleted| deleted.get(at).is_some_and(|is_deleted| *is_deleted))
        };
        let cells = cells.iter().enumerate().filter(|(at, cell)| is_there(*at, cell)).collect();
        PresentList { row, cells }
    }

    /// Number of its elements.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    fn path(&self, cell: &Cell) -> &'a [u8] {
        self.row.map_or(&[], |row| row.path(cell))
    }

    fn value(&self, cell: &Cell) -> &'a [u8] {
        self.row.map_or(&[], |row| row.value(cell))
    }

    /// The element at an index, and its path; `attempt` names the operation in errors.
    fn element_at(&self, index: &[u8], attempt: &str) -> Result<((usize, &'a Cell), &'a [u8])> {
        let index = index.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
        let size = self.cells.len();
        if size == 0 {
            return invalid(format!("Attempted to {attempt} a list which is null"));
        }
        let found = usize::try_from(index).ok().and_then(|index| self.cells.get(index));
        match found {
            Some(cell) => Ok((*cell, self.path(cell.1))),
            None => invalid(format!("List index {index} out of bound, list has size {size}")),
        }
    }
}

/// The list elements that earlier operations of a statement deleted: for each column, whether each of its cells is
/// deleted.
#[derive(Debug, Default)]
pub(super) struct DeletedElements(HashMap<ColumnId, Vec<bool>>);

impl DeletedElements {
    /// Notes the deletion of an element, unless the element is newer than the deletion.
    fn add(&mut self, (at, cell): (usize, &Cell), deletion_us: i64) {
        if deletion_us >= cell.timestamp_us {
            let cells = self.0.entry(cell.column).or_default();
            cells.resize(cells.len().max(at + 1), false);
            cells[at] = true;
        }
    }
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// Writes the cells of an operation on a list that was read.
pub(super) fn change_list(
    action: &Action,
    (list, deleted): (&PresentList<'_>, &mut DeletedElements),
    cells: &mut Cells<'_, '_, '_>,
) -> Result<()> {
    match action {
        Action::SetIndex(index, value) => set_at((index, value), (list, deleted), cells),
        Action::DiscardValues(values) => discard(values, list, cells),
        Action::DeleteIndex(index) => match index.bind(&cells.context.bindings)? {
            Bound::Null => invalid("Invalid null value for list index".into()),
            Bound::Unset => Ok(()),
            Bound::Bytes(index) => {
                let element = list.element_at(&index, "delete an element from")?;
                cells.tombstone(Some(element.1));
                deleted.add(element.0, cells.context.timestamp_us);
                Ok(())
            }
        },
        _ => Ok(()),
    }
}

fn set_at(
    (index, value): (&Term, &Term),
    (list, deleted): (&PresentList<'_>, &mut DeletedElements),
    cells: &mut Cells<'_, '_, '_>,
) -> Result<()> {
    let bindings = &cells.context.bindings;
    let (index, value) = (index.bind(bindings)?, value.bind(bindings)?);
    let index = match index {
        Bound::Null => return invalid("Invalid null value for list index".into()),
        Bound::Unset => return invalid("Invalid unset value for list index".into()),
        Bound::Bytes(index) => index,
    };
    let element = list.element_at(&index, "set an element on")?;
    match value {
        Bound::Bytes(value) => cells.live(Some(element.1), &value),
        Bound::Null => {
            cells.tombstone(Some(element.1));
            deleted.add(element.0, cells.context.timestamp_us);
        }
        Bound::Unset => {}
    }
    Ok(())
}

fn discard(values: &Term, list: &PresentList<'_>, cells: &mut Cells<'_, '_, '_>) -> Result<()> {
    let Bound::Bytes(values) = values.bind(&cells.context.bindings)? else { return Ok(()) };
    let values: HashSet<&[u8]> = Elements::of_list(&values).flatten().collect();
    for (_, cell) in &list.cells {
        if values.contains(list.value(cell)) {
            cells.tombstone(Some(list.path(cell)));
        }
    }
    Ok(())
}
