//! The server's metrics under Helenus's own names: `helenus_`, the subject, and last the unit.

use std::sync::atomic::Ordering;

use helenus_host::real::disk_space;

use super::super::exposition::{Kind, Page};
use super::page::{MetricsInput, SECONDS};
use super::tables::LATENCY_BOUNDS;

/// The bounds for syncs among those for latencies: 50 us to 5 s.
const SYNC: std::ops::RangeInclusive<usize> = 5..=20;

/// Writes these metrics.
pub(super) fn put(page: &mut Page, gathered: &MetricsInput<'_>) {
    put_info(page, gathered);
    put_clock(page, gathered);
    put_requests(page, gathered);
    put_memory(page, gathered);
    put_log(page, gathered);
    put_work(page, gathered);
}

fn put_info(page: &mut Page, gathered: &MetricsInput<'_>) {
    let MetricsInput { watched, status, state, .. } = gathered;
    let host_id = status.host_id.to_string();
    page.family("helenus_info", Kind::Gauge, "What runs here; always 1.");
    let labels = [
        ("version", watched.version),
        ("cluster", &watched.node.cluster_name),
        ("datacenter", &watched.node.datacenter),
        ("rack", &watched.node.rack),
        ("host_id", &host_id),
    ];
    page.sample("helenus_info", &labels, 1.0);
    page.family("helenus_log_lines_total", Kind::Counter, "Lines written to the log, by level.");
    for (level, lines) in state.log.counts() {
        page.sample("helenus_log_lines_total", &[("level", level.name())], lines as f64);
    }
    let audit = watched.audit.counts();
    page.family(
        "helenus_audit_lines_total",
        Kind::Counter,
        "Lines of the audit log, by what became of them.",
    );
    for (state, lines) in [("written", audit.written), ("dropped", audit.dropped), ("failed", audit.failed)] {
        page.sample("helenus_audit_lines_total", &[("state", state)], lines as f64);
    }
    let slow = "Statements that took longer than slow_query_log_timeout.";
    page.single("helenus_slow_statements_total", Kind::Counter, slow, state.slow.count() as f64);
    if let Some((free, all)) = watched.directory.as_deref().and_then(disk_space) {
        let help = "Bytes free for the server on the disk of its data.";
        page.single("helenus_disk_free_bytes", Kind::Gauge, help, free as f64);
        page.single("helenus_disk_size_bytes", Kind::Gauge, "Bytes of the disk of its data.", all as f64);
    }
}

fn put_clock(page: &mut Page, gathered: &MetricsInput<'_>) {
    let clock = &gathered.status.clock;
    let jumps = "Jumps of the machine's clock by more than an hour since the start.";
    page.single("helenus_clock_jumps_total", Kind::Counter, jumps, clock.jumps as f64);
    let ahead = "How far timestamps of writes are ahead of the machine's clock, which was set back.";
    page.single("helenus_clock_ahead_seconds", Kind::Gauge, ahead, clock.ahead_us() as f64 / 1e6);
    let refused = "Whether writes are refused because the machine's clock says too much.";
    page.single("helenus_clock_refused", Kind::Gauge, refused, f64::from(u8::from(clock.is_refused)));
}

