//! DESCRIBE.

use super::{FunctionName, Ident, QualifiedName};

/// `DESCRIBE ... [WITH INTERNALS]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe<'a> {
    /// What.
    pub what: DescribeWhat<'a>,
    /// `WITH INTERNALS`
    pub internals: bool,
}

/// What can be described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribeWhat<'a> {
    /// `CLUSTER`
    Cluster,
    /// `[FULL] SCHEMA`
    Schema {
        /// `FULL`: system keyspaces as well.
        full: bool,
    },
    /// `KEYSPACES`
    Keyspaces,
    /// `[ONLY] KEYSPACE [ks]`
    Keyspace {
        /// `ONLY`: without what it holds.
        only: bool,
        /// Which; the current one if not given.
        name: Option<Ident<'a>>,
    },
    /// `TABLES`
    Tables,
    /// `TABLE t`
    Table(QualifiedName<'a>),
    /// `INDEX i`
    Index(QualifiedName<'a>),
    /// `MATERIALIZED VIEW v`
    View(QualifiedName<'a>),
    /// `TYPES`
    Types,
    /// `TYPE t`
    Type(QualifiedName<'a>),
    /// `FUNCTIONS`
    Functions,
    /// `FUNCTION f`
    Function(FunctionName<'a>),
    /// `AGGREGATES`
    Aggregates,
    /// `AGGREGATE a`
    Aggregate(FunctionName<'a>),
    /// A name alone: a keyspace, a table, an index or a view.
    Any(QualifiedName<'a>),
}
