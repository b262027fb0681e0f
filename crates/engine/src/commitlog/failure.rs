//! How far the log is safe, and what becomes of it when a write or a sync fails.
//!
//! A failure is final: nothing is appended, written or synced any more (`refusal`). Then what was refused is taken back, and
//! only then is anybody told (`failure`).

use super::append::CommitLog;
use super::record::{HEAD, LogPosition};
use super::segment::{SEGMENT_HEAD, segment_path};
use crate::error::{Error, Result};
use crate::journal::Event;
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

    /// The first failure, once all that could be done about it is done.
    pub(super) fn settled_failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Refuses all that is not safe yet, and whatever comes. The caller lets go of `writing`, then calls `settle`.
    pub(super) fn fail(&self, reason: String) -> Error {
        let reason = self.refusal.get_or_init(|| reason).clone();
        Error::LogFailed { reason }
    }

    /// A panic of the sync worker fails the log, as an error of its own does: nobody would sync what comes after.
    pub(super) fn fail_after(&self, error: &Error) {
        if matches!(error, Error::Panicked { .. }) {
            let _told = self.fail(error.to_string());
            self.settle(&self.syncing.lock());
        }
    }

    /// Takes back what was refused, and tells everybody that waits. Whoever calls `fail` calls this before it returns.
    ///
    /// A record that was refused may have got to the operating system all the same: its write was cut short, or its sync
    /// failed. A later start would find it, and show what was refused. So the log is cut where it is safe, before anybody is
    /// told: nothing is written or synced any more, and who holds `syncing` knows how far that came. Where the disk does not
    /// take the cut either, a start may find the records; then they are there for good, in whole, as after an answer that was
    /// lost.
    pub(super) fn settle(&self, _syncing: &MutexGuard<'_, ()>) {
        let Some(reason) = self.refusal.get().filter(|_| self.failure.get().is_none()) else { return };
        {
            // Nobody writes behind the cut.
            let _writing = self.writing.lock();
            let reached = if self.options.mode.waits_for_sync() { &self.synced } else { &self.written };
            self.cut(LogPosition(reached.load(Ordering::Acquire)));
        }
        if self.failure.set(reason.clone()).is_ok() {
            self.options.journal.note(&Event::LogFailed { reason });
        }
        self.announcer.announce();
    }

    /// Ends the log at a place, as far as the disk lets it. The last segment first: replay takes what it finds up to the first
    /// place without a record.
    fn cut(&self, end: LogPosition) {
        let disk = &*self.host.disk;
        let numbers = end.segment()..self.state.lock().next_number;
        for number in numbers.rev() {
            let path = segment_path(&self.options.dir, number);
            let offset = if number == end.segment() { end.offset().max(SEGMENT_HEAD) } else { SEGMENT_HEAD };
            if !disk.exists(&path) {
                continue;
            }
            let Ok(file) = disk.open_write(&path) else { continue };
            // Where the size cannot be set, a head of zeroes ends the records as well.
            let shortened = file.set_size(u64::from(offset));
            let ended = shortened.or_else(|_| file.write_all_at(&[0; HEAD], u64::from(offset)));
            // The process may go on to live for long, and the machine be cut then.
            let _ = ended.and_then(|()| file.sync());
        }
    }
}
