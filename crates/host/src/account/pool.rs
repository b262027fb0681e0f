//! Counts the bytes that requests hold, in all and by share, and lets threads wait for bytes.
//!
//! Grants are taken in steps and given back when a request ends. Waiters that each hold a part cannot block each other
//! for ever. The first that finds no room may exceed the shared bytes (`one_more`) until it ends. If that is not
//! enough, and waiting requests hold all bytes, the others are told to give theirs back and to retry later
//! (`Taken::BackOff`), so that no request holds memory until its deadline while the machine is idle. Only a request
//! that does not fit alone is refused before its deadline.

use super::split::Split;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The purpose of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Requests that are being served: rows, values, merges, conditions, answers that grow.
    Requests,
    /// Answers that are complete and wait for their client.
    Answers,
    /// Requests that arrive or wait for a thread.
    Arriving,
    /// Flushes, compactions, imports and other background work.
    Background,
    /// Cached statements.
    Statements,
    /// The definitions of tables, and the objects that each table has while the server runs.
    Schema,
}

impl Share {
    /// All shares.
    pub const ALL: [Share; 6] = [
        Share::Requests,
        Share::Answers,
        Share::Arriving,
        Share::Background,
        Share::Statements,
        Share::Schema,
    ];

    /// Its name for messages and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Share::Requests => "requests",
            Share::Answers => "answers",
            Share::Arriving => "arriving",
            Share::Background => "background",
            Share::Statements => "statements",
            Share::Schema => "schema",
        }
    }
}

/// The bytes of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareMetrics {
    /// The share.
    pub share: Share,
    /// Bytes held.
    pub used: u64,
    /// The most bytes that it has held.
    pub peak: u64,
}

/// The account's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolMetrics {
    /// The shares.
    pub shares: Vec<ShareMetrics>,
    /// Bytes that all shares hold.
    pub used: u64,
    /// The most bytes that all shares have held.
    pub peak: u64,
    /// The most bytes that all shares may hold; `u64::MAX` without a limit.
    pub limit: u64,
    /// Requests that waited for memory.
    pub waited: u64,
    /// Requests that got none.
    pub refused: u64,
}

/// The only account of the process.
pub(super) static POOL: Pool = Pool::new();

/// The account (see the module).
pub(super) struct Pool {
    used: AtomicU64,
    peak: AtomicU64,
    shared: AtomicU64,
    one_more: AtomicU64,
    patience_ms: AtomicU64,
    by_share: [Counted; 6],
    waited: AtomicU64,
    refused: AtomicU64,
    state: Mutex<State>,
    freed: Condvar,
    /// Number of waiting threads. Changed under the lock; read without it by threads that give bytes back.
    waiting: AtomicU64,
    /// `State::first`, or 0. The thread of that request reads it without the lock.
    first: AtomicU64,
}

struct Counted {
    used: AtomicU64,
    peak: AtomicU64,
}

struct State {
    /// The request that may exceed the shared bytes.
    first: Option<u64>,
    /// The waiting requests, by number.
    waiters: BTreeMap<u64, Waiter>,
}

/// A request that waits for bytes.
struct Waiter {
    /// Bytes that it asks for.
    bytes: u64,
    /// Bytes that it holds.
    taken: u64,
    /// Whether it can give them back and retry.
    backs_off: bool,
    /// The outcome of its wait, once that is decided.
    verdict: Option<Taken>,
}

/// The outcome of a request for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The bytes were taken.
    Yes,
    /// There are not enough bytes, or not in time.
    NoRoom,
    /// There may be enough later, once the request has given back the bytes that it holds.
    BackOff,
}

/// Sets how many bytes requests may hold, and how long a request waits for bytes.
pub fn set_limits(split: Split, patience: Duration) {
    POOL.patience_ms.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    POOL.set(split);
}

/// The account's metrics.
#[must_use]
pub fn metrics() -> PoolMetrics {
    let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let shares = Share::ALL.into_iter().zip(&POOL.by_share).map(|(share, counted)| ShareMetrics {
        share,
        used: get(&counted.used),
        peak: get(&counted.peak),
    });
    PoolMetrics {
        shares: shares.collect(),
        used: get(&POOL.used),
        peak: get(&POOL.peak),
        limit: POOL.limit(),
        waited: get(&POOL.waited),
        refused: get(&POOL.refused),
    }
}

