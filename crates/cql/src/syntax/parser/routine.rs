//! Parses statements about user-defined functions and aggregates.

use super::super::ast::{CreateAggregate, CreateFunction, DataType, DropRoutine, StatementKind};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;

impl<'a> Parser<'a, '_> {
    fn create_or_replace(&mut self) -> Parsed<bool> {
        self.expect(Kind::Create)?;
        let or_replace = self.eat(Kind::Or)?;
        if or_replace {
            self.expect(Kind::Replace)?;
        }
        Ok(or_replace)
    }

    /// `createFunctionStatement`
    pub(super) fn create_function(&mut self) -> Parsed<StatementKind<'a>> {
        let or_replace = self.create_or_replace()?;
        self.expect(Kind::Function)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        self.expect(Kind::LParen)?;
        let arguments = self.list_until(Kind::RParen, |parser| Ok((parser.ident()?, parser.data_type()?)))?;
        let called_on_null_input = match self.kind() {
            Kind::Returns => {
                self.expect_all(&[Kind::Returns, Kind::Null])?;
                false
            }
            Kind::Called => {
                self.advance()?;
                true
            }
            _ => return Err(self.no_viable()),
        };
        self.expect_all(&[Kind::On, Kind::Null, Kind::Input, Kind::Returns])?;
        let returns = self.data_type()?;
        self.expect(Kind::Language)?;
        let language = self.expect(Kind::Ident)?;
        let language = self.raw(language);
        self.expect(Kind::As)?;
        let body = self.string()?;
        Ok(StatementKind::CreateFunction(CreateFunction {
            or_replace,
            if_not_exists,
            name,
            arguments,
            called_on_null_input,
            returns,
            language,
            body,
        }))
    }

    /// `createAggregateStatement`
    pub(super) fn create_aggregate(&mut self) -> Parsed<StatementKind<'a>> {
        let or_replace = self.create_or_replace()?;
        self.expect(Kind::Aggregate)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arguments = self.argument_types()?;
        self.expect(Kind::Sfunc)?;
        let state_function = self.bare_function_name()?;
        self.expect(Kind::Stype)?;
        let state_type = self.data_type()?;
        let final_function = if self.eat(Kind::Finalfunc)? { Some(self.bare_function_name()?) } else { None };
        let initial = if self.eat(Kind::Initcond)? { Some(self.term()?) } else { None };
        Ok(StatementKind::CreateAggregate(CreateAggregate {
            or_replace,
            if_not_exists,
            name,
            arguments,
            state_function,
            state_type,
            final_function,
            initial,
        }))
    }

    /// `'(' (comparatorType (',' comparatorType)*)? ')'`
    pub(super) fn argument_types(&mut self) -> Parsed<Vec<DataType<'a>>> {
        self.expect(Kind::LParen)?;
        let kind = self.kind();
        if !kind.is_name() && !matches!(kind, Kind::Set | Kind::String | Kind::RParen) {
            return Err(self.mismatched(Kind::RParen.label()));
        }
        self.list_until(Kind::RParen, Self::data_type)
    }

    /// The rest of DROP FUNCTION and DROP AGGREGATE.
    pub(super) fn dropped_routine(&mut self) -> Parsed<DropRoutine<'a>> {
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let arguments = if self.kind() == Kind::LParen { Some(self.argument_types()?) } else { None };
        Ok(DropRoutine { if_exists, name, arguments })
    }
}
