//! Writes the records of the buffer to the operating system, and syncs the files.

use super::active::{Active, BufferEnd, Chunk};
use super::log::{CommitLog, State};
use super::segment::SEGMENT_HEAD;
use crate::error::Result;
use crate::log_position::LogPosition;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl CommitLog {
    /// Writes all records appended so far to the operating system. After that they survive the death of the process.
    pub fn write_out(&self) -> Result<()> {
        let target = self.position();
        let written = {
            let writing = self.writing.lock();
            self.write_out_alone(&writing, target)
        };
        written.inspect_err(|_| self.settle(&self.syncing.lock()))
    }

    /// Writes out everything up to `target`, and at most the rest of its chunk: later records are written by their own
    /// callers, in one piece and not in many small ones.
    fn write_out_alone(&self, _writing: &MutexGuard<'_, ()>, target: LogPosition) -> Result<()> {
        self.check_failure()?;
        while self.written.load(Ordering::Acquire) < target.0 {
            let Some(chunk) = self.next_chunk() else { break };
            if let Err(error) = chunk.segment.file.write_all_at(&chunk.bytes, u64::from(chunk.at)) {
                return Err(self.fail(format!("write {}: {error}", chunk.segment.path.display())));
            }
            let end = LogPosition::new(chunk.segment.number, chunk.end);
            if chunk.last {
                self.state.lock().unsynced.push(chunk.segment);
            } else {
                self.give_back(chunk.bytes);
            }
            self.written.fetch_max(end.0, Ordering::Release);
        }
        if !self.options.mode.waits_for_sync() {
            self.announcer.notify();
        }
        Ok(())
    }

    /// The next chunk to write. The caller holds `writing`.
    fn next_chunk(&self) -> Option<Chunk> {
        let mut state = self.state.lock();
        if let Some(chunk) = state.pending.pop_front() {
            return Some(chunk);
        }
        let State { active, spare_buffer, .. } = &mut *state;
        let active = active.as_mut().filter(|active| !active.buffer.is_empty())?;
        let ending = self.buffer_end(active);
        Some(active.take_buffer(ending, std::mem::take(spare_buffer)))
    }

    /// Writes out and syncs everything up to `position`.
    pub fn sync_up_to(&self, position: LogPosition) -> Result<()> {
        while self.synced.load(Ordering::Acquire) < position.0 {
            self.sync_now()?;
        }
        Ok(())
    }

    /// Writes out and syncs everything appended so far.
    pub(super) fn sync_now(&self) -> Result<()> {
        let syncing = self.syncing.lock();
        self.sync_alone().inspect_err(|_| self.settle(&syncing))
    }

    fn sync_alone(&self) -> Result<()> {
        let (files, target) = {
            let writing = self.writing.lock();
            self.write_out_alone(&writing, self.position())?;
            // Everything up to `written` is in one of these files: no bytes are being written while `writing` is held,
            // and a segment that was closed meanwhile is in `pending`.
            let mut state = self.state.lock();
            let mut files = std::mem::take(&mut state.unsynced);
            files.extend(state.pending.iter().map(|chunk| chunk.segment.clone()));
            files.extend(state.active.iter().map(|active| active.segment.clone()));
            // Large records are separate chunks, often several in a row of the same segment.
            files.dedup_by(|one, before| Arc::ptr_eq(one, before));
            (files, self.written.load(Ordering::Acquire))
        };
        if self.synced.load(Ordering::Acquire) >= target {
            return Ok(());
        }
        let begun_ns = self.host.clock.monotonic_ns();
        for segment in files {
            if let Err(error) = segment.file.sync() {
                return Err(self.fail(format!("sync {}: {error}", segment.path.display())));
            }
        }
        self.check_place()?;
        // Every sync is measured, because it takes far longer than reading the clock.
        let _sampled = self.syncs.count();
        let now_ns = self.host.clock.monotonic_ns();
        self.syncs.record(now_ns.saturating_sub(begun_ns), now_ns);
        self.synced.fetch_max(target, Ordering::Release);
        self.announcer.notify();
        Ok(())
    }

    /// Whether appended records are not yet synced.
    pub(super) fn has_unsynced(&self) -> bool {
        self.position().0 > self.synced.load(Ordering::Acquire)
            && self.state.lock().active.as_ref().is_some_and(|active| active.end() > SEGMENT_HEAD)
    }

    /// Keeps a buffer's memory for the next buffer.
    fn give_back(&self, mut bytes: Vec<u8>) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        if bytes.capacity() > KEPT_BYTES_MAX {
            return;
        }
        bytes.clear();
        let mut state = self.state.lock();
        if state.spare_buffer.capacity() < bytes.capacity() {
            state.spare_buffer = bytes;
        }
    }

    /// What the end of the active segment's buffer records.
    pub(super) fn buffer_end(&self, active: &Active) -> BufferEnd<'_> {
        let synced = LogPosition(self.synced.load(Ordering::Acquire));
        let synced = if synced.segment() == active.segment.number { synced.offset() } else { 0 };
        BufferEnd { synced, last_given: &self.options.last_given }
    }
}
