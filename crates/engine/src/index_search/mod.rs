//! Reads through a secondary index.
//!
//! `search` reads entries and then the rows that they point to, `entry_reader` returns the entries of a search,
//! `table_scan` reads pieces of the table itself beside a search for many terms, and `stale_entries` removes entries that a search found stale. `crate::index` has the rule that this relies on.

mod entry_reader;
mod search;
mod stale_entries;
mod table_scan;

pub use search::read_indexed;
