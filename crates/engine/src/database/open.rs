//! Opens a database: lock, log, schema, tables, replay.

use super::cassandra_node::is_cassandra_node;
use super::flush_choice::SEGMENTS_MAX;
use super::host_id::host_id;
use super::index_builds::IndexBuilds;
use super::index_check::IndexCheck;
use super::leftovers::Leftovers;
use super::maintenance::Flusher;
use super::options::DatabaseOptions;
use super::own_directory::check_is_own;
use super::partition_locks::PartitionLocks;
use super::replaying::Replayer;
use super::schema_memory::schema_bytes;
use super::shared::{Database, Shared};
use super::timeouts::LiveTimeouts;
use super::watching::Watching;
use crate::changes::Consumers;
use crate::commitlog::{CommitLog, LogOptions, MissingSegment, Replay, ReplayOptions, read_log};
use crate::compaction::{Compactions, OtherWrites};
use crate::env::{Env, Obsolete};
use crate::error::{Error, Result, UnappliableRecord};
use crate::folder::{claim_folders, make_folder, remove_left};
use crate::index::{attach, stored_tables, tables_of};
use crate::journal::Event;
use crate::log_position::LogPosition;
use crate::memtable::MemoryAccount;
use crate::notify::Notifier;
use crate::open_progress::OpenProgress;
use crate::read::ScratchPool;
use crate::read::{Partitions, ReadCommand, RowOutcome, RowSink};
use crate::schema::{
    BUILT_TABLE, SchemaRow, WRITE_TIME, changes_between, is_system_keyspace, load_schema, system_keyspaces,
    system_schema,
};
use crate::sharded::CacheLine;
use crate::table::{Storage, TableStore, Tables, Unreadable, View, finish_imports, remove_dropped};
use crate::timestamps::Timestamps;
use crate::totals::Totals;
use crate::workers::Workers;
use crate::write_gate::WriteGate;
use arc_swap::ArcSwap;
use helenus_host::account::{Charge, Share};
use helenus_host::{Disk, Host};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::partitions::KeyRange;
use helenus_model::row::RowView;
use helenus_model::schema::{Schema, Table, TableId};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::names::SsTableIds;
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// The folder of what is kept for consumers of changes.
const CHANGES: &str = "changes";

/// The result of opening a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Number of updates replayed from the log.
    pub replayed: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Damage that was skipped with the rest of its segment: segment and offset.
    pub skipped: Vec<(std::path::PathBuf, u64)>,
    /// Records that were skipped because they cannot be applied, and the files that keep them.
    pub unappliable: Vec<UnappliableRecord>,
    /// Tables that cannot be read because one of their SSTables is damaged: keyspace and table, and the error.
    pub unreadable: Vec<(String, String)>,
    /// Folders that other users could enter, and that were made private.
    pub made_private: Vec<std::path::PathBuf>,
}

