//! The segment after the active one: when it is created, from what file, and the change to it.

use super::active::{Active, Chunk};
use super::log::{Closed, CommitLog, State};
use super::record::{self, HEADER_BYTES};
use super::segment::{SEGMENT_HEAD, SPARE_NAMES, Segment, SpareFile, UsedSegment, content_bytes_max};
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::log_position::LogPosition;

/// Size of the first segment of a process.
const SEGMENT_BYTES_FIRST: u32 = 1 << 20;
/// Segments kept for reuse. A flush may free many at once.
pub(super) const USED_MAX: usize = 16;

impl State {
    /// The size of the next segment to create in advance, if one is due and none is being created. A full-size segment
    /// wants one ready from its start and two from its middle, because others follow it as fast, and syncs are slow
    /// while the disk is busy.
    pub(super) fn wants_spare(&self, segment_bytes: u32) -> Option<u32> {
        let active = self.active.as_ref()?;
        let is_grown = active.segment.size >= segment_bytes;
        let is_half_full = active.end() > active.segment.size / 2;
        let wanted = usize::from(is_grown) + usize::from(is_half_full);
        let has_failed = self.failed_behind == Some(active.segment.number);
        let due = self.ready.len() < wanted && self.making.is_none() && !has_failed && !self.stopping;
        due.then(|| active.segment.size.saturating_mul(2).max(SEGMENT_BYTES_FIRST).min(segment_bytes))
    }

    /// Forgets the flushed positions that lie before all segments: a start finds no record up to them. Otherwise each
    /// segment would repeat the positions of all tables that were ever written to, 24 bytes each.
    fn forget_old_positions(&mut self) {
        let active = self.active.as_ref().map(|active| active.segment.number);
        // A segment leaves `closed` once its removal is durable.
        let Some(oldest) = self.closed.front().map(|segment| segment.number).or(active) else { return };
        self.flushed.retain(|_, position| position.segment() >= oldest);
    }

    /// Takes a segment of this size that waits for reuse.
    pub(super) fn take_used(&mut self, size: u32) -> Option<UsedSegment> {
        let at = self.used.iter().position(|used| used.size() == size)?;
        Some(self.used.swap_remove(at))
    }

    /// A number that no segment has had, and that the spare worker is not using.
    pub(super) fn number(&mut self) -> u32 {
        let number = self.making.map_or(self.next_number, |making| self.next_number.max(making + 1));
        self.next_number = number + 1;
        number
    }
}

