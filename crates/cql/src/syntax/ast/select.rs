//! SELECT.

use super::{ArithmeticOperator, DataType, FunctionName, Ident, Native, Pos, QualifiedName, Relation, Term};

/// `SELECT ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select<'a> {
    /// `JSON`
    pub json: bool,
    /// `DISTINCT`
    pub distinct: bool,
    /// The selected expressions.
    pub selectors: Selectors<'a>,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `WHERE`, joined by AND.
    pub filter: Vec<Relation<'a>>,
    /// `GROUP BY`
    pub group_by: Vec<Selectable<'a>>,
    /// `ORDER BY`
    pub order_by: Vec<Ordering<'a>>,
    /// `PER PARTITION LIMIT`: an integer or a marker.
    pub per_partition_limit: Option<Term<'a>>,
    /// `LIMIT`: an integer or a marker.
    pub limit: Option<Term<'a>>,
    /// `ALLOW FILTERING`
    pub allow_filtering: bool,
    /// `BYPASS CACHE`, which is ScyllaDB's.
    pub bypass_cache: bool,
    /// `USING TIMEOUT`, which is ScyllaDB's: a duration or a marker.
    pub timeout: Option<Term<'a>>,
}

/// The SELECT clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selectors<'a> {
    /// `*`
    All,
    /// A list, with at least one.
    List(Vec<Selector<'a>>),
}

/// A selected expression with its alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector<'a> {
    /// The expression.
    pub selectable: Selectable<'a>,
    /// `AS name`
    pub alias: Option<Ident<'a>>,
}

/// An expression that can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selectable<'a> {
    /// A column.
    Column(Ident<'a>),
    /// A constant, `null` or a bind marker; no other form of `Term` is possible here.
    Term(Term<'a>),
    /// `count(*)`
    CountRows(Pos),
    /// `writetime(c)`, `maxwritetime(c)` or `ttl(c)`; the column may be followed by a path into it.
    Time(TimeFunction, Box<Selectable<'a>>, Pos),
    /// `CAST(s AS type)`
    Cast(Box<Selectable<'a>>, Native, Pos),
    /// `f(a, b)`
    Function(FunctionName<'a>, Vec<Selectable<'a>>, Pos),
    /// `s.field`, `s[element]`, `s[from..to]`, one after another. The `Vec` is never empty.
    Path(Box<Selectable<'a>>, Vec<PathStep<'a>>),
    /// `(a, b)`: a tuple, or with one element only parentheses.
    Tuple(Vec<Selectable<'a>>, Pos),
    /// `[a, b]`
    List(Vec<Selectable<'a>>, Pos),
    /// `{a, b}`, and `{}`.
    Set(Vec<Selectable<'a>>, Pos),
    /// `{a: b}`: a map, or a user-defined type if all keys are columns.
    MapOrUdt(Vec<(Selectable<'a>, Selectable<'a>)>, Pos),
    /// `(type)s`
    Hint(Box<(DataType<'a>, Selectable<'a>)>, Pos),
    /// `-s`
    Negation(Box<Selectable<'a>>, Pos),
    /// Operators of one precedence, applied from the left. The `Vec` is never empty.
    Arithmetic(Box<Selectable<'a>>, Vec<(ArithmeticOperator, Selectable<'a>)>),
}

impl Selectable<'_> {
    /// Its position.
    pub fn pos(&self) -> Pos {
        match self {
            Selectable::Column(column) => column.pos,
            Selectable::Term(term) => term.pos(),
            Selectable::Path(first, _) | Selectable::Arithmetic(first, _) => first.pos(),
            Selectable::CountRows(pos)
            | Selectable::Time(_, _, pos)
            | Selectable::Cast(_, _, pos)
            | Selectable::Function(_, _, pos)
            | Selectable::Tuple(_, pos)
            | Selectable::List(_, pos)
            | Selectable::Set(_, pos)
            | Selectable::MapOrUdt(_, pos)
            | Selectable::Hint(_, pos)
            | Selectable::Negation(_, pos) => *pos,
        }
    }
}

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// `.field`
    Field(Ident<'a>),
    /// `[element]`
    Element(Term<'a>),
    /// `[from..to]`; one of the two may be missing.
    Slice(Option<Term<'a>>, Option<Term<'a>>),
}

/// The functions of a cell's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFunction {
    /// `writetime`
    WriteTime,
    /// `maxwritetime`
    MaxWriteTime,
    /// `ttl`
    Ttl,
}

impl TimeFunction {
    /// The function's name, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            TimeFunction::WriteTime => "writetime",
            TimeFunction::MaxWriteTime => "maxwritetime",
            TimeFunction::Ttl => "ttl",
        }
    }
}

/// One element of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordering<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// `ANN OF term`: by similarity to this vector.
    pub ann_of: Option<Term<'a>>,
    /// `DESC`
    pub descending: bool,
}
