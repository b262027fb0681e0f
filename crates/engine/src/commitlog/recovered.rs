//! The log that the last run left, as `replay` finds it and `CommitLog::open` takes it over.

use crate::log_position::LogPosition;
use helenus_model::schema::TableId;
use std::collections::BTreeMap;

/// A segment of the last run.
#[derive(Default)]
pub(crate) struct RecoveredSegment {
    pub(crate) number: u32,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// End of its records.
    pub(crate) end: u32,
    /// The last position of each table in it.
    pub(crate) dirty: BTreeMap<TableId, LogPosition>,
    /// Whether it has records of a watched table.
    pub(crate) is_watched: bool,
}

/// The state that the last run left, as found by `replay`.
#[derive(Default)]
pub(crate) struct RecoveredLog {
    /// Segments by number.
    pub(crate) segments: Vec<RecoveredSegment>,
    /// End of the last segment.
    pub(crate) end: Option<LogPosition>,
    /// The position up to which each table is flushed.
    pub(crate) flushed: BTreeMap<TableId, LogPosition>,
    /// The last server timestamp in the log; 0 if it has none.
    pub(crate) timestamp_us: i64,
}
