//! Frozen lists, sets and maps as one value; clients send every collection in this form.
//!
//! Layout: a count (i32), then the elements (of a map: key, value, key, value), each an i32 length and its bytes. A
//! negative length is a null. Source: Cassandra's `CollectionSerializer`. Nothing is copied: iterators borrow the
//! value.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{CqlType, TypeError};
use crate::permission::{Permission, try_sort};

/// Takes one length-prefixed value from the front of `bytes`: `Some(None)` for a null, `None` if `bytes` is too short.
#[inline]
pub fn take_value<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        *bytes = rest;
        return Some(None);
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(Some(value))
}

/// Appends one length-prefixed value; `None` is a null.
pub fn put_value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(value) => {
            out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            out.extend_from_slice(value);
        }
    }
}

/// Appends a list, set or map. `count` is the number of elements, or of a map's entries, whose keys and values then
/// alternate in `values`.
pub fn pack<'a>(count: usize, values: impl IntoIterator<Item = Option<&'a [u8]>>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as i32).to_be_bytes());
    for value in values {
        put_value(value, out);
    }
}

/// The elements of a list or set, or the alternating keys and values of a map. A null is `None`. Ends after the count,
/// or at the end of the bytes; [`CqlType::validate`] detects missing elements.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Elements<'a> {
    /// Iterates over the elements of a list or set. Bytes without a count have no elements.
    pub fn of_list(bytes: &'a [u8]) -> Elements<'a> {
        let (count, rest) = count_and_rest(bytes);
        Elements { rest, left: count }
    }

    /// Iterates over alternating keys and values.
    pub fn of_map(bytes: &'a [u8]) -> Elements<'a> {
        let (count, rest) = count_and_rest(bytes);
        Elements { rest, left: count.saturating_mul(2) }
    }

    /// Number of remaining elements, by the count.
    pub fn left(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let value = take_value(&mut self.rest);
        if value.is_none() {
            self.left = 0;
        }
        value
    }
}

/// Number of elements (of a map: entries) and the bytes after the count.
pub(super) fn count_and_rest(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes.split_first_chunk::<4>() {
        Some((count, rest)) => (usize::try_from(i32::from_be_bytes(*count)).unwrap_or(0), rest),
        None => (0, &[]),
    }
}

/// Number of elements of a list or set, or entries of a map.
pub fn collection_size(bytes: &[u8]) -> usize {
    count_and_rest(bytes).0
}

/// Refuses a collection with a negative count. `validate` accepts it, as Cassandra's does; Cassandra refuses it when it
/// deserialises a bound value (`ListSerializer.deserialize`).
///
/// # Errors
/// `NegativeCount`. Other types never fail.
pub fn check_count(ty: &CqlType, bytes: &[u8]) -> Result<(), TypeError> {
    let what = match ty {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        CqlType::Map { .. } => "map",
        _ => return Ok(()),
    };
    match bytes.first() {
        Some(first) if *first > 0x7F && bytes.len() >= 4 => Err(TypeError::NegativeCount { what }),
        _ => Ok(()),
    }
}

/// The elements of a list that is bound to a marker, which have no value: Cassandra lets a list have them, in contrast to
/// sets, maps and whatever lists are inside of (`ListSerializer.deserialize`, CASSANDRA-6839).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementsWithout {
    /// Some are null.
    pub null: bool,
    /// Some are empty and of a type whose empty value is read as null.
    pub empty: bool,
}

