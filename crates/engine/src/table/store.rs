//! The storage of one table: opens it, truncates it, and coordinates the changes of its set of sources.

use super::compaction_state::CompactionState;
use super::dropped::{INDEX_FOLDER_PREFIX, remove_file};
use super::failures::TableFailures;
use super::flush_group::flush_one;
use super::import::ImportPart;
use super::indexed_files::IndexedFiles;
use super::indexes::{BuildGuard, TableIndexes};
use super::replace::note_removed;
use super::{Unreadable, View};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::log_position::LogPosition;
use arc_swap::{ArcSwap, ArcSwapOption};
use helenus_model::index::IndexLayout;
use helenus_model::schema::{Table, TableId};
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, is_temporary, refusal, table_folder};
use helenus_sstable::table::{OpenOptions, SsTable};
use helenus_sstable::transaction_log::{Operation, TransactionLog, recover, recover_except};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One table's storage.
pub struct TableStore {
    /// The current definition of the table.
    table: ArcSwap<Table>,
    pub(super) view: ArcSwap<View>,
    pub(super) folder: PathBuf,
    /// Held while the set of sources is changed: by a flush from start to end, by a compaction only for its swap.
    pub(super) changing: Mutex<Unfinished>,
    pub(crate) compaction: CompactionState,
    pub(crate) troubles: TableFailures,
    /// Its secondary indexes.
    indexes: ArcSwap<TableIndexes>,
    pub(super) dropped: AtomicBool,
    /// Decides whether an index build has seen all rows.
    pub(crate) passes: Mutex<BuildGuard>,
    /// Where changes of the set of SSTables are announced: for a table with complete indexes and for their hidden tables.
    pub(super) indexed_files: ArcSwapOption<IndexedFiles>,
}

/// The storage of tables by their ids.
pub(crate) type Tables = HashMap<TableId, Arc<TableStore>, foldhash::fast::RandomState>;

/// The clean-up that a failed change of the sources has left.
#[derive(Default)]
pub(super) struct Unfinished {
    /// Whether the folder and its directory entry are known to be synced.
    pub(super) folder_lasts: bool,
    /// The folder may contain SSTables that are not in the view, or an unfinished transaction. A later start would add
    /// such SSTables to the table, so they are removed before the next change.
    pub(super) files: bool,
    /// The log position of a TRUNCATE that the log does not record as finished yet.
    truncated: Option<LogPosition>,
    /// The table was truncated or dropped, and its files are left.
    is_emptied: bool,
    /// The first of `imports`, which began before that and are given up with it.
    pub(super) given_up: usize,
    /// Parts of imports that failed half-way.
    pub(super) imports: Vec<ImportPart>,
    /// Compactions whose COMMIT failed, so that it is unknown whether it took effect.
    pub(super) replacing: Vec<Replacing>,
}

/// SSTables that may have been replaced by others.
pub(super) struct Replacing {
    pub(super) old: Vec<Arc<SsTable>>,
    pub(super) new: Vec<Arc<SsTable>>,
}

/// The most bytes of an empty memtable that is kept.
pub(crate) const EMPTY_BYTES_MAX: usize = 1 << 20;

/// What a table has in memory when its current memtable is sealed.
pub(super) enum Sealed {
    /// Sealed memtables.
    Memtables,
    /// Nothing: all writes up to this log position are in SSTables, or void.
    Nothing(LogPosition),
}

impl TableStore {
    /// Opens a table: finishes or undoes what a crash left in its folder, then opens its SSTables. A damaged SSTable
    /// makes the reads of this table fail, but does not stop the start: other tables work.
    ///
    /// `index` is given for the hidden table of an index.
    pub(crate) fn open(env: &Env, table: &Arc<Table>, index: Option<&IndexLayout>) -> Result<TableStore> {
        let folder = folder_of(env, table, index);
        let (mut sstables, mut unreadable) = (Vec::new(), Vec::new());
        let disk = &env.host.disk;
        if disk.is_dir(&folder) {
            recover(&**disk, &folder)?;
            for descriptor in descriptors(env, &folder)? {
                match open_sstable(env, table, &folder, descriptor) {
                    Ok(sstable) => sstables.push(sstable),
                    Err(Error::Table(error)) if is_of_its_files(&error) => {
                        unreadable.push(Unreadable { descriptor: Some(descriptor), error: Arc::new(error) });
                    }
                    Err(other) => return Err(other),
                }
            }
            for error in refused(env, &folder)? {
                unreadable.push(Unreadable { descriptor: None, error: Arc::new(error) });
            }
        }
        let store = TableStore {
            table: ArcSwap::new(table.clone()),
            view: ArcSwap::from_pointee(View { unreadable, ..View::new(&env.memory, sstables) }),
            folder,
            changing: Mutex::default(),
            compaction: CompactionState::default(),
            troubles: TableFailures::default(),
            indexes: ArcSwap::default(),
            dropped: AtomicBool::new(false),
            passes: Mutex::default(),
            indexed_files: ArcSwapOption::empty(),
        };
        // A DROP may have begun before the last run ended; the table is still there.
        store.unmark_dropping(env)?;
        Ok(store)
    }

