//! Secondary indexes: each is a hidden table beside its base table, and both are written in one log record.
//!
//! `model/src/index/layout.rs` defines the layout of the hidden table. `entries` computes the entries of a row,
//! `index_write` adds the entries of a write to it, `attached` has the indexes of a table, `build` fills a new index
//! from the existing rows, `search` reads through an index, `entry_reader` returns the entries of a search, and
//! `stale_entries` removes entries that a search found stale.
//!
//! **The one rule**: an index has an entry for every live value of its table. It may have more entries: the row of an
//! entry is always read and tested, so an entry without its row costs a read and is never part of an answer. Entries
//! may therefore be removed late or never, but a valid entry must never be removed: a removal uses the timestamp of the
//! cell that the entry came from.
//!
//! Order: a write is applied to its table before its entries are applied to the index, and a search takes its view of
//! the table after it has read entries. So a search that sees an entry also sees its row.

mod attached;
mod build;
mod entries;
mod entry_reader;
mod index_write;
mod search;
mod stale_entries;

pub(crate) use attached::{BuildGuard, IndexBuilds, TableIndexes, attach, stored_tables};
pub use build::IndexBuildStatus;
pub(crate) use build::{BUILT_TABLE, is_recorded_built, rebuild, record_not_built};
pub(crate) use index_write::index_updates;
