//! Super column families (Thrift) in CQL, shown as Cassandra 3.11 did (`SuperColumnCompatibility`).
//!
//! A super column is stored as one row; its columns are the entries of a map that has no name. Statements see one row
//! for each entry: a further clustering column, which is the entry's key, and a value. `view` makes the table against
//! which statements are analysed instead of the stored one (`VirtualTables::shown_in`). `read` converts stored rows to
//! rows of entries, and `write` converts changes to changes of the stored table. A family with declared columns shows
//! these instead of the map.

mod read;
mod view;
mod write;

pub(crate) use read::read;
pub(crate) use view::{check_entry, check_relations, is_of_entries, is_super, shown};
pub(crate) use write::stored;
