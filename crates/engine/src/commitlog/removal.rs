//! Finds the segments that are no longer needed, because all their writes are in SSTables, and removes or reuses them.
//!
//! Segments go one at a time, the oldest first, under the lock `removing`; each removal is durable before the next one
//! begins. A start relies on this order: as long as a segment is there, its successor is there too and tells where it
//! ends. Bytes behind that end, which a reused file still has from its earlier life, are told apart from damage by it.
//!
//! A removal that fails leaves its segment in `closed`. It is tried again by the next flush, and by the flusher
//! (`upkeep`), so that the disk space comes back even if nothing is written any more.

use super::log::{Closed, CommitLog, State};
use super::next_segment::USED_MAX;
use super::record;
use super::segment::UsedSegment;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::log_position::LogPosition;
use helenus_model::schema::TableId;
use parking_lot::MutexGuard;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

/// Nanoseconds after which `upkeep` tries again what failed, at first and at most: the time doubles.
const RETRY_NS_FIRST: u64 = 1_000_000_000;
const RETRY_NS_MAX: u64 = 60_000_000_000;

/// The state of the removal of segments. Its lock orders all changes of the set of closed and kept segments' files.
#[derive(Default)]
pub(super) struct Removing {
    /// Whether the last attempt failed, so that the journal is told once.
    has_failed: bool,
    /// Before this monotonic time, `upkeep` does nothing.
    retry_at_ns: u64,
    pause_ns: u64,
}

/// The facts about a closed segment that its removal needs.
pub(super) struct Removable {
    pub(super) path: std::path::PathBuf,
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) end: u32,
    pub(super) is_watched: bool,
}

impl State {
    /// Records that the writes of these tables up to these positions need no segment any more.
    pub(super) fn settle(&mut self, tables: &[(TableId, LogPosition)]) {
        for (table, position) in tables {
            let flushed = self.flushed.entry(*table).or_insert(LogPosition::START);
            *flushed = (*flushed).max(*position);
        }
        let State { active, closed, .. } = self;
        for dirty in closed.iter_mut().map(|c| &mut c.dirty).chain(active.iter_mut().map(|a| &mut a.dirty)) {
            for (table, position) in tables {
                if dirty.get(table).is_some_and(|last| last <= position) {
                    dirty.remove(table);
                }
            }
        }
    }

    /// Forgets a table whose writes are in no segment behind this position.
    fn forget(&mut self, table: TableId, position: LogPosition) {
        self.flushed.remove(&table);
        self.forgotten.insert(table, position);
        let State { active, closed, .. } = self;
        for dirty in closed.iter_mut().map(|c| &mut c.dirty).chain(active.iter_mut().map(|a| &mut a.dirty)) {
            dirty.remove(&table);
        }
    }

    /// Whether a segment has writes of the table up to this position.
    fn is_kept_by(&self, (table, position): &(TableId, LogPosition)) -> bool {
        let segments = self.closed.iter().map(|c| &c.dirty).chain(self.active.iter().map(|a| &a.dirty));
        segments.filter_map(|dirty| dirty.get(table)).any(|last| last <= position)
    }

    /// The oldest segment, if it can be removed. The active segment's beginning repeats what the oldest one alone may
    /// record, flushed positions and timestamps; so one without an active one after it stays.
    fn removable(&self) -> Option<&Closed> {
        self.active.as_ref()?;
        self.closed.front().filter(|segment| segment.dirty.is_empty())
    }
}

impl CommitLog {
    /// Records that the writes of these tables up to these positions are in SSTables, and removes segments that are no
    /// longer needed.
    ///
    /// Returns when the record is synced: only then may the flushed SSTables be compacted. A removal that fails is not
    /// an error of the caller, whose flush is done.
    pub fn mark_flushed(self: &Arc<Self>, tables: &[(TableId, LogPosition)]) -> Result<()> {
        let mut content = Vec::new();
        record::put_flushed(tables.iter().copied(), &mut content);
        let end = self.append_content(&content)?;
        self.state.lock().settle(tables);
        self.sync_up_to(end)?;
        self.remove_unneeded();
        Ok(())
    }

    /// Records that these tables had nothing in memory at these positions, where a segment is still kept for them: its
    /// records were void (truncated), unappliable, or in SSTables already.
    ///
    /// # Errors
    /// As `mark_flushed`.
    pub(crate) fn mark_empty(self: &Arc<Self>, tables: &[(TableId, LogPosition)]) -> Result<()> {
        let kept_by: Vec<_> = {
            let state = self.state.lock();
            tables.iter().copied().filter(|table| state.is_kept_by(table)).collect()
        };
        if kept_by.is_empty() { Ok(()) } else { self.mark_flushed(&kept_by) }
    }

    /// Forgets a dropped table, so that its writes no longer keep segments.
    pub fn forget(&self, table: TableId) {
        let position = self.position();
        self.state.lock().forget(table, position);
        self.remove_unneeded();
    }

    /// At the end of a start: forgets the writes of tables that do not exist, because they were dropped in an earlier
    /// run, and of those that have nothing in memory after the replay. The latter is recorded: otherwise the next start
    /// would replay a TRUNCATE again, and remove what was imported meanwhile.
    pub(crate) fn replayed(
        self: &Arc<Self>,
        exists: impl Fn(TableId) -> bool,
        is_empty: impl Fn(TableId) -> bool,
    ) {
        let position = self.position();
        let empty: Vec<_> = {
            let mut state = self.state.lock();
            state.flushed.retain(|table, _| exists(*table));
            let tables: BTreeSet<TableId> =
                state.closed.iter().flat_map(|segment| segment.dirty.keys().copied()).collect();
            let (known, gone): (Vec<TableId>, Vec<TableId>) =
                tables.into_iter().partition(|table| exists(*table));
            gone.into_iter().for_each(|table| state.forget(table, position));
            known.into_iter().filter(|table| is_empty(*table)).map(|table| (table, position)).collect()
        };
        if !empty.is_empty() && self.mark_flushed(&empty).is_err() {
            // On a full disk. They keep no segment in this run.
            self.state.lock().settle(&empty);
        }
    }

