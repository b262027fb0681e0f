//! Binds the WHERE clause of a write: computes the partition keys, rows and ranges of rows that it selects.
//!
//! The statement's `Filter` (`filter`) has the terms; here they get their values. `apply` calls it. The errors for null
//! and unset values are those of `SingleColumnRestriction` and `MultiColumnRestriction`.

use super::filter::Filter;
use super::restriction::{Choices, Restriction, Test, Values};
use crate::analysis::restrictions::{check_product, room_for_product};
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::{owned, room_for, sorted_distinct};
use crate::error::{CqlError, Result};
use helenus_model::byte_comparable::clustering_bound;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, Elements, Fields, collection_size};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// The most bytes of a serialised partition key and of a clustering: files store both lengths in 16 bits.
pub(crate) const KEY_BYTES_MAX: usize = 65_535;

/// Serialised clustering values.
pub(super) type Clustering<'a> = Vec<Cow<'a, [u8]>>;

/// A range of rows: each end is a prefix, and which side of the prefix's rows the end is on.
#[derive(Debug)]
pub(super) struct RowRange<'a> {
    pub(super) start: (Clustering<'a>, bool),
    pub(super) end: (Clustering<'a>, bool),
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// Refuses lists with nulls, which a marker may have brought: a partition key has none, in contrast to other values and to clusterings
/// (`Validation.validateKey`).
fn check_stored(columns: &[Column], values: &[Cow<'_, [u8]>]) -> Result<()> {
    for (column, value) in columns.iter().zip(values) {
        if matches!(column.ty, CqlType::List { .. }) && !value.is_empty() {
            column.ty.validate(value).map_err(|error| CqlError::Invalid(error.to_string()))?;
        }
    }
    Ok(())
}

impl Filter {
    /// The serialised keys of the partitions, without duplicates.
    pub(super) fn partition_keys(&self, table: &Table, bindings: &Bindings<'_>) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        if let [Restriction { test: Test::Equal(Values::One(term)), names, .. }] = &self.keys[..] {
            let value = value_of(term, (names, 0, Side::Alone), bindings)?;
            check_length(value.len(), value.len())?;
            check_stored(&table.partition_key, std::slice::from_ref(&value))?;
            keys.push(owned(value)?);
        } else {
            let mut rows = product(&self.keys, bindings)?;
            // Of equal keys with different bytes, such as 1.0 and 1, the first counts.
            if rows.len() > 1 {
                rows.iter().try_for_each(|values| check_lengths(values))?;
                rows = distinct(&table.partition_key, rows, bindings)?;
            }
            for values in rows {
                check_stored(&table.partition_key, &values)?;
                room_for(KEY_BYTES_MAX)?;
                keys.push(serialised_key(&values)?);
            }
        }
        for key in &keys {
            if key.is_empty() {
                return invalid("Key may not be empty".into());
            }
            check_length(key.len(), key.len())?;
        }
        debug_assert_eq!(self.keys.len(), table.partition_key.len());
        Ok(keys)
    }

    /// The clusterings of the rows; none if an IN is empty, a single one without values if nothing is restricted.
    pub(super) fn rows<'a>(&'a self, table: &Table, bindings: &Bindings<'a>) -> Result<Vec<Clustering<'a>>> {
        let mut rows = product(&self.clustering, bindings)?;
        for row in &rows {
            check_lengths(row)?;
            // Their ordered forms have the digits of numbers.
            for (value, column) in row.iter().zip(&table.clustering) {
                bindings.calls.work.digits(&column.ty, value)?;
            }
        }
        // Of equal rows with different bytes the first counts, as of keys.
        if rows.len() > 1 {
            rows = distinct(&table.clustering, rows, bindings)?;
        }
        Ok(rows)
    }

    /// The ranges of rows, without empty ones.
    pub(super) fn ranges<'a>(&'a self, table: &Table, bindings: &Bindings<'a>) -> Result<Vec<RowRange<'a>>> {
        let (slice, prefix) = match self.clustering.split_last() {
            Some((Restriction { test: Test::Slice(start, end), names, first }, prefix)) => {
                (Some((start, end, names, *first)), prefix)
            }
            _ => (None, &self.clustering[..]),
        };
        let mut ranges = Vec::new();
        for prefix in product(prefix, bindings)? {
            bindings.calls.work.step()?;
            let Some((start, end, names, first)) = slice else {
                ranges.push(RowRange { start: (prefix.clone(), true), end: (prefix, false) });
                continue;
            };
            if let (Some(start), Some(end)) = (start, end)
                && is_empty_by_null((start, end), direction(table, first, names), bindings)?
            {
                continue;
            }
            let lower = bound(&prefix, start.as_ref(), names, bindings)?;
            let upper = bound(&prefix, end.as_ref(), names, bindings)?;
            let Some(reversed) = direction(table, first, names) else {
                Mixed { columns: &table.clustering, low: lower, high: upper }.add(
                    prefix,
                    (true, true),
                    &mut ranges,
                );
                continue;
            };
            // `> x` is after the rows of x, `>= x` before them; in a descending column this is an upper end.
            let (start, end) = if reversed {
                let start = upper.map_or((prefix.clone(), true), |(values, included)| (values, included));
                let end = lower.map_or((prefix, false), |(values, included)| (values, !included));
                (start, end)
            } else {
                let start = lower.map_or((prefix.clone(), true), |(values, included)| (values, included));
                let end = upper.map_or((prefix, false), |(values, included)| (values, !included));
                (start, end)
            };
            let range = RowRange { start, end };
            if !range.is_empty(&table.clustering) {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

impl RowRange<'_> {
    fn is_empty(&self, columns: &[Column]) -> bool {
        let encoded = |(values, before): &(Clustering<'_>, bool)| {
            let mut out = Vec::new();
            clustering_bound(values.iter().map(|value| Some(&**value)), columns, *before, &mut out)
                .map(|()| out)
        };
        match (encoded(&self.start), encoded(&self.end)) {
            (Ok(start), Ok(end)) => start >= end,
            // Values have already been checked against their types.
            _ => true,
        }
    }
}

/// Whether the columns of a slice all descend; `None` if they have different directions.
fn direction(table: &Table, first: usize, names: &[Arc<str>]) -> Option<bool> {
    let columns = table.clustering.get(first..first + names.len()).unwrap_or_default();
    let reversed = columns.first().is_some_and(|column| column.reversed);
    columns.iter().all(|column| column.reversed == reversed).then_some(reversed)
}

/// One end of a slice: all values from the first clustering column on, and whether the end is included.
type End<'a> = Option<(Clustering<'a>, bool)>;

/// A slice over columns of different directions. It consists of several ranges: the values between its ends in the
/// first column; then, where that column equals an end, the values between the ends in the next column; and so on.
struct Mixed<'a, 't> {
    columns: &'t [Column],
    /// The ends in the order of values.
    low: End<'a>,
    high: End<'a>,
}

/// An end in one column: its value, whether the value is included, and whether it is the last value of the end.
type Part<'a> = Option<(Cow<'a, [u8]>, bool, bool)>;

impl<'a> Mixed<'a, '_> {
    /// Adds the ranges below `prefix`. `tight` is, for each end, whether the prefix equals the end so far, so that the
    /// end still bounds the next columns.
    fn add(&self, prefix: Clustering<'a>, tight: (bool, bool), ranges: &mut Vec<RowRange<'a>>) {
        let at = prefix.len();
        let part = |end: &'_ End<'a>, tight: bool| -> Part<'a> {
            let (values, included) = end.as_ref().filter(|_| tight)?;
            let is_last = at + 1 == values.len();
            values.get(at).map(|value| (value.clone(), *included && is_last, is_last))
        };
        let (low, high) = (part(&self.low, tight.0), part(&self.high, tight.1));
        let Some(column) = self.columns.get(at).filter(|_| low.is_some() || high.is_some()) else {
            ranges.push(RowRange { start: (prefix.clone(), true), end: (prefix, false) });
            return;
        };
        let order = match (&low, &high) {
            (Some(low), Some(high)) => column.ty.compare(&low.0, &high.0),
            _ => std::cmp::Ordering::Less,
        };
        if order.is_gt() {
            return;
        }
        let with = |value: &Cow<'a, [u8]>| [&prefix[..], std::slice::from_ref(value)].concat();
        let edge = |part: &Part<'a>, is_start: bool| match part {
            None => (prefix.clone(), is_start),
            Some((value, included, _)) => (with(value), is_start == *included),
        };
        let (first, second) = if column.reversed { (&high, &low) } else { (&low, &high) };
        let between = RowRange { start: edge(first, true), end: edge(second, false) };
        if !between.is_empty(self.columns) {
            ranges.push(between);
        }
        // Rows that equal an end in this column are bounded by the next one, unless the other end excludes them.
        let goes_on = |end: &Part<'a>| end.as_ref().filter(|(_, _, last)| !last).cloned();
        if order.is_eq() {
            let lets =
                |end: &Part<'a>| end.as_ref().is_none_or(|(_, included, is_last)| *included || !is_last);
            if let Some((value, ..)) = goes_on(&low).or_else(|| goes_on(&high))
                && lets(&low)
                && lets(&high)
            {
                let tight = (goes_on(&low).is_some(), goes_on(&high).is_some());
                self.add(with(&value), tight, ranges);
            }
            return;
        }
        if let Some((value, ..)) = goes_on(&low) {
            self.add(with(&value), (true, false), ranges);
        }
        if let Some((value, ..)) = goes_on(&high) {
            self.add(with(&value), (false, true), ranges);
        }
    }
}

