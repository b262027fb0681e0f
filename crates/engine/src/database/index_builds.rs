//! Builds new indexes from the existing rows of their tables, in the background, one page of rows in each step.
//!
//! The entries are not logged. They go to the index's memtable, and the index counts as built only when all of it was
//! flushed and a row of `system."IndexInfo"` records this. An interrupted build begins anew after a restart.
//!
//! A build begins with an empty hidden table: the entries have the timestamps of their cells, and removals that are left
//! from before could hide those of imported rows. The rows are read after that, and concurrent writes add their own
//! entries. So every row that is alive at the end has its entry.
//!
//! With one exception: a value that is hidden when it is read, and comes to light when a compaction takes effect that
//! had decided to purge what hides it before the value was written. Such a compaction was running when the build began,
//! and the value is in none of its inputs. So the rows are read once more for each of these compactions, without its
//! inputs.

use super::shared::Shared;
use crate::check_mutation::check;
use crate::compaction::CompactionStatus;
use crate::error::{Error, Result};
use crate::index::{Entry, EntryWriter, IndexedRow, entries_of};
use crate::journal::Event;
use crate::read::{KeyRange, Partitions, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink, execute};
use crate::schema::{BUILT_TABLE, SchemaRow};
use crate::table::{AttachedIndex, BuildGuard, TableStore, View, WithoutSome};
use helenus_host::account::{Scope, Share, Waits};
use helenus_host::{Next, TaskHandle, Worker};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::index::IndexLayout;
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::{ColumnKind, TableId};
use helenus_model::token::Token;
use helenus_sstable::names::Descriptor;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use uuid::Uuid;

/// Rows in one step.
const ROWS_PER_STEP: u64 = 1000;
/// Nanoseconds to wait when memory is full or a step has failed.
const PAUSE_NS: u64 = 500_000_000;
/// Tables without files and with up to this number of bytes in memory are indexed by the thread that creates the index,
/// before its answer.
const INLINE_BYTES_MAX: usize = 4 << 20;

/// The queue of index builds, and the worker that runs them.
#[derive(Default)]
pub struct IndexBuilds {
    /// Pairs of a table and an index of it.
    queue: Mutex<Vec<(Arc<TableStore>, TableId)>>,
    task: Mutex<Option<Arc<dyn TaskHandle>>>,
}

/// A running or queued build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexBuildStatus {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// Estimated partitions at the start.
    pub partitions: u64,
    /// Partitions that were read.
    pub partitions_done: u64,
    /// Estimated uncompressed bytes of the table at the start.
    pub bytes: u64,
    /// Entries made.
    pub entries: u64,
    /// The id of the index's hidden table.
    pub id: TableId,
}

impl IndexBuildStatus {
    /// The build as a task that tools list with compactions.
    pub(crate) fn as_task(&self) -> CompactionStatus {
        let part = self.partitions_done.min(self.partitions) as f64 / self.partitions.max(1) as f64;
        CompactionStatus {
            id: self.id.0,
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            kind: "secondary index build",
            sstables: 0,
            bytes_total: self.bytes,
            stored_bytes_total: 0,
            bytes_done: (self.bytes as f64 * part) as u64,
        }
    }
}

impl IndexBuilds {
    /// The builds that are not finished.
    pub fn unfinished(&self) -> Vec<IndexBuildStatus> {
        let status = |(base, id): &(Arc<TableStore>, TableId)| {
            let index = find(base, *id)?;
            let get = |figure: &std::sync::atomic::AtomicU64| figure.load(Ordering::Relaxed);
            let state = &index.state;
            (!index.is_built()).then(|| IndexBuildStatus {
                keyspace: index.shape.base.keyspace.to_string(),
                table: index.shape.base.name.to_string(),
                index: index.shape.index.name.to_string(),
                partitions: get(&state.partitions),
                partitions_done: get(&state.partitions_done),
                bytes: get(&state.bytes),
                entries: get(&state.entries),
                id: *id,
            })
        };
        self.queue.lock().iter().filter_map(status).collect()
    }