    /// Makes the log ready for a new table. If its id is that of a table that was dropped while the log had writes of it,
    /// a start must not give these to the new one.
    ///
    /// # Errors
    /// As `mark_flushed`.
    pub(crate) fn begin_table(self: &Arc<Self>, table: TableId) -> Result<()> {
        let position = self.position();
        let was_known = self.state.lock().forgotten.remove(&table).is_some();
        if was_known { self.mark_flushed(&[(table, position)]) } else { Ok(()) }
    }

    /// Removes the segments that are no longer needed, now. A failure goes to the journal and is tried again.
    pub(super) fn remove_unneeded(&self) {
        let mut removing = self.removing.lock();
        // The kept ones go even if the log's cannot: their space may be what is missing.
        let (removed, released) = (self.remove_closed(&removing), self.release(&removing));
        self.note_removal(&mut removing, removed.and(released));
    }

    /// What must happen even if nobody writes or flushes: removals that failed are tried again, kept segments go when
    /// they are too old, and the reserve is made again. Costs next to nothing if there is nothing to do.
    pub(crate) fn upkeep(&self) {
        let now_ns = self.host.clock.monotonic_ns();
        let Some(mut removing) = self.removing.try_lock().filter(|removing| now_ns >= removing.retry_at_ns)
        else {
            return;
        };
        if !self.has_upkeep() {
            return;
        }
        let done = Error::contain(|| {
            let (removed, released) = (self.remove_closed(&removing), self.release(&removing));
            removed.and(released).and_then(|()| self.make_reserve())
        });
        self.note_removal(&mut removing, done);
    }

    /// Whether the log has failed, its disk is full, or its last removal of segments has failed.
    pub(crate) fn has_known_trouble(&self) -> bool {
        let is_full = self.state.lock().is_full;
        is_full || self.check_failure().is_err() || self.removing.try_lock().is_some_and(|of| of.has_failed)
    }

    fn has_upkeep(&self) -> bool {
        let is_due = self.is_release_due();
        let state = self.state.lock();
        let may = !state.stopping && self.check_failure().is_ok();
        may && (is_due || state.removable().is_some() || (!state.has_reserve && state.active.is_some()))
    }

    fn note_removal(&self, removing: &mut Removing, done: Result<()>) {
        match done {
            Ok(()) => *removing = Removing::default(),
            Err(error) => {
                removing.pause_ns = (removing.pause_ns * 2).clamp(RETRY_NS_FIRST, RETRY_NS_MAX);
                removing.retry_at_ns = self.host.clock.monotonic_ns().saturating_add(removing.pause_ns);
                if !std::mem::replace(&mut removing.has_failed, true) && self.check_failure().is_ok() {
                    self.options.journal.note(&Event::LogNotRemoved { error: &error });
                }
            }
        }
    }

    /// Removes the oldest segments, up to the first that has writes which are not flushed.
    fn remove_closed(&self, removing: &MutexGuard<'_, Removing>) -> Result<()> {
        let end = {
            let state = self.state.lock();
            match (&state.active, state.removable()) {
                (Some(active), Some(_)) => LogPosition::new(active.segment.number, active.end()),
                _ => return Ok(()),
            }
        };
        // The start of the active segment repeats what the old ones record. It must be durable before they go.
        self.sync_up_to(end)?;
        loop {
            let segment = {
                let state = self.state.lock();
                let Some(segment) = state.removable().filter(|segment| segment.number < end.segment()) else {
                    return Ok(());
                };
                let Closed { path, number, bytes, end, is_watched, .. } = segment;
                Removable {
                    path: path.clone(),
                    number: *number,
                    bytes: *bytes,
                    end: *end,
                    is_watched: *is_watched,
                }
            };
            if segment.is_watched {
                self.keep_or_pass(removing, &segment)?;
            }
            self.remove_or_reuse(&segment)?;
            let mut state = self.state.lock();
            state.closed.pop_front();
            // No writes of these are left.
            state.forgotten.retain(|_, position| position.segment() > segment.number);
        }
    }

    /// Removes a segment's file from the log, or sets it aside for reuse. A file that is kept under a second name is
    /// never reused, and neither is one that may have such a name.
    fn remove_or_reuse(&self, segment: &Removable) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.dir);
        let size = self.options.segment_bytes;
        let is_reused = {
            let state = self.state.lock();
            let has_room = !state.stopping && state.used.len() < USED_MAX;
            has_room && !segment.is_watched && segment.bytes == u64::from(size)
        };
        let done = match is_reused {
            true => UsedSegment::set_aside(disk, &segment.path, (dir, segment.number), size).map(Some),
            false => disk.remove(&segment.path).map(|()| None),
        };
        let used = match done {
            // An earlier attempt has removed it or set it aside, and failed at the sync.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                UsedSegment::found(disk, (dir, segment.number), size)
            }
            done => done.map_err(Error::io("remove", &segment.path))?,
        };
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        // Only after the sync: a reused segment must not be found under its old name.
        self.state.lock().used.extend(used);
        Ok(())
    }
}