/// Whether a range of one column is empty because an end is null. Null is before every value, in a descending column
/// too (`ClusteringComparator.compareComponent`). A null end is an error only if the range is not empty.
fn is_empty_by_null(
    (lower, upper): (&(Values, bool), &(Values, bool)),
    reversed: Option<bool>,
    bindings: &Bindings<'_>,
) -> Result<bool> {
    let (Values::One(low), Values::One(high)) = (&lower.0, &upper.0) else { return Ok(false) };
    let is_null = |term: &Term| Ok::<bool, CqlError>(matches!(term.bind(bindings)?, Bound::Null));
    Ok(match (is_null(low)?, is_null(high)?) {
        (true, true) => !(lower.1 && upper.1),
        (true, false) => reversed == Some(true),
        (false, true) => reversed == Some(false),
        (false, false) => false,
    })
}

fn bound<'a>(
    prefix: &Clustering<'a>,
    bound: Option<&'a (Values, bool)>,
    names: &[Arc<str>],
    bindings: &Bindings<'a>,
) -> Result<Option<(Clustering<'a>, bool)>> {
    let Some((values, included)) = bound else { return Ok(None) };
    let mut all = prefix.clone();
    push_values((values, Side::Bound), names, bindings, &mut all)?;
    Ok(Some((all, *included)))
}

