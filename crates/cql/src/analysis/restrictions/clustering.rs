//! The rows of a partition that a WHERE clause selects, as ordered positions: names if every clustering column has `=`
//! or IN, otherwise slices (`ClusteringColumnRestrictions`, `MultiCBuilder`).

use super::restriction::{
    Candidates, End, Operand, PRODUCT_BYTES, Restriction, Test, Value, check_product, invalid, marked,
    room_for_product,
};
use super::statement::{Restrictions, is_filtered};
use crate::analysis::Bindings;
use crate::budget::room_for;
use crate::error::{CqlError, Result};
use helenus_model::byte_comparable::{component, end_bound, end_row};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::schema::Column;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// The rows that one execution selects.
pub(crate) struct RowSelection {
    /// Names or slices.
    pub(crate) filter: Arc<ClusteringFilter>,
    /// No row can match; only static rows remain to be read.
    pub(crate) is_empty: bool,
}

impl RowSelection {
    /// Selects no rows.
    pub(crate) fn nothing() -> RowSelection {
        RowSelection { filter: Arc::new(ClusteringFilter::Names(Vec::new())), is_empty: true }
    }
}

/// Values of the first clustering columns.
type Prefix<'a> = Vec<Value<'a>>;

impl Restrictions {
    /// The rows for these bound values.
    ///
    /// # Errors
    /// Null or unset values.
    pub(crate) fn rows(&self, bindings: &Bindings<'_>) -> Result<RowSelection> {
        let columns = &self.table.clustering;
        let is_names = self.clustering.len() >= columns.len() && self.clustering.has_only_equality_or_in();
        let (filter, is_empty) = if is_names {
            let names = match self.plain_names(bindings)? {
                Some(names) => names,
                None => self.names(bindings)?,
            };
            let is_empty = names.is_empty();
            (ClusteringFilter::Names(names), is_empty)
        } else if self.clustering.is_empty() {
            return Ok(RowSelection { filter: self.everything.clone(), is_empty: false });
        } else {
            let slices = self.slices(bindings)?;
            let is_empty = slices.is_empty();
            (ClusteringFilter::Slices(slices), is_empty)
        };
        Ok(RowSelection { filter: Arc::new(filter), is_empty })
    }

    /// The names if every column has `=` with a single value, the last one possibly IN: they are encoded without
    /// building combinations. Otherwise `None`.
    fn plain_names(&self, bindings: &Bindings<'_>) -> Result<Option<Vec<Vec<u8>>>> {
        let mut prefix = Vec::with_capacity(POSITION_BYTES);
        let mut left = self.table.clustering.len();
        for restriction in self.clustering.iter() {
            left -= restriction.columns.len().min(left);
            match &restriction.test {
                Test::Equal(operand) => match plain_value(operand, restriction, bindings)? {
                    Some(value) => encode_one(restriction.first(), &Some(value), &mut prefix)?,
                    None => return Ok(None),
                },
                Test::In(Candidates::Marker(term)) if left == 0 && !restriction.multi => {
                    let column = restriction.first();
                    let values = marked(term, bindings, column)?;
                    check_product((1, values.len()), PRODUCT_BYTES, "clustering key")?;
                    let mut names = Vec::with_capacity(values.len());
                    for value in values {
                        bindings.calls.work.digits(&column.ty, value.as_deref().unwrap_or_default())?;
                        if value.is_none() {
                            return invalid(format!(
                                "Invalid null value in condition for column {}",
                                column.name
                            ));
                        }
                        let mut name = Vec::with_capacity(prefix.len() + POSITION_BYTES);
                        name.extend_from_slice(&prefix);
                        encode_one(column, &value, &mut name)?;
                        end_row(&mut name);
                        names.push(name);
                    }
                    names.sort_unstable();
                    names.dedup();
                    return Ok(Some(names));
                }
                _ => return Ok(None),
            }
        }
        end_row(&mut prefix);
        Ok(Some(vec![prefix]))
    }

