//! What a table's storage keeps about its compactions: which SSTables are in one, which files are being written, what
//! strategies remember.
//!
//! Its lock is held for moments and never while another is taken.

use super::choose::{Decision, History, Situation};
use crate::table::View;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One table's part in compaction.
#[derive(Default)]
pub(crate) struct CompactionState {
    inner: Mutex<Inner>,
    /// Counts changes of the set of SSTables.
    revision: AtomicU64,
    /// Counts the times that everything was thrown away: a compaction begun before has nothing to replace.
    epoch: AtomicU64,
    /// A compaction could not remove what it had to.
    left_files: AtomicBool,
    /// Strategies leave the table alone, until somebody says otherwise or the server starts again.
    is_resting: AtomicBool,
}

#[derive(Default)]
struct Inner {
    /// In a compaction.
    busy: BTreeSet<Descriptor>,
    /// Found damaged by a compaction: left alone until a restart.
    damaged: BTreeSet<Descriptor>,
    /// Transaction logs of compactions under way, and the SSTables that each has begun.
    running: BTreeMap<PathBuf, BTreeSet<Descriptor>>,
    history: History,
    /// Mean size of flushed SSTables, newer ones counting more.
    flush_mean: Option<f64>,
    /// Compactions of everything that were asked for and are not done.
    majors: u32,
    /// After a failure: not before this, by the monotonic clock.
    retry_ns: u64,
    /// Revision and time of the last look that found nothing to do.
    idle_at: Option<(u64, u64)>,
    pending: u64,
}

/// SSTables that one compaction has for itself.
pub(crate) struct Claim {
    pub(crate) epoch: u64,
    pub(crate) inputs: Vec<Arc<SsTable>>,
    pub(crate) is_major: bool,
}

