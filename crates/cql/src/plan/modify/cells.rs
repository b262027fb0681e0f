//! Writes the cells of operations into a packed row.
//!
//! A row is written in rounds. A round has at most one operation on each column, because the cells of a row are ordered
//! by column and path. Statements that change a column twice (`SET m['a'] = 1, m['b'] = 2`) need several rounds; the
//! memtable merges them.

use super::add::sum;
use super::apply::WriteContext;
use super::list::{DeletedElements, LIST_ELEMENTS_A_STEP, PresentList, change_list, discard_values};
use super::operation::{Action, Direction, Operation};
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::{room_for, room_in};
use crate::error::{CqlError, Result};
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::packed::RowWriter;
use helenus_model::row::RowView;
use helenus_model::types::{CqlType, Elements, Fields, collection_size};
use std::borrow::Cow;

/// Bytes of a packed cell besides those of its value: its head, its times, and the path of a list's element.
const CELL_BYTES: usize = 64;

/// Splits operations, which are in column order, into rounds.
pub(super) fn rounds(operations: &[Operation]) -> impl Iterator<Item = &[Operation]> {
    let mut rest = operations;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let repeats = rest.windows(2).position(|pair| matches!(pair, [a, b] if a.column == b.column));
        let (round, after) = rest.split_at(repeats.map_or(rest.len(), |at| at + 1));
        rest = after;
        Some(round)
    })
}

/// Whether an operation changes nothing with these values.
pub(super) fn changes_nothing(operation: &Operation, bindings: &Bindings<'_>) -> Result<bool> {
    let is = |term: &Term, null_too: bool| {
        Ok(match term {
            Term::Marker(..) | Term::Null => match term.bind(bindings)? {
                Bound::Unset => true,
                Bound::Null => null_too,
                Bound::Bytes(_) => false,
            },
            _ => false,
        })
    };
    match &operation.action {
        Action::Set(term) | Action::Replace(term) | Action::SetField(_, term) => is(term, false),
        // An invalid key is rejected whatever the value.
        Action::PutEntry(key, term) => Ok(matches!(key.bind(bindings)?, Bound::Bytes(_)) && is(term, false)?),
        Action::Append(term) | Action::Prepend(term) | Action::Discard(term) => is(term, true),
        Action::Count(term, _) => is(term, false),
        Action::SetIndex(..) | Action::DiscardValues(_) | Action::DeleteIndex(_) | Action::Add(_) => {
            Ok(false)
        }
        Action::Delete | Action::DeleteElement(_) | Action::DeleteField(_) => Ok(false),
    }
}

/// The deletions of whole multi-cell columns that these operations make. A replacement writes a tombstone just older
/// than the new cells.
pub(super) fn complex_deletions(
    operations: &[Operation],
    context: &WriteContext<'_>,
) -> Result<Vec<(ColumnId, DeletionTime)>> {
    let mut deletions = Vec::new();
    for operation in operations {
        let timestamp_us = match &operation.action {
            Action::Replace(term) if !matches!(term.bind(&context.bindings)?, Bound::Unset) => {
                context.timestamp_us - 1
            }
            Action::Delete if operation.ty.is_multi_cell() => context.deletion_us,
            _ => continue,
        };
        deletions.push((operation.column, DeletionTime { timestamp_us, local_s: context.now_s }));
    }
    Ok(deletions)
}

