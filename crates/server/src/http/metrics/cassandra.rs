//! The metrics under the names that dashboards for Cassandra use.
//!
//! Names, labels and kinds are those of K8ssandra's agent (`management-api-for-apache-cassandra`, its
//! `CassandraMetricNameParser` and `default-metric-settings.yaml`) for the metrics of Cassandra 5.0.9 (`TableMetrics`,
//! `ClientRequestMetrics`, `CacheMetrics`, `CompactionMetrics`, `CommitLogMetrics`, `CQLMetrics`, `ClientMetrics`,
//! `StorageMetrics`): latencies and histograms are summaries with six quantiles and a count, meters end in `_total`,
//! Cassandra's counters are gauges. A metric that cannot be given truly is left out. One node coordinates what it
//! stores, so the requests of clients and those of tables are the same.

use helenus_engine::{Distribution, Distributions, TableStatus};

use super::super::exposition::{Kind, Page};
use super::page::{MetricsInput, SECONDS};
use super::tables::labels;

type Number = fn(&TableStatus) -> u64;
type Spread = fn(&Distributions) -> &Distribution;

const PREFIX: &str = "org_apache_cassandra_metrics_";

const TABLE_GAUGES: [(&str, Number); 15] = [
    ("live_ss_table_count", |table| table.sstables),
    ("live_disk_space_used", |table| table.disk_bytes),
    ("total_disk_space_used", |table| table.disk_bytes),
    ("uncompressed_live_disk_space_used", |table| table.uncompressed_bytes),
    ("memtable_live_data_size", |table| table.memtable_bytes),
    ("memtable_on_heap_data_size", |table| table.memtable_bytes),
    ("all_memtables_live_data_size", |table| table.memtable_bytes),
    ("all_memtables_on_heap_data_size", |table| table.memtable_bytes),
    ("memtable_switch_count", |table| table.flushes),
    ("bytes_flushed", |table| table.flushed_bytes),
    ("pending_compactions", |table| table.pending_compactions),
    ("compaction_bytes_written", |table| table.compacted_bytes),
    ("max_partition_size", |table| table.partition_bytes_max),
    ("max_ss_table_size", |table| table.sstable_bytes_max),
    ("estimated_partition_count", |table| table.partitions),
];

/// The name, the distribution, and the number of its values in one unit of the name.
const TABLE_SUMMARIES: [(&str, Spread, f64); 9] = [
    ("read_latency", |found| &found.reads, SECONDS),
    ("write_latency", |found| &found.writes, SECONDS),
    ("range_latency", |found| &found.scans, SECONDS),
    ("coordinator_read_latency", |found| &found.reads, SECONDS),
    ("coordinator_write_latency", |found| &found.writes, SECONDS),
    ("coordinator_scan_latency", |found| &found.scans, SECONDS),
    ("ss_tables_per_read_histogram", |found| &found.sstables, 1.0),
    ("tombstone_scanned_histogram", |found| &found.tombstones, 1.0),
    ("live_scanned_histogram", |found| &found.rows, 1.0),
];

const REQUESTS: [(&str, Spread); 3] =
    [("Read", |found| &found.reads), ("Write", |found| &found.writes), ("RangeSlice", |found| &found.scans)];

/// Writes these metrics.
pub(super) fn put(page: &mut Page, gathered: &MetricsInput<'_>) {
    let node = &gathered.watched.node;
    let host = gathered.status.host_id.to_string();
    let common = [
        ("host", host.as_str()),
        ("cluster", &node.cluster_name),
        ("datacenter", &node.datacenter),
        ("rack", &node.rack),
    ];
    page.set_common(&common);
    put_tables(page, gathered);
    put_requests(page, gathered);
    put_cache(page, gathered);
    put_background(page, gathered);
    page.set_common(&[]);
}

fn put_tables(page: &mut Page, gathered: &MetricsInput<'_>) {
    for (name, of) in TABLE_GAUGES {
        let name = format!("{PREFIX}table_{name}");
        page.family(&name, Kind::Gauge, "As Cassandra's TableMetrics.");
        for table in gathered.tables() {
            page.sample(&name, &labels(table), of(table) as f64);
        }
    }
    let ratio = format!("{PREFIX}table_compression_ratio");
    page.family(&ratio, Kind::Gauge, "Bytes of files by bytes of data.");
    for table in gathered.tables().filter(|table| table.uncompressed_bytes > 0) {
        page.sample(&ratio, &labels(table), table.disk_bytes as f64 / table.uncompressed_bytes as f64);
    }
    for (name, of, unit) in TABLE_SUMMARIES {
        let name = format!("{PREFIX}table_{name}");
        page.family(
            &name,
            Kind::Summary,
            "As Cassandra's TableMetrics; quantiles of recent requests, the count of all.",
        );
        for (table, found) in gathered.tables_with(&gathered.recent) {
            page.summary(&name, &labels(table), (of(found), unit));
        }
    }
}

