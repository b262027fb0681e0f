//! Turns sealed memtables into SSTables, of one table or of many together.
//!
//! Each step is done for all tables before the next, so that its syncs meet in one commit of the file system's journal: one
//! after the other they would take as long as there are tables. The order of steps is what a cut relies on:
//!
//! 1. the memtables are sealed; the log is synced up to all that is in them;
//! 2. folders last; then each table's transaction log says ADD, and lasts;
//! 3. the files are written, synced, and their names with them;
//! 4. COMMIT lasts; then the transaction logs go;
//! 5. one record of the log says how far all tables are on disk, and lasts; then the views change.
//!
//! A table that fails or panics drops out and is undone; the others go on. Without its COMMIT a table's files go at the next start;
//! with it, but without the record of step 5, its writes are replayed beside its SSTable, which changes nothing.

use super::TableStore;
use super::flush::write_memtable;
use super::store::{Unfinished, open_sstable};
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::folder::make_folders_below;
use crate::journal::Event;
use crate::memtable::Memtable;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::{Operation, TransactionLog};
use helenus_sstable::writer::Unsynced;
use parking_lot::MutexGuard;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most tables at a time: each holds ten files open until they are synced.
const TOGETHER_MAX: usize = 32;

/// One table in a flush.
struct Flush<'a> {
    store: &'a TableStore,
    changing: MutexGuard<'a, Unfinished>,
    written: Option<Part>,
}

/// A memtable on its way to the disk.
struct Part {
    memtable: Arc<Memtable>,
    table: Arc<Table>,
    descriptor: Descriptor,
    /// `None` once it is over.
    transaction: Option<TransactionLog>,
    /// Its COMMIT may be on the disk.
    may_count: bool,
    unsynced: Option<Unsynced>,
    /// Whether there is an SSTable; where all was deleted again there is none.
    is_file: bool,
    sstable: Option<Arc<SsTable>>,
}

/// Writes everything in the memory of these tables to SSTables. Returns how many were written.
///
/// # Errors
/// `NotFlushed`, after every table was tried; what was in memory of those that failed stays there.
pub(crate) fn flush_together(shared: &Shared, stores: &[Arc<TableStore>]) -> Result<u64> {
    let is_filled = |store: &&Arc<TableStore>| {
        let view = store.view();
        view.memtables.len() > 1 || !view.current().is_empty()
    };
    let (filled, empty): (Vec<_>, Vec<_>) = stores.iter().partition(is_filled);
    let mut outcome = Outcome::default();
    // Those that somebody else changes are waited for with no lock held: who holds one may wait for another.
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
        let mut together = Group { shared, past_page_cache: false, is_alone, crowded: Vec::new(), outcome };
        together.run(group);
        alone.append(&mut together.crowded);
        outcome = together.outcome;
    }
    for store in alone {
        match store.flush(shared) {
            Ok(written) => outcome.written += written,
            Err(error) => outcome.failed(store, Some(error)),
        }
    }
    let Outcome { written, mut tables, first } = outcome;
    tables.sort();
    first.map_or(Ok(written), |first| Err(Error::NotFlushed { tables, first: Box::new(first) }))
}

/// The same of one table; `past_page_cache` for work that nobody waits for.
pub(super) fn flush_one(shared: &Shared, store: &TableStore, past_page_cache: bool) -> Result<u64> {
    let group = vec![Flush::new(store, store.changing.lock())];
    let outcome = Outcome::default();
    let mut alone = Group { shared, past_page_cache, is_alone: true, crowded: Vec::new(), outcome };
    alone.run(group);
    let Outcome { written, first, .. } = alone.outcome;
    first.map_or(Ok(written), Err)
}

#[derive(Default)]
struct Outcome {
    written: u64,
    /// Names of tables that failed, with their keyspaces.
    tables: Vec<String>,
    /// What the first of them failed with.
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

    /// The memtable under way.
    fn part(&mut self) -> Result<&mut Part> {
        self.written.as_mut().ok_or(Error::Closed)
    }

    /// Takes its oldest sealed memtable in hand, if there is one.
    fn take_oldest(&mut self, shared: &Shared) -> bool {
        let oldest = self.store.view.load().memtables[1..].last().cloned();
        self.written = oldest.map(|memtable| Part {
            memtable,
            table: self.store.table(),
            descriptor: Descriptor::new(shared.next_sstable_id()),
            transaction: None,
            may_count: false,
            unsynced: None,
            is_file: false,
            sstable: None,
        });
        self.written.is_some()
    }

    /// Everything is written. It has no part in what follows.
    fn end(&self, shared: &Shared) -> bool {
        self.store.troubles.flushed(None, shared.host.clock.monotonic_ns());
        false
    }

    fn is_file(&self) -> bool {
        self.written.as_ref().is_some_and(|part| part.is_file)
    }

    /// Puts the SSTable in the place of the memtable.
    fn done(&mut self, shared: &Shared, begun_ns: u64) {
        self.changing.files = false;
        let (store, Some(part)) = (self.store, &self.written) else { return };
        store.view.rcu(|view| view.with_flushed(&part.memtable, part.sstable.clone()));
        if let Some(sstable) = &part.sstable {
            store.compaction.flushed(sstable.data_bytes());
            store.compaction.changed();
            shared.compactions.wake();
            store.note_flushed(shared, sstable.size_on_disk(), begun_ns);
        }
    }

