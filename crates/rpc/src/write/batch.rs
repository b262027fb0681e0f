//! batch_mutate and atomic_batch_mutate. The map of mutations is decoded directly from the message, mutation by
//! mutation.
//!
//! Both calls write a single log record, which is applied completely or not at all. Counters of the batch are added
//! after all arguments were validated, and before the rest is written, because only counters may have to wait for the
//! disk.

use super::changes::{Change, RowChanges};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use crate::family::Family;
use crate::validate::{
    check_column, check_counts, check_key, check_name, check_path, check_range, check_write_level,
};
use helenus_engine::Ticket;
use helenus_model::mutation::Mutation as Changes;
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ConsistencyLevel, Deletion, Field, Mutation, Reader, SlicePredicate,
    ThriftError, Type, read_insertion,
};
use std::sync::Arc;

/// The changes of a batch.
#[derive(Default)]
struct Batch {
    plain: Changes,
    counting: Changes,
    /// A counter family of the batch, for the check of the consistency level.
    counts: Option<Arc<Family>>,
}

/// The times that all mutations of a call share.
#[derive(Clone, Copy)]
pub(super) struct WriteTimes {
    pub(super) now_s: i64,
    /// The server's timestamp, used for counters.
    pub(super) timestamp_us: i64,
}

impl Rpc {
    pub(crate) fn batch_mutate(
        &self,
        reader: &mut Reader<'_>,
        allows_counters: bool,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let mut batch = Batch::default();
        let (mut has_map, mut level) = (false, None);
        while let Some((ty, number)) = reader.field()? {
            match (number, ty) {
                (1, Type::Map) => {
                    has_map = true;
                    self.read_map(reader, work, &mut batch)?;
                }
                (2, Type::I32) => level = Some(ConsistencyLevel::read(reader)?),
                _ => reader.skip(ty)?,
            }
        }
        let of = "batch_mutate_args";
        if !has_map {
            return Err(ThriftError::Missing { field: "mutation_map", of }.into());
        }
        let Some(level) = level else {
            return Err(ThriftError::Missing { field: "consistency_level", of }.into());
        };
        if let Some(family) = &batch.counts {
            check_write_level(level, Some(&family.table))?;
            if !allows_counters {
                return invalid("Counter mutations are not allowed in atomic batches");
            }
        }
        check_write_level(level, None)?;
        work.manner.at(level);
        self.write_all(&batch, !allows_counters, work)
    }

    fn write_all(&self, batch: &Batch, is_atomic: bool, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let (mut ticket, mut manner) = (Ticket::ready(), work.manner);
        if !batch.counting.updates.is_empty() {
            ticket = self.storage.count(&batch.counting, manner)?;
            // After counters were changed, the call cannot be run again, so it must block if needed.
            manner.may_block = true;
        }
        if !batch.plain.updates.is_empty() {
            // Logged after the counters, so this ticket is ready after that of the counters.
            ticket = self.storage.write(&batch.plain, is_atomic, manner)?;
        }
        work.reply.end(work.out);
        Ok(ReplyState::Promise(ticket))
    }

    /// Decodes the map from key to column family to mutations.
    fn read_map(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>, batch: &mut Batch) -> Result<()> {
        let mut moment = WriteTimes { now_s: self.storage.now_s(), timestamp_us: 0 };
        let (_, _, keys) = reader.map()?;
        for _ in 0..keys {
            let key = reader.binary()?;
            let (_, _, families) = reader.map()?;
            for _ in 0..families {
                let name = <&str>::read(reader)?;
                let family = self.family(work.session, name)?;
                check_key(&family.table, key)?;
                if family.counts && moment.timestamp_us == 0 {
                    moment.timestamp_us = self.storage.next_timestamp()?;
                }
                let mut changes = RowChanges::new(&family, key, moment.now_s);
                let (ty, mutations) = reader.list()?;
                if mutations > 0 && ty != Type::Struct {
                    return Err(RpcError::Arguments(ThriftError::UnknownType(ty as u8)));
                }
                for _ in 0..mutations {
                    match read_insertion(reader) {
                        Some(column) => insert_column(&family, &column, moment, &mut changes)?,
                        None => apply(&family, &Mutation::read(reader)?, moment, &mut changes)?,
                    }
                }
                let update = changes.finish();
                if update.changes.is_empty() {
                    continue;
                }
                if family.counts {
                    batch.counting.updates.push(update);
                    batch.counts = Some(family);
                } else {
                    batch.plain.updates.push(update);
                }
            }
        }
        Ok(())
    }
}