/// Checks a list that is bound to a marker, as Cassandra deserialises it.
///
/// # Errors
/// As [`CqlType::validate`], which also refuses nulls. The first problem in the order of the bytes is told.
pub fn check_bound_list(element: &CqlType, bytes: &[u8]) -> Result<ElementsWithout, TypeError> {
    let cut_short = || TypeError::CutShort { what: "list".to_owned() };
    if bytes.len() < 4 {
        return Err(cut_short());
    }
    let mut found = ElementsWithout::default();
    let (count, mut rest) = count_and_rest(bytes);
    for _ in 0..count {
        match take_value(&mut rest).ok_or_else(cut_short)? {
            Some(value) => {
                element.validate(value)?;
                found.empty |= value.is_empty() && element.reads_empty_as_null();
            }
            None => found.null = true,
        }
    }
    if rest.is_empty() { Ok(found) } else { Err(TypeError::Extraneous { what: "list" }) }
}

/// The list with nulls in place of its empty elements.
pub fn empty_as_null(list: &[u8]) -> Vec<u8> {
    let elements = Elements::of_list(list);
    let mut out = Vec::with_capacity(list.len());
    pack(elements.left(), elements.map(|value| value.filter(|value| !value.is_empty())), &mut out);
    out
}

/// Validates a collection; `what` is `list`, `set` or `map`, `types` are the types of its elements in turn, and `check` validates an
/// element.
pub(super) fn validate(
    bytes: &[u8],
    what: &'static str,
    types: &[&CqlType],
    check: impl Fn(&CqlType, &[u8]) -> Result<(), TypeError>,
) -> Result<(), TypeError> {
    let cut_short = || TypeError::CutShort { what: what.to_owned() };
    if bytes.len() < 4 {
        return Err(cut_short());
    }
    let (count, mut rest) = count_and_rest(bytes);
    for _ in 0..count {
        for ty in types {
            let value = take_value(&mut rest).ok_or_else(cut_short)?.ok_or(TypeError::NullElement)?;
            check(ty, value)?;
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(TypeError::Extraneous { what }) }
}

/// Order of two frozen collections: by their elements in turn, then the shorter first; the empty value is before all
/// others.
pub(super) fn compare(a: &[u8], b: &[u8], types: &[&CqlType]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let ((count_a, mut rest_a), (count_b, mut rest_b)) = (count_and_rest(a), count_and_rest(b));
    for _ in 0..count_a.min(count_b) {
        for ty in types {
            let (Some(a), Some(b)) = (take_value(&mut rest_a), take_value(&mut rest_b)) else {
                return rest_a.len().cmp(&rest_b.len());
            };
            let order = match (a, b) {
                (Some(a), Some(b)) => ty.compare(a, b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            };
            if order.is_ne() {
                return order;
            }
        }
    }
    count_a.cmp(&count_b)
}

/// Sorts sets and maps inside a value and removes duplicates, as storage requires, at every depth of lists, sets, maps
/// and vectors. The contents of tuples and user-defined types stay as they were sent: Cassandra treats them as bytes.
/// Of equal map keys the last value wins. `bytes` must be valid; the result borrows them if nothing changed, which is
/// the usual case.
pub fn normalise<'a>(ty: &CqlType, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    normalise_within(ty, bytes, &mut |_, _| true).unwrap_or(Cow::Borrowed(bytes))
}

/// The same, but asks for the memory that it takes, and counts the bytes that it compares. `None` once it was refused.
pub fn normalise_within<'a>(ty: &CqlType, bytes: &'a [u8], may: Permission<'_>) -> Option<Cow<'a, [u8]>> {
    if !needs_normalising(ty) || bytes.is_empty() {
        return Some(Cow::Borrowed(bytes));
    }
    match ty {
        CqlType::List { element, .. } => rebuild_if_changed(bytes, element, may),
        CqlType::Set { element, .. } => normalise_sorted(bytes, element, None, may),
        CqlType::Map { key, value, .. } => normalise_sorted(bytes, key, Some(value), may),
        CqlType::Vector { element, dimension } => super::vector::normalise(bytes, (element, *dimension), may),
        _ => Some(Cow::Borrowed(bytes)),
    }
}

/// Whether values of this type contain a set or a map that `normalise` sorts.
#[must_use]
pub fn needs_normalising(ty: &CqlType) -> bool {
    match ty {
        CqlType::Set { .. } | CqlType::Map { .. } => true,
        CqlType::List { element, .. } | CqlType::Vector { element, .. } => needs_normalising(element),
        _ => false,
    }
}

/// The number of elements or entries that a collection can have at most, by its length.
fn count_at_most(count: usize, bytes: &[u8]) -> usize {
    count.min(bytes.len() / 4)
}

fn rebuild_if_changed<'a>(bytes: &'a [u8], element: &CqlType, may: Permission<'_>) -> Option<Cow<'a, [u8]>> {
    let elements = Elements::of_list(bytes);
    let count = elements.left();
    if !may(count_at_most(count, bytes) * size_of::<Value<'_>>(), 0) {
        return None;
    }
    let mut values: Vec<Value<'a>> = Vec::with_capacity(count_at_most(count, bytes));
    for value in elements {
        values.push(match value {
            Some(value) => Some(normalise_within(element, value, may)?),
            None => None,
        });
    }
    if all_borrowed(&values) {
        return Some(Cow::Borrowed(bytes));
    }
    if !may(bytes.len(), 0) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    pack(count, values.iter().map(|value| value.as_deref()), &mut out);
    Some(Cow::Owned(out))
}

/// An element, borrowed if unchanged; `None` is a null.
type Value<'a> = Option<Cow<'a, [u8]>>;

fn all_borrowed(values: &[Value<'_>]) -> bool {
    values.iter().all(|value| !matches!(value, Some(Cow::Owned(_))))
}

fn normalise_sorted<'a>(
    bytes: &'a [u8],
    key: &CqlType,
    value: Option<&CqlType>,
    may: Permission<'_>,
) -> Option<Cow<'a, [u8]>> {
    let mut elements = if value.is_some() { Elements::of_map(bytes) } else { Elements::of_list(bytes) };
    let count = count_at_most(elements.left(), bytes);
    if !may(count * size_of::<Entry<'_>>(), 0) {
        return None;
    }
    let mut entries: Vec<Entry<'a>> = Vec::with_capacity(count);
    while let Some(entry_key) = elements.next() {
        let entry_value = match (value, value.and_then(|_| elements.next().flatten())) {
            (Some(ty), Some(bytes)) => Some(normalise_within(ty, bytes, may)?),
            _ => None,
        };
        let entry_key = match entry_key {
            Some(bytes) => Some(normalise_within(key, bytes, may)?),
            None => None,
        };
        entries.push((entry_key, entry_value));
    }
    let mut order = Order { key, bytes: 0, may };
    let unchanged = entries
        .iter()
        .all(|(key, value)| !matches!((key, value), (Some(Cow::Owned(_)), _) | (_, Some(Cow::Owned(_)))));
    let mut pairs = entries.windows(2);
    let is_sorted = pairs.try_fold(true, |sorted, pair| match pair {
        [a, b] if sorted => Ok(order.of(a, b)?.is_lt()),
        _ => Ok::<bool, Refused>(sorted),
    });
    if is_sorted.ok()? && unchanged {
        return Some(Cow::Borrowed(bytes));
    }
    // The sort takes up to two and a half times as much again.
    if !(order.may)(3 * count * size_of::<Entry<'_>>(), 0) {
        return None;
    }
    let entries = sorted_entries(entries, &mut order).ok()?;
    if !(order.may)(bytes.len(), 0) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&(entries.len() as i32).to_be_bytes());
    for (entry_key, entry_value) in &entries {
        put_value(entry_key.as_deref(), &mut out);
        if value.is_some() {
            put_value(entry_value.as_deref(), &mut out);
        }
    }
    Some(Cow::Owned(out))
}