fn put_requests(page: &mut Page, gathered: &MetricsInput<'_>) {
    let native = &gathered.native;
    let mut single = |name, kind, help, value: u64| page.single(name, kind, help, value as f64);
    single("helenus_connections", Kind::Gauge, "Clients connected.", native.connections);
    single("helenus_connections_accepted_total", Kind::Counter, "Connections accepted.", native.accepted);
    let refused = "Connections closed at once, for limits on their number.";
    single("helenus_connections_refused_total", Kind::Counter, refused, native.refused);
    let failed = [
        ("cql", Some(native.handshakes_failed)),
        ("rpc", gathered.rpc.as_ref().map(|rpc| rpc.handshakes_failed)),
        ("http", Some(gathered.state.handshakes_failed.load(Ordering::Relaxed))),
    ];
    let name = "helenus_tls_handshakes_failed_total";
    page.family(
        name,
        Kind::Counter,
        "Connections that a server of TLS closed because their handshake failed.",
    );
    for (interface, failed) in failed {
        if let Some(failed) = failed {
            page.sample(name, &[("interface", interface)], failed as f64);
        }
    }
    let mut single = |name, kind, help, value: u64| page.single(name, kind, help, value as f64);
    if let Some(rpc) = &gathered.rpc {
        let help = "Clients of the old RPC interface connected.";
        single("helenus_rpc_connections", Kind::Gauge, help, rpc.connections);
        single(
            "helenus_rpc_calls_total",
            Kind::Counter,
            "Calls of the old RPC interface answered.",
            rpc.calls,
        );
    }
    single(
        "helenus_requests_total",
        Kind::Counter,
        "Requests of the native protocol received.",
        native.requests,
    );
    let in_flight = "Bytes of requests that are not answered yet.";
    single("helenus_request_bytes_in_flight", Kind::Gauge, in_flight, native.in_flight_bytes.0);
    let most = "Bytes of such requests from which on connections are not read.";
    single("helenus_request_bytes_in_flight_max", Kind::Gauge, most, native.in_flight_bytes.1);
    let jobs = "Requests that waited for the disk, or took long, and ran on disk threads.";
    single("helenus_disk_requests_total", Kind::Counter, jobs, native.disk_jobs);
    single(
        "helenus_disk_requests_waiting",
        Kind::Gauge,
        "Requests that wait for a disk thread.",
        native.disk_queue,
    );
    single("helenus_disk_threads", Kind::Gauge, "Disk threads that were started.", native.disk_threads);
    let kinds = "Statements run: prepared, or from their text. Statements in batches are not among them.";
    page.family("helenus_statements_total", Kind::Counter, kinds);
    for (kind, count) in [("prepared", native.prepared), ("regular", native.regular)] {
        page.sample("helenus_statements_total", &[("kind", kind)], count as f64);
    }
    let errors = "Errors that clients were sent, by Cassandra's name of their code.";
    page.family("helenus_errors_total", Kind::Counter, errors);
    for (code, count) in &native.errors {
        page.sample("helenus_errors_total", &[("kind", code)], *count as f64);
    }
    if let Some(rpc) = &gathered.rpc {
        let errors = "Exceptions that clients of the old RPC interface were sent, by their names.";
        page.family("helenus_rpc_errors_total", Kind::Counter, errors);
        for (kind, count) in &rpc.errors {
            page.sample("helenus_rpc_errors_total", &[("kind", kind)], *count as f64);
        }
    }
}

fn put_memory(page: &mut Page, gathered: &MetricsInput<'_>) {
    let status = &gathered.status;
    let mut single = |name, kind, help, value: u64| page.single(name, kind, help, value as f64);
    single("helenus_memtable_bytes", Kind::Gauge, "Bytes of all memtables.", status.memtable_bytes);
    let most = "Bytes of memtables from which on writers wait; half of it is flushed.";
    single("helenus_memtable_bytes_max", Kind::Gauge, most, status.memtable_bytes_max);
    single("helenus_cache_bytes", Kind::Gauge, "Bytes in the block cache.", status.cache_bytes);
    single("helenus_cache_bytes_max", Kind::Gauge, "Bytes it may hold.", status.cache_bytes_max);
    single("helenus_cache_blocks", Kind::Gauge, "Blocks in it.", status.cache_blocks);
    let account = helenus_host::account::metrics();
    let waited = "Requests that waited for memory.";
    single("helenus_memory_waits_total", Kind::Counter, waited, account.waited);
    let refused = "Requests that were refused because there was no memory in time.";
    single("helenus_memory_refusals_total", Kind::Counter, refused, account.refused);
    let surplus = "Bytes of memory_limit that were given back but not held: not 0 is a bug of the server.";
    single("helenus_memory_surplus_bytes_total", Kind::Counter, surplus, account.surplus);
    let hits = "Blocks and index pages that reads by key found in the cache.";
    single("helenus_cache_hits_total", Kind::Counter, hits, status.work.cache_hits);
    let misses = "Blocks and index pages that reads by key took from files.";
    single("helenus_cache_misses_total", Kind::Counter, misses, status.work.cache_misses);
    let read = "Bytes that reads took from files.";
    single("helenus_read_bytes_total", Kind::Counter, read, status.work.bytes_read);
    let failed = "Reads that a damaged file ended, or one that the system did not give.";
    single("helenus_reads_failed_total", Kind::Counter, failed, status.work.reads_failed);
    let shares = crate::admin::shares(status, &account);
    let mut family = |name: &str, help: &str, value: &dyn Fn(&crate::admin::MemoryShare) -> Option<u64>| {
        page.family(name, Kind::Gauge, help);
        for share in &shares {
            if let Some(value) = value(share) {
                page.sample(name, &[("share", share.name.as_str())], value as f64);
            }
        }
    };
    family("helenus_memory_bytes", "Bytes held, by share of memory_limit.", &|share| Some(share.used));
    family("helenus_memory_bytes_max", "Bytes that a share may hold.", &|share| share.limit);
    family("helenus_memory_bytes_peak", "The most bytes that a share has held.", &|share| share.peak);
}

