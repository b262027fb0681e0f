//! INSERT, UPDATE, DELETE, BATCH.

use std::collections::HashMap;

use super::super::ast::{
    Assignment, AssignmentKind, Batch, BatchItem, BatchKind, Delete, DeleteTarget, Guard, Ident, Insert,
    InsertData, Term, Update, Using,
};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;

/// The number of assignments up to which each is compared with each; for more, a hash table is built.
const COMPARED_MAX: usize = 16;

impl<'a> Parser<'a, '_> {
    /// `insertStatement`
    pub(super) fn insert(&mut self) -> Parsed<Insert<'a>> {
        self.expect_all(&[Kind::Insert, Kind::Into])?;
        let table = self.table_name()?;
        let data = match self.kind() {
            Kind::LParen => {
                self.advance()?;
                let columns = self.list(Self::column)?;
                self.expect_all(&[Kind::RParen, Kind::Values, Kind::LParen])?;
                let values = self.list(Self::term)?;
                self.expect(Kind::RParen)?;
                InsertData::Values { columns, values }
            }
            Kind::Json => {
                self.advance()?;
                self.insert_json()?
            }
            _ => return Err(self.no_viable()),
        };
        let if_not_exists = self.if_not_exists()?;
        let using = self.using()?;
        Ok(Insert { table, data, if_not_exists, using })
    }

    fn insert_json(&mut self) -> Parsed<InsertData<'a>> {
        let value = match self.kind() {
            Kind::String => Term::Literal(self.constant()?),
            Kind::QMark | Kind::Colon => Term::Marker(self.marker()?),
            _ => return Err(self.no_viable()),
        };
        let mut default_unset = false;
        if self.eat(Kind::Default)? {
            match self.kind() {
                Kind::Null => {}
                Kind::Unset => default_unset = true,
                _ => return Err(self.no_viable()),
            }
            self.advance()?;
        }
        Ok(InsertData::Json { value, default_unset })
    }

    /// `usingClause`, if there is one.
    fn using(&mut self) -> Parsed<Using<'a>> {
        let mut using = Using::default();
        if !self.eat(Kind::Using)? {
            return Ok(using);
        }
        loop {
            match self.kind() {
                Kind::Timestamp => {
                    self.advance()?;
                    using.timestamp = Some(self.int_value()?);
                }
                Kind::Ttl => {
                    self.advance()?;
                    using.ttl = Some(self.int_value()?);
                }
                Kind::Ident if self.spells(self.token, "timeout") => {
                    self.advance()?;
                    using.timeout = Some(self.duration_value()?);
                }
                _ => return Err(self.no_viable()),
            }
            if !self.eat(Kind::And)? {
                return Ok(using);
            }
        }
    }

    /// `updateStatement`
    pub(super) fn update(&mut self) -> Parsed<Update<'a>> {
        self.expect(Kind::Update)?;
        let table = self.table_name()?;
        let using = self.using()?;
        self.expect(Kind::Set)?;
        let mut assignments: Vec<Assignment<'a>> = Vec::with_capacity(8);
        let mut seen = HashMap::new();
        loop {
            let assignment = self.assignment()?;
            self.check_compatible(&assignments, &assignment, &mut seen)?;
            assignments.push(assignment);
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.expect(Kind::Where)?;
        let filter = self.where_clause()?;
        let guard = self.guard()?;
        Ok(Update { table, using, assignments, filter, guard })
    }

    /// `columnOperation`
    fn assignment(&mut self) -> Parsed<Assignment<'a>> {
        let column = self.column()?;
        let kind = match self.kind() {
            Kind::Equal => {
                self.advance()?;
                self.plain_assignment(&column)?
            }
            Kind::PlusEqual => {
                self.advance()?;
                AssignmentKind::Add(self.term()?)
            }
            Kind::MinusEqual => {
                self.advance()?;
                AssignmentKind::Subtract(self.term()?)
            }
            Kind::LBracket => {
                self.advance()?;
                let key = self.term()?;
                self.expect_all(&[Kind::RBracket, Kind::Equal])?;
                AssignmentKind::SetElement(key, self.term()?)
            }
            Kind::Dot => {
                self.advance()?;
                let field = self.ident()?;
                self.expect(Kind::Equal)?;
                AssignmentKind::SetField(field, self.term()?)
            }
            _ => return Err(self.no_viable()),
        };
        Ok(Assignment { column, kind })
    }

    /// `normalColumnOperation`
    fn plain_assignment(&mut self, column: &Ident<'a>) -> Parsed<AssignmentKind<'a>> {
        if self.kind().is_column() {
            let next = self.look(1);
            match next.kind {
                Kind::Plus | Kind::Minus => return self.self_assignment(column),
                // `c = c -3`: the lexer treats the sign as part of the number.
                Kind::Integer => {
                    let other = self.column()?;
                    let value = self.constant()?;
                    if other != *column {
                        let sign = if value.text.starts_with('-') { '-' } else { '+' };
                        let message =
                            format!("Only expressions of the form X = X {sign} <value> are supported.");
                        return Err(self.rule(other.pos, message));
                    }
                    return Ok(AssignmentKind::Add(Term::Literal(value)));
                }
                Kind::LParen | Kind::Dot => {}
                _ => return Err(self.no_viable_ahead(next)),
            }
        }
        let value = self.term()?;
        match self.kind() {
            Kind::Comma | Kind::Where => return Ok(AssignmentKind::Set(value)),
            Kind::Plus => self.advance()?,
            _ => return Err(self.mismatched(Kind::Where.label())),
        };
        let other = self.column()?;
        if other != *column {
            let message = "Only expressions of the form X = <value> + X are supported.";
            return Err(self.rule(other.pos, message));
        }
        Ok(AssignmentKind::Prepend(value))
    }

    /// `c = c + term` and `c = c - term`
    fn self_assignment(&mut self, column: &Ident<'a>) -> Parsed<AssignmentKind<'a>> {
        let other = self.column()?;
        let adds = self.advance()?.kind == Kind::Plus;
        let value = self.term()?;
        if other != *column {
            let sign = if adds { '+' } else { '-' };
            // Cassandra's own text has no space here either.
            let message = format!("Only expressions of the form X = X {sign}<value> are supported.");
            return Err(self.rule(other.pos, message));
        }
        Ok(if adds { AssignmentKind::Add(value) } else { AssignmentKind::Subtract(value) })
    }

    /// Rejects setting a column, or a field of one, twice (`addRawUpdate`).
    fn check_compatible(
        &self,
        earlier: &[Assignment<'a>],
        new: &Assignment<'a>,
        seen: &mut HashMap<(String, String), bool>,
    ) -> Parsed<()> {
        let clash = match earlier.len() {
            ..COMPARED_MAX => {
                earlier.iter().any(|old| old.column == new.column && incompatible(&old.kind, &new.kind))
            }
            count => {
                if count == COMPARED_MAX {
                    earlier.iter().for_each(|old| _ = remember(seen, old));
                }
                remember(seen, new)
            }
        };
        match clash {
            true => {
                let message = format!("Multiple incompatible setting of column {}", new.column.name);
                Err(self.rule(new.column.pos, message))
            }
            false => Ok(()),
        }
    }

    /// `deleteStatement`
    pub(super) fn delete(&mut self) -> Parsed<Delete<'a>> {
        self.expect(Kind::Delete)?;
        let targets = match self.kind() {
            kind if kind.is_column() => self.list(Self::delete_target)?,
            _ => Vec::new(),
        };
        self.expect(Kind::From)?;
        let table = self.table_name()?;
        let using = self.using_of_delete()?;
        self.expect(Kind::Where)?;
        let filter = self.where_clause()?;
        let guard: Guard<'a> = self.guard()?;
        Ok(Delete { targets, table, using, filter, guard })
    }

    /// `usingClauseDelete`, if there is one: TIMESTAMP, TIMEOUT or both.
    fn using_of_delete(&mut self) -> Parsed<Using<'a>> {
        let mut using = Using::default();
        if !self.eat(Kind::Using)? {
            return Ok(using);
        }
        loop {
            if self.spells(self.token, "timeout") {
                self.advance()?;
                using.timeout = Some(self.duration_value()?);
            } else {
                self.expect(Kind::Timestamp)?;
                using.timestamp = Some(self.int_value()?);
            }
            // Cassandra's grammar has no AND here.
            let next = (self.kind() == Kind::And).then(|| self.look(1));
            let is_timeout = next.is_some_and(|next| self.spells(next, "timeout"));
            if !is_timeout && (next.is_none() || using.timeout.is_none()) {
                return Ok(using);
            }
            self.advance()?;
        }
    }

    fn delete_target(&mut self) -> Parsed<DeleteTarget<'a>> {
        let first = self.token;
        let column = self.column()?;
        match self.kind() {
            Kind::LBracket => {
                self.advance()?;
                let key = self.term()?;
                self.expect(Kind::RBracket)?;
                Ok(DeleteTarget::Element(column, key))
            }
            Kind::Dot => {
                self.advance()?;
                Ok(DeleteTarget::Field(column, self.ident()?))
            }
            Kind::Comma | Kind::From => Ok(DeleteTarget::Column(column)),
            _ => Err(self.no_viable_since(first)),
        }
    }

    /// `batchStatement`
    pub(super) fn batch(&mut self) -> Parsed<Batch<'a>> {
        self.expect(Kind::Begin)?;
        let kind = match self.kind() {
            Kind::Unlogged => BatchKind::Unlogged,
            Kind::Counter => BatchKind::Counter,
            _ => BatchKind::Logged,
        };
        if kind != BatchKind::Logged {
            self.advance()?;
        }
        self.expect(Kind::Batch)?;
        let using = self.using()?;
        let mut items = Vec::new();
        loop {
            let pos = self.pos();
            items.push(match self.kind() {
                Kind::Insert => BatchItem::Insert(self.insert()?, pos),
                Kind::Update => BatchItem::Update(self.update()?, pos),
                Kind::Delete => BatchItem::Delete(self.delete()?, pos),
                _ => break,
            });
            self.eat(Kind::Semicolon)?;
        }
        self.expect_all(&[Kind::Apply, Kind::Batch])?;
        Ok(Batch { kind, using, items })
    }
}

/// Whether a column cannot have both assignments.
fn incompatible(old: &AssignmentKind<'_>, new: &AssignmentKind<'_>) -> bool {
    match (old, new) {
        (AssignmentKind::Set(_), _) | (_, AssignmentKind::Set(_)) => true,
        (AssignmentKind::SetField(one, _), AssignmentKind::SetField(other, _)) => one == other,
        _ => false,
    }
}

/// Records an assignment by column and field; returns whether it conflicts with an earlier one. The entry with the
/// empty field records whether the column was set whole.
fn remember(seen: &mut HashMap<(String, String), bool>, new: &Assignment<'_>) -> bool {
    let column = new.column.name.to_string();
    let whole = matches!(new.kind, AssignmentKind::Set(_));
    let earlier = seen.insert((column.clone(), String::new()), whole);
    let clash = earlier.is_some_and(|was_whole| was_whole || whole);
    match &new.kind {
        // A dot distinguishes fields from the empty field above.
        AssignmentKind::SetField(field, _) => {
            seen.insert((column, format!(".{}", field.name)), true).is_some() || clash
        }
        _ => clash,
    }
}
