//! The compaction workers: they run requested compactions first, then those that the strategies choose, within the
//! throttle.
//!
//! A worker does a bounded part of a compaction in each step, so that it soon notices a shutdown, a truncate or a request.
//! Tables take turns: after a compaction of one table the others are checked first.
//!
//! **A long compaction does not keep small ones waiting.** A worker has a stack of up to three compactions. Only the
//! topmost one is worked at. Another one is put on top of it if it reads at most a part (`SMALL_PART`) of what the one
//! below has still to read. So of 10 TB that are compacted, 300 GB can be put on top, and 10 GB on top of these. When it has
//! ended, the one below reads as much before it is interrupted again: each gets at least half of the time of those
//! above it. The stack limits the memory.

use super::background::Compactions;
use super::choose::{CompactionOptions, CompactionPlan};
use super::failing::{Failed, look_for_space, note_failed, note_succeeded};
use super::job::{Job, Step};
use super::look::Look;
use super::request::{CompactionRequest, RunningRequest};
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::table::{Round, SmallLook, TableStore};
use helenus_host::account::{Scope, Share, Waits};
use helenus_host::{Next, Worker};
use helenus_model::schema::TableId;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Nanoseconds after which an unchanged table is checked again: tombstones and expiring data become purgeable with
/// time.
const CHECK_NS: u64 = 60_000_000_000;
/// Nanoseconds after which a table whose compactions have failed is checked again, at the latest: space may be free.
const PAUSE_NS: u64 = 10_000_000_000;
/// Nanoseconds to wait while another operation changes the table's files, or while a major compaction waits for others
/// to end.
const RETRY_NS: u64 = 5_000_000;
/// Time that a step waits for memory before it goes on without.
const MEMORY_WAIT: Duration = Duration::from_secs(30);
/// The most compactions of a worker.
const STACK_MAX: usize = 3;
/// A compaction may interrupt another if the other has at least this many times its bytes to read.
const SMALL_PART: u64 = 32;
/// Bytes that a compaction reads before somebody looks again whether another one may interrupt it.
const LOOK_BYTES: u64 = 1 << 20;
/// The most plans of one table that are looked at for a small one.
const PLANS_MAX: usize = 4;

/// A compaction worker.
pub(super) struct Compactor {
    compactions: Weak<Compactions>,
    /// What it does; the last is on top.
    stack: Vec<Task>,
    /// The worker's share of the memory account, while it has anything to do.
    scope: Option<Scope>,
    /// The monotonic time until which the throttle pauses this worker.
    paused_ns: u64,
    /// The table of the last compaction.
    last: Option<TableId>,
}

/// A compaction, or a request with one compaction after the other.
struct Task {
    request: Option<RunningRequest>,
    job: Option<Job>,
    /// Bytes that it has read.
    bytes_read: u64,
    /// It is not interrupted before it has read this many bytes in all.
    undisturbed_until: u64,
}

/// The outcome of a part of a task.
enum Progressed {
    /// It has done something.
    Yes,
    /// It waits for somebody else.
    Waits,
    /// The task is over.
    Over,
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
        if let Some(bytes_max) = self.room_on_top() {
            self.put_on_top(&compactions, bytes_max, now_ns);
        }
        if self.stack.is_empty() {
            self.scope = None;
            return Next::WaitAtMost(wait_ns(&compactions, now_ns));
        }
        // If the topmost task waits, those below may have what it waits for.
        for place in (0..self.stack.len()).rev() {
            match self.advance(&compactions, place) {
                Progressed::Waits => {}
                Progressed::Yes => return Next::Again,
                Progressed::Over => {
                    let over = self.stack.remove(place);
                    if let Some(below) = place.checked_sub(1).and_then(|below| self.stack.get_mut(below)) {
                        below.undisturbed_until = below.bytes_read.saturating_add(over.bytes_read);
                    }
                    if self.stack.is_empty() {
                        // The next compaction asks for its own memory, and waits for it anew.
                        self.scope = None;
                    }
                    return Next::Again;
                }
            }
        }
        Next::WaitAtMost(RETRY_NS)
    }
}

impl Compactor {
    pub(super) fn new(compactions: Weak<Compactions>) -> Compactor {
        Compactor { compactions, stack: Vec::new(), scope: None, paused_ns: 0, last: None }
    }

    /// The most bytes of another task that may be put on top now; `None` if none may.
    fn room_on_top(&mut self) -> Option<u64> {
        let count = self.stack.len();
        let Some(top) = self.stack.last_mut() else { return Some(u64::MAX) };
        let job = top.job.as_ref()?;
        if count == STACK_MAX || top.bytes_read < top.undisturbed_until {
            return None;
        }
        top.undisturbed_until = top.bytes_read.saturating_add(LOOK_BYTES);
        Some(job.bytes_left() / SMALL_PART).filter(|bytes| *bytes > 0)
    }