/// Writes the cells of one operation. `present` is the row that was read, for operations that need it.
pub(super) fn write(
    operation: &Operation,
    (present, deleted): (Option<RowView<'_>>, &mut DeletedElements),
    context: &WriteContext<'_>,
    row: &mut RowWriter<'_>,
) -> Result<()> {
    if context.timestamp_us <= operation.dropped_us {
        return Ok(());
    }
    let mut cells = Cells { column: operation.column, context, row };
    let bindings = &context.bindings;
    match &operation.action {
        Action::Set(term) => match term.bind(bindings)? {
            Bound::Bytes(value) => {
                cells.room_for(1, value.len())?;
                cells.live(None, &value);
            }
            Bound::Null => cells.tombstone(None),
            Bound::Unset => {}
        },
        Action::Replace(term) | Action::Append(term) => {
            if let Bound::Bytes(value) = term.bind(bindings)? {
                cells.room_for_elements(&value)?;
                cells.elements(&operation.ty, &value);
            }
        }
        Action::Prepend(term) => {
            if let Bound::Bytes(value) = term.bind(bindings)? {
                cells.room_for_elements(&value)?;
                cells.prepend(&value);
            }
        }
        Action::PutEntry(key, value) => {
            let value = value.bind(bindings)?;
            let key = map_key(key, bindings)?;
            match value {
                Bound::Bytes(value) => {
                    cells.room_for(1, key.len() + value.len())?;
                    cells.live(Some(&key), &value);
                }
                Bound::Null => {
                    cells.room_for(1, key.len())?;
                    cells.tombstone(Some(&key));
                }
                Bound::Unset => {}
            }
        }
        Action::Discard(term) => {
            if let Bound::Bytes(value) = term.bind(bindings)? {
                cells.room_for_elements(&value)?;
                Elements::of_list(&value).flatten().for_each(|element| cells.tombstone(Some(element)));
            }
        }
        Action::SetField(path, term) => match term.bind(bindings)? {
            Bound::Bytes(value) => {
                cells.room_for(1, value.len())?;
                cells.live(Some(path), &value);
            }
            Bound::Null => cells.tombstone(Some(path)),
            Bound::Unset => {}
        },
        Action::DiscardValues(values) => discard_values(values, (present, deleted), &mut cells)?,
        Action::SetIndex(..) | Action::DeleteIndex(_) => {
            let list = PresentList::of(present, operation.column, context.now_s);
            bindings.calls.work.steps(1 + list.cells_count() / LIST_ELEMENTS_A_STEP)?;
            change_list(&operation.action, (&list, deleted), &mut cells)?;
        }
        Action::Add(term) => {
            let found = present.and_then(|row| {
                let cell = row.cells_of(operation.column).first()?;
                cell.is_live(context.now_s).then(|| row.value(cell))
            });
            match (found, term.bind(bindings)?) {
                (None, _) | (_, Bound::Unset) => {}
                (Some(_), Bound::Null) => return invalid("Invalid null value for increment"),
                (Some(found), Bound::Bytes(by)) => {
                    let bytes = 2 * (found.len() + by.len());
                    cells.room_for(1, bytes)?;
                    room_for(bytes)?;
                    cells.live(None, &sum(&operation.ty, found, &by)?);
                }
            }
        }
        Action::Count(term, direction) => match term.bind(bindings)? {
            Bound::Bytes(by) => cells.live(None, &count_of(&by, *direction)?.to_be_bytes()),
            Bound::Null => return invalid("Invalid null value for counter increment"),
            Bound::Unset => {}
        },
        // The deletion of a multi-cell column is already written in front of the cells.
        Action::Delete if operation.ty.is_multi_cell() => {}
        Action::Delete => cells.tombstone(None),
        Action::DeleteElement(term) => match (&operation.ty, term.bind(bindings)?) {
            (_, Bound::Bytes(value)) => {
                cells.room_for(1, value.len())?;
                cells.tombstone(Some(&value));
            }
            (CqlType::Map { .. }, Bound::Null) => return invalid("Invalid null map key"),
            (CqlType::Map { .. }, Bound::Unset) => return invalid("Invalid unset map key"),
            (_, Bound::Null) => return invalid("Invalid null set element"),
            (_, Bound::Unset) => {}
        },
        Action::DeleteField(path) => cells.tombstone(Some(path)),
    }
    Ok(())
}

fn map_key<'a>(key: &'a Term, bindings: &Bindings<'a>) -> Result<Cow<'a, [u8]>> {
    match key.bind(bindings)? {
        Bound::Bytes(key) => Ok(key),
        Bound::Null => invalid("Invalid null map key"),
        Bound::Unset => invalid("Invalid unset map key"),
    }
}

fn invalid<T>(message: &str) -> Result<T> {
    Err(CqlError::Invalid(message.into()))
}

/// The increment of a counter. An update holds the increment until the engine replaces it with the count.
fn count_of(by: &[u8], direction: Direction) -> Result<i64> {
    let Some(by) = by.first_chunk::<8>().map(|by| i64::from_be_bytes(*by)) else {
        return invalid("Invalid empty value for counter increment");
    };
    match direction {
        Direction::Up => Ok(by),
        Direction::Down => by.checked_neg().ok_or_else(|| {
            CqlError::Invalid(format!(
                "The negation of {by} overflows supported counter precision (signed 8 bytes integer)"
            ))
        }),
    }
}

/// Writes cells of one column.
pub(super) struct Cells<'c, 'w, 'r> {
    pub(super) column: ColumnId,
    pub(super) context: &'c WriteContext<'c>,
    row: &'w mut RowWriter<'r>,
}

