//! Statements of CQL through the interface: CQL 3 as it is, and the first dialect.

mod cql3;
mod first;
mod rows;
mod text;

pub(crate) use rows::NoRows;
pub(crate) use text::text;
