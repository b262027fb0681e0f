//! Passes rows before a bound without building their keys.
//!
//! A slice starts somewhere within an index block, and on the way there each row costs no more than a comparison of
//! its stored clustering values with the bound's. Only a row that sorts before the bound by one of these values is
//! passed; whatever is less plain (equal values, empty ones, markers, a block's end, damage) is left to the decoder.

use super::decode::flags;
use super::input::Input;
use super::layout::{ClusteringLayout, RowLayout};
use helenus_model::byte_comparable::{NEXT_COMPONENT, decode_value};
use helenus_model::types::CqlType;
use std::cmp::Ordering;

/// A bound's leading clustering values, serialised.
#[derive(Default)]
pub(super) struct BoundValues {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl BoundValues {
    /// Takes the values out of a bound's ordered encoding, as far as they can be compared here.
    pub(super) fn set(&mut self, layout: &RowLayout, ordered: &[u8]) {
        self.data.clear();
        self.ends.clear();
        let mut position = 0;
        for column in layout.clustering.iter() {
            if ordered.get(position) != Some(&NEXT_COMPONENT) || !is_comparable(&column.ty) {
                return;
            }
            position += 1;
            if decode_value(&column.ty, column.reversed, ordered, &mut position, &mut self.data).is_err() {
                return;
            }
            self.ends.push(self.data.len());
        }
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.data.get(start..end)
    }
}

/// Clustering values that one header tells of; tables with more are left to the decoder.
const HEADER_VALUES: usize = 32;

/// Types whose order is a plain comparison of numbers or bytes.
fn is_comparable(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Int | CqlType::BigInt | CqlType::Timestamp
    )
}

impl RowLayout {
    /// Passes rows from `at` on that certainly sort before the bound; `passed` is told where each stands. Returns
    /// where the first other element stands.
    pub(super) fn skip(
        &self,
        bytes: &[u8],
        mut at: usize,
        bound: &BoundValues,
        mut passed: impl FnMut(usize),
    ) -> usize {
        if bound.ends.is_empty() || self.clustering.len() > HEADER_VALUES {
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
        const NOT_PLAIN: u8 = flags::END_OF_PARTITION | flags::IS_MARKER | flags::EXTENSION;
        let mut input = Input::new(bytes, at);
        if input.byte().ok()? & NOT_PLAIN != 0 {
            return None;
        }
        // All values are present and not empty.
        if input.byte().ok()? != 0 {
            return None;
        }
        let mut is_before = false;
        for (index, column) in self.clustering.iter().enumerate() {
            let length = match column.fixed {
                Some(length) => length,
                None => input.length().ok()?,
            };
            let value = input.take(length).ok()?;
            if !is_before {
                match compare(column, value, bound.get(index)?) {
                    Ordering::Less => is_before = true,
                    Ordering::Equal => {}
                    Ordering::Greater => return None,
                }
            }
        }
        let size = input.length().ok()?;
        let end = input.at() + size;
        (is_before && end < bytes.len()).then_some(end)
    }
}

#[inline]
fn compare(column: &ClusteringLayout, value: &[u8], bound: &[u8]) -> Ordering {
    let ordering = match &column.ty {
        CqlType::Int => number::<4, _>(i32::from_be_bytes, value, bound),
        CqlType::BigInt | CqlType::Timestamp => number::<8, _>(i64::from_be_bytes, value, bound),
        _ => value.cmp(bound),
    };
    if column.reversed { ordering.reverse() } else { ordering }
}

#[inline]
fn number<const N: usize, T: Ord>(parse: fn([u8; N]) -> T, value: &[u8], bound: &[u8]) -> Ordering {
    match (value.try_into(), bound.try_into()) {
        (Ok(value), Ok(bound)) => parse(value).cmp(&parse(bound)),
        // Of a length that the type does not have: equal is what nothing follows from.
        _ => Ordering::Equal,
    }
}
