//! User-defined functions and aggregates.

use super::{DataType, FunctionName, Ident, Literal, Term};

/// `CREATE FUNCTION ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateFunction<'a> {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name.
    pub name: FunctionName<'a>,
    /// Its arguments: name and type.
    pub arguments: Vec<(Ident<'a>, DataType<'a>)>,
    /// `CALLED ON NULL INPUT` rather than `RETURNS NULL ON NULL INPUT`.
    pub called_on_null_input: bool,
    /// The type of its result.
    pub returns: DataType<'a>,
    /// The language, as written.
    pub language: &'a str,
    /// The source, a string.
    pub body: Literal<'a>,
}

/// `CREATE AGGREGATE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateAggregate<'a> {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name.
    pub name: FunctionName<'a>,
    /// The types of its arguments.
    pub arguments: Vec<DataType<'a>>,
    /// `SFUNC`
    pub state_function: Ident<'a>,
    /// `STYPE`
    pub state_type: DataType<'a>,
    /// `FINALFUNC`
    pub final_function: Option<Ident<'a>>,
    /// `INITCOND`
    pub initial: Option<Term<'a>>,
}

/// `DROP FUNCTION ...` or `DROP AGGREGATE ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRoutine<'a> {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Its name.
    pub name: FunctionName<'a>,
    /// The types of its arguments; may be left out if only one has that name.
    pub arguments: Option<Vec<DataType<'a>>>,
}