/// Adds one mutation to the changes.
fn apply<'m>(
    family: &Family,
    mutation: &Mutation<'m>,
    moment: WriteTimes,
    changes: &mut RowChanges<'m>,
) -> Result<()> {
    match (&mutation.column_or_supercolumn, &mutation.deletion) {
        (Some(column), None) => insert(family, column, moment, changes),
        (None, Some(deletion)) => delete(family, deletion, moment, changes),
        _ => invalid("mutation must have one and only one of column_or_supercolumn or deletion"),
    }
}

fn insert<'m>(
    family: &Family,
    column: &ColumnOrSuperColumn<'m>,
    moment: WriteTimes,
    changes: &mut RowChanges<'m>,
) -> Result<()> {
    match (&column.column, &column.super_column, &column.counter_column, &column.counter_super_column) {
        (Some(column), None, None, None) => insert_column(family, column, moment, changes),
        (None, Some(of), None, None) => {
            check_counts(family, false)?;
            for column in &of.columns {
                check_path(family, Some(of.name), Some(column.name))?;
                let (value, timestamp_us, ttl_s) = check_column(family, Some(of.name), column, moment.now_s)?;
                changes.column(Some(of.name), column.name, Change::Value(value, timestamp_us, ttl_s))?;
            }
            Ok(())
        }
        (None, None, Some(column), None) => {
            check_counts(family, true)?;
            check_path(family, None, Some(column.name))?;
            changes.column(None, column.name, Change::Sum(column.value.to_be_bytes(), moment.timestamp_us))
        }
        (None, None, None, Some(of)) => {
            check_counts(family, true)?;
            for column in &of.columns {
                check_path(family, Some(of.name), Some(column.name))?;
                let sum = Change::Sum(column.value.to_be_bytes(), moment.timestamp_us);
                changes.column(Some(of.name), column.name, sum)?;
            }
            Ok(())
        }
        _ => invalid(
            "ColumnOrSuperColumn must have one (and only one) of column, super_column, counter and counter_super_column",
        ),
    }
}

fn insert_column<'m>(
    family: &Family,
    column: &Column<'m>,
    moment: WriteTimes,
    changes: &mut RowChanges<'m>,
) -> Result<()> {
    check_counts(family, false)?;
    check_path(family, None, Some(column.name))?;
    let (value, timestamp_us, ttl_s) = check_column(family, None, column, moment.now_s)?;
    changes.column(None, column.name, Change::Value(value, timestamp_us, ttl_s))
}

fn delete<'m>(
    family: &Family,
    deletion: &Deletion<'m>,
    moment: WriteTimes,
    changes: &mut RowChanges<'m>,
) -> Result<()> {
    let super_column = deletion.super_column;
    if let Some(name) = super_column {
        check_name(family, None, name)?;
    }
    if let Some(SlicePredicate { column_names, slice_range }) = &deletion.predicate {
        if column_names.is_none() && slice_range.is_none() {
            return invalid("A SlicePredicate must be given a list of Columns, a SliceRange, or both");
        }
        if let Some(range) = slice_range {
            check_range(family, super_column, range)?;
        }
        for name in column_names.iter().flatten() {
            check_name(family, super_column, name)?;
        }
    }
    if !family.is_super() && super_column.is_some() {
        return invalid(format!(
            "Deletion of super columns is not possible on a standard table (KeySpace={} Table={})",
            family.table.keyspace, family.table.name
        ));
    }
    let timestamp_us = match deletion.timestamp {
        // As for all counters, the timestamp is the server's.
        _ if family.counts => moment.timestamp_us,
        Some(timestamp_us) => timestamp_us,
        None => {
            return invalid(format!(
                "Deletion timestamp is not optional for non commutative table {}",
                family.table.name
            ));
        }
    };
    match (&deletion.predicate, super_column) {
        (Some(SlicePredicate { column_names: Some(names), .. }), _) => {
            for name in names {
                if family.is_super() && super_column.is_none() {
                    changes.delete_super_column(name, timestamp_us);
                } else {
                    changes.column(super_column, name, Change::Deletion(timestamp_us))?;
                }
            }
            Ok(())
        }
        (Some(SlicePredicate { slice_range: Some(range), .. }), None) => {
            changes.delete_range(range.start, range.finish, timestamp_us)
        }
        (Some(_), Some(_)) => invalid("Cannot delete a range of subcolumns in a super column"),
        (_, Some(name)) => {
            changes.delete_super_column(name, timestamp_us);
            Ok(())
        }
        (_, None) => {
            changes.delete_row(timestamp_us);
            Ok(())
        }
    }
}
