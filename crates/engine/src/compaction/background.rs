//! The state that all compactions of a database share. The workers are in `worker`.

use super::failing::CompactionTrouble;
use super::history::PastCompactions;
use super::progress::{CompactionStatus, Progress};
use super::purge::PurgeOptions;
use super::request::CompactionRequest;
use super::space::{OtherWrites, Space};
use super::throttle::Throttle;
use super::worker::Compactor;
use crate::journal::Event;
use crate::table::Storage;
use helenus_host::account;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The compaction settings of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Concurrent compactions, at least one.
    pub threads: usize,
    /// Bytes per second that all of them read together; 0 for no limit.
    pub bytes_per_s: u64,
    /// Whether tables are compacted automatically. Otherwise only requested compactions run.
    pub automatic: bool,
    /// How long tombstones are kept.
    pub purge: PurgeOptions,
    /// Whether `gc_grace_seconds` is obeyed from the start until `Compactions::keep_tombstones(false)`: while another
    /// server is sent what this one has.
    pub keeps_tombstones: bool,
}

impl Default for CompactionSettings {
    /// One thread, 64 MiB/s.
    fn default() -> CompactionSettings {
        CompactionSettings {
            threads: 1,
            bytes_per_s: 64 << 20,
            automatic: true,
            purge: PurgeOptions::default(),
            keeps_tombstones: false,
        }
    }
}

/// The state that all compactions of a database share.
pub struct Compactions {
    pub(super) storage: Arc<Storage>,
    pub(super) settings: CompactionSettings,
    pub(super) throttle: Throttle,
    pub(super) space: Space,
    /// Whether `gc_grace_seconds` is obeyed for now, whatever the settings say.
    pub(super) keeps_tombstones: AtomicBool,
    pub(super) past: PastCompactions,
    pub(super) running: Mutex<Vec<Arc<Progress>>>,
    pub(super) requests: Mutex<VecDeque<Arc<CompactionRequest>>>,
    /// The last failure, cleared by the next compaction that succeeds; shown by `status`.
    pub(super) failure: Mutex<Option<String>>,
    /// Whether it was told that SSTables take much memory.
    pub(super) told_memory: AtomicBool,
}

impl Compactions {
    pub(crate) fn new(
        settings: CompactionSettings,
        storage: Arc<Storage>,
        others: OtherWrites,
    ) -> Compactions {
        Compactions {
            storage,
            settings,
            throttle: Throttle::new(settings.bytes_per_s),
            space: Space::new(others),
            keeps_tombstones: AtomicBool::new(settings.keeps_tombstones),
            past: PastCompactions::default(),
            running: Mutex::default(),
            requests: Mutex::default(),
            failure: Mutex::default(),
            told_memory: AtomicBool::new(false),
        }
    }

    /// Starts the workers.
    pub(crate) fn start(this: &Arc<Compactions>) {
        let worker = |number: usize| {
            let compactor = Compactor::new(Arc::downgrade(this));
            this.storage.host.tasks.start(&format!("compactor-{number}"), Box::new(compactor))
        };
        this.storage.compactors.set((0..this.threads()).map(worker).collect());
    }

    /// The running compactions.
    pub(crate) fn running(&self) -> Vec<CompactionStatus> {
        self.running.lock().iter().map(|progress| progress.status()).collect()
    }

    /// The tables whose compactions fail or wait for space, and the SSTables that are left out.
    pub fn troubles(&self) -> Vec<CompactionTrouble> {
        let now_ns = self.storage.host.clock.monotonic_ns();
        let tables = self.storage.tables.load();
        let mut troubles: Vec<_> =
            tables.values().filter_map(|store| CompactionTrouble::of(&self.storage, store, now_ns)).collect();
        troubles.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        troubles
    }

    /// Tells once when open SSTables keep more in memory than counts on the account. The workers call it, because they
    /// are woken whenever a table gets SSTables.
    pub(super) fn watch_memory(&self) {
        let (bytes, counted_max) = account::standing();
        let was_told = self.told_memory.load(Ordering::Relaxed);
        // The number moves a little with each flush.
        let is_over = bytes > if was_told { counted_max - counted_max / 8 } else { counted_max };
        self.told_memory.store(is_over, Ordering::Relaxed);
        if is_over && !was_told {
            self.storage.journal.note(&Event::SsTableMemory { bytes, counted_max });
        }
    }

    /// Counts a compaction that was reduced, by this many SSTables, for want of space.
    pub(super) fn note_reduced(&self, left_out: usize) {
        if left_out > 0 {
            self.storage.work.compactions_reduced.fetch_add(1, Ordering::Relaxed);
            self.storage.work.compaction_sstables_left_out.fetch_add(left_out as u64, Ordering::Relaxed);
        }
    }

    /// The error of the last compaction, if it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }
}
