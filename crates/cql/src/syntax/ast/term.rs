//! Terms: the values on the right of `=` and in VALUES.

use std::borrow::Cow;

use super::{DataType, FunctionName, Ident, Native, Pos};

/// A value, not yet typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term<'a> {
    /// A constant.
    Literal(Literal<'a>),
    /// `null`.
    Null(Pos),
    /// `?` or `:name`.
    Marker(Marker),
    /// `[a, b]`: a list, or a vector.
    List(Vec<Term<'a>>, Pos),
    /// `{a, b}`, and `{}`, which may be an empty map as well.
    Set(Vec<Term<'a>>, Pos),
    /// `{k: v}`, at least one pair.
    Map(Vec<(Term<'a>, Term<'a>)>, Pos),
    /// `{field: v}`, at least one field.
    Udt(Vec<(Ident<'a>, Term<'a>)>, Pos),
    /// `(a, b)`, at least one. There are no other parentheses in terms.
    Tuple(Vec<Term<'a>>, Pos),
    /// `f(a, b)`.
    Function(Box<FunctionCall<'a>>),
    /// `(type)term`: gives the type of the term without converting it.
    Hint(Box<(DataType<'a>, Term<'a>)>, Pos),
    /// `CAST(term AS type)`.
    Cast(Box<Term<'a>>, Native, Pos),
    /// `-term`, where the term is not a signed number.
    Negation(Box<Term<'a>>, Pos),
    /// `a + b - c` or `a * b / c`: operators of one precedence, applied from the left. The `Vec` is never empty.
    Arithmetic(Box<Term<'a>>, Vec<(ArithmeticOperator, Term<'a>)>),
}

impl Term<'_> {
    /// The term's position.
    pub fn pos(&self) -> Pos {
        match self {
            Term::Literal(literal) => literal.pos,
            Term::Marker(marker) => marker.pos,
            Term::Function(call) => call.pos,
            Term::Arithmetic(first, _) => first.pos(),
            Term::Null(pos)
            | Term::List(_, pos)
            | Term::Set(_, pos)
            | Term::Map(_, pos)
            | Term::Udt(_, pos)
            | Term::Tuple(_, pos)
            | Term::Hint(_, pos)
            | Term::Cast(_, _, pos)
            | Term::Negation(_, pos) => *pos,
        }
    }
}

/// A bind marker; its name is in the statement's list of markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its index, from 0, in order of appearance in the whole statement.
    pub index: u32,
    /// Its position.
    pub pos: Pos,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal<'a> {
    /// Its form.
    pub kind: LiteralKind,
    /// A string's content; otherwise the text as written, except that special floats are always `NaN`, `Infinity` or
    /// `-Infinity`.
    pub text: Cow<'a, str>,
    /// Its position.
    pub pos: Pos,
}

/// The forms of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// `'..'` or `$$..$$`.
    String,
    /// `-?[0-9]+`, of any length.
    Integer,
    /// With a point or an exponent, or `NaN`, `Infinity`.
    Float,
    /// `true` or `false`, in any case.
    Boolean,
    /// `1y2mo`, `P1Y2M`, `P0001-02-03T04:05:06` and so on.
    Duration,
    /// A UUID.
    Uuid,
    /// `0x` and hexadecimal digits, possibly none, possibly an odd number.
    Hex,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// The function.
    pub name: FunctionName<'a>,
    /// Its arguments.
    pub arguments: Vec<Term<'a>>,
    /// The call's position.
    pub pos: Pos,
}

/// An operator between numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl ArithmeticOperator {
    /// The operator's character.
    pub const fn as_char(self) -> char {
        match self {
            ArithmeticOperator::Add => '+',
            ArithmeticOperator::Subtract => '-',
            ArithmeticOperator::Multiply => '*',
            ArithmeticOperator::Divide => '/',
            ArithmeticOperator::Modulo => '%',
        }
    }
}
