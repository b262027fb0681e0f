//! Takes values out of a row: from its partition key, its clustering, its cells and its partition's static row.

use super::part::{self, CellsBetween, Times};
use crate::analysis::restrictions::ColumnAccess;
use crate::analysis::selection::{RowValue, Selected, Shape, Source, TimePath};
use crate::budget::{RequestBudget, normalised, owned, room_for, room_for_elements, room_in};
use crate::cost::SHORT_VALUES_PER_STEP;
use crate::error::Result;
use crate::scope::CallContext;
use crate::syntax::ast::TimeFunction;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::row::RowView;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, Fields, put_value};
use std::borrow::Cow;

/// The size of a column's value from which it counts as work of its own.
const LONG_VALUE_BYTES: usize = 256;

/// The first and the last key of a slice, both included; `None`: no limit.
type Ends<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// A row, and what it needs of its partition.
#[derive(Clone, Copy)]
pub(crate) struct RowAt<'a> {
    /// The serialised partition key.
    pub(crate) key: &'a [u8],
    /// The number of columns in the partition key.
    pub(crate) key_columns: usize,
    /// The static row.
    pub(crate) statics: Option<RowView<'a>>,
    /// The row; `None` for a static row without rows.
    pub(crate) row: Option<RowView<'a>>,
    /// The time of the read, seconds.
    pub(crate) now_s: i64,
}

/// What the computation of a value needs besides the row.
pub(super) struct Computing<'a> {
    /// The values of the selection's terms.
    pub(super) terms: &'a [Option<Vec<u8>>],
    /// The context of function calls.
    pub(super) calls: &'a CallContext<'a>,
    /// The results of aggregates; empty where there are none.
    pub(super) folded: &'a [Option<Vec<u8>>],
    /// The leaf values of the first row; empty where there are no aggregates.
    pub(super) first: &'a [Option<Vec<u8>>],
}

/// The bytes that the time of a cell takes until it is in a list: a number, a value of its own, its part of the list.
const TIME_BYTES: usize = 128;
/// The bytes of a part of a value besides its own: its length, and its place among the parts.
const PART_BYTES: usize = 64;

/// Asks for the memory for taking a collection apart.
fn room_for_entries(value: Option<&[u8]>) -> Result<()> {
    value.map_or(Ok(()), room_for_elements)
}

impl Computing<'_> {
    /// The value of a term of the selection.
    fn term(&self, index: usize) -> Option<&[u8]> {
        self.terms.get(index).and_then(Option::as_deref)
    }
}

