//! The tokens that may follow a name, a term or a type anywhere in the language.
//!
//! Before Cassandra's parser accepts some constructs, it looks one token further, and fails with "no viable
//! alternative" if nothing in the whole language continues like that. Without these sets the same texts would be
//! rejected, but with other messages and sometimes at another position.

use super::super::token::Kind;

/// After a column in a SELECT clause or GROUP BY, and after a path into one.
pub(super) const fn of_selected(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comma
            | Kind::From
            | Kind::As
            | Kind::Plus
            | Kind::Minus
            | Kind::Star
            | Kind::Slash
            | Kind::Percent
            | Kind::RParen
            | Kind::RBracket
            | Kind::RBrace
            | Kind::Colon
            | Kind::Dot
            | Kind::LBracket
            | Kind::Order
            | Kind::Per
            | Kind::Limit
            | Kind::Allow
            | Kind::Semicolon
            | Kind::Eof
    )
}

/// After a term.
#[inline]
pub(super) const fn of_term(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comma
            | Kind::RParen
            | Kind::RBracket
            | Kind::RBrace
            | Kind::Colon
            | Kind::Range
            | Kind::Plus
            | Kind::Minus
            | Kind::And
            | Kind::Where
            | Kind::If
            | Kind::Group
            | Kind::Order
            | Kind::Per
            | Kind::Limit
            | Kind::Allow
            | Kind::Asc
            | Kind::Desc
            | Kind::Primary
            | Kind::Insert
            | Kind::Update
            | Kind::Delete
            | Kind::Apply
            | Kind::Semicolon
            | Kind::Eof
    )
}

/// After a data type.
pub(super) const fn of_type(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comma
            | Kind::RParen
            | Kind::Greater
            | Kind::Static
            | Kind::Masked
            | Kind::Primary
            | Kind::Language
            | Kind::Finalfunc
            | Kind::Initcond
            | Kind::Semicolon
            | Kind::Eof
    )
}

/// After the name of a table.
pub(super) const fn of_table(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LParen
            | Kind::Json
            | Kind::Using
            | Kind::Set
            | Kind::Where
            | Kind::Group
            | Kind::Order
            | Kind::Per
            | Kind::Limit
            | Kind::Allow
            | Kind::With
            | Kind::As
            | Kind::Add
            | Kind::Alter
            | Kind::Drop
            | Kind::Rename
            | Kind::To
            | Kind::From
            | Kind::Of
            | Kind::Norecursive
            | Kind::Primary
            | Kind::Semicolon
            | Kind::Eof
    )
}

/// After the name of a function.
pub(super) const fn of_function(kind: Kind) -> bool {
    matches!(kind, Kind::LParen | Kind::Sfunc | Kind::With | Kind::Semicolon | Kind::Eof)
}