/// The most bytes that all shares may hold; `u64::MAX` without a limit.
#[must_use]
pub fn limit() -> u64 {
    POOL.limit()
}

impl Pool {
    pub(super) const fn new() -> Pool {
        Pool {
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            shared: AtomicU64::new(u64::MAX),
            one_more: AtomicU64::new(0),
            patience_ms: AtomicU64::new(5000),
            by_share: [const { Counted { used: AtomicU64::new(0), peak: AtomicU64::new(0) } }; 6],
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            state: Mutex::new(State { first: None, waiters: BTreeMap::new() }),
            freed: Condvar::new(),
            waiting: AtomicU64::new(0),
            first: AtomicU64::new(0),
        }
    }

    pub(super) fn set(&self, split: Split) {
        self.one_more.store(split.one_more, Ordering::Relaxed);
        self.shared.store(split.shared, Ordering::Relaxed);
    }

    /// How long a request waits for bytes, in all its waits together.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms.load(Ordering::Relaxed))
    }

    /// The most bytes that all requests may hold.
    pub(super) fn limit(&self) -> u64 {
        self.shared.load(Ordering::Relaxed).saturating_add(self.one_more.load(Ordering::Relaxed))
    }

    /// Bytes held.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether this request is waiting for bytes.
    #[cfg(test)]
    pub(super) fn has_waiter(&self, request: u64) -> bool {
        self.state.lock().waiters.contains_key(&request)
    }

    /// Whether all shared bytes are held.
    pub(super) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.shared.load(Ordering::Relaxed)
    }

    /// Whether a request is waiting for bytes.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes bytes if the total is then at most `most`.
    fn try_take_within(&self, bytes: u64, most: u64) -> bool {
        let mut used = self.used.load(Ordering::SeqCst);
        loop {
            let after = used.saturating_add(bytes);
            if after > most {
                return false;
            }
            match self.used.compare_exchange_weak(used, after, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => used = now,
            }
        }
        true
    }

    fn note_taken(&self, share: Share, bytes: u64) {
        self.peak.fetch_max(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
        let counted = &self.by_share[share as usize];
        let used = counted.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        counted.peak.fetch_max(used, Ordering::Relaxed);
    }

    /// Takes bytes if they are free now.
    pub(super) fn try_take(&self, share: Share, bytes: u64) -> bool {
        let taken = self.try_take_within(bytes, self.shared.load(Ordering::Relaxed));
        if taken {
            self.note_taken(share, bytes);
        }
        taken
    }

    /// Takes bytes even beyond the limit.
    pub(super) fn force(&self, share: Share, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        self.note_taken(share, bytes);
    }

    /// Takes bytes for the request of this number, which already holds `taken`. Waits for them until `due`.
    pub(super) fn take(
        &self,
        (share, request): (Share, u64),
        (bytes, taken): (u64, u64),
        due: Instant,
    ) -> Taken {
        if self.try_take(share, bytes) {
            return Taken::Yes;
        }
        let mut state = self.state.lock();
        let mut has_waited = false;
        // Before `used` is read below: a thread that gives back changes `used` first and then reads `waiting`.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let verdict = loop {
            // A request that holds nothing does not become the first while one is waiting that cannot back off.
            let goes_before = |(other, waiter): (&u64, &Waiter)| *other != request && !waiter.backs_off;
            let may_be_first = taken > 0 || !state.waiters.iter().any(goes_before);
            if may_be_first {
                state.first.get_or_insert(request);
            }
            let is_first = state.first == Some(request);
            if is_first {
                self.first.store(request, Ordering::Relaxed);
            }
            if self.try_take_within(bytes, self.most(is_first)) {
                self.note_taken(share, bytes);
                break Taken::Yes;
            }
            if bytes.saturating_add(taken) > self.limit() {
                break Taken::NoRoom;
            }
            if !std::mem::replace(&mut has_waited, true) {
                self.waited.fetch_add(1, Ordering::Relaxed);
                let backs_off = share == Share::Requests;
                state.waiters.insert(request, Waiter { bytes, taken, backs_off, verdict: None });
            }
            self.decide(&mut state);
            if let Some(verdict) = state.waiters.get(&request).and_then(|waiter| waiter.verdict) {
                break verdict;
            }
            if self.freed.wait_until(&mut state, due).timed_out() {
                break Taken::NoRoom;
            }
        };
        state.waiters.remove(&request);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if verdict == Taken::NoRoom {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    /// The limit of the total for a request: higher if it is the first.
    fn most(&self, is_first: bool) -> u64 {
        if is_first { self.limit() } else { self.shared.load(Ordering::Relaxed) }
    }

    /// If waiting requests hold all bytes, no bytes will become free: decides which requests give theirs back.
    fn decide(&self, state: &mut State) {
        let used = self.used();
        let first = state.first;
        let fits = |(request, waiter): (&u64, &Waiter)| {
            waiter.verdict.is_some()
                || used.saturating_add(waiter.bytes) <= self.most(first == Some(*request))
        };
        // These bytes will not become free: cached statements and the schema stay, and arriving messages become requests that ask for
        // more.
        let standing: u64 = [Share::Arriving, Share::Statements, Share::Schema]
            .map(|share| self.by_share[share as usize].used.load(Ordering::Relaxed))
            .iter()
            .sum();
        let held: u64 = state.waiters.values().map(|waiter| waiter.taken).sum();
        let first_runs = first.is_some_and(|first| !state.waiters.contains_key(&first));
        if first_runs || used.saturating_sub(standing) > held || state.waiters.iter().any(fits) {
            return;
        }
        let holds = |waiter: &Waiter| waiter.taken > 0;
        let mut told = false;
        for (request, waiter) in &mut state.waiters {
            if first != Some(*request) && waiter.backs_off && holds(waiter) {
                (waiter.verdict, told) = (Some(Taken::BackOff), true);
            }
        }
        if !told {
            // The first gives back as well if a flush or a compaction, which cannot, waits for the bytes it holds.
            let is_kept = state.waiters.values().any(|waiter| !waiter.backs_off && holds(waiter));
            let first = first.and_then(|first| state.waiters.get_mut(&first));
            match first {
                Some(first) if is_kept && first.backs_off && holds(first) => {
                    first.verdict = Some(Taken::BackOff);
                    state.first = None;
                }
                Some(alone) if holds(alone) || !is_kept => alone.verdict = Some(Taken::NoRoom),
                // The first holds nothing: a waiter that cannot back off may exceed the shared bytes in its place.
                Some(_) => state.first = None,
                None => return,
            }
        }
        self.freed.notify_all();
    }

    /// Gives bytes back.
    pub(super) fn give_back(&self, share: Share, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.by_share[share as usize].used.fetch_sub(bytes, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        self.wake();
    }

    /// Makes the waiting threads check again.
    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // Under the lock, so that no thread is between its check and its wait.
            let _state = self.state.lock();
            self.freed.notify_all();
        }
    }

    /// A request has ended, or waits for something else: another may exceed the shared bytes.
    pub(super) fn end(&self, request: u64) {
        if self.first.load(Ordering::Relaxed) != request {
            return;
        }
        let mut state = self.state.lock();
        if state.first == Some(request) {
            state.first = None;
            self.first.store(0, Ordering::Relaxed);
            self.freed.notify_all();
        }
    }

    /// Moves bytes to another share.
    fn move_to(&self, from: Share, to: Share, bytes: u64) {
        self.by_share[from as usize].used.fetch_sub(bytes, Ordering::Relaxed);
        let counted = &self.by_share[to as usize];
        let used = counted.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        counted.peak.fetch_max(used, Ordering::Relaxed);
    }
}

/// Bytes charged to the account; given back when dropped.
#[derive(Debug)]
pub struct Charge {
    share: Share,
    bytes: u64,
}

impl Charge {
    /// Charges bytes even beyond the limit: for memory that is already allocated.
    #[must_use]
    pub fn force(share: Share, bytes: u64) -> Charge {
        POOL.force(share, bytes);
        Charge { share, bytes }
    }

    /// Charges bytes if they are free now.
    #[must_use]
    pub fn try_take(share: Share, bytes: u64) -> Option<Charge> {
        POOL.try_take(share, bytes).then_some(Charge { share, bytes })
    }

    /// Moves bytes that were granted to a request to a share that outlives it.
    pub(super) fn of_grant(from: Share, share: Share, bytes: u64) -> Charge {
        POOL.move_to(from, share, bytes);
        Charge { share, bytes }
    }

    /// Changes the number of bytes held, even beyond the limit.
    pub fn resize(&mut self, bytes: u64) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => POOL.force(self.share, more),
            None => POOL.give_back(self.share, self.bytes - bytes),
        }
        self.bytes = bytes;
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        POOL.give_back(self.share, self.bytes);
    }
}