impl Cells<'_, '_, '_> {
    /// Asks for the memory of so many cells, whose paths and values have these bytes together.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn room_for(&mut self, count: usize, bytes: usize) -> Result<()> {
        room_in(self.row.buffer(), count * CELL_BYTES + bytes)
    }

    /// The same for the cells of a collection's serialized value.
    fn room_for_elements(&mut self, value: &[u8]) -> Result<()> {
        // The value begins with the number of its elements, each behind a length of four bytes.
        let count = collection_size(value).min(value.len() / 4);
        // Prepending has lists of the elements and of their paths.
        room_for(count * (size_of::<&[u8]>() + 16))?;
        self.room_for(count, value.len())
    }

    pub(super) fn live(&mut self, path: Option<&[u8]>, value: &[u8]) {
        let context = self.context;
        let local_deletion_s = if context.ttl_s == 0 { NO_EXPIRY } else { context.expires_s };
        self.push(context.ttl_s, local_deletion_s, path, value);
    }

    pub(super) fn tombstone(&mut self, path: Option<&[u8]>) {
        self.push(0, self.context.now_s, path, &[]);
    }

    fn push(&mut self, ttl_s: i32, local_deletion_s: i64, path: Option<&[u8]>, value: &[u8]) {
        let (column, timestamp_us) = (self.column, self.context.timestamp_us);
        let cell =
            Cell { column, ttl_s, timestamp_us, local_deletion_s, path: Span::NULL, value: Span::NULL };
        self.row.cell(&cell, path, value);
    }

    /// The cells of a whole value: those of sets and maps in the order of their paths, those of lists with new paths.
    fn elements(&mut self, ty: &CqlType, value: &[u8]) {
        match ty {
            CqlType::List { .. } => {
                for element in Elements::of_list(value).flatten() {
                    let path = self.context.bindings.calls.time_uuid();
                    self.live(Some(&path), element);
                }
            }
            CqlType::Set { .. } => {
                Elements::of_list(value).flatten().for_each(|element| self.live(Some(element), &[]));
            }
            CqlType::Map { .. } => {
                let mut parts = Elements::of_map(value).flatten();
                while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
                    self.live(Some(key), value);
                }
            }
            CqlType::Udt(_) => {
                for (index, field) in Fields::of(value).enumerate() {
                    if let Some(field) = field {
                        self.live(Some(&(index as u16).to_be_bytes()), field);
                    }
                }
            }
            _ => {}
        }
    }

    /// The cells of elements that are prepended to a list. Their paths sort before all others: times mirrored at 2010,
    /// so that a later prepend comes first (`Lists.PrecisionTime`).
    fn prepend(&mut self, value: &[u8]) {
        let elements: Vec<&[u8]> = Elements::of_list(value).flatten().collect();
        let calls = self.context.bindings.calls;
        let mut paths: Vec<[u8; 16]> = elements.iter().map(|_| calls.mirrored_time_uuid()).collect();
        paths.reverse();
        for (path, element) in paths.iter().zip(elements) {
            self.live(Some(path), element);
        }
    }
}
