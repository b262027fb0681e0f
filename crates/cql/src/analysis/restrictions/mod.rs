//! WHERE clauses: relations become restrictions; restrictions become keys, names, slices and a filter.
//!
//! `relation` types one relation, `restriction` holds it and merges two on one column, `set` holds those on one kind of
//! column, `statement` applies the rules for the whole clause. At execution `partition` and `clustering` encode bound
//! values as ordered bytes, `row_filter` tests the remaining conditions, `index` chooses the indexes that can answer a
//! clause, `where_text` describes the clause for EXPLAIN. The rules and messages are those of `cql3.restrictions` and
//! `cql3.Relation`.

mod clustering;
mod index;
mod partition;
mod relation;
mod restriction;
mod row_filter;
mod set;
mod statement;
mod where_text;

pub(crate) use clustering::RowSelection;
pub(crate) use partition::PartitionSelection;
pub(crate) use restriction::{check_product, elements, room_for_product};
pub(crate) use row_filter::{BoundFilter, ColumnAccess};
pub(crate) use statement::{NearestTo, Restrictions, WhereClause};
pub(crate) use where_text::WhereText;
