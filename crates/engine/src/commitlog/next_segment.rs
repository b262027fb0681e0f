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
