//! Takes values out of a row: from its partition key, its clustering, its cells and its partition's static row.

use super::part::{self, Times};
use crate::analysis::restrictions::ColumnAccess;
use crate::analysis::selection::{RowValue, Selected, Shape, Source, TimePath};
use crate::error::Result;
use crate::scope::CallContext;
use crate::syntax::ast::TimeFunction;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::row::RowView;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, Fields, put_value};
use std::borrow::Cow;

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
            for field in 0..fields {
                let is_field = |cell: &&Cell| {
                    row.path(cell)
                        .first_chunk::<2>()
                        .is_some_and(|path| usize::from(u16::from_be_bytes(*path)) == field)
                };
                put_value(live().find(is_field).map(|cell| row.value(cell)), scratch);
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
            TimePath::Column(source) => self.times(function, source),
            TimePath::Field(inner, field, index) => {
                if self.selected(field, computing, &mut scratch)?.is_none() {
                    return Ok(Times::None);
                }
                self.times_of(function, inner, computing)?.at(*index)
            }
            TimePath::Element(inner, collection, ty, key) => {
                let value = self.selected(collection, computing, &mut scratch)?;
                let key = computing.term(*key);
                match value.as_deref().zip(key).and_then(|(value, key)| part::index_of(ty, value, key)) {
                    Some(index) => self.times_of(function, inner, computing)?.at(index),
                    None => Times::None,
                }
            }
            TimePath::Slice(inner, collection, ty, (from, to)) => {
                let ends = (from.and_then(|from| computing.term(from)), to.and_then(|to| computing.term(to)));
                let value = self.selected(collection, computing, &mut scratch)?;
                let range = value.as_deref().map_or(0..0, |value| part::index_range(ty, value, ends));
                self.times_of(function, inner, computing)?.within(range)
            }
        })
    }

    /// The value under a key of a multi-cell set or map; `None` if the column is not one.
    fn element_cell(&self, source: &Source, ty: &CqlType, key: &[u8]) -> Option<Option<&'a [u8]>> {
        let Source::Cell { id, is_static, shape: shape @ (Shape::Set | Shape::Map) } = source else {
            return None;
        };
        let Some(row) = (if *is_static { self.statics } else { self.row }) else { return Some(None) };
        let key_type = part::key_type(ty)?;
        let cells = row.cells_of(*id);
        let cell = cells.iter().find(|cell| key_type.compare(row.path(cell), key).is_eq());
        let cell = cell.filter(|cell| cell.is_live(self.now_s));
        Some(cell.map(|cell| if *shape == Shape::Set { row.path(cell) } else { row.value(cell) }))
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
            Selected::Leaf(leaf) => self.leaf(leaf, scratch).map(Cow::Borrowed),
            Selected::Term(index) => at(computing.terms, *index),
            Selected::Aggregate(index) => at(computing.folded, *index),
            Selected::First(index) => at(computing.first, *index),
            Selected::Null => None,
            Selected::Field(inner, index) => {
                let value = self.selected(inner, computing, scratch)?;
                let field = value.as_deref().and_then(|value| Fields::of(value).nth(*index).flatten());
                field.map(|field| Cow::Owned(field.to_vec()))
            }
            Selected::Element(inner, ty, key) => {
                let Some(key) = computing.term(*key) else { return Ok(None) };
                if let Selected::Leaf(RowValue::Column(source)) = &**inner
                    && let Some(found) = self.element_cell(source, ty, key)
                {
                    return Ok(found.map(Cow::Borrowed));
                }
                let value = self.selected(inner, computing, scratch)?;
                let found = value.as_deref().and_then(|value| part::element(ty, value, key));
                found.map(|found| Cow::Owned(found.to_vec()))
            }
            Selected::Slice(inner, ty, (from, to)) => {
                let ends = (from.and_then(|from| computing.term(from)), to.and_then(|to| computing.term(to)));
                let value = self.selected(inner, computing, scratch)?;
                value.as_deref().and_then(|value| part::slice(ty, value, ends)).map(Cow::Owned)
            }
            Selected::TimeOf(function, path) => self.time_of(*function, path, computing)?.map(Cow::Owned),
            Selected::Composite(ty, parts) => {
                let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(parts.len());
                for part in parts {
                    values.push(self.selected(part, computing, scratch)?.map(Cow::into_owned));
                }
                Some(Cow::Owned(part::made(ty, &values)))
            }
            Selected::Call(function, arguments) => {
                let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.selected(argument, computing, scratch)?.map(Cow::into_owned));
                }
                let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
                computing.calls.calls(&**function, &values)?;
                let made = function.call(&values, computing.calls)?;
                computing.calls.made(&**function, made)?.map(Cow::Owned)
            }
        })
    }
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