    /// Ends the worker and waits for it. `closing` must be set before.
    pub(crate) fn join(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.wake();
            task.join();
        }
    }

    /// Wakes the worker to check the queue, or the end of the database.
    pub(crate) fn wake(&self) {
        if let Some(task) = &*self.task.lock() {
            task.wake();
        }
    }

    /// Starts the worker.
    pub(crate) fn start(shared: &Arc<Shared>) {
        let worker = IndexBuilder { shared: Arc::downgrade(shared), job: None };
        let task = shared.host.tasks.start("index-builder", Box::new(worker));
        *shared.index_builds.task.lock() = Some(task);
    }

    /// Builds an index: at once if the table is empty, or if it is small and `at_once` allows it. Otherwise, or if that
    /// fails, in the background, which repeats attempts until the disk works again. The schema change that created the
    /// index is not undone.
    pub(crate) fn add(&self, shared: &Shared, (base, id): (Arc<TableStore>, TableId), at_once: bool) {
        let view = base.view();
        let bytes: usize = view.memtables.iter().map(|memtable| memtable.bytes()).sum();
        let is_empty = is_empty(&view);
        if let Some(index) = find(&base, id) {
            let tables = view.sstables.iter().map(|table| table.partition_count());
            let memtables = view.memtables.iter().map(|memtable| memtable.stats().partitions);
            index.state.partitions.store(tables.chain(memtables).sum(), Ordering::Relaxed);
            let in_files: u64 = view.sstables.iter().map(|table| table.uncompressed_bytes()).sum();
            index.state.bytes.store(in_files + bytes as u64, Ordering::Relaxed);
        }
        let mut job = Job::new(base, id);
        let is_small = is_empty || (at_once && view.sstables.is_empty() && bytes <= INLINE_BYTES_MAX);
        if is_small && job.run(shared).is_ok_and(|end| end == StepEnd::Done) {
            return;
        }
        let (table, name) = (job.base.table(), job.base.index_name(id));
        let mut queue = self.queue.lock();
        let is_new = !queue.iter().any(|(_, queued)| *queued == id);
        queue.retain(|(_, queued)| *queued != id);
        queue.push((job.base, id));
        drop(queue);
        if is_new {
            shared.options.journal.note(&Event::IndexBuildBegun { table: &table, index: &name });
        }
        self.wake();
    }

    /// Removes a finished build from the queue, unless its index must be built again meanwhile.
    fn forget(&self, base: &TableStore, id: TableId) {
        let mut queue = self.queue.lock();
        let is_wanted = !base.is_dropped() && find(base, id).is_some_and(|index| !index.is_built());
        queue.retain(|(_, queued)| *queued != id || is_wanted);
    }
}

fn is_empty(view: &View) -> bool {
    let has_files = !view.sstables.is_empty() || !view.unreadable.is_empty();
    !has_files && view.memtables.iter().all(|memtable| memtable.is_empty())
}

fn find(base: &TableStore, id: TableId) -> Option<AttachedIndex> {
    base.indexes().iter().find(|index| index.shape.index.id == id).cloned()
}

struct IndexBuilder {
    shared: Weak<Shared>,
    job: Option<Job>,
}

/// Time that a step waits for memory before it goes on without.
const MEMORY_WAIT: Duration = Duration::from_secs(30);

