//! A request on its thread: what it has been granted, and how it gets more.

use super::meter::{held, set_held};
use super::pool::{Charge, POOL, Share, Taken};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that a request on a listener's thread may hold. Beyond, it goes to a thread that may wait.
const INLINE_BYTES: isize = 2 << 20;
/// The same where all bytes are held: a larger answer is made where it can wait for room.
const INLINE_BYTES_SHORT: isize = 64 << 10;
/// Bytes that every other scope may hold without asking.
const ALLOWANCE_BYTES: isize = 256 << 10;
/// Grants come in steps of this size.
const STEP_BYTES: u64 = 256 << 10;
/// A request that held more than this has its memory given back to the system at its end.
const COLLECTED_BYTES: u64 = 2 << 20;

/// What a thread does that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing: the request is run elsewhere.
    Never,
    /// Waits as long as a request may take (`set_limits`), then it is refused.
    ForRoom,
    /// Waits so long, then goes on all the same: for what nobody could tell to try again.
    ThenGoesOn(Duration),
}

/// Why a request gets no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This thread may not wait: run the request where it may.
    #[error("the request needs more memory than this thread may give it")]
    WouldBlock,
    /// There was no room in time.
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
    /// Bytes that the thread may hold; without a scope, any.
    static GRANTED: Cell<isize> = const { Cell::new(isize::MAX) };
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// The scope of a thread.
#[derive(Clone, Copy)]
struct State {
    waits: Waits,
    share: Share,
    /// Number of the request.
    request: u64,
    due: Option<Instant>,
    /// Bytes taken from the pool.
    taken: u64,
    /// Bytes that it would hold now, if it has been told to begin again later.
    backs_off: Option<u64>,
}

/// The time in which a thread serves one request. Scopes of a thread nest; the inner one counts alone.
pub struct Scope {
    outer: (Option<State>, isize, isize),
    is_open: bool,
}

static REQUESTS: AtomicU64 = AtomicU64::new(1);

impl Scope {
    /// Begins one.
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

    /// Ends it, and leaves `bytes` of what it was granted on the account, of another share: an answer that waits for its
    /// client.
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

    /// Whether the request, whose answer is a refusal, is to be served once more from its start. Others needed what it held:
    /// it has given that back, and has waited for all that it will need, if there was room in time.
    #[must_use]
    pub fn begins_again(&mut self) -> bool {
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

/// Gives what the allocator keeps of freed memory back to the system: after a large request it would stand beside what the
/// next one takes.
fn release_freed_memory() {
    #[cfg(feature = "allocator")]
    crate::allocator::release_freed_memory();
}

/// Asks for `bytes` that are about to be allocated.
///
/// # Errors
/// `WouldBlock` on a thread that may not wait, `NoRoom` when there is none in time.
#[inline]
pub fn grow(bytes: usize) -> Result<(), Refusal> {
    let wanted = held().saturating_add_unsigned(bytes);
    if wanted <= GRANTED.get() { Ok(()) } else { grow_to(wanted, bytes) }
}

/// Asks for what was allocated without having been asked for.
///
/// # Errors
/// As `grow`.
#[inline]
pub fn settle() -> Result<(), Refusal> {
    grow(0)
}

/// Whether all bytes that requests share are held: who can do with less for a while does.
#[must_use]
pub fn is_full() -> bool {
    POOL.is_full()
}

/// For a request that waits for something else than memory, such as a lock: where others wait for memory, it gives its own back
/// and begins again later. The one that has what it waits for may be among them.
///
/// # Errors
/// `NoRoom` when the request is to end, so that it can begin again.
pub fn give_way() -> Result<(), Refusal> {
    let Some(mut state) = STATE.get() else { return Ok(()) };
    let can_begin_again =
        state.waits == Waits::ForRoom && state.share == Share::Requests && GRANTED.get() != isize::MAX;
    if !can_begin_again || !POOL.is_waited_for() {
        return Ok(());
    }
    // It may be the one that may go beyond the shared bytes, which another can use now.
    POOL.end(state.request);
    if state.taken == 0 {
        return Ok(());
    }
    state.backs_off = Some(state.taken);
    STATE.set(Some(state));
    let held = u64::try_from(held()).unwrap_or(0);
    Err(Refusal::NoRoom { held, needed: 0, used: POOL.used(), limit: POOL.limit() })
}

/// Says that the request has changed what others see: it is not refused any more for want of memory, and not begun again.
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

/// Makes room in a vector for so many more, a quarter more than there are if it has to move; asked for first.
///
/// # Errors
/// As `grow`.
pub fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<(), Refusal> {
    let needed = bytes.len().saturating_add(more);
    if needed <= bytes.capacity() {
        return Ok(());
    }
    let whole = needed.max(bytes.capacity().saturating_add(bytes.capacity() / 4));
    // The old ones stand beside the new ones until they have been copied.
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
