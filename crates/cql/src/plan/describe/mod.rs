//! DESCRIBE: what cqlsh asks of the schema, answered in CQL (`DescribeStatement`).
//!
//! `plan` decides what is described, `element` is one thing that can be, `create` writes the statements that would make
//! it again, `layout` chooses how they tell what a table is, `cluster` answers DESCRIBE CLUSTER.

mod cluster;
mod create;
mod element;
mod layout;
mod plan;

pub(crate) use element::{statements_of_keyspace, statements_of_table};
pub(crate) use plan::DescribePlan;
