//! Details of one table, for an administrator who asks for it. They are not part of the status.

use super::shared::Shared;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::metrics::Period;
use crate::table::{TableStore, View};
use helenus_model::byte_comparable::decorated_key;
use helenus_model::schema::{Table, TableId};
use helenus_model::token::KeyHash;
use helenus_sstable::block::ReadContext;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::{Cardinality, EstimatedHistogram, Stats};
use helenus_sstable::table::SsTable;
use helenus_sstable::version::Version;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A distribution in a few numbers, as nodetool shows a histogram. Values are accurate to a fifth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Number of all events.
    pub count: u64,
    /// Mean, or mean of the sample if only a sample is measured. NaN if there are events but no recent ones.
    pub mean: f64,
    /// Percentiles 50, 75, 95, 98 and 99.
    pub percentiles: [u64; 5],
    /// Least value, rounded down.
    pub min: u64,
    /// Greatest value, rounded up.
    pub max: u64,
}

/// Details of one table, or of the hidden table of an index. Times in nanoseconds.
#[derive(Clone, Debug)]
pub struct TableDetails {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; for an index's hidden table, the table's and the index's with a dot between.
    pub table: String,
    /// Whether it is the hidden table of an index.
    pub is_index: bool,
    /// Number of SSTables.
    pub sstables: u64,
    /// Number of SSTables of formats older than the present one.
    pub sstables_old: u64,
    /// Bytes of the largest SSTable.
    pub sstable_bytes_max: u64,
    /// Number of SSTables and bytes of Data.db for each level; empty unless the table uses leveled compaction.
    pub levels: Vec<(u64, u64)>,
    /// Bytes of all files.
    pub disk_bytes: u64,
    /// Approximate memory of filters, indexes and chunk offsets, bytes.
    pub index_memory_bytes: u64,
    /// Bytes of the filter files.
    pub filter_bytes: u64,
    /// Compressed divided by uncompressed bytes of the compressed SSTables; `None` if there are none.
    pub compression_ratio: Option<f64>,
    /// Approximate number of partitions in files and memtables; a partition in several files counts once.
    pub partitions: u64,
    /// Rows in memtables.
    pub memtable_rows: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait for their flush.
    pub flushes_pending: u64,
    /// Memtables flushed since the start.
    pub flushes: u64,
    /// Uncompressed bytes of SSTables that are marked repaired, pending repair, and neither.
    pub repaired_bytes: [u64; 3],
    /// Bytes of partitions; each file counts its part of a partition.
    pub partition_bytes: Spread,
    /// Cells of partitions, counted likewise.
    pub partition_cells: Spread,
    /// Approximate fraction of cells that are droppable tombstones.
    pub droppable: f64,
    /// Reads of partitions by key. Here and below: recent events, but `count` covers all since the start.
    pub reads: Spread,
    /// Reads over ranges of partitions.
    pub scans: Spread,
    /// Writes to a partition.
    pub writes: Spread,
    /// Rows returned by a read.
    pub rows: Spread,
    /// Tombstones (dead rows and markers) that a read passed.
    pub tombstones: Spread,
    /// SSTables that a read by key accessed, per partition.
    pub sstables_read: Spread,
    /// Total time of reads by key since the start, extrapolated from the measured ones.
    pub read_ns_total: f64,
    /// Total time of writes, likewise.
    pub write_ns_total: f64,
}

/// What tables hold (`Database::inspect`).
pub struct TableInspection<'d> {
    pub(super) shared: &'d Shared,
}

