//! Secondary indexes: each is a hidden table beside its base table, and both are written in one log record.
//!
//! `model/src/index/layout.rs` defines the layout of the hidden table. `entries` computes the entries of a row,
//! `index_write` adds the entries of a write to it, `attached` attaches indexes to their tables. Above the database,
//! `crate::index_search` reads through an index; `database::index_builds` fills a new index from the existing rows.
//!
//! **The one rule**: an index has an entry for every live value of its table. It may have more entries: the row of an
//! entry is always read and tested, so an entry without its row costs a read and is never part of an answer. Entries
//! may therefore be removed late or never, but a valid entry must never be removed. Three rules see to it, for
//! timestamps in any order:
//! - An entry is removed only when its value is dead for good: in the same memtable as what replaces or deletes it
//!   (`index_write`), or by a search that has seen no live value (`stale_entries`).
//! - A removal has the timestamp of the entry. So it hides no entry of a later value.
//! - A value may be written again with an old timestamp, after what deleted it was purged. Its entry gets a timestamp
//!   after every removal and every expiring entry of its place (`entry_time`).
//!
//! Order: a write is applied to its table before its entries are applied to the index, and a search takes its view of
//! the table after it has read entries. So a search that sees an entry also sees its row.

mod attached;
mod entries;
mod entry_time;
mod index_write;

pub(crate) use attached::{attach, shapes_of, stored_of, stored_tables, tables_of};
pub(crate) use entries::{Entry, EntryPlace, EntryTerm, EntryWriter, IndexedRow, entries_of};
pub(crate) use index_write::index_updates;
