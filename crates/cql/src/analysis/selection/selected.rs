//! What an output column is made of.

use super::source::Source;
use crate::analysis::Term;
use crate::backend::ResultColumns;
use crate::functions::{Aggregate, Scalar};
use crate::syntax::ast::TimeFunction;
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
    /// Computed.
    Call(Arc<dyn Scalar>, Vec<Selected>),
    /// The result of the aggregate of this number.
    Aggregate(usize),
    /// Beside aggregates: the leaf of this number, as the first row has it.
    First(usize),
}

/// An aggregate and what it is fed with.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) function: Aggregate,
    /// Its argument; `None` for `count(*)`.
    pub(crate) argument: Option<Selected>,
}

/// All that is selected.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The output columns.
    pub(crate) columns: Vec<Selected>,
    /// The terms among them.
    pub(crate) terms: Vec<Term>,
    /// The aggregates; with any, all rows become one.
    pub(crate) aggregates: Vec<AggregateCall>,
    /// What the first row gives beside aggregates.
    pub(crate) first: Vec<Leaf>,
    /// The columns of the table that are used, each once, in the order of their first use.
    pub(crate) used: Vec<Source>,
    /// The description for drivers.
    pub(crate) result: Arc<ResultColumns>,
}

impl Selection {
    /// Whether the rows become one.
    pub(crate) fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty()
    }

    /// Whether a static column is used.
    pub(crate) fn uses_statics(&self) -> bool {
        self.used.iter().any(Source::is_static)
    }
}