    /// Begins a request or a chosen compaction of at most so many bytes, if there is one.
    fn put_on_top(&mut self, compactions: &Compactions, bytes_max: u64, now_ns: u64) {
        compactions.watch_memory();
        let request = {
            let mut requests = compactions.requests.lock();
            let fits = |request: &Arc<CompactionRequest>| request.bytes(&compactions.storage) <= bytes_max;
            let place = requests.iter().position(fits);
            place.and_then(|place| requests.remove(place))
        };
        let task = match request {
            Some(request) => Some(Task::new(Some(RunningRequest::new(compactions, request)), None)),
            None => self.choose(compactions, bytes_max, now_ns).map(|job| {
                compactions.running.lock().push(job.progress.clone());
                Task::new(None, Some(job))
            }),
        };
        if let Some(task) = task {
            self.scope.get_or_insert_with(|| Scope::begin(Share::Background, Waits::ThenGoesOn(MEMORY_WAIT)));
            self.stack.push(task);
        }
    }

    /// Does a part of a task.
    fn advance(&mut self, compactions: &Compactions, place: usize) -> Progressed {
        let Some(task) = self.stack.get_mut(place) else { return Progressed::Over };
        if task.job.is_some() {
            return self.go_on(compactions, place);
        }
        let Some(request) = &mut task.request else { return Progressed::Over };
        match Error::contain(|| request.next(compactions)) {
            Ok(Some(job)) => {
                compactions.running.lock().push(job.progress.clone());
                task.job = Some(job);
                Progressed::Yes
            }
            Ok(None) if request.is_over() => Progressed::Over,
            Ok(None) => Progressed::Waits,
            Err(error) => {
                if let Some(store) = request.store() {
                    let revision = store.compaction.revision();
                    let failed =
                        Failed { store: &store, inputs: Vec::new(), bytes: 0, is_requested: true, revision };
                    note_failed(compactions, &failed, &error);
                }
                if matches!(error, Error::Panicked { .. }) {
                    request.leave_out(error.to_string());
                }
                Progressed::Yes
            }
        }
    }

    /// Continues the compaction of a task.
    fn go_on(&mut self, compactions: &Compactions, place: usize) -> Progressed {
        let Some(task) = self.stack.get_mut(place) else { return Progressed::Over };
        let Some(mut job) = task.job.take() else { return Progressed::Over };
        let step = job.step(compactions);
        let now_ns = compactions.storage.host.clock.monotonic_ns();
        let bytes_read = job.take_bytes_read();
        task.bytes_read = task.bytes_read.saturating_add(bytes_read);
        compactions.storage.work.compaction_bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
        let paused_ns = compactions.throttle.count(bytes_read, now_ns);
        self.paused_ns = paused_ns.unwrap_or(0);
        match step {
            Ok(Step::More) => {
                task.job = Some(job);
                Progressed::Yes
            }
            Ok(Step::Later) => {
                task.job = Some(job);
                Progressed::Waits
            }
            Ok(end) => {
                if end == Step::Done {
                    note_succeeded(compactions, job.store(), job.promised_bytes());
                    note_done(compactions, &job, now_ns);
                    compactions.past.done(job.past(compactions.storage.host.clock.wall_us() / 1000));
                }
                self.ended(compactions, (place, &job), Ok(()));
                // Other compactions may have waited for the SSTables of this one.
                compactions.storage.compactors.wake();
                self.after_job(place)
            }
            Err(error) => {
                self.ended(compactions, (place, &job), Err(&error));
                self.after_job(place)
            }
        }
    }

    fn after_job(&self, place: usize) -> Progressed {
        match self.stack.get(place).is_some_and(|task| task.request.is_some()) {
            true => Progressed::Yes,
            false => Progressed::Over,
        }
    }

    fn ended(
        &mut self,
        compactions: &Compactions,
        (place, job): (usize, &Job),
        result: std::result::Result<(), &Error>,
    ) {
        compactions.running.lock().retain(|progress| !Arc::ptr_eq(progress, &job.progress));
        self.last = Some(job.store().table().id);
        let request = self.stack.get_mut(place).and_then(|task| task.request.as_mut());
        let is_requested = request.is_some();
        if let Some(request) = request {
            request.ended(result.map_err(ToString::to_string));
        }
        if let Err(error) = result {
            let inputs = job.sources().iter().map(|sstable| *sstable.descriptor()).collect();
            let bytes = job.promised_bytes();
            let revision = job.store().compaction.revision();
            let failed = Failed { store: job.store(), inputs, bytes, is_requested, revision };
            note_failed(compactions, &failed, error);
        }
    }

