//! Measures the usage of the data's disk every half minute, for the guardrail `data_disk_usage_percentage`.
//!
//! Each change of the state is a line in the log, and a state that stays above a threshold another one every half hour
//! (`DiskUsageMonitor`; its interval and that of its lines).

use helenus_cql::LocalBackend;
use helenus_cql::guardrails::{DiskBytes, DiskState};
use helenus_host::real::disk_space;
use helenus_host::{Disk, Host, Next, TaskHandle, Worker};
use helenus_server::log::{Entry, Level, Log};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const INTERVAL_NS: u64 = 30_000_000_000;
const SAID_AGAIN_NS: u64 = 30 * 60 * 1_000_000_000;

/// Measures until dropped.
pub struct DiskWatch {
    gauge: Arc<Gauge>,
    is_stopping: Arc<AtomicBool>,
    task: Arc<dyn TaskHandle>,
}

struct Gauge {
    host: Host,
    local: Arc<LocalBackend>,
    /// The folder of the tables.
    directory: PathBuf,
    log: Arc<Log>,
    /// The last state, and when the log last said that it is above a threshold.
    said: Mutex<(DiskState, u64)>,
}

impl DiskWatch {
    /// Measures once, and then in the background. `directory`: the folder of the tables.
    pub fn start(host: &Host, local: &Arc<LocalBackend>, directory: PathBuf, log: &Arc<Log>) -> DiskWatch {
        let gauge = Arc::new(Gauge {
            host: host.clone(),
            local: Arc::clone(local),
            directory,
            log: Arc::clone(log),
            said: Mutex::default(),
        });
        gauge.measure();
        let is_stopping = Arc::<AtomicBool>::default();
        let watcher =
            Watcher { gauge: Arc::clone(&gauge), is_stopping: Arc::clone(&is_stopping), has_begun: false };
        DiskWatch { gauge, is_stopping, task: host.tasks.start("disk-usage", Box::new(watcher)) }
    }

    /// Measures now, by the guardrails that are in force now.
    pub fn measure(&self) {
        self.gauge.measure();
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
    }
}

struct Watcher {
    gauge: Arc<Gauge>,
    is_stopping: Arc<AtomicBool>,
    has_begun: bool,
}

impl Worker for Watcher {
    fn step(&mut self) -> Next {
        if self.is_stopping.load(Ordering::Acquire) {
            return Next::Done;
        }
        if std::mem::replace(&mut self.has_begun, true) {
            self.gauge.measure();
        }
        Next::WaitAtMost(INTERVAL_NS)
    }
}

impl Gauge {
    fn measure(&self) {
        // Held to the end, so that of two measurements the later one counts.
        let mut said = self.said.lock();
        let guardrails = self.local.guardrails().filter(|guardrails| guardrails.watches_disk());
        let (state, line) = match (&guardrails, disk_space(&self.directory)) {
            (Some(guardrails), Some((free, _))) => {
                let used = bytes_below(&*self.host.disk, &self.directory);
                let memtables = self.local.database().status().memtable_bytes;
                guardrails.disk_state(DiskBytes { used, free, memtables })
            }
            _ => (DiskState::NotAvailable, None),
        };
        self.local.set_disk_state(state);
        let now_ns = self.host.clock.monotonic_ns();
        let (before, said_ns) = *said;
        let is_due = state != before || now_ns.saturating_sub(said_ns) >= SAID_AGAIN_NS;
        match line {
            Some(line) if is_due => {
                let level = if state == DiskState::Full { Level::Error } else { Level::Warn };
                self.log.write(level, &Entry::new("guardrail", line).with("state", state.name()));
                *said = (state, now_ns);
            }
            None if matches!(before, DiskState::Stuffed | DiskState::Full) => {
                let text = "the usage of the data's disk is below the thresholds again";
                self.log.write(Level::Info, &Entry::new("guardrail", text).with("state", state.name()));
                *said = (state, now_ns);
            }
            _ => said.0 = state,
        }
    }
}

/// Bytes of all files in a folder and below. Those that go meanwhile count nothing.
fn bytes_below(disk: &dyn Disk, folder: &Path) -> u64 {
    let entries = disk.list(folder).unwrap_or_default();
    let bytes = entries.iter().map(|entry| match (disk.is_link(entry), disk.is_dir(entry)) {
        (true, _) => 0,
        (false, true) => bytes_below(disk, entry),
        (false, false) => disk.open(entry).and_then(|file| file.size()).unwrap_or(0),
    });
    bytes.sum()
}
