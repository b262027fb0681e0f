//! Flushes memtables to SSTables, of one table or of many together.
//!
//! Each step is done for all tables before the next step, so that their syncs share one commit of the file system's
//! journal. Otherwise the time would grow with the number of tables. Recovery after a crash relies on the order of the
//! steps:
//!
//! 1. The memtables are sealed. The log is synced up to all their records.
//! 2. The folders are synced. Then each table's transaction log records ADD and is synced.
//! 3. The files are written and synced, and so are their names. Tables with indexes announce them (`indexed_files`).
//! 4. COMMIT is synced; then the transaction logs are removed.
//! 5. One log record notes the flushed positions of all tables and is synced; then the views change.
//!
//! A table that fails or panics is undone and leaves the group; the others go on. Without COMMIT, the next start
//! removes the files of the flush. With COMMIT but without the record of step 5, replay repeats writes that are in the
//! SSTable already, which changes nothing.

use super::TableStore;
use super::flush::write_memtable;
use super::store::{Sealed, Unfinished, open_sstable};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::folder::make_folders_below;
use crate::journal::Event;
use crate::log_position::LogPosition;
use crate::memtable::Memtable;
use helenus_model::schema::{Table, TableId};
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::{Operation, TransactionLog};
use helenus_sstable::writer::Unsynced;
use parking_lot::MutexGuard;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most tables in one group. Each has ten files open until they are synced.
const TOGETHER_MAX: usize = 32;

/// One table of a flush group.
struct Flush<'a> {
    store: &'a TableStore,
    changing: MutexGuard<'a, Unfinished>,
    written: Option<Part>,
}

/// A memtable that is being flushed.
struct Part {
    memtable: Arc<Memtable>,
    table: Arc<Table>,
    descriptor: Descriptor,
    /// `None` after its end.
    transaction: Option<TransactionLog>,
    /// Whether its COMMIT may be on the disk.
    may_count: bool,
    /// The change as it was announced, for a table with indexes.
    change: Option<u64>,
    unsynced: Option<Unsynced>,
    /// Whether there is an SSTable. There is none if all data was deleted again.
    is_file: bool,
    /// `Written::hiding_us_max` of the SSTable.
    hiding_us_max: i64,
    sstable: Option<Arc<SsTable>>,
}

/// Flushes all memtables of these tables. Returns the number of SSTables written.
///
/// # Errors
/// `NotFlushed`, after every table was tried. Tables that failed keep their memtables.
pub(crate) fn flush_together(env: &Env, stores: &[Arc<TableStore>]) -> Result<u64> {
    let is_filled = |store: &&Arc<TableStore>| {
        let view = store.view();
        view.memtables.len() > 1 || !view.current().is_empty()
    };
    let (filled, empty): (Vec<_>, Vec<_>) = stores.iter().partition(is_filled);
    let mut outcome = Outcome::default();
    // Tables that another thread is changing come last, when this thread holds no lock: a thread that waits while it
    // holds one could deadlock.
    let mut alone: Vec<&TableStore> = empty.into_iter().map(|store| &**store).collect();
    for some in filled.chunks(TOGETHER_MAX) {
        let mut group = Vec::with_capacity(some.len());
        for store in some {
            match store.changing.try_lock() {
                Some(changing) => group.push(Flush::new(store, changing)),
                None => alone.push(store),
            }
        }
        let is_alone = group.len() < 2;
        let mut together = Group { env, past_page_cache: false, is_alone, crowded: Vec::new(), outcome };
        together.run(group);
        alone.append(&mut together.crowded);
        outcome = together.outcome;
    }
    for store in alone {
        match store.flush(env) {
            Ok(written) => outcome.written += written,
            Err(error) => outcome.failed(store, Some(error)),
        }
    }
    let Outcome { written, mut tables, first } = outcome;
    tables.sort();
    first.map_or(Ok(written), |first| Err(Error::NotFlushed { tables, first: Box::new(first) }))
}

