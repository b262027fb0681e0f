//! The clocks of a database: their status, and the way back after they were wrong.

use super::shared::Shared;
use crate::error::Result;
use crate::schema::{is_replicated_system_keyspace, is_system_keyspace};
use crate::timestamps::ClockStatus;

/// The clocks of a database (`Database::clock`).
pub struct DatabaseClock<'d> {
    shared: &'d Shared,
}

impl<'d> DatabaseClock<'d> {
    pub(super) fn new(shared: &'d Shared) -> DatabaseClock<'d> {
        DatabaseClock { shared }
    }

    /// The status of the clocks.
    pub fn status(&self) -> ClockStatus {
        self.shared.timestamps.status()
    }

    /// Sets the greatest jump ahead of the wall clock, microseconds. After a jump by more than this and more than an
    /// hour, no timestamps are given until the clock is set right or `reset` accepts it. `None`: any time that
    /// files can hold.
    pub fn set_ahead_max(&self, ahead_us_max: Option<u64>) {
        self.shared.timestamps.set_ahead_max(ahead_us_max);
    }

    /// Accepts the wall clock as right: timestamps of writes continue from it, even if that is back in time or after a
    /// jump forward. The log records it before this returns. Returns the previous status.
    ///
    /// Rows with later timestamps stay newer than writes from now on, until the wall clock has passed them: neither a
    /// write nor a deletion without its own timestamp changes them. Schema changes and conditional writes still take
    /// effect, because they get timestamps later than what they change.
    ///
    /// # Errors
    /// `ClockBeyond` if the clock is beyond what files can hold; failures of the log.
    pub fn reset(&self) -> Result<ClockStatus> {
        let shared = self.shared;
        let before = shared.timestamps.reset()?;
        if let Some(log) = &shared.log {
            log.note_timestamp()?;
        }
        // The order of timestamps within a partition begins anew.
        {
            let _gate = shared.gate.close();
            shared.partition_locks.reset();
        }
        shared.tables.load().values().for_each(|store| store.replace_memtable(shared));
        Ok(before)
    }
}

impl Shared {
    /// The next timestamp for a row of the system's own tables.
    pub(crate) fn next_system_timestamp(&self) -> i64 {
        self.after_system_writes(self.timestamps.next_always())
    }

    /// The timestamp for a row of the system's own tables: this one, or one later than their newest. Timestamps may
    /// have been set back (`reset`), and older rows must not hide the new schema.
    pub(crate) fn after_system_writes(&self, timestamp_us: i64) -> i64 {
        let tables = self.tables.load();
        let of_system = tables.values().filter(|store| is_own(&store.table().keyspace));
        let newest_us = of_system.flat_map(|store| {
            let view = store.view();
            let of_memtables = view.memtables.iter().map(|memtable| memtable.stats().timestamp_us_max);
            let of_files = view.sstables.iter().map(|sstable| sstable.stats().timestamp_us_max);
            // `i64::MAX` means that there is none.
            of_memtables.chain(of_files).filter(|newest_us| *newest_us != i64::MAX).max()
        });
        newest_us.max().map_or(timestamp_us, |newest_us| timestamp_us.max(newest_us.saturating_add(1)))
    }
}

/// Whether only the server writes to a keyspace. Rows of traces have their own times.
fn is_own(keyspace: &str) -> bool {
    is_system_keyspace(keyspace) && !is_replicated_system_keyspace(keyspace)
}