    /// Begins a compaction that a strategy chooses and that reads at most so many bytes, in the first table that has one.
    fn choose(&mut self, compactions: &Compactions, bytes_max: u64, now_ns: u64) -> Option<Job> {
        if !compactions.settings.automatic {
            return None;
        }
        let mut stores: Vec<(TableId, Arc<TableStore>)> =
            compactions.storage.tables.load().iter().map(|(id, store)| (*id, store.clone())).collect();
        stores.iter().for_each(|(_, store)| look_for_space(compactions, store));
        stores.retain(|(_, store)| {
            let may = !store.is_dropped() && !store.compaction.is_automatic_off();
            let may_have_small =
                bytes_max == u64::MAX || store.compaction.may_have_small(bytes_max, (now_ns, CHECK_NS));
            may && may_have_small && store.compaction.is_due(now_ns, CHECK_NS)
        });
        // Tables after the last compacted one come first, then the others from the start.
        stores.sort_by_key(|(id, _)| (self.last.is_some_and(|last| *id <= last), *id));
        for (_, store) in stores {
            let mut revision = store.compaction.revision();
            match Error::contain(|| begin_chosen(compactions, &store, (bytes_max, now_ns), &mut revision)) {
                Ok(Some(job)) => return Some(job),
                Ok(None) => {}
                Err(error) => {
                    let failed =
                        Failed { store: &store, inputs: Vec::new(), bytes: 0, is_requested: false, revision };
                    note_failed(compactions, &failed, &error);
                }
            }
        }
        None
    }

    /// Ends the worker and discards its compactions.
    fn close(&mut self, compactions: &Compactions) {
        while let Some(place) = self.stack.len().checked_sub(1) {
            if let Some(mut job) = self.stack.get_mut(place).and_then(|task| task.job.take()) {
                job.abort();
                self.ended(compactions, (place, &job), Err(&Error::Closed));
            }
            if let Some(request) = self.stack.pop().and_then(|task| task.request) {
                request.close();
            }
        }
        let requests = std::mem::take(&mut *compactions.requests.lock());
        requests.iter().for_each(|request| request.end(Err(Error::Closed.to_string())));
    }
}

impl Task {
    fn new(request: Option<RunningRequest>, job: Option<Job>) -> Task {
        Task { request, job, bytes_read: 0, undisturbed_until: 0 }
    }
}

/// The time until the next check of the tables.
fn wait_ns(compactions: &Compactions, now_ns: u64) -> u64 {
    let tables = compactions.storage.tables.load();
    let attempts = tables.values().filter_map(|store| store.compaction.next_attempt_ns(now_ns));
    // A pause is checked every ten seconds, because space may be free.
    attempts.min().map_or(CHECK_NS, |left_ns| left_ns.clamp(RETRY_NS, PAUSE_NS))
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

/// Begins the compaction that the table's strategy chooses. If it reads more than `bytes_max`, or has no room on the disk,
/// the strategy is asked again without its SSTables. If none can begin, the error is the shortage of the first. `looked_at` becomes the
/// revision of the set of SSTables that was looked at: a flush may change the set meanwhile.
fn begin_chosen(
    compactions: &Compactions,
    store: &Arc<TableStore>,
    (bytes_max, now_ns): (u64, u64),
    looked_at: &mut u64,
) -> Result<Option<Job>> {
    store.tidy(&compactions.storage)?;
    let revision = store.compaction.revision();
    *looked_at = revision;
    let no_small = SmallLook { revision, bytes_max, at_ns: now_ns };
    if !CompactionOptions::of(&store.table().options.compaction).enabled {
        let round = Round { is_idle: true, pending: 0, expired_checked: false, into_level: None };
        let now_ms = compactions.storage.host.clock.wall_us() / 1000;
        store.compaction.note_round(&round, (revision, now_ns, now_ms));
        store.compaction.note_no_small(no_small);
        return Ok(None);
    }
    let look = Look::new(compactions, store);
    let (mut busy, history) = store.compaction.busy_and_history(now_ns);
    let is_any_size = bytes_max == u64::MAX;
    let mut shortage = None;
    for plan in 0..PLANS_MAX {
        let decision = look.decide(&busy, &history);
        if is_any_size && plan == 0 {
            let round = Round {
                is_idle: decision.choice.is_none(),
                pending: decision.pending,
                expired_checked: decision.expired_checked,
                into_level: decision.into_level,
            };
            store.compaction.note_round(&round, (revision, now_ns, look.now_ms));
        }
        let Some(choice) = decision.choice else { break };
        if look.bytes(&choice) <= bytes_max {
            match Job::begin(compactions, store, (&choice, &look.sources), Arc::default()) {
                Err(error @ Error::NoSpaceToCompact { .. }) => _ = shortage.get_or_insert(error),
                begun => return begun,
            }
        }
        busy.extend(inputs_of(&choice, &look));
    }
    if !is_any_size {
        store.compaction.note_no_small(no_small);
    }
    shortage.map_or(Ok(None), Err)
}

fn inputs_of(choice: &CompactionPlan, look: &Look) -> BTreeSet<Descriptor> {
    choice.inputs.iter().filter_map(|index| look.sources.get(*index)).map(|source| source.id).collect()
}
