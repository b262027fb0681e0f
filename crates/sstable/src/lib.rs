//! What a file is: Cassandra SSTables, read and written. Useful alone, as a library for the formats.

pub mod block;
pub mod checksum;
pub mod compression;
mod error;
pub mod filter;
pub mod index_bti;
pub mod sequential_writer;
pub mod statistics;
mod trie;

pub use error::{Error, Result};
