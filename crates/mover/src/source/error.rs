//! What cannot be written by CQL.

use helenus_model::packed::Damaged;

/// Why something in a table cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A row without a value for a clustering column, other than one of a compact table whose clustering ends early.
    #[error("a row has no value for the clustering column {column}; CQL cannot name such a row")]
    NoClustering {
        /// The column.
        column: String,
    },
    /// A column of a compact table that was not declared, and that the other side hides.
    #[error(
        "the row with the key {key} has the column {column}, which the table does not declare: statements cannot write it into a table \
         WITH COMPACT STORAGE. ALTER TABLE .. DROP COMPACT STORAGE there shows such columns; then helenus move resume goes on"
    )]
    Undeclared {
        /// The key, as a literal of CQL.
        key: String,
        /// The column's name, as a literal of CQL.
        column: String,
    },
    /// A range deletion of all rows of a partition, and no value of the clustering to split it at.
    #[error(
        "a deletion covers all rows of a partition whose first clustering column has a type without a known value; delete the \
         partition instead"
    )]
    WholeRange,
    /// Counters, whose cells a statement cannot set; a bug.
    #[error("counters cannot be sent as cells")]
    Counter,
    /// A damaged row.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}
