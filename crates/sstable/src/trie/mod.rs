//! Tries on disk, as in Partitions.db and Rows.db: nodes of 16 kinds, packed into pages of 4 KiB so that a walk from
//! the root touches few pages. Children come before parents, so every pointer leads backward.
//!
//! `TrieWriter` builds a trie from sorted keys, with memory that does not grow with their number; `Walker` follows a
//! trie in a file without allocations; `Forward` and `Backward` visit payloads in order. Source: Cassandra's `io.tries`
//! and `BtiFormat.md`.

mod iterate;
mod keyed;
mod node;
mod node_type;
mod sized_int;
mod walker;
mod writer;

#[cfg(test)]
pub(crate) mod test_file;

pub(crate) use iterate::{Backward, Forward, SearchPath};
pub(crate) use keyed::{Advanced, Keyed, last_key};
pub(crate) use sized_int::{read_signed, signed_size, write_signed};
pub(crate) use walker::Walker;
pub(crate) use writer::{TriePayload, TrieWriter};
