//! One change of a watched table.

use super::position::ChangePosition;
use crate::commitlog::DefinitionKind;
use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::RangeBound;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use std::sync::Arc;

/// A change.
pub struct Change<'c> {
    /// Behind the change: reading on from here goes on with the next one.
    pub position: ChangePosition,
    /// The table as it was then.
    pub table: &'c Arc<Table>,
    /// What changed.
    pub kind: ChangeKind<'c>,
    /// The row, or the static row, before the change.
    pub before: Before<'c>,
}

/// A row before a change.
#[derive(Clone, Copy)]
pub enum Before<'c> {
    /// It was not recorded: the table is not one of `DatabaseOptions::row_images`, or more than a row changed.
    NotRecorded,
    /// It was recorded.
    Recorded {
        /// Its cells, dead ones too; none if there was no row.
        row: RowView<'c>,
        /// The latest deletion of its partition or of a range with it: older writes have no effect.
        hidden: DeletionTime,
    },
}

/// What changed.
pub enum ChangeKind<'c> {
    /// A row was written, or deleted, or both.
    Row {
        /// Serialised partition key.
        key: &'c [u8],
        /// Its liveness, deletion and cells, as they were written.
        row: RowView<'c>,
    },
    /// The static row was written.
    StaticRow {
        /// Serialised partition key.
        key: &'c [u8],
        /// Its cells, as they were written.
        row: RowView<'c>,
    },
    /// All rows between two bounds were deleted.
    RangeDeletion {
        /// Serialised partition key.
        key: &'c [u8],
        /// Lower bound.
        start: RangeBound<'c>,
        /// Upper bound.
        end: RangeBound<'c>,
        /// The deletion.
        deletion: DeletionTime,
    },
    /// A partition was deleted.
    PartitionDeletion {
        /// Serialised partition key.
        key: &'c [u8],
        /// The deletion.
        deletion: DeletionTime,
    },
    /// The table was truncated.
    Truncated,
    /// SSTables were imported, by an import or by a restore. Their rows are no changes: read the table anew.
    Imported {
        /// Their number.
        sstables: u32,
    },
    /// The table's definition changed.
    Schema(SchemaEvent),
}

/// How the definition of a table changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaEvent {
    /// It was created.
    Created,
    /// It was altered.
    Altered,
    /// `cdc` was set: its changes follow.
    Watched,
    /// `cdc` was unset: no change follows.
    Unwatched,
    /// It was dropped.
    Dropped,
}

impl SchemaEvent {
    /// The event that a definition announces; `None` for a repeated one.
    pub(super) fn of(kind: DefinitionKind) -> Option<SchemaEvent> {
        Some(match kind {
            DefinitionKind::Repeated => return None,
            DefinitionKind::Created => SchemaEvent::Created,
            DefinitionKind::Altered => SchemaEvent::Altered,
            DefinitionKind::Watched => SchemaEvent::Watched,
            DefinitionKind::Unwatched => SchemaEvent::Unwatched,
            DefinitionKind::Dropped => SchemaEvent::Dropped,
        })
    }
}
