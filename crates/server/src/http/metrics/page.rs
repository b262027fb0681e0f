//! The page of all metrics.

use helenus_engine::{Distribution, Distributions, Period, Status, TableStatus, is_system_keyspace};
use helenus_host::real::{ProcessUsage, process_usage};

use super::super::exposition::{Kind, Page};
use super::super::state::{HttpState, Stage, Watched};
use super::{cassandra, own, tables};
use crate::native::NativeMetrics;
use crate::rpc::RpcMetrics;

/// Nanoseconds in a second: values are kept in nanoseconds and shown in seconds.
pub(super) const SECONDS: f64 = 1e9;

/// All metrics at one moment.
pub(super) struct MetricsInput<'a> {
    pub state: &'a HttpState,
    pub watched: &'a Watched,
    pub status: Status,
    pub native: NativeMetrics,
    /// Metrics of the old RPC interface, if it is served.
    pub rpc: Option<RpcMetrics>,
    /// The distributions of each table of `status`, in its order, since the start.
    pub distributions: Vec<Distributions>,
    /// The same for recent requests.
    pub recent: Vec<Distributions>,
    /// `http_system_tables`: whether the system's tables have samples of their own.
    pub shows_system: bool,
}

impl MetricsInput<'_> {
    /// The tables that have samples of their own.
    pub fn tables(&self) -> impl Iterator<Item = &TableStatus> {
        self.status.tables.iter().filter(|table| self.shows(table))
    }

    /// The same with what `of` has for them: one element for each table of `status`.
    pub fn tables_with<'a>(
        &'a self,
        of: &'a [Distributions],
    ) -> impl Iterator<Item = (&'a TableStatus, &'a Distributions)> {
        self.status.tables.iter().zip(of).filter(|(table, _)| self.shows(table))
    }

    fn shows(&self, table: &TableStatus) -> bool {
        self.shows_system || !is_system_keyspace(&table.keyspace)
    }

    /// The distribution of recent requests over all user and system tables. The storage of indexes is left out, because
    /// its reads and writes are part of others.
    pub fn all_tables(&self, of: fn(&Distributions) -> &Distribution) -> Distribution {
        let mut all = Distribution::default();
        for (table, found) in self.status.tables.iter().zip(&self.recent) {
            if !table.is_index {
                all.add(of(found));
            }
        }
        all
    }

    /// The number of ERROR answers of a kind.
    pub fn errors(&self, code: &str) -> f64 {
        self.native.errors.iter().find(|(name, _)| *name == code).map_or(0.0, |(_, count)| *count as f64)
    }
}

/// Returns the page in Prometheus's text format. With `shows_system` the system's tables have samples of their own.
pub(in super::super) fn metrics(state: &HttpState, shows_system: bool) -> String {
    let mut page = Page::default();
    put_process(&mut page, &process_usage());
    let stage = state.stage();
    let up = matches!(stage, Stage::Open(_));
    page.single(
        "helenus_ready",
        Kind::Gauge,
        "Whether clients are served (1) or not yet, or no more (0).",
        f64::from(u8::from(up && state.policies.verdict() < crate::policy::Verdict::StopServing)),
    );
    let watched = match stage {
        Stage::Open(watched) | Stage::Stopping(Some(watched)) => watched,
        Stage::Opening(_) | Stage::Stopping(None) => return page.finish(),
    };
    let status = watched.database.status();
    let of_span = |span| status.tables.iter().map(|table| table.counters.distributions(span)).collect();
    let (distributions, recent) = (of_span(Period::All), of_span(watched.database.recently()));
    let native = watched.native.figures();
    let rpc = watched.rpc.as_ref().map(|rpc| rpc.figures());
    let gathered =
        MetricsInput { state, watched: &watched, status, native, rpc, distributions, recent, shows_system };
    own::put(&mut page, &gathered);
    tables::put(&mut page, &gathered);
    cassandra::put(&mut page, &gathered);
    page.finish()
}

/// Writes the metrics of the process, under the names of Prometheus's own libraries.
fn put_process(page: &mut Page, usage: &ProcessUsage) {
    let cpu = "Processor time used, in seconds.";
    page.single("process_cpu_seconds_total", Kind::Counter, cpu, usage.cpu_s);
    let resident = "Memory in RAM, in bytes.";
    page.single("process_resident_memory_bytes", Kind::Gauge, resident, usage.resident_bytes as f64);
    let most = "Greatest memory in RAM so far, in bytes.";
    page.single("process_resident_memory_max_bytes", Kind::Gauge, most, usage.resident_bytes_max as f64);
    page.single("process_open_fds", Kind::Gauge, "Files and sockets open.", usage.open_files as f64);
    let started = "Start of the process, in seconds since the epoch.";
    page.single("process_start_time_seconds", Kind::Gauge, started, usage.started_s);
}