impl<'a> RowAt<'a> {
    /// A column's value. A value that must be assembled is built in `scratch`.
    pub(crate) fn value<'s>(&self, source: &Source, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match source {
            Source::Key(index) => self.key_part(*index),
            Source::Clustering(index) => self.row.and_then(|row| row.clustering(*index)),
            Source::Cell { id, is_static, shape } => {
                let row = if *is_static { self.statics } else { self.row }?;
                match shape {
                    Shape::Simple => {
                        let cell = row.cell_of(*id).filter(|cell| cell.is_live(self.now_s))?;
                        Some(row.value(cell))
                    }
                    shape => self.assembled(row, row.cells_of(*id), *shape, scratch),
                }
            }
        }
    }

    /// Asks for the memory of a value that must be assembled in `scratch`.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn room_for_value(&self, source: &Source, scratch: &mut Vec<u8>) -> Result<()> {
        let Source::Cell { id, is_static, shape } = source else { return Ok(()) };
        if matches!(shape, Shape::Simple | Shape::Counter) {
            return Ok(());
        }
        let Some(row) = (if *is_static { self.statics } else { self.row }) else { return Ok(()) };
        let cell_bytes = |cell: &Cell| row.path(cell).len() + row.value(cell).len() + 8;
        let fields = if let Shape::Udt(fields) = shape { 4 * fields } else { 4 };
        let bytes = fields + row.cells_of(*id).iter().map(cell_bytes).sum::<usize>();
        scratch.clear();
        room_in(scratch, bytes)
    }

    /// The same for the value or the times of a column.
    fn room_for_leaf(&self, leaf: &RowValue, scratch: &mut Vec<u8>) -> Result<()> {
        match leaf {
            RowValue::Column(source) => self.room_for_value(source, scratch),
            RowValue::Time(_, source) => self.room_for_times(source),
        }
    }

    /// Asks for the memory of the times of a column's cells, and of the list of them.
    fn room_for_times(&self, source: &Source) -> Result<()> {
        let Source::Cell { id, is_static, .. } = source else { return Ok(()) };
        let row = if *is_static { self.statics } else { self.row };
        room_for(TIME_BYTES * row.map_or(0, |row| row.cells_of(*id).len()))
    }

    /// The value of a static column of one cell.
    pub(super) fn static_value(&self, id: ColumnId) -> Option<&'a [u8]> {
        let row = self.statics?;
        row.cell_of(id).filter(|cell| cell.is_live(self.now_s)).map(|cell| row.value(cell))
    }

    /// A column of the partition key.
    pub(super) fn key_part(&self, index: usize) -> Option<&'a [u8]> {
        if self.key_columns == 1 {
            return Some(self.key);
        }
        let mut rest = self.key;
        for _ in 0..index {
            let (length, after) = rest.split_first_chunk::<2>()?;
            rest = after.get(usize::from(u16::from_be_bytes(*length)) + 1..)?;
        }
        let (length, after) = rest.split_first_chunk::<2>()?;
        after.get(..usize::from(u16::from_be_bytes(*length)))
    }

    fn assembled<'s>(
        &self,
        row: RowView<'a>,
        cells: &[Cell],
        shape: Shape,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        let live = || cells.iter().filter(|cell| cell.is_live(self.now_s));
        let count = live().count();
        if count == 0 {
            return None;
        }
        scratch.clear();
        if shape == Shape::Counter {
            let total = counter_total(row.value(live().next()?));
            scratch.extend_from_slice(&total.to_be_bytes());
            return Some(scratch);
        }
        if let Shape::Udt(fields) = shape {
            // Cells are in the order of their fields.
            let index = |cell: &Cell| {
                let path = row.path(cell).first_chunk::<2>();
                path.map_or(0, |path| usize::from(u16::from_be_bytes(*path)))
            };
            let mut cells = live().peekable();
            for field in 0..fields {
                while cells.next_if(|cell| index(cell) < field).is_some() {}
                let cell = cells.next_if(|cell| index(cell) == field);
                put_value(cell.map(|cell| row.value(cell)), scratch);
            }
            return Some(scratch);
        }
        scratch.extend_from_slice(&(count as i32).to_be_bytes());
        for cell in live() {
            if matches!(shape, Shape::Set | Shape::Map) {
                put_value(Some(row.path(cell)), scratch);
            }
            if matches!(shape, Shape::List | Shape::Map) {
                put_value(Some(row.value(cell)), scratch);
            }
        }
        Some(scratch)
    }

    /// A column's value, or the times of its cells.
    pub(super) fn leaf<'s>(&self, leaf: &RowValue, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match leaf {
            RowValue::Column(source) => self.value(source, scratch),
            RowValue::Time(function, source) => self.time(*function, source, scratch),
        }
    }

    fn time<'s>(
        &self,
        function: TimeFunction,
        source: &Source,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        if let Source::Cell { id, is_static, shape: Shape::Simple | Shape::Counter } = source {
            let row = if *is_static { self.statics } else { self.row }?;
            let cell = row.cells_of(*id).iter().find(|cell| cell.is_live(self.now_s))?;
            let time = self.time_of_cell(function, cell)?;
            scratch.clear();
            match function {
                TimeFunction::Ttl => scratch.extend_from_slice(&(time as i32).to_be_bytes()),
                _ => scratch.extend_from_slice(&time.to_be_bytes()),
            }
            return Some(scratch);
        }
        *scratch = self.times(function, source).of(function)?;
        Some(scratch)
    }

    fn time_of_cell(&self, function: TimeFunction, cell: &Cell) -> Option<i64> {
        match function {
            TimeFunction::WriteTime | TimeFunction::MaxWriteTime => Some(cell.timestamp_us),
            TimeFunction::Ttl if cell.is_expiring() => Some(cell.local_deletion_s - self.now_s),
            TimeFunction::Ttl => None,
        }
    }

    /// The times of a column's cells.
    fn times(&self, function: TimeFunction, source: &Source) -> Times {
        let Source::Cell { id, is_static, shape } = source else { return Times::None };
        let Some(row) = (if *is_static { self.statics } else { self.row }) else { return Times::None };
        let mut live = row.cells_of(*id).iter().filter(|cell| cell.is_live(self.now_s));
        let time = |cell: &Cell| self.time_of_cell(function, cell);
        match shape {
            Shape::Simple | Shape::Counter => live.next().map_or(Times::None, |cell| Times::One(time(cell))),
            Shape::Udt(fields) => {
                let mut times = vec![None; *fields];
                let mut has_value = false;
                for cell in live {
                    has_value = true;
                    let field = row.path(cell).first_chunk::<2>().map(|path| u16::from_be_bytes(*path));
                    if let Some(place) = field.and_then(|field| times.get_mut(usize::from(field))) {
                        *place = time(cell);
                    }
                }
                if has_value { Times::Many(times) } else { Times::None }
            }
            Shape::List | Shape::Set | Shape::Map => Times::Many(live.map(time).collect()),
        }
    }

    /// The time of a part of a column (`WritetimeOrTTLSelector` for fields, elements and slices).
    fn time_of(
        &self,
        function: TimeFunction,
        path: &TimePath,
        computing: &Computing<'_>,
    ) -> Result<Option<Vec<u8>>> {
        Ok(self.times_of(function, path, computing)?.of(function))
    }

    fn times_of(&self, function: TimeFunction, path: &TimePath, computing: &Computing<'_>) -> Result<Times> {
        let mut scratch = Vec::new();
        Ok(match path {
            TimePath::Column(source) => {
                let cells = self.cells(source).map_or(0, |(_, cells)| cells.len());
                computing.calls.work.steps(cells / SHORT_VALUES_PER_STEP)?;
                self.room_for_times(source)?;
                self.times(function, source)
            }
            TimePath::Field(inner, field, index) => {
                if self.selected(field, computing, &mut scratch)?.is_none() {
                    return Ok(Times::None);
                }
                self.times_of(function, inner, computing)?.at(*index)
            }
            TimePath::Element(inner, collection, ty, key) => {
                let value = self.selected(collection, computing, &mut scratch)?;
                room_for_entries(value.as_deref())?;
                let key = computing.term(*key);
                let found = match value.as_deref().zip(key) {
                    Some((value, key)) => part::index_of(ty, value, key, computing.calls.work)?,
                    None => None,
                };
                match found {
                    Some(index) => self.times_of(function, inner, computing)?.at(index),
                    None => Times::None,
                }
            }
            TimePath::Slice(inner, collection, ty, (from, to)) => {
                let ends = (from.and_then(|from| computing.term(from)), to.and_then(|to| computing.term(to)));
                let value = self.selected(collection, computing, &mut scratch)?;
                room_for_entries(value.as_deref())?;
                let range = match value.as_deref() {
                    Some(value) => part::index_range(ty, value, ends, computing.calls.work)?,
                    None => 0..0,
                };
                self.times_of(function, inner, computing)?.within(range)
            }
        })
    }

    /// The cells of a multi-cell column.
    fn cells(&self, source: &Source) -> Option<(RowView<'a>, &'a [Cell])> {
        let Source::Cell { id, is_static, .. } = source else { return None };
        let row = (if *is_static { self.statics } else { self.row })?;
        Some((row, row.cells_of(*id)))
    }

    /// The cells from one key to another, both included, of a multi-cell set or map; `None` if the column is not one.
    /// Cells are in the order of their keys, so the rest of the collection is neither visited nor assembled.
    fn cells_between(
        &self,
        (selected, ty): (&Selected, &CqlType),
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        work: &RequestBudget<'_>,
    ) -> Result<Option<CellsBetween<'a>>> {
        let Selected::Leaf(RowValue::Column(source)) = selected else { return Ok(None) };
        let Source::Cell { shape: shape @ (Shape::Set | Shape::Map), .. } = source else { return Ok(None) };
        let (Some(key_type), Some((row, cells))) = (part::key_type(ty), self.cells(source)) else {
            return Ok(Some(CellsBetween { row: None, shape: *shape, cells: &[] }));
        };
        let before = |key: &[u8], or_equal: bool| {
            part::place(cells.len(), |index| {
                let path = cells.get(index).map_or(&[][..], |cell| row.path(cell));
                let order = work.order(key_type, path, key)?;
                Ok(order.is_lt() || or_equal && order.is_eq())
            })
        };
        let start = from.map_or(Ok(0), |from| before(from, false))?;
        let end = to.map_or(Ok(cells.len()), |to| before(to, true))?;
        let cells = cells.get(start..end.max(start)).unwrap_or_default();
        work.steps(cells.len() / SHORT_VALUES_PER_STEP)?;
        Ok(Some(CellsBetween { row: Some(row), shape: *shape, cells }))
    }

    /// The element under a key of a set or map.
    fn element<'s>(
        &self,
        (inner, ty, key): (&Selected, &CqlType, &[u8]),
        computing: &'s Computing<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Option<Cow<'s, [u8]>>>
    where
        'a: 's,
    {
        let work = computing.calls.work;
        if let Some(between) = self.cells_between((inner, ty), (Some(key), Some(key)), work)? {
            return Ok(between.element(self.now_s).map(Cow::Borrowed));
        }
        let value = self.selected(inner, computing, scratch)?;
        room_for_entries(value.as_deref())?;
        let Some(value) = value.as_deref() else { return Ok(None) };
        let found = part::element(ty, value, key, work)?;
        Ok(found.map(|found| Cow::Owned(found.to_vec())))
    }

    /// The elements of a set or map from one key to another.
    fn slice(
        &self,
        (inner, ty, ends): (&Selected, &CqlType, Ends<'_>),
        computing: &Computing<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Vec<u8>>> {
        let work = computing.calls.work;
        if let Some(between) = self.cells_between((inner, ty), ends, work)? {
            let bytes: usize =
                between.live(self.now_s).map(|(path, value)| path.len() + value.len() + 8).sum();
            // A buffer that grows by doubling.
            room_for(2 * bytes)?;
            return Ok(between.packed(self.now_s));
        }
        let value = self.selected(inner, computing, scratch)?;
        room_for_entries(value.as_deref())?;
        match value.as_deref() {
            Some(value) => part::slice(ty, value, ends, work),
            None => Ok(None),
        }
    }

    /// A column's value, or the times of its cells; counts the steps of going through it.
    fn counted_leaf<'s>(
        &self,
        leaf: &RowValue,
        computing: &Computing<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Option<&'s [u8]>>
    where
        'a: 's,
    {
        if let RowValue::Time(_, source) = leaf {
            let cells = self.cells(source).map_or(0, |(_, cells)| cells.len());
            computing.calls.work.steps(cells / SHORT_VALUES_PER_STEP)?;
        }
        let value = self.leaf(leaf, scratch);
        let bytes = value.map_or(0, <[u8]>::len);
        if bytes >= LONG_VALUE_BYTES {
            computing.calls.work.value_steps(bytes)?;
        }
        Ok(value)
    }

    /// The value of a selected expression.
    ///
    /// # Errors
    /// A function refuses its arguments.
    pub(super) fn selected<'s>(
        &self,
        selected: &Selected,
        computing: &'s Computing<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Option<Cow<'s, [u8]>>>
    where
        'a: 's,
    {
        let at = |values: &'s [Option<Vec<u8>>], index: usize| {
            values.get(index).and_then(|value| value.as_deref()).map(Cow::Borrowed)
        };
        Ok(match selected {
            Selected::Leaf(leaf) => {
                self.room_for_leaf(leaf, scratch)?;
                self.counted_leaf(leaf, computing, scratch)?.map(Cow::Borrowed)
            }
            Selected::Term(index) => at(computing.terms, *index),
            Selected::Aggregate(index) => at(computing.folded, *index),
            Selected::First(index) => at(computing.first, *index),
            Selected::Null => None,
            Selected::Field(inner, index) => {
                let value = self.selected(inner, computing, scratch)?;
                let field = value.as_deref().and_then(|value| Fields::of(value).nth(*index).flatten());
                field.map(|field| owned(Cow::Borrowed(field)).map(Cow::Owned)).transpose()?
            }
            Selected::Element(inner, ty, key) => match computing.term(*key) {
                Some(key) => self.element((inner, ty, key), computing, scratch)?,
                None => None,
            },
            Selected::Slice(inner, ty, (from, to)) => {
                let ends = (from.and_then(|from| computing.term(from)), to.and_then(|to| computing.term(to)));
                self.slice((inner, ty, ends), computing, scratch)?.map(Cow::Owned)
            }
            Selected::TimeOf(function, path) => self.time_of(*function, path, computing)?.map(Cow::Owned),
            Selected::Composite(ty, parts) => {
                let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(parts.len());
                for part in parts {
                    values.push(self.selected(part, computing, scratch)?.map(owned).transpose()?);
                }
                Some(Cow::Owned(composed(ty, &values, computing.calls.work)?))
            }
            Selected::Call(function, arguments) => {
                let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.selected(argument, computing, scratch)?.map(owned).transpose()?);
                }
                let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
                computing.calls.calls(&**function, &values)?;
                let made = function.call(&values, computing.calls)?;
                computing.calls.made(&**function, made)?.map(Cow::Owned)
            }
        })
    }
}

