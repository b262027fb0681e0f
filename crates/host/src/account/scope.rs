//! The scope of a request on its thread: how many bytes it has been granted, and how it gets more.

use super::charge::Charge;
use super::held::Held;
use super::meter::{held, set_held};
use super::pool::{POOL, Taken};
use super::share::Share;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that a request on an event loop's thread may hold. A request that needs more moves to a thread that may wait.
const INLINE_BYTES: isize = 2 << 20;
/// The same while all shared bytes are held: a larger answer is made where it can wait for memory.
const INLINE_BYTES_SHORT: isize = 64 << 10;
/// Bytes that any other scope may hold without asking.
const ALLOWANCE_BYTES: isize = 256 << 10;
/// Bytes by which a scope's grant grows.
const STEP_BYTES: u64 = 256 << 10;
/// If a request has held more than this, the allocator returns its freed memory to the kernel at the request's end.
const COLLECTED_BYTES: u64 = 2 << 20;

/// How a thread waits that finds no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Not at all: the request is run elsewhere.
    Never,
    /// As long as a request may wait (`set_limits`); then the request is refused.
    ForRoom,
    /// For this time; then it continues without a grant: for work that cannot be told to retry.
    ThenGoesOn(Duration),
}

/// Why a request gets no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This thread may not wait: run the request where it may.
    #[error("the request needs more memory than this thread may give it")]
    WouldBlock,
    /// Not enough memory became free in time.
    #[error(
        "no memory for the request: it holds {} MiB and needs {} MiB more, and {} of {} MiB for requests are in use; ask for \
         less at once (a page size, fewer or smaller values), send fewer large requests at a time, or raise memory_limit",
        mebibytes(*held), mebibytes(*needed), mebibytes(*used), mebibytes(*limit)
    )]
    NoRoom {
        /// Bytes that the request holds.
        held: u64,
        /// Bytes that it asked for.
        needed: u64,
        /// Bytes that all requests hold.
        used: u64,
        /// Bytes that they may hold.
        limit: u64,
    },
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

