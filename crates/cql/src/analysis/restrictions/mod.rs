//! WHERE: relations become restrictions, restrictions become keys, names, slices and a filter.
//!
//! `relation` types one relation, `restriction` says what it is and how two of one column merge, `set` keeps those of
//! one kind of column, `statement` applies the rules that concern the whole clause. At execution `partition` and
//! `clustering` turn bound values into ordered bytes, `row_filter` tests what neither can express, `index` chooses the
//! index that answers a clause, `words` says all of it for EXPLAIN. The rules and texts are those of `cql3.restrictions`
//! and `cql3.Relation`.

mod clustering;
mod index;
mod partition;
mod relation;
mod restriction;
mod row_filter;
mod set;
mod statement;
mod words;

pub(crate) use clustering::RowSelection;
pub(crate) use partition::PartitionSelection;
pub(crate) use restriction::check_product;
pub(crate) use row_filter::{BoundFilter, Found};
pub(crate) use statement::{NearestTo, Restrictions, WhereClause};
pub(crate) use words::Words;
