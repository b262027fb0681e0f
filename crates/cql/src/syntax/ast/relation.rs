//! WHERE and IF: relations between columns and terms.

use super::{Ident, Marker, Pos, Term};

/// One relation of a WHERE clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// The relation itself.
    pub kind: RelationKind<'a>,
    /// Its position.
    pub pos: Pos,
}

/// The forms of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelationKind<'a> {
    /// `column = term`, `column[element] = term`, `column CONTAINS term`, `column LIKE term`. With an element only the
    /// six comparison signs are possible.
    Column {
        /// The column.
        column: Ident<'a>,
        /// The map's key.
        element: Option<Term<'a>>,
        /// The comparison.
        comparison: Comparison,
        /// The value it is compared with.
        value: Term<'a>,
    },
    /// `column IN (...)`
    In(Ident<'a>, InValues<'a>),
    /// `column IS NOT NULL`
    IsNotNull(Ident<'a>),
    /// `token(a, b) > term`, with one of the six comparison signs.
    Token(Vec<Ident<'a>>, Comparison, Term<'a>),
    /// `(a, b) > (1, 2)`, with one of the six comparison signs; the term is a tuple or a marker.
    Tuple(Vec<Ident<'a>>, Comparison, Term<'a>),
    /// `(a, b) IN ((1, 2), ...)`; the terms are all tuples or all markers.
    TupleIn(Vec<Ident<'a>>, InValues<'a>),
    /// `expr(index, term)`
    Custom(Ident<'a>, Term<'a>),
}

/// The comparisons of relations and conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `CONTAINS`
    Contains,
    /// `CONTAINS KEY`
    ContainsKey,
    /// `LIKE`
    Like,
}

impl Comparison {
    /// Whether it selects a range.
    pub const fn is_slice(self) -> bool {
        matches!(
            self,
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual
        )
    }

    /// The sign or keywords.
    pub const fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Contains => "CONTAINS",
            Comparison::ContainsKey => "CONTAINS KEY",
            Comparison::Like => "LIKE",
        }
    }
}

/// The values of an IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InValues<'a> {
    /// One marker for the whole list.
    Marker(Marker),
    /// `(a, b, ...)`, possibly empty.
    List(Vec<Term<'a>>),
}

/// One condition of an IF clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// `[element]`
    pub element: Option<Term<'a>>,
    /// `.field`; never together with an element.
    pub field: Option<Ident<'a>>,
    /// The test of the value.
    pub test: Test<'a>,
}

/// The tests of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test<'a> {
    /// One of the six comparison signs, or CONTAINS \[KEY\] of a whole column.
    Compare(Comparison, Term<'a>),
    /// `IN`
    In(InValues<'a>),
}
