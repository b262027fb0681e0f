//! Statements of CQL 2.

use helenus_wire::thrift::ConsistencyLevel;

/// A name or value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// A word, number, UUID or text.
    Text(String),
    /// `?`, with its index.
    Marker(usize),
}

/// The operator of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A relation in WHERE, such as `name = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) name: Term,
    pub(super) comparison: Comparison,
    pub(super) value: Term,
}

/// The columns of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// `*`.
    All,
    /// `'a'..'b'`.
    Range(Term, Term),
    /// By name, in the order of the answer.
    Names(Vec<Term>),
}

/// A column family: its keyspace, if given, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FamilyName {
    pub(super) keyspace: Option<String>,
    pub(super) name: String,
}

/// SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Select {
    pub(super) counts: bool,
    pub(super) first: Option<i32>,
    pub(super) reversed: bool,
    pub(super) columns: Columns,
    pub(super) family: FamilyName,
    pub(super) level: Option<ConsistencyLevel>,
    pub(super) relations: Vec<Relation>,
    /// `name IN (..)`, in place of relations.
    pub(super) keys: Option<(Term, Vec<Term>)>,
    pub(super) limit: Option<i32>,
}

/// The options after USING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Using {
    pub(super) level: Option<ConsistencyLevel>,
    pub(super) timestamp_us: Option<i64>,
    pub(super) ttl_s: Option<i32>,
}

/// The operation on a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Set(Term),
    /// `a = b + 1`: the column `b`, the number, and whether it is subtracted.
    Count(Term, Term, bool),
}

/// The change that a statement makes to its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Set(Vec<(Term, Operation)>),
    /// The columns to delete; empty: the whole row.
    Delete(Vec<Term>),
}

/// UPDATE, INSERT or DELETE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modify {
    pub(super) family: FamilyName,
    pub(super) key_name: Term,
    pub(super) keys: Vec<Term>,
    pub(super) using: Using,
    pub(super) change: Change,
    /// Where its text begins and ends in that of the statement, bytes.
    pub(super) place: (usize, usize),
}

/// The change of ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alteration {
    /// ALTER or ADD a column with a type.
    Column(Term, String, bool),
    Drop(Term),
    With(Vec<(String, String)>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Use(String),
    Select(Select),
    Modify(Modify),
    Batch(Using, Vec<Modify>),
    Truncate(FamilyName),
    CreateKeyspace(String, Vec<(String, String)>),
    DropKeyspace(String),
    CreateFamily {
        name: String,
        /// Name and type of the row key.
        key: Option<(Term, String)>,
        columns: Vec<(Term, String)>,
        properties: Vec<(String, String)>,
    },
    DropFamily(String),
    AlterFamily(String, Alteration),
    CreateIndex {
        name: Option<String>,
        family: String,
        column: Term,
    },
    DropIndex(String),
}