impl<'d> TableInspection<'d> {
    pub(super) fn new(shared: &'d Shared) -> TableInspection<'d> {
        TableInspection { shared }
    }

    /// Details of these tables and of the hidden tables of their indexes. Tables that no longer exist are left out.
    pub fn details(&self, tables: &[TableId]) -> Vec<TableDetails> {
        let stores = tables.iter().filter_map(|id| self.shared.table(*id));
        let with_indexes = stores.flat_map(|store| {
            let indexes = store.indexes();
            let indexes: Vec<_> = indexes.iter().map(|index| index.store.clone()).collect();
            std::iter::once(store).chain(indexes)
        });
        with_indexes.map(|store| self.details_of(&store)).collect()
    }

    fn details_of(&self, store: &Arc<TableStore>) -> TableDetails {
        let (table, view) = (store.table(), store.view());
        let memtables = || view.memtables.iter();
        let counted = |of: fn(&Stats) -> &EstimatedHistogram| {
            let mut all: Option<EstimatedHistogram> = None;
            for sstable in &view.sstables {
                let one = of(sstable.stats());
                match &mut all {
                    Some(all) => all.merge(one),
                    None => all = Some(one.clone()),
                }
            }
            all.map_or_else(Spread::default, |all| spread(&all))
        };
        let figures = view.figures.distributions(self.shared.recently());
        let since_start = view.figures.distributions(Period::All);
        let total = |of: &Distribution| of.mean() * of.count as f64;
        TableDetails {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
            is_index: table.name.contains('.'),
            sstables: view.sstables.len() as u64,
            sstables_old: sum(&view, |sstable| u64::from(sstable.descriptor().version != Version::CURRENT)),
            sstable_bytes_max: view.sstables.iter().map(|sstable| sstable.size_on_disk()).max().unwrap_or(0),
            levels: levels(&table, &view),
            disk_bytes: sum(&view, SsTable::size_on_disk),
            index_memory_bytes: sum(&view, |sstable| sstable.memory_bytes() as u64),
            filter_bytes: sum(&view, |sstable| self.filter_bytes(store, sstable)),
            compression_ratio: compression_ratio(&view),
            partitions: partitions(&view)
                + memtables().map(|memtable| memtable.stats().partitions).sum::<u64>(),
            memtable_rows: memtables().map(|memtable| memtable.stats().rows).sum(),
            memtable_bytes: memtables().map(|memtable| memtable.bytes() as u64).sum(),
            flushes_pending: view.memtables.len() as u64 - 1,
            flushes: view.figures.flushes.load(Ordering::Relaxed),
            repaired_bytes: repaired(&view),
            partition_bytes: counted(|stats| &stats.partition_sizes),
            partition_cells: counted(|stats| &stats.partition_cells),
            droppable: droppable(&view, self.shared.compactions.gc_before_s(&table)),
            reads: of_sample(&figures.reads),
            scans: of_sample(&figures.scans),
            writes: of_sample(&figures.writes),
            rows: of_sample(&figures.rows),
            tombstones: of_sample(&figures.tombstones),
            sstables_read: of_sample(&figures.sstables),
            read_ns_total: total(&since_start.reads),
            write_ns_total: total(&since_start.writes),
        }
    }

    fn filter_bytes(&self, store: &TableStore, sstable: &SsTable) -> u64 {
        let path = sstable.descriptor().path(store.folder(), Component::Filter);
        self.shared.host.disk.open(&path).and_then(|file| file.size()).unwrap_or_default()
    }

    /// The folder of a table's files, if the table exists.
    pub fn folder(&self, table: &Table) -> Option<PathBuf> {
        self.shared.table(table.id).map(|store| store.folder().to_owned())
    }

    /// The Data.db files that hold a partition, each with its level.
    ///
    /// # Errors
    /// `UnknownTable`; failures of reading.
    pub fn files_of_key(&self, table: &Table, key: &[u8]) -> Result<Vec<(PathBuf, i32)>> {
        let store = self.shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        let view = store.view();
        view.check_whole()?;
        let hash = KeyHash::of(key);
        let mut decorated = Vec::new();
        decorated_key(hash.token, key, &mut decorated);
        let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
        let mut found = Vec::new();
        for sstable in view.sstables.iter().filter(|sstable| sstable.may_contain(&hash)) {
            if sstable.find(key, &hash, &decorated, &mut cx)?.is_some() {
                let path = sstable.descriptor().path(store.folder(), Component::Data);
                found.push((path, sstable.stats().level));
            }
        }
        Ok(found)
    }

    /// The present SSTables of a table.
    ///
    /// # Errors
    /// `UnknownTable`.
    pub fn sstables(&self, table: &Table) -> Result<Vec<Descriptor>> {
        let store = self.shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        let view = store.view();
        let opened = view.sstables.iter().map(|sstable| *sstable.descriptor());
        Ok(opened.chain(view.unreadable.iter().filter_map(|unreadable| unreadable.descriptor)).collect())
    }

    /// Verifies an SSTable of a table: returns the problem, or `None` if it is sound or no longer the table's.
    ///
    /// # Errors
    /// `UnknownTable`.
    pub fn verify(&self, table: &Table, descriptor: Descriptor) -> Result<Option<String>> {
        let store = self.shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        let view = store.view();
        let is_it = |sstable: &&Arc<SsTable>| *sstable.descriptor() == descriptor;
        let Some(sstable) = view.sstables.iter().find(is_it) else {
            let unreadable =
                view.unreadable.iter().find(|unreadable| unreadable.descriptor == Some(descriptor));
            return Ok(unreadable.map(|unreadable| unreadable.error.to_string()));
        };
        let Err(error) = sstable.verify(&*self.shared.host.disk, store.folder()) else { return Ok(None) };
        // A compaction that replaced it has removed its files.
        let is_there = store.view().sstables.iter().any(|other| Arc::ptr_eq(other, sstable));
        Ok(is_there.then(|| error.to_string()))
    }

    /// Whether a table has no data at all.
    pub fn is_empty(&self, table: &Table) -> bool {
        self.shared.table(table.id).is_none_or(|store| {
            let view = store.view();
            let nothing = view.sstables.is_empty() && view.unreadable.is_empty();
            nothing && view.memtables.iter().all(|memtable| memtable.is_empty())
        })
    }
}

fn sum(view: &View, of: impl Fn(&SsTable) -> u64) -> u64 {
    view.sstables.iter().map(|sstable| of(sstable)).sum()
}

/// Number of levels that Cassandra shows (`LeveledGenerations.MAX_LEVEL_COUNT`).
const LEVELS: usize = 9;

fn levels(table: &Table, view: &View) -> Vec<(u64, u64)> {
    let class = table.options.compaction.get("class").map_or("", String::as_str);
    if !class.ends_with("LeveledCompactionStrategy") {
        return Vec::new();
    }
    let mut levels = vec![(0, 0); LEVELS];
    for sstable in &view.sstables {
        let level = usize::try_from(sstable.stats().level).unwrap_or(0);
        if let Some((count, bytes)) = levels.get_mut(level) {
            *count += 1;
            *bytes += sstable.data_bytes();
        }
    }
    levels
}

/// As `TableMetrics.computeCompressionRatio`.
fn compression_ratio(view: &View) -> Option<f64> {
    let packed = || view.sstables.iter().filter(|sstable| sstable.stats().compression_ratio >= 0.0);
    let stored: u64 = packed().map(|sstable| sstable.data_bytes()).sum();
    let unpacked: u64 = packed().map(|sstable| sstable.uncompressed_bytes()).sum();
    (unpacked > 0).then(|| stored as f64 / unpacked as f64)
}

fn partitions(view: &View) -> u64 {
    match &*view.sstables {
        [] => 0,
        [one] => one.partition_count(),
        all => match Cardinality::of_all(all.iter().map(|one| one.statistics().partitions.as_ref())) {
            Some(counted) => counted.estimate(),
            None => all.iter().map(|one| one.partition_count()).sum(),
        },
    }
}

fn repaired(view: &View) -> [u64; 3] {
    let mut bytes = [0; 3];
    for sstable in &view.sstables {
        let stats = sstable.stats();
        let kind = match (stats.repaired_at_ms > 0, stats.pending_repair.is_some()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        if let Some(sum) = bytes.get_mut(kind) {
            *sum += sstable.uncompressed_bytes();
        }
    }
    bytes
}

/// As `SSTableReader.getEstimatedDroppableTombstoneRatio`, over all SSTables of a table.
fn droppable(view: &View, gc_before_s: i64) -> f64 {
    let (mut droppable, mut cells) = (0.0, 0.0);
    for stats in view.sstables.iter().map(|sstable| sstable.stats()) {
        droppable += stats.tombstone_drop_times.sum_until(gc_before_s);
        cells += stats.partition_cells.mean().floor() * stats.partition_cells.count() as f64;
    }
    if cells > 0.0 { droppable / cells } else { 0.0 }
}

const PARTS: [f64; 5] = [0.5, 0.75, 0.95, 0.98, 0.99];

fn spread(of: &EstimatedHistogram) -> Spread {
    Spread {
        count: of.count(),
        mean: of.mean(),
        percentiles: PARTS.map(|part| of.percentile(part)),
        min: of.min(),
        max: of.max(),
    }
}

fn of_sample(of: &Distribution) -> Spread {
    let lowest = of.buckets.iter().position(|(_, events)| *events > 0).unwrap_or(0);
    let below = lowest.checked_sub(1).and_then(|below| of.buckets.get(below));
    Spread {
        count: of.count,
        mean: if of.measured == 0 { f64::NAN } else { of.mean() },
        percentiles: PARTS.map(|part| of.percentile(part)),
        min: below.map_or(0, |(end, _)| end + 1),
        max: of.max(),
    }
}