impl Worker for IndexBuilder {
    fn step(&mut self) -> Next {
        let Some(shared) = self.shared.upgrade() else { return Next::Done };
        if shared.closing.load(Ordering::Acquire) {
            return Next::Done;
        }
        if self.job.is_none() {
            let queue = shared.index_builds.queue.lock();
            self.job = queue.first().map(|(base, id)| Job::new(base.clone(), *id));
        }
        let Some(job) = &mut self.job else { return Next::Wait };
        if shared.memory.is_full() {
            // Holds no files for a while.
            job.without_inputs = WithoutSome::default();
            return Next::WaitAtMost(PAUSE_NS);
        }
        let _scope = Scope::begin(Share::Background, Waits::ThenGoesOn(MEMORY_WAIT));
        match Error::contain(|| job.step(&shared)) {
            Ok(StepEnd::More) => Next::Again,
            Ok(StepEnd::Done) => {
                if let Some(index) = find(&job.base, job.id).filter(AttachedIndex::is_built) {
                    let (table, name) = (job.base.table(), &*index.shape.index.name);
                    let entries = index.state.entries.load(Ordering::Relaxed);
                    shared.options.journal.note(&Event::IndexBuilt { table: &table, index: name, entries });
                }
                shared.index_builds.forget(&job.base, job.id);
                self.job = None;
                shared.announcer.notify();
                Next::Again
            }
            // If overtaken, the change that adds the rows requests a new build. If failed, the failed component has
            // reported the cause (a full disk, a damaged file). Other builds in the queue go on.
            Ok(StepEnd::Outdated) | Err(_) => {
                let id = job.id;
                self.job = None;
                let mut queue = shared.index_builds.queue.lock();
                if let Some(at) = queue.iter().position(|(_, queued)| *queued == id) {
                    let failed = queue.remove(at);
                    queue.push(failed);
                }
                Next::WaitAtMost(PAUSE_NS)
            }
        }
    }
}

/// The build of one index.
struct Job {
    base: Arc<TableStore>,
    id: TableId,
    resume: Option<Resume>,
    /// The inputs of the compactions that were running when the build began; `None` before.
    compactions: Option<Vec<BTreeSet<Descriptor>>>,
    /// The number of times that all rows were read.
    reads: usize,
    /// The SSTables of the present read, if it is one without the inputs of a compaction.
    without_inputs: WithoutSome,
    /// The state at the start of the build.
    passes: BuildGuard,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepEnd {
    /// There are more rows.
    More,
    /// The index is built, or was dropped.
    Done,
    /// Rows were added, or are about to be, that this build does not see.
    Outdated,
}

impl Job {
    fn new(base: Arc<TableStore>, id: TableId) -> Job {
        let passes = *base.passes.lock();
        Job {
            base,
            id,
            resume: None,
            compactions: None,
            reads: 0,
            without_inputs: WithoutSome::default(),
            passes,
        }
    }

    /// Builds the whole index, unless rows are imported meanwhile.
    fn run(&mut self, shared: &Shared) -> Result<StepEnd> {
        loop {
            match self.step(shared)? {
                StepEnd::More => {}
                end => return Ok(end),
            }
        }
    }

    /// Indexes a page of rows.
    fn step(&mut self, shared: &Shared) -> Result<StepEnd> {
        let Some(index) = find(&self.base, self.id).filter(|_| !self.base.is_dropped()) else {
            return Ok(StepEnd::Done);
        };
        if self.is_overtaken(&self.base.passes.lock()) {
            return Ok(StepEnd::Outdated);
        }
        let compactions = match self.compactions.take() {
            Some(compactions) => compactions,
            None => {
                if !is_empty(&index.store.view()) {
                    index.store.truncate(shared)?;
                }
                self.base.compaction.inputs()
            }
        };
        let command = ReadCommand {
            table: self.base.table(),
            partitions: Partitions::Range(KeyRange::all()),
            filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
            reversed: false,
            statics: true,
            columns: None,
            limits: Limits::NONE,
            // After a clock jump, data that seems expired may be alive. A superfluous entry does no harm.
            now_s: shared.timestamps.purge_now_s(),
            resume: self.resume.take(),
            page_rows: Some(ROWS_PER_STEP),
        };
        let mut view = self.base.view();
        view.check_whole()?;
        if let Some(inputs) = self.reads.checked_sub(1).and_then(|at| compactions.get(at)) {
            view = Arc::new(self.without_inputs.of(&view, (self.reads, inputs)));
        }
        let is_last = self.reads >= compactions.len();
        self.compactions = Some(compactions);
        let mut sink = BuildSink::new(&index.shape);
        let interrupt = || match shared.closing.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(()),
        };
        let mut scratch = shared.scratches.take();
        (scratch.cx.may_block, scratch.cx.fill_cache) = (true, false);
        (scratch.cx.touched, scratch.cx.stopwatch) = (Default::default(), None);
        let end = execute(&command, &view, &mut sink, (&mut scratch, None), &interrupt);
        shared.scratches.give_back(scratch);
        let end = end?;
        index.state.partitions_done.fetch_add(sink.partitions, Ordering::Relaxed);
        index.state.entries.fetch_add(sink.entries, Ordering::Relaxed);
        {
            // The memtable cannot be sealed meanwhile, so the next flush covers the entries.
            let _gate = shared.gate.enter();
            let view = index.store.view();
            let checked = check(sink.writer.updates.iter());
            let extent = checked.map_err(|(update, problem)| Error::unstorable(&update.table, problem))?;
            for update in &sink.writer.updates {
                view.current().apply(update, Token::of_key(&update.key), &extent);
            }
        }
        match end {
            ReadEnd::Page(at) => {
                self.resume = Some(at);
                Ok(StepEnd::More)
            }
            ReadEnd::Complete if !is_last => {
                self.reads += 1;
                Ok(StepEnd::More)
            }
            ReadEnd::Complete => {
                if shared.log.is_some() {
                    index.store.flush(shared)?;
                    self.base.include_index(shared, &index.store)?;
                }
                let passes = self.base.passes.lock();
                if self.is_overtaken(&passes) {
                    return Ok(StepEnd::Outdated);
                }
                // The index lacks entries for rows that the next start adds. It is not recorded as built then, so that
                // the start builds it anew.
                if !self.base.awaits_files() {
                    record_built(shared, &index.shape)?;
                }
                index.state.is_built.store(true, Ordering::Release);
                Ok(StepEnd::Done)
            }
        }
    }