/// Flushes one table; `past_page_cache` for a flush that nobody waits for.
pub(super) fn flush_one(env: &Env, store: &TableStore, past_page_cache: bool) -> Result<u64> {
    let group = vec![Flush::new(store, store.changing.lock())];
    let outcome = Outcome::default();
    let mut alone = Group { env, past_page_cache, is_alone: true, crowded: Vec::new(), outcome };
    alone.run(group);
    let Outcome { written, first, .. } = alone.outcome;
    first.map_or(Ok(written), Err)
}

#[derive(Default)]
struct Outcome {
    written: u64,
    /// Names of failed tables, with their keyspaces.
    tables: Vec<String>,
    /// The first error.
    first: Option<Error>,
}

impl Outcome {
    fn failed(&mut self, store: &TableStore, error: Option<Error>) {
        let table = store.table();
        self.tables.push(format!("{}.{}", table.keyspace, table.name));
        self.first = self.first.take().or(error);
    }
}

impl<'a> Flush<'a> {
    fn new(store: &'a TableStore, changing: MutexGuard<'a, Unfinished>) -> Flush<'a> {
        Flush { store, changing, written: None }
    }

    /// The memtable that is being flushed.
    fn part(&mut self) -> Result<&mut Part> {
        self.written.as_mut().ok_or(Error::Closed)
    }

    /// Selects the oldest sealed memtable. Returns false if there is none.
    fn take_oldest(&mut self, env: &Env) -> bool {
        let oldest = self.store.view.load().memtables[1..].last().cloned();
        self.written = oldest.map(|memtable| Part {
            memtable,
            table: self.store.table(),
            descriptor: Descriptor::new(env.next_sstable_id()),
            transaction: None,
            may_count: false,
            change: None,
            unsynced: None,
            is_file: false,
            hiding_us_max: i64::MIN,
            sstable: None,
        });
        self.written.is_some()
    }

    /// Records that the table is flushed completely. Returns false, so that the table leaves the group.
    fn end(&self) -> bool {
        self.store.troubles.flushed();
        false
    }

    fn is_file(&self) -> bool {
        self.written.as_ref().is_some_and(|part| part.is_file)
    }

    /// Replaces the memtable by its SSTable in the view.
    fn done(&mut self, env: &Env, begun_ns: u64) {
        self.changing.files = false;
        let (store, Some(part)) = (self.store, &self.written) else { return };
        store.view.rcu(|view| view.with_flushed(&part.memtable, part.sstable.clone()));
        store.end_change(part.change);
        if let Some(sstable) = &part.sstable {
            store.compaction.flushed(sstable.data_bytes());
            store.compaction.changed();
            env.compactors.wake();
            store.note_flushed(env, sstable.size_on_disk(), begun_ns);
        }
    }

    /// Gives up and undoes what was written, unless its COMMIT may be on the disk. `changing.files` makes the next
    /// change do the rest.
    fn undo(&mut self) {
        if let Some(Part { transaction: Some(transaction), may_count: false, .. }) = self.written.take() {
            // The error that led here is more useful than one of the clean-up.
            let _ = Error::contain(|| Ok(transaction.abort()?));
        }
    }
}

impl Part {
    fn transaction(
        &mut self,
        step: impl FnOnce(&mut TransactionLog) -> helenus_sstable::Result<()>,
    ) -> Result<()> {
        Ok(self.transaction.as_mut().map_or(Ok(()), step)?)
    }
}

/// Tables that are flushed together.
struct Group<'s> {
    env: &'s Env,
    past_page_cache: bool,
    is_alone: bool,
    /// Tables that failed because too many files were open. They are tried again one at a time.
    crowded: Vec<&'s TableStore>,
    outcome: Outcome,
}

