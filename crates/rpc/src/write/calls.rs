//! insert, add, remove, remove_counter, truncate.

use super::changes::{Change, RowChanges};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::validate::{
    check_column, check_key, check_name, check_parent, check_removed, check_write_level, session_keyspace,
};
use helenus_model::mutation::Mutation;
use helenus_model::types::quote_identifier;
use helenus_wire::thrift::{ColumnPath, ConsistencyLevel, Field, Reader, args};
use std::sync::Arc;

impl Rpc {
    pub(crate) fn insert(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::Insert::read(reader)?;
        let (parent, column) = (&asked.column_parent, &asked.column);
        let family = self.family_that(work.session, parent.column_family, false)?;
        check_key(&family.table, asked.key)?;
        check_parent(&family, parent.super_column)?;
        check_has_super_column(&family, parent.super_column)?;
        check_name(&family, parent.super_column, column.name)?;
        let now_s = self.storage.now_s();
        let (value, timestamp_us, ttl_s) = check_column(&family, parent.super_column, column, now_s)?;
        check_write_level(asked.consistency_level, None)?;
        work.manner.at(asked.consistency_level);
        let mut changes = RowChanges::new(&family, asked.key, now_s);
        changes.column(parent.super_column, column.name, Change::Value(value, timestamp_us, ttl_s))?;
        self.write(changes, work)
    }

    pub(crate) fn add(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::Add::read(reader)?;
        let (parent, column) = (&asked.column_parent, &asked.column);
        let family = self.family_that(work.session, parent.column_family, true)?;
        check_key(&family.table, asked.key)?;
        check_write_level(asked.consistency_level, Some(&family.table))?;
        work.manner.at(asked.consistency_level);
        check_parent(&family, parent.super_column)?;
        check_has_super_column(&family, parent.super_column)?;
        check_name(&family, parent.super_column, column.name)?;
        let mut changes = RowChanges::new(&family, asked.key, self.storage.now_s());
        let timestamp_us = self.storage.next_timestamp()?;
        let sum = Change::Sum(column.value.to_be_bytes(), timestamp_us);
        changes.column(parent.super_column, column.name, sum)?;
        self.count(changes, work)
    }

    pub(crate) fn remove(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::Remove::read(reader)?;
        let family = self.family_that(work.session, asked.column_path.column_family, false)?;
        let level = asked.consistency_level.unwrap_or(ConsistencyLevel::One);
        check_write_level(level, None)?;
        work.manner.at(level);
        let changes = self.removal(&family, asked.key, &asked.column_path, asked.timestamp)?;
        self.write(changes, work)
    }

    pub(crate) fn remove_counter(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::RemoveCounter::read(reader)?;
        let family = self.family_that(work.session, asked.path.column_family, true)?;
        check_write_level(asked.consistency_level, Some(&family.table))?;
        work.manner.at(asked.consistency_level);
        let timestamp_us = self.storage.next_timestamp()?;
        let changes = self.removal(&family, asked.key, &asked.path, timestamp_us)?;
        self.count(changes, work)
    }

    fn removal<'f>(
        &self,
        family: &'f Arc<Family>,
        key: &[u8],
        path: &ColumnPath<'_>,
        timestamp_us: i64,
    ) -> Result<RowChanges<'f>> {
        check_key(&family.table, key)?;
        check_removed(family, path.super_column, path.column)?;
        let mut changes = RowChanges::new(family, key, self.storage.now_s());
        match (path.super_column, path.column) {
            (None, None) => changes.delete_row(timestamp_us),
            (Some(super_column), None) => changes.delete_super_column(super_column, timestamp_us),
            (super_column, Some(column)) => {
                changes.column(super_column, column, Change::Deletion(timestamp_us))?;
            }
        }
        Ok(changes)
    }

    fn write(&self, changes: RowChanges<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let mutation = Mutation { updates: vec![changes.finish()] };
        let ticket = self.storage.write(&mutation, false, work.manner)?;
        work.reply.end(work.out);
        Ok(ReplyState::Promise(ticket))
    }

    fn count(&self, changes: RowChanges<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let mutation = Mutation { updates: vec![changes.finish()] };
        let ticket = self.storage.count(&mutation, work.manner)?;
        work.reply.end(work.out);
        Ok(ReplyState::Promise(ticket))
    }

    pub(crate) fn truncate(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::OfColumnFamily::read(reader)?;
        let family = self.family_that(work.session, asked.column_family, false)?;
        let keyspace = session_keyspace(work.session)?;
        let text =
            format!("TRUNCATE {}.{}", quote_identifier(&keyspace), quote_identifier(&family.table.name));
        self.run_statement(&text, work)?;
        work.reply.end(work.out);
        Ok(ReplyState::Result)
    }
}

fn check_has_super_column(family: &Family, super_column: Option<&[u8]>) -> Result<()> {
    if family.is_super() && super_column.is_none() {
        return invalid(format!("missing mandatory super column name for super CF {}", family.table.name));
    }
    Ok(())
}
