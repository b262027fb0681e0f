//! Counts the bytes that requests hold, in all and by share, and lets threads wait for bytes.
//!
//! Grants are taken in steps and given back when a request ends. Waiters that each hold a part cannot block each other
//! for ever. The first that finds no room may exceed the shared bytes (`one_more`) until it ends. If that is not
//! enough, and waiting requests hold all bytes, the others are told to give theirs back and to retry later
//! (`Taken::BackOff`), so that no request holds memory until its deadline while the machine is idle. Only a request
//! that does not fit alone is refused before its deadline.

use super::held::Held;
use super::ledger::{Entry, Ledger};
use super::share::Share;
use super::split::Split;
use super::sync::{AtomicU64, Condvar, Mutex, wait_until};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Who holds bytes, for the ledger.
pub(super) struct Holder<'h> {
    pub(super) entry: &'h mut Entry,
    pub(super) share: Share,
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
    /// Bytes that were given back but not held. Anything but 0 is a bug of this program.
    pub surplus: u64,
}

/// The only account of the process.
#[cfg(not(all(loom, test)))]
pub(super) static POOL: Pool = Pool::new();
/// Loom's types have no constants. Its tests make pools of their own.
#[cfg(all(loom, test))]
pub(super) static POOL: std::sync::LazyLock<Pool> = std::sync::LazyLock::new(Pool::new);

/// The account (see the module).
#[cfg_attr(all(loom, test), derive(Default))]
pub(super) struct Pool {
    used: AtomicU64,
    peak: AtomicU64,
    shared: AtomicU64,
    one_more: AtomicU64,
    patience_ms: AtomicU64,
    by_share: [Counted; 7],
    waited: AtomicU64,
    refused: AtomicU64,
    surplus: AtomicU64,
    ledger: Ledger,
    state: Mutex<State>,
    freed: Condvar,
    /// Number of waiting threads. Changed under the lock; read without it by threads that give bytes back.
    waiting: AtomicU64,
    /// `State::first`, or 0. The thread of that request reads it without the lock.
    first: AtomicU64,
}

#[cfg_attr(all(loom, test), derive(Default))]
struct Counted {
    used: AtomicU64,
    peak: AtomicU64,
}

#[cfg_attr(all(loom, test), derive(Default))]
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
        surplus: get(&POOL.surplus),
    }
}

/// The most bytes that all shares may hold; `u64::MAX` without a limit.
#[must_use]
pub fn limit() -> u64 {
    POOL.limit()
}

/// Why the account is wrong, which is a bug of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// A share's counter is not the sum of what its holders hold.
    #[error("the share {} counts {counted} bytes, and its holders hold {held}", share.name())]
    Share {
        /// The share.
        share: Share,
        /// Its counter.
        counted: u64,
        /// The sum of its holders.
        held: u64,
    },
    /// The total is not the sum of the shares.
    #[error("the account counts {total} bytes in all, and its shares {of_shares}")]
    Total {
        /// The total.
        total: u64,
        /// The sum of the shares.
        of_shares: u64,
    },
    /// Bytes were given back that nobody held.
    #[error("{0} bytes were given back that nobody held")]
    Surplus(u64),
}

/// Compares the account's counters with what the holders hold. For tests: a release keeps no ledger, and finds nothing.
///
/// # Errors
/// They differ.
pub fn audit() -> Result<(), Unbalanced> {
    POOL.audit()
}

impl Pool {
    #[cfg(all(loom, test))]
    pub(super) fn new() -> Pool {
        Pool::default()
    }