    fn is_overtaken(&self, now: &BuildGuard) -> bool {
        now.coming > 0 || *now != self.passes
    }
}

/// Records durably that no index of a table is built any more, because rows without entries are about to be added.
/// Running builds stop. `rebuild` must follow, even after a failure.
///
/// # Errors
/// The write failed.
pub(crate) fn record_not_built(shared: &Shared, base: &TableStore) -> Result<()> {
    let indexes = {
        let mut passes = base.passes.lock();
        passes.coming += 1;
        let indexes = base.indexes();
        indexes.iter().for_each(|index| index.state.is_built.store(false, Ordering::Release));
        indexes
    };
    for index in indexes.iter() {
        note(shared, &index.shape, &[])?;
    }
    if let Some(log) = shared.log.as_ref().filter(|_| !indexes.is_empty()) {
        log.sync_up_to(log.position())?;
    }
    Ok(())
}

/// Records that one index is not built. The caller syncs the log.
///
/// # Errors
/// The write failed.
pub(super) fn mark_not_built(shared: &Shared, base: &TableStore, id: TableId) -> Result<()> {
    let Some(index) = find(base, id) else { return Ok(()) };
    index.state.is_built.store(false, Ordering::Release);
    note(shared, &index.shape, &[])
}

/// Builds every index of a table anew, after the rows announced by `record_not_built` were added.
pub(crate) fn rebuild(shared: &Shared, base: &Arc<TableStore>) {
    let ids: Vec<TableId> = {
        let mut passes = base.passes.lock();
        passes.coming = passes.coming.saturating_sub(1);
        passes.number += 1;
        let indexes = base.indexes();
        indexes.iter().for_each(|index| index.state.is_built.store(false, Ordering::Release));
        indexes.iter().map(|index| index.shape.index.id).collect()
    };
    ids.into_iter().for_each(|id| shared.index_builds.add(shared, (base.clone(), id), false));
}

/// Records in `system."IndexInfo"` that an index is built.
fn record_built(shared: &Shared, shape: &IndexLayout) -> Result<()> {
    note(shared, shape, &built_value(shape.index.id, [shared.run; 2]))
}

/// The value for an index that is built: the id of the hidden table, so that it does not apply to a later index of the same
/// name, and two runs, of which one has written the record of the files (`table/indexed_files.rs`): the second, or the first if it
/// was interrupted at its start.
fn built_value(id: TableId, runs: [Uuid; 2]) -> Vec<u8> {
    [id.0, runs[0], runs[1]].iter().flat_map(|id| *id.as_bytes()).collect()
}

