//! Maps the engine's errors to those that clients see. No other code does this.

use crate::error::CqlError;
use crate::key_text::partition_key_text;
use helenus_engine::Error;
use helenus_engine::account::Refusal;
use helenus_model::mutation::PartitionUpdate;

/// Consistency reported in errors that have no request: `ONE`.
const CONSISTENCY_ONE: u16 = 1;

impl From<Refusal> for CqlError {
    fn from(refusal: Refusal) -> CqlError {
        Error::from(refusal).into()
    }
}

impl From<Error> for CqlError {
    fn from(error: Error) -> CqlError {
        let message = error.to_string();
        match error {
            Error::WouldBlock => CqlError::WouldBlock,
            Error::Cancelled => CqlError::Cancelled,
            // Errors after which a client can retry, or which can be fixed while the server runs.
            Error::LogFull { .. }
            | Error::NoRoom { .. }
            | Error::FlushFails { .. }
            | Error::NoSpaceToCompact { .. }
            | Error::NoMemory(_)
            | Error::SchemaTooLarge { .. } => CqlError::Overloaded(message),
            Error::MutationTooLarge { size, limit, keyspace, table, key } => CqlError::Invalid(format!(
                "Rejected an oversized mutation ({size}/{limit}) for keyspace: {keyspace}. Top keys are: {table}.{key}"
            )),
            Error::Unstorable { .. }
            | Error::Unindexable { .. }
            | Error::TableIdInUse { .. }
            | Error::ClockBeyond { .. }
            | Error::Changes(_) => CqlError::Invalid(message),
            Error::UnknownTable { table, .. } => CqlError::Invalid(format!("table {table} does not exist")),
            Error::TimedOut => CqlError::ReadTimeout { consistency: CONSISTENCY_ONE },
            Error::Unlogged { .. } => CqlError::ReadFailure { consistency: CONSISTENCY_ONE, reason: message },
            Error::TooManyTombstones => CqlError::TooManyTombstones { consistency: CONSISTENCY_ONE },
            Error::Table(_)
            | Error::IndexNotAvailable { .. }
            | Error::Unreadable(_)
            | Error::LogFailed { .. }
            | Error::LogDamaged { .. }
            | Error::Unappliable(_)
            | Error::Io { .. }
            | Error::InUse { .. }
            | Error::CassandraNode { .. }
            | Error::Foreign { .. }
            | Error::SchemaDamaged { .. }
            | Error::SnapshotExists { .. }
            | Error::Damaged(_)
            | Error::Panicked { .. }
            | Error::NotFlushed { .. }
            | Error::Closed => CqlError::Server(message),
        }
    }
}

/// The error of a write: as above, but a timeout is a write timeout, and an oversized mutation lists its keys as
/// `MutationExceededMaxSizeException` does.
pub(super) fn write_error(error: Error, updates: &[PartitionUpdate], consistency: u16) -> CqlError {
    match error {
        Error::TimedOut => CqlError::WriteTimeout { consistency },
        failed @ (Error::LogFailed { .. } | Error::Io { .. }) => {
            CqlError::WriteFailure { consistency, reason: failed.to_string() }
        }
        Error::MutationTooLarge { size, limit, keyspace, .. } => CqlError::Invalid(format!(
            "Rejected an oversized mutation ({size}/{limit}) for keyspace: {keyspace}. Top keys are: {}",
            top_keys(updates)
        )),
        other => CqlError::from(other),
    }
}

/// The error of a read before a write.
pub(super) fn read_before_write_error(error: Error, consistency: u16) -> CqlError {
    match error {
        Error::TimedOut => CqlError::WriteTimeout { consistency },
        failed @ (Error::Table(_) | Error::Unreadable(_) | Error::Io { .. }) => {
            CqlError::ReadFailure { consistency, reason: failed.to_string() }
        }
        other => CqlError::from(other),
    }
}

/// The error of a TRUNCATE. Errors that a client can handle keep their kind (`TruncateException`).
pub(super) fn truncate_error(error: Error) -> CqlError {
    match CqlError::from(error) {
        CqlError::Server(reason) => CqlError::Truncate(reason),
        other => other,
    }
}

/// The keys of a mutation, largest partition first: as many as fit into 1024 characters, and at least one.
fn top_keys(updates: &[PartitionUpdate]) -> String {
    const LENGTH_MAX: usize = 1024;
    let mut sorted: Vec<&PartitionUpdate> = updates.iter().collect();
    sorted.sort_by_key(|update| std::cmp::Reverse(update.changes.as_bytes().len()));
    let mut text = String::new();
    for (index, update) in sorted.iter().enumerate() {
        let key = format!("{}.{}", update.table.name, partition_key_text(&update.table, &update.key));
        if index > 0 && text.len() + key.len() + 2 > LENGTH_MAX {
            text.push_str(&format!(" and {} more.", sorted.len() - index));
            break;
        }
        text.push_str(if index == 0 { "" } else { ", " });
        text.push_str(&key);
    }
    text
}
