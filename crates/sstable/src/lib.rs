//! What a file is: Cassandra SSTables, read and written. Useful alone, as a library for the formats.

pub mod block;
pub mod checksum;
pub mod compression;
mod error;

pub use error::{Error, Result};
