//! The rows of a cluster's table as cells with timestamps and expiry, beside those of the local table.
//!
//! `row` is what both sides are read into. `texts` has the SELECTs and `decode` reads their answers, `read` pages through a range of
//! tokens; `local` reads the same of the database here. `merge` puts both streams side by side and `compare` finds the cells that
//! differ. `writes` makes statements of such cells, `local_writer` runs them here (`hidden_rows` those of rows that no statement names), and `bring_back` makes the local rows of a range
//! equal to the cluster's.
//!
//! CQL shows live cells and live rows, and nothing else. Deletions are not read: a cell that is gone is one that is not shown.
//!
//! Row markers cannot be read either. A row without a live cell is shown only because of its marker, so there is one, and neither its
//! timestamp nor its TTL is known: it counts as written at the moment of the read, without a TTL. So it is newer than every deletion
//! that was made before, and older than every write that comes later. A row with live cells may have a marker or not. Where such a row is
//! made here anew it gets one, with the oldest timestamp of its cells, as an INSERT and later UPDATEs leave it, and with the latest
//! expiry: it never shows the row for longer than its cells do. A row that is here already keeps what it has.

mod bring_back;
mod compare;
mod decode;
mod hidden_rows;
mod local;
mod local_writer;
mod merge;
mod portions;
mod range;
mod read;
mod row;
#[cfg(test)]
mod tests;
mod texts;
mod words;
mod writes;

pub(crate) use bring_back::{BroughtBack, Sides, bring_back};
pub use compare::{CellDifference, Difference, Tolerance, compare};
pub(crate) use decode::serialised_key;
pub(crate) use local::read_local;
pub(crate) use local_writer::LocalWriter;
pub(crate) use merge::Merge;
pub(crate) use portions::{last, portions};
pub use range::TokenRange;
pub(crate) use read::{Remote, RemoteTable};
pub use row::{SeenCell, SeenRow, Times};
pub(crate) use texts::Rows;
pub(crate) use words::{difference_words, key_words};
pub(crate) use writes::new_row;
