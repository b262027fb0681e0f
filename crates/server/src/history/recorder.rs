//! Takes a sample of the server's figures each hour, and keeps those of the last three months.

use std::path::PathBuf;

use helenus_engine::{Database, Distribution};
use helenus_host::account;
use helenus_host::real::{cores, disk_space, process_usage};
use parking_lot::Mutex;

use super::file::HistoryFile;
use super::sample::Sample;

/// Seconds between two samples.
const EVERY_S: i64 = 60 * 60;
/// The number of samples kept: of 90 days.
const SAMPLES_MAX: usize = 90 * 24;
/// The latencies of the engine are kept in nanoseconds.
const MICROSECOND_NS: u64 = 1000;

/// The history of a server.
pub(crate) struct Recorder {
    /// `None` in memory.
    file: Option<HistoryFile>,
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    samples: Vec<Sample>,
    before: Option<Counters>,
}

/// Counters of the process, whose differences are the rates, and the bytes of the tables.
#[derive(Clone, Copy)]
struct Counters {
    time_ns: u64,
    cpu_s: f64,
    reads: u64,
    writes: u64,
    refused: u64,
    data_bytes: u64,
}

impl Recorder {
    /// Reads what was kept.
    pub(crate) fn new(database: &Database, directory: Option<PathBuf>) -> Recorder {
        let file = directory.clone().map(|path| HistoryFile::new(database.host().disk.clone(), path));
        let samples = file.as_ref().map(HistoryFile::read).unwrap_or_default();
        Recorder { file, directory, state: Mutex::new(State { samples, before: None }) }
    }

    /// Takes a sample if the last one is an hour old. A disk that fails loses the sample, and nothing else.
    pub(crate) fn record_when_due(&self, database: &Database) {
        let now_s = database.wall_us() / 1_000_000;
        let mut state = self.state.lock();
        // A clock that was set back does not stop the history for long.
        let is_due = state.samples.last().is_none_or(|last| (now_s - last.time_s).abs() >= EVERY_S);
        if state.before.is_none() {
            state.before = Some(gather(database).0);
        }
        if !is_due {
            return;
        }
        let (sample, now) = self.take(database, state.before);
        state.before = Some(now);
        state.samples.push(sample);
        let surplus = state.samples.len().saturating_sub(SAMPLES_MAX);
        state.samples.drain(..surplus);
        if let Some(file) = &self.file {
            let _the_next_one_writes_all = file.write(&state.samples);
        }
    }

    /// All samples, and one of this moment as the last.
    pub(crate) fn with_present(&self, database: &Database) -> Vec<Sample> {
        let state = self.state.lock();
        let (present, _) = self.take(database, state.before);
        let mut samples = state.samples.clone();
        samples.push(present);
        samples
    }

    /// A sample of this moment with its rates since `before`, and the counters of this moment.
    fn take(&self, database: &Database, before: Option<Counters>) -> (Sample, Counters) {
        let (now, reads, writes) = gather(database);
        let elapsed_s = before.map(|before| now.time_ns.saturating_sub(before.time_ns) as f64 / 1e9);
        let rate = |of: fn(&Counters) -> f64| {
            let (before, elapsed_s) = (before?, elapsed_s.filter(|elapsed_s| *elapsed_s >= 1.0)?);
            Some((of(&now) - of(&before)).max(0.0) / elapsed_s)
        };
        let (free, all) = self.directory.as_deref().and_then(disk_space).unwrap_or_default();
        let sample = Sample {
            time_s: database.wall_us() / 1_000_000,
            data_bytes: now.data_bytes,
            disk_free_bytes: free,
            disk_bytes: all,
            cores: u32::try_from(cores()).unwrap_or(u32::MAX),
            cores_busy: rate(|counters| counters.cpu_s),
            resident_bytes: process_usage().resident_bytes,
            refused_per_s: rate(|counters| counters.refused as f64),
            reads_per_s: rate(|counters| counters.reads as f64),
            writes_per_s: rate(|counters| counters.writes as f64),
            read_p99_us: reads.percentile(0.99) / MICROSECOND_NS,
            write_p99_us: writes.percentile(0.99) / MICROSECOND_NS,
        };
        (sample, now)
    }
}

/// The counters, and the distributions of recent reads by key and of recent writes. The storage of indexes is left out of both:
/// its reads and writes are part of others.
fn gather(database: &Database) -> (Counters, Distribution, Distribution) {
    let (status, recent) = (database.status(), database.recently());
    let mut counters = Counters {
        time_ns: database.host().clock.monotonic_ns(),
        cpu_s: process_usage().cpu_s,
        reads: 0,
        writes: 0,
        refused: account::metrics().refused,
        data_bytes: status.tables.iter().map(|table| table.disk_bytes).sum(),
    };
    let (mut reads, mut writes) = (Distribution::default(), Distribution::default());
    for table in status.tables.iter().filter(|table| !table.is_index) {
        let found = table.counters.distributions(recent);
        counters.reads += found.reads.count + found.scans.count;
        counters.writes += found.writes.count;
        reads.add(&found.reads);
        writes.add(&found.writes);
    }
    (counters, reads, writes)
}
