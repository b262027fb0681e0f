//! Reads and writes Cassandra's SSTables. It can be used alone, as a library for the file formats.

pub mod block;
pub mod buffer;

pub mod checksum;
pub mod component;
pub mod compression;
pub mod data;
pub mod deletion_time;
pub mod digest;
mod error;
pub mod filter;
pub mod header_schema;
pub mod import;
pub mod index_big;
pub mod index_bti;
pub mod names;
pub mod page_checksums;
pub mod partitioner;
pub mod read_ahead;

pub mod scrub;
pub mod sequential_writer;
pub mod statistics;
pub mod stopwatch;
pub mod table;
pub mod toc;
pub mod transaction_log;
mod trie;
pub mod version;
pub mod writer;

pub use error::{Error, Result};
