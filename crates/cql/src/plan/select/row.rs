//! Values taken out of a row: of its partition key, its clustering, its cells and its partition's static row.

use crate::analysis::restrictions::Found;
use crate::analysis::selection::{Leaf, Selected, Shape, Source};
use crate::error::Result;
use crate::functions::CallContext;
use crate::syntax::ast::TimeFunction;
use helenus_model::cell::Cell;
use helenus_model::row::RowView;
use helenus_model::schema::Column;
use helenus_model::types::{Fields, put_value};
use std::borrow::Cow;

/// A row with what belongs to its partition.
#[derive(Clone, Copy)]
pub(crate) struct RowAt<'a> {
    /// The serialised partition key.
    pub(crate) key: &'a [u8],
    /// How many columns it has.
    pub(crate) key_columns: usize,
    /// The static row.
    pub(crate) statics: Option<RowView<'a>>,
    /// The row; `None` where a static row stands alone.
    pub(crate) row: Option<RowView<'a>>,
    /// The moment of the read, seconds.
    pub(crate) now_s: i64,
}

/// What computing a value needs besides the row.
pub(super) struct Computing<'a> {
    /// The values of the selection's terms.
    pub(super) terms: &'a [Option<Vec<u8>>],
    /// What functions may ask for.
    pub(super) calls: &'a CallContext<'a>,
    /// Results of aggregates and leaves of the first row; empty where there are none.
    pub(super) folded: &'a [Option<Vec<u8>>],
    /// See `folded`.
    pub(super) first: &'a [Option<Vec<u8>>],
}

impl<'a> RowAt<'a> {
    /// A column's value. What has to be assembled is, in `scratch`.
    pub(crate) fn value<'s>(&self, source: &Source, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match source {
            Source::Key(index) => self.key_part(*index),
            Source::Clustering(index) => self.row.and_then(|row| row.clustering(*index)),
            Source::Cell { id, is_static, shape } => {
                let row = if *is_static { self.statics } else { self.row }?;
                let cells = row.cells_of(*id);
                match shape {
                    Shape::Simple => {
                        cells.first().filter(|cell| cell.is_live(self.now_s)).map(|cell| row.value(cell))
                    }
                    shape => self.assembled(row, cells, *shape, scratch),
                }
            }
        }
    }

    fn key_part(&self, index: usize) -> Option<&'a [u8]> {
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
    pub(super) fn leaf<'s>(&self, leaf: &Leaf, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match leaf {
            Leaf::Column(source) => self.value(source, scratch),
            Leaf::Time(function, source) => self.time(*function, source, scratch),
        }
    }

    fn time<'s>(
        &self,
        function: TimeFunction,
        source: &Source,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        let Source::Cell { id, is_static, shape } = source else { return None };
        let row = if *is_static { self.statics } else { self.row }?;
        let live = row.cells_of(*id).iter().filter(|cell| cell.is_live(self.now_s));
        scratch.clear();
        if matches!(shape, Shape::Simple | Shape::Counter) || function == TimeFunction::MaxWriteTime {
            let cell = live.max_by_key(|cell| cell.timestamp_us)?;
            return self.put_time(function, cell, scratch).then_some(scratch);
        }
        scratch.extend_from_slice(&[0; 4]);
        let mut count = 0_i32;
        for cell in live {
            count += 1;
            let at = scratch.len();
            scratch.extend_from_slice(&[0; 4]);
            let length =
                if self.put_time(function, cell, scratch) { (scratch.len() - at - 4) as i32 } else { -1 };
            if let Some(place) = scratch.get_mut(at..at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        scratch.get_mut(..4)?.copy_from_slice(&count.to_be_bytes());
        (count > 0).then_some(scratch)
    }

    /// Appends the time; says whether there is one.
    fn put_time(&self, function: TimeFunction, cell: &Cell, out: &mut Vec<u8>) -> bool {
        match function {
            TimeFunction::WriteTime | TimeFunction::MaxWriteTime => {
                out.extend_from_slice(&cell.timestamp_us.to_be_bytes());
                true
            }
            TimeFunction::Ttl if cell.is_expiring() => {
                let left = (cell.local_deletion_s - self.now_s) as i32;
                out.extend_from_slice(&left.to_be_bytes());
                true
            }
            TimeFunction::Ttl => false,
        }
    }

    /// Whatever is selected.
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
            Selected::Field(inner, index) => {
                let value = self.selected(inner, computing, scratch)?;
                let field = value.as_deref().and_then(|value| Fields::of(value).nth(*index).flatten());
                field.map(|field| Cow::Owned(field.to_vec()))
            }
            Selected::Call(function, arguments) => {
                let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.selected(argument, computing, scratch)?.map(Cow::into_owned));
                }
                let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
                function.call(&values, computing.calls)?.map(Cow::Owned)
            }
        })
    }
}

impl Found for RowAt<'_> {
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

/// The sum of a counter context's shards (`CounterContext.total`): a count of header elements (u16), two bytes each,
/// then shards of id (16), clock (8) and count (8). Contexts that are cut short count what is whole.
fn counter_total(context: &[u8]) -> i64 {
    let Some((count, rest)) = context.split_first_chunk::<2>() else { return 0 };
    // A negative count marks a context whose local shards are to be cleared: its size all the same.
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
