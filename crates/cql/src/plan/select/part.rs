//! Takes values apart and composes them, for selectors such as `m['k']`, `s['a'..'b']`, `{a, b}` and
//! `writetime(m['k'])`.
//!
//! It has elements and slices of sets and maps, values made of other values, and the timestamps and TTLs of parts.

use crate::analysis::selection::Shape;
use crate::budget::{RequestBudget, owned};
use crate::error::Result;
use crate::syntax::ast::TimeFunction;
use helenus_model::cell::Cell;
use helenus_model::row::RowView;
use helenus_model::types::{CqlType, Elements, pack, put_element, put_value};
use std::borrow::Cow;
use std::ops::Range;

/// The type of the keys of a set or map.
pub(super) fn key_type(ty: &CqlType) -> Option<&CqlType> {
    match ty {
        CqlType::Map { key, .. } => Some(key),
        CqlType::Set { element, .. } => Some(element),
        _ => None,
    }
}

/// The keys and values in order; an element of a set is both.
fn entries<'v>(ty: &CqlType, value: &'v [u8]) -> Vec<(&'v [u8], &'v [u8])> {
    let mut found = Vec::new();
    if let CqlType::Map { .. } = ty {
        let mut parts = Elements::of_map(value);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            found.push((key.unwrap_or_default(), value.unwrap_or_default()));
        }
    } else {
        found.extend(
            Elements::of_list(value)
                .map(|element| (element.unwrap_or_default(), element.unwrap_or_default())),
        );
    }
    found
}

/// The value under a key.
///
/// # Errors
/// As `RequestBudget::operation`.
pub(super) fn element<'v>(
    ty: &CqlType,
    value: &'v [u8],
    key: &[u8],
    work: &RequestBudget<'_>,
) -> Result<Option<&'v [u8]>> {
    let Some(index) = index_of(ty, value, key, work)? else { return Ok(None) };
    Ok(entries(ty, value).get(index).map(|(_, value)| *value))
}

