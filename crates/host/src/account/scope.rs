//! The scope of a request on its thread: how many bytes it has been granted, and how it gets more.

use super::meter::{held, set_held};
use super::pool::{Charge, POOL, Share, Taken};
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
#[derive(Clone, Copy)]
struct State {
    waits: Waits,
    share: Share,
    /// Number of the request.
    request: u64,
    due: Option<Instant>,
    /// Bytes taken from the pool.
    taken: u64,
    /// Bytes that it will hold when it retries, if it was told to back off.
    backs_off: Option<u64>,
}

/// The scope in which a thread serves one request. Scopes of a thread nest; only the innermost one counts.
pub struct Scope {
    outer: (Option<State>, isize, isize),
    is_open: bool,
}

static REQUESTS: AtomicU64 = AtomicU64::new(1);

impl Scope {
    /// Begins a scope.
    #[must_use]
    pub fn begin(share: Share, waits: Waits) -> Scope {
        let outer = (STATE.get(), held(), GRANTED.get());
        let request = match waits {
            Waits::Never => 0,
            _ => REQUESTS.fetch_add(1, Ordering::Relaxed),
        };
        STATE.set(Some(State { waits, share, request, due: None, taken: 0, backs_off: None }));
        set_held(0);
        GRANTED.set(match waits {
            Waits::Never if POOL.is_full() => INLINE_BYTES_SHORT,
            Waits::Never => INLINE_BYTES,
            _ => ALLOWANCE_BYTES,
        });
        Scope { outer, is_open: true }
    }

    /// Ends the scope. `bytes` of its grant stay charged, to another share: for an answer that waits for its client.
    #[must_use]
    pub fn hand_over(mut self, share: Share, bytes: u64) -> Charge {
        let (from, left) = STATE.get().map_or((Share::Requests, 0), |state| (state.share, state.taken));
        if bytes > left {
            POOL.force(from, bytes - left);
        }
        let charge = Charge::of_grant(from, share, bytes);
        self.close(left.saturating_sub(bytes));
        charge
    }

    /// Whether the request, which has just been refused, is to be served again from its start. If it was told to back
    /// off, this gives its bytes back and waits for all bytes that it will need; true if they became free in time.
    #[must_use]
    pub fn should_retry(&mut self) -> bool {
        let Some(mut state) = STATE.get() else { return false };
        let Some(wanted) = state.backs_off.take() else { return false };
        if state.taken > COLLECTED_BYTES {
            release_freed_memory();
        }
        POOL.give_back(state.share, std::mem::take(&mut state.taken));
        let due = *state.due.get_or_insert_with(|| Instant::now() + POOL.patience());
        let has_room = POOL.take((state.share, state.request), (wanted, 0), due) == Taken::Yes;
        if has_room {
            state.taken = wanted;
        }
        GRANTED.set(ALLOWANCE_BYTES.saturating_add_unsigned(usize::try_from(state.taken).unwrap_or(0)));
        STATE.set(Some(state));
        has_room
    }

    fn close(&mut self, bytes: u64) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        let (state, outer_held, granted) = self.outer;
        if let Some(ended) = STATE.get() {
            if ended.taken > COLLECTED_BYTES {
                release_freed_memory();
            }
            POOL.give_back(ended.share, bytes);
            if ended.request != 0 {
                POOL.end(ended.request);
            }
        }
        STATE.set(state);
        set_held(outer_held);
        GRANTED.set(granted);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.close(STATE.get().map_or(0, |state| state.taken));
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
    let Some(mut state) = STATE.get() else { return Ok(()) };
    let can_begin_again =
        state.waits == Waits::ForRoom && state.share == Share::Requests && GRANTED.get() != isize::MAX;
    if !can_begin_again || !POOL.is_waited_for() {
        return Ok(());
    }
    // It may be the first, which may exceed the shared bytes; now another request can.
    POOL.end(state.request);
    if state.taken == 0 {
        return Ok(());
    }
    state.backs_off = Some(state.taken);
    STATE.set(Some(state));
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
    if STATE.get().is_some_and(|state| !matches!(state.waits, Waits::ThenGoesOn(_))) {
        GRANTED.set(isize::MAX);
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
    let Some(mut state) = STATE.get() else { return Ok(()) };
    let granted = GRANTED.get();
    let missing = u64::try_from(wanted.saturating_sub(granted)).unwrap_or(0);
    let step = missing.next_multiple_of(STEP_BYTES);
    match state.waits {
        Waits::Never => return Err(Refusal::WouldBlock),
        Waits::ForRoom => {
            let due = *state.due.get_or_insert_with(|| Instant::now() + POOL.patience());
            let taken = POOL.take((state.share, state.request), (step, state.taken), due);
            if taken != Taken::Yes {
                state.backs_off = (taken == Taken::BackOff).then_some(state.taken + step);
                STATE.set(Some(state));
                let held = u64::try_from(held()).unwrap_or(0);
                let (used, limit) = (POOL.used(), POOL.limit());
                return Err(Refusal::NoRoom { held, needed: (bytes as u64).max(missing), used, limit });
            }
        }
        Waits::ThenGoesOn(time) => {
            let due = *state.due.get_or_insert_with(|| Instant::now() + time);
            if POOL.take((state.share, state.request), (step, state.taken), due) != Taken::Yes {
                POOL.force(state.share, step);
            }
        }
    }
    state.taken += step;
    STATE.set(Some(state));
    GRANTED.set(granted.saturating_add_unsigned(usize::try_from(step).unwrap_or(usize::MAX)));
    Ok(())
}
