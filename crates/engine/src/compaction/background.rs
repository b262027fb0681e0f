//! The compaction workers: they run requested compactions first, then those that the strategies choose, within the
//! throttle.
//!
//! A worker runs one compaction at a time and does a bounded part of it in each step, so that it soon notices a
//! shutdown, a truncate or a request. Tables take turns: after a compaction of one table the others are checked first.

use super::choose::{self, CompactionOptions, CompactionPlan, Decision, Reason, SsTableInfo, StrategyInput};
use super::describe::describe;
use super::history::PastCompactions;
use super::job::{Job, Step};
use super::progress::{CompactionStatus, Progress};
use super::purge::{PurgeOptions, PurgeRule};
use super::request::{CompactionRequest, RunningRequest};
use super::throttle::Throttle;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::table::{History, Round, Storage, TableStore, View};
use helenus_host::account::{Scope, Share, Waits};
use helenus_host::{Next, Worker};
use helenus_model::schema::{Table, TableId};
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Nanoseconds after which an unchanged table is checked again: tombstones and expiring data become purgeable with
/// time.
const CHECK_NS: u64 = 60_000_000_000;
/// Nanoseconds for which a table is skipped after a failed compaction, so that a full disk is not tried all the time.
const PAUSE_NS: u64 = 10_000_000_000;
/// Nanoseconds to wait while another operation changes the table's files, or while a major compaction waits for others
/// to end.
const RETRY_NS: u64 = 5_000_000;

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
}

impl Default for CompactionSettings {
    /// One thread, 64 MiB/s.
    fn default() -> CompactionSettings {
        CompactionSettings {
            threads: 1,
            bytes_per_s: 64 << 20,
            automatic: true,
            purge: PurgeOptions::default(),
        }
    }
}

/// The state that all compactions of a database share.
pub struct Compactions {
    pub(super) storage: Arc<Storage>,
    pub(super) settings: CompactionSettings,
    pub(super) throttle: Throttle,
    /// Whether `gc_grace_seconds` is obeyed for now, whatever the settings say.
    pub(super) keeps_tombstones: AtomicBool,
    pub(super) past: PastCompactions,
    running: Mutex<Vec<Arc<Progress>>>,
    pub(super) requests: Mutex<VecDeque<Arc<CompactionRequest>>>,
    /// The last failure, cleared by the next compaction that succeeds; shown by `status`.
    failure: Mutex<Option<String>>,
}