impl CompactionState {
    /// To be called after the set of SSTables has changed.
    pub(crate) fn changed(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// To be called with the change that empties the table, by whoever may change the set of SSTables.
    pub(crate) fn emptied(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.changed();
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes the size of a flushed SSTable: the mean moves by a part that makes a thousand flushes count
    /// (`ExpMovingAverage.decayBy1000`), and what strategies use of it, whole MiB, only follows when it is off by half.
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

    /// Takes SSTables for a compaction; `None` when one of them is gone or taken, or everything is about to be compacted.
    pub(crate) fn claim(&self, view: &View, ids: &[Descriptor], is_major: bool) -> Option<Claim> {
        let epoch = self.epoch();
        let find = |id: &Descriptor| view.sstables.iter().find(|sstable| sstable.descriptor() == id).cloned();
        let inputs: Vec<_> = ids.iter().map(find).collect::<Option<_>>()?;
        let mut inner = self.inner.lock();
        let taken = |id: &Descriptor| inner.busy.contains(id) || inner.damaged.contains(id);
        if ids.is_empty() || ids.iter().any(taken) || (inner.majors > 0 && !is_major) {
            return None;
        }
        inner.busy.extend(ids);
        Some(Claim { epoch, inputs, is_major })
    }

    /// Gives SSTables back.
    pub(crate) fn release(&self, inputs: &[Arc<SsTable>]) {
        let mut inner = self.inner.lock();
        for input in inputs {
            inner.busy.remove(input.descriptor());
        }
    }

    /// Whether a compaction goes on: what it reads is still there, and it is not in the way of one of everything.
    pub(crate) fn goes_on(&self, claim: &Claim) -> bool {
        self.epoch() == claim.epoch && (claim.is_major || self.inner.lock().majors == 0)
    }

    /// Says that a transaction is under way, before its log is created.
    pub(crate) fn begin(&self, log: &Path) {
        self.inner.lock().running.insert(log.to_owned(), BTreeSet::new());
    }

    /// Says that an SSTable is about to be created under a log.
    pub(crate) fn add_output(&self, log: &Path, descriptor: Descriptor) {
        if let Some(outputs) = self.inner.lock().running.get_mut(log) {
            outputs.insert(descriptor);
        }
    }

    /// Says that a transaction is over. Only after its SSTables are in the view or removed; or `left`, and then whoever next
    /// changes the set tidies up.
    pub(crate) fn end(&self, log: &Path, left: bool) {
        if left {
            self.left_files.store(true, Ordering::Release);
        }
        self.inner.lock().running.remove(log);
    }

    /// Whether a log is that of a compaction under way.
    pub(crate) fn is_running(&self, log: &Path) -> bool {
        self.inner.lock().running.contains_key(log)
    }

    /// SSTables that compactions under way have begun.
    pub(crate) fn outputs(&self) -> BTreeSet<Descriptor> {
        self.inner.lock().running.values().flatten().copied().collect()
    }

    /// Whether a compaction left files since this was last asked.
    pub(crate) fn take_left_files(&self) -> bool {
        self.left_files.swap(false, Ordering::AcqRel)
    }

    /// Has strategies leave the table alone, or look at it again.
    pub(crate) fn rest(&self, is_resting: bool) {
        self.is_resting.store(is_resting, Ordering::Release);
        self.changed();
    }

    /// Whether strategies leave the table alone.
    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }

    /// Whether a look at the table is worth it: something changed since the last, or `often_ns` have passed.
    pub(super) fn is_due(&self, now_ns: u64, often_ns: u64) -> bool {
        let inner = self.inner.lock();
        let changed = match inner.idle_at {
            None => true,
            Some((revision, at_ns)) => {
                revision != self.revision.load(Ordering::Acquire) || now_ns >= at_ns.saturating_add(often_ns)
            }
        };
        changed && inner.majors == 0 && now_ns >= inner.retry_ns
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Chooses with what is busy and remembered, and remembers what came out.
    pub(super) fn decide(
        &self,
        situation: impl FnOnce(&BTreeSet<Descriptor>, &History) -> Decision,
        (revision, now_ns, now_ms): (u64, u64, i64),
    ) -> Decision {
        let (busy, history) = {
            let inner = self.inner.lock();
            (inner.busy.union(&inner.damaged).copied().collect(), inner.history.clone())
        };
        let decision = situation(&busy, &history);
        let mut inner = self.inner.lock();
        inner.pending = decision.pending;
        inner.idle_at = decision.choice.is_none().then_some((revision, now_ns));
        if decision.expired_checked {
            inner.history.expired_checked_ms = now_ms;
        }
        if let Some(into) = decision.into_level {
            inner.history.rounds_without.iter_mut().for_each(|rounds| *rounds = rounds.saturating_add(1));
            if let Some(rounds) = inner.history.rounds_without.get_mut(into) {
                *rounds = 0;
            }
        }
        decision
    }

    /// The situation without anything busy, for a compaction of everything; `None` while something is.
    pub(super) fn when_free<T>(
        &self,
        choose: impl FnOnce(&BTreeSet<Descriptor>, &History) -> T,
    ) -> Option<T> {
        let (damaged, history) = {
            let inner = self.inner.lock();
            if !inner.busy.is_empty() {
                return None;
            }
            (inner.damaged.clone(), inner.history.clone())
        };
        Some(choose(&damaged, &history))
    }

    /// Counts a compaction of everything that is asked for, or is done.
    pub(super) fn count_major(&self, asked: bool) {
        let mut inner = self.inner.lock();
        inner.majors = if asked { inner.majors + 1 } else { inner.majors.saturating_sub(1) };
        drop(inner);
        self.changed();
    }

    /// After a failure: leaves the table alone for a while, and a damaged SSTable for good.
    pub(super) fn failed(&self, retry_ns: u64, damaged: Option<Descriptor>) {
        let mut inner = self.inner.lock();
        inner.retry_ns = retry_ns;
        inner.idle_at = None;
        inner.damaged.extend(damaged);
    }

    /// About how many compactions are due.
    pub(crate) fn pending(&self) -> u64 {
        self.inner.lock().pending
    }
}

/// Builds a situation; the part that is the same for every use.
pub(super) fn situation<'a>(
    (sources, elsewhere_us_min): (&'a [super::choose::Source], i64),
    (busy, history): (&'a BTreeSet<Descriptor>, &'a History),
    (now_ms, gc_before_s, seed): (i64, i64, u64),
) -> Situation<'a> {
    Situation { sources, busy, elsewhere_us_min, now_ms, gc_before_s, history, seed }
}
