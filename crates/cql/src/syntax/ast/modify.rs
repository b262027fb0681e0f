//! INSERT, UPDATE, DELETE, BATCH.

use super::{Condition, Ident, Pos, QualifiedName, Relation, Term};

/// `USING TIMESTAMP .. AND TTL .. AND TIMEOUT ..`; if one is repeated, the last counts. TIMEOUT is ScyllaDB's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Using<'a> {
    /// Microseconds since 1970.
    pub timestamp: Option<Term<'a>>,
    /// Seconds.
    pub ttl: Option<Term<'a>>,
    /// The time that the statement may take: a duration or a marker.
    pub timeout: Option<Term<'a>>,
}

/// The IF clause of an UPDATE or a DELETE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Guard<'a> {
    /// No IF.
    #[default]
    None,
    /// `IF EXISTS`
    Exists,
    /// `IF a = 1 AND ...`, at least one.
    Conditions(Vec<Condition<'a>>),
}

/// `INSERT INTO ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// The table.
    pub table: QualifiedName<'a>,
    /// The columns and values.
    pub data: InsertData<'a>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `USING`
    pub using: Using<'a>,
}

/// The two forms of the inserted data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertData<'a> {
    /// `(a, b) VALUES (1, 2)`; the two lists may differ in length.
    Values {
        /// The columns, at least one.
        columns: Vec<Ident<'a>>,
        /// The values, at least one.
        values: Vec<Term<'a>>,
    },
    /// `JSON '...'`
    Json {
        /// A string or a marker.
        value: Term<'a>,
        /// `DEFAULT UNSET`: columns that the JSON does not contain keep their values.
        default_unset: bool,
    },
}

/// `UPDATE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING`
    pub using: Using<'a>,
    /// `SET`, at least one.
    pub assignments: Vec<Assignment<'a>>,
    /// `WHERE`, at least one.
    pub filter: Vec<Relation<'a>>,
    /// `IF`
    pub guard: Guard<'a>,
}

/// One change of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// The change.
    pub kind: AssignmentKind<'a>,
}

/// The kinds of changes of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignmentKind<'a> {
    /// `c = term`
    Set(Term<'a>),
    /// `c = c + term` or `c += term`
    Add(Term<'a>),
    /// `c = c - term` or `c -= term`. `c = c -3` is `Add` of -3.
    Subtract(Term<'a>),
    /// `c = term + c`
    Prepend(Term<'a>),
    /// `c[key] = term`
    SetElement(Term<'a>, Term<'a>),
    /// `c.field = term`
    SetField(Ident<'a>, Term<'a>),
}

/// `DELETE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The parts of the row to delete; empty for all of it.
    pub targets: Vec<DeleteTarget<'a>>,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING`, without a TTL.
    pub using: Using<'a>,
    /// `WHERE`, at least one.
    pub filter: Vec<Relation<'a>>,
    /// `IF`
    pub guard: Guard<'a>,
}

/// A part of a row that a DELETE deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteTarget<'a> {
    /// A column.
    Column(Ident<'a>),
    /// `c[key]`
    Element(Ident<'a>, Term<'a>),
    /// `c.field`
    Field(Ident<'a>, Ident<'a>),
}

/// `BEGIN BATCH ... APPLY BATCH`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The kind of the batch.
    pub kind: BatchKind,
    /// `USING`
    pub using: Using<'a>,
    /// The statements, possibly none.
    pub items: Vec<BatchItem<'a>>,
}

/// The kinds of batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// `BEGIN BATCH`
    Logged,
    /// `BEGIN UNLOGGED BATCH`
    Unlogged,
    /// `BEGIN COUNTER BATCH`
    Counter,
}

/// A statement in a batch, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchItem<'a> {
    /// INSERT
    Insert(Insert<'a>, Pos),
    /// UPDATE
    Update(Update<'a>, Pos),
    /// DELETE
    Delete(Delete<'a>, Pos),
}