/// Records that an index is still built: the record of its files, of the run `before`, is about to be one of this run. The
/// caller syncs the log.
///
/// # Errors
/// The write failed.
pub(super) fn record_still_built(
    shared: &Shared,
    base: &TableStore,
    id: TableId,
    before: Uuid,
) -> Result<()> {
    let Some(index) = find(base, id) else { return Ok(()) };
    note(shared, &index.shape, &built_value(id, [before, shared.run]))
}

/// Writes the row of an index in `system."IndexInfo"`.
fn note(shared: &Shared, shape: &IndexLayout, value: &[u8]) -> Result<()> {
    let schema = shared.schema.load();
    let Some(table) = schema.table("system", BUILT_TABLE) else { return Ok(()) };
    let timestamp_us = shared.next_system_timestamp();
    let mut changes = Changes::default();
    let name = [Some(shape.index.name.as_bytes())];
    let head = (Liveness::at(timestamp_us), DeletionTime::LIVE);
    changes.row(name.into_iter(), head, &[], |row| {
        if let Some(column) = table.column("value") {
            let cell = Cell {
                column: column.id,
                ttl_s: 0,
                timestamp_us,
                local_deletion_s: NO_EXPIRY,
                path: Span::NULL,
                value: Span::EMPTY,
            };
            row.cell(&cell, None, value);
        }
    });
    let key = shape.base.keyspace.as_bytes().to_vec();
    let update = PartitionUpdate { table: table.clone(), key, changes };
    drop(shared.write_schema(&Mutation { updates: vec![update] })?);
    Ok(())
}

/// Whether the rows of `system."IndexInfo"` record that an index is built, and of which runs the record of its files may be: none
/// for one that an earlier version has built.
pub(super) fn recorded_built(base: &TableStore, id: TableId, rows: &[SchemaRow]) -> Option<Vec<Uuid>> {
    let index = find(base, id)?;
    let is =
        |row: &SchemaRow, column: &str, value: &[u8]| row.get(column).is_some_and(|found| found == value);
    let row = rows.iter().find(|row| {
        is(row, "table_name", index.shape.base.keyspace.as_bytes())
            && is(row, "index_name", index.shape.index.name.as_bytes())
    })?;
    let mut ids = row.get("value")?.chunks(16).map(Uuid::from_slice);
    let is_its = ids.next()?.ok()? == id.0;
    is_its.then(|| ids.filter_map(std::result::Result::ok).collect())
}

/// Marks an index as complete.
pub(super) fn mark_built(base: &TableStore, id: TableId) {
    if let Some(index) = find(base, id) {
        index.state.is_built.store(true, Ordering::Release);
    }
}

/// Collects the entries of a page of rows.
struct BuildSink<'a> {
    shape: &'a IndexLayout,
    writer: EntryWriter,
    key: Vec<u8>,
    /// Whether the partition has an entry: an index of a partition key column has one for each partition.
    is_entered: bool,
    partitions: u64,
    entries: u64,
}

impl<'a> BuildSink<'a> {
    fn new(shape: &'a IndexLayout) -> BuildSink<'a> {
        let (key, writer) = (Vec::new(), EntryWriter::default());
        BuildSink { shape, writer, key, is_entered: false, partitions: 0, entries: 0 }
    }

    fn enter(&mut self, row: RowView<'_>) -> Result<()> {
        let BuildSink { shape, writer, key, entries, is_entered, .. } = self;
        entries_of(shape, (key, row), &mut |entry: Entry<'_>| {
            writer.add(shape, IndexedRow { key, row }, &entry);
            *entries += 1;
            *is_entered = true;
            Ok(())
        })
    }
}

impl RowSink for BuildSink<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_entered = false;
        let kind = self.shape.column.kind;
        match static_row {
            Some(row) if matches!(kind, ColumnKind::Static | ColumnKind::PartitionKey) => self.enter(row),
            _ => Ok(()),
        }
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        match self.shape.column.kind {
            ColumnKind::Static => {}
            ColumnKind::PartitionKey if self.is_entered => {}
            _ => self.enter(row)?,
        }
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        self.partitions += 1;
        Ok(RowOutcome::Skipped)
    }
}
