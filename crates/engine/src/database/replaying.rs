//! Replay: applies the records of the last run's log to the memtables.

use super::open::OpenReport;
use super::shared::Shared;
use crate::check_mutation::TimeRange;
use crate::commitlog::{Layouts, LoggedUpdates, Place, Record, SoundSegment, keep};
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use crate::memtable::Memtable;
use crate::open_progress::OpenProgress;
use helenus_model::mutation::PartitionUpdate;
use helenus_model::schema::{Table, TableId};
use helenus_model::token::Token;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Applies those records of the log that are not in SSTables yet, for some of the tables.
pub(super) struct Replayer<'a> {
    shared: &'a Shared,
    flushed: &'a BTreeMap<TableId, LogPosition>,
    is_for: &'a dyn Fn(&TableId) -> bool,
    /// Whether this is the last pass over the log: only its records count as progress.
    is_last: bool,
    layouts: Layouts,
    /// The updates of the current record that are checked so far.
    sound: Vec<Sound>,
    /// Updates of earlier records that are still to be applied.
    waiting: VecDeque<Sound>,
}

/// An update that passed its check.
struct Sound {
    memtable: Arc<Memtable>,
    token: Token,
    update: PartitionUpdate,
    extent: TimeRange,
}

/// A record's position and its bytes.
type Found<'a> = (Place, &'a [u8]);

/// Number of updates between the prefetch of a partition's memory and its use: partitions lie at random addresses, and
/// a cache miss takes as long as reading some updates.
const AHEAD: usize = 8;

impl<'a> Replayer<'a> {
    /// A replayer for the tables that `is_for` accepts, beyond the positions in `flushed`.
    pub(super) fn new(
        shared: &'a Shared,
        flushed: &'a BTreeMap<TableId, LogPosition>,
        is_for: &'a dyn Fn(&TableId) -> bool,
        is_last: bool,
    ) -> Replayer<'a> {
        let (layouts, sound, waiting) = (Layouts::default(), Vec::new(), VecDeque::new());
        Replayer { shared, flushed, is_for, is_last, layouts, sound, waiting }
    }

    /// Applies the records of its tables in these segments. A segment without any is not read.
    ///
    /// # Errors
    /// `Unappliable` for a record that its table cannot store, unless told to skip it; files that cannot be read.
    pub(super) fn run(mut self, segments: &[SoundSegment], report: &mut OpenReport) -> Result<()> {
        let progress = &self.shared.options.progress;
        let mut memory = Vec::new();
        for segment in segments {
            let mut tables = segment.tables.iter();
            if tables.any(|(table, last)| (self.is_for)(table) && !self.is_flushed(table, *last)) {
                segment.read(&*self.shared.host.disk, &mut memory, |found, record| {
                    if self.is_last {
                        OpenProgress::add(&progress.records_done, 1);
                    }
                    self.apply(found, record, report)
                })?;
            } else if self.is_last {
                OpenProgress::add(&progress.records_done, segment.records);
            }
        }
        self.apply_waiting(0, report);
        Ok(())
    }

    fn is_flushed(&self, table: &TableId, position: LogPosition) -> bool {
        self.flushed.get(table).is_some_and(|flushed| position <= *flushed)
    }

    fn apply(&mut self, found: Found<'_>, record: Record<'_>, report: &mut OpenReport) -> Result<()> {
        match record {
            Record::Mutation(updates) => self.apply_updates(found, updates, report)?,
            Record::Layout(table, columns) => self.layouts.note(table, &columns),
            Record::Truncate(table) if (self.is_for)(&table) && !self.is_flushed(&table, found.0.end) => {
                self.apply_waiting(0, report);
                if let Some(store) = self.shared.table(table) {
                    store.truncate_replayed(self.shared)?;
                }
            }
            Record::Truncate(_)
            | Record::Synced(_)
            | Record::Flushed(_)
            | Record::Timestamp(_)
            | Record::Continues(_)
            | Record::Definition(..)
            | Record::Imported(..)
            | Record::Before(_) => {}
        }
        Ok(())
    }

    /// Applies all updates of a record or none: all are checked first, by the same rule as before they were logged.
    fn apply_updates(
        &mut self,
        found: Found<'_>,
        updates: LoggedUpdates<'_>,
        report: &mut OpenReport,
    ) -> Result<()> {
        self.sound.clear();
        for update in updates {
            if !(self.is_for)(&update.table) || self.is_flushed(&update.table, found.0.end) {
                continue;
            }
            // A table that does not exist was dropped later in the log.
            let Some(store) = self.shared.table(update.table) else { continue };
            let table = store.table();
            let (changes, extent) = match self.layouts.renumber(&update, &table) {
                Ok(checked) => checked,
                Err(problem) => return self.unappliable(found, (&table, problem), report),
            };
            let (memtable, token) = (store.view().current().clone(), Token::of_key(update.key));
            memtable.prefetch(token);
            let update = PartitionUpdate { table, key: update.key.to_vec(), changes };
            self.sound.push(Sound { memtable, token, update, extent });
        }
        self.waiting.extend(self.sound.drain(..));
        self.apply_waiting(AHEAD, report);
        Ok(())
    }

    /// Applies the waiting updates in order, except the last `kept`.
    fn apply_waiting(&mut self, kept: usize, report: &mut OpenReport) {
        while self.waiting.len() > kept
            && let Some(Sound { memtable, token, update, extent }) = self.waiting.pop_front()
        {
            memtable.apply(&update, token, &extent);
            report.replayed += 1;
        }
    }

    /// Handles a record from a writer with another rule, or with a bug: keeps it in a file, and then fails, or skips
    /// the record when told to.
    #[cold]
    fn unappliable(
        &self,
        found: Found<'_>,
        (table, problem): (&Table, &'static str),
        report: &mut OpenReport,
    ) -> Result<()> {
        let options = &self.shared.options;
        let name = format!("{}.{}", table.keyspace, table.name);
        let dir = options.dir.join("commitlog");
        let kept = keep(&*self.shared.host.disk, &dir, found, (name, problem))?;
        if !options.skip_damaged_log {
            return Err(Error::Unappliable(Box::new(kept)));
        }
        report.unappliable.push(kept);
        Ok(())
    }
}