impl Compactions {
    pub(crate) fn new(settings: CompactionSettings, storage: Arc<Storage>) -> Compactions {
        Compactions {
            storage,
            settings,
            throttle: Throttle::new(settings.bytes_per_s),
            keeps_tombstones: AtomicBool::new(false),
            past: PastCompactions::default(),
            running: Mutex::default(),
            requests: Mutex::default(),
            failure: Mutex::default(),
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

    /// The error of the last compaction, if it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }
}

/// Time that a step waits for memory before it goes on without.
const MEMORY_WAIT: Duration = Duration::from_secs(30);

/// A compaction worker.
struct Compactor {
    compactions: Weak<Compactions>,
    job: Option<Job>,
    /// The job's share of the memory account, from its first step to its last.
    scope: Option<Scope>,
    major: Option<RunningRequest>,
    /// The monotonic time until which the throttle pauses this worker.
    paused_ns: u64,
    /// The table of the last compaction.
    last: Option<TableId>,
}

impl Worker for Compactor {
    fn step(&mut self) -> Next {
        let Some(compactions) = self.compactions.upgrade() else { return Next::Done };
        if compactions.storage.closing.load(Ordering::Acquire) {
            self.close(&compactions);
            return Next::Done;
        }
        let now_ns = compactions.storage.host.clock.monotonic_ns();
        if now_ns < self.paused_ns {
            return Next::WaitAtMost(self.paused_ns - now_ns);
        }
        if self.job.is_some() {
            let next = self.go_on(&compactions);
            if self.job.is_none() {
                self.scope = None;
            }
            return next;
        }
        if self.major.is_none() {
            let request = compactions.requests.lock().pop_front();
            self.major = request.map(|request| RunningRequest::new(&compactions, request));
        }
        if let Some(major) = &mut self.major {
            return match Error::contain(|| major.next(&compactions)) {
                Ok(Some(job)) => self.begin(&compactions, job),
                Ok(None) if major.is_over() => {
                    self.major = None;
                    Next::Again
                }
                Ok(None) => Next::WaitAtMost(RETRY_NS),
                Err(error) => {
                    if matches!(error, Error::Panicked { .. }) {
                        major.leave_out(error.to_string());
                    }
                    note_failure(&compactions, None, &error);
                    Next::Again
                }
            };
        }
        match self.choose(&compactions) {
            Some(job) => self.begin(&compactions, job),
            // After a failure, the table is tried again after its pause.
            None if compactions.failure().is_some() => Next::WaitAtMost(PAUSE_NS),
            None => Next::WaitAtMost(CHECK_NS),
        }
    }
}

impl Compactor {
    fn new(compactions: Weak<Compactions>) -> Compactor {
        Compactor { compactions, job: None, scope: None, major: None, paused_ns: 0, last: None }
    }

    fn begin(&mut self, compactions: &Compactions, job: Job) -> Next {
        compactions.running.lock().push(job.progress.clone());
        self.scope = Some(Scope::begin(Share::Background, Waits::ThenGoesOn(MEMORY_WAIT)));
        self.job = Some(job);
        Next::Again
    }

    /// Continues the current compaction.
    fn go_on(&mut self, compactions: &Compactions) -> Next {
        let Some(mut job) = self.job.take() else { return Next::Again };
        let step = job.step(compactions);
        let now_ns = compactions.storage.host.clock.monotonic_ns();
        let bytes_read = job.take_bytes_read();
        compactions.storage.work.compaction_bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
        let paused_ns = compactions.throttle.count(bytes_read, now_ns);
        self.paused_ns = paused_ns.unwrap_or(0);
        match step {
            Ok(Step::More) => {
                self.job = Some(job);
                Next::Again
            }
            Ok(Step::Later) => {
                self.job = Some(job);
                Next::WaitAtMost(RETRY_NS)
            }
            Ok(end) => {
                if end == Step::Done {
                    *compactions.failure.lock() = None;
                    note_done(compactions, &job, now_ns);
                    compactions.past.done(job.past(compactions.storage.host.clock.wall_us() / 1000));
                }
                self.ended(compactions, &job, Ok(()));
                // Other compactions may have waited for the SSTables of this one.
                compactions.storage.compactors.wake();
                Next::Again
            }
            Err(error) => {
                let store = job.store().clone();
                let damaged = damaged(&error).filter(|id| job.sources().iter().any(|s| s.descriptor() == id));
                store.compaction.failed(now_ns.saturating_add(PAUSE_NS), damaged);
                self.ended(compactions, &job, Err(&error));
                Next::Again
            }
        }
    }

    fn ended(&mut self, compactions: &Compactions, job: &Job, result: std::result::Result<(), &Error>) {
        compactions.running.lock().retain(|progress| !Arc::ptr_eq(progress, &job.progress));
        self.last = Some(job.store().table().id);
        if let Some(major) = &mut self.major {
            major.ended(result.map_err(ToString::to_string));
        }
        match result {
            Ok(()) => job.store().troubles.compacted(None),
            Err(Error::Closed) => note_failure(compactions, Some(&job.store().table()), &Error::Closed),
            Err(error) => {
                job.store().troubles.compacted(Some(error.to_string()));
                note_failure(compactions, Some(&job.store().table()), error);
            }
        }
    }

    /// Begins the compaction that a strategy chooses, in the first table that has one.
    fn choose(&mut self, compactions: &Compactions) -> Option<Job> {
        if !compactions.settings.automatic {
            return None;
        }
        let now_ns = compactions.storage.host.clock.monotonic_ns();
        let mut stores: Vec<(TableId, Arc<TableStore>)> =
            compactions.storage.tables.load().iter().map(|(id, store)| (*id, store.clone())).collect();
        stores.retain(|(_, store)| {
            let may = !store.is_dropped() && !store.compaction.is_automatic_off();
            may && store.compaction.is_due(now_ns, CHECK_NS)
        });
        // Tables after the last compacted one come first, then the others from the start.
        stores.sort_by_key(|(id, _)| (self.last.is_some_and(|last| *id <= last), *id));
        for (_, store) in stores {
            match Error::contain(|| begin_chosen(compactions, &store, now_ns)) {
                Ok(Some(job)) => return Some(job),
                Ok(None) => {}
                Err(error) => {
                    store.compaction.failed(now_ns.saturating_add(PAUSE_NS), damaged(&error));
                    store.troubles.compacted(Some(error.to_string()));
                    note_failure(compactions, Some(&store.table()), &error);
                }
            }
        }
        None
    }

    /// Ends the worker and discards the current compaction.
    fn close(&mut self, compactions: &Compactions) {
        if let Some(mut job) = self.job.take() {
            job.abort(compactions);
            self.ended(compactions, &job, Err(&Error::Closed));
        }
        if let Some(major) = self.major.take() {
            major.close();
        }
        let requests = std::mem::take(&mut *compactions.requests.lock());
        requests.iter().for_each(|request| request.end(Err(Error::Closed.to_string())));
    }
}

fn note_failure(compactions: &Compactions, table: Option<&Table>, error: &Error) {
    *compactions.failure.lock() = Some(error.to_string());
    if !matches!(error, Error::Closed) {
        compactions.storage.work.compaction_failures.fetch_add(1, Ordering::Relaxed);
        compactions.storage.journal.note(&Event::CompactionFailed { table, error });
    }
}

fn note_done(compactions: &Compactions, job: &Job, now_ns: u64) {
    let size = |sstables: &[Arc<SsTable>]| sstables.iter().map(|sstable| sstable.size_on_disk()).sum::<u64>();
    let (sources, written) = (job.sources(), job.written());
    let bytes_after = size(written);
    compactions
        .storage
        .work
        .compaction_data_bytes
        .fetch_add(job.progress.status().bytes_total, Ordering::Relaxed);
    compactions.storage.work.compacted(bytes_after);
    job.store().view().figures.compacted(bytes_after);
    compactions.storage.journal.note(&Event::Compacted {
        table: &job.store().table(),
        kind: job.progress.status().kind,
        sstables_before: sources.len() as u64,
        bytes_before: size(sources),
        sstables_after: written.len() as u64,
        bytes_after,
        took_ns: now_ns.saturating_sub(job.begun_ns),
    });
}

fn begin_chosen(compactions: &Compactions, store: &Arc<TableStore>, now_ns: u64) -> Result<Option<Job>> {
    store.tidy(&compactions.storage)?;
    let revision = store.compaction.revision();
    let look = Look::new(compactions, store);
    if !look.options.enabled {
        return Ok(None);
    }
    let (busy, history) = store.compaction.busy_and_history();
    let decision = look.decide(&busy, &history);
    let round = Round {
        is_idle: decision.choice.is_none(),
        pending: decision.pending,
        expired_checked: decision.expired_checked,
        into_level: decision.into_level,
    };
    store.compaction.note_round(&round, (revision, now_ns, look.now_ms));
    match decision.choice {
        Some(choice) => Job::begin(compactions, store, (&choice, &look.sources), Arc::default()),
        None => Ok(None),
    }
}

/// The SSTable that the error reports as damaged.
fn damaged(error: &Error) -> Option<Descriptor> {
    match error {
        Error::Table(helenus_sstable::Error::Corrupt { file, .. }) => {
            Descriptor::parse(file.file_name()?.to_str()?).map(|(descriptor, _)| descriptor)
        }
        _ => None,
    }
}

/// The input of the strategies: a table's SSTables and options at one moment.
pub(super) struct Look {
    pub(super) sources: Vec<SsTableInfo>,
    pub(super) options: CompactionOptions,
    elsewhere_us_min: i64,
    now_ms: i64,
    gc_before_s: i64,
}

impl Look {
    pub(super) fn new(compactions: &Compactions, store: &TableStore) -> Look {
        let (table, view): (Arc<Table>, Arc<View>) = (store.table(), store.view());
        let now_s = compactions.storage.timestamps.purge_now_s();
        let rule = PurgeRule::new(compactions.purge_options(), &table, now_s, false);
        Look {
            sources: view.sstables.iter().map(|sstable| describe(sstable, rule.gc_before_s)).collect(),
            options: CompactionOptions::of(&table.options.compaction),
            elsewhere_us_min: view.timestamp_us_min_elsewhere(),
            now_ms: compactions.storage.host.clock.wall_us() / 1000,
            gc_before_s: rule.gc_before_s,
        }
    }

    fn situation<'a>(&'a self, busy: &'a BTreeSet<Descriptor>, history: &'a History) -> StrategyInput<'a> {
        StrategyInput {
            sources: &self.sources,
            busy,
            elsewhere_us_min: self.elsewhere_us_min,
            now_ms: self.now_ms,
            gc_before_s: self.gc_before_s,
            history,
            // Any seed will do; the time is never the same for long.
            seed: self.now_ms as u64,
        }
    }

    fn decide(&self, busy: &BTreeSet<Descriptor>, history: &History) -> Decision {
        choose::choose(&self.situation(busy, history), &self.options)
    }

    /// Major compactions of all SSTables that are not busy.
    pub(super) fn maximal(&self, busy: &BTreeSet<Descriptor>, history: &History) -> Vec<CompactionPlan> {
        let choices = choose::maximal(&self.situation(busy, history), &self.options);
        debug_assert!(choices.iter().all(|choice| choice.reason == Reason::Major));
        choices
    }
}