fn put_log(page: &mut Page, gathered: &MetricsInput<'_>) {
    let Some(log) = &gathered.status.log else { return };
    let mut single = |name, kind, help, value: u64| page.single(name, kind, help, value as f64);
    single("helenus_commitlog_segments", Kind::Gauge, "Segments of the commit log.", log.segments);
    single("helenus_commitlog_bytes", Kind::Gauge, "Bytes of their files.", log.bytes);
    let appended = "Bytes of writes appended to the commit log.";
    single("helenus_commitlog_appended_bytes_total", Kind::Counter, appended, log.appended_bytes);
    let unsynced = "Bytes appended that are not known to be on the disk.";
    single("helenus_commitlog_unsynced_bytes", Kind::Gauge, unsynced, log.unsynced_bytes);
    let failed = "Whether the commit log has failed and takes no more writes (1).";
    single("helenus_commitlog_failed", Kind::Gauge, failed, u64::from(log.failure.is_some()));
    page.family("helenus_commitlog_sync_seconds", Kind::Histogram, "How long syncs of the commit log take.");
    page.histogram("helenus_commitlog_sync_seconds", &[], (&log.syncs, &LATENCY_BOUNDS[SYNC], SECONDS));
}

fn put_work(page: &mut Page, gathered: &MetricsInput<'_>) {
    let (status, work) = (&gathered.status, &gathered.status.work);
    let mut single = |name, kind, help, value: u64| page.single(name, kind, help, value as f64);
    single("helenus_flushes_total", Kind::Counter, "Memtables flushed.", work.flushes);
    single("helenus_flush_failures_total", Kind::Counter, "Flushes that failed.", work.flush_failures);
    single(
        "helenus_flushed_bytes_total",
        Kind::Counter,
        "Bytes of files that flushes wrote.",
        work.flushed_bytes,
    );
    let running = "Compactions and builds of indexes under way.";
    single("helenus_compactions_running", Kind::Gauge, running, status.compactions.len() as u64);
    let pending = status.tables.iter().map(|table| table.pending_compactions).sum();
    single("helenus_compactions_pending", Kind::Gauge, "Compactions that are due, about.", pending);
    let left = status.compactions.iter().map(|task| task.bytes_total.saturating_sub(task.bytes_done)).sum();
    let help = "Bytes that compactions under way have yet to read, before compression.";
    single("helenus_compaction_left_bytes", Kind::Gauge, help, left);
    single("helenus_compactions_total", Kind::Counter, "Compactions that ended well.", work.compactions);
    let failures = "Compactions that failed.";
    single("helenus_compaction_failures_total", Kind::Counter, failures, work.compaction_failures);
    let read = "Bytes that compactions read from files.";
    single("helenus_compaction_read_bytes_total", Kind::Counter, read, work.compaction_bytes_read);
    let written = "Bytes of files that compactions wrote.";
    single("helenus_compaction_written_bytes_total", Kind::Counter, written, work.compaction_bytes_written);
}
