//! Statements on a database over a simulated machine.

mod answers;
mod crash;
mod depth;
mod explain;
mod features;
mod harness;
mod indexes;
mod schema;
mod super_families;
mod timeouts;
mod writes;
