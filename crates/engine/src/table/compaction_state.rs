//! The compaction state of a table: which SSTables are being compacted, which files are being written, and the
//! strategies' history.
//!
//! Its lock is held only briefly, and never while another lock is taken.

use super::View;
use super::compaction_failures::{CompactionFailures, LeftOut};
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The compaction state of one table.
#[derive(Default)]
pub(crate) struct CompactionState {
    inner: Mutex<Inner>,
    /// The number of changes of the set of SSTables.
    revision: AtomicU64,
    /// The number of times that the table was emptied. A compaction of an earlier epoch has nothing to replace.
    epoch: AtomicU64,
    /// Whether a compaction failed to remove its files.
    left_files: AtomicBool,
    /// Whether automatic compaction is turned off, until it is turned on again or the server restarts.
    is_resting: AtomicBool,
}

#[derive(Default)]
struct Inner {
    /// SSTables in a compaction.
    busy: BTreeSet<Descriptor>,
    /// The same for each compaction alone.
    inputs: Vec<BTreeSet<Descriptor>>,
    failures: CompactionFailures,
    /// Transaction logs of running compactions, and the SSTables that each has begun to write.
    running: BTreeMap<PathBuf, BTreeSet<Descriptor>>,
    history: History,
    /// Mean size of flushed SSTables; newer ones count more.
    flush_mean: Option<f64>,
    /// Requested major compactions that are not finished.
    majors: u32,
    /// The last look at which the strategy had no compaction that is small enough to interrupt a long one.
    no_small_at: Option<SmallLook>,
    /// Revision and monotonic time of the last check that found nothing to do.
    idle_at: Option<(u64, u64)>,
    pending: u64,
}

/// Levels of levelled compaction (`LeveledGenerations.MAX_LEVEL_COUNT`).
pub const LEVELS: usize = 9;

/// The state that strategies keep from round to round, in memory only. A restart resets it, as in Cassandra.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Observed size of flushed SSTables, bytes; 0 before the first flush.
    pub flush_bytes: u64,
    /// The time of the last check for fully expired SSTables, milliseconds.
    pub expired_checked_ms: i64,
    /// For each level, the rounds since the last compaction into it.
    pub rounds_without: [u32; LEVELS],
}

/// The outcome of one round of a strategy.
pub(crate) struct Round {
    /// Whether there was nothing to compact.
    pub(crate) is_idle: bool,
    /// Estimated number of all compactions that are due.
    pub(crate) pending: u64,
    /// Whether fully expired SSTables were checked for.
    pub(crate) expired_checked: bool,
    /// The output level of a levelled compaction.
    pub(crate) into_level: Option<usize>,
}

/// A look for a small compaction that found none.
#[derive(Clone, Copy)]
pub(crate) struct SmallLook {
    /// The revision of the set of SSTables before it.
    pub(crate) revision: u64,
    /// The most bytes that were allowed.
    pub(crate) bytes_max: u64,
    /// The monotonic time.
    pub(crate) at_ns: u64,
}

/// SSTables that are reserved for one compaction.
pub(crate) struct Claim {
    pub(crate) epoch: u64,
    pub(crate) inputs: Vec<Arc<SsTable>>,
    pub(crate) is_major: bool,
}

