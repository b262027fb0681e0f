//! One restriction: its columns, and the condition on their values.

use crate::analysis::{Bindings, Bound, Term};
use crate::budget::{RequestBudget, normalised, room_for};
use crate::error::{CqlError, Result};
use crate::request::BoundValue;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, Elements, Fields, check_bound_list, check_count, collection_size};
use std::borrow::Cow;

/// A bound value; `None` is null.
pub(crate) type Value<'a> = Option<Cow<'a, [u8]>>;

/// The right side of a relation: a value for each of its columns.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// The value of a single column.
    One(Term),
    /// `(1, ?)`: a term for each column.
    Tuple(Vec<Term>),
    /// `?` for the whole tuple, and the marker's name.
    Marker(Term, Box<str>),
}

impl Operand {
    /// The value of a single column's operand; `None` for operands of several columns. `refusal` as in `bind`.
    pub(super) fn bind_one<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        (refusal, column): (&'static str, &Column),
    ) -> Option<Result<Value<'a>>> {
        let Operand::One(term) = self else { return None };
        Some(match term.bind(bindings) {
            Err(error) => Err(error),
            Ok(Bound::Unset) => invalid(format!("{refusal} unset value for column {}", column.name)),
            Ok(Bound::Null) => Ok(None),
            Ok(Bound::Bytes(bytes)) => Ok(Some(bytes)),
        })
    }

    /// The values, one for each column. `refusal` begins the error for an unset value of the single column `column`.
    pub(super) fn bind<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        (refusal, column): (&'static str, &Column),
    ) -> Result<Vec<Value<'a>>> {
        if let Some(value) = self.bind_one(bindings, (refusal, column)) {
            return Ok(vec![value?]);
        }
        match self {
            Operand::One(_) => Ok(Vec::new()),
            Operand::Tuple(terms) => {
                let bind = |(index, term): (usize, &'a Term)| match term.bind(bindings)? {
                    Bound::Unset => invalid(format!("Invalid unset value for tuple field number {index}")),
                    Bound::Null => Ok(None),
                    Bound::Bytes(bytes) => Ok(Some(bytes)),
                };
                terms.iter().enumerate().map(bind).collect()
            }
            Operand::Marker(term, name) => match term.bind(bindings)? {
                Bound::Unset => invalid(format!("Invalid unset value for tuple {name}")),
                Bound::Null => invalid(format!("Invalid null value for tuple {name}")),
                Bound::Bytes(bytes) => fields(bytes, bindings.calls.work),
            },
        }
    }
}

fn fields<'a>(bytes: Cow<'a, [u8]>, work: &RequestBudget<'_>) -> Result<Vec<Value<'a>>> {
    work.value_steps(bytes.len())?;
    // A null field takes four bytes.
    room_for(bytes.len() / 4 * VALUE_BYTES)?;
    Ok(match bytes {
        Cow::Borrowed(bytes) => Fields::of(bytes).map(|field| field.map(Cow::Borrowed)).collect(),
        Cow::Owned(bytes) => {
            room_for(bytes.len() + bytes.len() / 4 * VALUE_BYTES)?;
            Fields::of(&bytes).map(|field| field.map(|f| Cow::Owned(f.to_vec()))).collect()
        }
    })
}

/// The memory of a value that is taken out of a list or tuple, besides its bytes: its place in a list that grows by
/// doubling.
const VALUE_BYTES: usize = 2 * size_of::<Value<'_>>();
/// The memory of a value that is in a list of its own, besides its bytes: its place in the list of values, in a list of
/// lists, and a list for one value with the allocator's bytes.
const ROW_BYTES: usize = VALUE_BYTES + 2 * size_of::<Vec<Value<'_>>>() + size_of::<Value<'_>>() + 16;

/// The right side of IN.
#[derive(Clone, Debug)]
pub(super) enum Candidates {
    /// Individual values or tuples.
    Each(Vec<Operand>),
    /// One marker for a list of values.
    Marker(Term),
    /// One marker for a list of tuples, and its name.
    TupleMarker(Term, Box<str>),
}

