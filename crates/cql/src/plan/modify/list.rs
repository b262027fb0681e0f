//! Operations on a list that must be read first: by index, and by value (`Lists.SetterByIndex`, `Discarder`,
//! `DiscarderByIndex`).

use super::cells::Cells;
use super::operation::Action;
use crate::analysis::{Bound, Term};
use crate::budget::room_for_elements;
use crate::error::{CqlError, Result};
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::row::RowView;
use helenus_model::types::Elements;
use std::collections::{HashMap, HashSet};

/// Elements of a list that take about as long as a step of the statement's work.
pub(super) const LIST_ELEMENTS_A_STEP: usize = 64;

/// The list of one column as an operation sees it: the live cells of a row, without the `deleted` elements.
pub(super) struct PresentList<'a> {
    row: Option<RowView<'a>>,
    cells: &'a [Cell],
    now_s: i64,
}

impl<'a> PresentList<'a> {
    /// The list of this column in a row; empty if there is no row.
    pub(super) fn of(row: Option<RowView<'a>>, column: ColumnId, now_s: i64) -> PresentList<'a> {
        let cells = row.map_or(&[][..], |row| row.cells_of(column));
        PresentList { row, cells, now_s }
    }

    /// Number of its cells, deleted ones included.
    pub(super) fn cells_count(&self) -> usize {
        self.cells.len()
    }

    fn path(&self, cell: &Cell) -> &'a [u8] {
        self.row.map_or(&[], |row| row.path(cell))
    }

    /// Its elements, each with its index among all cells of the column.
    fn elements<'d>(
        &self,
        deleted: &'d DeletedElements,
    ) -> impl Iterator<Item = (usize, &'a Cell)> + use<'a, 'd> {
        let (cells, now_s) = (self.cells, self.now_s);
        let deleted = cells.first().and_then(|cell| deleted.0.get(&cell.column));
        let is_there = move |at: usize, cell: &Cell| {
            cell.is_live(now_s) && !deleted.is_some_and(|deleted| deleted.contains(at))
        };
        cells.iter().enumerate().filter(move |(at, cell)| is_there(*at, cell))
    }

    /// The element at an index, and its path; `attempt` says what it is wanted for.
    fn element_at(
        &self,
        index: &[u8],
        deleted: &DeletedElements,
        attempt: &str,
    ) -> Result<((usize, &'a Cell), &'a [u8])> {
        let index = index.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
        let found = usize::try_from(index).ok().and_then(|index| self.elements(deleted).nth(index));
        match found {
            Some(element) => Ok((element, self.path(element.1))),
            None => match self.elements(deleted).count() {
                0 => invalid(format!("Attempted to {attempt} a list which is null")),
                size => invalid(format!("List index {index} out of bound, list has size {size}")),
            },
        }
    }
}

/// The list elements that earlier operations of a statement have deleted, by column.
#[derive(Debug, Default)]
pub(super) struct DeletedElements(HashMap<ColumnId, Deleted>);

/// The deleted elements of one list.
#[derive(Debug, Default)]
struct Deleted {
    /// For each cell of the column whether it is deleted; cells beyond the end are not.
    cells: Vec<bool>,
    /// Numbers of the column's live cells in the order of their values. Built when a second operation discards values, so
    /// that many of them do not each walk the whole list.
    by_value: Vec<usize>,
    /// Number of operations so far that discarded values.
    discards: usize,
    /// The values that they discarded. No element has them any more.
    discarded: HashSet<Vec<u8>>,
}

impl Deleted {
    fn contains(&self, at: usize) -> bool {
        self.cells.get(at).is_some_and(|is_deleted| *is_deleted)
    }

    /// Notes the deletion of an element, unless the element is newer than the deletion.
    fn add(&mut self, (at, cell): (usize, &Cell), deletion_us: i64) {
        if deletion_us >= cell.timestamp_us {
            self.cells.resize(self.cells.len().max(at + 1), false);
            self.cells[at] = true;
        }
    }
}

impl DeletedElements {
    fn add(&mut self, element: (usize, &Cell), deletion_us: i64) {
        self.0.entry(element.1.column).or_default().add(element, deletion_us);
    }
}

/// Deletes the elements of a list that have one of these values (`Lists.Discarder`).
///
/// `deleted` belongs to this row and column for as long as the statement does not change the list in another way.
///
/// # Errors
/// Those of a bound value; `Work::steps`.
pub(super) fn discard_values(
    values: &Term,
    (row, deleted): (Option<RowView<'_>>, &mut DeletedElements),
    cells: &mut Cells<'_, '_, '_>,
) -> Result<()> {
    let context = cells.context;
    let work = context.bindings.calls.work;
    work.steps(1)?;
    let Bound::Bytes(values) = values.bind(&context.bindings)? else { return Ok(()) };
    room_for_elements(&values)?;
    let Some(row) = row else { return Ok(()) };
    let list = row.cells_of(cells.column);
    let deleted = deleted.0.entry(cells.column).or_default();
    deleted.discards += 1;
    let mut found: Vec<usize> = Vec::new();
    if deleted.discards == 1 {
        work.steps(list.len() / LIST_ELEMENTS_A_STEP)?;
        let values: HashSet<&[u8]> = Elements::of_list(&values).flatten().collect();
        deleted.discarded.extend(values.iter().map(|value| value.to_vec()));
        let only = (values.len() == 1).then(|| values.iter().next().copied()).flatten();
        let is_one = |value: &[u8]| only.map_or_else(|| values.contains(value), |only| only == value);
        let is_found = |cell: &Cell| cell.is_live(context.now_s) && is_one(row.value(cell));
        found.extend(list.iter().enumerate().filter(|(_, cell)| is_found(cell)).map(|(at, _)| at));
    } else {
        if deleted.discards == 2 {
            work.steps(list.len())?;
            deleted.by_value = (0..list.len()).filter(|at| list[*at].is_live(context.now_s)).collect();
            deleted.by_value.sort_by_key(|at| row.value(&list[*at]));
        }
        let by_value = &deleted.by_value;
        for value in Elements::of_list(&values).flatten() {
            work.steps(1)?;
            if !deleted.discarded.insert(value.to_vec()) {
                continue;
            }
            let first = by_value.partition_point(|at| row.value(&list[*at]) < value);
            let equal = by_value[first..].iter().take_while(|at| row.value(&list[**at]) == value);
            found.extend(equal);
        }
        found.sort_unstable();
        found.dedup();
    }
    cells.room_for(found.len(), 0)?;
    for at in found {
        if !deleted.contains(at) {
            cells.tombstone(Some(row.path(&list[at])));
            deleted.add((at, &list[at]), context.timestamp_us);
        }
    }
    Ok(())
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
        Action::DeleteIndex(index) => match index.bind(&cells.context.bindings)? {
            Bound::Null => invalid("Invalid null value for list index".into()),
            Bound::Unset => Ok(()),
            Bound::Bytes(index) => {
                let element = list.element_at(&index, deleted, "delete an element from")?;
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
    let element = list.element_at(&index, deleted, "set an element on")?;
    match value {
        Bound::Bytes(value) => {
            cells.room_for(1, value.len())?;
            cells.live(Some(element.1), &value);
        }
        Bound::Null => {
            cells.tombstone(Some(element.1));
            deleted.add(element.0, cells.context.timestamp_us);
        }
        Bound::Unset => {}
    }
    Ok(())
}
