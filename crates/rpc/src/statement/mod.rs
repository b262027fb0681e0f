//! CQL statements through Thrift RPC: CQL 3 and CQL 2.

mod cql2;
mod cql3;
mod rows;
mod text;

pub(crate) use cql2::subject;
pub(crate) use text::text;