impl<'s> Group<'s> {
    fn run(&mut self, mut group: Vec<Flush<'s>>) {
        let env = self.env;
        group.retain(|flush| !flush.store.is_dropped());
        let mut empty = Vec::new();
        self.each(&mut group, |flush| {
            flush.store.finish(env, &mut flush.changing)?;
            if let Sealed::Nothing(position) = flush.store.seal_current(env) {
                empty.push((flush.store.table().id, position));
            }
            Ok(())
        });
        self.note_empty(&empty);
        // Oldest first, so that the flushed position only grows. Mostly there is one sealed memtable.
        loop {
            group.retain_mut(|flush| flush.take_oldest(env) || flush.end());
            if group.is_empty() {
                return;
            }
            let begun_ns = env.host.clock.monotonic_ns();
            self.make_folders(&mut group);
            let ready = Error::contain(|| self.sync_log());
            self.all(&mut group, ready);
            self.write(&mut group);
            self.count(&mut group, begun_ns);
        }
    }

    /// Tells the log which tables have nothing to flush: otherwise their records, which were truncated or cannot be
    /// applied, would keep it for ever. A failure loses nothing, and the next flush tries again.
    fn note_empty(&self, empty: &[(TableId, LogPosition)]) {
        if let Some(log) = &self.env.log {
            let _ = Error::contain(|| log.mark_empty(empty));
        }
    }

    /// Makes the folders, all at once or, if that fails, one by one: only the tables whose own folder cannot be made leave
    /// the group.
    fn make_folders(&mut self, group: &mut Vec<Flush<'s>>) {
        let env = self.env;
        let make = |folders: &[&Path]| make_folders_below(&*env.host.disk, &env.dir, folders);
        let new = group.iter().filter(|flush| !flush.changing.folder_lasts);
        let folders: Vec<&Path> = new.map(|flush| flush.store.folder()).collect();
        if Error::contain(|| make(&folders)).is_err() {
            self.each(group, |flush| match flush.changing.folder_lasts {
                true => Ok(()),
                false => make(&[flush.store.folder()]),
            });
        }
        group.iter_mut().for_each(|flush| flush.changing.folder_lasts = true);
    }

    /// Syncs the log, because no SSTable may be durable before the log records of its content. Otherwise a crash could
    /// leave a part of a mutation of several tables, or a column that the recovered schema does not know.
    fn sync_log(&self) -> Result<()> {
        match &self.env.log {
            Some(log) => log.sync_up_to(log.position()),
            None => Ok(()),
        }
    }

    /// Steps 2 and 3: writes and syncs the files within their transactions.
    fn write(&mut self, group: &mut Vec<Flush<'s>>) {
        let (env, past_page_cache) = (self.env, self.past_page_cache);
        self.each(group, |flush| {
            // Until the log notes the flush, a failure must remove the files again.
            flush.changing.files = true;
            let part = flush.written.as_mut().ok_or(Error::Closed)?;
            let transaction = part.transaction.insert(flush.store.begin(env, Operation::Flush));
            let files = Component::all_of(part.descriptor.version).count();
            Ok(transaction.add_unsynced(&part.descriptor, files)?)
        });
        self.each(group, |flush| flush.part()?.transaction(TransactionLog::sync_record));
        self.each(group, |flush| flush.part()?.transaction(TransactionLog::sync_name));
        self.each(group, |flush| {
            let folder = flush.store.folder();
            let part = flush.written.as_mut().ok_or(Error::Closed)?;
            let to = (folder, part.descriptor);
            let written = write_memtable(env, to, &part.table, (&part.memtable, past_page_cache))?;
            if let Some((unsynced, hiding_us_max)) = written {
                (part.unsynced, part.hiding_us_max) = (Some(unsynced), hiding_us_max);
            }
            part.is_file = part.unsynced.is_some();
            // All data was deleted again, so there is no file to commit.
            let useless = if part.unsynced.is_none() { part.transaction.take() } else { None };
            Ok(useless.map_or(Ok(()), TransactionLog::abort)?)
        });
        self.each(group, |flush| Ok(flush.part()?.unsynced.take().map_or(Ok(()), Unsynced::sync)?));
    }