impl CompactionState {
    /// Must be called after the set of SSTables has changed.
    pub(crate) fn changed(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// Must be called together with the change that empties the table, while no other change is possible.
    pub(crate) fn emptied(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.with_failures(|failures| *failures = CompactionFailures::default());
        self.changed();
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Records the size of a flushed SSTable in a moving mean over about a thousand flushes
    /// (`ExpMovingAverage.decayBy1000`). The value that strategies use, in whole MiB, follows only when it is off by
    /// half.
    pub(crate) fn flushed(&self, bytes: u64) {
        const ALPHA: f64 = 0.0046;
        let mut inner = self.inner.lock();
        let mean = inner.flush_mean.map_or(bytes as f64, |mean| mean + ALPHA * (bytes as f64 - mean));
        inner.flush_mean = Some(mean);
        let used = inner.history.flush_bytes as f64;
        if used == 0.0 || (1.0 - used / mean).abs() > 0.5 {
            inner.history.flush_bytes = (mean / f64::from(1 << 20)).ceil() as u64 * (1 << 20);
        }
    }

    /// Claims SSTables for a compaction; `None` if one of them is gone or taken, or if a major compaction is requested.
    pub(crate) fn claim(&self, view: &View, ids: &[Descriptor], is_major: bool) -> Option<Claim> {
        let epoch = self.epoch();
        let sstables: HashMap<_, _> =
            view.sstables.iter().map(|sstable| (sstable.descriptor(), sstable)).collect();
        let find = |id: &Descriptor| sstables.get(id).map(|sstable| Arc::clone(sstable));
        let inputs: Vec<_> = ids.iter().map(find).collect::<Option<_>>()?;
        let mut inner = self.inner.lock();
        let taken = |id: &Descriptor| inner.busy.contains(id) || inner.failures.is_damaged(id);
        if ids.is_empty() || ids.iter().any(taken) || (inner.majors > 0 && !is_major) {
            return None;
        }
        inner.busy.extend(ids);
        inner.inputs.push(ids.iter().copied().collect());
        Some(Claim { epoch, inputs, is_major })
    }

    /// Releases SSTables, of a whole compaction or of a part of one that goes on with fewer.
    pub(crate) fn release(&self, inputs: &[Arc<SsTable>]) {
        let Inner { busy, inputs: of_compactions, .. } = &mut *self.inner.lock();
        for input in inputs {
            busy.remove(input.descriptor());
            of_compactions.iter_mut().for_each(|of| _ = of.remove(input.descriptor()));
        }
        of_compactions.retain(|of| !of.is_empty());
    }

    /// The SSTables of each running compaction. Asked after a view was read, it misses only compactions that have ended
    /// before and, if the revision is still the same, have changed nothing.
    pub(crate) fn inputs(&self) -> Vec<BTreeSet<Descriptor>> {
        self.inner.lock().inputs.clone()
    }

    /// Whether a compaction may go on: its inputs are still there, and no major compaction is waiting for it.
    pub(crate) fn may_continue(&self, claim: &Claim) -> bool {
        self.epoch() == claim.epoch && (claim.is_major || self.inner.lock().majors == 0)
    }

    /// Registers a transaction, before its log is created.
    pub(crate) fn begin(&self, log: &Path) {
        self.inner.lock().running.insert(log.to_owned(), BTreeSet::new());
    }

    /// Registers an SSTable that is about to be created in a transaction.
    pub(crate) fn add_output(&self, log: &Path, descriptor: Descriptor) {
        if let Some(outputs) = self.inner.lock().running.get_mut(log) {
            outputs.insert(descriptor);
        }
    }

    /// Removes a transaction, after its SSTables were added to the view or removed. With `left`, files remain, and the
    /// next change of the set removes them.
    pub(crate) fn end(&self, log: &Path, left: bool) {
        if left {
            self.left_files.store(true, Ordering::Release);
        }
        self.inner.lock().running.remove(log);
    }

    /// Whether a log belongs to a running compaction.
    pub(crate) fn is_running(&self, log: &Path) -> bool {
        self.inner.lock().running.contains_key(log)
    }

    /// Whether a compaction is running, which may have files of its own or begin to write some.
    pub(crate) fn has_running(&self) -> bool {
        !self.inner.lock().running.is_empty()
    }

    /// SSTables that running compactions have begun to write.
    pub(crate) fn outputs(&self) -> BTreeSet<Descriptor> {
        self.inner.lock().running.values().flatten().copied().collect()
    }

    /// Whether a compaction has left files since the last call.
    pub(crate) fn take_left_files(&self) -> bool {
        self.left_files.swap(false, Ordering::AcqRel)
    }

    /// Turns automatic compaction of the table off or on.
    pub(crate) fn rest(&self, is_resting: bool) {
        self.is_resting.store(is_resting, Ordering::Release);
        self.changed();
    }

    /// Whether automatic compaction is turned off.
    pub(crate) fn is_automatic_off(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }

    /// Whether the table should be checked: something changed since the last check, or `often_ns` have passed.
    pub(crate) fn is_due(&self, now_ns: u64, often_ns: u64) -> bool {
        let inner = self.inner.lock();
        let changed = match inner.idle_at {
            None => true,
            Some((revision, at_ns)) => {
                revision != self.revision.load(Ordering::Acquire) || now_ns >= at_ns.saturating_add(often_ns)
            }
        };
        changed && inner.majors == 0 && !inner.failures.is_paused(now_ns, self.revision())
    }

    /// Whether the strategy may have a compaction of at most so many bytes, which is small enough to interrupt a long one.
    pub(crate) fn may_have_small(&self, bytes_max: u64, (now_ns, often_ns): (u64, u64)) -> bool {
        self.inner.lock().no_small_at.is_none_or(|look| {
            let is_old = now_ns >= look.at_ns.saturating_add(often_ns);
            is_old || look.revision != self.revision() || look.bytes_max < bytes_max
        })
    }

    /// Records that the strategy has none.
    pub(crate) fn note_no_small(&self, look: SmallLook) {
        self.inner.lock().no_small_at = Some(look);
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// SSTables that no strategy may choose now, and the strategies' history.
    pub(crate) fn busy_and_history(&self, now_ns: u64) -> (BTreeSet<Descriptor>, History) {
        let inner = self.inner.lock();
        let mut busy = inner.busy.clone();
        busy.extend(inner.failures.left_out(now_ns));
        (busy, inner.history.clone())
    }

    /// Records a round of the strategy: `revision` is from before it, `now_ns` and `now_ms` are the time.
    pub(crate) fn note_round(&self, round: &Round, (revision, now_ns, now_ms): (u64, u64, i64)) {
        let mut inner = self.inner.lock();
        inner.pending = round.pending;
        inner.idle_at = round.is_idle.then_some((revision, now_ns));
        if round.expired_checked {
            inner.history.expired_checked_ms = now_ms;
        }
        if let Some(into) = round.into_level {
            inner.history.rounds_without.iter_mut().for_each(|rounds| *rounds = rounds.saturating_add(1));
            if let Some(rounds) = inner.history.rounds_without.get_mut(into) {
                *rounds = 0;
            }
        }
    }

    /// Calls `choose` for a major compaction; `None` while any SSTable is busy.
    pub(crate) fn when_free<T>(
        &self,
        choose: impl FnOnce(&BTreeSet<Descriptor>, &History) -> T,
    ) -> Option<T> {
        let (damaged, history) = {
            let inner = self.inner.lock();
            if !inner.busy.is_empty() {
                return None;
            }
            (inner.failures.damaged(), inner.history.clone())
        };
        Some(choose(&damaged, &history))
    }

    /// Counts a major compaction that is requested (`asked`) or finished.
    pub(crate) fn count_major(&self, asked: bool) {
        let mut inner = self.inner.lock();
        inner.majors = if asked { inner.majors + 1 } else { inner.majors.saturating_sub(1) };
        drop(inner);
        self.changed();
    }

    /// Changes what is known of failed compactions. The table is checked again after it.
    pub(crate) fn with_failures<T>(&self, change: impl FnOnce(&mut CompactionFailures) -> T) -> T {
        let mut inner = self.inner.lock();
        inner.idle_at = None;
        inner.no_small_at = None;
        change(&mut inner.failures)
    }

    /// Has everything that failed tried again at once, but for damaged SSTables.
    pub(crate) fn try_again(&self) {
        self.with_failures(CompactionFailures::try_again);
    }

    /// The bytes of free space for which the table's compactions wait, if they do.
    pub(crate) fn room_wanted(&self) -> Option<u64> {
        self.inner.lock().failures.room_wanted()
    }

    /// The nanoseconds until something that has failed is tried again; `None` if nothing has failed.
    pub(crate) fn next_attempt_ns(&self, now_ns: u64) -> Option<u64> {
        self.inner.lock().failures.next_attempt_ns(now_ns)
    }

    /// The SSTables that are not compacted because a compaction of them failed.
    pub(crate) fn left_out(&self, now_ns: u64) -> Vec<LeftOut> {
        self.inner.lock().failures.list(now_ns)
    }

    /// The estimated number of compactions that are due.
    pub(crate) fn pending(&self) -> u64 {
        self.inner.lock().pending
    }
}