    #[cfg(not(all(loom, test)))]
    pub(super) const fn new() -> Pool {
        Pool {
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            shared: AtomicU64::new(u64::MAX),
            one_more: AtomicU64::new(0),
            patience_ms: AtomicU64::new(5000),
            by_share: [const { Counted { used: AtomicU64::new(0), peak: AtomicU64::new(0) } }; 7],
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            surplus: AtomicU64::new(0),
            ledger: Ledger::new(),
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
        self.note_moved(share, bytes);
    }

    fn note_moved(&self, share: Share, bytes: u64) {
        let counted = &self.by_share[share as usize];
        let used = counted.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        counted.peak.fetch_max(used, Ordering::Relaxed);
    }

    /// The bytes that all requests may hold together.
    pub(super) fn shared(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }

    /// Takes bytes for a holder, which then has `after`, if the total is then at most `most`.
    pub(super) fn add_within(
        &self,
        Holder { entry, share }: Holder<'_>,
        (bytes, after): (u64, u64),
        most: u64,
    ) -> bool {
        let mut ledger = self.ledger.open();
        let taken = self.try_take_within(bytes, most);
        if taken {
            self.note_taken(share, bytes);
            ledger.note(entry, share, after);
        }
        taken
    }

    /// Changes a holder's bytes from `before` to `after`, even beyond the limit.
    pub(super) fn change(&self, Holder { entry, share }: Holder<'_>, before: u64, after: u64) {
        if before == after {
            return;
        }
        let mut ledger = self.ledger.open();
        ledger.note(entry, share, after);
        if let Some(more) = after.checked_sub(before) {
            self.used.fetch_add(more, Ordering::AcqRel);
            self.note_taken(share, more);
            return;
        }
        let surplus = self.subtract(share, before - after);
        drop(ledger);
        self.wake();
        debug_assert!(surplus == 0, "{surplus} bytes were given back that {} did not hold", share.name());
    }

    /// Moves bytes from a holder to one of another share that had none.
    pub(super) fn move_bytes(&self, (from, left): (Holder<'_>, u64), to: Holder<'_>, bytes: u64) {
        let mut ledger = self.ledger.open();
        // Added before they are subtracted: the total never has less than the shares.
        self.used.fetch_add(bytes, Ordering::AcqRel);
        self.note_moved(to.share, bytes);
        let surplus = self.subtract(from.share, bytes);
        ledger.note(from.entry, from.share, left);
        ledger.note(to.entry, to.share, bytes);
        drop(ledger);
        debug_assert!(surplus == 0, "{surplus} bytes were moved that {} did not hold", from.share.name());
    }

    /// Takes bytes for the request of this number, beside those that it has. Waits for them until `due`.
    pub(super) fn take(&self, request: u64, held: &mut Held<'_>, bytes: u64, due: Instant) -> Taken {
        if held.try_take(bytes) {
            return Taken::Yes;
        }
        let (share, taken) = (held.share(), held.bytes());
        let mut state = self.state.lock();
        let mut has_waited = false;
        // Before `used` is read below: a thread that gives back changes `used` first and then reads `waiting`.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let verdict = loop {
            // A request that holds nothing does not become the first while one is waiting that cannot back off.
            let goes_before = |(other, waiter): (&u64, &Waiter)| *other != request && !waiter.backs_off;
            let may_be_first = taken > 0 || !state.waiters.iter().any(goes_before);
            // Nor one that was told to give back what it holds to such a waiter: it would take it again at once.
            let is_decided = state.waiters.get(&request).is_some_and(|waiter| waiter.verdict.is_some());
            if may_be_first && !is_decided {
                state.first.get_or_insert(request);
            }
            let is_first = state.first == Some(request);
            if is_first {
                self.first.store(request, Ordering::Relaxed);
            }
            if held.take_within(bytes, self.most(is_first)) {
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
            let has_decided = self.decide(&mut state);
            if let Some(verdict) = state.waiters.get(&request).and_then(|waiter| waiter.verdict) {
                break verdict;
            }
            // This thread does not wait yet, so the wake-up has not reached it: it may be the first now.
            if has_decided {
                continue;
            }
            if !wait_until(&self.freed, &mut state, due) {
                break Taken::NoRoom;
            }
        };
        state.waiters.remove(&request);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        // Other work than requests may go on for hours with what it has: it is not the first any longer than it waits.
        if share != Share::Requests && state.first == Some(request) {
            state.first = None;
            self.first.store(0, Ordering::Relaxed);
            self.freed.notify_all();
        }
        if verdict == Taken::NoRoom {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    /// The limit of the total for a request: higher if it is the first.
    fn most(&self, is_first: bool) -> u64 {
        if is_first { self.limit() } else { self.shared.load(Ordering::Relaxed) }
    }

    /// If waiting requests hold all bytes, no bytes will become free: decides which requests give theirs back. True if
    /// it has decided something; then the caller, which is woken by nobody, must check its own case again.
    fn decide(&self, state: &mut State) -> bool {
        let used = self.used();
        let first = state.first;
        let fits = |(request, waiter): (&u64, &Waiter)| {
            waiter.verdict.is_some()
                || used.saturating_add(waiter.bytes) <= self.most(first == Some(*request))
        };
        // These bytes will not become free: cached statements, the schema and open SSTables stay, and arriving messages become requests that ask for
        // more.
        let standing: u64 = [Share::Arriving, Share::Statements, Share::Schema, Share::SsTables]
            .map(|share| self.by_share[share as usize].used.load(Ordering::Relaxed))
            .iter()
            .sum();
        // Nor those of background work that runs: a compaction may take hours.
        let waits_in_background: u64 =
            state.waiters.values().filter(|waiter| !waiter.backs_off).map(|waiter| waiter.taken).sum();
        let in_background = self.by_share[Share::Background as usize].used.load(Ordering::Relaxed);
        let runs_in_background = in_background.saturating_sub(waits_in_background);
        let standing = standing + runs_in_background;
        let held: u64 = state.waiters.values().map(|waiter| waiter.taken).sum();
        let first_runs = first.is_some_and(|first| !state.waiters.contains_key(&first));
        if first_runs || used.saturating_sub(standing) > held || state.waiters.iter().any(fits) {
            return false;
        }
        let holds = |waiter: &Waiter| waiter.taken > 0;
        let mut told = false;
        for (request, waiter) in &mut state.waiters {
            if first != Some(*request) && waiter.backs_off && holds(waiter) {
                (waiter.verdict, told) = (Some(Taken::BackOff), true);
            }
        }
        if !told {
            // The only one that could give back waits for what the background gives back.
            if runs_in_background > 0 {
                return false;
            }
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
                None => return false,
            }
        }
        self.freed.notify_all();
        true
    }

    /// Subtracts bytes from a share and from the total, at most what the share holds: a total below zero would be the
    /// greatest number, and every request would wait for ever. Returns the rest.
    pub(super) fn subtract(&self, share: Share, bytes: u64) -> u64 {
        let (mut given, counted) = (bytes, &self.by_share[share as usize].used);
        let less = |used: u64| {
            given = bytes.min(used);
            Some(used - given)
        };
        let _always_some = counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        // The total has at least the bytes of each share: bytes are added to it before, and subtracted from it after.
        self.used.fetch_sub(given, Ordering::SeqCst);
        if given < bytes {
            self.surplus.fetch_add(bytes - given, Ordering::Relaxed);
        }
        bytes - given
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

    /// Compares the counters with what the holders hold (`ledger.rs`).
    pub(super) fn audit(&self) -> Result<(), Unbalanced> {
        let ledger = self.ledger.open();
        let mut of_shares = 0;
        for share in Share::ALL {
            let counted = self.by_share[share as usize].used.load(Ordering::Relaxed);
            of_shares += counted;
            let Some(held) = ledger.held(share) else { return Ok(()) };
            if held != counted {
                return Err(Unbalanced::Share { share, counted, held });
            }
        }
        match self.used.load(Ordering::Relaxed) {
            total if total != of_shares => Err(Unbalanced::Total { total, of_shares }),
            _ => match self.surplus.load(Ordering::Relaxed) {
                0 => Ok(()),
                surplus => Err(Unbalanced::Surplus(surplus)),
            },
        }
    }

    /// Bytes that a share holds.
    #[cfg(test)]
    pub(super) fn used_of(&self, share: Share) -> u64 {
        self.by_share[share as usize].used.load(Ordering::Relaxed)
    }

    /// Bytes that were given back but not held.
    #[cfg(test)]
    pub(super) fn surplus(&self) -> u64 {
        self.surplus.load(Ordering::Relaxed)
    }
}