/// Rows in the order of their columns, without equal ones.
fn distinct<'a>(
    columns: &[Column],
    rows: Vec<Clustering<'a>>,
    bindings: &Bindings<'_>,
) -> Result<Vec<Clustering<'a>>> {
    let work = bindings.calls.work;
    let compare = |a: &Clustering<'a>, b: &Clustering<'a>| {
        for (column, (a, b)) in columns.iter().zip(a.iter().zip(b)) {
            let order = work.order(&column.ty, a, b)?;
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    };
    sorted_distinct(rows, compare, work)
}

/// The memory for a row or partition of a write besides its values: its key, its change, its entries in two lists.
pub(super) const COMBINATION_BYTES: usize = 256;

/// The memory of an element of an IN list besides its bytes: a list for its values, and the allocator's bytes of both.
const CHOICE_BYTES: usize = 128;

/// The bytes of values that are copied with their row.
fn owned_bytes(rows: &[Clustering<'_>]) -> usize {
    let bytes = |value: &Cow<'_, [u8]>| if let Cow::Owned(bytes) = value { bytes.len() } else { 0 };
    rows.iter().flatten().map(bytes).sum()
}

/// All combinations of the values that restrictions allow.
fn product<'a>(restrictions: &'a [Restriction], bindings: &Bindings<'a>) -> Result<Vec<Clustering<'a>>> {
    let mut rows: Vec<Clustering<'a>> = vec![Vec::with_capacity(restrictions.len())];
    for restriction in restrictions {
        // An empty IN: Cassandra does not check the values after it.
        if rows.is_empty() {
            break;
        }
        let names = &restriction.names;
        match &restriction.test {
            Test::Equal(values) => {
                for row in &mut rows {
                    push_values((values, Side::Equal), names, bindings, row)?;
                }
            }
            Test::In(choices) => {
                let choices = chosen(choices, names, bindings)?;
                let bytes = COMBINATION_BYTES + size_of::<Cow<'_, [u8]>>() * restrictions.len();
                check_product((rows.len(), choices.len()), bytes, "the columns of the primary key")?;
                room_for_product((rows.len(), owned_bytes(&rows)), (choices.len(), owned_bytes(&choices)))?;
                bindings.calls.work.check()?;
                rows = rows
                    .iter()
                    .flat_map(|row| choices.iter().map(|choice| row.iter().chain(choice).cloned().collect()))
                    .collect();
            }
            // Only the last clustering column may have a slice, which `ranges` handles.
            Test::Slice(..) => {}
        }
    }
    Ok(rows)
}

fn chosen<'a>(
    choices: &'a Choices,
    names: &[Arc<str>],
    bindings: &Bindings<'a>,
) -> Result<Vec<Clustering<'a>>> {
    match choices {
        Choices::List(list) => {
            // Among the values of one column, a null is reported before an unset value.
            let mut ones = list.iter().filter_map(|values| match values {
                Values::One(term) => Some(term),
                _ => None,
            });
            if ones.clone().any(|term| matches!(term.bind(bindings), Ok(Bound::Unset)))
                && ones.any(|term| matches!(term.bind(bindings), Ok(Bound::Null)))
            {
                return Err(null_value(names, 0, Side::Alone));
            }
            let mut all = Vec::with_capacity(list.len());
            for values in list {
                let mut row = Vec::with_capacity(names.len());
                push_values((values, Side::In), names, bindings, &mut row)?;
                all.push(row);
            }
            Ok(all)
        }
        Choices::Marker(term) => {
            let list = match term.bind(bindings)? {
                Bound::Bytes(bytes) => bytes,
                Bound::Null if names.len() > 1 => {
                    return invalid("Invalid null value for IN restriction".into());
                }
                Bound::Null => return invalid(format!("Invalid null value for column {}", joined(names))),
                Bound::Unset => return invalid(format!("Invalid unset value for column {}", joined(names))),
            };
            let count = collection_size(&list).min(list.len() / 4);
            check_product((count, 1), CHOICE_BYTES, "the columns of the primary key")?;
            room_for(list.len() + count * CHOICE_BYTES)?;
            if names.len() > 1 {
                // A tuple's fields may be empty.
                room_for(list.len() + count * CHOICE_BYTES + list.len() / 4 * size_of::<Cow<'_, [u8]>>())?;
            }
            bindings.calls.work.value_steps(list.len())?;
            let mut all = Vec::with_capacity(count);
            for element in Elements::of_list(&list) {
                let element = element.ok_or_else(|| {
                    null_value(names, 0, if names.len() > 1 { Side::In } else { Side::Bound })
                })?;
                let row: Result<Clustering<'a>> = match names.len() {
                    1 => Ok(vec![Cow::Owned(element.to_vec())]),
                    _ => tuple_values(element, names, Side::In),
                };
                all.push(row?);
            }
            Ok(all)
        }
    }
}

