//! DESCRIBE: describes the schema in CQL, mostly for cqlsh (`DescribeStatement`).
//!
//! `plan` decides what is described. `element` is an object that can be described, `create` writes the statements that
//! create it again, and `layout` chooses how a table's statement describes it. `cluster` answers DESCRIBE CLUSTER.

mod cluster;
mod create;
mod element;
mod layout;
mod plan;

pub(crate) use element::{parts_of_table, statements_of_keyspace, statements_of_table};
pub(crate) use plan::DescribePlan;
