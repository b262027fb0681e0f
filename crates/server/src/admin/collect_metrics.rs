//! Collects the metrics of the engine and of the listeners for tools.

use helenus_engine::Snapshots;
use helenus_host::account::Share;
use std::sync::Arc;

use helenus_engine::{CompactionStatus, Status, TableDetails, TableStatus, is_system_keyspace};
use helenus_model::schema::{Keyspace, Table, TableId};
use helenus_model::types::key_text;

use super::answer::{Growth, RunningCompaction, ServerStatus, TableLine};
use super::dispatcher::Dispatcher;
use super::metrics::{
    CompactionMetrics, CompactionTroubleLine, DiskUsageLine, DiskUsageReport, MemoryMetrics, MemoryShare,
    NodeMetrics, PastCompactionLine, Pool, RunningTask, Spread, TableMetrics, TopPartitionLine,
};

/// The period of nodetool's 15-minute rate, milliseconds.
const LATELY_MS: i64 = 15 * 60 * 1000;

fn uptime_s(dispatcher: &Dispatcher) -> u64 {
    dispatcher.database.host().clock.monotonic_ns().saturating_sub(dispatcher.started_ns) / 1_000_000_000
}

/// The flushes and compactions of a table that failed and have not succeeded since, a sentence each.
pub(crate) fn failures_of(table: &TableStatus) -> Vec<String> {
    let failures = [
        ("its last flush failed", &table.flush_failure),
        ("its last compaction failed", &table.compaction_failure),
        ("a read of it failed", &table.read_panic),
    ];
    let told =
        |(what, failure): (&str, &Option<String>)| failure.as_ref().map(|why| format!("{what}: {why}"));
    failures.into_iter().filter_map(told).collect()
}

/// The main metrics.
pub(super) fn status(dispatcher: &Dispatcher) -> ServerStatus {
    let status = dispatcher.database.status();
    let line = |table: TableStatus| TableLine {
        failures: failures_of(&table),
        keyspace: table.keyspace,
        table: table.table,
        sstables: table.sstables,
        pending_compactions: table.pending_compactions,
        disk_bytes: table.disk_bytes,
        memtable_bytes: table.memtable_bytes,
        memtable_rows: table.memtable_rows,
    };
    let facts = &dispatcher.facts;
    ServerStatus {
        version: facts.version.to_owned(),
        pid: std::process::id(),
        uptime_s: uptime_s(dispatcher),
        host_id: status.host_id.to_string(),
        listening: facts.listening.to_string(),
        rpc: facts.rpc.map(|address| address.to_string()),
        warnings: warnings(dispatcher),
        directory: facts.directory.as_ref().map(|path| path.display().to_string()),
        sync: facts.sync.map(str::to_owned),
        connections: facts.control.connections() as u64,
        memtable_bytes: status.memtable_bytes,
        cache_bytes: status.cache_bytes,
        log_segments: status.log_segments,
        flush_failure: status.flush_failure,
        compactions: status.compactions.into_iter().map(running).collect(),
        compaction_failure: status.compaction_failure,
        tables: status.tables.into_iter().map(line).collect(),
    }
}

pub(super) fn running(status: CompactionStatus) -> RunningCompaction {
    RunningCompaction {
        keyspace: status.keyspace,
        table: status.table,
        kind: status.kind.to_owned(),
        sstables: status.sstables,
        bytes_total: status.bytes_total,
        bytes_done: status.bytes_done,
    }
}

/// The warnings for who administers the server: those of its start, and the default password as long as it is there.
fn warnings(dispatcher: &Dispatcher) -> Vec<String> {
    let mut warnings = dispatcher.facts.warnings.clone();
    if dispatcher.backend.has_default_password().unwrap_or(false) {
        warnings.push(
            "the role cassandra has its default password: change it with helenus admin passwd, or with ALTER ROLE cassandra \
             WITH PASSWORD = '...'"
                .to_owned(),
        );
    }
    warnings
}

