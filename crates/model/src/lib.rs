//! What a row is: types, schema, rows, deletions and how they reconcile. Pure: no I/O, no clock, no threads.

pub mod types;