/// A key or element, and the value of a map.
type Entry<'a> = (Value<'a>, Value<'a>);

/// Permission was refused.
struct Refused;

/// What a comparison costs besides its bytes, as a number of bytes.
const COMPARISON_BYTES: usize = 8;
/// The bytes that are compared in one step.
const BYTES_PER_STEP: usize = 256;
/// The bytes that are compared between two questions whether to go on.
const BYTES_BETWEEN_CHECKS: usize = 64 * BYTES_PER_STEP;

/// Compares the keys of entries, and asks from time to time whether to go on.
struct Order<'k, 'p> {
    key: &'k CqlType,
    /// Bytes of the longer of the values that were compared since the last question: of decimals it decides the work.
    bytes: usize,
    may: Permission<'p>,
}

impl Order<'_, '_> {
    fn of(&mut self, a: &Entry<'_>, b: &Entry<'_>) -> Result<Ordering, Refused> {
        let (a, b) = (a.0.as_deref(), b.0.as_deref());
        self.bytes += COMPARISON_BYTES + a.zip(b).map_or(0, |(a, b)| a.len().max(b.len()));
        if self.bytes >= BYTES_BETWEEN_CHECKS {
            let steps = std::mem::take(&mut self.bytes) / BYTES_PER_STEP;
            if !(self.may)(0, steps) {
                return Err(Refused);
            }
        }
        Ok(match (a, b) {
            (Some(a), Some(b)) => self.key.compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    }
}

/// Sorts entries by their keys; equal keys become one entry with the last value.
fn sorted_entries<'a>(entries: Vec<Entry<'a>>, order: &mut Order<'_, '_>) -> Result<Vec<Entry<'a>>, Refused> {
    let mut kept: Vec<Entry<'a>> = Vec::with_capacity(entries.len());
    for entry in try_sort(entries, &mut |a: &Entry<'a>, b: &Entry<'a>| order.of(a, b))? {
        match kept.last_mut() {
            Some(last) if order.of(last, &entry)?.is_eq() => last.1 = entry.1,
            _ => kept.push(entry),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn packed(count: usize, values: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        pack(count, values.iter().map(|value| Some(*value)), &mut out);
        out
    }

    #[test]
    fn sets_and_maps_are_sorted_and_lose_their_doubles() {
        let text = Arc::new(CqlType::Text);
        let set = CqlType::Set { element: text.clone(), frozen: true };
        assert_eq!(*normalise(&set, &packed(3, &[b"b", b"a", b"b"])), packed(2, &[b"a", b"b"]));
        let sorted = packed(2, &[b"a", b"b"]);
        assert!(matches!(normalise(&set, &sorted), Cow::Borrowed(_)));
        let map = CqlType::Map { key: text.clone(), value: Arc::new(set.clone()), frozen: true };
        let unsorted =
            packed(3, &[b"z", &packed(1, &[b"1"]), b"a", &packed(2, &[b"2", b"1"]), b"z", &packed(0, &[])]);
        let expected = packed(2, &[b"a", &packed(2, &[b"1", b"2"]), b"z", &packed(0, &[])]);
        assert_eq!(*normalise(&map, &unsorted), expected);
        let list = CqlType::List { element: Arc::new(set), frozen: true };
        let inner = packed(2, &[b"b", b"a"]);
        assert_eq!(*normalise(&list, &packed(1, &[&inner])), packed(1, &[&sorted]));
    }

    #[test]
    fn damage_is_named_and_never_read_past() {
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        let say = |bytes: &[u8]| list.validate(bytes).unwrap_err().to_string();
        assert_eq!(say(&[]), "Not enough bytes to read a list");
        assert_eq!(say(&[0, 0, 0, 9]), "Not enough bytes to read a list");
        assert_eq!(say(&[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 8]), "Not enough bytes to read a list");
        assert_eq!(say(&[0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]), "Null value read when not allowed");
        assert_eq!(say(&[0, 0, 0, 0, 1]), "Unexpected extraneous bytes after list value");
        assert_eq!(say(&packed(1, &[&[1]])), "Expected 4 or 0 byte int (1)");
    }
}
