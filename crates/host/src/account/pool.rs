//! The bytes that requests hold, in all and by what for, and the threads that wait for some.
//!
//! Grants are taken in steps and given back when a request ends. Waiters that each hold a part cannot keep each other
//! waiting for ever. The first that finds no room may go beyond the shared bytes (`one_more`) until its request is over.
//! Where that is not enough, and all bytes are held by requests that wait, the others are told to give theirs back and to
//! begin again later (`Taken::BackOff`): nobody sits on memory until a deadline while the machine is idle. Only a request that
//! does not fit alone is refused before its deadline.

use super::split::Split;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Requests that are being served: rows, values, merges, conditions, answers that grow.
    Requests,
    /// Answers that are made and wait for their client.
    Answers,
    /// Requests that arrive or wait for a thread.
    Arriving,
    /// Flushes, compactions, imports and other work that nobody waits for.
    Background,
    /// Analysed statements that are kept.
    Statements,
}

impl Share {
    /// All of them.
    pub const ALL: [Share; 5] =
        [Share::Requests, Share::Answers, Share::Arriving, Share::Background, Share::Statements];

    /// Its name for people and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Share::Requests => "requests",
            Share::Answers => "answers",
            Share::Arriving => "arriving",
            Share::Background => "background",
            Share::Statements => "statements",
        }
    }
}

/// What a share holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareFigures {
    /// Which.
    pub share: Share,
    /// Bytes held.
    pub used: u64,
    /// The most that it held.
    pub peak: u64,
}

/// All figures of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// By share.
    pub shares: Vec<ShareFigures>,
    /// Bytes that all of them hold, and the most that they held.
    pub used: u64,
    /// See `used`.
    pub peak: u64,
    /// What they may hold; `u64::MAX` without a limit.
    pub limit: u64,
    /// Requests that waited for room.
    pub waited: u64,
    /// Requests that got none.
    pub refused: u64,
}

/// The process's one account.
pub(super) static POOL: Pool = Pool::new();

/// See the module.
pub(super) struct Pool {
    used: AtomicU64,
    peak: AtomicU64,
    shared: AtomicU64,
    one_more: AtomicU64,
    patience_ms: AtomicU64,
    by_share: [Counted; 5],
    waited: AtomicU64,
    refused: AtomicU64,
    state: Mutex<State>,
    freed: Condvar,
    /// Threads that wait. Changed under the lock; read without it by who gives back.
    waiting: AtomicU64,
    /// `State::first`, or 0: for its own thread, which looks without the lock.
    first: AtomicU64,
}

struct Counted {
    used: AtomicU64,
    peak: AtomicU64,
}

struct State {
    /// The request that may go beyond the shared bytes.
    first: Option<u64>,
    /// The requests that wait, by number.
    waiters: BTreeMap<u64, Waiter>,
}

/// A request that waits for bytes.
struct Waiter {
    /// Bytes that it asks for.
    bytes: u64,
    /// Bytes that it holds.
    taken: u64,
    /// Whether it can give them back and begin again.
    backs_off: bool,
    /// How its wait ends, once that is decided.
    verdict: Option<Taken>,
}

/// How a request for bytes ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// They were taken.
    Yes,
    /// There is no room, or none in time.
    NoRoom,
    /// There may be room later, once the request has given back what it holds.
    BackOff,
}

/// Sets what requests may hold, and how long one waits for room.
pub fn set_limits(split: Split, patience: Duration) {
    POOL.patience_ms.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    POOL.set(split);
}

/// The account's figures.
#[must_use]
pub fn figures() -> Figures {
    let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let shares = Share::ALL.into_iter().zip(&POOL.by_share).map(|(share, counted)| ShareFigures {
        share,
        used: get(&counted.used),
        peak: get(&counted.peak),
    });
    Figures {
        shares: shares.collect(),
        used: get(&POOL.used),
        peak: get(&POOL.peak),
        limit: POOL.limit(),
        waited: get(&POOL.waited),
        refused: get(&POOL.refused),
    }
}

