//! Evaluates a condition on a row that was read (`ColumnCondition.Bound`).

use super::condition::{Condition, Target, Values};
use crate::analysis::restrictions::elements;
use crate::analysis::selection::Source;
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::{RequestBudget, owned};
use crate::error::{CqlError, Result};
use crate::plan::select::RowAt;
use crate::syntax::ast::Comparison;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, Elements, Fields};
use std::borrow::Cow;
use std::sync::Arc;

/// A condition with the values of one execution.
pub(super) struct BoundCondition<'a> {
    condition: &'a Condition,
    /// The index or key of a condition on an element; `None` for null.
    element: Option<Cow<'a, [u8]>>,
    /// The values to compare with; null is `None`.
    values: Vec<Option<Cow<'a, [u8]>>>,
    /// Whether the value is unset; this is an error only when it is compared, not before.
    is_unset: bool,
}

/// The collection last assembled from a row's cells, kept because several conditions may be on one column.
#[derive(Default)]
pub(super) struct Assembled {
    column: Option<Arc<str>>,
    value: Option<Vec<u8>>,
}

impl Assembled {
    /// The value of a multi-cell column of `row`. All calls must pass the same row.
    fn value(&mut self, row: &RowAt<'_>, column: &Column) -> Result<Option<&[u8]>> {
        if self.column.as_ref() != Some(&column.name) {
            let (source, mut scratch) = (Source::of(column), Vec::new());
            row.room_for_value(&source, &mut scratch)?;
            self.value =
                row.value(&source, &mut scratch).map(|value| owned(Cow::Borrowed(value))).transpose()?;
            self.column = Some(column.name.clone());
        }
        Ok(self.value.as_deref())
    }
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

impl<'a> BoundCondition<'a> {
    /// Binds a condition to the values of a request.
    pub(super) fn bind(condition: &'a Condition, bindings: &Bindings<'a>) -> Result<BoundCondition<'a>> {
        let element = match &condition.target {
            Target::Element(term) => match term.bind(bindings)? {
                Bound::Bytes(bytes) => Some(bytes),
                // A key that is in no map.
                Bound::Unset if matches!(condition.column.ty, CqlType::Map { .. }) => {
                    return Ok(BoundCondition {
                        condition,
                        element: None,
                        values: Vec::new(),
                        is_unset: false,
                    });
                }
                Bound::Null | Bound::Unset => None,
            },
            Target::Whole | Target::Field(..) => None,
        };
        let (mut values, mut is_unset) = (Vec::new(), false);
        match &condition.values {
            Values::One(term) => match term.bind(bindings)? {
                Bound::Bytes(bytes) => values.push(Some(bytes)),
                Bound::Null => values.push(None),
                // No collection contains an unset value.
                Bound::Unset if condition.contains() && condition.column.ty.is_multi_cell() => {}
                Bound::Unset => is_unset = true,
            },
            Values::In(terms) => {
                for term in terms {
                    match term.bind(bindings)? {
                        Bound::Bytes(bytes) => values.push(Some(bytes)),
                        Bound::Null => values.push(None),
                        // Ignored, as if it were not in the list.
                        Bound::Unset => {}
                    }
                }
            }
            Values::InMarker(term) => values = in_values(term, bindings)?,
        }
        Ok(BoundCondition { condition, element, values, is_unset })
    }

    /// Whether the condition is met by the row.
    pub(super) fn holds(
        &self,
        row: &RowAt<'_>,
        assembled: &mut Assembled,
        work: &RequestBudget<'_>,
    ) -> Result<bool> {
        if self.is_unset {
            return invalid("Invalid 'unset' value in condition".into());
        }
        let mut scratch = Vec::new();
        let found = if self.condition.column.ty.is_multi_cell() {
            assembled.value(row, &self.condition.column)?
        } else {
            row.value(&Source::of(&self.condition.column), &mut scratch)
        };
        work.value_steps(found.map_or(0, <[u8]>::len))?;
        match &self.condition.target {
            Target::Whole => self.any(&self.condition.column.ty, found, work),
            Target::Field(index, ty) => {
                let field = found.and_then(|found| Fields::of(found).nth(*index).flatten());
                self.any(ty, field, work)
            }
            Target::Element(_) => self.element_holds(found, work),
        }
    }

