//! Chooses the indexes that can answer a WHERE clause (`Index.supportsExpression`, `IndexRestrictions`).
//!
//! Cassandra uses the legacy index with the fewest rows by its statistics, or intersects storage-attached indexes. In
//! both cases the result and its order are the same. Here the engine gets all indexes that can answer, and uses the
//! shortest one.

use super::restriction::{Operand, Restriction, Test, invalid};
use super::statement::Restrictions;
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::owned;
use crate::error::{CqlError, Result};
use helenus_model::index::{Analyzer, IndexLayout, IndexLookup, IndexSearch};
use helenus_model::schema::{Column, IndexPart, Table};
use helenus_model::types::CqlType;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length of a value that is searched in a legacy index (`CassandraIndex.validate`).
const VALUE_BYTES_MAX: usize = 0xFFFF;

/// The operator of a restriction, as an index sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    In,
    Range,
    Contains,
    ContainsKey,
}

/// The indexes of the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    shapes: Vec<Arc<IndexLayout>>,
}

/// An index, and the restriction that it can answer.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    shape: Arc<IndexLayout>,
    restriction: Restriction,
}

impl Indexes {
    pub(super) fn of(table: &Arc<Table>) -> Indexes {
        let shapes = table.indexes.values().filter_map(|index| IndexLayout::new(table, index).map(Arc::new));
        Indexes { shapes: shapes.collect() }
    }

    /// Whether some index can answer a restriction.
    pub(super) fn support(&self, restriction: &Restriction) -> bool {
        self.shapes.iter().any(|shape| answers(shape, restriction))
    }

    /// Whether rows must be filtered despite the indexes: neither a single legacy index nor all storage-attached ones
    /// together answer all restrictions. For an ANN ordering (`only_sai`) only storage-attached indexes count.
    pub(super) fn leave_to_filter(&self, restrictions: &[&Restriction], only_sai: bool) -> bool {
        let (sai, legacy): (Vec<_>, Vec<_>) = self.shapes.iter().partition(|shape| shape.index.is_sai());
        let legacy = legacy.into_iter().filter(|_| !only_sai);
        let mut groups: Vec<Vec<&Arc<IndexLayout>>> = legacy.map(|shape| vec![shape]).collect();
        if !sai.is_empty() {
            groups.push(sai);
        }
        !groups.iter().any(|group| restrictions.iter().all(|restriction| covers(group, restriction)))
    }

    /// The transformation of a column's values before comparison by this operator: that of the index that supports it. A
    /// map may have an index of its keys and another of its values, each with its own.
    pub(super) fn analyzer(&self, column: &Column, operator: Operator) -> Option<Analyzer> {
        let found = self.shapes.iter().find(|shape| {
            shape.column.name == column.name && !shape.analyzer.is_none() && supports(shape, operator)
        });
        found.map(|shape| shape.analyzer)
    }

    /// One index for each of these restrictions, if there is one; equality searches come before ranges.
    pub(super) fn choose<'r>(&self, restrictions: impl Iterator<Item = &'r Restriction>) -> Vec<Chosen> {
        let mut chosen: Vec<Chosen> = restrictions
            .filter_map(|restriction| {
                let shape = self.shapes.iter().find(|shape| answers(shape, restriction))?;
                Some(Chosen { shape: shape.clone(), restriction: restriction.clone() })
            })
            .collect();
        chosen.sort_by_key(|chosen| chosen.restriction.is_slice());
        chosen
    }

    /// Whether a column has an index.
    pub(super) fn has_of(&self, column: &Column) -> bool {
        self.shapes.iter().any(|shape| shape.column.name == column.name)
    }

    /// Whether a column has a storage-attached index.
    pub(super) fn has_sai_of(&self, column: &Column) -> bool {
        self.shapes.iter().any(|shape| shape.column.name == column.name && shape.index.is_sai())
    }

    /// Whether a vector column has an index.
    pub(super) fn has_of_vector<'r>(&self, mut restrictions: impl Iterator<Item = &'r Restriction>) -> bool {
        restrictions.any(|restriction| {
            let column = restriction.first();
            matches!(column.ty, CqlType::Vector { .. })
                && self.shapes.iter().any(|shape| shape.column.name == column.name)
        })
    }
}