/// Appends the values of one restriction. Null and unset are errors.
fn push_values<'a>(
    (values, side): (&'a Values, Side),
    names: &[Arc<str>],
    bindings: &Bindings<'a>,
    out: &mut Clustering<'a>,
) -> Result<()> {
    match values {
        Values::One(term) => out.push(value_of(term, (names, 0, Side::Alone), bindings)?),
        Values::Each(terms) => {
            for (at, term) in terms.iter().enumerate() {
                out.push(value_of(term, (names, at, side), bindings)?);
            }
        }
        Values::Tuple(term) => {
            let tuple = value_of(term, (names, 0, side), bindings)?;
            room_for(tuple.len())?;
            out.extend(tuple_values(&tuple, names, side)?);
        }
    }
    Ok(())
}

fn tuple_values(tuple: &[u8], names: &[Arc<str>], side: Side) -> Result<Clustering<'static>> {
    let mut fields = Fields::of(tuple);
    let each = (0..names.len()).map(|at| match fields.next().flatten() {
        Some(value) => Ok(Cow::Owned(value.to_vec())),
        None => Err(null_value(names, at, side)),
    });
    each.collect()
}

fn value_of<'a>(
    term: &'a Term,
    (names, at, side): (&[Arc<str>], usize, Side),
    bindings: &Bindings<'a>,
) -> Result<Cow<'a, [u8]>> {
    match term.bind(bindings)? {
        Bound::Bytes(bytes) => Ok(bytes),
        Bound::Null => Err(null_value(names, at, side)),
        Bound::Unset if side == Side::Alone => {
            invalid(format!("Invalid unset value for column {}", joined(names)))
        }
        Bound::Unset => invalid(format!("Invalid unset value for tuple field number {at}")),
    }
}

