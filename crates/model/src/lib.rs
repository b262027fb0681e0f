//! The data model: types, schema, rows, deletions and their reconciliation. Pure: no I/O, no clock, no threads.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test ends where its expectation does"))]

pub mod byte_comparable;
pub mod cell;
pub mod coalesce;
pub mod column_map;
pub mod counter_context;
pub mod deletion;
pub mod filter;
pub mod index;
pub mod merge;
pub mod murmur3;
pub mod mutation;
pub mod packed;
pub mod partitions;
pub mod permission;
pub mod range_tombstone;
pub mod reconcile;
pub mod row;
pub mod row_batch;
pub mod schema;
pub mod token;
pub mod types;
pub mod unfiltered;
pub mod vint;