thread_local! {
    /// Bytes that the thread may hold; no limit outside scopes.
    static GRANTED: Cell<isize> = const { Cell::new(isize::MAX) };
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// The state of a thread's scope.
struct State {
    waits: Waits,
    /// Number of the request.
    request: u64,
    due: Option<Instant>,
    /// Bytes taken from the pool.
    grant: Held<'static>,
    /// Bytes that it will hold when it retries, if it was told to back off.
    backs_off: Option<u64>,
}

/// The scope in which a thread serves one request. Scopes of a thread nest; only the innermost one counts.
pub struct Scope {
    outer: Option<(Option<State>, isize, isize)>,
}

static REQUESTS: AtomicU64 = AtomicU64::new(1);

impl Scope {
    /// Begins a scope.
    #[must_use]
    pub fn begin(share: Share, waits: Waits) -> Scope {
        let outer = Some((STATE.take(), held(), GRANTED.get()));
        let request = match waits {
            Waits::Never => 0,
            _ => REQUESTS.fetch_add(1, Ordering::Relaxed),
        };
        let grant = Held::none(&POOL, share);
        STATE.set(Some(State { waits, request, due: None, grant, backs_off: None }));
        set_held(0);
        set_granted(match waits {
            Waits::Never if POOL.is_full() => INLINE_BYTES_SHORT,
            Waits::Never => INLINE_BYTES,
            _ => ALLOWANCE_BYTES,
        });
        Scope { outer }
    }

    /// Ends the scope. `bytes` of its grant stay charged, to another share: for an answer that waits for its client.
    #[must_use]
    pub fn hand_over(mut self, share: Share, bytes: u64) -> Charge {
        let handed = with_state(|state| Charge::of_grant(&mut state.grant, share, bytes));
        self.close();
        handed.unwrap_or_else(|| Charge::force(share, bytes))
    }

    /// Whether the request, which has just been refused, is to be served again from its start. If it was told to back
    /// off, this gives its bytes back and waits for all bytes that it will need; true if they became free in time.
    #[must_use]
    pub fn should_retry(&mut self) -> bool {
        let retries = with_state(|state| {
            let Some(wanted) = state.backs_off.take() else { return false };
            if state.grant.bytes() > COLLECTED_BYTES {
                release_freed_memory();
            }
            state.grant.resize(0);
            let due = *state.due.get_or_insert_with(|| Instant::now() + POOL.patience());
            let has_room = state.grant.take(state.request, wanted, due) == Taken::Yes;
            let granted = usize::try_from(state.grant.bytes()).unwrap_or(0);
            set_granted(ALLOWANCE_BYTES.saturating_add_unsigned(granted));
            has_room
        });
        retries.unwrap_or(false)
    }

    fn close(&mut self) {
        let Some((state, outer_held, granted)) = self.outer.take() else { return };
        #[cfg(feature = "watch")]
        super::watch::report();
        if let Some(ended) = STATE.take() {
            let State { grant, request, .. } = ended;
            if grant.bytes() > COLLECTED_BYTES {
                release_freed_memory();
            }
            drop(grant);
            if request != 0 {
                POOL.end(request);
            }
        }
        STATE.set(state);
        set_held(outer_held);
        set_granted(granted);
    }
}

/// Sets the bytes that the thread may hold.
fn set_granted(bytes: isize) {
    GRANTED.set(bytes);
    #[cfg(feature = "watch")]
    super::watch::set_asked(bytes);
}

/// Reads or changes the state of the thread's scope; `None` outside scopes.
fn with_state<T>(run: impl FnOnce(&mut State) -> T) -> Option<T> {
    let mut state = STATE.take()?;
    let done = run(&mut state);
    STATE.set(Some(state));
    Some(done)
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the allocator's freed memory to the kernel: after a large request it would add to the memory of the next
/// one.
fn release_freed_memory() {
    #[cfg(feature = "allocator")]
    crate::allocator::release_freed_memory();
}

/// Asks for `bytes` before they are allocated.
///
/// # Errors
/// `WouldBlock` on a thread that may not wait; `NoRoom` if there are none in time.
#[inline]
pub fn grow(bytes: usize) -> Result<(), Refusal> {
    let wanted = held().saturating_add_unsigned(bytes);
    if wanted <= GRANTED.get() { Ok(()) } else { grow_to(wanted, bytes) }
}

/// Asks for bytes that were allocated without asking first.
///
/// # Errors
/// As `grow`.
#[inline]
pub fn settle() -> Result<(), Refusal> {
    grow(0)
}

/// Whether all shared bytes are held. Code that can manage with less memory for a while does so then.
#[must_use]
pub fn is_full() -> bool {
    POOL.is_full()
}

/// Called by a request that waits for something else than memory, such as a lock. If others wait for memory, the
/// request gives its own back and retries later: one of them may be the holder of the lock.
///
/// # Errors
/// `NoRoom` if the request must end and retry.
pub fn give_way() -> Result<(), Refusal> {
    let gives = with_state(|state| {
        let can_begin_again = state.waits == Waits::ForRoom
            && state.grant.share() == Share::Requests
            && GRANTED.get() != isize::MAX;
        if !can_begin_again || !POOL.is_waited_for() {
            return false;
        }
        // It may be the first, which may exceed the shared bytes; now another request can.
        POOL.end(state.request);
        if state.grant.bytes() > 0 {
            state.backs_off = Some(state.grant.bytes());
        }
        state.grant.bytes() > 0
    });
    if gives != Some(true) {
        return Ok(());
    }
    let held = u64::try_from(held()).unwrap_or(0);
    Err(Refusal::NoRoom { held, needed: 0, used: POOL.used(), limit: POOL.limit() })
}

/// Marks that the request has changed what others see: from now on it is neither refused for lack of memory nor
/// retried.
#[inline]
pub fn commit() {
    if GRANTED.get() != isize::MAX {
        committed();
    }
}

#[cold]
fn committed() {
    if with_state(|state| !matches!(state.waits, Waits::ThenGoesOn(_))) == Some(true) {
        GRANTED.set(isize::MAX);
        // Whatever it was told before: it has changed what others see, and must not do so twice.
        with_state(|state| state.backs_off = None);
    }
}

/// Reserves space in a vector for `more` bytes, and asks for it first. A vector that must move grows by at least a
/// quarter.
///
/// # Errors
/// As `grow`.
pub fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<(), Refusal> {
    let needed = bytes.len().saturating_add(more);
    if needed <= bytes.capacity() {
        return Ok(());
    }
    let whole = needed.max(bytes.capacity().saturating_add(bytes.capacity() / 4));
    // The old bytes exist beside the new ones until they are copied.
    grow(whole)?;
    bytes.reserve_exact(whole - bytes.len());
    Ok(())
}

#[cold]
#[inline(never)]
fn grow_to(wanted: isize, bytes: usize) -> Result<(), Refusal> {
    let granted = GRANTED.get();
    let missing = u64::try_from(wanted.saturating_sub(granted)).unwrap_or(0);
    let step = missing.next_multiple_of(STEP_BYTES);
    let grown = with_state(|state| {
        let patience = match state.waits {
            Waits::Never => return Err(Refusal::WouldBlock),
            Waits::ForRoom => POOL.patience(),
            Waits::ThenGoesOn(patience) => patience,
        };
        let due = *state.due.get_or_insert_with(|| Instant::now() + patience);
        match state.grant.take(state.request, step, due) {
            Taken::Yes => {
                // A refusal that the request has passed over is none.
                state.backs_off = None;
                if matches!(state.waits, Waits::ThenGoesOn(_)) {
                    // Work of hours waits anew each time. One that goes on without its bytes does not, until there is room again.
                    state.due = None;
                }
                Ok(())
            }
            _ if matches!(state.waits, Waits::ThenGoesOn(_)) => {
                state.grant.resize(state.grant.bytes().saturating_add(step));
                Ok(())
            }
            taken => {
                state.backs_off = (taken == Taken::BackOff).then_some(state.grant.bytes() + step);
                let held = u64::try_from(held()).unwrap_or(0);
                let (used, limit) = (POOL.used(), POOL.limit());
                Err(Refusal::NoRoom { held, needed: (bytes as u64).max(missing), used, limit })
            }
        }
    });
    match grown {
        None => Ok(()),
        Some(Err(refusal)) => Err(refusal),
        Some(Ok(())) => {
            set_granted(granted.saturating_add_unsigned(usize::try_from(step).unwrap_or(usize::MAX)));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request was told to back off, and whoever asked has passed over the refusal.
    fn told_to_back_off() -> Scope {
        let scope = Scope::begin(Share::Requests, Waits::ForRoom);
        with_state(|state| state.backs_off = Some(STEP_BYTES));
        scope
    }

    #[test]
    fn what_has_changed_what_others_see_is_never_served_again() {
        let mut scope = told_to_back_off();
        commit();
        assert!(!scope.should_retry());
    }

    #[test]
    fn long_work_waits_for_memory_each_time_anew_and_a_request_once_in_all() {
        for (waits, is_kept) in [(Waits::ThenGoesOn(Duration::from_secs(30)), false), (Waits::ForRoom, true)]
        {
            let _scope = Scope::begin(Share::Background, waits);
            let began = Instant::now();
            with_state(|state| state.due = Some(began));
            assert_eq!(grow(1 << 20), Ok(()));
            let due = with_state(|state| state.due).flatten();
            assert_eq!(due, is_kept.then_some(began), "the time that has passed counts for the next wait");
        }
    }

    #[test]
    fn a_refusal_that_was_passed_over_is_none() {
        let mut scope = told_to_back_off();
        assert_eq!(grow(1 << 20), Ok(()));
        assert!(!scope.should_retry());
        with_state(|state| state.backs_off = Some(STEP_BYTES));
        assert!(scope.should_retry(), "one that ended it is served again");
    }
}