impl CommitLog {
    /// Ensures an active segment with room for `bytes` of content in several records. On a full disk, upkeep takes the
    /// room of the reserve.
    pub(super) fn make_room(
        &self,
        state: &mut State,
        bytes: usize,
        is_upkeep: impl FnOnce() -> bool,
    ) -> Result<()> {
        self.check_failure()?;
        // Room for the record's header, a timestamp record and a SYNCED record before it, and the end.
        let wanted = bytes + 4 * HEADER_BYTES + 64;
        if state.active.as_ref().is_some_and(|a| a.end() as usize + wanted <= a.segment.size as usize) {
            return Ok(());
        }
        state.forget_old_positions();
        let grown = |a: &Active| a.segment.size.saturating_mul(2).max(SEGMENT_BYTES_FIRST);
        let grown = state.active.as_ref().map_or(SEGMENT_BYTES_FIRST, grown);
        let least = wanted + SEGMENT_HEAD as usize + 28 * state.flushed.len() + 96;
        let size = grown.min(self.options.segment_bytes).max(least.next_multiple_of(4096) as u32);
        debug_assert!(content_bytes_max(size) > bytes);
        let (disk, dir) = (&*self.host.disk, &self.options.dir);
        let segment = match state.ready.pop_front() {
            Some(ready) if ready.size as usize >= least => ready,
            small => {
                // The segment created now gets a greater number than these.
                let useless = small.into_iter().chain(std::mem::take(&mut state.ready));
                useless.into_iter().try_for_each(|segment| self.discard(segment))?;
                let used = state.take_used(size);
                let spare = match self.spare(size, SPARE_NAMES[1], used) {
                    Err(full @ Error::LogFull { .. }) if is_upkeep() => {
                        let least = least.next_multiple_of(4096) as u32;
                        self.spare_from_reserve(state, least).and_then(|spare| spare.ok_or(full))
                    }
                    spare => spare,
                };
                let spare = self.told(state, spare)?;
                let number = state.number();
                spare.into_segment(disk, dir, number)?
            }
        };
        state.is_full = false;
        // Removal goes from the front, and a start reads segments by their numbers. Looked at before anything is changed.
        let is_next = match (state.closed.back(), &state.active) {
            (Some(last), Some(old)) => last.number < old.segment.number,
            _ => true,
        };
        assert!(is_next, "segments are closed in the order of their numbers");
        if let Some(mut old) = state.active.take() {
            old.fill_timestamp(&self.options.last_given);
            state.end_of_last = LogPosition::new(old.segment.number, old.end());
            state.closed.push_back(Closed {
                path: old.segment.path.clone(),
                number: old.segment.number,
                bytes: u64::from(old.segment.size),
                end: old.end(),
                dirty: old.dirty,
                is_watched: !old.defined.is_empty(),
            });
            state.pending.push_back(Chunk::new(old.segment, old.buffer, old.buffer_at, true));
        }
        let mut active = Active::new(segment, std::mem::take(&mut state.spare_buffer));
        // Repeats what older segments record, because they may be removed. The end of the previous segment comes
        // first, where replay looks for it.
        let mut content = Vec::new();
        record::put_continues(state.end_of_last, &mut content);
        active.put_bare(&content);
        content.clear();
        record::put_flushed(state.flushed.iter().map(|(table, position)| (*table, *position)), &mut content);
        active.put_bare(&content);
        active.leave_timestamp();
        state.active = Some(active);
        Ok(())
    }

    /// Creates the next segment in advance, if one is due: from a segment that waits for reuse, else from zeroes.
    /// Returns whether another is due.
    ///
    /// # Errors
    /// `LogFull`. The next append that needs a segment tries again and reports the error.
    pub(super) fn make_spare(&self) -> Result<bool> {
        let _making = self.making.lock();
        let (size, number, used) = {
            let mut state = self.state.lock();
            let Some(size) = state.wants_spare(self.options.segment_bytes) else { return Ok(false) };
            let used = state.take_used(size);
            state.making = Some(state.next_number);
            (size, state.next_number, used)
        };
        let made = self.make_segment(size, number, used);
        let mut state = self.state.lock();
        state.making = None;
        if made.is_err() {
            state.failed_behind = state.active.as_ref().map(|active| active.segment.number);
        }
        let segment = made?;
        if state.next_number == number {
            state.next_number += 1;
            state.ready.push_back(segment);
            return Ok(state.wants_spare(self.options.segment_bytes).is_some());
        }
        // Meanwhile an append needed a segment and took a later number.
        drop(state);
        self.discard(segment)?;
        Ok(true)
    }

    /// A file for a segment of this size, in the room of files that are given up; `None` if that is not enough.
    fn spare_from_reserve(&self, state: &mut State, size: u32) -> Result<Option<SpareFile>> {
        loop {
            // At first in what is free: it may be too little for a full segment only.
            if let Ok(spare) = self.spare(size, SPARE_NAMES[1], None) {
                return Ok(Some(spare));
            }
            if !self.give_up_reserve(state) {
                return Ok(None);
            }
        }
    }

    fn make_segment(&self, size: u32, number: u32, used: Option<UsedSegment>) -> Result<Segment> {
        self.spare(size, SPARE_NAMES[0], used)?.into_segment(&*self.host.disk, &self.options.dir, number)
    }

