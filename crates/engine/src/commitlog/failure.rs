//! The position up to which the log is safe, and what happens when a write or a sync fails.
//!
//! A failure is final: nothing is appended, written or synced any more (`refusal`). Then the refused records are cut
//! off, and only after that are waiting callers told (`failure`).

use super::log::CommitLog;
use super::record::HEADER_BYTES;
use super::segment::{SEGMENT_HEAD, segment_path};
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::log_position::LogPosition;
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

impl CommitLog {
    /// Waits until everything up to `position` may be acknowledged.
    pub(crate) fn secure(&self, position: LogPosition) -> Result<()> {
        match self.options.mode.waits_for_sync() {
            true => self.sync_up_to(position),
            false if self.is_safe(position) => Ok(()),
            false => self.write_out(),
        }
    }

    /// Whether everything up to `position` may be acknowledged.
    #[inline]
    pub(crate) fn is_safe(&self, position: LogPosition) -> bool {
        let reached = if self.options.mode.waits_for_sync() { &self.synced } else { &self.written };
        reached.load(Ordering::Acquire) >= position.0
    }

    /// The first failure, if the log has failed.
    pub(super) fn check_failure(&self) -> Result<()> {
        match self.refusal.get() {
            None => Ok(()),
            Some(reason) => Err(Error::LogFailed { reason: reason.clone() }),
        }
    }

    /// The first failure, once the refused records are cut off as far as possible.
    pub(super) fn settled_failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Refuses everything that is not safe yet and everything to come. The caller releases `writing`, then calls
    /// `settle`.
    pub(super) fn fail(&self, reason: String) -> Error {
        let reason = self.refusal.get_or_init(|| reason).clone();
        Error::LogFailed { reason }
    }

    /// Fails the log if its folder is not in its place: what is written would be in no directory that a start finds.
    pub(super) fn check_place(&self) -> Result<()> {
        let there = self.host.disk.check_place(&self.options.dir);
        there.map_err(|error| self.fail(error.to_string()))
    }

    /// The same for a log that may be synced much later.
    pub(crate) fn look_at_place(&self) {
        if self.refusal.get().is_none() && self.check_place().is_err() {
            self.settle(&self.syncing.lock());
        }
    }

    /// A panic of the sync worker fails the log as an I/O error does, because nothing would sync later records.
    pub(super) fn fail_after(&self, error: &Error) {
        if matches!(error, Error::Panicked { .. }) {
            let _told = self.fail(error.to_string());
            self.settle(&self.syncing.lock());
        }
    }

    /// Cuts the refused records off and tells all waiting callers. Every caller of `fail` calls this before it
    /// returns.
    ///
    /// A refused record may have reached the operating system: its write was partial, or its sync failed. A later
    /// start would find the record and show a refused write. So the log is cut at its safe end before anybody is told.
    /// Nothing is written or synced any more, and the holder of `syncing` knows that end. If the disk does not take
    /// the cut either, a later start may find the records; then they are complete and permanent, as after a lost
    /// answer.
    pub(super) fn settle(&self, _syncing: &MutexGuard<'_, ()>) {
        let Some(reason) = self.refusal.get().filter(|_| self.failure.get().is_none()) else { return };
        {
            // Nobody may write after the cut.
            let _writing = self.writing.lock();
            let reached = if self.options.mode.waits_for_sync() { &self.synced } else { &self.written };
            self.cut(LogPosition(reached.load(Ordering::Acquire)));
        }
        if self.failure.set(reason.clone()).is_ok() {
            self.options.journal.note(&Event::LogFailed { reason });
        }
        self.announcer.notify();
    }

    /// Cuts the log at a position, as far as the disk allows. The last segment first: replay reads up to the first
    /// position without a record.
    fn cut(&self, end: LogPosition) {
        let disk = &*self.host.disk;
        // The files there may be those of another log.
        if disk.check_place(&self.options.dir).is_err() {
            return;
        }
        let numbers = end.segment()..self.state.lock().next_number;
        for number in numbers.rev() {
            let path = segment_path(&self.options.dir, number);
            let offset = if number == end.segment() { end.offset().max(SEGMENT_HEAD) } else { SEGMENT_HEAD };
            if !disk.exists(&path) {
                continue;
            }
            let Ok(file) = disk.open_write(&path) else { continue };
            // If the size cannot be set, a record header of zeroes ends the records as well.
            let shortened = file.set_size(u64::from(offset));
            let ended = shortened.or_else(|_| file.write_all_at(&[0; HEADER_BYTES], u64::from(offset)));
            // The process may live on for long before a power cut.
            let _ = ended.and_then(|()| file.sync());
        }
    }
}
