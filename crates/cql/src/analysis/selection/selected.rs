//! What an output column is made of.

use super::group::GroupBy;
use super::source::Source;
use crate::analysis::Term;
use crate::backend::ResultColumns;
use crate::functions::{Aggregate, Scalar};
use crate::syntax::ast::TimeFunction;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// What is taken from a row as it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leaf {
    /// A column's value.
    Column(Source),
    /// When it was written, or how long it has to live.
    Time(TimeFunction, Source),
}

/// An output column.
#[derive(Clone, Debug)]
pub(crate) enum Selected {
    /// Taken from the row.
    Leaf(Leaf),
    /// The term of this number.
    Term(usize),
    /// The field of this number of a user-defined type's value.
    Field(Box<Selected>, usize),
    /// What a set or map has under the key that is the term of this number.
    Element(Box<Selected>, CqlType, usize),
    /// What a set or map of this type has from one term to another.
    Slice(Box<Selected>, CqlType, (Option<usize>, Option<usize>)),
    /// A time of a part of a column.
    TimeOf(TimeFunction, Box<TimePath>),
    /// A value with parts.
    Made(CqlType, Vec<Selected>),
    /// Null.
    Null,
    /// Computed.
    Call(Arc<dyn Scalar>, Vec<Selected>),
    /// The result of the aggregate of this number.
    Aggregate(usize),
    /// Of several rows that make one: what is selected under this number of the first.
    First(usize),
}

impl Selected {
    /// What it is made of.
    pub(crate) fn parts(&mut self) -> &mut [Selected] {
        match self {
            Selected::Field(inner, _) | Selected::Element(inner, ..) | Selected::Slice(inner, ..) => {
                std::slice::from_mut(inner)
            }
            Selected::Made(_, parts) | Selected::Call(_, parts) => parts,
            _ => &mut [],
        }
    }
}

/// The way to the cells whose times are asked for, each step with what stands there.
#[derive(Clone, Debug)]
pub(crate) enum TimePath {
    /// All of a column's.
    Column(Source),
    /// That of a field; the field itself, and its number.
    Field(Box<TimePath>, Selected, usize),
    /// That under a key: the collection, its type and the key's term.
    Element(Box<TimePath>, Selected, CqlType, usize),
    /// Those from one key to another.
    Slice(Box<TimePath>, Selected, CqlType, (Option<usize>, Option<usize>)),
}

/// An aggregate and what it is fed with.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) function: Aggregate,
    /// Its argument; `None` for `count(*)`.
    pub(crate) argument: Option<Selected>,
}

/// What a term of the selection is for: decides what null and unset mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TermUse {
    /// A value.
    Value,
    /// The key of an element of what is called so.
    Element(String),
    /// An end of a slice of what is called so; unset for no end.
    SliceEnd(String),
}

/// How a row becomes one JSON text: of each column the text before its value, and its type.
#[derive(Clone, Debug)]
pub(crate) struct JsonColumns(pub(crate) Vec<(String, CqlType)>);

/// All that is selected.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The output columns.
    pub(crate) columns: Vec<Selected>,
    /// Set if they are put into one column of JSON.
    pub(crate) json: Option<JsonColumns>,
    /// The terms among them.
    pub(crate) terms: Vec<(Term, TermUse)>,
    /// The aggregates.
    pub(crate) aggregates: Vec<AggregateCall>,
    /// What the first of several rows gives.
    pub(crate) first: Vec<Selected>,
    /// How rows are grouped; each group becomes one.
    pub(crate) group_by: Option<GroupBy>,
    /// The columns of the table that are used, each once, in the order of their first use.
    pub(crate) used: Vec<Source>,
    /// The description for drivers.
    pub(crate) result: Arc<ResultColumns>,
}

impl Selection {
    /// Whether all rows become one.
    pub(crate) fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty() && self.group_by.is_none()
    }

    /// Whether several rows become one.
    pub(crate) fn combines_rows(&self) -> bool {
        !self.aggregates.is_empty() || self.group_by.is_some()
    }

    /// Whether a static column is used.
    pub(crate) fn uses_statics(&self) -> bool {
        self.used.iter().any(Source::is_static)
    }
}
