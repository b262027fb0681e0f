//! The entry points of the parser: a whole statement, a data type.

use super::super::ast::{DataType, Explain, Statement, StatementKind, Term};
use super::super::error::{Failure, Parsed};
use super::super::lexer::LexError;
use super::super::token::{Kind, Token};
use super::cursor::Parser;
use crate::budget::{RequestBudget, UNBOUNDED};
use crate::error::SyntaxError;

/// Parses one statement, followed by any number of `;`.
///
/// # Errors
/// The text is not a statement of CQL 3.4.7. The error has Cassandra's message and position.
pub fn parse(text: &str) -> Result<Statement<'_>, SyntaxError> {
    parse_within(text, &UNBOUNDED)
}

/// As `parse`, but `budget` can end it early; the caller checks `budget` to know whether it did.
///
/// # Errors
/// As `parse`.
pub(crate) fn parse_within<'a>(
    text: &'a str,
    work: &RequestBudget<'_>,
) -> Result<Statement<'a>, SyntaxError> {
    whole(text, work, |parser| {
        let kind = parser.statement()?;
        while parser.eat(Kind::Semicolon)? {}
        parser.end()?;
        Ok(Statement { kind, markers: std::mem::take(&mut parser.markers) })
    })
}

/// Parses a data type alone, as in the columns of `system_schema`.
///
/// # Errors
/// The text is not a data type.
pub fn parse_type(text: &str) -> Result<DataType<'_>, SyntaxError> {
    whole(text, &UNBOUNDED, |parser| {
        let data_type = parser.data_type()?;
        parser.end()?;
        Ok(data_type)
    })
}

/// Parses a term alone, such as an argument of a column's mask in the schema.
///
/// # Errors
/// The text is not a term.
pub(crate) fn parse_term(text: &str) -> Result<Term<'_>, SyntaxError> {
    whole(text, &UNBOUNDED, |parser| {
        let term = parser.term()?;
        parser.end()?;
        Ok(term)
    })
}

fn whole<'a, 'w, T>(
    text: &'a str,
    work: &'w RequestBudget<'w>,
    read: impl FnOnce(&mut Parser<'a, 'w>) -> Parsed<T>,
) -> Result<T, SyntaxError> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("a statement of {} bytes is too long; send less than 4 GiB", text.len());
        return Err(SyntaxError { line: 1, column: 0, offset: 0, message });
    }
    let mut parser = match Parser::new(text, work) {
        Ok(parser) => parser,
        Err(failure) => return Err(failure.report(text, 0)),
    };
    read(&mut parser).map_err(|failure| {
        // Cassandra reports the first problem: an invalid token, if parsing got that far.
        match parser.lex_error {
            Some(LexError { at, trouble }) => Failure::Lexical(LexError { at, trouble }).report(text, at),
            None => failure.report(text, parser.read_to),
        }
    })
}

impl<'a> Parser<'a, '_> {
    fn end(&mut self) -> Parsed<()> {
        match self.kind() {
            Kind::Eof => Ok(()),
            _ => Err(self.mismatched(Kind::Eof.label())),
        }
    }

    /// `cqlStatement`, and EXPLAIN.
    fn statement(&mut self) -> Parsed<StatementKind<'a>> {
        match self.kind() {
            Kind::Select => Ok(StatementKind::Select(self.select()?)),
            Kind::Insert => Ok(StatementKind::Insert(self.insert()?)),
            Kind::Update => Ok(StatementKind::Update(self.update()?)),
            Kind::Delete => Ok(StatementKind::Delete(self.delete()?)),
            Kind::Begin => Ok(StatementKind::Batch(self.batch()?)),
            Kind::Use => {
                self.advance()?;
                Ok(StatementKind::Use(self.keyspace_name()?))
            }
            Kind::Truncate => {
                self.advance()?;
                self.eat(Kind::Columnfamily)?;
                Ok(StatementKind::Truncate(self.table_name()?))
            }
            Kind::Create => self.create(),
            Kind::Alter => self.alter(),
            Kind::Drop => self.drop(),
            Kind::Grant => self.grant_or_revoke(true),
            Kind::Revoke => self.grant_or_revoke(false),
            Kind::List => self.list_statement(),
            Kind::Add => self.add_identity(),
            Kind::Describe | Kind::Desc => Ok(StatementKind::Describe(self.describe()?)),
            Kind::Ident if self.spells(self.token, "explain") && self.look(1).kind != Kind::Eof => {
                self.explain()
            }
            _ => Err(self.no_viable()),
        }
    }

    /// Whether a token is this word, which is no keyword.
    pub(super) fn spells(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Ident && self.raw(token).eq_ignore_ascii_case(word)
    }

    /// `EXPLAIN [ANALYZE] [FORMAT JSON] (select | insert | update | delete | batch)`. Its words are not keywords and
    /// remain usable as names; no statement of Cassandra begins with a name.
    fn explain(&mut self) -> Parsed<StatementKind<'a>> {
        self.advance()?;
        let analyze = self.spells(self.token, "analyze");
        if analyze {
            self.advance()?;
        }
        let json = self.spells(self.token, "format");
        if json {
            self.advance()?;
            self.expect(Kind::Json)?;
        }
        let statement = match self.kind() {
            Kind::Select => StatementKind::Select(self.select()?),
            Kind::Insert => StatementKind::Insert(self.insert()?),
            Kind::Update => StatementKind::Update(self.update()?),
            Kind::Delete => StatementKind::Delete(self.delete()?),
            Kind::Begin => StatementKind::Batch(self.batch()?),
            _ => return Err(self.no_viable()),
        };
        Ok(StatementKind::Explain(Box::new(Explain { analyze, json, statement })))
    }
}