    /// Steps 4 and 5: commits the transactions, notes the flush in the log, and changes the views.
    fn count(&mut self, group: &mut Vec<Flush<'s>>, begun_ns: u64) {
        let env = self.env;
        self.each(group, |flush| {
            let store = flush.store;
            let part = flush.part()?;
            if part.is_file {
                // Earlier changes were finished when the group began.
                part.change =
                    store.begin_change((&[(part.descriptor, Some(part.hiding_us_max))], &[]), true)?;
            }
            Ok(())
        });
        self.each(group, |flush| {
            let part = flush.part()?;
            part.may_count = true;
            part.transaction(TransactionLog::commit_unsynced)
        });
        self.each(group, |flush| flush.part()?.transaction(TransactionLog::sync));
        self.each(group, |flush| {
            Ok(flush.part()?.transaction.take().map_or(Ok(()), TransactionLog::forget)?)
        });
        self.each(group, |flush| {
            let folder = flush.store.folder();
            let synced = env.host.disk.sync_dir(folder).map_err(Error::io("sync", folder));
            let part = flush.part()?;
            if part.is_file {
                let sstable = open_sstable(env, &part.table, folder, part.descriptor)?;
                sstable.note_hiding_us_max(part.hiding_us_max);
                part.sstable = Some(sstable);
            }
            synced
        });
        let noted = Error::contain(|| self.note(group));
        if matches!(noted, Err(Error::LogFull { .. })) {
            return self.all(group, noted);
        }
        // After any other error, the log may have recorded that these writes are in files, so the files stay.
        for flush in group.iter_mut() {
            flush.done(env, begun_ns);
            self.outcome.written += u64::from(flush.is_file());
        }
        self.all(group, noted);
    }

    /// Records the flushed positions of these tables in the log.
    fn note(&self, group: &[Flush<'s>]) -> Result<()> {
        let Some(log) = &self.env.log else { return Ok(()) };
        let positions = group.iter().filter_map(|flush| {
            let part = flush.written.as_ref()?;
            Some((part.table.id, part.memtable.sealed_at()?))
        });
        log.mark_flushed(&positions.collect::<Vec<_>>())
    }

    /// Runs a step for each table. A table that fails leaves the group.
    fn each(&mut self, group: &mut Vec<Flush<'s>>, mut step: impl FnMut(&mut Flush<'s>) -> Result<()>) {
        group.retain_mut(|flush| {
            let Err(error) = Error::contain(|| step(flush)) else { return true };
            flush.undo();
            if !self.is_alone && is_crowded(&error) {
                self.crowded.push(flush.store);
            } else {
                self.tell(flush.store, &error);
                self.outcome.failed(flush.store, Some(error));
            }
            false
        });
    }

    /// Takes the result of a step that all tables share. If it failed, all leave the group.
    fn all(&mut self, group: &mut Vec<Flush<'s>>, step: Result<()>) {
        let Err(error) = step else { return };
        for mut flush in group.drain(..) {
            flush.undo();
            self.tell(flush.store, &error);
            self.outcome.failed(flush.store, None);
        }
        self.outcome.first = self.outcome.first.take().or(Some(error));
    }

    fn tell(&self, store: &TableStore, error: &Error) {
        let bytes = store.view().memtables.iter().map(|memtable| memtable.bytes()).sum();
        let memory = (&self.env.memory, bytes);
        store.troubles.flush_failed(error.to_string(), self.env.host.clock.monotonic_ns(), memory);
        self.env.work.flush_failures.fetch_add(1, Ordering::Relaxed);
        self.env.journal.note(&Event::FlushFailed { table: &store.table(), error });
    }
}

/// Whether the error is the limit of open files, of the process or of the system.
fn is_crowded(error: &Error) -> bool {
    let source = match error {
        Error::Io { source, .. } | Error::Table(helenus_sstable::Error::Io { source, .. }) => source,
        _ => return false,
    };
    // ENFILE and EMFILE.
    matches!(helenus_host::raw_os_error(source), Some(23 | 24))
}
