//! Statements on a database over a simulated machine.

mod answers;
mod cassandra_texts;
mod crash;
mod depth;
mod explain;
mod features;
mod harness;
mod indexes;
mod null_elements;
mod nulls_in_lists;
mod schema;
mod super_families;
mod timeouts;
mod waited;
mod writes;