    /// A file for a segment of this size: one that waits for reuse, else a new file of zeroes.
    fn spare(&self, size: u32, name: &str, used: Option<UsedSegment>) -> Result<SpareFile> {
        match used {
            Some(used) => SpareFile::reuse(&*self.host.disk, used),
            None => SpareFile::create(&*self.host.disk, self.options.dir.join(name), size),
        }
    }

    /// Removes a segment that was never used.
    pub(super) fn discard(&self, segment: Segment) -> Result<()> {
        drop(segment.file);
        self.host.disk.remove(&segment.path).map_err(Error::io("remove", &segment.path))
    }

    /// Notes the first segment that cannot be created in the journal, but not the failures that follow it.
    fn told<T>(&self, state: &mut State, made: Result<T>) -> Result<T> {
        if let Err(error) = &made
            && !std::mem::replace(&mut state.is_full, true)
        {
            self.options.journal.note(&Event::LogFull { error });
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::KeptLimits;
    use super::super::options::{LogOptions, SyncMode};
    use super::super::recovered::RecoveredLog;
    use super::*;
    use crate::journal::JournalSlot;
    use crate::timestamps::Timestamps;
    use helenus_host::sim::Machine;
    use helenus_model::schema::TableId;
    use std::path::Path;
    use std::sync::Arc;
    use uuid::Uuid;

    fn log(machine: &Machine) -> Arc<CommitLog> {
        let host = machine.host();
        let timestamps = Timestamps::new(host.clock.clone(), 0);
        host.disk.create_dir_all(Path::new("/db")).unwrap();
        let options = LogOptions {
            dir: "/db/commitlog".into(),
            kept_dir: "/db/changes".into(),
            kept_limits: KeptLimits::default(),
            mode: SyncMode::Batch,
            segment_bytes: 128 << 10,
            journal: JournalSlot::default(),
            trusted_clock: timestamps.trusted_clock(),
            last_given: timestamps.last_given(),
        };
        CommitLog::open(&host, options, RecoveredLog::default(), Arc::default()).unwrap()
    }

    /// Fills the active segment. Returns the bytes that the next one begins with.
    fn next_segment(log: &Arc<CommitLog>) -> u32 {
        let number = || log.state.lock().active.as_ref().map(|active| active.segment.number);
        let content = record::timestamp(1);
        let before = number();
        while number() == before {
            log.append_content(&content).unwrap();
        }
        log.position().offset() - (HEADER_BYTES + content.len()) as u32
    }

    /// The bytes at the beginning of a segment after these tables were flushed, while an older segment is still needed,
    /// and when it is gone.
    fn beginnings(tables: u128) -> (u32, u32) {
        let machine = Machine::new(1);
        let log = log(&machine);
        next_segment(&log);
        let needs = TableId(Uuid::from_u128(0));
        let needed = log.position();
        if let Some(active) = &mut log.state.lock().active {
            active.dirty.insert(needs, needed);
        }
        let position = log.position();
        let flushed: Vec<_> = (1..=tables).map(|id| (TableId(Uuid::from_u128(id)), position)).collect();
        log.mark_flushed(&flushed).unwrap();
        let while_needed = next_segment(&log).max(next_segment(&log));
        log.mark_flushed(&[(needs, needed)]).unwrap();
        next_segment(&log);
        let after = next_segment(&log);
        log.close().unwrap();
        machine.end_tasks();
        (while_needed, after)
    }

    #[test]
    fn a_segment_repeats_the_flushed_positions_that_older_segments_need_and_no_others() {
        let (few, many) = (beginnings(400), beginnings(1600));
        // 24 bytes each, and the head.
        assert!(few.0 < 400 * 24 + 200 && many.0 < 1600 * 24 + 200, "{few:?} {many:?}");
        assert!(many.0 > 1600 * 24, "{many:?}");
        assert!(few.1 < 200 && many.1 == few.1, "{few:?} {many:?}");
    }
}
