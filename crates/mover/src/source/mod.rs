//! From cells to statements: what a partition holds, as writes by prepared statements that make the same cells again.
//!
//! `texts` has the statements of a table, `write` one write with its bound values, `rows` makes the writes of rows, `ranges` those
//! of range tombstones, `lists` those of lists, whose elements have ids that CQL cannot write.

mod error;
mod lists;
mod ranges;
mod rows;
mod texts;
mod write;

pub use error::SourceError;
pub use lists::{ListElement, ListPlace, ListState, RowName, list_columns, list_of_row, list_writes};
pub use ranges::OpenRange;
pub use rows::RowWrites;
pub use texts::{RangeShape, StatementKind, TableTexts};
pub use write::{Values, Write};