impl Database {
    /// Opens the database in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// `InUse` if another process has it open; `CassandraNode` if it belongs to one; `Foreign` if it has files of others; `LogDamaged` and `Unappliable` unless told to skip; damaged files.
    pub fn open(host: Host, options: DatabaseOptions) -> Result<(Arc<Database>, OpenReport)> {
        let disk = host.disk.clone();
        if is_cassandra_node(&*disk, &options.dir) {
            return Err(Error::CassandraNode { path: options.dir });
        }
        check_is_own(&*disk, &options.dir, &options.beside)?;
        make_folder(&*disk, &options.dir)?;
        let made_private = claim_folders(&*disk, &options.dir)?;
        let lock = lock(&*disk, &options.dir)?;
        let host_id = host_id(&host, &options.dir)?;
        let log_dir = options.dir.join("commitlog");
        let replay_options = ReplayOptions { skip_damaged: options.skip_damaged_log };
        let (replay, left) = match options.sync {
            Some(_) => read_log(&*disk, &log_dir, replay_options, &options.progress)?,
            None => Default::default(),
        };
        let flushed = left.flushed.clone();
        let has_log = !left.segments.is_empty();
        let timestamps = Timestamps::new(host.clock.clone(), left.timestamp_us);
        let announcer = Arc::new(Notifier::default());
        let log = match options.sync {
            None => None,
            Some(mode) => {
                let segment_bytes = options.segment_bytes;
                let journal = options.journal.clone();
                let last_given = timestamps.last_given();
                let kept_limits = options.kept_log;
                let log_options = LogOptions {
                    dir: log_dir,
                    kept_dir: options.dir.join(CHANGES),
                    kept_limits,
                    mode,
                    segment_bytes,
                    journal,
                    trusted_clock: timestamps.trusted_clock(),
                    last_given,
                };
                Some(CommitLog::open(&host, log_options, left, announcer.clone())?)
            }
        };
        let consumers = Consumers::open(&*disk, &options.dir.join(CHANGES))?;
        let mut random = [0; 8];
        host.random.fill(&mut random);
        let mut ids = SsTableIds::new(u64::from_le_bytes(random));
        let run = ids.next(host.clock.wall_us()).to_uuid().unwrap_or_default();
        let env = Env {
            dir: options.dir.clone(),
            journal: options.journal.clone(),
            host_id,
            log,
            gate: WriteGate::default(),
            buffers: BufferPool::new(options.memory.cache),
            memory: MemoryAccount::keeping(options.memory.memtables),
            timestamps: CacheLine(timestamps),
            work: Totals::default(),
            compactors: Workers::default(),
            ids: Mutex::new(ids),
            obsolete: Obsolete::default(),
            run,
            host,
        };
        let storage = Arc::new(Storage {
            env,
            tables: ArcSwap::from_pointee(Tables::default()),
            closing: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
        });
        let shared = Arc::new(Shared {
            compactions: Arc::new(Compactions::new(
                options.compaction,
                storage.clone(),
                other_writes(&options),
            )),
            storage,
            scratches: ScratchPool::new(),
            timeouts: LiveTimeouts::new(options.timeouts),
            options,
            schema: ArcSwap::from_pointee(system_schema()),
            ddl: Mutex::new(Charge::force(Share::Schema, 0)),
            announcer,
            flush_failure: Mutex::new(None),
            index_builds: IndexBuilds::default(),
            leftovers: Leftovers::default(),
            partition_locks: PartitionLocks::new(),
            watching: Watching::new(consumers),
        });
        let database = Arc::new(Database { shared, flusher: OnceLock::new() });
        let report = database.bring_up(replay, &flushed, has_log)?;
        database.keep_places()?;
        Ok((database, OpenReport { made_private, ..report }))
    }

    fn bring_up(
        &self,
        replay: Replay,
        flushed: &BTreeMap<TableId, LogPosition>,
        has_log: bool,
    ) -> Result<OpenReport> {
        let shared = &self.shared;
        let mut report = OpenReport {
            replayed: 0,
            log_bytes: replay.bytes,
            skipped: replay.skipped,
            ..OpenReport::default()
        };
        self.open_stores()?;
        OpenProgress::add(&shared.options.progress.records, replay.records);
        // The schema's own tables first, because they name the other tables.
        let first: HashSet<TableId> = shared.tables.load().keys().copied().collect();
        let of_schema = |table: &TableId| first.contains(table);
        Replayer::new(shared, flushed, &of_schema, false).run(&replay.segments, &mut report)?;
        let schema = load_schema(system_schema(), &mut |table| self.read_rows(table))?;
        self.check_missing(replay.missing, &schema, &mut report)?;
        shared.watch_tables(&schema);
        finish_imports(shared, &schema)?;
        remove_left(&*shared.host.disk, &shared.export_dir())?;
        shared.ddl.lock().resize(schema_bytes(&schema));
        shared.schema.store(Arc::new(schema));
        self.open_stores()?;
        let indexes = IndexCheck::of(shared, &shared.schema.load())?;
        Replayer::new(shared, flushed, &|table| !of_schema(table), true)
            .run(&replay.segments, &mut report)?;
        for (path, error) in remove_dropped(shared, |table| shared.table(table).is_some()) {
            shared.options.journal.note(&Event::LeftBehind { path: &path, error: &error });
        }
        report.unreadable = self.unreadable();
        if let Some(log) = &shared.log {
            let is_empty = |table| shared.table(table).is_none_or(|store| store.view().is_flushed());
            log.replayed(|table| shared.table(table).is_some(), is_empty);
        }
        self.describe_system_tables()?;
        // Writes of a table and of its indexes are flushed apart, so that either may be lost with the log.
        let lost = match has_log {
            false => Some("the commit log is not there"),
            true if !report.skipped.is_empty() => Some("a damaged part of the commit log was skipped"),
            true if !report.unappliable.is_empty() => Some("a part of the commit log was skipped"),
            true => None,
        };
        self.bring_up_indexes(&indexes, lost)?;
        let task = shared.host.tasks.start("flusher", Box::new(Flusher::new(shared)));
        shared.memory.set_preparer(task.clone());
        let _ = self.flusher.set(task);
        Compactions::start(&shared.compactions);
        Ok(report)
    }

