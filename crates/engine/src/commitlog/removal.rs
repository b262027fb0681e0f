//! Finds the segments that are no longer needed, because all their writes are in SSTables, and reuses or removes them.

use super::log::{Closed, CommitLog, State};
use super::next_segment::USED_MAX;
use super::record;
use super::segment::UsedSegment;
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use helenus_model::schema::TableId;
use std::path::Path;
use std::sync::Arc;

impl CommitLog {
    /// Records that the writes of these tables up to these positions are in SSTables, and removes segments that are no
    /// longer needed.
    ///
    /// Returns when the record is synced: only then may the flushed SSTables be compacted.
    pub fn mark_flushed(self: &Arc<Self>, tables: &[(TableId, LogPosition)]) -> Result<()> {
        let mut content = Vec::new();
        record::put_flushed(tables.iter().copied(), &mut content);
        let end = self.append_content(&content)?;
        self.state.lock().flushed.extend(tables.iter().copied());
        self.sync_up_to(end)?;
        self.remove_segments()
    }

    /// Forgets a dropped table, so that its writes no longer keep segments.
    pub fn forget(&self, table: TableId) -> Result<()> {
        let mut state = self.state.lock();
        state.flushed.remove(&table);
        let State { active, closed, .. } = &mut *state;
        for dirty in closed.iter_mut().map(|c| &mut c.dirty).chain(active.iter_mut().map(|a| &mut a.dirty)) {
            dirty.remove(&table);
        }
        drop(state);
        self.remove_segments()
    }

    /// Forgets the writes of tables that do not exist: they were dropped in an earlier run.
    pub fn forget_missing_tables(&self, exists: impl Fn(TableId) -> bool) {
        let mut state = self.state.lock();
        state.flushed.retain(|table, _| exists(*table));
        for segment in &mut state.closed {
            segment.dirty.retain(|table, _| exists(*table));
        }
    }

    /// Removes or sets aside the oldest segments, up to the first that holds writes which are not flushed.
    fn remove_segments(&self) -> Result<()> {
        let end = {
            let mut state = self.state.lock();
            let State { active, closed, flushed, .. } = &mut *state;
            for segment in closed.iter_mut() {
                segment.dirty.retain(|table, last| flushed.get(table).is_none_or(|position| position < last));
            }
            match active {
                Some(active) if closed.front().is_some_and(|segment| segment.dirty.is_empty()) => {
                    LogPosition::new(active.segment.number, active.end())
                }
                // The last of these segments holds the only record of flushes and timestamps if there is no active
                // one.
                _ => return Ok(()),
            }
        };
        // The start of the active segment repeats those records. It must be durable before the old ones go.
        self.sync_up_to(end)?;
        let removed: Vec<Closed> = {
            let closed = &mut self.state.lock().closed;
            let before = |segment: &&Closed| segment.dirty.is_empty() && segment.number < end.segment();
            let count = closed.iter().take_while(before).count();
            closed.drain(..count).collect()
        };
        let (kept, useless): (Vec<Closed>, Vec<Closed>) =
            removed.into_iter().partition(|segment| segment.is_watched && self.is_wanted(segment));
        self.pass(&useless)?;
        for segment in kept {
            self.keep(segment)?;
        }
        let files = useless.iter().map(|segment| (segment.path.as_path(), segment.number, segment.bytes));
        self.reuse_or_remove(files.collect())?;
        self.release()
    }

    /// Sets segment files aside for reuse, or removes them: path, number and size of each.
    pub(super) fn reuse_or_remove(&self, files: Vec<(&Path, u32, u64)>) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.dir);
        let mut room = {
            let state = self.state.lock();
            if state.stopping { 0 } else { USED_MAX.saturating_sub(state.used.len()) }
        };
        let mut used = Vec::new();
        for (path, number, bytes) in files {
            if room > 0 && bytes == u64::from(self.options.segment_bytes) {
                room -= 1;
                let size = self.options.segment_bytes;
                used.push(UsedSegment::set_aside(disk, path, (dir, number), size)?);
            } else {
                disk.remove(path).map_err(Error::io("remove", path))?;
            }
        }
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        // Only after the sync: a reused segment must not be found under its old name.
        self.state.lock().used.append(&mut used);
        Ok(())
    }
}
