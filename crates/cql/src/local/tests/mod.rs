//! Statements on a database over a simulated machine.

mod answers;
mod crash;
mod harness;
mod schema;
mod writes;