/// The server as a node of a ring.
pub(super) fn node(dispatcher: &Dispatcher) -> NodeMetrics {
    let virtuals = dispatcher.backend.virtual_tables();
    let (info, schema) = (virtuals.node(), dispatcher.database.schema());
    let tables = dispatcher.database.status().tables;
    let uptime_s = uptime_s(dispatcher);
    let now_s = dispatcher.database.host().clock.wall_us() / 1_000_000;
    let mut tokens: Vec<i64> =
        helenus_cql::virtual_table::ring_tokens().iter().filter_map(|token| token.parse().ok()).collect();
    tokens.sort_unstable();
    NodeMetrics {
        host_id: dispatcher.database.host_id().to_string(),
        warnings: warnings(dispatcher),
        cluster_name: info.cluster_name,
        datacenter: info.datacenter,
        rack: info.rack,
        address: info.native_address.ip().to_string(),
        port: info.native_address.port(),
        release_version: helenus_cql::virtual_table::RELEASE_VERSION.to_owned(),
        version: dispatcher.facts.version.to_owned(),
        schema_version: schema.version.to_string(),
        uptime_s,
        started_s: now_s - i64::try_from(uptime_s).unwrap_or_default(),
        serves: dispatcher.facts.control.are_open(),
        disk_bytes: tables.iter().map(|table| table.disk_bytes).sum(),
        repaired_bytes: tables.iter().map(|table| table.repaired_bytes).sum(),
        unpacked_bytes: tables.iter().map(|table| table.uncompressed_bytes).sum(),
        tokens,
        keyspaces: schema.keyspaces.values().map(|keyspace| replication(keyspace)).collect(),
        memory: memory(dispatcher),
        clock: dispatcher.database.clock().status().into(),
    }
}

/// The short name of a keyspace's replication class, and its options as `describecluster` prints them.
fn replication(keyspace: &Keyspace) -> (String, String) {
    let class = keyspace.replication.get("class").map_or("", String::as_str);
    let class = class.rsplit('.').next().unwrap_or_default();
    let options = keyspace.replication.iter().filter(|(key, _)| *key != "class");
    let options: Vec<String> = options.map(|(key, value)| format!("{key}={value}")).collect();
    (keyspace.name.to_string(), format!("{class} {{{}}}", options.join(", ")))
}

/// The history of the server's figures.
pub(super) fn growth(dispatcher: &Dispatcher) -> Growth {
    let tables = dispatcher.database.status().tables;
    let largest = tables
        .iter()
        .filter(|table| table.disk_bytes > 0 && !is_system_keyspace(&table.keyspace))
        .max_by_key(|table| table.disk_bytes);
    Growth {
        samples: dispatcher.history.with_present(&dispatcher.database),
        largest_table: largest.map(|table| (format!("{}.{}", table.keyspace, table.table), table.disk_bytes)),
        is_in_memory: dispatcher.facts.directory.is_none(),
    }
}

/// Memory use.
pub(super) fn memory(dispatcher: &Dispatcher) -> MemoryMetrics {
    let status = dispatcher.database.status();
    let (requests, requests_max) = dispatcher.facts.control.request_bytes();
    let account = helenus_host::account::metrics();
    MemoryMetrics {
        shares: shares(&status, &account),
        waited: account.waited,
        refused: account.refused,
        resident: dispatcher.facts.control.resident_bytes(),
        memtables: status.memtable_bytes,
        memtables_max: status.memtable_bytes_max,
        cache: status.cache_bytes,
        cache_max: status.cache_bytes_max,
        cache_blocks: status.cache_blocks,
        cache_hits: status.work.cache_hits,
        cache_misses: status.work.cache_misses,
        sstables: status.tables.iter().map(|table| table.index_memory_bytes).sum(),
        requests,
        requests_max,
    }
}

/// The shares of `memory_limit`: the fixed ones, the memory of tables, and the shares of the memory account.
pub(crate) fn shares(status: &Status, account: &helenus_host::account::PoolMetrics) -> Vec<MemoryShare> {
    let share = |name: &str, used, limit, peak| MemoryShare { name: name.to_owned(), used, limit, peak };
    let tables: u64 = status.tables.iter().map(|table| table.index_memory_bytes).sum();
    let (_, counted_max) = helenus_host::account::standing();
    let counted_max = Some(counted_max).filter(|_| account.limit < u64::MAX);
    let mut shares = vec![
        share("memtables", status.memtable_bytes, Some(status.memtable_bytes_max), None),
        share("block_cache", status.cache_bytes, Some(status.cache_bytes_max), None),
        share("sstables", tables, counted_max, None),
    ];
    // What SSTables keep is shown above, whether it counts or not.
    let of_account = account.shares.iter().filter(|its| its.share != Share::SsTables);
    shares.extend(of_account.map(|its| share(its.share.name(), its.used, None, Some(its.peak))));
    let limit = Some(account.limit).filter(|limit| *limit < u64::MAX);
    shares.push(share("on_account", account.used, limit, Some(account.peak)));
    shares
}

