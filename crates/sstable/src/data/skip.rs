//! Compares stored clustering values with a bound's, without building a row's ordered key.
//!
//! A slice starts somewhere within an index block. Each row before it costs only a comparison of its stored clustering
//! values with the bound's. The end of a slice is found in the same way. All other cases (empty values, types that are
//! not ordered by numbers or bytes, markers, the end of a block, damage) are left to the decoder.

use super::decode::flags;
use super::input::Input;
use super::layout::{ClusteringLayout, RowLayout};
use helenus_model::byte_comparable::{GT_NEXT_COMPONENT, LT_NEXT_COMPONENT, NEXT_COMPONENT, decode_value};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL};
use helenus_model::types::CqlType;
use std::cmp::Ordering;

/// The leading clustering values of a bound, serialised, and the order of rows that have these values.
#[derive(Default)]
pub(super) struct BoundValues {
    data: Vec<u8>,
    ends: Vec<usize>,
    /// The order of a row with all these values, relative to the bound; `None` if the bound contains more than these
    /// values.
    rest: Option<Ordering>,
}

impl BoundValues {
    /// A bound after every row, which has no values.
    pub(super) fn after_all() -> BoundValues {
        BoundValues { rest: Some(Ordering::Less), ..BoundValues::default() }
    }

    /// Decodes the values of a bound's ordered encoding, as far as they can be compared here.
    pub(super) fn set(&mut self, layout: &RowLayout, ordered: &[u8]) {
        self.data.clear();
        self.ends.clear();
        self.rest = None;
        let mut position = 0;
        for column in layout.clustering.iter() {
            if ordered.get(position) != Some(&NEXT_COMPONENT) {
                break;
            }
            if !is_comparable(&column.ty) {
                return;
            }
            position += 1;
            if decode_value(&column.ty, column.reversed, ordered, &mut position, &mut self.data).is_err() {
                return;
            }
            self.ends.push(self.data.len());
        }
        self.rest = match ordered.get(position..) {
            Some([LT_NEXT_COMPONENT]) => Some(Ordering::Greater),
            Some([GT_NEXT_COMPONENT]) => Some(Ordering::Less),
            Some(BEFORE_ALL) if position == 0 => Some(Ordering::Greater),
            Some(AFTER_ALL) if position == 0 => Some(Ordering::Less),
            _ => None,
        };
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.data.get(start..end)
    }

    /// Compares the next value of a row, that of the column number `index`. `order` is the result of the values before.
    /// `None` if it cannot be decided here.
    #[inline]
    pub(super) fn compare(
        &self,
        (index, column): (usize, &ClusteringLayout),
        value: &[u8],
        order: Ordering,
    ) -> Option<Ordering> {
        if order != Ordering::Equal {
            return Some(order);
        }
        match self.get(index) {
            Some(bound) => compare(column, value, bound),
            None => self.rest,
        }
    }

    /// The result after all values of a row have been compared.
    #[inline]
    pub(super) fn finish(&self, order: Ordering) -> Option<Ordering> {
        if order == Ordering::Equal { self.rest } else { Some(order) }
    }

    /// Whether every row is before the bound.
    #[inline]
    pub(super) fn is_after_all(&self) -> bool {
        self.ends.is_empty() && self.rest == Some(Ordering::Less)
    }
}

/// Number of clustering values that one header describes. Tables with more are left to the decoder.
const HEADER_VALUES: usize = 32;

/// Flags of elements that are not rows, or not plain rows.
const NOT_PLAIN: u8 = flags::END_OF_PARTITION | flags::IS_MARKER | flags::EXTENSION;

/// Whether values of a type are ordered like numbers or bytes.
fn is_comparable(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Ascii
            | CqlType::Text
            | CqlType::Blob
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Timestamp
            | CqlType::Date
            | CqlType::Time
            | CqlType::Uuid
            | CqlType::TimeUuid
    )
}

impl RowLayout {
    /// Whether there are clustering columns, and one header describes all their values.
    #[inline]
    pub(super) fn has_plain_heads(&self) -> bool {
        (1..=HEADER_VALUES).contains(&self.clustering.len())
    }

