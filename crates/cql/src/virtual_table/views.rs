//! `system_views`: the engine's metrics in Cassandra's tables and columns (`TableMetricTables`, `SSTableTasksTable`,
//! `CachesTable`), and some tables of our own.
//!
//! A metric that is not measured is null, and a table without any measured metric does not exist (`docs/conformance.md`
//! lists them). The node coordinates only its own data, so the `coordinator_` tables have the metrics of the `local_`
//! ones.

use super::table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use super::top_partitions::TopPartitions;
use helenus_engine::{MetricSummaries, Status, Summary, TableStatus};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::sync::Arc;

pub(super) const KEYSPACE: &str = "system_views";
const KEY: [(&str, CqlType); 2] = [("keyspace_name", CqlType::Text), ("table_name", CqlType::Text)];
const MIB: u64 = 1 << 20;

/// Adds the rows of a table from the database's status.
type Rows = Box<dyn Fn(&Status, &mut VirtualRows) + Send + Sync>;

struct EngineTable {
    table: Arc<Table>,
    rows: Rows,
}

impl VirtualTable for EngineTable {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let mut status = cx.database.status();
        // As in Cassandra, these tables do not show the hidden tables of indexes.
        status.tables.retain(|table| !table.is_index);
        (self.rows)(&status, rows);
    }
}

/// The latency of a table that a view shows.
type LatencyOf = fn(&MetricSummaries) -> Summary;

