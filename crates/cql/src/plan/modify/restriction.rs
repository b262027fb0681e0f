//! The restrictions that a WHERE clause puts on key columns, and how two relations on the same column are merged.
//!
//! Rules and texts are those of `SingleColumnRestriction` and `MultiColumnRestriction`.

use crate::analysis::Term;
use crate::error::{CqlError, Result};
use std::sync::Arc;

/// A restriction of one column, or of several together.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// The index of the first column among those of its kind.
    pub(super) first: usize,
    /// Names of the columns.
    pub(super) names: Vec<Arc<str>>,
    /// The condition on the columns.
    pub(super) test: Test,
}

impl Restriction {
    /// Whether it is an IN.
    pub(super) fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_))
    }

    /// The name of the column, if this is a slice of one column that is not in parentheses.
    pub(super) fn single_slice(&self) -> Option<&str> {
        let is_alone = |end: &Option<(Values, bool)>| {
            end.as_ref().is_none_or(|(values, _)| matches!(values, Values::One(_)))
        };
        match (&self.names[..], &self.test) {
            ([name], Test::Slice(start, end)) if is_alone(start) && is_alone(end) => Some(name),
            _ => None,
        }
    }
}

/// The condition of a restriction.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Equal to these values.
    Equal(Values),
    /// One of these choices.
    In(Choices),
    /// Between two bounds; each with whether it is included.
    Slice(Option<(Values, bool)>, Option<(Values, bool)>),
}

/// Values for the columns of a restriction.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// For one column.
    One(Term),
    /// For several columns, a term for each.
    Each(Vec<Term>),
    /// For several columns, one bound tuple.
    Tuple(Term),
}

/// The choices of an IN.
#[derive(Clone, Debug)]
pub(super) enum Choices {
    /// A list in the text.
    List(Vec<Values>),
    /// The elements of one bound list.
    Marker(Term),
}

/// An IN of one value is an equality.
pub(super) fn chosen(mut values: Vec<Values>) -> Test {
    match values.pop() {
        Some(only) if values.is_empty() => Test::Equal(only),
        last => {
            values.extend(last);
            Test::In(Choices::List(values))
        }
    }
}

/// Adds a restriction to those of one kind, in column order, and merges it with one that shares a column.
pub(super) fn add(restrictions: &mut Vec<Restriction>, new: Restriction) -> Result<()> {
    // The list is in order and shares no columns: the restrictions before `at` end before the new one begins.
    let end = new.first + new.names.len();
    let at = restrictions.partition_point(|r| r.first + r.names.len() <= new.first);
    let Some(found) = restrictions.get_mut(at).filter(|r| r.first < end) else {
        restrictions.insert(at, new);
        return Ok(());
    };
    let common: Vec<&str> =
        found.names.iter().filter(|name| new.names.contains(name)).map(|name| &**name).collect();
    let common = common.join(", ");
    match (&mut found.test, new.test) {
        (Test::Equal(_), _) => invalid(format!(
            "{common} cannot be restricted by more than one relation if it includes an Equal"
        )),
        (Test::In(_), _) => {
            invalid(format!("{common} cannot be restricted by more than one relation if it includes a IN"))
        }
        (Test::Slice(start, end), Test::Slice(new_start, new_end)) => {
            if found.first != new.first {
                let later = if found.first > new.first { &found.names } else { &new.names };
                return invalid(format!(
                    "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                    later.first().map_or("", |name| &**name)
                ));
            }
            if start.is_some() && new_start.is_some() {
                return invalid(format!(
                    "More than one restriction was found for the start bound on {common}"
                ));
            }
            if end.is_some() && new_end.is_some() {
                return invalid(format!("More than one restriction was found for the end bound on {common}"));
            }
            if new_start.is_some() {
                *start = new_start;
            }
            if new_end.is_some() {
                *end = new_end;
            }
            if new.names.len() > found.names.len() {
                found.names = new.names;
            }
            Ok(())
        }
        (Test::Slice(..), Test::Equal(_) | Test::In(_)) => invalid(format!(
            "Column \"{common}\" cannot be restricted by both an equality and an inequality relation"
        )),
    }
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}