    /// The current definition of the table.
    pub fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// The same for a short use: takes no reference count.
    pub(crate) fn table_briefly(&self) -> arc_swap::Guard<Arc<Table>> {
        self.table.load()
    }

    /// The sources at this moment.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The sources at this moment, for a short use: takes no reference count, which other cores would contend for.
    pub(crate) fn view_briefly(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// Replaces the table's definition by a changed one. Returns whether its compactions may be others now.
    pub(crate) fn redefine(&self, table: &Arc<Table>) -> bool {
        let before = self.table.swap(table.clone());
        let (old, new) = (&before.options, &table.options);
        let is_changed = old.compaction != new.compaction || old.gc_grace_seconds != new.gc_grace_seconds;
        if is_changed {
            self.compaction.changed();
        }
        is_changed
    }

    /// Its secondary indexes at this moment.
    pub(crate) fn indexes(&self) -> arc_swap::Guard<Arc<TableIndexes>> {
        self.indexes.load()
    }

    /// Replaces the set of secondary indexes.
    pub(crate) fn attach(&self, indexes: TableIndexes) {
        self.indexes.store(Arc::new(indexes));
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Flushes all memtables at somebody's request. Returns the number of SSTables written.
    pub(crate) fn flush(&self, env: &Env) -> Result<u64> {
        flush_one(env, self, false)
    }

    /// Flushes all memtables in the background, to free memory.
    pub(crate) fn make_room(&self, env: &Env) -> Result<u64> {
        flush_one(env, self, true)
    }

    pub(super) fn note_flushed(&self, env: &Env, bytes: u64, begun_ns: u64) {
        env.work.flushed(bytes);
        self.view.load().figures.flushed(bytes);
        let took_ns = env.host.clock.monotonic_ns().saturating_sub(begun_ns);
        env.journal.note(&Event::Flushed { table: &self.table(), bytes, took_ns });
    }

    /// Seals the current memtable and puts an empty one before it, unless the current one is empty. Returns the log
    /// position up to which the table has nothing in memory, if that is so without a flush.
    pub(super) fn seal_current(&self, env: &Env) -> Sealed {
        // While the gate is closed, no write is between its log record and its memtable. So the position covers all
        // writes in the memtable.
        let _gate = env.gate.close();
        let view = self.view.load_full();
        let position = env.log.as_ref().map_or(LogPosition::START, |log| log.position());
        if view.is_flushed() {
            if view.current().bytes() > EMPTY_BYTES_MAX {
                // Writes that the log refused have left partitions in it, and no flush would free their memory.
                let mut next = view.with_new_memtable(&env.memory, env.timestamps.last_us());
                next.memtables.remove(1);
                self.view.store(Arc::new(next));
            }
            return Sealed::Nothing(position);
        }
        if !view.current().is_empty() {
            view.current().seal(position);
            self.view.store(Arc::new(view.with_new_memtable(&env.memory, env.timestamps.last_us())));
        }
        Sealed::Memtables
    }

    /// Replaces the current memtable by a new one even if it is empty. The new one assigns timestamps from the last
    /// server timestamp on, even if that was set back.
    pub(crate) fn replace_memtable(&self, env: &Env) {
        let _changing = self.changing.lock();
        if !self.view.load().current().is_empty() {
            self.seal_current(env);
            return;
        }
        let _gate = env.gate.close();
        let view = self.view.load_full();
        if view.current().is_empty() {
            let mut next = view.with_new_memtable(&env.memory, env.timestamps.last_us());
            next.memtables.remove(1);
            self.view.store(Arc::new(next));
        }
    }

    /// Truncates the table: removes its memtables and files, and those of its indexes.
    ///
    /// The log record and the empty view come in one step, so that every write is either before both or after both.
    /// Files are removed once the record is synced; then replay is told to skip older records. The table is truncated
    /// before its indexes: a crash in between leaves index entries without rows, never rows without entries.
    pub(crate) fn truncate(self: &Arc<Self>, env: &Env) -> Result<()> {
        let mut stores = vec![self.clone()];
        stores.extend(self.indexes().iter().map(|index| index.store.clone()));
        let mut changing: Vec<_> = stores.iter().map(|store| store.changing.lock()).collect();
        {
            let _gate = env.gate.close();
            // One call for all records, so that no table is truncated without its indexes.
            let ids: Vec<_> = stores.iter().map(|store| store.table().id).collect();
            let emptied_at = env.log.as_ref().map(|log| log.append_truncate(&ids)).transpose()?;
            for (store, changing) in stores.iter().zip(&mut changing) {
                store.empty_view(env, changing, emptied_at);
                changing.files = true;
                changing.truncated = emptied_at;
            }
        }
        for (store, changing) in stores.iter().zip(&mut changing) {
            store.finish(env, changing)?;
        }
        Ok(())
    }

    /// Runs `work` while the set of sources cannot change: no file of the view is removed meanwhile.
    pub(crate) fn with_stable_files<T>(&self, work: impl FnOnce(&Arc<View>) -> Result<T>) -> Result<T> {
        let _changing = self.changing.lock();
        work(&self.view.load_full())
    }

    /// Finishes what an earlier change left undone: removes every SSTable of the folder that is neither in the view nor
    /// being written by a compaction.
    pub(super) fn finish(&self, env: &Env, changing: &mut Unfinished) -> Result<()> {
        if let (Some(log), Some(position)) = (&env.log, changing.truncated) {
            // If the record of the TRUNCATE cannot be synced, its files must stay: without the record they belong to
            // the table.
            log.sync_up_to(position)?;
        }
        let disk = &env.host.disk;
        changing.files |= self.compaction.take_left_files();
        if changing.files && disk.is_dir(&self.folder) {
            recover_except(&**disk, &self.folder, &|log| self.compaction.is_running(log))?;
            let mut useless = descriptors(env, &self.folder)?;
            self.settle(env, changing, &useless);
            let files = disk.list(&self.folder).map_err(Error::io("list", &self.folder))?;
            // Must be asked after the folder was listed. An SSTable is one of these outputs from before its first file
            // exists until it is in the view or removed.
            let mut needed: BTreeSet<Descriptor> = self.compaction.outputs().into_iter().collect();
            let view = self.view.load();
            needed.extend(view.sstables.iter().map(|sstable| *sstable.descriptor()));
            needed.extend(view.unreadable.iter().filter_map(|unreadable| unreadable.descriptor));
            if changing.is_emptied {
                self.remove_void(env, &files, &needed)?;
            } else {
                useless.retain(|descriptor| !needed.contains(descriptor));
                self.remove_files(env, (&useless, &files))?;
            }
        }
        changing.files = false;
        if changing.is_emptied {
            // Before the TRUNCATE is marked as done: a start before that removes the files of an import too.
            self.abandon_imports(env, changing)?;
            self.note_emptied();
            changing.is_emptied = false;
        }
        if let (Some(log), Some(position)) = (&env.log, changing.truncated) {
            log.mark_flushed(&[(self.table().id, position)])?;
        }
        changing.truncated = None;
        Ok(())
    }

    /// Truncates the table during replay: removes everything flushed so far.
    pub(crate) fn truncate_replayed(&self, env: &Env) -> Result<()> {
        let mut changing = self.changing.lock();
        {
            let _gate = env.gate.close();
            self.empty_view(env, &mut changing, None);
        }
        changing.files = true;
        changing.truncated = None;
        self.finish(env, &mut changing)
    }

    /// Makes the view empty. The outputs of running compactions, and of earlier ones with an unknown commit, are
    /// discarded.
    pub(super) fn empty_view(&self, env: &Env, changing: &mut Unfinished, emptied_at: Option<LogPosition>) {
        let (figures, emptied_at) =
            (self.view.load().figures.clone(), emptied_at.unwrap_or(LogPosition::START));
        let awaits_files = !changing.imports.is_empty();
        let view = View { figures, emptied_at, awaits_files, ..View::new(&env.memory, Vec::new()) };
        let before = self.view.swap(Arc::new(view));
        env.obsolete.add(&self.table(), &before.sstables);
        changing.is_emptied = true;
        changing.given_up = changing.imports.len();
        self.compaction.emptied();
        self.troubles.flushed();
        for replacing in std::mem::take(&mut changing.replacing) {
            self.compaction.release(&replacing.old);
        }
    }

    /// Removes the files of these SSTables. Readers with an older view still have them open.
    fn remove_files(&self, env: &Env, (sstables, files): (&BTreeSet<Descriptor>, &[PathBuf])) -> Result<()> {
        if sstables.is_empty() {
            return Ok(());
        }
        let mut transaction = self.begin(env, Operation::Remove);
        for descriptor in sstables {
            note_removed(&mut transaction, descriptor, files)?;
        }
        transaction.commit()?;
        transaction.finish()?;
        Ok(())
    }

    /// Removes the files of all SSTables of an emptied table but the needed ones. The record of the TRUNCATE is in the log
    /// and not marked as done, so a start empties the table again; that needs no transaction, for which a full disk has no
    /// room. Data.db goes last, because a start finds an SSTable by it.
    fn remove_void(&self, env: &Env, files: &[PathBuf], needed: &BTreeSet<Descriptor>) -> Result<()> {
        let (disk, mut data) = (&*env.host.disk, Vec::new());
        for path in files {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match Descriptor::parse(name) {
                Some((descriptor, _)) if needed.contains(&descriptor) => {}
                Some((_, component)) if component == Component::Data.name() => data.push(path),
                Some(_) => remove_file(disk, path)?,
                None => {}
            }
        }
        data.into_iter().try_for_each(|path| remove_file(disk, path))?;
        // Even if nothing was left: a process that died may have removed the files without this sync, and a power cut
        // would bring them back after the log has forgotten the TRUNCATE.
        disk.sync_dir(&self.folder).map_err(Error::io("sync", &self.folder))
    }

    /// Begins a transaction in the table's folder.
    pub(crate) fn begin(&self, env: &Env, operation: Operation) -> TransactionLog {
        TransactionLog::begin(env.host.disk.clone(), &self.folder, operation, env.next_uuid())
    }
}

/// The most bytes of an index's name in the name of its folder, so that the folder's name is no longer than file
/// systems allow. Cassandra limits table names for this reason, but not index names, which contain the names of the
/// table and the column.
const INDEX_NAME_SHOWN_MAX: usize = 255 - INDEX_FOLDER_PREFIX.len() - "-".len() - 32;

/// A table's folder. The hidden table of an index has a folder inside its base table's folder, under a name that
/// Cassandra ignores and that is never reused.
fn folder_of(env: &Env, table: &Table, index: Option<&IndexLayout>) -> PathBuf {
    let base = index.map_or(table, |index| &index.base);
    let folder = env.data_dir().join(&*base.keyspace).join(table_folder(&base.name, base.id));
    match index {
        None => folder,
        Some(index) => {
            let name = index.index.name.get(..INDEX_NAME_SHOWN_MAX).unwrap_or(&index.index.name);
            folder.join(format!("{INDEX_FOLDER_PREFIX}{name}-{}", table.id.0.simple()))
        }
    }
}

/// Whether an SSTable could not be opened because of its own files. A refusal by the operating system does not count:
/// it may be temporary, and it would make every table unreadable.
fn is_of_its_files(error: &helenus_sstable::Error) -> bool {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    match error {
        helenus_sstable::Error::Corrupt { .. } | helenus_sstable::Error::Unsupported { .. } => true,
        helenus_sstable::Error::Io { source, .. } => matches!(source.kind(), NotFound | UnexpectedEof),
        helenus_sstable::Error::WouldBlock
        | helenus_sstable::Error::NoMemory(_)
        | helenus_sstable::Error::RowTooLarge { .. } => false,
    }
}

/// The SSTables of a folder. Removes temporary files that a crash left.
fn descriptors(env: &Env, folder: &Path) -> Result<BTreeSet<Descriptor>> {
    let disk = &env.host.disk;
    let mut found = BTreeSet::new();
    for path in disk.list(folder).map_err(Error::io("list", folder))? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if is_temporary(name) {
            disk.remove(&path).map_err(Error::io("remove", &path))?;
        } else if let Some((descriptor, component)) = Descriptor::parse(name)
            && component == Component::Data.name()
        {
            found.insert(descriptor);
        }
    }
    Ok(found)
}

/// An error for each SSTable in the folder that is of an unknown version.
fn refused(env: &Env, folder: &Path) -> Result<Vec<helenus_sstable::Error>> {
    let files = env.host.disk.list(folder).map_err(Error::io("list", folder))?;
    Ok(files.iter().filter_map(|file| refusal(file)).collect())
}

pub(super) fn open_sstable(
    env: &Env,
    table: &Arc<Table>,
    folder: &Path,
    descriptor: Descriptor,
) -> Result<Arc<SsTable>> {
    let options = OpenOptions { schema: table.clone(), buffers: env.buffers.clone() };
    Ok(SsTable::open(&*env.host.disk, folder, descriptor, options)?)
}
