//! Parses WHERE and IF.

use super::super::ast::{Comparison, Condition, Guard, Ident, InValues, Relation, RelationKind, Term, Test};
use super::super::error::Parsed;
use super::super::token::{Kind, Token};
use super::cursor::Parser;

/// `relationType`
fn sign(kind: Kind) -> Option<Comparison> {
    Some(match kind {
        Kind::Equal => Comparison::Equal,
        Kind::NotEqual => Comparison::NotEqual,
        Kind::Less => Comparison::Less,
        Kind::LessEqual => Comparison::LessOrEqual,
        Kind::Greater => Comparison::Greater,
        Kind::GreaterEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

impl<'a> Parser<'a, '_> {
    /// `whereClause`
    pub(super) fn where_clause(&mut self) -> Parsed<Vec<Relation<'a>>> {
        let mut relations = vec![self.relation_or_expression()?];
        while self.eat(Kind::And)? {
            relations.push(self.relation_or_expression()?);
        }
        Ok(relations)
    }

    fn relation_or_expression(&mut self) -> Parsed<Relation<'a>> {
        let pos = self.pos();
        if !self.eat(Kind::ExprParen)? {
            return self.relation();
        }
        let index = self.index_name()?;
        self.expect(Kind::Comma)?;
        let value = self.term()?;
        self.expect(Kind::RParen)?;
        Ok(Relation { kind: RelationKind::Custom(index, value), pos })
    }

    /// `relation`
    fn relation(&mut self) -> Parsed<Relation<'a>> {
        let pos = self.pos();
        let first = self.token;
        let kind = match first.kind {
            Kind::Token => {
                self.advance()?;
                let columns = self.column_tuple()?;
                let comparison = self.sign()?;
                RelationKind::Token(columns, comparison, self.term()?)
            }
            Kind::LParen if self.opens_column_tuple() => {
                let columns = self.column_tuple()?;
                self.tuple_relation(columns)?
            }
            Kind::LParen => {
                self.check_relation_ahead()?;
                self.advance()?;
                let inner = self.deeper(Self::relation)?;
                self.expect(Kind::RParen)?;
                return Ok(inner);
            }
            _ => {
                let column = self.column()?;
                self.column_relation(column, first)?
            }
        };
        Ok(Relation { kind, pos })
    }

    /// Whether the current `(` begins `(a, b)` and not a relation.
    fn opens_column_tuple(&mut self) -> bool {
        self.look(1).kind.is_column() && matches!(self.look(2).kind, Kind::Comma | Kind::RParen)
    }

    /// Fails if the tokens after the current `(` cannot begin a relation.
    fn check_relation_ahead(&mut self) -> Parsed<()> {
        let first = self.look(1);
        let bad = match first.kind {
            Kind::Token | Kind::LParen => return Ok(()),
            kind if kind.is_column() => {
                let next = self.look(2);
                match next.kind {
                    Kind::Like | Kind::Is | Kind::In | Kind::Contains | Kind::LBracket => return Ok(()),
                    kind if sign(kind).is_some() => return Ok(()),
                    _ => next,
                }
            }
            _ => first,
        };
        Err(self.no_viable_ahead(bad))
    }

    fn column_tuple(&mut self) -> Parsed<Vec<Ident<'a>>> {
        self.expect(Kind::LParen)?;
        let columns = self.list(Self::column)?;
        self.expect(Kind::RParen)?;
        Ok(columns)
    }

    fn sign(&mut self) -> Parsed<Comparison> {
        let Some(comparison) = sign(self.kind()) else { return Err(self.no_viable()) };
        self.advance()?;
        Ok(comparison)
    }

    /// The rest of a relation after its column; the relation began with `first`.
    #[inline]
    fn column_relation(&mut self, column: Ident<'a>, first: Token) -> Parsed<RelationKind<'a>> {
        if let Some(comparison) = sign(self.kind()) {
            self.advance()?;
            return Ok(RelationKind::Column { column, element: None, comparison, value: self.term()? });
        }
        match self.kind() {
            Kind::In => {
                self.advance()?;
                match self.kind() {
                    Kind::QMark | Kind::Colon | Kind::LParen => {
                        Ok(RelationKind::In(column, self.in_values()?))
                    }
                    _ => Err(self.no_viable_since(first)),
                }
            }
            Kind::Like => {
                self.advance()?;
                let value = self.term()?;
                Ok(RelationKind::Column { column, element: None, comparison: Comparison::Like, value })
            }
            Kind::Is => {
                self.expect_all(&[Kind::Is, Kind::Not, Kind::Null])?;
                Ok(RelationKind::IsNotNull(column))
            }
            Kind::Contains => {
                let comparison = self.contains()?;
                Ok(RelationKind::Column { column, element: None, comparison, value: self.term()? })
            }
            Kind::LBracket => {
                self.advance()?;
                let element = Some(self.term()?);
                self.expect(Kind::RBracket)?;
                let comparison = self.sign()?;
                Ok(RelationKind::Column { column, element, comparison, value: self.term()? })
            }
            _ => Err(self.no_viable_since(first)),
        }
    }

    /// `containsOperator`
    fn contains(&mut self) -> Parsed<Comparison> {
        self.expect(Kind::Contains)?;
        Ok(if self.eat(Kind::Key)? { Comparison::ContainsKey } else { Comparison::Contains })
    }

    /// `inMarker | singleColumnInValues`
    fn in_values(&mut self) -> Parsed<InValues<'a>> {
        match self.kind() {
            Kind::QMark | Kind::Colon => Ok(InValues::Marker(self.marker()?)),
            Kind::LParen => {
                self.advance()?;
                Ok(InValues::List(self.list_until(Kind::RParen, Self::term)?))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// The rest of a relation after `(a, b)`.
    fn tuple_relation(&mut self, columns: Vec<Ident<'a>>) -> Parsed<RelationKind<'a>> {
        if self.eat(Kind::In)? {
            return Ok(RelationKind::TupleIn(columns, self.tuple_in_values()?));
        }
        let decision = self.token;
        let comparison = self.sign()?;
        match self.kind() {
            Kind::QMark | Kind::Colon => {
                Ok(RelationKind::Tuple(columns, comparison, Term::Marker(self.marker()?)))
            }
            Kind::LParen => Ok(RelationKind::Tuple(columns, comparison, self.tuple_literal()?)),
            _ => Err(self.no_viable_since(decision)),
        }
    }

    fn tuple_in_values(&mut self) -> Parsed<InValues<'a>> {
        match self.kind() {
            Kind::QMark | Kind::Colon => return Ok(InValues::Marker(self.marker()?)),
            Kind::LParen => {}
            _ => return Err(self.no_viable()),
        }
        let next = self.look(1);
        match next.kind {
            Kind::RParen | Kind::LParen => {
                self.advance()?;
                Ok(InValues::List(self.list_until(Kind::RParen, Self::tuple_literal)?))
            }
            Kind::QMark | Kind::Colon => {
                self.advance()?;
                Ok(InValues::List(self.list_until(Kind::RParen, |parser| match parser.kind() {
                    Kind::QMark | Kind::Colon => Ok(Term::Marker(parser.marker()?)),
                    _ => Err(parser.no_viable()),
                })?))
            }
            _ => Err(self.no_viable_ahead(next)),
        }
    }

    /// `tupleLiteral`
    fn tuple_literal(&mut self) -> Parsed<Term<'a>> {
        let pos = self.pos();
        self.expect(Kind::LParen)?;
        let items = self.list(Self::term)?;
        self.expect(Kind::RParen)?;
        Ok(Term::Tuple(items, pos))
    }

    /// The `IF ...` of an UPDATE or a DELETE, if there is one.
    pub(super) fn guard(&mut self) -> Parsed<Guard<'a>> {
        if !self.eat(Kind::If)? {
            return Ok(Guard::None);
        }
        if self.kind() == Kind::Exists && self.exists_is_the_keyword() {
            self.advance()?;
            return Ok(Guard::Exists);
        }
        let mut conditions = vec![self.condition()?];
        while self.eat(Kind::And)? {
            conditions.push(self.condition()?);
        }
        Ok(Guard::Conditions(conditions))
    }

    /// Whether `exists` is the keyword. It is a column's name if a condition follows.
    fn exists_is_the_keyword(&mut self) -> bool {
        let next = self.look(1).kind;
        sign(next).is_none() && !matches!(next, Kind::In | Kind::Contains | Kind::LBracket | Kind::Dot)
    }

    /// `columnCondition`
    fn condition(&mut self) -> Parsed<Condition<'a>> {
        let mut condition = Condition {
            column: self.column()?,
            element: None,
            field: None,
            test: Test::In(InValues::List(Vec::new())),
        };
        match self.kind() {
            Kind::Contains => {
                let comparison = self.contains()?;
                condition.test = Test::Compare(comparison, self.term()?);
                return Ok(condition);
            }
            Kind::LBracket => {
                self.advance()?;
                condition.element = Some(self.term()?);
                self.expect(Kind::RBracket)?;
            }
            Kind::Dot => {
                self.advance()?;
                condition.field = Some(self.ident()?);
            }
            _ => {}
        }
        condition.test = match self.eat(Kind::In)? {
            true => Test::In(self.in_values()?),
            false => {
                let comparison = self.sign()?;
                Test::Compare(comparison, self.term()?)
            }
        };
        Ok(condition)
    }
}