    fn names(&self, bindings: &Bindings<'_>) -> Result<Vec<Vec<u8>>> {
        let mut prefixes: Vec<Prefix<'_>> = vec![Vec::new()];
        for restriction in self.clustering.iter() {
            prefixes = extended(&prefixes, &equal_values(restriction, bindings)?)?;
            // An empty IN: Cassandra does not check the values after it.
            if prefixes.is_empty() {
                break;
            }
        }
        let mut names = Vec::with_capacity(prefixes.len());
        for prefix in &prefixes {
            let mut name = Vec::new();
            encode(&self.table.clustering, prefix, &mut name)?;
            end_row(&mut name);
            names.push(name);
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn slices(&self, bindings: &Bindings<'_>) -> Result<Vec<Slice>> {
        let mut prefixes: Vec<Prefix<'_>> = vec![Vec::new()];
        let mut position = 0;
        for restriction in self.clustering.iter() {
            if is_filtered(restriction, &mut position) {
                break;
            }
            if let Test::Slice(start, end) = &restriction.test {
                let ends = Ends::bind(&restriction.columns, (start, end), bindings)?;
                return self.sliced(&prefixes, &ends);
            }
            prefixes = extended(&prefixes, &equal_values(restriction, bindings)?)?;
        }
        let ends = Ends { columns: &[], start: None, end: None };
        self.sliced(&prefixes, &ends)
    }

    /// The slices of a range after each of the prefixes.
    fn sliced(&self, prefixes: &[Prefix<'_>], ends: &Ends<'_>) -> Result<Vec<Slice>> {
        let mut slices = Vec::new();
        for prefix in prefixes {
            let mut base = Vec::new();
            encode(&self.table.clustering, prefix, &mut base)?;
            ends.slices(&base, &mut slices)?;
        }
        slices.retain(|slice| !slice.is_empty());
        slices.sort_by(|a, b| a.start.cmp(&b.start));
        let mut merged: Vec<Slice> = Vec::with_capacity(slices.len());
        for slice in slices {
            match merged.last_mut() {
                Some(last) if slice.start <= last.end => last.end = last.end.clone().max(slice.end),
                _ => merged.push(slice),
            }
        }
        Ok(merged)
    }
}

/// Initial capacity that is enough for most positions.
const POSITION_BYTES: usize = 32;

/// The value of `=` on a single column; `None` for a tuple. Null is refused.
fn plain_value<'a>(
    operand: &'a Operand,
    restriction: &Restriction,
    bindings: &Bindings<'a>,
) -> Result<Option<Cow<'a, [u8]>>> {
    let column = restriction.first();
    match operand.bind_one(bindings, ("Invalid", column)).transpose()? {
        None => Ok(None),
        Some(Some(value)) => {
            bindings.calls.work.digits(&column.ty, &value)?;
            Ok(Some(value))
        }
        Some(None) => invalid(format!("Invalid null value in condition for column {}", column.name)),
    }
}

/// The values of `=` or IN, each with a part for each column.
fn equal_values<'a>(restriction: &'a Restriction, bindings: &Bindings<'a>) -> Result<Vec<Vec<Value<'a>>>> {
    let column = restriction.first();
    match &restriction.test {
        Test::Equal(operand) => {
            let values = operand.bind(bindings, ("Invalid", column))?;
            if let Some(at) = missing(&values, restriction) {
                let name = &restriction.columns[at.min(restriction.columns.len() - 1)].name;
                return invalid(match operand {
                    Operand::One(_) => format!("Invalid null value in condition for column {name}"),
                    Operand::Tuple(_) | Operand::Marker(..) => {
                        format!("Invalid null value for column {name}")
                    }
                });
            }
            count_digits(&values, &restriction.columns, bindings)?;
            Ok(vec![values])
        }
        Test::In(candidates) => {
            let values = candidates.bind(bindings, ("Invalid", column))?;
            if values.iter().any(|values| missing(values, restriction).is_some()) {
                return invalid(if restriction.multi {
                    let names: Vec<&str> = restriction.columns.iter().map(|column| &*column.name).collect();
                    format!("Invalid null value in condition for columns: [{}]", names.join(", "))
                } else {
                    format!("Invalid null value in condition for column {}", column.name)
                });
            }
            values.iter().try_for_each(|values| count_digits(values, &restriction.columns, bindings))?;
            Ok(values)
        }
        Test::Slice(..) | Test::Contains { .. } => Ok(Vec::new()),
    }
}

/// Counts the digits of numbers, which their ordered form has.
fn count_digits(values: &[Value<'_>], columns: &[Column], bindings: &Bindings<'_>) -> Result<()> {
    let mut parts = columns.iter().zip(values);
    parts.try_for_each(|(column, value)| {
        bindings.calls.work.digits(&column.ty, value.as_deref().unwrap_or_default())
    })
}

/// The index of the column whose value is null, or missing because a tuple is too short.
fn missing(values: &[Value<'_>], restriction: &Restriction) -> Option<usize> {
    let null = values.iter().position(Option::is_none);
    null.or_else(|| (values.len() < restriction.columns.len()).then_some(values.len()))
}

/// Each prefix followed by each of the values.
fn extended<'a>(prefixes: &[Prefix<'a>], values: &[Vec<Value<'a>>]) -> Result<Vec<Prefix<'a>>> {
    check_product((prefixes.len(), values.len()), PRODUCT_BYTES, "clustering key")?;
    let bytes = |values: &Vec<Value<'_>>| values.iter().flatten().map(|value| value.len()).sum::<usize>();
    room_for_product(
        (prefixes.len(), prefixes.iter().map(bytes).sum()),
        (values.len(), values.iter().map(bytes).sum()),
    )?;
    let mut longer = Vec::with_capacity(prefixes.len() * values.len());
    for prefix in prefixes {
        longer.extend(values.iter().map(|values| [&prefix[..], values].concat()));
    }
    Ok(longer)
}

fn encode(columns: &[Column], values: &[Value<'_>], out: &mut Vec<u8>) -> Result<()> {
    for (column, value) in columns.iter().zip(values) {
        encode_one(column, value, out)?;
    }
    Ok(())
}

fn encode_one(column: &Column, value: &Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    // The ordered form of a byte may be two.
    room_for(out.len() + 2 * value.as_deref().map_or(0, <[u8]>::len))?;
    component((&column.ty, column.reversed), value.as_deref(), out)
        .map_err(|error| CqlError::Invalid(error.to_string()))
}

/// One column's part of a range's end: the value, whether the end is inclusive, and whether it is the last part.
type Part<'a> = Option<(Value<'a>, bool, bool)>;

/// A range over one or more clustering columns: the bound values of its ends, in value order.
struct Ends<'a> {
    columns: &'a [Column],
    start: Option<(Vec<Value<'a>>, bool)>,
    end: Option<(Vec<Value<'a>>, bool)>,
}

impl<'a> Ends<'a> {
    fn bind(
        columns: &'a [Column],
        (start, end): (&'a Option<End>, &'a Option<End>),
        bindings: &Bindings<'a>,
    ) -> Result<Ends<'a>> {
        let bind = |end: &'a Option<End>| -> Result<Option<(Vec<Value<'a>>, bool)>> {
            let Some(end) = end else { return Ok(None) };
            let values = end.operand.bind(bindings, ("Invalid", &columns[0]))?;
            // A tuple must not contain nulls; in a single column null is the smallest value.
            let null = values.iter().position(Option::is_none);
            if let Some(at) = null.filter(|_| !matches!(end.operand, Operand::One(_))) {
                let name = &columns[at.min(columns.len() - 1)].name;
                return invalid(format!("Invalid null value in condition for column {name}"));
            }
            count_digits(&values, columns, bindings)?;
            Ok(Some((values, end.inclusive)))
        };
        Ok(Ends { columns, start: bind(start)?, end: bind(end)? })
    }

    /// Appends the slices of the range after `base`.
    ///
    /// If all columns have the same direction this is one slice. Otherwise the range is split wherever the first
    /// columns equal an end's values and the next column has the other direction: `(a, b) > (1, 2)` with `b` descending
    /// is `a = 1` with `b` before 2, and all of `a > 1`.
    fn slices(&self, base: &[u8], out: &mut Vec<Slice>) -> Result<()> {
        let count = |end: &Option<(Vec<Value<'_>>, bool)>| end.as_ref().map_or(0, |(values, _)| values.len());
        let uniform = self.columns.iter().all(|column| column.reversed == self.columns[0].reversed);
        if uniform || count(&self.start).max(count(&self.end)) <= 1 {
            let reversed = self.columns.first().is_some_and(|column| column.reversed);
            let (low, high) = if reversed { (&self.end, &self.start) } else { (&self.start, &self.end) };
            let start = self.position(base, low, true)?;
            let end = self.position(base, high, false)?;
            out.push(Slice { start, end });
            return Ok(());
        }
        self.slices_of_mixed_order(base, 0, (true, true), out)
    }

    /// The position of an end: all its values, then a bound before or after everything with that prefix.
    fn position(&self, base: &[u8], end: &Option<(Vec<Value<'_>>, bool)>, is_low: bool) -> Result<Vec<u8>> {
        let mut position = base.to_vec();
        let inclusive = match end {
            None => true,
            Some((values, inclusive)) => {
                encode(self.columns, values, &mut position)?;
                *inclusive
            }
        };
        end_bound(is_low == inclusive, &mut position);
        Ok(position)
    }

    /// Slices of the columns from `at` on. `base` has the values of the previous columns. `tight` tells for each end
    /// whether `base` equals the end's values so far, so that the end still limits the following columns.
    fn slices_of_mixed_order(
        &self,
        base: &[u8],
        at: usize,
        tight: (bool, bool),
        out: &mut Vec<Slice>,
    ) -> Result<()> {
        let part = |end: &'_ Option<(Vec<Value<'a>>, bool)>, tight: bool| -> Part<'a> {
            let (values, inclusive) = end.as_ref().filter(|_| tight)?;
            let value = values.get(at)?;
            Some((value.clone(), *inclusive, at + 1 == values.len()))
        };
        let (low, high) = (part(&self.start, tight.0), part(&self.end, tight.1));
        let Some(column) = self.columns.get(at).filter(|_| low.is_some() || high.is_some()) else {
            let (mut start, mut end) = (base.to_vec(), base.to_vec());
            end_bound(true, &mut start);
            end_bound(false, &mut end);
            out.push(Slice { start, end });
            return Ok(());
        };
        let with = |value: &Value<'_>| -> Result<Vec<u8>> {
            let mut position = base.to_vec();
            encode_one(column, value, &mut position)?;
            Ok(position)
        };
        // The values strictly between the two ends in this column; the value of an end itself if it is the last part
        // and inclusive.
        let edge = |part: &Part<'_>, is_low: bool| -> Result<Vec<u8>> {
            let Some((value, inclusive, is_last)) = part else {
                let mut position = base.to_vec();
                end_bound(is_low, &mut position);
                return Ok(position);
            };
            let mut position = with(value)?;
            end_bound(is_low == (*inclusive && *is_last), &mut position);
            Ok(position)
        };
        let order = match (&low, &high) {
            // `Ends::bind` has counted their digits, which take longer.
            (Some((Some(low), ..)), Some((Some(high), ..))) => column.ty.compare(low, high),
            _ => Ordering::Less,
        };
        // The low end is already above the high one: no row with this prefix is in the range.
        if order.is_gt() {
            return Ok(());
        }
        let (first, second) = if column.reversed { (&high, &low) } else { (&low, &high) };
        out.push(Slice { start: edge(first, true)?, end: edge(second, false)? });
        // Values that equal an end in this column are limited by the next column.
        let equal = order.is_eq();
        if let Some((value, _, false)) = &low {
            let high_ends = matches!(&high, Some((_, _, true)));
            if !(equal && high_ends) {
                self.slices_of_mixed_order(&with(value)?, at + 1, (true, equal), out)?;
            } else {
                self.end_of_equal((&low, &high), &with(value)?, at, out)?;
            }
        }
        if let Some((value, _, false)) = &high {
            if !equal {
                self.slices_of_mixed_order(&with(value)?, at + 1, (false, true), out)?;
            } else if matches!(&low, Some((_, _, true))) {
                self.end_of_equal((&low, &high), &with(value)?, at, out)?;
            }
        }
        Ok(())
    }

    /// Both ends have the same value in this column, and it is the last part of one of them. If that end is inclusive,
    /// the other end alone limits the following columns; otherwise nothing is in the range.
    fn end_of_equal(
        &self,
        (low, high): (&Part<'a>, &Part<'a>),
        base: &[u8],
        at: usize,
        out: &mut Vec<Slice>,
    ) -> Result<()> {
        match (low, high) {
            (Some((_, true, true)), Some((_, _, false))) => {
                self.slices_of_mixed_order(base, at + 1, (false, true), out)
            }
            (Some((_, _, false)), Some((_, true, true))) => {
                self.slices_of_mixed_order(base, at + 1, (true, false), out)
            }
            _ => Ok(()),
        }
    }
}