impl Pool {
    pub(super) const fn new() -> Pool {
        Pool {
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            shared: AtomicU64::new(u64::MAX),
            one_more: AtomicU64::new(0),
            patience_ms: AtomicU64::new(5000),
            by_share: [const { Counted { used: AtomicU64::new(0), peak: AtomicU64::new(0) } }; 5],
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

    /// How long a request waits for room in all.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms.load(Ordering::Relaxed))
    }

    /// What all may hold.
    pub(super) fn limit(&self) -> u64 {
        self.shared.load(Ordering::Relaxed).saturating_add(self.one_more.load(Ordering::Relaxed))
    }

    /// Bytes held.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether this request waits for bytes.
    #[cfg(test)]
    pub(super) fn has_waiter(&self, request: u64) -> bool {
        self.state.lock().waiters.contains_key(&request)
    }

    /// Whether the shared bytes are all held.
    pub(super) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.shared.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for bytes.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes bytes if all then hold `most` or less.
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

    /// Takes bytes if there are some without waiting.
    pub(super) fn try_take(&self, share: Share, bytes: u64) -> bool {
        let taken = self.try_take_within(bytes, self.shared.load(Ordering::Relaxed));
        if taken {
            self.note_taken(share, bytes);
        }
        taken
    }

    /// Takes bytes, room or not.
    pub(super) fn force(&self, share: Share, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        self.note_taken(share, bytes);
    }

    /// Takes bytes for the request of this number, which holds `taken` already, and waits for them until `due`.
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
        // Before the look at `used` below: who gives back changes `used` first and then looks here.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let verdict = loop {
            // One that holds nothing lets those go before it that cannot give back what they hold.
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

    /// What all may hold when a request asks: more if it is the first.
    fn most(&self, is_first: bool) -> u64 {
        if is_first { self.limit() } else { self.shared.load(Ordering::Relaxed) }
    }

    /// Where all bytes are held by requests that wait, nobody will give any back: decides who does.
    fn decide(&self, state: &mut State) {
        let used = self.used();
        let first = state.first;
        let fits = |(request, waiter): (&u64, &Waiter)| {
            waiter.verdict.is_some()
                || used.saturating_add(waiter.bytes) <= self.most(first == Some(*request))
        };
        // Nobody waits for these to go: kept statements stay, and messages on their way in become requests that ask for more.
        let standing: u64 = [Share::Arriving, Share::Statements]
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
            // The first goes back as well where a flush or a compaction, which cannot, waits for what it holds.
            let is_kept = state.waiters.values().any(|waiter| !waiter.backs_off && holds(waiter));
            let first = first.and_then(|first| state.waiters.get_mut(&first));
            match first {
                Some(first) if is_kept && first.backs_off && holds(first) => {
                    first.verdict = Some(Taken::BackOff);
                    state.first = None;
                }
                Some(alone) if holds(alone) || !is_kept => alone.verdict = Some(Taken::NoRoom),
                // It holds nothing: one that cannot go back may go beyond the shared bytes in its place.
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

    /// Who waits looks again.
    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // Under the lock, so that nobody is between the look and the wait.
            let _state = self.state.lock();
            self.freed.notify_all();
        }
    }

    /// A request is over, or waits for something else: another may go beyond the shared bytes.
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

    /// Bytes go on to another share.
    fn move_to(&self, from: Share, to: Share, bytes: u64) {
        self.by_share[from as usize].used.fetch_sub(bytes, Ordering::Relaxed);
        let counted = &self.by_share[to as usize];
        let used = counted.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        counted.peak.fetch_max(used, Ordering::Relaxed);
    }
}

/// Bytes on the account; given back when dropped.
#[derive(Debug)]
pub struct Charge {
    share: Share,
    bytes: u64,
}

impl Charge {
    /// Takes bytes, room or not: for memory that is there already.
    #[must_use]
    pub fn force(share: Share, bytes: u64) -> Charge {
        POOL.force(share, bytes);
        Charge { share, bytes }
    }

    /// Takes bytes if there is room now.
    #[must_use]
    pub fn try_take(share: Share, bytes: u64) -> Option<Charge> {
        POOL.try_take(share, bytes).then_some(Charge { share, bytes })
    }

    /// Bytes that a request has been granted, for a share that outlives it.
    pub(super) fn of_grant(from: Share, share: Share, bytes: u64) -> Charge {
        POOL.move_to(from, share, bytes);
        Charge { share, bytes }
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
