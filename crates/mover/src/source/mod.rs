//! From cells to statements: what a partition holds, as writes by prepared statements that make the same cells again.
//!
//! `texts` has the statements of a table, `write` one write with its bound values, `rows` makes the writes of rows, `ranges` those
//! of range tombstones, `split` cuts writes that are too large, `lists` makes those of lists, whose elements have ids that CQL cannot write.

mod error;
mod lists;
mod ranges;
mod rows;
mod split;
mod texts;
mod write;

pub use error::SourceError;
pub use lists::{ListElement, ListPlace, ListState, RowName, list_columns, list_of_row, list_writes};
pub(crate) use lists::{clustering_of, nullable};
pub use ranges::OpenRange;
pub use rows::RowWrites;
pub(crate) use rows::{is_hidden_row, row_deletion};
pub(crate) use split::PART_BYTES;
pub use split::in_parts;
pub use texts::{RangeShape, StatementKind, TableTexts};
pub(crate) use texts::{hidden_value, written_columns};
pub use write::{Values, Write};