/// Where a value is used, alone or in a tuple. Cassandra has a different error text for null and unset in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Alone,
    Equal,
    In,
    Bound,
}

/// The error for null in the column of this index (`MultiColumnRestriction`, `SingleColumnRestriction`).
fn null_value(names: &[Arc<str>], at: usize, side: Side) -> CqlError {
    let name = names.get(at).map_or("", |name| name);
    CqlError::Invalid(match side {
        Side::Equal => format!("Invalid null value for column {name}"),
        Side::In => format!("Invalid null value in condition for columns: [{}]", joined(names)),
        Side::Alone | Side::Bound => null_text(name),
    })
}

/// The error text for null in a single column.
pub(super) fn null_text(name: &str) -> String {
    format!("Invalid null value in condition for column {name}")
}

fn joined(names: &[Arc<str>]) -> String {
    names.iter().map(|name| &**name).collect::<Vec<_>>().join(", ")
}

/// A partition key of several columns: for each value its length, the value, and a zero byte (`CompositeType`).
fn serialised_key(values: &[Cow<'_, [u8]>]) -> Result<Vec<u8>> {
    check_lengths(values)?;
    let total: usize = values.iter().map(|value| value.len()).sum();
    if let [only] = values {
        return Ok(only.to_vec());
    }
    let mut key = Vec::with_capacity(total + values.len() * 3);
    for value in values {
        key.extend_from_slice(&(value.len() as u16).to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    Ok(key)
}

/// Refuses values that are too long for the columns of a key or clustering.
fn check_lengths(values: &[Cow<'_, [u8]>]) -> Result<()> {
    let total: usize = values.iter().map(|value| value.len()).sum();
    for value in values {
        check_length(value.len(), total)?;
    }
    check_length(total, total)
}

fn check_length(length: usize, told: usize) -> Result<()> {
    if length > KEY_BYTES_MAX {
        return invalid(format!("Key length of {told} is longer than maximum of {KEY_BYTES_MAX}"));
    }
    Ok(())
}
