//! The metrics of each table under Helenus's own names.
//!
//! Counters count every request. Histograms contain only the measured requests, one in sixteen: their rates are a
//! sixteenth of the true ones, their quantiles are those of all requests.

use helenus_engine::{Distribution, Distributions, TableStatus};

use super::super::exposition::{Kind, Page};
use super::page::{MetricsInput, SECONDS};

/// Bounds of latencies, in nanoseconds: 1 us to 10 s.
pub(super) const LATENCY_BOUNDS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// Bounds of row and tombstone counts.
const COUNT_BOUNDS: [u64; 12] = [0, 1, 2, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 100_000];
/// Bounds of SSTable counts.
const SSTABLE_BOUNDS: [u64; 9] = [0, 1, 2, 3, 4, 6, 8, 12, 24];

type Number = fn(&TableStatus) -> u64;
type Spread = fn(&Distributions) -> &Distribution;

const GAUGES: [(&str, &str, Number); 11] = [
    ("helenus_table_sstables", "SSTables.", |table| table.sstables),
    ("helenus_table_disk_bytes", "Bytes of their files.", |table| table.disk_bytes),
    ("helenus_table_data_bytes", "Bytes of their data before compression.", |table| table.uncompressed_bytes),
    ("helenus_table_memtable_bytes", "Bytes of its memtables.", |table| table.memtable_bytes),
    ("helenus_table_memtable_rows", "Rows in its memtables.", |table| table.memtable_rows),
    ("helenus_table_partitions", "Partitions of its SSTables, one in several counted in each.", |table| {
        table.partitions
    }),
    ("helenus_table_rows", "Rows of its SSTables, counted likewise.", |table| table.rows),
    ("helenus_table_tombstones", "Tombstones and expiring cells in its SSTables, about.", |table| {
        table.tombstones
    }),
    (
        "helenus_table_partition_bytes_max",
        "Bytes of the largest partition within one SSTable, about.",
        |table| table.partition_bytes_max,
    ),
    ("helenus_table_compactions_pending", "Compactions that are due, about.", |table| {
        table.pending_compactions
    }),
    ("helenus_table_unreadable_sstables", "SSTables that cannot be read: its reads fail.", |table| {
        table.unreadable
    }),
];

const COUNTERS: [(&str, &str, Number); 4] = [
    ("helenus_table_flushes_total", "Memtables flushed.", |table| table.flushes),
    ("helenus_table_flushed_bytes_total", "Bytes of files that flushes wrote.", |table| table.flushed_bytes),
    ("helenus_table_compactions_total", "Compactions that ended well.", |table| table.compactions),
    ("helenus_table_compacted_bytes_total", "Bytes of files that compactions wrote.", |table| {
        table.compacted_bytes
    }),
];

const REQUESTS: [(&str, &str, Spread); 3] = [
    ("helenus_table_reads_total", "Reads of partitions by key.", |found| &found.reads),
    ("helenus_table_scans_total", "Reads over partitions.", |found| &found.scans),
    ("helenus_table_writes_total", "Writes into a partition.", |found| &found.writes),
];

const LATENCIES: [(&str, &str, Spread); 3] = [
    ("helenus_table_read_seconds", "Time of reads by key, one in sixteen measured.", |found| &found.reads),
    ("helenus_table_scan_seconds", "Time of reads over partitions, one in sixteen measured.", |found| {
        &found.scans
    }),
    ("helenus_table_write_seconds", "Time of writes into memory, one in sixteen measured.", |found| {
        &found.writes
    }),
];

const SPREADS: [(&str, &str, Spread, &[u64]); 3] = [
    ("helenus_table_rows_per_read", "Rows that a read gave.", |found| &found.rows, &COUNT_BOUNDS),
    (
        "helenus_table_tombstones_per_read",
        "Dead rows and range tombstones that a read passed.",
        |found| &found.tombstones,
        &COUNT_BOUNDS,
    ),
    (
        "helenus_table_sstables_per_read",
        "SSTables that a read by key asked, a partition.",
        |found| &found.sstables,
        &SSTABLE_BOUNDS,
    ),
];

/// Writes these metrics.
pub(super) fn put(page: &mut Page, gathered: &MetricsInput<'_>) {
    let kinds = [(Kind::Gauge, &GAUGES[..]), (Kind::Counter, &COUNTERS[..])];
    for (kind, families) in kinds {
        for (name, help, of) in families {
            page.family(name, kind, help);
            for table in gathered.tables() {
                page.sample(name, &labels(table), of(table) as f64);
            }
        }
    }
    for (name, help, of) in REQUESTS {
        page.family(name, Kind::Counter, help);
        for (table, found) in gathered.tables_with(&gathered.distributions) {
            page.sample(name, &labels(table), of(found).count as f64);
        }
    }
    for (name, help, of) in LATENCIES {
        page.family(name, Kind::Histogram, help);
        put_histograms(page, gathered, name, &|found| (of(found), &LATENCY_BOUNDS, SECONDS));
    }
    for (name, help, of, bounds) in SPREADS {
        page.family(name, Kind::Histogram, help);
        put_histograms(page, gathered, name, &|found| (of(found), bounds, 1.0));
    }
}

/// A distribution, the bounds of its buckets, and its unit.
type Histogram<'a> = (&'a Distribution, &'static [u64], f64);

/// Writes a histogram of each table.
fn put_histograms(
    page: &mut Page,
    gathered: &MetricsInput<'_>,
    name: &str,
    of: &dyn Fn(&Distributions) -> Histogram<'_>,
) {
    for (table, found) in gathered.tables_with(&gathered.distributions) {
        let histogram = of(found);
        // An empty histogram would be thirty lines of zeros.
        if histogram.0.measured > 0 {
            page.histogram(name, &labels(table), histogram);
        }
    }
}

/// The labels of a table. For an index's storage, the table is named by the table's name, a dot and the index's name.
pub(super) fn labels(table: &TableStatus) -> [(&'static str, &str); 2] {
    [("keyspace", &table.keyspace), ("table", &table.table)]
}
