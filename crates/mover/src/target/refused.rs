//! Names the row that a target refuses for good, so that its operator can look at it.

use crate::error::MoveError;
use crate::remote::{key_words, serialised_key};
use crate::source::{RowName, StatementKind, Write};
use helenus_model::schema::Table;

/// The key of a write's row, such as `p = 1, c = 'x'`; of a deletion of more rows the key of their partition.
pub(super) fn row_of(table: &Table, write: &Write) -> String {
    let values: Vec<Option<&[u8]>> = write.values.iter().map(Result::ok).collect();
    let is_of_static = |column| table.statics.iter().any(|of| of.id == column);
    let all = table.clustering.len();
    // Keys come first in an INSERT and last elsewhere.
    let (is_first, clustering) = match write.kind {
        StatementKind::Insert => (true, Some(all)),
        StatementKind::InsertPrefix(values) => (true, Some(usize::from(values))),
        StatementKind::UpdatePrefix(values) => (false, Some(usize::from(values))),
        StatementKind::Update | StatementKind::DeleteRow => (false, Some(all)),
        StatementKind::Remove(column)
        | StatementKind::DeleteColumn(column)
        | StatementKind::Append(column) => (false, (!is_of_static(column)).then_some(all)),
        StatementKind::UpdateStatic | StatementKind::DeletePartition => (false, None),
        // Behind the timestamp.
        StatementKind::DeleteRange(_) => (true, None),
    };
    let partition = table.partition_key.len();
    let count = partition + clustering.unwrap_or_default();
    let start = match write.kind {
        StatementKind::DeleteRange(_) => 1,
        _ if is_first => 0,
        _ => values.len().saturating_sub(count),
    };
    let keys: Vec<&[u8]> =
        values.iter().skip(start).take(count).map(|value| value.unwrap_or_default()).collect();
    let (key, rest) = keys.split_at(partition.min(keys.len()));
    let clustering = clustering.map(|_| rest.iter().map(|value| value.to_vec()).collect());
    let words = key_words(table, &RowName { key: serialised_key(key), clustering });
    match write.kind {
        StatementKind::DeletePartition | StatementKind::DeleteRange(_) => {
            words.trim_end_matches(", static").to_owned()
        }
        _ => words,
    }
}

/// An error of the target that does not pass, with the row that it is about.
pub(crate) fn of_row(error: MoveError, table: &Table, row: &RowName) -> MoveError {
    match error {
        MoveError::Target(error) if error.server().is_some() => {
            let (name, row) = (format!("{}.{}", table.keyspace, table.name), key_words(table, row));
            MoveError::RowRefused { table: name, row, error: Box::new(error) }
        }
        other => other,
    }
}