    /// Gives up. What was written is undone, as far as it may be; `changing.files` has the next change do the rest.
    fn undo(&mut self) {
        if let Some(Part { transaction: Some(transaction), may_count: false, .. }) = self.written.take() {
            // The error that led here says more than a failure to clean up after it.
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
    shared: &'s Shared,
    past_page_cache: bool,
    is_alone: bool,
    /// Those for which too many files were open: they are tried again alone.
    crowded: Vec<&'s TableStore>,
    outcome: Outcome,
}

impl<'s> Group<'s> {
    fn run(&mut self, mut group: Vec<Flush<'s>>) {
        let shared = self.shared;
        group.retain(|flush| !flush.store.is_dropped());
        self.each(&mut group, |flush| {
            flush.store.finish(shared, &mut flush.changing)?;
            flush.store.seal_current(shared);
            Ok(())
        });
        // Oldest first, so that the position of what is flushed only grows. Mostly there is one.
        loop {
            group.retain_mut(|flush| flush.take_oldest(shared) || flush.end(shared));
            if group.is_empty() {
                return;
            }
            let begun_ns = shared.host.clock.monotonic_ns();
            let ready = Error::contain(|| self.make_ready(&mut group));
            self.all(&mut group, ready);
            self.write(&mut group);
            self.count(&mut group, begun_ns);
        }
    }

    /// Makes the folders, and syncs the log: an SSTable must not outlast the records of what is in it. A mutation of several tables
    /// would be there in part, and a column of the table's present definition be unknown to the schema.
    fn make_ready(&self, group: &mut [Flush<'s>]) -> Result<()> {
        let shared = self.shared;
        let new = group.iter().filter(|flush| !flush.changing.folder_lasts);
        let folders: Vec<&Path> = new.map(|flush| flush.store.folder()).collect();
        make_folders_below(&*shared.host.disk, &shared.options.dir, &folders)?;
        group.iter_mut().for_each(|flush| flush.changing.folder_lasts = true);
        match &shared.log {
            Some(log) => log.sync_up_to(log.position()),
            None => Ok(()),
        }
    }

    /// Writes the files, up to the end of their transactions.
    fn write(&mut self, group: &mut Vec<Flush<'s>>) {
        let (shared, past_page_cache) = (self.shared, self.past_page_cache);
        self.each(group, |flush| {
            // Until the flush is noted in the log, what it wrote is to be removed again.
            flush.changing.files = true;
            let part = flush.written.as_mut().ok_or(Error::Closed)?;
            let transaction = part.transaction.insert(flush.store.begin(shared, Operation::Flush));
            let files = Component::all_of(part.descriptor.version).count();
            Ok(transaction.add_unsynced(&part.descriptor, files)?)
        });
        self.each(group, |flush| flush.part()?.transaction(TransactionLog::sync_record));
        self.each(group, |flush| flush.part()?.transaction(TransactionLog::sync_name));
        self.each(group, |flush| {
            let folder = flush.store.folder();
            let part = flush.written.as_mut().ok_or(Error::Closed)?;
            let to = (folder, part.descriptor);
            part.unsynced = write_memtable(shared, to, &part.table, (&part.memtable, past_page_cache))?;
            part.is_file = part.unsynced.is_some();
            // Of what was written and deleted again nothing may remain.
            let useless = if part.unsynced.is_none() { part.transaction.take() } else { None };
            Ok(useless.map_or(Ok(()), TransactionLog::abort)?)
        });
        self.each(group, |flush| Ok(flush.part()?.unsynced.take().map_or(Ok(()), Unsynced::sync)?));
    }

    /// Makes what was written count, and changes the views.
    fn count(&mut self, group: &mut Vec<Flush<'s>>, begun_ns: u64) {
        let shared = self.shared;
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
            let synced = shared.host.disk.sync_dir(folder).map_err(Error::io("sync", folder));
            let part = flush.part()?;
            if part.is_file {
                part.sstable = Some(open_sstable(shared, &part.table, folder, part.descriptor)?);
            }
            synced
        });
        let noted = Error::contain(|| self.note(group));
        if matches!(noted, Err(Error::LogFull { .. })) {
            return self.all(group, noted);
        }
        // After any other error the log may say that these writes are in files, so the files stay.
        for flush in group.iter_mut() {
            flush.done(shared, begun_ns);
            self.outcome.written += u64::from(flush.is_file());
        }
        self.all(group, noted);
    }

    /// Notes in the log how far these tables are on the disk.
    fn note(&self, group: &[Flush<'s>]) -> Result<()> {
        let Some(log) = &self.shared.log else { return Ok(()) };
        let positions = group.iter().filter_map(|flush| {
            let part = flush.written.as_ref()?;
            Some((part.table.id, part.memtable.sealed_at()?))
        });
        log.mark_flushed(&positions.collect::<Vec<_>>())
    }

    /// A step of each table. One that fails in it drops out.
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

    /// A step that all tables have in common. If it fails, all drop out.
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
        store.troubles.flushed(Some(error.to_string()), self.shared.host.clock.monotonic_ns());
        self.shared.work.flush_failures.fetch_add(1, Ordering::Relaxed);
        self.shared.options.journal.note(&Event::FlushFailed { table: &store.table(), error });
    }
}

/// Whether the process, or the machine, has as many files open as it may.
fn is_crowded(error: &Error) -> bool {
    let source = match error {
        Error::Io { source, .. } | Error::Table(helenus_sstable::Error::Io { source, .. }) => source,
        _ => return false,
    };
    // ENFILE and EMFILE.
    matches!(helenus_host::raw_os_error(source), Some(23 | 24))
}
