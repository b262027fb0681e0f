//! DESCRIBE.

use super::super::ast::{Describe, DescribeWhat, QualifiedName};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;

impl<'a> Parser<'a, '_> {
    /// `describeStatement`. A word for a kind of object is parsed as that keyword, unless nothing follows that the
    /// keyword could introduce; then it is a name.
    pub(super) fn describe(&mut self) -> Parsed<Describe<'a>> {
        self.advance()?;
        let what = self.describe_what()?;
        let internals = self.eat(Kind::With)?;
        if internals {
            self.expect(Kind::Internals)?;
        }
        Ok(Describe { what, internals })
    }

    fn describe_what(&mut self) -> Parsed<DescribeWhat<'a>> {
        let first = self.kind();
        if !first.is_name()
            && !matches!(
                first,
                Kind::Full
                    | Kind::Schema
                    | Kind::Keyspace
                    | Kind::Columnfamily
                    | Kind::Index
                    | Kind::Materialized
            )
        {
            return Err(self.no_viable());
        }
        let next = self.look(1).kind;
        let named = next.is_name() || next == Kind::QMark;
        let routine = next.is_name() || next.is_function_name();
        match first {
            Kind::Cluster => self.described(DescribeWhat::Cluster),
            Kind::Keyspaces => self.described(DescribeWhat::Keyspaces),
            Kind::Tables => self.described(DescribeWhat::Tables),
            Kind::Types => self.described(DescribeWhat::Types),
            Kind::Functions => self.described(DescribeWhat::Functions),
            Kind::Aggregates => self.described(DescribeWhat::Aggregates),
            Kind::Full => {
                self.expect_all(&[Kind::Full, Kind::Schema])?;
                Ok(DescribeWhat::Schema { full: true })
            }
            Kind::Schema => self.described(DescribeWhat::Schema { full: false }),
            Kind::Only if next == Kind::Keyspace => {
                self.advance()?;
                self.described_keyspace(true)
            }
            Kind::Keyspace => self.described_keyspace(false),
            Kind::Columnfamily => {
                self.advance()?;
                Ok(DescribeWhat::Table(self.table_name()?))
            }
            Kind::Index => {
                self.advance()?;
                Ok(DescribeWhat::Index(self.table_name()?))
            }
            Kind::Materialized => {
                self.expect_all(&[Kind::Materialized, Kind::View])?;
                Ok(DescribeWhat::View(self.table_name()?))
            }
            Kind::Type if named => {
                self.advance()?;
                Ok(DescribeWhat::Type(self.type_name()?))
            }
            Kind::Function if routine => {
                self.advance()?;
                Ok(DescribeWhat::Function(self.function_name()?))
            }
            Kind::Aggregate if routine => {
                self.advance()?;
                Ok(DescribeWhat::Aggregate(self.function_name()?))
            }
            kind if kind.is_name() => self.described_name(),
            _ => Err(self.no_viable()),
        }
    }

    fn described(&mut self, what: DescribeWhat<'a>) -> Parsed<DescribeWhat<'a>> {
        self.advance()?;
        Ok(what)
    }

    fn described_keyspace(&mut self, only: bool) -> Parsed<DescribeWhat<'a>> {
        self.advance()?;
        let name = match self.kind() {
            kind if kind.is_name() || kind == Kind::QMark => Some(self.keyspace_name()?),
            _ => None,
        };
        Ok(DescribeWhat::Keyspace { only, name })
    }

    fn described_name(&mut self) -> Parsed<DescribeWhat<'a>> {
        let next = self.look(1);
        if !matches!(next.kind, Kind::Dot | Kind::With | Kind::Semicolon | Kind::Eof) {
            return Err(self.no_viable_ahead(next));
        }
        let name = self.ident()?;
        if !self.eat(Kind::Dot)? {
            return Ok(DescribeWhat::Any(QualifiedName { keyspace: None, name }));
        }
        Ok(DescribeWhat::Any(QualifiedName { keyspace: Some(name), name: self.ident()? }))
    }
}
