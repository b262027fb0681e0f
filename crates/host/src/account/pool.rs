//! The bytes that requests hold, in all and by what for, and the threads that wait for some.
//!
//! Grants are taken in steps and given back when a request ends. Waiters that each hold a part cannot keep each other
//! waiting for ever: the first that finds no room becomes the one that may go beyond the shared bytes (`one_more`), until
//! its request is over. It needs nobody to come to its end, and whatever it gives back serves the next.

use super::split::Split;
use parking_lot::{Condvar, Mutex};
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
}

impl Share {
    /// All of them.
    pub const ALL: [Share; 4] = [Share::Requests, Share::Answers, Share::Arriving, Share::Background];

    /// Its name for people and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Share::Requests => "requests",
            Share::Answers => "answers",
            Share::Arriving => "arriving",
            Share::Background => "background",
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
    by_share: [Counted; 4],
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

#[derive(Default)]
struct State {
    /// Who may go beyond the shared bytes.
    first: Option<u64>,
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
            by_share: [const { Counted { used: AtomicU64::new(0), peak: AtomicU64::new(0) } }; 4],
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            state: Mutex::new(State { first: None }),
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

    /// Takes bytes for the request of this number, and waits for them until `due`; false if there are none by then.
    pub(super) fn take(&self, (share, request): (Share, u64), bytes: u64, due: Instant) -> bool {
        let shared = self.shared.load(Ordering::Relaxed);
        let all = self.limit();
        if self.try_take(share, bytes) {
            return true;
        }
        let mut state = self.state.lock();
        let mut has_waited = false;
        // Before the look at `used` below: who gives back changes `used` first and then looks here.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let taken = loop {
            let is_first = *state.first.get_or_insert(request) == request;
            if is_first {
                self.first.store(request, Ordering::Relaxed);
            }
            let most = if is_first { all } else { shared };
            if self.try_take_within(bytes, most) {
                self.note_taken(share, bytes);
                break true;
            }
            if bytes > all {
                break false;
            }
            if !std::mem::replace(&mut has_waited, true) {
                self.waited.fetch_add(1, Ordering::Relaxed);
            }
            if self.freed.wait_until(&mut state, due).timed_out() {
                break false;
            }
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if !taken {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        taken
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

    /// A request is over: another may go beyond the shared bytes.
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
