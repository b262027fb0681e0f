//! CREATE, ALTER and DROP: dispatches by the kind of object, and parses the short statements.

use super::super::ast::{
    AlterType, AlterView, CreateIndex, CreateKeyspace, CreateTrigger, CreateType, CreateView, DropNamed,
    DropTrigger, IndexTarget, IndexTargetKind, StatementKind, TypeChange,
};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;

impl<'a> Parser<'a, '_> {
    /// Every statement that begins with CREATE.
    pub(super) fn create(&mut self) -> Parsed<StatementKind<'a>> {
        let next = self.look(1);
        match next.kind {
            Kind::Or => match self.look(3).kind {
                Kind::Function => self.create_function(),
                Kind::Aggregate => self.create_aggregate(),
                _ => {
                    let replace = self.look(2);
                    let bad = if replace.kind == Kind::Replace { self.look(3) } else { replace };
                    Err(self.no_viable_ahead(bad))
                }
            },
            Kind::Function => self.create_function(),
            Kind::Aggregate => self.create_aggregate(),
            Kind::Keyspace => self.after_two(Self::create_keyspace),
            Kind::Columnfamily => self.after_two(Self::create_table),
            Kind::Type => self.after_two(Self::create_type),
            Kind::Custom | Kind::Index => self.create_index(),
            Kind::Materialized => self.after_two(Self::create_view),
            Kind::Trigger => self.after_two(Self::create_trigger),
            Kind::Role => self.after_two(|parser| Ok(StatementKind::CreateRole(parser.role(true)?))),
            Kind::User => self.after_two(|parser| Ok(StatementKind::CreateUser(parser.user(true)?))),
            _ => Err(self.no_viable_ahead(next)),
        }
    }

    /// Every statement that begins with ALTER.
    pub(super) fn alter(&mut self) -> Parsed<StatementKind<'a>> {
        let next = self.look(1);
        match next.kind {
            Kind::Columnfamily => self.after_two(Self::alter_table),
            Kind::Keyspace => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                let name = parser.keyspace_name()?;
                parser.expect(Kind::With)?;
                Ok(StatementKind::AlterKeyspace { name, if_exists, properties: parser.properties()? })
            }),
            Kind::Type => self.after_two(Self::alter_type),
            Kind::Materialized => self.after_two(Self::alter_view),
            Kind::Role => self.after_two(|parser| Ok(StatementKind::AlterRole(parser.role(false)?))),
            Kind::User => self.after_two(|parser| Ok(StatementKind::AlterUser(parser.user(false)?))),
            _ => Err(self.no_viable_ahead(next)),
        }
    }

    /// Every statement that begins with DROP.
    pub(super) fn drop(&mut self) -> Parsed<StatementKind<'a>> {
        let next = self.look(1);
        match next.kind {
            Kind::Columnfamily => {
                self.after_two(|parser| Ok(StatementKind::DropTable(parser.dropped_table()?)))
            }
            Kind::Materialized => self.after_two(|parser| {
                parser.expect(Kind::View)?;
                Ok(StatementKind::DropView(parser.dropped_table()?))
            }),
            Kind::Keyspace => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                Ok(StatementKind::DropKeyspace { name: parser.keyspace_name()?, if_exists })
            }),
            Kind::Type => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                Ok(StatementKind::DropType(DropNamed { name: parser.type_name()?, if_exists }))
            }),
            Kind::Index => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                Ok(StatementKind::DropIndex(DropNamed { name: parser.qualified("index")?, if_exists }))
            }),
            Kind::Trigger => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                let name = parser.ident()?;
                parser.expect(Kind::On)?;
                Ok(StatementKind::DropTrigger(DropTrigger { name, if_exists, table: parser.table_name()? }))
            }),
            Kind::Function => {
                self.after_two(|parser| Ok(StatementKind::DropFunction(parser.dropped_routine()?)))
            }
            Kind::Aggregate => {
                self.after_two(|parser| Ok(StatementKind::DropAggregate(parser.dropped_routine()?)))
            }
            Kind::Role => self.after_two(|parser| {
                let if_exists = parser.if_exists()?;
                Ok(StatementKind::DropRole { name: parser.role_name()?, if_exists })
            }),
            Kind::User => self.after_two(Self::drop_user),
            Kind::Identity => self.after_two(Self::drop_identity),
            _ => Err(self.no_viable_ahead(next)),
        }
    }

    /// Consumes the two words that the caller has seen, then calls `rest`.
    fn after_two<T>(&mut self, rest: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.advance()?;
        self.advance()?;
        rest(self)
    }

    fn dropped_table(&mut self) -> Parsed<DropNamed<'a>> {
        let if_exists = self.if_exists()?;
        Ok(DropNamed { name: self.table_name()?, if_exists })
    }

    fn create_keyspace(&mut self) -> Parsed<StatementKind<'a>> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        self.expect(Kind::With)?;
        let properties = self.properties()?;
        Ok(StatementKind::CreateKeyspace(CreateKeyspace { name, if_not_exists, properties }))
    }

    fn create_type(&mut self) -> Parsed<StatementKind<'a>> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.type_name()?;
        self.expect(Kind::LParen)?;
        let mut fields = vec![(self.ident()?, self.data_type()?)];
        while self.eat(Kind::Comma)? {
            if self.kind().is_name() {
                fields.push((self.ident()?, self.data_type()?));
            }
        }
        self.expect(Kind::RParen)?;
        Ok(StatementKind::CreateType(CreateType { name, if_not_exists, fields }))
    }

    fn alter_type(&mut self) -> Parsed<StatementKind<'a>> {
        let if_exists = self.if_exists()?;
        let name = self.type_name()?;
        let change = match self.kind() {
            Kind::Alter => {
                self.advance()?;
                let field = self.ident()?;
                self.expect(Kind::Type)?;
                TypeChange::Retype(field, self.data_type()?)
            }
            Kind::Add => {
                self.advance()?;
                let if_not_exists = self.if_not_exists()?;
                TypeChange::Add { if_not_exists, field: self.ident()?, data_type: self.data_type()? }
            }
            Kind::Rename => {
                self.advance()?;
                let if_exists = self.if_exists()?;
                TypeChange::Rename { if_exists, names: self.renames()? }
            }
            _ => return Err(self.no_viable()),
        };
        Ok(StatementKind::AlterType(AlterType { name, if_exists, change }))
    }

    fn create_index(&mut self) -> Parsed<StatementKind<'a>> {
        self.expect(Kind::Create)?;
        let custom = self.eat(Kind::Custom)?;
        self.expect(Kind::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = if self.kind() == Kind::On { None } else { Some(self.optional_index_name()?) };
        self.expect(Kind::On)?;
        let table = self.table_name()?;
        self.expect(Kind::LParen)?;
        let targets = self.list_until(Kind::RParen, Self::index_target)?;
        let using = if self.eat(Kind::Using)? { Some(self.string()?) } else { None };
        let properties = if self.eat(Kind::With)? { self.properties()? } else { Vec::new() };
        Ok(StatementKind::CreateIndex(CreateIndex {
            custom,
            if_not_exists,
            name,
            table,
            targets,
            using,
            properties,
        }))
    }

    /// A name that may be left out: if there is none, the error is that ON is missing.
    fn optional_index_name(&mut self) -> Parsed<super::super::ast::Ident<'a>> {
        match self.kind() {
            kind if kind.is_name() || kind == Kind::QMark => self.index_name(),
            _ => Err(self.mismatched(Kind::On.label())),
        }
    }

    /// `indexIdent`; VALUES and KEYS can also be columns.
    fn index_target(&mut self) -> Parsed<IndexTarget<'a>> {
        let first = self.token;
        let kind = match first.kind {
            Kind::Entries => IndexTargetKind::Entries,
            Kind::Full => IndexTargetKind::Full,
            Kind::Values if self.look(1).kind == Kind::LParen => IndexTargetKind::Values,
            Kind::Keys if self.look(1).kind == Kind::LParen => IndexTargetKind::Keys,
            kind if kind.is_column() => {
                let next = self.look(1);
                if matches!(kind, Kind::Values | Kind::Keys)
                    && !matches!(next.kind, Kind::Comma | Kind::RParen)
                {
                    return Err(self.no_viable_ahead(next));
                }
                return Ok(IndexTarget { kind: IndexTargetKind::Simple, column: self.column()? });
            }
            _ => return Err(self.mismatched(Kind::RParen.label())),
        };
        self.advance()?;
        self.expect(Kind::LParen)?;
        let column = self.column()?;
        self.expect(Kind::RParen)?;
        Ok(IndexTarget { kind, column })
    }

    fn create_view(&mut self) -> Parsed<StatementKind<'a>> {
        self.expect(Kind::View)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        self.expect_all(&[Kind::As, Kind::Select])?;
        let selectors = self.selectors()?;
        self.expect(Kind::From)?;
        let base = self.table_name()?;
        let filter = if self.eat(Kind::Where)? { self.where_clause()? } else { Vec::new() };
        let primary_key = self.primary_key()?;
        let options = if self.eat(Kind::With)? { self.table_options(false)? } else { Default::default() };
        Ok(StatementKind::CreateView(CreateView {
            name,
            if_not_exists,
            selectors,
            base,
            filter,
            primary_key,
            options,
        }))
    }

    fn alter_view(&mut self) -> Parsed<StatementKind<'a>> {
        self.expect(Kind::View)?;
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        self.expect(Kind::With)?;
        Ok(StatementKind::AlterView(AlterView { name, if_exists, properties: self.properties()? }))
    }

    fn create_trigger(&mut self) -> Parsed<StatementKind<'a>> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        self.expect(Kind::On)?;
        let table = self.table_name()?;
        self.expect(Kind::Using)?;
        let class = self.string()?;
        Ok(StatementKind::CreateTrigger(CreateTrigger { name, if_not_exists, table, class }))
    }
}
