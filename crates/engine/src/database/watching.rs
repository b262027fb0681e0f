//! The feed of changes as the database gives it: reads the changes of watched tables, keeps the positions of named
//! consumers, and tells the log of which tables changes are wanted.

use super::shared::{Database, Shared};
use crate::changes::{Change, ChangePosition, ChangeReader, Consumer, Consumers, check_name};
use crate::changes_error::ChangesError;
use crate::commitlog::{CommitLog, DefinitionKind, KeptLimits};
use crate::error::{Error, Result};
use crate::schema::SchemaDelta;
use helenus_model::schema::{Schema, Table, TableId};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Readers that are kept for the next call. A reader that goes on where it stands reads nothing twice.
const IDLE_READERS_MAX: usize = 256;

/// The state of the feed.
pub(crate) struct Watching {
    consumers: Mutex<Consumers>,
    idle: Mutex<Vec<ChangeReader>>,
}

impl Watching {
    pub(super) fn new(consumers: Consumers) -> Watching {
        Watching { consumers: Mutex::new(consumers), idle: Mutex::default() }
    }
}

/// The feed of changes (`Database::changes`).
pub struct ChangeFeed<'d> {
    database: &'d Database,
}

impl<'d> ChangeFeed<'d> {
    pub(super) fn new(database: &'d Database) -> ChangeFeed<'d> {
        ChangeFeed { database }
    }

    /// How much of the log is kept for consumers.
    pub fn kept_limits(&self) -> KeptLimits {
        self.database.shared.log.as_ref().map_or_else(KeptLimits::default, |log| log.kept_limits())
    }

    /// The position behind all changes so far. A read that begins afterwards sees all of them: so rows that are read and the changes
    /// behind this position are together everything. Waits for writes that are under way; the caller must not be one.
    ///
    /// # Errors
    /// `NoLog`.
    pub fn now(&self) -> Result<ChangePosition> {
        let record = self.feed_log()?.sync_for_readers();
        // A write has its record before it is in the memtable.
        self.database.shared.gate.wait_for_current();
        Ok(ChangePosition { record, changes: 0 })
    }

    /// The position before the oldest change that is kept.
    ///
    /// # Errors
    /// `NoLog`.
    pub fn begin(&self) -> Result<ChangePosition> {
        Ok(ChangePosition { record: self.feed_log()?.changes_begin(), changes: 0 })
    }

    /// Reads the changes of a table after a position, in order, until there are no more or `receive` breaks, which ends the
    /// read behind that change. Only changes are shown that a power cut cannot take back. Returns the position reached; it
    /// grows with the log even if the table has no changes.
    ///
    /// # Errors
    /// `ChangesError`; a damaged log; failures of reading; those of `receive`.
    pub fn read(
        &self,
        table: (&str, &str),
        from: ChangePosition,
        receive: &mut dyn FnMut(&Change<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ChangePosition> {
        let log = self.feed_log()?;
        let safe = log.sync_for_readers();
        if from.record > safe {
            return Err(ChangesError::NotInLog { text: from.text(self.database.host_id()) }.into());
        }
        let watching = &self.database.shared.watching;
        let idle = {
            let mut idle = watching.idle.lock();
            let found = idle.iter().position(|reader| reader.is_at(table, from));
            found.map(|at| idle.swap_remove(at))
        };
        let mut reader = idle.unwrap_or_else(|| ChangeReader::new(table, from));
        reader.read(log, safe, receive)?;
        let position = reader.position();
        let mut idle = watching.idle.lock();
        if idle.len() >= IDLE_READERS_MAX {
            idle.remove(0);
        }
        idle.push(reader);
        Ok(position)
    }

    /// The consumers, by keyspace, table and name.
    pub fn consumers(&self) -> Vec<Consumer> {
        self.database.shared.watching.consumers.lock().all().cloned().collect()
    }

    /// One consumer.
    pub fn consumer(&self, table: (&str, &str), name: &str) -> Option<Consumer> {
        self.database.shared.watching.consumers.lock().get(table, name).cloned()
    }

    /// Adds a consumer, or sets its position: it needs no change before it any more. The log is kept for it from there on,
    /// within its limits. `cursor` is where it goes on, for the caller: text without tabs and line ends.
    ///
    /// # Errors
    /// `BadName`; failures of the disk.
    pub fn acknowledge(
        &self,
        (keyspace, table): (&str, &str),
        name: &str,
        (position, cursor): (ChangePosition, String),
    ) -> Result<()> {
        check_name(name)?;
        let (log, disk) = (self.feed_log()?, &*self.database.shared.host.disk);
        let mut consumers = self.database.shared.watching.consumers.lock();
        let consumer = Consumer {
            name: name.to_owned(),
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            position,
            cursor,
            acknowledged_s: self.database.now_s(),
        };
        log.with_reserve(|| consumers.put(disk, consumer.clone()))?;
        log.keep_from(consumers.wanted());
        Ok(())
    }

    /// Removes a consumer: nothing is kept for it any more.
    ///
    /// # Errors
    /// `UnknownConsumer`; failures of the disk.
    pub fn drop_consumer(&self, table: (&str, &str), name: &str) -> Result<()> {
        let log = self.feed_log()?;
        let mut consumers = self.database.shared.watching.consumers.lock();
        let disk = &*self.database.shared.host.disk;
        if !log.with_reserve(|| consumers.remove(disk, table, name))? {
            let (keyspace, table) = (table.0.to_owned(), table.1.to_owned());
            return Err(ChangesError::UnknownConsumer { name: name.to_owned(), keyspace, table }.into());
        }
        log.keep_from(consumers.wanted());
        Ok(())
    }

    /// Bytes of log that are kept for consumers alone.
    pub fn kept_log_bytes(&self) -> u64 {
        self.database.shared.log.as_ref().map_or(0, |log| log.kept_bytes())
    }

    fn feed_log(&self) -> Result<&'d Arc<CommitLog>> {
        self.database.shared.log.as_ref().ok_or(Error::Changes(ChangesError::NoLog))
    }
}

impl Shared {
    /// Watches the tables of a schema with `cdc = true`, and keeps the log for their consumers.
    pub(super) fn watch_tables(&self, schema: &Schema) {
        let Some(log) = &self.log else { return };
        log.watch(
            schema
                .keyspaces
                .values()
                .flat_map(|keyspace| keyspace.tables.values())
                .filter(|table| is_watched(table)),
        );
        log.keep_from(self.watching.consumers.lock().wanted());
    }
}

fn is_watched(table: &Arc<Table>) -> bool {
    table.options.cdc
}

/// The changes of watched tables, dropped tables first.
pub(super) fn watched_changes(delta: &SchemaDelta) -> Vec<(DefinitionKind, Arc<Table>)> {
    let come: HashSet<TableId> = delta.come.iter().map(|table| table.id).collect();
    let dropped = delta.gone.iter().filter(|table| is_watched(table) && !come.contains(&table.id));
    let mut changes: Vec<_> = dropped.map(|table| (DefinitionKind::Dropped, table.clone())).collect();
    let gone = delta.gone_by_id();
    for table in &delta.come {
        let kind = match gone.get(&table.id) {
            None if is_watched(table) => DefinitionKind::Created,
            None => continue,
            Some(before) => match (is_watched(before), is_watched(table)) {
                (false, false) => continue,
                (false, true) => DefinitionKind::Watched,
                (true, false) => DefinitionKind::Unwatched,
                (true, true) if ***before == **table => continue,
                (true, true) => DefinitionKind::Altered,
            },
        };
        changes.push((kind, table.clone()));
    }
    changes
}

#[cfg(test)]
mod tests {
    use crate::{Database, DatabaseOptions, SyncMode};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn the_present_position_waits_for_writes_whose_record_is_before_it() {
        let options = DatabaseOptions {
            sync: Some(SyncMode::Periodic { period_ms: 10 }),
            ..DatabaseOptions::new("/p")
        };
        let (database, _) = Database::open(helenus_host::memory::host(), options).unwrap();
        let (is_inside, asks, has_left) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // A write that is between its record and the memtable.
            scope.spawn(|| {
                let _gate = database.shared.gate.enter();
                is_inside.store(true, Ordering::SeqCst);
                while !asks.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                (0..10_000).for_each(|_| std::thread::yield_now());
                has_left.store(true, Ordering::SeqCst);
            });
            while !is_inside.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            asks.store(true, Ordering::SeqCst);
            database.changes().now().unwrap();
            assert!(has_left.load(Ordering::SeqCst), "a read would miss the write");
        });
        database.close().unwrap();
    }
}
