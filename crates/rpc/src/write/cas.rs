//! cas: writes columns if the current columns of the row equal those that the client expects.
//!
//! In the local database, the partition lock is held from the read to the write, as for CQL's conditional statements. The written columns
//! get the server's timestamp, which is later than all that were read (`StorageProxy.cas`). Elsewhere the storage does the whole.

use super::changes::{Change, RowChanges};
use crate::call_options::{CallOptions, native_level};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use crate::family::Family;
use crate::predicate::Wanted;
use crate::read::{ColumnSink, Envelope};
use crate::storage::Swap;
use crate::validate::{check_column, check_key, check_name};
use helenus_cql::LocalBackend;
use helenus_engine::read::PartitionKey;
use helenus_model::filter::Slice;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::token::Token;
use helenus_wire::thrift::{CASResult, Column, ColumnOrSuperColumn, ConsistencyLevel, Field, Reader, args};
use std::sync::Arc;

impl Rpc {
    pub(crate) fn cas(&self, reader: &mut Reader<'_>, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let asked = args::Cas::read(reader)?;
        let family = self.family_that(work.session, asked.column_family, false)?;
        check_key(&family.table, asked.key)?;
        if family.is_super() {
            return invalid("CAS does not support supercolumns");
        }
        let now_s = self.storage.now_s();
        let (expected, updates) = (asked.expected.unwrap_or_default(), asked.updates.unwrap_or_default());
        for column in &updates {
            check_name(&family, None, column.name)?;
            check_column(&family, None, column, now_s)?;
        }
        for column in &expected {
            check_name(&family, None, column.name)?;
        }
        check_levels(asked.serial_consistency_level, asked.commit_consistency_level)?;
        let row = Row { family: &family, key: asked.key, now_s };
        match self.storage.local() {
            Some(local) => self.swap_here(local, &row, (&expected, &updates), work),
            None => {
                let serial = native_level(asked.serial_consistency_level);
                work.manner.at(asked.commit_consistency_level);
                self.swap_elsewhere(&row, (&expected, &updates), serial, work)
            }
        }
    }

    fn swap_here(
        &self,
        local: &LocalBackend,
        row: &Row<'_>,
        (expected, updates): (&[Column<'_>], &[Column<'_>]),
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let (family, key, now_s) = (row.family, row.key, row.now_s);
        let partition = (family.table.id, Token::of_key(key));
        let locked = local.database().lock_partition([partition].into_iter(), work.manner.read())?;
        let bytes = self.present(family, key, expected, work.manner)?;
        let present = columns(&bytes)?;
        let holds = match expected {
            [] => present.is_empty(),
            expected => expected.iter().all(|wanted| {
                present.iter().any(|found| found.name == wanted.name && found.value == wanted.value)
            }),
        };
        if !holds {
            let result = CASResult { success: false, current_values: Some(present) };
            work.reply.success(&result, work.out);
            return Ok(ReplyState::Promise(local.database().written_so_far()));
        }
        let newest_us = present.iter().filter_map(|column| column.timestamp).max().unwrap_or(i64::MIN);
        let timestamp_us = local.database().next_timestamp()?.max(newest_us.saturating_add(1));
        let mut changes = RowChanges::new(family, key, now_s);
        for column in updates {
            let (value, _, ttl_s) = check_column(family, None, column, now_s)?;
            changes.column(None, column.name, Change::Value(value, timestamp_us, ttl_s))?;
        }
        let mutation = Mutation { updates: vec![changes.finish()] };
        let ticket = local.database().write_locked(&mutation, &locked)?;
        work.manner.wrote(&mutation);
        work.reply.success(&CASResult { success: true, current_values: None }, work.out);
        Ok(ReplyState::Promise(ticket))
    }

    fn swap_elsewhere(
        &self,
        row: &Row<'_>,
        (expected, updates): (&[Column<'_>], &[Column<'_>]),
        serial: u16,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let wanted = match expected {
            [] => Wanted { limit: 1, ..Wanted::slices(row.family, vec![Slice::all()]) },
            expected => {
                let names: Vec<&[u8]> = expected.iter().map(|column| column.name).collect();
                Wanted::names(row.family, None, &names)?
            }
        };
        let (expected, updates) = (row.cells(expected, false)?, row.cells(updates, true)?);
        let swap = Swap { expected: &expected, updates: &updates, serial };
        let mut bytes = Vec::new();
        let mut sink = ColumnSink::new(row.family, &wanted, row.now_s, Envelope::Columns, &mut bytes);
        let success = self.storage.swap(&swap, &mut sink, work.manner)?;
        // The timestamps of what was there are not known.
        let present =
            columns(&bytes)?.into_iter().map(|found| Column { timestamp: None, ttl: None, ..found });
        let current_values = (!success).then(|| present.collect());
        work.reply.success(&CASResult { success, current_values }, work.out);
        Ok(ReplyState::Result)
    }

    /// The columns of a row that decide the condition: the expected ones, or any one if none is expected.
    fn present(
        &self,
        family: &Arc<Family>,
        key: &[u8],
        expected: &[Column<'_>],
        manner: CallOptions<'_>,
    ) -> Result<Vec<u8>> {
        let wanted = match expected {
            [] => Wanted { limit: 1, ..Wanted::slices(family, vec![Slice::all()]) },
            expected => {
                let names: Vec<&[u8]> = expected.iter().map(|column| column.name).collect();
                let mut wanted = Wanted::names(family, None, &names)?;
                if !wanted.declared.is_empty() {
                    // If one declared column is read, all are (`ThriftCASRequest.readCommand`).
                    wanted.declared = (0..family.declared.len()).collect();
                }
                wanted
            }
        };
        let mut bytes = Vec::new();
        let command = self.command(family, vec![PartitionKey::new(key.to_vec())], &wanted);
        let mut slicer = ColumnSink::new(family, &wanted, command.now_s, Envelope::Columns, &mut bytes);
        self.run_read(&command, &mut slicer, manner)?;
        Ok(bytes)
    }
}

/// The row of a call.
struct Row<'a> {
    family: &'a Arc<Family>,
    key: &'a [u8],
    now_s: i64,
}

impl Row<'_> {
    /// The cells of columns; `expire`: with their TTLs.
    fn cells(&self, columns: &[Column<'_>], expire: bool) -> Result<PartitionUpdate> {
        let mut changes = RowChanges::new(self.family, self.key, self.now_s);
        for column in columns {
            let Some(value) = column.value else { return invalid("Column value is required") };
            let ttl_s = column.ttl.filter(|_| expire).unwrap_or_default();
            changes.column(None, column.name, Change::Value(value, 0, ttl_s))?;
        }
        Ok(changes.finish())
    }
}

/// Decodes consecutive columns.
fn columns(bytes: &[u8]) -> Result<Vec<Column<'_>>> {
    let mut reader = Reader::new(bytes);
    let mut columns = Vec::new();
    while !reader.rest().is_empty() {
        columns.extend(ColumnOrSuperColumn::read(&mut reader).map_err(RpcError::from)?.column);
    }
    Ok(columns)
}

fn check_levels(serial: ConsistencyLevel, commit: ConsistencyLevel) -> Result<()> {
    use ConsistencyLevel::{LocalSerial, Serial};
    if !matches!(serial, Serial | LocalSerial) {
        return invalid("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
    }
    let name = match commit {
        Serial => "SERIAL",
        LocalSerial => "LOCAL_SERIAL",
        _ => return Ok(()),
    };
    invalid(format!(
        "{name} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted \
         but I don't care how many replicas commit it for non-SERIAL reads\""
    ))
}
