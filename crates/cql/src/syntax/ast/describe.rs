//! DESCRIBE.

use super::{FunctionName, Ident, QualifiedName};

/// `DESCRIBE ... [WITH INTERNALS]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe<'a> {
    /// The object or the listing.
    pub what: DescribeWhat<'a>,
    /// `WITH INTERNALS`
    pub internals: bool,
}

/// The forms of DESCRIBE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribeWhat<'a> {
    /// `CLUSTER`
    Cluster,
    /// `[FULL] SCHEMA`
    Schema {
        /// `FULL`: with system keyspaces.
        full: bool,
    },
    /// `KEYSPACES`
    Keyspaces,
    /// `[ONLY] KEYSPACE [ks]`
    Keyspace {
        /// `ONLY`: without the objects in it.
        only: bool,
        /// The keyspace's name; the current one if not given.
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
    /// A name alone: of a keyspace, a table, an index or a view.
    Any(QualifiedName<'a>),
}