impl Candidates {
    /// The values of a single column, for filtering rows. An individual value that is unset counts as empty here and is
    /// refused everywhere else (`INRestriction.addToRowFilter` packs Cassandra's marker of unset values, which is
    /// empty).
    pub(super) fn bind_filter<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        column: &Column,
    ) -> Result<Vec<Value<'a>>> {
        let Candidates::Each(operands) = self else {
            let values = self.bind(bindings, ("Unsupported", column))?;
            return Ok(values.into_iter().map(|mut value| value.pop().flatten()).collect());
        };
        let bind = |operand: &'a Operand| match operand {
            Operand::One(term) => Ok(match term.bind(bindings)? {
                Bound::Unset => Some(Cow::Borrowed(&[][..])),
                Bound::Null => None,
                Bound::Bytes(bytes) => Some(bytes),
            }),
            _ => Ok(operand.bind(bindings, ("Unsupported", column))?.pop().flatten()),
        };
        operands.iter().map(bind).collect()
    }

    /// The values, each with a part for each column.
    pub(super) fn bind<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        (refusal, column): (&'static str, &Column),
    ) -> Result<Vec<Vec<Value<'a>>>> {
        match self {
            Candidates::Each(operands) => {
                operands.iter().map(|operand| operand.bind(bindings, (refusal, column))).collect()
            }
            Candidates::Marker(term) => {
                let values = marked(term, bindings, column)?;
                Ok(values.into_iter().map(|value| vec![value]).collect())
            }
            Candidates::TupleMarker(term, name) => {
                let values = elements(term, bindings, |what| match what {
                    "null" => "Invalid null value for IN restriction".to_owned(),
                    _ => format!("Invalid {what} value for {name}"),
                })?;
                let work = bindings.calls.work;
                values
                    .into_iter()
                    .map(|value| value.map_or_else(|| Ok(Vec::new()), |value| fields(value, work)))
                    .collect()
            }
        }
    }
}

/// The values of `IN ?` on a single column.
pub(super) fn marked<'a>(term: &Term, bindings: &Bindings<'a>, column: &Column) -> Result<Vec<Value<'a>>> {
    elements(term, bindings, |what| format!("Invalid {what} value for column {}", column.name))
}

/// The elements of the list bound to a marker; null for those that Cassandra reads as null. `refusal` makes the text for a
/// `null` or `unset` list.
///
/// # Errors
/// The list is null, unset or invalid.
pub(crate) fn elements<'a>(
    term: &Term,
    bindings: &Bindings<'a>,
    refusal: impl Fn(&str) -> String,
) -> Result<Vec<Value<'a>>> {
    let Term::Marker(index, CqlType::List { element, .. }) = term else { return Ok(Vec::new()) };
    let bytes = match bindings.values.get(*index) {
        BoundValue::Null => return invalid(refusal("null")),
        BoundValue::Unset => return invalid(refusal("unset")),
        BoundValue::Bytes(bytes) => bytes,
    };
    let work = bindings.calls.work;
    work.value_steps(bytes.len())?;
    let list = CqlType::List { element: element.clone(), frozen: true };
    check_count(&list, bytes)
        .and_then(|()| check_bound_list(element, bytes))
        .map_err(|error| CqlError::Invalid(error.to_string()))?;
    let count = collection_size(bytes);
    check_product((count, 1), ROW_BYTES, "a column")?;
    let reads_empty_as_null = element.reads_empty_as_null();
    let mut values = Vec::with_capacity(count);
    for value in Elements::of_list(bytes) {
        let value = value.filter(|value| !(reads_empty_as_null && value.is_empty()));
        values.push(match value {
            Some(value) => Some(normalised(element, value, work)?),
            None => None,
        });
    }
    Ok(values)
}

/// One end of a range.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) operand: Operand,
    pub(super) inclusive: bool,
}

/// The condition.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Equal(Operand),
    In(Candidates),
    /// Start and end of a range.
    Slice(Option<End>, Option<End>),
    Contains {
        values: Vec<Term>,
        keys: Vec<Term>,
        entries: Vec<(Term, Term)>,
    },
}

/// A restriction on one column, or on several together.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// Its columns; several are clustering columns in order.
    pub(super) columns: Vec<Column>,
    /// Whether it is written as a tuple.
    pub(super) multi: bool,
    pub(super) test: Test,
}

impl Restriction {
    pub(super) fn first(&self) -> &Column {
        &self.columns[0]
    }

    pub(super) fn last(&self) -> &Column {
        &self.columns[self.columns.len() - 1]
    }

    pub(super) fn is_equal(&self) -> bool {
        matches!(self.test, Test::Equal(_))
    }

