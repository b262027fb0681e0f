//! Writes rows that a compact table hides from statements: its columns that were not declared, as the old RPC interface writes them.
//!
//! The writes are those of the table after DROP COMPACT STORAGE (`forms::opened`): a name and a value. `LocalWriter` runs all others as
//! statements.

use super::decode::serialised_key;
use crate::source::{StatementKind, Write};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::schema::Table;
use std::sync::Arc;

/// Whether a write is one of hidden rows.
pub(super) fn is_hidden(table: &Table, write: &Write) -> bool {
    let is_of_row =
        matches!(write.kind, StatementKind::Insert | StatementKind::Update | StatementKind::DeleteRow);
    is_of_row && table.is_static_compact()
}

/// The mutation of a write; `None` if it writes nothing, as a marker, which such rows do not have.
pub(super) fn mutation(table: &Arc<Table>, write: &Write, now_s: i64) -> Option<Mutation> {
    let values: Vec<Result<&[u8], bool>> = write.values.iter().collect();
    let stamp = |at: usize| Some(i64::from_be_bytes(*values.get(at)?.ok()?.first_chunk()?));
    let keys = |from: usize| -> Option<(Vec<u8>, Vec<u8>)> {
        let end = from + table.partition_key.len();
        let key: Option<Vec<&[u8]>> = values.get(from..end)?.iter().map(|value| value.ok()).collect();
        Some((serialised_key(&key?), values.get(end)?.ok()?.to_vec()))
    };
    let mut changes = Changes::default();
    let key = match write.kind {
        StatementKind::DeleteRow => {
            let (key, name) = keys(1)?;
            let deletion = DeletionTime { timestamp_us: stamp(0)?, local_s: now_s };
            changes.row([Some(&name[..])].into_iter(), (Liveness::NONE, deletion), &[], |_| {});
            key
        }
        StatementKind::Update => {
            let (key, name) = keys(3)?;
            let ttl_s = i32::from_be_bytes(*values.get(1)?.ok()?.first_chunk()?);
            let value = *values.get(2)?;
            let local_deletion_s = match (value, ttl_s) {
                (Ok(_), 0) => NO_EXPIRY,
                (Ok(_), ttl_s) => now_s + i64::from(ttl_s),
                (Err(_), _) => now_s,
            };
            let cell = Cell {
                column: table.compact_value()?.id,
                ttl_s: if value.is_ok() { ttl_s } else { 0 },
                timestamp_us: stamp(0)?,
                local_deletion_s,
                path: Span::NULL,
                value: Span::NULL,
            };
            let marker = (Liveness::NONE, DeletionTime::LIVE);
            changes.row([Some(&name[..])].into_iter(), marker, &[], |writer| {
                writer.cell(&cell, None, value.unwrap_or_default());
            });
            key
        }
        _ => return None,
    };
    Some(Mutation { updates: vec![PartitionUpdate { table: Arc::clone(table), key, changes }] })
}
