//! Tables for analysis: Parquet and Arrow. Behind the feature `analysis`, for the weight of its libraries.
//!
//! `types` says how CQL types become Arrow's, `column` gathers values, `rows` makes batches of a read's live rows, `write`
//! writes them. What is lost: timestamps and times to live; empty values of types that have none in Arrow become nulls.

mod column;
mod rows;
mod types;
mod write;

pub use write::{Form, Reader};
