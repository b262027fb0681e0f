//! Parses CREATE TABLE, ALTER TABLE and the parts that views share with them.

use super::super::ast::{
    AlterTable, ColumnDef, CreateTable, DataType, Ident, Mask, Pos, PrimaryKey, StatementKind, TableChange,
    TableOptions,
};
use super::super::error::Parsed;
use super::super::token::Kind;
use super::cursor::Parser;
use super::property::Names;

impl<'a> Parser<'a, '_> {
    /// `createTableStatement` after CREATE TABLE.
    pub(super) fn create_table(&mut self) -> Parsed<StatementKind<'a>> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        let mut table = CreateTable {
            name,
            if_not_exists,
            columns: Vec::new(),
            primary_keys: Vec::new(),
            options: TableOptions::default(),
        };
        self.expect(Kind::LParen)?;
        self.table_columns(&mut table)?;
        while self.eat(Kind::Comma)? {
            // A comma may be followed by another one or by the end.
            if self.kind().is_name() || self.kind() == Kind::Primary {
                self.table_columns(&mut table)?;
            }
        }
        self.expect(Kind::RParen)?;
        if self.eat(Kind::With)? {
            table.options = self.table_options(true)?;
        }
        Ok(StatementKind::CreateTable(table))
    }

    /// `tableColumns`: a column or the primary key.
    fn table_columns(&mut self, table: &mut CreateTable<'a>) -> Parsed<()> {
        if self.kind() == Kind::Primary {
            table.primary_keys.push(self.primary_key()?);
            return Ok(());
        }
        let name = self.ident()?;
        let data_type = self.data_type()?;
        let is_static = self.eat(Kind::Static)?;
        let mask = self.mask()?;
        let pos = self.pos();
        if self.eat(Kind::Primary)? {
            self.expect(Kind::Key)?;
            let partition = vec![name.clone()];
            table.primary_keys.push(PrimaryKey { partition, clustering: Vec::new(), pos });
        }
        table.columns.push(ColumnDef { name, data_type, is_static, mask });
        Ok(())
    }

    /// `K_PRIMARY K_KEY '(' tablePartitionKey (',' ident)* ')'`
    pub(super) fn primary_key(&mut self) -> Parsed<PrimaryKey<'a>> {
        let pos = self.pos();
        self.expect_all(&[Kind::Primary, Kind::Key, Kind::LParen])?;
        let partition = match self.eat(Kind::LParen)? {
            true => {
                let columns = self.list(Self::ident)?;
                self.expect(Kind::RParen)?;
                columns
            }
            false => vec![self.ident()?],
        };
        let mut clustering = Vec::new();
        while self.eat(Kind::Comma)? {
            clustering.push(self.ident()?);
        }
        self.expect(Kind::RParen)?;
        Ok(PrimaryKey { partition, clustering, pos })
    }

    /// `columnMask`, if there is one.
    fn mask(&mut self) -> Parsed<Option<Mask<'a>>> {
        if self.kind() != Kind::Masked {
            return Ok(None);
        }
        let first = self.token;
        self.advance()?;
        if self.kind() != Kind::With {
            return Err(self.no_viable_since(first));
        }
        self.advance()?;
        if self.kind() == Kind::Default && !matches!(self.look(1).kind, Kind::LParen | Kind::Dot) {
            self.advance()?;
            return Ok(Some(Mask::Default));
        }
        if !self.kind().is_name() && !self.kind().is_function_name() {
            return Err(self.no_viable_since(first));
        }
        let function = self.function_name()?;
        self.expect(Kind::LParen)?;
        Ok(Some(Mask::Function(function, self.list_until(Kind::RParen, Self::term)?)))
    }

    /// `tableProperty (K_AND tableProperty)*`, or `viewProperty` for a view, where COMPACT STORAGE is rejected.
    pub(super) fn table_options(&mut self, compact_allowed: bool) -> Parsed<TableOptions<'a>> {
        let mut options = TableOptions::default();
        let mut names = Names::default();
        loop {
            let pos = self.pos();
            let next = self.look(1).kind;
            match self.kind() {
                Kind::Compact if next != Kind::Equal => {
                    self.expect_all_of(&[Kind::Compact, Kind::Storage])?;
                    if !compact_allowed {
                        let message = "COMPACT STORAGE tables are not allowed starting with version 4.0";
                        return Err(self.rule(pos, message));
                    }
                    options.compact_storage = true;
                }
                Kind::Clustering if next != Kind::Equal => {
                    self.expect_all_of(&[Kind::Clustering, Kind::Order])?;
                    self.expect_all(&[Kind::By, Kind::LParen])?;
                    options.clustering_order.append(&mut self.list(Self::clustering_order)?);
                    self.expect(Kind::RParen)?;
                }
                _ => options.properties.push(self.property(&mut names)?),
            }
            if !self.eat(Kind::And)? {
                return Ok(options);
            }
        }
    }

    /// Consumes these kinds; an error names the first token, because Cassandra decides by all of them together.
    fn expect_all_of(&mut self, kinds: &[Kind]) -> Parsed<()> {
        let first = self.token;
        for kind in kinds {
            if self.kind() != *kind {
                return Err(self.no_viable_since(first));
            }
            self.advance()?;
        }
        Ok(())
    }

    /// `alterTableStatement` after ALTER TABLE.
    pub(super) fn alter_table(&mut self) -> Parsed<StatementKind<'a>> {
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        let change = match self.kind() {
            Kind::Alter => self.alter_column()?,
            Kind::Add => {
                self.advance()?;
                let if_not_exists = self.if_not_exists()?;
                let columns = self.one_or_list(Self::added_column)?;
                TableChange::Add { if_not_exists, columns }
            }
            Kind::Drop if self.look(1).kind == Kind::Compact && self.look(2).kind == Kind::Storage => {
                self.expect_all(&[Kind::Drop, Kind::Compact, Kind::Storage])?;
                TableChange::DropCompactStorage
            }
            Kind::Drop => self.drop_columns()?,
            Kind::Rename => {
                self.advance()?;
                let if_exists = self.if_exists()?;
                TableChange::Rename { if_exists, names: self.renames()? }
            }
            Kind::With => {
                self.advance()?;
                TableChange::Properties(self.properties()?)
            }
            _ => return Err(self.no_viable()),
        };
        Ok(StatementKind::AlterTable(AlterTable { name, if_exists, change }))
    }

    fn alter_column(&mut self) -> Parsed<TableChange<'a>> {
        let first = self.advance()?;
        let guarded = self.kind() == Kind::If;
        let if_exists = self.if_exists()?;
        if !guarded && !self.kind().is_column() {
            return Err(self.no_viable_since(first));
        }
        let column = self.column()?;
        match self.kind() {
            Kind::Type if !guarded => {
                self.advance()?;
                Ok(TableChange::Retype(column, self.data_type()?))
            }
            Kind::Masked => Ok(TableChange::Mask { column, if_exists, mask: self.mask()? }),
            Kind::Drop => {
                self.expect_all(&[Kind::Drop, Kind::Masked])?;
                Ok(TableChange::Mask { column, if_exists, mask: None })
            }
            _ if guarded => Err(self.no_viable()),
            _ => Err(self.no_viable_since(first)),
        }
    }

    fn added_column(&mut self) -> Parsed<ColumnDef<'a>> {
        let (name, data_type): (Ident<'a>, DataType<'a>) = (self.ident()?, self.data_type()?);
        let is_static = self.eat(Kind::Static)?;
        Ok(ColumnDef { name, data_type, is_static, mask: self.mask()? })
    }

    /// One item, or several in parentheses.
    fn one_or_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if !self.eat(Kind::LParen)? {
            return Ok(vec![item(self)?]);
        }
        let items = self.list(item)?;
        self.expect(Kind::RParen)?;
        Ok(items)
    }

    fn drop_columns(&mut self) -> Parsed<TableChange<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let columns = self.one_or_list(Self::ident)?;
        let mut timestamp_us = None;
        if self.eat(Kind::Using)? {
            self.expect(Kind::Timestamp)?;
            let token = self.expect(Kind::Integer)?;
            let raw = self.raw(token);
            let Ok(timestamp) = raw.parse() else {
                let message = format!("A timestamp must fit into 64 bits, but is {raw}");
                return Err(self.rule(Pos(token.start), message));
            };
            timestamp_us = Some(timestamp);
        }
        Ok(TableChange::Drop { if_exists, columns, timestamp_us })
    }

    /// `a TO b (AND c TO d)*`
    pub(super) fn renames(&mut self) -> Parsed<Vec<(Ident<'a>, Ident<'a>)>> {
        let mut names = Vec::new();
        loop {
            let from = self.ident()?;
            self.expect(Kind::To)?;
            names.push((from, self.ident()?));
            if !self.eat(Kind::And)? {
                return Ok(names);
            }
        }
    }
}