/// A value of its parts, with sets and maps sorted.
fn composed(ty: &CqlType, values: &[Option<Vec<u8>>], work: &RequestBudget<'_>) -> Result<Vec<u8>> {
    let bytes: usize = values.iter().flatten().map(|value| value.len() + PART_BYTES).sum();
    room_for(bytes)?;
    let made = part::made(ty, values);
    let sorted = match ty {
        CqlType::Set { .. } | CqlType::Map { .. } => match normalised(ty, &made, work)? {
            Cow::Owned(sorted) => Some(sorted),
            Cow::Borrowed(_) => None,
        },
        _ => None,
    };
    Ok(sorted.unwrap_or(made))
}

impl ColumnAccess for RowAt<'_> {
    fn compare(&self, column: &Column, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let mut scratch = Vec::new();
        self.value(&Source::of(column), &mut scratch).is_some_and(test)
    }

    fn any_cell(&self, column: &Column, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> bool {
        let Source::Cell { id, is_static, .. } = Source::of(column) else { return false };
        let Some(row) = (if is_static { self.statics } else { self.row }) else { return false };
        let mut cells = row.cells_of(id).iter().filter(|cell| cell.is_live(self.now_s));
        cells.any(|cell| each(row.path(cell), row.value(cell)))
    }
}

