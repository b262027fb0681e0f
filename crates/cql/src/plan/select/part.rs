//! Takes values apart and composes them, for selectors such as `m['k']`, `s['a'..'b']`, `{a, b}` and
//! `writetime(m['k'])`.
//!
//! It has elements and slices of sets and maps, values made of other values, and the timestamps and TTLs of parts.

use crate::syntax::ast::TimeFunction;
use helenus_model::types::{CqlType, Elements, normalise, pack, put_element, put_value};
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
pub(super) fn element<'v>(ty: &CqlType, value: &'v [u8], key: &[u8]) -> Option<&'v [u8]> {
    let index = index_of(ty, value, key)?;
    entries(ty, value).get(index).map(|(_, value)| *value)
}

/// The index of a key.
pub(super) fn index_of(ty: &CqlType, value: &[u8], key: &[u8]) -> Option<usize> {
    let of = key_type(ty)?;
    entries(ty, value).iter().position(|(found, _)| of.compare(found, key).is_eq())
}

/// The indexes of the entries between two keys, both included.
pub(super) fn index_range(
    ty: &CqlType,
    value: &[u8],
    (from, to): (Option<&[u8]>, Option<&[u8]>),
) -> Range<usize> {
    let Some(of) = key_type(ty) else { return 0..0 };
    let entries = entries(ty, value);
    let start = from.map_or(0, |from| entries.partition_point(|(key, _)| of.compare(key, from).is_lt()));
    let end = to.map_or(entries.len(), |to| entries.partition_point(|(key, _)| of.compare(key, to).is_le()));
    start..end.max(start)
}

/// The collection of the entries between two keys. If there are none, a multi-cell collection is null
/// (`CollectionSerializer.getSliceFromSerialized`).
pub(super) fn slice(ty: &CqlType, value: &[u8], ends: (Option<&[u8]>, Option<&[u8]>)) -> Option<Vec<u8>> {
    if ends == (None, None) {
        return Some(value.to_vec());
    }
    let range = index_range(ty, value, ends);
    if range.is_empty() && ty.is_multi_cell() {
        return None;
    }
    let entries = entries(ty, value);
    let found = entries.get(range).unwrap_or_default();
    let mut out = Vec::new();
    let is_map = matches!(ty, CqlType::Map { .. });
    let parts = found.iter().flat_map(|(key, value)| [Some(*key), is_map.then_some(*value)]);
    pack(found.len(), parts.flatten().map(Some), &mut out);
    Some(out)
}

/// A value of this type composed of its parts; a map's parts are keys and values in turn.
pub(super) fn made(ty: &CqlType, parts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    let values = parts.iter().map(Option::as_deref);
    match ty {
        CqlType::List { .. } | CqlType::Set { .. } => pack(parts.len(), values, &mut out),
        CqlType::Map { .. } => pack(parts.len() / 2, values, &mut out),
        CqlType::Vector { element, .. } => {
            values.for_each(|value| put_element(element, value.unwrap_or_default(), &mut out));
        }
        _ => values.for_each(|value| put_value(value, &mut out)),
    }
    match ty {
        CqlType::Set { .. } | CqlType::Map { .. } => normalise(ty, &out).into_owned(),
        _ => out,
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
