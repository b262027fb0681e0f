//! Parses terms: constants, collections, function calls, arithmetic.

use std::borrow::Cow;

use super::super::ast::{ArithmeticOperator, FunctionCall, Literal, LiteralKind, Pos, Term};
use super::super::error::Parsed;
use super::super::token::{Kind, Token};
use super::cursor::Parser;
use super::follow;

/// Whether a term can begin with this token.
fn begins_term(kind: Kind) -> bool {
    kind.is_constant()
        || kind.is_name()
        || kind.is_function_name()
        || matches!(
            kind,
            Kind::Null
                | Kind::QMark
                | Kind::Colon
                | Kind::LBracket
                | Kind::LBrace
                | Kind::LParen
                | Kind::Minus
        )
}

/// Whether this token may follow a term that is an operand or is in CAST.
fn goes_on_behind_term(kind: Kind) -> bool {
    follow::of_term(kind) || matches!(kind, Kind::Star | Kind::Slash | Kind::Percent | Kind::As)
}

impl<'a> Parser<'a, '_> {
    /// `term`
    #[inline]
    pub(super) fn term(&mut self) -> Parsed<Term<'a>> {
        let outer = self.begin_chain();
        let first = self.product()?;
        let term = match self.kind() {
            Kind::Plus | Kind::Minus => self.sum(first)?,
            kind if follow::of_term(kind) => first,
            _ if self.begins_extension(0) => first,
            _ => return Err(self.no_viable()),
        };
        self.end_chain(outer);
        Ok(term)
    }

    // Operators are parsed outside the stack frames of terms without one, because terms nest.
    #[inline(never)]
    fn sum(&mut self, first: Term<'a>) -> Parsed<Term<'a>> {
        let mut rest = Vec::new();
        loop {
            let operator = match self.kind() {
                Kind::Plus if self.plus_names_a_column()? => break,
                Kind::Plus => ArithmeticOperator::Add,
                Kind::Minus => ArithmeticOperator::Subtract,
                kind if follow::of_term(kind) => break,
                _ if self.begins_extension(0) => break,
                _ => return Err(self.no_viable()),
            };
            self.advance()?;
            self.link()?;
            rest.push((operator, self.deeper(Self::product_alone)?));
        }
        Ok(if rest.is_empty() { first } else { Term::Arithmetic(Box::new(first), rest) })
    }

    /// A product that is not the first of a chain.
    #[inline(never)]
    fn product_alone(&mut self) -> Parsed<Term<'a>> {
        let outer = self.begin_chain();
        let product = self.product()?;
        self.end_chain(outer);
        Ok(product)
    }

    /// Whether the current `+` is that of `SET c = term + c`: a name follows that is not a function's.
    fn plus_names_a_column(&mut self) -> Parsed<bool> {
        let next = self.look(1);
        if !next.kind.is_column() {
            return if begins_term(next.kind) { Ok(false) } else { Err(self.no_viable_ahead(next)) };
        }
        let behind = self.look(2);
        match behind.kind {
            Kind::LParen | Kind::Dot => Ok(false),
            Kind::Comma | Kind::Where => Ok(true),
            _ => Err(self.no_viable_ahead(behind)),
        }
    }

    #[inline]
    fn product(&mut self) -> Parsed<Term<'a>> {
        let first = self.signed()?;
        if !matches!(self.kind(), Kind::Star | Kind::Slash | Kind::Percent) {
            return Ok(first);
        }
        self.factors(first)
    }

    #[inline(never)]
    fn factors(&mut self, first: Term<'a>) -> Parsed<Term<'a>> {
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
            rest.push((operator, self.deeper(Self::signed)?));
        }
        Ok(Term::Arithmetic(Box::new(first), rest))
    }

    /// `termGroup`
    #[inline]
    fn signed(&mut self) -> Parsed<Term<'a>> {
        if self.kind() != Kind::Minus {
            return self.simple_term();
        }
        self.negation()
    }

    #[inline(never)]
    fn negation(&mut self) -> Parsed<Term<'a>> {
        let pos = self.pos();
        self.advance()?;
        Ok(Term::Negation(Box::new(self.deeper(Self::simple_term)?), pos))
    }

    /// `simpleTerm`
    #[inline]
    fn simple_term(&mut self) -> Parsed<Term<'a>> {
        match self.kind() {
            kind if kind.is_constant() => Ok(Term::Literal(self.constant()?)),
            Kind::QMark => self.anonymous_marker(),
            Kind::Colon => Ok(Term::Marker(self.marker()?)),
            Kind::Null => {
                let pos = self.pos();
                self.advance()?;
                Ok(Term::Null(pos))
            }
            _ => self.deeper(Self::compound_term),
        }
    }

    /// `?`. The grammar also accepts it as the keyspace of a function, and then rejects it.
    fn anonymous_marker(&mut self) -> Parsed<Term<'a>> {
        let first = self.token;
        let marker = self.marker()?;
        match self.kind() {
            kind if goes_on_behind_term(kind) => Ok(Term::Marker(marker)),
            Kind::Dot => Err(self.rule(marker.pos, "Bind variables cannot be used for keyspace names")),
            _ if self.begins_extension(0) => Ok(Term::Marker(marker)),
            _ => Err(self.no_viable_since(first)),
        }
    }

    /// The simple terms that contain others.
    fn compound_term(&mut self) -> Parsed<Term<'a>> {
        let pos = self.pos();
        match self.kind() {
            Kind::LBracket => {
                self.advance()?;
                Ok(Term::List(self.list_until(Kind::RBracket, Self::term)?, pos))
            }
            Kind::LBrace => self.braces(pos),
            Kind::LParen => self.parentheses(pos),
            Kind::Cast if self.look(1).kind == Kind::LParen => {
                self.advance()?;
                self.advance()?;
                let inner = self.simple_term()?;
                self.expect(Kind::As)?;
                let to = self.native_type()?;
                self.expect(Kind::RParen)?;
                Ok(Term::Cast(Box::new(inner), to, pos))
            }
            kind if kind.is_name() || kind.is_function_name() => self.function_call(),
            _ => Err(self.no_viable()),
        }
    }

    fn function_call(&mut self) -> Parsed<Term<'a>> {
        let pos = self.pos();
        let next = self.look(1);
        if !matches!(next.kind, Kind::LParen | Kind::Dot) {
            return Err(self.no_viable_ahead(next));
        }
        let name = self.function_name()?;
        self.expect(Kind::LParen)?;
        let arguments = self.list_until(Kind::RParen, Self::term)?;
        Ok(Term::Function(Box::new(FunctionCall { name, arguments, pos })))
    }

    fn braces(&mut self, pos: Pos) -> Parsed<Term<'a>> {
        self.advance()?;
        if self.eat(Kind::RBrace)? {
            return Ok(Term::Set(Vec::new(), pos));
        }
        if self.kind().is_name() && self.look(1).kind == Kind::Colon {
            let fields = self.list(|parser| {
                let field = parser.ident()?;
                parser.expect(Kind::Colon)?;
                Ok((field, parser.term()?))
            })?;
            self.expect(Kind::RBrace)?;
            return Ok(Term::Udt(fields, pos));
        }
        let first = self.term()?;
        match self.kind() {
            Kind::Colon => {
                self.advance()?;
                let mut pairs = vec![(first, self.term()?)];
                while self.eat(Kind::Comma)? {
                    let key = self.term()?;
                    self.expect(Kind::Colon)?;
                    pairs.push((key, self.term()?));
                }
                self.expect(Kind::RBrace)?;
                Ok(Term::Map(pairs, pos))
            }
            Kind::Comma | Kind::RBrace => {
                let mut items = vec![first];
                while self.eat(Kind::Comma)? {
                    items.push(self.term()?);
                }
                self.expect(Kind::RBrace)?;
                Ok(Term::Set(items, pos))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// `(a, b)` or `(type)term`.
    fn parentheses(&mut self, pos: Pos) -> Parsed<Term<'a>> {
        if self.opens_hint() {
            self.advance()?;
            let data_type = self.data_type()?;
            self.expect(Kind::RParen)?;
            let inner = self.simple_term()?;
            return Ok(Term::Hint(Box::new((data_type, inner)), pos));
        }
        self.advance()?;
        let items = self.list(Self::term)?;
        self.expect(Kind::RParen)?;
        Ok(Term::Tuple(items, pos))
    }

    /// Whether the current `(` begins `(type)` and not a tuple of terms.
    fn opens_hint(&mut self) -> bool {
        let first = self.look(1).kind;
        match self.look(2).kind {
            // `('class')x` against `('a')`: it is a type if a term follows.
            Kind::RParen if first == Kind::String => match self.look(3).kind {
                Kind::Minus => false,
                // `{('a') :f}` is a set of one marker, `{('a') : f(1)}` a map.
                Kind::Colon => self.look(4).kind.is_name() && goes_on_behind_term(self.look(5).kind),
                // `AS` can also be a name: here it is a function only if the tokens after it continue one.
                behind if behind.is_name() || behind.is_function_name() => {
                    matches!(self.look(4).kind, Kind::LParen | Kind::Dot)
                }
                behind => begins_term(behind),
            },
            Kind::RParen | Kind::Less => first.is_name() || first == Kind::Set,
            // After a keyspace: it is a type if `)` follows the name, and a function if `(` does.
            Kind::Dot => first.is_name() && self.look(4).kind != Kind::LParen,
            _ => first == Kind::Set,
        }
    }

    /// `constant`; the caller has seen one.
    #[inline]
    pub(super) fn constant(&mut self) -> Parsed<Literal<'a>> {
        let token = self.token;
        let (kind, text) = match token.kind {
            Kind::String => (LiteralKind::String, self.content(token)),
            Kind::Integer => (LiteralKind::Integer, Cow::Borrowed(self.raw(token))),
            Kind::FloatNumber => (LiteralKind::Float, Cow::Borrowed(self.raw(token))),
            Kind::Bool => (LiteralKind::Boolean, Cow::Borrowed(self.raw(token))),
            Kind::DurationLiteral => (LiteralKind::Duration, Cow::Borrowed(self.raw(token))),
            Kind::UuidLiteral => (LiteralKind::Uuid, Cow::Borrowed(self.raw(token))),
            Kind::Hex => (LiteralKind::Hex, Cow::Borrowed(self.raw(token))),
            // Cassandra drops the sign of `-NaN`.
            Kind::PositiveNan | Kind::NegativeNan => (LiteralKind::Float, Cow::Borrowed("NaN")),
            Kind::PositiveInfinity => (LiteralKind::Float, Cow::Borrowed("Infinity")),
            Kind::NegativeInfinity => (LiteralKind::Float, Cow::Borrowed("-Infinity")),
            _ => return Err(self.no_viable()),
        };
        if token.kind == Kind::FloatNumber {
            self.check_float(token)?;
        }
        self.advance()?;
        Ok(Literal { kind, text, pos: Pos(token.start) })
    }

    #[inline(never)]
    fn check_float(&self, token: Token) -> Parsed<()> {
        let Some(problem) = beyond_numbers(self.raw(token)) else { return Ok(()) };
        let statement = self.text();
        let reason = format!("NumberFormatException {problem}");
        Err(self.rule(Pos(token.start), format!("Failed parsing statement: [{statement}] reason: {reason}")))
    }

    /// `intValue`: an integer or a marker.
    pub(super) fn int_value(&mut self) -> Parsed<Term<'a>> {
        match self.kind() {
            Kind::Integer => Ok(Term::Literal(self.constant()?)),
            Kind::QMark | Kind::Colon => Ok(Term::Marker(self.marker()?)),
            _ => Err(self.no_viable()),
        }
    }

    /// A duration or a marker.
    pub(super) fn duration_value(&mut self) -> Parsed<Term<'a>> {
        match self.kind() {
            Kind::DurationLiteral => Ok(Term::Literal(self.constant()?)),
            Kind::QMark | Kind::Colon => Ok(Term::Marker(self.marker()?)),
            _ => Err(self.no_viable()),
        }
    }

    /// A string where only a string is allowed.
    pub(super) fn string(&mut self) -> Parsed<Literal<'a>> {
        if self.kind() != Kind::String {
            return Err(self.mismatched(Kind::String.label()));
        }
        self.constant()
    }
}

/// Why Cassandra rejects a number with a fraction or an exponent. Its parser makes each such constant a `BigDecimal`
/// and a double, whatever its type will be, and the number must be in the range of both.
fn beyond_numbers(text: &str) -> Option<&'static str> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = exponent.trim_start_matches(['-', '+']).trim_start_matches('0');
    if digits.len() > 10 {
        return Some("Too many nonzero exponent digits.");
    }
    let Ok(exponent) = exponent.parse::<i32>() else { return Some("Exponent overflow.") };
    let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if i32::try_from(places as i64 - i64::from(exponent)).is_err() {
        return Some("Scale out of range.");
    }
    let is_endless = text.parse::<f64>().is_ok_and(f64::is_infinite);
    is_endless.then_some(
        "Character I is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.",
    )
}