    /// From now on nothing is written into another folder than the one that was opened. The places are kept with the lock.
    fn keep_places(&self) -> Result<()> {
        let (disk, dir) = (&*self.shared.host.disk, &self.shared.options.dir);
        let mut kept = Vec::new();
        for folder in [dir.clone(), dir.join("commitlog"), dir.join("data")] {
            if disk.is_dir(&folder) {
                let place = disk.keep_place(&folder);
                kept.push(place.map_err(|source| Error::Io { action: "use", path: folder, source })?);
            }
        }
        let mut lock = self.shared.lock.lock();
        if let Some(held) = lock.take() {
            *lock = Some(Box::new((held, kept)));
        }
        Ok(())
    }

    /// Refuses a log with a gap, unless nothing is lost by it or it may be skipped.
    fn check_missing(
        &self,
        missing: Vec<MissingSegment>,
        schema: &Schema,
        report: &mut OpenReport,
    ) -> Result<()> {
        let stored: HashSet<TableId> = stored_tables(schema).map(|(table, _)| table.id).collect();
        for MissingSegment { path, tables } in missing {
            if !tables.iter().any(|table| stored.contains(table)) {
                continue;
            }
            if !self.shared.options.skip_damaged_log {
                let problem = "the segment is missing, and an older one is needed";
                return Err(Error::LogDamaged { path, offset: 0, problem });
            }
            report.skipped.push((path, 0));
        }
        Ok(())
    }

    /// Attaches the indexes to their tables, and starts a build of every index that is not complete.
    fn bring_up_indexes(&self, check: &IndexCheck, lost: Option<&'static str>) -> Result<()> {
        let shared = &self.shared;
        let schema = shared.schema.load_full();
        let indexes = attach(tables_of(&schema), &shared.tables.load());
        let noted = match schema.table("system", BUILT_TABLE) {
            Some(table) if !indexes.is_empty() => self.read_rows(table)?,
            _ => Vec::new(),
        };
        IndexBuilds::start(shared);
        check.decide(shared, (indexes, &noted), lost)
    }

    fn unreadable(&self) -> Vec<(String, String)> {
        let stores = self.shared.tables.load();
        let mut found = Vec::new();
        for store in stores.values() {
            let table = store.table();
            let of_table = |unreadable: &Unreadable| {
                (format!("{}.{}", table.keyspace, table.name), unreadable.error.to_string())
            };
            found.extend(store.view().unreadable.iter().map(of_table));
        }
        found.sort();
        found
    }

    /// Opens the store of every table of the schema that has no store yet.
    fn open_stores(&self) -> Result<()> {
        let shared = &self.shared;
        let mut stores = Tables::clone(&shared.tables.load());
        for (table, index) in stored_tables(&shared.schema.load()) {
            if let Entry::Vacant(place) = stores.entry(table.id) {
                place.insert(Arc::new(TableStore::open(shared, &table, index.as_deref())?));
            }
        }
        shared.tables.store(Arc::new(stores));
        Ok(())
    }

