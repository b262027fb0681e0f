//! Expressions of output columns.

use super::group::GroupBy;
use super::source::Source;
use crate::analysis::Term;
use crate::answer::ResultColumns;
use crate::functions::Aggregate;
use crate::scope::Scalar;
use crate::syntax::ast::TimeFunction;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// A value that is taken from a row directly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowValue {
    /// A column's value.
    Column(Source),
    /// Its write time or remaining TTL.
    Time(TimeFunction, Source),
}

/// The expression of an output column.
#[derive(Clone, Debug)]
pub(crate) enum Selected {
    /// A value from the row.
    Leaf(RowValue),
    /// The term with this index.
    Term(usize),
    /// The field with this index of a value of a user-defined type.
    Field(Box<Selected>, usize),
    /// The element of a set or map under a key, which is the term with this index.
    Element(Box<Selected>, CqlType, usize),
    /// The elements of a set or map of this type from one key to another; the keys are terms.
    Slice(Box<Selected>, CqlType, (Option<usize>, Option<usize>)),
    /// The write time or TTL of a part of a column.
    TimeOf(TimeFunction, Box<TimePath>),
    /// A collection, tuple or user-defined type made of parts.
    Composite(CqlType, Vec<Selected>),
    /// Null.
    Null,
    /// The result of a function.
    Call(Arc<dyn Scalar>, Vec<Selected>),
    /// The result of the aggregate with this index.
    Aggregate(usize),
    /// The value with this index from the first of several combined rows.
    First(usize),
}

impl Selected {
    /// The parts of the expression.
    pub(crate) fn parts(&mut self) -> &mut [Selected] {
        match self {
            Selected::Field(inner, _) | Selected::Element(inner, ..) | Selected::Slice(inner, ..) => {
                std::slice::from_mut(inner)
            }
            Selected::Composite(_, parts) | Selected::Call(_, parts) => parts,
            _ => &mut [],
        }
    }
}

/// The path to the cells whose times are selected; each step has the expression of its value.
#[derive(Clone, Debug)]
pub(crate) enum TimePath {
    /// All cells of a column.
    Column(Source),
    /// The cell of a field: the field's expression and its index.
    Field(Box<TimePath>, Selected, usize),
    /// The cell under a key: the expression of the collection, its type and the key's term.
    Element(Box<TimePath>, Selected, CqlType, usize),
    /// The cells from one key to another.
    Slice(Box<TimePath>, Selected, CqlType, (Option<usize>, Option<usize>)),
}

impl TimePath {
    /// The column of the cells.
    pub(crate) fn source(&self) -> &Source {
        match self {
            TimePath::Column(source) => source,
            TimePath::Field(inner, ..) | TimePath::Element(inner, ..) | TimePath::Slice(inner, ..) => {
                inner.source()
            }
        }
    }
}

/// An aggregate and its argument.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) function: Aggregate,
    /// Its argument; `None` for `count(*)`.
    pub(crate) argument: Option<Selected>,
}

/// The use of a term in the selection; it decides how null and unset are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TermUse {
    /// A value.
    Value,
    /// The key of an element; the text names the selected column.
    Element(String),
    /// An end of a slice; the text names the selected column. Unset means no end.
    SliceEnd(String),
}

/// How a row becomes a JSON text: for each column the text before its value, and its type.
#[derive(Clone, Debug)]
pub(crate) struct JsonColumns(pub(crate) Vec<(String, CqlType)>);

/// All selectors of a SELECT.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The output columns.
    pub(crate) columns: Vec<Selected>,
    /// Set if the columns are combined into one JSON column.
    pub(crate) json: Option<JsonColumns>,
    /// The terms of the expressions.
    pub(crate) terms: Vec<(Term, TermUse)>,
    /// The aggregates.
    pub(crate) aggregates: Vec<AggregateCall>,
    /// The values that are taken from the first of several combined rows.
    pub(crate) first: Vec<Selected>,
    /// How rows are grouped; each group becomes one row.
    pub(crate) group_by: Option<GroupBy>,
    /// The used columns of the table, each once, in the order of their first use.
    pub(crate) used: Vec<Source>,
    /// The metadata for drivers.
    pub(crate) result: Arc<ResultColumns>,
}

impl Selection {
    /// Whether all rows become one row.
    pub(crate) fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty() && self.group_by.is_none()
    }

    /// Whether several rows become one row.
    pub(crate) fn combines_rows(&self) -> bool {
        !self.aggregates.is_empty() || self.group_by.is_some()
    }

    /// Whether a static column is used.
    pub(crate) fn uses_statics(&self) -> bool {
        self.used.iter().any(Source::is_static)
    }
}
