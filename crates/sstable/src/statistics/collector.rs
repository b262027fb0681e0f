//! Collects statistics while a file is written (Cassandra's `MetadataCollector`).
//!
//! For each partition the SSTable writer calls `start_partition`, then `row` or `marker` for each row and marker, then
//! `end_partition`. No allocation is made for a cell.

use super::cardinality::Cardinality;
use super::clustering_range::{ClusteringBound, ClusteringRange};
use super::histogram::{CELL_COUNT_BUCKETS, EstimatedHistogram, PARTITION_SIZE_BUCKETS};
use super::stats::Stats;
use super::tombstone_histogram::TombstoneHistogramBuilder;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::range_tombstone::{BoundKind, MarkerView};
use helenus_model::row::RowView;

/// Statistics of a file being written.
#[derive(Clone, Debug)]
pub struct StatisticsCollector {
    partitions: Cardinality,
    partition_sizes: EstimatedHistogram,
    partition_cells: EstimatedHistogram,
    cells: u64,
    /// Deletions in the partition.
    tombstones: u64,
    timestamps_us: Option<(i64, i64)>,
    /// The greatest timestamp of a deletion, or of a value that expires; `i64::MIN` without any.
    hiding_us_max: i64,
    local_deletions_s: Option<(i64, i64)>,
    ttls_s: Option<(i32, i32)>,
    drop_times: TombstoneHistogramBuilder,
    columns_set: i64,
    rows: i64,
    has_partition_deletions: bool,
    has_legacy_counter_shards: bool,
    first: Option<Extreme>,
    last: Option<Extreme>,
}

/// The first or last clustering so far: its ordered key, and the form in which the file will store it.
#[derive(Clone, Debug)]
struct Extreme {
    key: Vec<u8>,
    kind: BoundKind,
    values: Vec<Option<Vec<u8>>>,
}

impl Default for StatisticsCollector {
    fn default() -> StatisticsCollector {
        StatisticsCollector {
            partitions: Cardinality::default(),
            partition_sizes: EstimatedHistogram::new(PARTITION_SIZE_BUCKETS),
            partition_cells: EstimatedHistogram::new(CELL_COUNT_BUCKETS),
            cells: 0,
            tombstones: 0,
            timestamps_us: None,
            hiding_us_max: i64::MIN,
            local_deletions_s: None,
            ttls_s: None,
            drop_times: TombstoneHistogramBuilder::default(),
            columns_set: 0,
            rows: 0,
            has_partition_deletions: false,
            has_legacy_counter_shards: false,
            first: None,
            last: None,
        }
    }
}

impl StatisticsCollector {
    /// Begins a partition with this serialised key and this deletion.
    pub fn start_partition(&mut self, key: &[u8], deletion: DeletionTime) {
        self.partitions.add(key);
        self.cells = 0;
        self.tombstones = 0;
        self.has_partition_deletions |= !deletion.is_live();
        self.deletion(deletion);
    }

    /// Counts the static row, which must not be empty.
    pub fn static_row(&mut self, row: RowView<'_>) {
        self.row_content(row);
    }

    /// Counts a row.
    pub fn row(&mut self, row: RowView<'_>) {
        self.position(&row.row.key, None, &row.row.clustering, row.data);
        self.row_content(row);
    }

    /// Counts a range-tombstone marker.
    pub fn marker(&mut self, marker: MarkerView<'_>) {
        let buf = marker.marker;
        if let Some(kind) = buf.kind().filter(|kind| !kind.is_boundary()) {
            self.position(&buf.key, Some(kind), &buf.clustering, marker.data);
        }
        self.deletion(buf.close);
        self.deletion(buf.open);
    }

    /// Ends the partition, whose data has `bytes` bytes.
    pub fn end_partition(&mut self, bytes: u64) {
        self.partition_sizes.add(bytes);
        self.partition_cells.add(self.cells);
    }

    /// Deletions in the partition so far: its own, and those of rows, ranges, collections and cells.
    pub fn tombstones(&self) -> u64 {
        self.tombstones
    }

    /// The greatest timestamp of a deletion, or of a value that expires; `i64::MIN` without any. Statistics.db has none.
    pub fn hiding_us_max(&self) -> i64 {
        self.hiding_us_max
    }

    /// Records that a counter has shards from before Cassandra 2.1.
    pub fn legacy_counter_shards(&mut self) {
        self.has_legacy_counter_shards = true;
    }

    /// The estimator of the number of distinct partitions.
    pub fn partitions(&self) -> &Cardinality {
        &self.partitions
    }