/// The sum of a counter context's shards (`CounterContext.total`). A context has a count of header elements (u16), two
/// bytes for each element, then shards of id (16), clock (8) and count (8). In a truncated context the complete shards
/// count.
fn counter_total(context: &[u8]) -> i64 {
    let Some((count, rest)) = context.split_first_chunk::<2>() else { return 0 };
    // A negative count marks a context whose local shards are to be cleared; its absolute value is the size.
    let elements = usize::from(i16::from_be_bytes(*count).unsigned_abs());
    let shards = rest.get(elements * 2..).unwrap_or_default();
    let counts = shards.chunks_exact(32).filter_map(|shard| shard.last_chunk::<8>());
    counts.fold(0, |sum: i64, count| sum.wrapping_add(i64::from_be_bytes(*count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(count: i64) -> Vec<u8> {
        [&[7; 16][..], &1_i64.to_be_bytes(), &count.to_be_bytes()].concat()
    }

    #[test]
    fn a_counter_is_the_sum_of_its_shards_whatever_its_header() {
        let plain = [&[0, 0][..], &shard(5), &shard(-7)].concat();
        assert_eq!(counter_total(&plain), -2);
        let global = [&[0, 1, 0x80, 0][..], &shard(5)].concat();
        assert_eq!(counter_total(&global), 5);
        let clearing = [&(-1_i16).to_be_bytes()[..], &[0, 0], &shard(3)].concat();
        assert_eq!(counter_total(&clearing), 3);
        assert_eq!(counter_total(&[]), 0);
        assert_eq!(counter_total(&[0, 9, 1]), 0);
    }

    #[test]
    fn parts_of_a_composite_key_are_found_and_damage_is_null() {
        let key = [0, 1, 9, 0, 0, 2, 8, 7, 0];
        let at = |key| RowAt { key, key_columns: 2, statics: None, row: None, now_s: 0 };
        let mut scratch = Vec::new();
        assert_eq!(at(&key).value(&Source::Key(0), &mut scratch), Some(&[9][..]));
        assert_eq!(at(&key).value(&Source::Key(1), &mut scratch), Some(&[8, 7][..]));
        for length in 0..6 {
            assert_eq!(at(&key[..length]).value(&Source::Key(1), &mut scratch), None);
        }
    }
}
