//! What a WHERE asks of key columns, and how two relations on the same column come together.
//!
//! Rules and texts are those of `SingleColumnRestriction` and `MultiColumnRestriction`.

use crate::analysis::Term;
use crate::error::{CqlError, Result};
use std::sync::Arc;

/// What one column, or several together, must be.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// Position of the first column among those of its kind.
    pub(super) first: usize,
    /// Names of the columns.
    pub(super) names: Vec<Arc<str>>,
    /// What they must be.
    pub(super) test: Test,
}

impl Restriction {
    /// Whether it names several values.
    pub(super) fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_))
    }

    /// The column, if it is one alone, not in parentheses, and between bounds.
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

/// What is asked of a restricted column.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Equal to this.
    Equal(Values),
    /// One of these.
    In(Choices),
    /// Between bounds, each with whether it is included.
    Slice(Option<(Values, bool)>, Option<(Values, bool)>),
}

/// Values for the columns of a restriction.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// For one column.
    One(Term),
    /// For several, one by one.
    Each(Vec<Term>),
    /// For several, as one bound tuple.
    Tuple(Term),
}

/// What IN chooses from.
#[derive(Clone, Debug)]
pub(super) enum Choices {
    /// These.
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

/// Adds a restriction to those of one kind, in order of columns, merged with one that shares a column.
pub(super) fn add(restrictions: &mut Vec<Restriction>, new: Restriction) -> Result<()> {
    // They stand in order and share no column: those before this place end before the new one begins.
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
