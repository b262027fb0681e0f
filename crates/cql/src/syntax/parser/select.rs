//! Parses SELECT.

use super::super::ast::{Ordering, Select, Selector, Selectors, Term};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;

impl<'a> Parser<'a, '_> {
    /// `selectStatement`
    pub(super) fn select(&mut self) -> Parsed<Select<'a>> {
        self.expect(Kind::Select)?;
        let (json, distinct, selectors) = self.select_clause()?;
        self.expect(Kind::From)?;
        let table = self.table_name()?;
        let filter = if self.eat(Kind::Where)? { self.where_clause()? } else { Vec::new() };
        let group_by = match self.eat(Kind::Group)? {
            true => {
                self.expect(Kind::By)?;
                self.list(Self::selectable)?
            }
            false => Vec::new(),
        };
        let order_by = match self.eat(Kind::Order)? {
            true => {
                self.expect(Kind::By)?;
                self.list(Self::ordering)?
            }
            false => Vec::new(),
        };
        let per_partition_limit = match self.eat(Kind::Per)? {
            true => {
                self.expect_all(&[Kind::Partition, Kind::Limit])?;
                Some(self.int_value()?)
            }
            false => None,
        };
        let limit = if self.eat(Kind::Limit)? { Some(self.int_value()?) } else { None };
        let allow_filtering = self.eat(Kind::Allow)?;
        if allow_filtering {
            self.expect(Kind::Filtering)?;
        }
        let bypass_cache = self.bypass_cache()?;
        let timeout = self.using_timeout()?;
        Ok(Select {
            json,
            distinct,
            selectors,
            table,
            filter,
            group_by,
            order_by,
            per_partition_limit,
            limit,
            allow_filtering,
            bypass_cache,
            timeout,
        })
    }

    /// Whether one of the clauses of SELECT that Cassandra lacks begins at the `ahead`th token after the current one.
    pub(super) fn begins_extension(&self, ahead: usize) -> bool {
        let first = self.peek(ahead);
        let second = match first.kind {
            Kind::Using => "timeout",
            _ if self.spells(first, "bypass") => "cache",
            _ => return false,
        };
        self.spells(self.peek(ahead + 1), second)
    }

    /// `BYPASS CACHE`, if it is there. Its words, and TIMEOUT, are not keywords and remain usable as names.
    fn bypass_cache(&mut self) -> Parsed<bool> {
        let is_there = self.kind() == Kind::Ident && self.begins_extension(0);
        if is_there {
            self.advance()?;
            self.advance()?;
        }
        Ok(is_there)
    }

    /// `USING TIMEOUT duration`, if it is there.
    fn using_timeout(&mut self) -> Parsed<Option<Term<'a>>> {
        if self.kind() != Kind::Using || !self.begins_extension(0) {
            return Ok(None);
        }
        self.advance()?;
        self.advance()?;
        self.duration_value().map(Some)
    }

    /// `[JSON] [DISTINCT] selectors`. Both words can also be column names; each is the keyword if the text after it can
    /// be parsed as selectors.
    fn select_clause(&mut self) -> Parsed<(bool, bool, Selectors<'a>)> {
        if self.kind() == Kind::Json {
            let clause = self.attempt(|parser| {
                parser.advance()?;
                parser.distinct_clause()
            })?;
            if let Some((distinct, selectors)) = clause {
                return Ok((true, distinct, selectors));
            }
        }
        let (distinct, selectors) = self.distinct_clause()?;
        Ok((false, distinct, selectors))
    }

    fn distinct_clause(&mut self) -> Parsed<(bool, Selectors<'a>)> {
        if self.kind() == Kind::Distinct {
            let selectors = self.attempt(|parser| {
                parser.advance()?;
                parser.selectors()
            })?;
            if let Some(selectors) = selectors {
                return Ok((true, selectors));
            }
        }
        Ok((false, self.selectors()?))
    }

    /// `selectors`
    pub(super) fn selectors(&mut self) -> Parsed<Selectors<'a>> {
        if self.eat(Kind::Star)? {
            return Ok(Selectors::All);
        }
        Ok(Selectors::List(self.list(Self::selector)?))
    }

    fn selector(&mut self) -> Parsed<Selector<'a>> {
        let selectable = self.selectable()?;
        let alias = if self.eat(Kind::As)? { Some(self.ident()?) } else { None };
        Ok(Selector { selectable, alias })
    }

    fn ordering(&mut self) -> Parsed<Ordering<'a>> {
        let column = self.column()?;
        let ann_of = match self.eat(Kind::Ann)? {
            true => {
                self.expect(Kind::Of)?;
                Some(self.term()?)
            }
            false => None,
        };
        let descending = self.eat(Kind::Desc)?;
        if !descending {
            self.eat(Kind::Asc)?;
        }
        Ok(Ordering { column, ann_of, descending })
    }
}
