//! Parses selected expressions: columns, functions, paths into values, literals of all kinds, arithmetic.

use super::super::ast::{
    ArithmeticOperator, DataType, FunctionName, Ident, PathStep, Pos, Selectable, Term, TimeFunction,
};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;
use super::follow;

impl<'a> Parser<'a, '_> {
    /// `unaliasedSelector`
    pub(super) fn selectable(&mut self) -> Parsed<Selectable<'a>> {
        let outer = self.begin_chain();
        let first = self.selectable_product()?;
        let whole = match self.kind() {
            Kind::Plus | Kind::Minus => self.selectable_sum(first)?,
            _ => first,
        };
        self.end_chain(outer);
        Ok(whole)
    }

    #[inline(never)]
    fn selectable_sum(&mut self, first: Selectable<'a>) -> Parsed<Selectable<'a>> {
        let mut rest = Vec::new();
        loop {
            let operator = match self.kind() {
                Kind::Plus => ArithmeticOperator::Add,
                Kind::Minus => ArithmeticOperator::Subtract,
                _ => break,
            };
            self.advance()?;
            self.link()?;
            let outer = self.begin_chain();
            rest.push((operator, self.deeper(Self::selectable_product)?));
            self.end_chain(outer);
        }
        Ok(Selectable::Arithmetic(Box::new(first), rest))
    }

    fn selectable_product(&mut self) -> Parsed<Selectable<'a>> {
        let first = self.selectable_signed()?;
        match self.kind() {
            Kind::Star | Kind::Slash | Kind::Percent => self.selectable_factors(first),
            _ => Ok(first),
        }
    }

    #[inline(never)]
    fn selectable_factors(&mut self, first: Selectable<'a>) -> Parsed<Selectable<'a>> {
        let mut rest = Vec::new();
        loop {
            let operator = match self.kind() {
                Kind::Star => ArithmeticOperator::Multiply,
                Kind::Slash => ArithmeticOperator::Divide,
                Kind::Percent => ArithmeticOperator::Modulo,
                _ => break,
            };
            self.advance()?;
            self.link()?;
            let outer = self.begin_chain();
            rest.push((operator, self.deeper(Self::selectable_signed)?));
            self.end_chain(outer);
        }
        Ok(Selectable::Arithmetic(Box::new(first), rest))
    }

    /// `selectionGroup`
    fn selectable_signed(&mut self) -> Parsed<Selectable<'a>> {
        if self.kind() == Kind::Minus {
            let pos = self.pos();
            self.advance()?;
            let inner = self.deeper(Self::selectable_signed)?;
            return Ok(Selectable::Negation(Box::new(inner), pos));
        }
        let first = self.selectable_simple()?;
        if !matches!(self.kind(), Kind::Dot | Kind::LBracket) {
            return Ok(first);
        }
        // Cassandra tries a value with its path and falls back to the value alone, so an error anywhere in a path is
        // reported where the path begins.
        match self.attempt(Self::steps)? {
            Some(steps) => Ok(Selectable::Path(Box::new(first), steps)),
            None => Ok(first),
        }
    }

    /// `selectorModifier`
    fn steps(&mut self) -> Parsed<Vec<PathStep<'a>>> {
        let mut steps = Vec::new();
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.advance()?;
                    self.link()?;
                    steps.push(PathStep::Field(self.ident()?));
                }
                Kind::LBracket => {
                    self.advance()?;
                    self.link()?;
                    steps.push(self.subscript()?);
                    self.expect(Kind::RBracket)?;
                }
                kind if follow::of_selected(kind) => return Ok(steps),
                _ if self.begins_extension(0) => return Ok(steps),
                _ => return Err(self.no_viable()),
            }
        }
    }

    /// `collectionSubSelection`
    fn subscript(&mut self) -> Parsed<PathStep<'a>> {
        if self.eat(Kind::Range)? {
            return Ok(PathStep::Slice(None, Some(self.term()?)));
        }
        let first = self.term()?;
        if !self.eat(Kind::Range)? {
            return Ok(PathStep::Element(first));
        }
        let second = if self.kind() == Kind::RBracket { None } else { Some(self.term()?) };
        Ok(PathStep::Slice(Some(first), second))
    }

    /// `selectionGroupWithoutField`
    fn selectable_simple(&mut self) -> Parsed<Selectable<'a>> {
        match self.kind() {
            Kind::Ident | Kind::QuotedName => self.column_or_function(),
            kind if kind.is_constant() => Ok(Selectable::Term(Term::Literal(self.constant()?))),
            Kind::Null => {
                let pos = self.pos();
                self.advance()?;
                Ok(Selectable::Term(Term::Null(pos)))
            }
            Kind::QMark if self.look(1).kind == Kind::Dot && self.look(3).kind == Kind::LParen => {
                Err(self.rule(self.pos(), "Bind variables cannot be used for keyspace names"))
            }
            Kind::QMark => {
                let next = self.look(1);
                match follow::of_selected(next.kind) {
                    true => Ok(Selectable::Term(Term::Marker(self.marker()?))),
                    false => Err(self.no_viable_ahead(next)),
                }
            }
            Kind::Colon => Ok(Selectable::Term(Term::Marker(self.marker()?))),
            Kind::LParen | Kind::LBracket | Kind::LBrace => self.deeper(Self::selectable_brackets),
            _ => self.column_or_function(),
        }
    }

    fn selectable_brackets(&mut self) -> Parsed<Selectable<'a>> {
        let pos = self.pos();
        match self.kind() {
            Kind::LParen => {
                if let Some(hint) = self.selectable_hint(pos)? {
                    return Ok(hint);
                }
                self.advance()?;
                let items = self.list(Self::selectable)?;
                self.expect(Kind::RParen)?;
                Ok(Selectable::Tuple(items, pos))
            }
            Kind::LBracket => {
                self.advance()?;
                Ok(Selectable::List(self.list_until(Kind::RBracket, Self::selectable)?, pos))
            }
            _ => self.selectable_braces(pos),
        }
    }

    /// `(type)s`, if the text can be parsed as that; otherwise nothing is consumed.
    fn selectable_hint(&mut self, pos: Pos) -> Parsed<Option<Selectable<'a>>> {
        let first = self.look(1).kind;
        if !first.is_name() && !matches!(first, Kind::Set | Kind::String) {
            return Ok(None);
        }
        let read = |parser: &mut Self| -> Parsed<(DataType<'a>, Selectable<'a>)> {
            parser.advance()?;
            let data_type = parser.data_type()?;
            parser.expect(Kind::RParen)?;
            Ok((data_type, parser.selectable_simple()?))
        };
        Ok(self.attempt(read)?.map(|parts| Selectable::Hint(Box::new(parts), pos)))
    }

    fn selectable_braces(&mut self, pos: Pos) -> Parsed<Selectable<'a>> {
        self.advance()?;
        if self.eat(Kind::RBrace)? {
            return Ok(Selectable::Set(Vec::new(), pos));
        }
        let first = self.selectable()?;
        match self.kind() {
            Kind::Colon => {
                self.advance()?;
                let mut pairs = vec![(first, self.selectable()?)];
                while self.eat(Kind::Comma)? {
                    let key = self.selectable()?;
                    self.expect(Kind::Colon)?;
                    pairs.push((key, self.selectable()?));
                }
                self.expect(Kind::RBrace)?;
                Ok(Selectable::MapOrUdt(pairs, pos))
            }
            Kind::Comma | Kind::RBrace => {
                let mut items = vec![first];
                while self.eat(Kind::Comma)? {
                    items.push(self.selectable()?);
                }
                self.expect(Kind::RBrace)?;
                Ok(Selectable::Set(items, pos))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// `sident | selectionFunction`
    fn column_or_function(&mut self) -> Parsed<Selectable<'a>> {
        let first = self.token;
        let pos = self.pos();
        if !first.kind.is_name() && !first.kind.is_function_name() {
            return Err(self.no_viable());
        }
        let next = self.look(1);
        match next.kind {
            Kind::LParen => return self.deeper(Self::selectable_function),
            // The keyspace of a function; otherwise a step into a column.
            Kind::Dot if self.look(3).kind == Kind::LParen && self.look(2).kind.is_function_name() => {
                let name = self.function_name()?;
                return self.deeper(|parser| parser.selectable_call(name, pos));
            }
            Kind::Dot => {
                let field = self.look(2);
                if !field.kind.is_name() && !field.kind.is_function_name() {
                    return Err(self.no_viable_ahead(field));
                }
            }
            _ => {}
        }
        if !first.kind.is_name() || !follow::of_selected(next.kind) && !self.begins_extension(1) {
            return Err(self.no_viable_ahead(next));
        }
        Ok(Selectable::Column(self.ident()?))
    }

    /// A name that is followed by `(`.
    fn selectable_function(&mut self) -> Parsed<Selectable<'a>> {
        let first = self.token;
        let pos = self.pos();
        match first.kind {
            Kind::Count if self.look(2).kind == Kind::Star => {
                self.expect_all(&[Kind::Count, Kind::LParen, Kind::Star, Kind::RParen])?;
                Ok(Selectable::CountRows(pos))
            }
            Kind::Writetime => self.time_function(TimeFunction::WriteTime, pos),
            Kind::Maxwritetime => self.time_function(TimeFunction::MaxWriteTime, pos),
            Kind::Ttl => self.time_function(TimeFunction::Ttl, pos),
            Kind::Cast => {
                self.expect_all(&[Kind::Cast, Kind::LParen])?;
                let inner = self.selectable()?;
                self.expect(Kind::As)?;
                let to = self.native_type()?;
                self.expect(Kind::RParen)?;
                Ok(Selectable::Cast(Box::new(inner), to, pos))
            }
            kind if !kind.is_function_name() => {
                let next = self.look(1);
                Err(self.no_viable_ahead(next))
            }
            _ => {
                let name: Ident<'a> = self.bare_function_name()?;
                self.selectable_call(FunctionName { keyspace: None, name }, pos)
            }
        }
    }

    fn selectable_call(&mut self, name: FunctionName<'a>, pos: Pos) -> Parsed<Selectable<'a>> {
        self.expect(Kind::LParen)?;
        Ok(Selectable::Function(name, self.list_until(Kind::RParen, Self::selectable)?, pos))
    }

    fn time_function(&mut self, function: TimeFunction, pos: Pos) -> Parsed<Selectable<'a>> {
        self.advance()?;
        self.expect(Kind::LParen)?;
        let column = Selectable::Column(self.ident()?);
        let outer = self.begin_chain();
        let steps = self.steps()?;
        self.end_chain(outer);
        let column = if steps.is_empty() { column } else { Selectable::Path(Box::new(column), steps) };
        self.expect(Kind::RParen)?;
        Ok(Selectable::Time(function, Box::new(column), pos))
    }
}
