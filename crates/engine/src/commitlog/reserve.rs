//! The reserve: a small file that is given up when the disk is full, so that the statements that free space still work.
//!
//! A DROP or TRUNCATE needs a log record before it may remove a file. Clients' writes end when the disk has no room for
//! another segment; upkeep (schema changes, truncations, flushed positions) then takes the room of a segment that waits
//! for reuse, or of the reserve, for a segment of just its own size.

use super::log::{CommitLog, State};
use super::segment::SpareFile;
use crate::error::{DiskTrouble, Result};

/// The file's name.
const NAME: &str = "reserve.log";
/// Its size: enough for the definition of the largest tables, and for the flushed positions of thousands of them.
const RESERVE_BYTES: u32 = 1 << 20;
/// The most files that are given up for one piece of work: other threads may take the room of each.
const GIVEN_UP_MAX: usize = 8;

impl CommitLog {
    /// Whether the last run left the reserve.
    pub(super) fn finds_reserve(disk: &dyn helenus_host::Disk, dir: &std::path::Path) -> bool {
        let path = dir.join(NAME);
        let size = disk.open_own(&path).and_then(|file| file.size());
        size.is_ok_and(|size| size >= u64::from(RESERVE_BYTES))
    }

    /// Makes the reserve if there is none.
    pub(super) fn make_reserve(&self) -> Result<()> {
        if self.state.lock().has_reserve {
            return Ok(());
        }
        SpareFile::create(&*self.host.disk, self.options.dir.join(NAME), RESERVE_BYTES)?;
        self.state.lock().has_reserve = true;
        Ok(())
    }

    /// Does something that needs little space and frees much, and again with the room of each file that can be given up, while the
    /// disk is full.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn with_reserve<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..GIVEN_UP_MAX {
            match work() {
                Err(error)
                    if error.disk_trouble() == Some(DiskTrouble::Full)
                        && !self.give_up_reserve(&mut self.state.lock()) =>
                {
                    return Err(error);
                }
                Err(error) if error.disk_trouble() == Some(DiskTrouble::Full) => {}
                done => return done,
            }
        }
        work()
    }

    /// Frees space for a record of upkeep: gives up a segment that waits for reuse, else the reserve. Returns whether
    /// there was one that the disk lets go; those that stay are kept for another attempt.
    pub(super) fn give_up_reserve(&self, state: &mut State) -> bool {
        let disk = &*self.host.disk;
        let mut stay = Vec::new();
        let mut is_freed = false;
        while !is_freed && let Some(used) = state.used.pop() {
            let removed = disk.remove(used.path());
            is_freed = removed.is_ok();
            if stays(&removed) {
                stay.push(used);
            }
        }
        state.used.extend(stay);
        if !is_freed && state.has_reserve {
            let removed = disk.remove(&self.options.dir.join(NAME));
            is_freed = removed.is_ok();
            state.has_reserve = stays(&removed);
        }
        is_freed
    }
}

/// Whether a file is still there after an attempt to remove it.
fn stays(removed: &std::io::Result<()>) -> bool {
    matches!(removed, Err(error) if error.kind() != std::io::ErrorKind::NotFound)
}