    pub(super) fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_))
    }

    pub(super) fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice(..))
    }

    pub(super) fn is_contains(&self) -> bool {
        matches!(self.test, Test::Contains { .. })
    }

    /// If both are CONTAINS restrictions, takes over the other's conditions and returns true: each of many relations on
    /// a column then costs the same. If `false`, the two must be merged.
    pub(super) fn merge_contains(&mut self, other: &Restriction) -> bool {
        let (
            Test::Contains { values, keys, entries },
            Test::Contains { values: more_values, keys: more_keys, entries: more_entries },
        ) = (&mut self.test, &other.test)
        else {
            return false;
        };
        values.extend(more_values.iter().cloned());
        keys.extend(more_keys.iter().cloned());
        entries.extend(more_entries.iter().cloned());
        true
    }

    /// Merges this restriction with another on some of the same columns.
    ///
    /// # Errors
    /// The two cannot be combined.
    pub(super) fn merge(&self, other: &Restriction) -> Result<Restriction> {
        // A single column combined with a tuple counts as a tuple of one, except for CONTAINS.
        let multi = self.multi || (other.multi && !self.is_contains());
        let (common, quoted) = if multi && (self.multi || other.multi) {
            let common = self.columns_in_common(other);
            let quoted = format!("\"{common}\"");
            (common, quoted)
        } else {
            (self.first().name.to_string(), format!("\"{}\"", self.first().name))
        };
        match (&self.test, &other.test) {
            (Test::Equal(_), _) => invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes an Equal"
            )),
            (Test::In(_), _) => invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes a IN"
            )),
            (Test::Slice(start, end), Test::Slice(other_start, other_end)) => {
                if multi && self.first().position != other.first().position {
                    let later = if self.first().position > other.first().position { self } else { other };
                    return invalid(format!(
                        "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                        later.first().name
                    ));
                }
                if start.is_some() && other_start.is_some() {
                    return invalid(format!(
                        "More than one restriction was found for the start bound on {common}"
                    ));
                }
                if end.is_some() && other_end.is_some() {
                    return invalid(format!(
                        "More than one restriction was found for the end bound on {common}"
                    ));
                }
                let longer = if self.columns.len() >= other.columns.len() { self } else { other };
                let start = start.clone().or_else(|| other_start.clone());
                let end = end.clone().or_else(|| other_end.clone());
                Ok(Restriction { columns: longer.columns.clone(), multi, test: Test::Slice(start, end) })
            }
            (Test::Slice(..), _) => invalid(format!(
                "Column {quoted} cannot be restricted by both an equality and an inequality relation"
            )),
            (
                Test::Contains { values, keys, entries },
                Test::Contains { values: more_values, keys: more_keys, entries: more_entries },
            ) => {
                let test = Test::Contains {
                    values: [&values[..], more_values].concat(),
                    keys: [&keys[..], more_keys].concat(),
                    entries: [&entries[..], more_entries].concat(),
                };
                Ok(Restriction { columns: self.columns.clone(), multi: false, test })
            }
            (Test::Contains { .. }, _) => invalid(format!(
                "Collection column {} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality",
                self.first().name
            )),
        }
    }

    fn columns_in_common(&self, other: &Restriction) -> String {
        let common = self.columns.iter().filter(|column| other.columns.iter().any(|c| c.name == column.name));
        common.map(|column| &*column.name).collect::<Vec<_>>().join(" ,")
    }
}

/// Maximum number of combinations of the values of several INs, so that a statement of some kilobytes cannot exhaust
/// the memory.
const PRODUCT_MAX: usize = 1 << 20;

/// Estimated memory of a combination of values in a SELECT.
pub(super) const PRODUCT_BYTES: usize = 64;

/// Refuses INs with too many combinations, or with more than memory allows; `bytes_each` is the approximate memory of
/// one.
pub(crate) fn check_product((one, other): (usize, usize), bytes_each: usize, of: &str) -> Result<()> {
    match one.checked_mul(other) {
        Some(product) if product <= PRODUCT_MAX => room_for(product * bytes_each),
        _ => invalid(format!(
            "The cartesian product of the IN restrictions on {of} has more than {PRODUCT_MAX} values; split the statement"
        )),
    }
}

/// Reserves the memory of the values of a product: each of one side's is copied for each value of the other. A side is
/// the number of its values, and their bytes.
pub(crate) fn room_for_product(one: (usize, usize), other: (usize, usize)) -> Result<()> {
    let (of_one, of_other) = (one.1.saturating_mul(other.0), other.1.saturating_mul(one.0));
    room_for(of_one.saturating_add(of_other))
}

/// An invalid request with this text.
pub(super) fn invalid<T>(text: String) -> Result<T> {
    Err(CqlError::Invalid(text))
}
