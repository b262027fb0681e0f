//! What CQL shows of the super column families of the old interface, as Cassandra 3.11 did (`SuperColumnCompatibility`).
//!
//! Stored is a row a super column, its columns the entries of a map without name. Statements see a row for each entry: one
//! clustering column more, which is the entry's key, and a value. `view` makes the table that they are analysed against, in the
//! place of the stored one (`VirtualTables::shown_in`); `read` unfolds stored rows on their way to the statement; `write` turns
//! its changes into changes of the stored table. Families with declared columns show these, and not the map.

mod read;
mod view;
mod write;

pub(crate) use read::read;
pub(crate) use view::{check_entry, check_relations, is_of_entries, is_super, shown};
pub(crate) use write::stored;