fn put_requests(page: &mut Page, gathered: &MetricsInput<'_>) {
    let latency = format!("{PREFIX}client_request_latency");
    page.family(
        &latency,
        Kind::Summary,
        "Requests over all tables, in seconds; quantiles of recent ones, the count of all.",
    );
    for (kind, of) in REQUESTS {
        page.summary(&latency, &[("request_type", kind)], (&gathered.all_tables(of), SECONDS));
    }
    for (name, codes) in [
        ("timeouts_total", ["READ_TIMEOUT", "WRITE_TIMEOUT"]),
        ("failures_total", ["READ_FAILURE", "WRITE_FAILURE"]),
    ] {
        let name = format!("{PREFIX}client_request_{name}");
        page.family(&name, Kind::Counter, "Requests that ended so; those over partitions count as reads.");
        for (kind, code) in ["Read", "Write"].into_iter().zip(codes) {
            page.sample(&name, &[("request_type", kind)], gathered.errors(code));
        }
    }
    let unavailable = format!("{PREFIX}client_request_unavailables_total");
    page.family(&unavailable, Kind::Counter, "None: one node is always there.");
    for kind in ["Read", "Write"] {
        page.sample(&unavailable, &[("request_type", kind)], 0.0);
    }
    let native = &gathered.native;
    let mut gauge = |name: &str, help: &str, value: u64| {
        page.single(&format!("{PREFIX}{name}"), Kind::Gauge, help, value as f64);
    };
    gauge("client_connected_native_clients", "Clients connected.", native.connections);
    gauge("cql_prepared_statements_executed", "Prepared statements run.", native.prepared);
    gauge("cql_regular_statements_executed", "Statements run from their text.", native.regular);
}

fn put_cache(page: &mut Page, gathered: &MetricsInput<'_>) {
    let (status, work) = (&gathered.status, &gathered.status.work);
    let requests = work.cache_hits + work.cache_misses;
    let rate = if requests == 0 { f64::NAN } else { work.cache_hits as f64 / requests as f64 };
    for (name, kind, value) in [
        ("capacity", Kind::Gauge, status.cache_bytes_max as f64),
        ("size", Kind::Gauge, status.cache_bytes as f64),
        ("entries", Kind::Gauge, status.cache_blocks as f64),
        ("hits_total", Kind::Counter, work.cache_hits as f64),
        ("misses_total", Kind::Counter, work.cache_misses as f64),
        ("requests_total", Kind::Counter, requests as f64),
        ("hit_rate", Kind::Gauge, rate),
    ] {
        let name = format!("{PREFIX}cache_{name}");
        page.family(&name, kind, "As Cassandra's CacheMetrics, of the block cache.");
        page.sample(&name, &[("cache", "ChunkCache")], value);
    }
}

fn put_background(page: &mut Page, gathered: &MetricsInput<'_>) {
    let (status, work) = (&gathered.status, &gathered.status.work);
    let pending: u64 = status.tables.iter().map(|table| table.pending_compactions).sum();
    let load: u64 = status.tables.iter().map(|table| table.disk_bytes).sum();
    let panics = gathered.state.log.panics();
    let mut single = |name: &str, kind: Kind, help: &str, value: u64| {
        page.single(&format!("{PREFIX}{name}"), kind, help, value as f64);
    };
    single("compaction_pending_tasks", Kind::Gauge, "Compactions that are due, about.", pending);
    single("compaction_completed_tasks", Kind::Gauge, "Compactions that ended well.", work.compactions);
    let total = "compaction_total_compactions_completed_total";
    single(total, Kind::Counter, "Compactions that ended well.", work.compactions);
    let compacted = "Bytes that compactions read from files.";
    single("compaction_bytes_compacted", Kind::Gauge, compacted, work.compaction_bytes_read);
    single("storage_load", Kind::Gauge, "Bytes of all SSTables.", load);
    single("storage_exceptions", Kind::Gauge, "Panics, each of them a bug.", panics);
    if let Some(log) = &status.log {
        single(
            "commit_log_total_commit_log_size",
            Kind::Gauge,
            "Bytes of the commit log's files.",
            log.bytes,
        );
        let name = format!("{PREFIX}commit_log_waiting_on_commit");
        page.family(&name, Kind::Summary, "Syncs of the commit log, in seconds; quantiles since the start.");
        page.summary(&name, &[], (&log.syncs, SECONDS));
    }
}