/// All tables.
pub(super) fn tables() -> Vec<Arc<dyn VirtualTable>> {
    let mut tables = vec![
        size("disk_usage", |table| table.disk_bytes),
        size("max_partition_size", |table| table.partition_bytes_max),
        size("max_sstable_size", |table| table.sstable_bytes_max),
        count("rows_per_read", |figures| figures.rows),
        count("tombstones_per_read", |figures| figures.tombstones),
    ];
    let latencies: [(&str, LatencyOf); 6] = [
        ("local_read_latency", |figures| figures.reads),
        ("local_scan_latency", |figures| figures.scans),
        ("local_write_latency", |figures| figures.writes),
        ("coordinator_read_latency", |figures| figures.reads),
        ("coordinator_scan_latency", |figures| figures.scans),
        ("coordinator_write_latency", |figures| figures.writes),
    ];
    tables.extend(latencies.map(|(name, of)| latency(name, of)));
    tables.extend([tasks(), caches(), tombstones(), large_partitions()]);
    let mut tables: Vec<_> =
        tables.into_iter().map(|table| Arc::new(table) as Arc<dyn VirtualTable>).collect();
    tables.push(Arc::new(TopPartitions::new()));
    tables
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn long(value: u64) -> Vec<u8> {
    i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes().to_vec()
}

fn int(value: u64) -> Vec<u8> {
    i32::try_from(value).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

fn double(value: f64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn define(name: &str, comment: &str, key: (usize, usize), columns: &[(&str, CqlType)]) -> Arc<Table> {
    virtual_definition((KEYSPACE, name), comment, key, columns)
}

/// A table with one row for each stored table.
fn by_table(
    name: &str,
    columns: &[(&str, CqlType)],
    row: impl Fn(&TableStatus) -> Vec<(&'static str, Vec<u8>)> + Send + Sync + 'static,
) -> EngineTable {
    let columns: Vec<_> = KEY.iter().chain(columns).cloned().collect();
    let rows = move |status: &Status, rows: &mut VirtualRows| {
        for table in &status.tables {
            let mut values =
                vec![("keyspace_name", text(&table.keyspace)), ("table_name", text(&table.table))];
            values.extend(row(table));
            rows.row(&values);
        }
    };
    EngineTable { table: define(name, "", (2, 0), &columns), rows: Box::new(rows) }
}

fn size(name: &str, of: fn(&TableStatus) -> u64) -> EngineTable {
    by_table(name, &[("mebibytes", CqlType::BigInt)], move |table| {
        vec![("mebibytes", long(of(table).div_ceil(MIB)))]
    })
}

/// Rounded to three decimals, as by `Precision.round`.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn latency(name: &str, of: fn(&MetricSummaries) -> Summary) -> EngineTable {
    let columns = [
        ("count", CqlType::BigInt),
        ("max_ms", CqlType::Double),
        ("p50th_ms", CqlType::Double),
        ("p99th_ms", CqlType::Double),
        ("per_second", CqlType::Double),
    ];
    by_table(name, &columns, move |table| {
        let Summary { count, p50, p99, max } = of(&table.figures);
        let ms = |ns: u64| double(rounded(ns as f64 / 1e6));
        vec![("count", long(count)), ("max_ms", ms(max)), ("p50th_ms", ms(p50)), ("p99th_ms", ms(p99))]
    })
}

fn count(name: &str, of: fn(&MetricSummaries) -> Summary) -> EngineTable {
    let columns = [
        ("count", CqlType::BigInt),
        ("max", CqlType::Double),
        ("p50th", CqlType::Double),
        ("p99th", CqlType::Double),
    ];
    by_table(name, &columns, move |table| {
        let Summary { count, p50, p99, max } = of(&table.figures);
        let value = |value: u64| double(value as f64);
        vec![("count", long(count)), ("max", value(max)), ("p50th", value(p50)), ("p99th", value(p99))]
    })
}

fn tasks() -> EngineTable {
    let columns = [
        ("keyspace_name", CqlType::Text),
        ("table_name", CqlType::Text),
        ("task_id", CqlType::TimeUuid),
        ("completion_ratio", CqlType::Double),
        ("kind", CqlType::Text),
        ("progress", CqlType::BigInt),
        ("sstables", CqlType::Int),
        ("target_directory", CqlType::Text),
        ("total", CqlType::BigInt),
        ("total_compressed", CqlType::BigInt),
        ("unit", CqlType::Text),
    ];
    let rows = |status: &Status, rows: &mut VirtualRows| {
        for task in &status.compactions {
            let ratio =
                if task.bytes_total == 0 { 1.0 } else { task.bytes_done as f64 / task.bytes_total as f64 };
            rows.row(&[
                ("keyspace_name", text(&task.keyspace)),
                ("table_name", text(&task.table)),
                ("task_id", task.id.as_bytes().to_vec()),
                ("completion_ratio", double(ratio)),
                // Cassandra's name of the kind (`OperationType`).
                ("kind", text(if task.kind == "tombstones" { "tombstone_compaction" } else { task.kind })),
                ("progress", long(task.bytes_done)),
                ("sstables", int(task.sstables)),
                ("total", long(task.bytes_total)),
                ("total_compressed", long(task.stored_bytes_total)),
                ("unit", text("bytes")),
            ]);
        }
    };
    EngineTable {
        table: define("sstable_tasks", "current sstable tasks", (1, 2), &columns),
        rows: Box::new(rows),
    }
}

fn caches() -> EngineTable {
    let columns = [
        ("name", CqlType::Text),
        ("capacity_bytes", CqlType::BigInt),
        ("entry_count", CqlType::Int),
        ("hit_count", CqlType::BigInt),
        ("hit_ratio", CqlType::Double),
        ("recent_hit_rate_per_second", CqlType::BigInt),
        ("recent_request_rate_per_second", CqlType::BigInt),
        ("request_count", CqlType::BigInt),
        ("size_bytes", CqlType::BigInt),
    ];
    let rows = |status: &Status, rows: &mut VirtualRows| {
        rows.row(&[
            ("name", text("chunks")),
            ("capacity_bytes", long(status.cache_bytes_max)),
            ("entry_count", int(status.cache_blocks)),
            ("size_bytes", long(status.cache_bytes)),
        ]);
    };
    EngineTable { table: define("caches", "system caches", (1, 0), &columns), rows: Box::new(rows) }
}

/// Not in Cassandra: tombstones in files, which later compactions remove.
fn tombstones() -> EngineTable {
    let columns = [
        ("keyspace_name", CqlType::Text),
        ("table_name", CqlType::Text),
        ("rows", CqlType::BigInt),
        ("sstables", CqlType::Int),
        ("tombstones", CqlType::BigInt),
    ];
    let rows = |status: &Status, rows: &mut VirtualRows| {
        for table in status.tables.iter().filter(|table| table.sstables > 0) {
            rows.row(&[
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.table)),
                ("rows", long(table.rows)),
                ("sstables", int(table.sstables)),
                ("tombstones", long(table.tombstones)),
            ]);
        }
    };
    let comment = "tombstones and expiring cells in the files of each table, about";
    EngineTable { table: define("tombstones", comment, (1, 1), &columns), rows: Box::new(rows) }
}

/// A table is listed if one of its SSTables has a partition of at least this size.
const LARGE_BYTES: u64 = 100 * MIB;

/// Not in Cassandra: tables with a partition that is large by Cassandra's default (`partition_size_warn_threshold` in
/// its examples).
fn large_partitions() -> EngineTable {
    let columns = [
        ("keyspace_name", CqlType::Text),
        ("table_name", CqlType::Text),
        ("largest_partition_bytes", CqlType::BigInt),
        ("partitions", CqlType::BigInt),
    ];
    let rows = |status: &Status, rows: &mut VirtualRows| {
        for table in status.tables.iter().filter(|table| table.partition_bytes_max >= LARGE_BYTES) {
            rows.row(&[
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.table)),
                ("largest_partition_bytes", long(table.partition_bytes_max)),
                ("partitions", long(table.partitions)),
            ]);
        }
    };
    let comment = "tables whose largest partition in one file is of 100 MiB or more";
    EngineTable { table: define("large_partitions", comment, (1, 1), &columns), rows: Box::new(rows) }
}
