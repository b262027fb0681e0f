//! What a row is: types, schema, rows, deletions and how they reconcile. Pure: no I/O, no clock, no threads.

pub mod cell;
pub mod deletion;
pub mod filter;
pub mod range_tombstone;
pub mod row;
pub mod schema;
pub mod types;
pub mod unfiltered;
