//! The clocks of a database: how they are, and the way back after they were wrong.

use super::shared::{Database, Shared};
use crate::error::Result;
use crate::schema::{is_replicated_system_keyspace, is_system_keyspace};
use crate::timestamps::ClockStatus;

impl Database {
    /// How the clocks are.
    pub fn clock(&self) -> ClockStatus {
        self.shared.timestamps.status()
    }

    /// A wall clock that jumps ahead by more than an hour and by more than this, microseconds, gives no timestamps until it is set
    /// right or `reset_clock` believes it. `None`: any that files can hold.
    pub fn set_clock_ahead_max(&self, ahead_us_max: Option<u64>) {
        self.shared.timestamps.set_ahead_max(ahead_us_max);
    }

    /// Takes the wall clock as it is for right: timestamps of writes go on from it, also where that is back, and a jump forward
    /// is believed. The log says so before this returns. How the clocks were.
    ///
    /// What was written with later timestamps stays newer than what is written from now on, until the wall clock has passed
    /// them: neither a write nor a deletion without a timestamp of its own changes it. Changes of the schema and conditional
    /// writes count all the same, for they are made later than what they change.
    ///
    /// # Errors
    /// `ClockBeyond` when it says more than files can hold; failures of the log.
    pub fn reset_clock(&self) -> Result<ClockStatus> {
        let shared = &self.shared;
        let before = shared.timestamps.reset()?;
        if let Some(log) = &shared.log {
            log.note_timestamp()?;
        }
        // What orders the writes of a partition by their timestamps begins anew.
        {
            let _gate = shared.gate.close();
            shared.turns.reset();
        }
        shared.tables.load().values().for_each(|store| store.stamp_anew(shared));
        Ok(before)
    }
}

impl Shared {
    /// The next timestamp of a row of the system's own tables.
    pub(crate) fn next_system_timestamp(&self) -> i64 {
        self.after_system_writes(self.timestamps.next_unrefused())
    }

    /// The timestamp of a row of the system's own tables: this one, or a later one where they have as late ones. Timestamps may
    /// have been set back (`reset_clock`), and the schema must not be hidden by what it was.
    pub(crate) fn after_system_writes(&self, timestamp_us: i64) -> i64 {
        let tables = self.tables.load();
        let of_system = tables.values().filter(|store| is_own(&store.table().keyspace));
        let newest_us = of_system.flat_map(|store| {
            let view = store.view();
            let of_memtables = view.memtables.iter().map(|memtable| memtable.stats().timestamp_us_max);
            let of_files = view.sstables.iter().map(|sstable| sstable.stats().timestamp_us_max);
            // The greatest number stands for none.
            of_memtables.chain(of_files).filter(|newest_us| *newest_us != i64::MAX).max()
        });
        newest_us.max().map_or(timestamp_us, |newest_us| timestamp_us.max(newest_us.saturating_add(1)))
    }
}

/// Whether nobody but the server writes to a keyspace; the rows of traces bring their own times.
fn is_own(keyspace: &str) -> bool {
    is_system_keyspace(keyspace) && !is_replicated_system_keyspace(keyspace)
}