/// The metrics of tables.
pub(super) fn tables(dispatcher: &Dispatcher, tables: &[Arc<Table>]) -> Result<Vec<TableMetrics>, String> {
    let snapshots = Snapshots::of(&dispatcher.database).all().map_err(|error| error.to_string())?;
    let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
    let snapshot_bytes = |table: &TableDetails| {
        let its = snapshots
            .iter()
            .filter(|snapshot| snapshot.keyspace == table.keyspace && snapshot.table == table.table);
        its.map(|snapshot| snapshot.bytes_alone).sum()
    };
    let line = |table: TableDetails| {
        let us = |found| Spread::of(found, 1e-3);
        TableMetrics {
            snapshot_bytes: snapshot_bytes(&table),
            partition_bytes: Spread::of(&table.partition_bytes, 1.0),
            partition_cells: Spread::of(&table.partition_cells, 1.0),
            reads: us(&table.reads),
            scans: us(&table.scans),
            writes: us(&table.writes),
            rows: Spread::of(&table.rows, 1.0),
            tombstones: Spread::of(&table.tombstones, 1.0),
            sstables_read: Spread::of(&table.sstables_read, 1.0),
            read_us_total: table.read_ns_total / 1e3,
            write_us_total: table.write_ns_total / 1e3,
            keyspace: table.keyspace,
            table: table.table,
            is_index: table.is_index,
            sstables: table.sstables,
            sstables_old: table.sstables_old,
            sstable_bytes_max: table.sstable_bytes_max,
            levels: table.levels,
            disk_bytes: table.disk_bytes,
            index_memory_bytes: table.index_memory_bytes,
            filter_bytes: table.filter_bytes,
            compression_ratio: table.compression_ratio,
            partitions: table.partitions,
            memtable_rows: table.memtable_rows,
            memtable_bytes: table.memtable_bytes,
            flushes_pending: table.flushes_pending,
            flushes: table.flushes,
            repaired_bytes: table.repaired_bytes,
            droppable: table.droppable,
        }
    };
    Ok(dispatcher.database.inspect().details(&ids).into_iter().map(line).collect())
}

/// The thread pools of the listeners and of the engine.
pub(super) fn pools(dispatcher: &Dispatcher) -> Vec<Pool> {
    let status = dispatcher.database.status();
    let builds = dispatcher.database.index_builds().unfinished().len() as u64;
    let running = status.compactions.len() as u64 - builds;
    let mut pools = dispatcher.facts.control.pools();
    pools.push(Pool {
        name: "CompactionExecutor".to_owned(),
        active: running,
        pending: status.tables.iter().map(|table| table.pending_compactions).sum(),
        completed: status.work.compactions + status.work.compaction_failures,
        refused: 0,
    });
    pools.push(Pool {
        name: "MemtableFlushWriter".to_owned(),
        active: 0,
        pending: status.tables.iter().map(|table| table.flushes_pending).sum(),
        completed: status.tables.iter().map(|table| table.flushes).sum(),
        refused: 0,
    });
    pools.push(Pool { name: "SecondaryIndexManagement".to_owned(), active: builds, ..Pool::default() });
    pools
}