    /// The collected statistics. The caller must set the other fields: the level is 0, `compression_ratio` is -1, the
    /// keys and the types are empty, and everything about repair, commit log and host is absent.
    pub fn finish(self) -> (Cardinality, Stats) {
        let bound = |extreme: Option<Extreme>, none: ClusteringBound| {
            extreme.map_or(none, |e| ClusteringBound { kind: e.kind, values: e.values })
        };
        let empty = ClusteringRange::EMPTY;
        let (timestamp_us_min, timestamp_us_max) = self.timestamps_us.unwrap_or((i64::MIN, i64::MAX));
        let (local_deletion_s_min, local_deletion_s_max) =
            self.local_deletions_s.unwrap_or((NO_EXPIRY, NO_EXPIRY));
        let (ttl_s_min, ttl_s_max) = self.ttls_s.unwrap_or((0, 0));
        let stats = Stats {
            partition_sizes: self.partition_sizes,
            partition_cells: self.partition_cells,
            commit_log_intervals: Vec::new(),
            timestamp_us_min,
            timestamp_us_max,
            local_deletion_s_min,
            local_deletion_s_max,
            ttl_s_min,
            ttl_s_max,
            compression_ratio: -1.0,
            tombstone_drop_times: self.drop_times.finish(),
            level: 0,
            repaired_at_ms: 0,
            clustering_types: Vec::new(),
            clustering_range: ClusteringRange {
                start: bound(self.first, empty.start),
                end: bound(self.last, empty.end),
            },
            has_legacy_counter_shards: self.has_legacy_counter_shards,
            columns_set: self.columns_set,
            rows: self.rows,
            pending_repair: None,
            is_transient: false,
            originating_host_id: None,
            has_partition_deletions: self.has_partition_deletions,
            first_key: Vec::new(),
            last_key: Vec::new(),
            token_space_coverage: f64::NAN,
        };
        (self.partitions, stats)
    }

    fn row_content(&mut self, row: RowView<'_>) {
        self.liveness(row.row.liveness);
        self.deletion(row.row.deletion);
        for (_, deletion) in &row.row.complex_deletions {
            self.deletion(*deletion);
        }
        let mut column = None;
        // A live value with the same timestamp as the live value before it changes nothing.
        let liveness = row.row.liveness;
        let mut seen_us = (!liveness.is_none() && liveness.ttl_s == 0).then_some(liveness.timestamp_us);
        for cell in &row.row.cells {
            self.tombstones += u64::from(cell.is_tombstone());
            let is_value = cell.ttl_s == 0 && cell.local_deletion_s == NO_EXPIRY;
            if !is_value || seen_us != Some(cell.timestamp_us) {
                self.cell(cell);
            }
            if is_value {
                seen_us = Some(cell.timestamp_us);
            }
            if column.replace(cell.column) != Some(cell.column) {
                self.columns_set += 1;
            }
        }
        self.cells += row.row.cells.len() as u64;
        self.rows += 1;
    }

    fn liveness(&mut self, liveness: Liveness) {
        if !liveness.is_none() {
            widen(&mut self.timestamps_us, liveness.timestamp_us);
            widen(&mut self.ttls_s, liveness.ttl_s);
            self.local_deletion(liveness.expires_s, liveness.timestamp_us);
        }
    }

    fn cell(&mut self, cell: &Cell) {
        widen(&mut self.timestamps_us, cell.timestamp_us);
        widen(&mut self.ttls_s, cell.ttl_s);
        self.local_deletion(cell.local_deletion_s, cell.timestamp_us);
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.tombstones += 1;
            widen(&mut self.timestamps_us, deletion.timestamp_us);
            self.local_deletion(deletion.local_s, deletion.timestamp_us);
        }
    }

    fn local_deletion(&mut self, seconds: i64, timestamp_us: i64) {
        widen(&mut self.local_deletions_s, seconds);
        if seconds != NO_EXPIRY {
            self.hiding_us_max = self.hiding_us_max.max(timestamp_us);
            self.drop_times.add(seconds);
        }
    }

    /// Updates the first and the last clustering. A row (no kind) may be both; the start of a range deletion can only
    /// be the first, and its end only the last, because each start has an end.
    fn position(&mut self, key: &[u8], kind: Option<BoundKind>, clustering: &[Span], data: &[u8]) {
        let is_start = |kind| matches!(kind, BoundKind::InclStart | BoundKind::ExclStart);
        if kind.is_none_or(is_start) && self.first.as_ref().is_none_or(|first| key < first.key.as_slice()) {
            keep(&mut self.first, key, kind.unwrap_or(BoundKind::InclStart), (clustering, data));
        }
        if !kind.is_some_and(is_start) && self.last.as_ref().is_none_or(|last| key > last.key.as_slice()) {
            keep(&mut self.last, key, kind.unwrap_or(BoundKind::InclEnd), (clustering, data));
        }
    }
}

fn widen<T: Ord + Copy>(range: &mut Option<(T, T)>, value: T) {
    *range = Some(range.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
}

/// Replaces an extreme, and reuses its buffers, because clusterings often ascend, so that most rows of a partition do
/// this.
fn keep(extreme: &mut Option<Extreme>, key: &[u8], kind: BoundKind, (spans, data): (&[Span], &[u8])) {
    let kept = extreme.get_or_insert_with(|| Extreme { key: Vec::new(), kind, values: Vec::new() });
    kept.key.clear();
    kept.key.extend_from_slice(key);
    kept.kind = kind;
    kept.values.resize(spans.len(), None);
    for (slot, span) in kept.values.iter_mut().zip(spans) {
        match span.get(data) {
            None => *slot = None,
            Some(value) => {
                let slot = slot.get_or_insert_default();
                slot.clear();
                slot.extend_from_slice(value);
            }
        }
    }
}