    /// Writes the rows that describe the system keyspaces, if one of their tables has no row yet.
    fn describe_system_tables(&self) -> Result<()> {
        let schema = self.shared.schema.load_full();
        let Some(table) = schema.table("system_schema", "tables") else { return Ok(()) };
        let rows = self.read_rows(table)?;
        let known = |table: &Table| {
            rows.iter().any(|row| {
                row.get("keyspace_name").is_some_and(|name| name == table.keyspace.as_bytes())
                    && row.get("table_name").is_some_and(|name| name == table.name.as_bytes())
            })
        };
        let mut tables = system_keyspaces().into_iter().flat_map(|keyspace| keyspace.tables.into_values());
        if tables.all(|table| known(&table)) {
            return Ok(());
        }
        let empty = Schema { keyspaces: BTreeMap::new(), version: Uuid::nil(), epoch: 0 };
        // From the schema in use: users may have changed the replication of system keyspaces.
        let mut system = Schema::clone(&schema);
        system.keyspaces.retain(|name, _| is_system_keyspace(name));
        let (mutation, _) = changes_between(&empty, &system, self.next_timestamp_unrefused());
        drop(self.shared.write_schema(&mutation)?);
        Ok(())
    }

    /// Reads all rows of a small table.
    pub(crate) fn read_rows(&self, table: &Arc<Table>) -> Result<Vec<SchemaRow>> {
        self.read_rows_of(table, &*self.view(table)?)
    }

    /// The same from a given view.
    pub(crate) fn read_rows_of(&self, table: &Arc<Table>, view: &View) -> Result<Vec<SchemaRow>> {
        let command = ReadCommand {
            table: table.clone(),
            partitions: Partitions::Range(KeyRange::all()),
            filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
            reversed: false,
            statics: true,
            columns: None,
            limits: Limits::NONE,
            now_s: self.now_s(),
            resume: None,
            page_rows: None,
        };
        let mut sink = RowCollector { table, key: Vec::new(), now_s: command.now_s, rows: Vec::new() };
        let request = super::ReadRequest { may_block: true, ..Default::default() };
        self.read(&command, view, request, &mut sink, None)?;
        Ok(sink.rows)
    }
}

/// What is written to the disk besides compactions.
fn other_writes(options: &DatabaseOptions) -> OtherWrites {
    OtherWrites {
        segments_max: SEGMENTS_MAX as u64 + 1,
        segment_bytes: u64::from(options.segment_bytes),
        memtable_bytes_max: options.memory.memtables as u64,
    }
}

fn lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    let holder = format!("process {}", std::process::id());
    let lock = disk.lock_folder(dir, "helenus.lock", &holder);
    lock.map_err(|source| match helenus_host::lock_holder(&source) {
        Some(holder) => Error::InUse { path: dir.to_owned(), holder: holder.to_string() },
        None => Error::Io { action: "lock", path: dir.join("helenus.lock"), source },
    })
}

/// Collects rows as maps from column name to value.
struct RowCollector<'a> {
    table: &'a Table,
    key: Vec<u8>,
    now_s: i64,
    rows: Vec<SchemaRow>,
}

impl RowSink for RowCollector<'_> {
    fn partition(&mut self, key: &[u8], _static_row: Option<RowView<'_>>) -> Result<()> {
        self.key = key.to_vec();
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let mut found = SchemaRow::new();
        let written_us = row.row.liveness.timestamp_us.to_be_bytes();
        found.insert(WRITE_TIME.into(), written_us.to_vec());
        // Schema tables have one partition key column, whose serialised form is the key itself.
        found.extend(self.table.partition_key.iter().map(|column| (column.name.clone(), self.key.clone())));
        for (index, column) in self.table.clustering.iter().enumerate() {
            found.extend(row.clustering(index).map(|value| (column.name.clone(), value.to_vec())));
        }
        for cell in row.row.cells.iter().filter(|cell| cell.is_live(self.now_s)) {
            if let Some(column) = self.table.column_by_id(cell.column) {
                found.insert(column.name.clone(), row.value(cell).to_vec());
            }
        }
        self.rows.push(found);
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