    fn element_holds(&self, found: Option<&[u8]>, work: &RequestBudget<'_>) -> Result<bool> {
        match &self.condition.column.ty {
            CqlType::Map { key, value, .. } => {
                let Some(wanted) = &self.element else {
                    if self.values.is_empty() {
                        return Ok(false);
                    }
                    return invalid("Invalid null value for map element access".into());
                };
                let found = match found {
                    Some(found) => entry(key, found, wanted, work)?,
                    None => None,
                };
                // Cassandra compares the values by the type of the keys, and fails internally on values too short for
                // that type.
                let least = key.fixed_length().unwrap_or(0);
                let is_key = |value: &[u8]| value.len() >= least;
                let all_keys = found.is_none_or(is_key) && self.values.iter().flatten().all(|v| is_key(v));
                self.any(if all_keys { key } else { value }, found, work)
            }
            CqlType::List { element, .. } => {
                let Some(index) = &self.element else {
                    return invalid("Invalid null value for list element access".into());
                };
                let index = index.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
                let Ok(at) = usize::try_from(index) else {
                    return invalid(format!("Invalid negative list index {index}"));
                };
                self.any(element, found.and_then(|found| Elements::of_list(found).flatten().nth(at)), work)
            }
            _ => Ok(false),
        }
    }

    /// Whether the comparison with any of the values is true.
    fn any(&self, ty: &CqlType, found: Option<&[u8]>, work: &RequestBudget<'_>) -> Result<bool> {
        for value in &self.values {
            if self.compare(ty, (value.as_deref(), found), work)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compare(
        &self,
        ty: &CqlType,
        (value, found): (Option<&[u8]>, Option<&[u8]>),
        work: &RequestBudget<'_>,
    ) -> Result<bool> {
        let comparison = self.condition.comparison;
        let contains = self.condition.contains();
        // An empty multi-cell collection is null.
        let is_multi_cell = ty.is_multi_cell() && !matches!(ty, CqlType::Udt(_));
        let is_empty = is_multi_cell && !contains && value.is_some_and(|value| count(value) == 0);
        let Some(value) = value.filter(|_| !is_empty) else {
            return match comparison {
                Comparison::Equal => Ok(found.is_none()),
                Comparison::NotEqual => Ok(found.is_some()),
                _ if is_empty => {
                    let (kind, sign) = (collection_word(ty), comparison.as_str());
                    invalid(format!("Invalid comparison with an empty {kind} for operator \"{sign}\""))
                }
                _ => {
                    invalid(format!("Invalid comparison with null for operator \"{}\"", comparison.as_str()))
                }
            };
        };
        let Some(found) = found else { return Ok(comparison == Comparison::NotEqual) };
        let order = || work.order(ty, found, value);
        Ok(match comparison {
            Comparison::Equal => order()?.is_eq(),
            Comparison::NotEqual => order()?.is_ne(),
            Comparison::Less => order()?.is_lt(),
            Comparison::LessOrEqual => order()?.is_le(),
            Comparison::Greater => order()?.is_gt(),
            Comparison::GreaterOrEqual => order()?.is_ge(),
            Comparison::Contains | Comparison::ContainsKey => {
                contained(ty, (found, value), comparison == Comparison::ContainsKey, work)?
            }
            // The grammar allows no LIKE in IF.
            Comparison::Like => false,
        })
    }
}

/// The elements of the list bound to `IN ?`. A null stands for a column without a value, and so does an empty element of
/// most types (`ColumnCondition.bindAndGetTerms`).
fn in_values<'a>(term: &Term, bindings: &Bindings<'a>) -> Result<Vec<Option<Cow<'a, [u8]>>>> {
    elements(term, bindings, |what| match what {
        "null" => "Invalid null list in IN condition".to_owned(),
        _ => "Invalid 'unset' value in condition".to_owned(),
    })
}

fn count(collection: &[u8]) -> i32 {
    collection.first_chunk::<4>().map_or(0, |count| i32::from_be_bytes(*count))
}

fn collection_word(ty: &CqlType) -> &'static str {
    match ty {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        _ => "map",
    }
}

/// Whether a collection contains a value, or a map a key.
fn contained(
    ty: &CqlType,
    (collection, value): (&[u8], &[u8]),
    is_key: bool,
    work: &RequestBudget<'_>,
) -> Result<bool> {
    work.value_steps(collection.len())?;
    let any = |ty: &CqlType, parts: &mut dyn Iterator<Item = &[u8]>| -> Result<bool> {
        for found in parts {
            if work.order(ty, found, value)?.is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            any(element, &mut Elements::of_list(collection).flatten())
        }
        CqlType::Map { key, value: value_type, .. } => {
            let ty = if is_key { key } else { value_type };
            any(ty, &mut Elements::of_map(collection).flatten().skip(usize::from(!is_key)).step_by(2))
        }
        _ => Ok(false),
    }
}

/// The value of the entry with a key in a map.
fn entry<'m>(
    key: &CqlType,
    map: &'m [u8],
    wanted: &[u8],
    work: &RequestBudget<'_>,
) -> Result<Option<&'m [u8]>> {
    let mut parts = Elements::of_map(map).flatten();
    while let (Some(found), Some(value)) = (parts.next(), parts.next()) {
        if work.order(key, found, wanted)?.is_eq() {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
