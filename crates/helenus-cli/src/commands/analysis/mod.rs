//! Exports tables as Parquet and Arrow files. Behind the feature `analysis`, because its libraries are large.
//!
//! `types` maps CQL types to Arrow types, `column` builds arrays, `rows` builds batches of the live rows of a read, and
//! `write` writes them to files. The files do not contain timestamps or times to live. An empty value becomes a null if
//! its type has no empty value in Arrow.

mod column;
mod rows;
mod types;
mod write;

pub use write::{Form, Reader};
