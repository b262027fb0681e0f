//! Logs that tables were truncated.

use super::log::{CommitLog, State};
use super::record::{self, HEADER_BYTES};
use crate::error::Result;
use crate::log_position::LogPosition;
use helenus_model::schema::TableId;

impl CommitLog {
    /// Appends the records that tables were truncated, all or none; their earlier records are void. Returns the end of
    /// the last record.
    pub fn append_truncate(&self, tables: &[TableId]) -> Result<LogPosition> {
        let contents: Vec<Vec<u8>> = tables
            .iter()
            .map(|table| {
                let mut content = Vec::new();
                record::put_truncate(*table, &mut content);
                content
            })
            .collect();
        let bytes: usize = contents.iter().map(|content| content.len() + HEADER_BYTES).sum();
        let mut state = self.state.lock();
        let definitions: usize = tables.iter().map(|table| state.watched.definition_bytes(*table)).sum();
        self.make_room(&mut state, bytes + definitions, || true)?;
        let State { active, watched, .. } = &mut *state;
        let Some(active) = active else { unreachable!("make_room leaves an active segment") };
        let mut end = LogPosition::START;
        for (table, content) in tables.iter().zip(&contents) {
            watched.define(*table, active);
            end = active.put(content);
            active.dirty.insert(*table, end);
        }
        drop(state);
        self.wake_sync();
        Ok(end)
    }
}