fn operators(restriction: &Restriction) -> Vec<Operator> {
    match &restriction.test {
        Test::Equal(_) => vec![Operator::Equal],
        Test::In(_) => vec![Operator::In],
        Test::Slice(..) => vec![Operator::Range],
        Test::Contains { values, keys, entries } => [
            (!values.is_empty()).then_some(Operator::Contains),
            (!keys.is_empty()).then_some(Operator::ContainsKey),
            (!entries.is_empty()).then_some(Operator::Equal),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn answers(shape: &IndexLayout, restriction: &Restriction) -> bool {
    // `(c1, c2) > (1, 2)` bounds c1 alone: its rows may have any c2. Every column of `=` has its value.
    let bounded = if restriction.is_slice() { 1 } else { restriction.columns.len() };
    let is_of = restriction.columns.iter().take(bounded).any(|column| column.name == shape.column.name);
    is_of && operators(restriction).into_iter().any(|operator| supports(shape, operator))
}

fn supports(shape: &IndexLayout, operator: Operator) -> bool {
    let column = &shape.column;
    match (&column.ty, shape.part) {
        (CqlType::Set { frozen: false, .. }, _) => operator == Operator::Contains,
        (ty, IndexPart::Keys) if ty.is_multi_cell() => operator == Operator::ContainsKey,
        (ty, IndexPart::Entries) if ty.is_multi_cell() => operator == Operator::Equal,
        (ty, _) if ty.is_multi_cell() => operator == Operator::Contains,
        _ => {
            operator == Operator::Equal
                || operator == Operator::Range && shape.index.is_sai() && shape.is_ordered()
        }
    }
}

/// Whether a group of indexes together answers a restriction completely.
fn covers(group: &[&Arc<IndexLayout>], restriction: &Restriction) -> bool {
    if restriction.columns.len() > 1 && restriction.is_slice() {
        return false;
    }
    if restriction.columns.len() > 1 {
        let of = |column: &Column| {
            group.iter().any(|shape| {
                shape.column.name == column.name
                    && operators(restriction).into_iter().any(|operator| supports(shape, operator))
            })
        };
        return restriction.columns.iter().all(of);
    }
    let is_multiple = match &restriction.test {
        Test::Contains { values, keys, entries } => values.len() + keys.len() + entries.len() > 1,
        _ => false,
    };
    group.iter().any(|shape| answers(shape, restriction) && (!is_multiple || shape.index.is_sai()))
}

impl Restrictions {
    /// The searches that can answer the clause, each by itself; empty if no index can.
    ///
    /// # Errors
    /// Null or unset values, and values too long for the index.
    pub(crate) fn index_searches(&self, bindings: &Bindings<'_>) -> Result<Vec<IndexSearch>> {
        self.chosen.iter().map(|chosen| search(chosen, bindings)).collect()
    }
}

fn search(Chosen { shape, restriction }: &Chosen, bindings: &Bindings<'_>) -> Result<IndexSearch> {
    let lookup = match &restriction.test {
        Test::Equal(operand) => {
            let value = value_of(operand, shape, restriction, bindings)?;
            IndexLookup::Equal(term(shape, None, &value, bindings)?)
        }
        Test::Slice(start, end) => {
            let mut terms = Vec::new();
            for end in [start, end] {
                terms.push(match end {
                    Some(end) => {
                        let value = value_of(&end.operand, shape, restriction, bindings)?;
                        Some(term(shape, None, &value, bindings)?)
                    }
                    None => None,
                });
            }
            let to = terms.pop().flatten();
            IndexLookup::Between(terms.pop().flatten(), to)
        }
        Test::Contains { values, keys, entries } => {
            IndexLookup::Equal(contained(shape, (values, keys, entries), bindings)?)
        }
        // No index supports IN.
        Test::In(_) => IndexLookup::Between(None, None),
    };
    Ok(IndexSearch { shape: shape.clone(), lookup })
}

fn contained(
    shape: &IndexLayout,
    (values, keys, entries): (&[Term], &[Term], &[(Term, Term)]),
    bindings: &Bindings<'_>,
) -> Result<Vec<u8>> {
    let column = &shape.column;
    let bind = |term: &Term| match term.bind(bindings)? {
        Bound::Bytes(bytes) => owned(bytes),
        Bound::Null => invalid(format!("Unsupported null value for column {}", column.name)),
        Bound::Unset => invalid(format!("Unsupported unset value for column {}", column.name)),
    };
    match (shape.part, entries.first(), keys.first(), values.first()) {
        (IndexPart::Entries, Some((key, value)), _, _) => {
            let key = bind(key)?;
            term(shape, Some(&key), &bind(value)?, bindings)
        }
        (IndexPart::Keys, _, Some(key), _) => term(shape, None, &bind(key)?, bindings),
        (_, _, _, Some(value)) => term(shape, None, &bind(value)?, bindings),
        _ => invalid(format!("Unsupported null value for column {}", column.name)),
    }
}

fn value_of(
    operand: &Operand,
    shape: &IndexLayout,
    restriction: &Restriction,
    bindings: &Bindings<'_>,
) -> Result<Vec<u8>> {
    let values = operand.bind(bindings, ("Unsupported", restriction.first()))?;
    let at = restriction.columns.iter().position(|column| column.name == shape.column.name);
    match at.and_then(|at| values.get(at)).and_then(|value| value.as_deref()) {
        Some(value) => owned(Cow::Borrowed(value)),
        None => invalid(format!("Unsupported null value for column {}", shape.column.name)),
    }
}

fn term(shape: &IndexLayout, key: Option<&[u8]>, value: &[u8], bindings: &Bindings<'_>) -> Result<Vec<u8>> {
    if !shape.index.is_sai() && value.len() > VALUE_BYTES_MAX {
        return invalid("Index expression values may not be larger than 64K".to_owned());
    }
    // A storage-attached index is asked for longer values than it stores: they may bound the stored ones, and a long decimal
    // may equal a short one.
    let (work, column) = (bindings.calls.work, &shape.column);
    if !shape.analyzer.is_none() {
        work.analysis_of_searched(value)?;
    }
    match (key, &column.ty) {
        (Some(key), CqlType::Map { key: of_key, value: of_value, .. }) => {
            work.term(of_key, key)?;
            work.term(of_value, value)?;
        }
        _ => work.term(shape.index.term_type(column).unwrap_or(&column.ty), value)?,
    }
    shape.term(key, value).map_err(|error| CqlError::Invalid(error.to_string()))
}