/// The index of a key.
///
/// # Errors
/// As `RequestBudget::operation`.
pub(super) fn index_of(
    ty: &CqlType,
    value: &[u8],
    key: &[u8],
    work: &RequestBudget<'_>,
) -> Result<Option<usize>> {
    let Some(of) = key_type(ty) else { return Ok(None) };
    work.value_steps(value.len())?;
    for (index, (found, _)) in entries(ty, value).iter().enumerate() {
        if work.order(of, found, key)?.is_eq() {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The indexes of the entries between two keys, both included.
///
/// # Errors
/// As `RequestBudget::operation`.
pub(super) fn index_range(
    ty: &CqlType,
    value: &[u8],
    (from, to): (Option<&[u8]>, Option<&[u8]>),
    work: &RequestBudget<'_>,
) -> Result<Range<usize>> {
    let Some(of) = key_type(ty) else { return Ok(0..0) };
    work.value_steps(value.len())?;
    let entries = entries(ty, value);
    let before = |key: &[u8], or_equal: bool| {
        place(entries.len(), |index| {
            let order = work.order(of, entries.get(index).map_or(&[], |(found, _)| *found), key)?;
            Ok(order.is_lt() || or_equal && order.is_eq())
        })
    };
    let start = from.map_or(Ok(0), |from| before(from, false))?;
    let end = to.map_or(Ok(entries.len()), |to| before(to, true))?;
    Ok(start..end.max(start))
}

/// The first of `count` places that `is_before` refuses, as `slice::partition_point`, which cannot end with an error.
///
/// # Errors
/// Those of `is_before`.
pub(super) fn place(count: usize, is_before: impl Fn(usize) -> Result<bool>) -> Result<usize> {
    let (mut start, mut end) = (0, count);
    while start < end {
        let middle = start + (end - start) / 2;
        if is_before(middle)? {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(start)
}

/// The collection of the entries between two keys. If there are none, a multi-cell collection is null
/// (`CollectionSerializer.getSliceFromSerialized`).
///
/// # Errors
/// As `RequestBudget::operation`.
pub(super) fn slice(
    ty: &CqlType,
    value: &[u8],
    ends: (Option<&[u8]>, Option<&[u8]>),
    work: &RequestBudget<'_>,
) -> Result<Option<Vec<u8>>> {
    if ends == (None, None) {
        return owned(Cow::Borrowed(value)).map(Some);
    }
    let range = index_range(ty, value, ends, work)?;
    if range.is_empty() && ty.is_multi_cell() {
        return Ok(None);
    }
    let entries = entries(ty, value);
    let found = entries.get(range).unwrap_or_default();
    let mut out = Vec::with_capacity(value.len());
    let is_map = matches!(ty, CqlType::Map { .. });
    let parts = found.iter().flat_map(|(key, value)| [Some(*key), is_map.then_some(*value)]);
    pack(found.len(), parts.flatten().map(Some), &mut out);
    Ok(Some(out))
}

/// A value of this type composed of its parts; a map's parts are keys and values in turn. Sets and maps are not sorted.
pub(super) fn made(ty: &CqlType, parts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let bytes: usize = parts.iter().flatten().map(|part| part.len() + 9).sum();
    let mut out = Vec::with_capacity(4 * parts.len() + bytes + 4);
    let values = parts.iter().map(Option::as_deref);
    match ty {
        CqlType::List { .. } | CqlType::Set { .. } => pack(parts.len(), values, &mut out),
        CqlType::Map { .. } => pack(parts.len() / 2, values, &mut out),
        CqlType::Vector { element, .. } => {
            values.for_each(|value| put_element(element, value.unwrap_or_default(), &mut out));
        }
        _ => values.for_each(|value| put_value(value, &mut out)),
    }
    out
}

/// Cells of a multi-cell set or map, dead ones included.
pub(super) struct CellsBetween<'a> {
    pub(super) row: Option<RowView<'a>>,
    pub(super) shape: Shape,
    pub(super) cells: &'a [Cell],
}

impl<'a> CellsBetween<'a> {
    pub(super) fn live(&self, now_s: i64) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (row, cells) = (self.row, self.cells);
        let live = cells.iter().filter(move |cell| cell.is_live(now_s));
        live.filter_map(move |cell| row.map(|row| (row.path(cell), row.value(cell))))
    }

    /// The value of the only cell; an element of a set is its key.
    pub(super) fn element(&self, now_s: i64) -> Option<&'a [u8]> {
        let (path, value) = self.live(now_s).next()?;
        Some(if self.shape == Shape::Set { path } else { value })
    }

    /// The collection of the cells; null if there are none.
    pub(super) fn packed(&self, now_s: i64) -> Option<Vec<u8>> {
        let count = self.live(now_s).count();
        let is_map = self.shape == Shape::Map;
        let parts = self.live(now_s).flat_map(|(path, value)| [Some(path), is_map.then_some(value)]);
        let mut out = Vec::new();
        pack(count, parts.flatten().map(Some), &mut out);
        (count > 0).then_some(out)
    }
}

/// The times (writetime or TTL) of a column or of a part of it.
pub(super) enum Times {
    /// There is no value.
    None,
    /// The time of a value of one cell; `None` where it has none, for example no TTL.
    One(Option<i64>),
    /// The times of the cells.
    Many(Vec<Option<i64>>),
}

impl Times {
    /// The time of one part. All parts of a value of one cell have the same time.
    pub(super) fn at(self, index: usize) -> Times {
        match self {
            Times::Many(times) => times.get(index).map_or(Times::None, |time| Times::One(*time)),
            other => other,
        }
    }

    /// The times of a range of parts.
    pub(super) fn within(self, range: Range<usize>) -> Times {
        match self {
            _ if range.is_empty() => Times::None,
            Times::Many(times) => Times::Many(times.get(range).unwrap_or_default().to_vec()),
            other => other,
        }
    }

    /// The serialised result of a function: a list if there are several times, unless the function takes the greatest.
    pub(super) fn of(self, function: TimeFunction) -> Option<Vec<u8>> {
        let one = |time: i64| match function {
            TimeFunction::Ttl => (time as i32).to_be_bytes().to_vec(),
            _ => time.to_be_bytes().to_vec(),
        };
        match self {
            Times::None => None,
            Times::One(time) => time.map(one),
            Times::Many(times) if function == TimeFunction::MaxWriteTime => {
                times.into_iter().flatten().max().map(one)
            }
            Times::Many(times) if times.is_empty() => None,
            Times::Many(times) => {
                let times: Vec<Option<Vec<u8>>> = times.into_iter().map(|time| time.map(one)).collect();
                let mut out = Vec::new();
                pack(times.len(), times.iter().map(Option::as_deref), &mut out);
                Some(out)
            }
        }
    }
}