/// The running and due compactions.
pub(super) fn compactions(dispatcher: &Dispatcher) -> CompactionMetrics {
    let status = dispatcher.database.status();
    let lately_ms = dispatcher.database.host().clock.wall_us() / 1000 - LATELY_MS;
    let lately =
        dispatcher.database.compactions().past().iter().filter(|past| past.ended_ms >= lately_ms).count();
    let pending = status.tables.iter().filter(|table| table.pending_compactions > 0);
    let pending =
        pending.map(|table| (table.keyspace.clone(), table.table.clone(), table.pending_compactions));
    let task = |task: CompactionStatus| RunningTask {
        id: task.id.to_string(),
        kind: kind(task.kind).to_owned(),
        keyspace: task.keyspace,
        table: task.table,
        sstables: task.sstables,
        bytes_done: task.bytes_done,
        bytes_total: task.bytes_total,
    };
    CompactionMetrics {
        compactors: dispatcher.database.compactions().threads() as u64,
        bytes_per_s: dispatcher.database.compactions().bytes_per_s(),
        pending: pending.collect(),
        completed: status.work.compactions,
        discarded: status.work.compaction_failures,
        bytes_read: status.work.compaction_bytes_read,
        data_bytes: status.work.compaction_data_bytes,
        completed_lately: lately as u64,
        uptime_s: uptime_s(dispatcher),
        failure: status.compaction_failure,
        reduced: status.work.compactions_reduced,
        sstables_left_out: status.work.compaction_sstables_left_out,
        troubles: dispatcher.database.compactions().troubles().into_iter().map(trouble).collect(),
        running: status.compactions.into_iter().map(task).collect(),
    }
}

fn trouble(trouble: helenus_engine::CompactionTrouble) -> CompactionTroubleLine {
    CompactionTroubleLine {
        keyspace: trouble.keyspace,
        table: trouble.table,
        reason: trouble.reason,
        wanted_bytes: trouble.wanted_bytes,
        free_bytes: Some(trouble.free_bytes).filter(|free| *free != u64::MAX),
        left_out: trouble.left_out,
        again_in_s: trouble.again_in_s,
    }
}

/// What holds space on the disk, the greatest first.
pub(super) fn disk_usage(dispatcher: &Dispatcher) -> Result<DiskUsageReport, String> {
    let usage = dispatcher.database.disk_usage().map_err(|error| error.to_string())?;
    let line =
        |((purpose, keyspace, table), space): (helenus_engine::SpaceHolder, helenus_engine::SpaceUse)| {
            DiskUsageLine {
                what: purpose.describe().to_owned(),
                keyspace,
                table,
                bytes: space.bytes,
                files: space.files,
            }
        };
    let mut uses: Vec<DiskUsageLine> = usage.uses.into_iter().map(line).collect();
    uses.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    Ok(DiskUsageReport { free_bytes: usage.free_bytes, uses })
}

/// nodetool's name for a kind of compaction (`OperationType`).
fn kind(kind: &str) -> &str {
    match kind {
        "compaction" => "Compaction",
        "tombstones" => "Tombstone Compaction",
        "major" => "Major compaction",
        "secondary index build" => "Secondary index build",
        other => other,
    }
}

/// The finished compactions, the last first.
pub(super) fn history(dispatcher: &Dispatcher) -> Vec<PastCompactionLine> {
    let line = |past: helenus_engine::PastCompaction| PastCompactionLine {
        id: past.id.to_string(),
        keyspace: past.keyspace,
        table: past.table,
        ended_ms: past.ended_ms,
        bytes_in: past.bytes_in,
        bytes_out: past.bytes_out,
        sstables_in: past.sstables_in,
        sstables_out: past.sstables_out,
        kind: kind(past.kind).to_owned(),
    };
    dispatcher.database.compactions().past().into_iter().map(line).collect()
}

/// The most frequently used partitions since the start.
pub(super) fn top_partitions(dispatcher: &Dispatcher, tables: &[Arc<Table>]) -> Vec<TopPartitionLine> {
    let status = dispatcher.database.status();
    let mut lines = Vec::new();
    for table in tables {
        let is_it = |line: &&TableStatus| *line.keyspace == *table.keyspace && *line.table == *table.name;
        let Some(found) = status.tables.iter().find(is_it) else { continue };
        let types: Vec<_> = table.partition_key.iter().map(|column| &column.ty).collect();
        let tops = [(&found.top_reads, true), (&found.top_writes, false)];
        for (top, is_read) in
            tops.iter().flat_map(|(tops, is_read)| tops.iter().map(move |top| (top, *is_read)))
        {
            let line = TopPartitionLine {
                keyspace: found.keyspace.clone(),
                table: found.table.clone(),
                key: key_text(&types, &top.key),
                reads: if is_read { top.count } else { 0 },
                writes: if is_read { 0 } else { top.count },
            };
            lines.push(line);
        }
    }
    lines
}
