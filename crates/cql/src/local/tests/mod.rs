//! Statements on a database over a simulated machine.

mod answers;
mod crash;
mod explain;
mod harness;
mod schema;
mod writes;