    /// Skips rows from `at` on that are certainly before the bound, and calls `passed` with the offset of each. Returns
    /// the offset of the first other element.
    pub(super) fn skip(
        &self,
        bytes: &[u8],
        mut at: usize,
        bound: &BoundValues,
        mut passed: impl FnMut(usize),
    ) -> usize {
        let passes_nothing = bound.ends.is_empty() && !bound.is_after_all();
        if passes_nothing || !self.has_plain_heads() {
            return at;
        }
        if let Some(name) = NameBound::of(self, bound) {
            while let Some(end) = name.skip_one(bytes, at).or_else(|| self.skip_one(bytes, at, bound)) {
                passed(at);
                at = end;
            }
            return at;
        }
        while let Some(end) = self.skip_one(bytes, at, bound) {
            passed(at);
            at = end;
        }
        at
    }

    #[inline]
    fn skip_one(&self, bytes: &[u8], at: usize, bound: &BoundValues) -> Option<usize> {
        let mut input = Input::new(bytes, at);
        if input.byte().ok()? & NOT_PLAIN != 0 {
            return None;
        }
        // A header of 0 means that all values are present and not empty.
        if input.byte().ok()? != 0 {
            return None;
        }
        let mut order = Ordering::Equal;
        for (index, column) in self.clustering.iter().enumerate() {
            let length = match column.fixed {
                Some(length) => length,
                None => input.quick_length()?,
            };
            let value = input.take(length).ok()?;
            order = bound.compare((index, column), value, order)?;
            if order == Ordering::Greater {
                return None;
            }
        }
        let size = input.quick_length()?;
        let end = input.at() + size;
        (bound.finish(order)? == Ordering::Less && end < bytes.len()).then_some(end)
    }
}

/// The bound for tables with one clustering column of text or bytes, as the widest partitions often have. One
/// comparison of bytes decides about a row.
struct NameBound<'a> {
    /// `None` if every row is before the bound.
    value: Option<&'a [u8]>,
    reversed: bool,
    /// Whether a row with exactly this value is before the bound.
    passes_equal: bool,
}

impl<'a> NameBound<'a> {
    fn of(layout: &RowLayout, bound: &'a BoundValues) -> Option<NameBound<'a>> {
        let [column] = &layout.clustering[..] else { return None };
        if !matches!(column.ty, CqlType::Ascii | CqlType::Text | CqlType::Blob) {
            return None;
        }
        let value = bound.get(0);
        if value.is_none() && !bound.is_after_all() {
            return None;
        }
        Some(NameBound { value, reversed: column.reversed, passes_equal: bound.rest == Some(Ordering::Less) })
    }

    /// The end of the row at `at`, if it is certainly before the bound, and if the lengths of its value and of the rest
    /// fit a byte each. `RowLayout::skip_one` decides about all others.
    #[inline(always)]
    fn skip_one(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let [flags, 0, length @ 0..0x80, rest @ ..] = bytes.get(at..)? else { return None };
        if flags & NOT_PLAIN != 0 {
            return None;
        }
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        let passes = match self.value.map(|bound| value.cmp(bound)) {
            None => true,
            Some(Ordering::Equal) => self.passes_equal,
            Some(order) => (order == Ordering::Less) != self.reversed,
        };
        let size @ 0..0x80 = *rest.first()? else { return None };
        let end = at + 4 + usize::from(*length) + usize::from(size);
        (passes && end < bytes.len()).then_some(end)
    }
}

#[inline]
fn compare(column: &ClusteringLayout, value: &[u8], bound: &[u8]) -> Option<Ordering> {
    let ordering = match &column.ty {
        CqlType::Ascii | CqlType::Text | CqlType::Blob => value.cmp(bound),
        CqlType::Int => number::<4, _>(i32::from_be_bytes, value, bound)?,
        CqlType::BigInt | CqlType::Timestamp => number::<8, _>(i64::from_be_bytes, value, bound)?,
        CqlType::Date => number::<4, _>(u32::from_be_bytes, value, bound)?,
        CqlType::Time => number::<8, _>(u64::from_be_bytes, value, bound)?,
        // UUIDs of other lengths are left to the decoder, which refuses them.
        ty if value.len() == 16 && bound.len() == 16 => ty.compare(value, bound),
        _ => return None,
    };
    Some(if column.reversed { ordering.reverse() } else { ordering })
}

/// Compares two numbers; `None` for values of a length that the type does not have.
#[inline]
fn number<const N: usize, T: Ord>(parse: fn([u8; N]) -> T, value: &[u8], bound: &[u8]) -> Option<Ordering> {
    Some(parse(value.try_into().ok()?).cmp(&parse(bound.try_into().ok()?)))
}
