//! The memory of one memtable: allocation moves a pointer forward, and all of it is freed at once.
//!
//! Destructors do not run, so values that own something outside the arena do not belong here. An allocation keeps its
//! address until the arena is dropped, which happens when the last reader of the memtable is gone.

use super::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};
use crate::sharded::{Sharded, is_exclusive};
use helenus_host::account::uncounted;
use helenus_host::{HUGE_PAGE_BYTES, TaskHandle, remap_as_huge_pages};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Alignment of every allocation.
const ALIGN: usize = 8;
/// Size of the first chunk: small, because a table may be hardly written.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Chunks double up to this size: a huge page.
pub(super) const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;

/// The memory that all memtables of a database use together, and the spare chunks of flushed memtables. Chunks are
/// reused because the kernel clears new pages, which costs a write more than all its other work in memory.
#[derive(Clone, Default)]
pub struct MemoryAccount(Arc<Account>);

#[derive(Default)]
struct Account {
    bytes: std::sync::atomic::AtomicUsize,
    /// Spare chunks, each of `CHUNK_BYTES_MAX`.
    spare: parking_lot::Mutex<Vec<Chunk>>,
    /// Limit for memtables and spare chunks together.
    bytes_max: usize,
    /// Bytes of tables whose flush fails (`stuck`).
    stuck: std::sync::atomic::AtomicUsize,
    /// Consecutive calls of `trim` between which no chunk was taken.
    looks_at_rest: std::sync::atomic::AtomicU32,
    /// The task that prepares chunks.
    preparer: OnceLock<Arc<dyn TaskHandle>>,
}

/// Idle calls of `trim` after which spare chunks are freed: five minutes. Writes that resume before then find cleared
/// memory in huge pages.
const LOOKS_AT_REST_MIN: u32 = 3000;
/// Chunks are in demand up to this number of idle calls of `trim`.
const LOOKS_IN_DEMAND_MAX: u32 = 5;
/// Chunks that one call of `trim` frees.
const TRIMMED: usize = 8;
/// One chunk is prepared for this many in use, up to a maximum.
const USED_FOR_PREPARED: usize = 4;
const PREPARED_MAX: usize = 8;

impl MemoryAccount {
    /// An account that keeps spare chunks while they and the memory in use are at most `bytes_max`.
    pub fn keeping(bytes_max: usize) -> MemoryAccount {
        MemoryAccount(Arc::new(Account { bytes_max, ..Account::default() }))
    }

    /// Bytes in use, without spare chunks.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// The limit.
    pub(super) fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// Bytes of tables whose flush fails.
    pub(super) fn stuck(&self) -> &std::sync::atomic::AtomicUsize {
        &self.0.stuck
    }

    /// Frees some spare chunks if no chunk was taken during the last calls. Called ten times a second, so that an idle
    /// server becomes small again.
    pub fn trim(&self) {
        let looks = self.0.looks_at_rest.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if looks < LOOKS_AT_REST_MIN {
            return;
        }
        let chunks = {
            let mut spare = self.0.spare.lock();
            let left = spare.len().saturating_sub(TRIMMED);
            spare.split_off(left)
        };
        drop(chunks);
    }

    /// Moves a spare chunk to huge pages, if chunks are in demand and one is not there yet. Returns whether it did.
    /// Writes look up partitions, and flushes read rows, at random addresses, where huge pages are faster. The caller
    /// may wait: the first access to a huge page clears two megabytes.
    pub fn gather(&self) -> bool {
        if self.0.looks_at_rest.load(std::sync::atomic::Ordering::Relaxed) > LOOKS_IN_DEMAND_MAX {
            return false;
        }
        let Some(mut chunk) = self.scattered() else { return false };
        chunk.is_gathered = true;
        // SAFETY: nobody has a piece of a spare chunk's memory, and the chunk was taken out of the list.
        unsafe { remap_as_huge_pages(chunk.memory.as_ptr(), chunk.size) };
        self.0.spare.lock().push(chunk);
        true
    }

    /// Sets the task that is woken when a chunk is taken and too few are prepared; it calls `prepare`.
    pub fn set_preparer(&self, preparer: Arc<dyn TaskHandle>) {
        let _ = self.0.preparer.set(preparer);
    }

    /// Adds a spare chunk in a huge page, if too few are prepared for the present demand. Returns whether it did. An
    /// allocation that finds no spare chunk does not wait for this; it gets small pages, which take longer to obtain
    /// and to read at random.
    pub fn prepare(&self) -> bool {
        if !self.is_short_of_prepared(&self.0.spare.lock()) {
            return false;
        }
        let mut chunk = Chunk::new(CHUNK_BYTES_MAX);
        chunk.is_gathered = true;
        // SAFETY: nobody has a piece of it yet, and it holds nothing.
        unsafe { remap_as_huge_pages(chunk.memory.as_ptr(), chunk.size) };
        self.0.spare.lock().push(chunk);
        true
    }

    fn is_short_of_prepared(&self, spare: &[Chunk]) -> bool {
        if self.0.looks_at_rest.load(std::sync::atomic::Ordering::Relaxed) > LOOKS_IN_DEMAND_MAX {
            return false;
        }
        let used = self.bytes() / CHUNK_BYTES_MAX;
        let wanted = (used / USED_FOR_PREPARED).min(PREPARED_MAX);
        let has_room = self.bytes() + (spare.len() + 1) * CHUNK_BYTES_MAX <= self.0.bytes_max;
        has_room && spare.iter().filter(|chunk| chunk.is_gathered).count() < wanted
    }

    /// Takes a spare chunk that is not in huge pages yet.
    fn scattered(&self) -> Option<Chunk> {
        let mut spare = self.0.spare.lock();
        let place = spare.iter().position(|chunk| !chunk.is_gathered)?;
        Some(spare.swap_remove(place))
    }

    fn chunk(&self, size: usize) -> Chunk {
        self.0.looks_at_rest.store(0, std::sync::atomic::Ordering::Relaxed);
        if size != CHUNK_BYTES_MAX {
            return Chunk::new(size);
        }
        let (found, is_short) = {
            let mut spare = self.0.spare.lock();
            let gathered = spare.iter().rposition(|chunk| chunk.is_gathered);
            let found = gathered.or(spare.len().checked_sub(1)).map(|place| spare.swap_remove(place));
            (found, self.is_short_of_prepared(&spare))
        };
        if let Some(preparer) = self.0.preparer.get().filter(|_| is_short) {
            preparer.wake();
        }
        found.unwrap_or_else(|| Chunk::new(size))
    }

    fn take_back(&self, mut chunk: Chunk) {
        if chunk.size != CHUNK_BYTES_MAX {
            return;
        }
        chunk.used = AtomicUsize::new(0);
        let mut spare = self.0.spare.lock();
        if self.bytes() + (spare.len() + 1) * CHUNK_BYTES_MAX <= self.0.bytes_max {
            spare.push(chunk);
        }
    }
}

/// A bump allocator for many threads. Consecutive allocations of a thread are adjacent.
pub struct Arena {
    /// The chunks that are being filled, one for each thread (or group of threads that share a slot).
    current: Sharded<AtomicPtr<Chunk>>,
    chunks: Mutex<Vec<NonNull<Chunk>>>,
    reserved: AtomicUsize,
    account: MemoryAccount,
}

/// Aligned to a cache line, because allocating threads change `used`.
#[repr(align(64))]
struct Chunk {
    memory: NonNull<u8>,
    size: usize,
    used: AtomicUsize,
    /// Whether the kernel was asked to put the chunk into huge pages.
    is_gathered: bool,
}

// SAFETY: a chunk's memory is handed out in disjoint pieces (by one thread alone, or by fetch_add), and the list of
// chunks is behind a lock.
unsafe impl Send for Arena {}
// SAFETY: as above; no method hands out the same bytes twice.
unsafe impl Sync for Arena {}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new(MemoryAccount::default())
    }
}

impl Arena {
    /// An empty arena whose memory is added to `account`.
    pub fn new(account: MemoryAccount) -> Arena {
        let reserved = AtomicUsize::new(0);
        Arena { current: Sharded::default(), chunks: Mutex::new(Vec::new()), reserved, account }
    }

    /// Bytes reserved from the system, which is what counts against the memory limit.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Bytes handed out, for tests that count them exactly.
    #[cfg(test)]
    pub(super) fn used_bytes(&self) -> usize {
        let chunks = self.chunks.lock();
        // SAFETY: chunks live as long as the arena.
        let used = |chunk: &NonNull<Chunk>| unsafe { chunk.as_ref() }.used.load(Ordering::Relaxed);
        chunks.iter().map(used).sum()
    }

    /// Uninitialised memory of `len` bytes, aligned to 8, valid until the arena is dropped.
    pub fn allocate(&self, len: usize) -> NonNull<u8> {
        let len = len.next_multiple_of(ALIGN);
        let current = self.current.of_this_thread().load(Ordering::Acquire);
        // SAFETY: `current` is null or a chunk of this arena, and chunks live as long as the arena.
        if let Some(found) = unsafe { current.as_ref() }.and_then(|chunk| chunk.take(len)) {
            return found;
        }
        self.allocate_in_new_chunk(len)
    }

    /// Copies bytes into the arena.
    pub fn copy(&self, bytes: &[u8]) -> NonNull<u8> {
        let to = self.allocate(bytes.len());
        // SAFETY: `to` has room for `bytes.len()` bytes and was handed to nobody else.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        to
    }

    /// Moves a value into the arena. Its destructor never runs.
    pub fn place<T>(&self, value: T) -> NonNull<T> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let to = self.allocate(size_of::<T>()).cast::<T>();
        // SAFETY: freshly allocated for this size and alignment.
        unsafe { to.write(value) };
        to
    }

    /// Uninitialised memory of `CHUNK_BYTES_MAX` bytes, aligned to its size, valid until the arena is dropped. For
    /// data that is read at random, and therefore better lies in one huge page.
    pub fn allocate_whole(&self) -> NonNull<u8> {
        let chunk = self.reserve(CHUNK_BYTES_MAX);
        let Some(found) = chunk.take(CHUNK_BYTES_MAX) else {
            unreachable!("a new chunk has room for what it was made for")
        };
        self.chunks.lock().push(NonNull::from(Box::leak(Box::new(chunk))));
        found
    }

    fn allocate_in_new_chunk(&self, len: usize) -> NonNull<u8> {
        let mut chunks = self.chunks.lock();
        let cell = self.current.of_this_thread();
        let current = cell.load(Ordering::Acquire);
        // SAFETY: as in `allocate`. Another thread may have added a chunk since.
        let previous = unsafe { current.as_ref() };
        if let Some(found) = previous.and_then(|chunk| chunk.take(len)) {
            return found;
        }
        let grown = previous.map_or(CHUNK_BYTES_MIN, |chunk| (chunk.size * 2).min(CHUNK_BYTES_MAX));
        let chunk = self.reserve(grown.max(len));
        let Some(found) = chunk.take(len) else {
            unreachable!("a new chunk has room for what it was made for")
        };
        let chunk = NonNull::from(Box::leak(Box::new(chunk)));
        chunks.push(chunk);
        cell.store(chunk.as_ptr(), Ordering::Release);
        found
    }

    /// A chunk of at least `size` bytes, which counts as used from now on.
    fn reserve(&self, size: usize) -> Chunk {
        let chunk = self.account.chunk(size);
        self.reserved.fetch_add(chunk.size, Ordering::Relaxed);
        self.account.0.bytes.fetch_add(chunk.size, Ordering::Relaxed);
        chunk
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.account.0.bytes.fetch_sub(self.reserved_bytes(), Ordering::Relaxed);
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: leaked from a Box in `allocate_in_new_chunk` or `allocate_whole`, freed only here.
            let chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
            self.account.take_back(*chunk);
        }
    }
}

// SAFETY: a chunk owns its memory, and `take` hands out disjoint pieces of it.
unsafe impl Send for Chunk {}

impl Chunk {
    fn new(size: usize) -> Chunk {
        let layout = Chunk::layout(size);
        // SAFETY: the layout is not of size zero: chunks have at least `CHUNK_BYTES_MIN` bytes.
        let memory = uncounted(|| unsafe { std::alloc::alloc(layout) });
        let Some(memory) = NonNull::new(memory) else { std::alloc::handle_alloc_error(layout) };
        Chunk { memory, size, used: AtomicUsize::new(0), is_gathered: false }
    }

    fn layout(size: usize) -> Layout {
        let align = if size == CHUNK_BYTES_MAX { HUGE_PAGE_BYTES } else { ALIGN };
        Layout::from_size_align(size, align)
            .unwrap_or_else(|_| unreachable!("chunk sizes are far below isize::MAX"))
    }

    /// Takes a piece of the chunk. Only the threads that share a slot of `Arena::current` call this for the same
    /// chunk.
    fn take(&self, len: usize) -> Option<NonNull<u8>> {
        let at = if is_exclusive() {
            let at = self.used.load(Ordering::Relaxed);
            self.used.store(at + len, Ordering::Relaxed);
            at
        } else {
            self.used.fetch_add(len, Ordering::Relaxed)
        };
        if at.checked_add(len)? > self.size {
            return None;
        }
        // SAFETY: `at + len` lies within the chunk's memory.
        Some(unsafe { self.memory.add(at) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        uncounted(|| unsafe { std::alloc::dealloc(self.memory.as_ptr(), Chunk::layout(self.size)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_stay_as_written() {
        let arena = Arena::default();
        let count: u32 = if cfg!(miri) { 300 } else { 5000 };
        let pieces: Vec<_> =
            (0..count).map(|n| (n, arena.copy(&n.to_be_bytes().repeat(1 + n as usize % 7)))).collect();
        for (n, piece) in pieces {
            let len = 4 * (1 + n as usize % 7);
            // SAFETY: allocated above with this length.
            let bytes = unsafe { std::slice::from_raw_parts(piece.as_ptr(), len) };
            assert_eq!(bytes, n.to_be_bytes().repeat(1 + n as usize % 7));
        }
    }

    #[test]
    fn spare_chunks_are_gathered_once_and_used_again() {
        let account = MemoryAccount::keeping(4 * CHUNK_BYTES_MAX);
        let places = || -> Vec<usize> {
            let arena = Arena::new(account.clone());
            let pieces = (0..6 * CHUNK_BYTES_MAX / CHUNK_BYTES_MIN).map(|_| arena.allocate(CHUNK_BYTES_MIN));
            pieces.map(|piece| piece.addr().get()).collect()
        };
        let gathered = || account.0.spare.lock().iter().filter(|chunk| chunk.is_gathered).count();
        let first = places().into_iter().collect::<std::collections::HashSet<usize>>();
        assert_eq!(
            (gathered(), account.0.spare.lock().len()),
            (0, 4),
            "four chunks of a dropped arena are spare"
        );
        assert!((0..4).all(|_| account.gather()) && !account.gather());
        assert_eq!(gathered(), 4);
        let second = places();
        assert!(
            second.iter().filter(|place| first.contains(place)).count()
                >= 4 * CHUNK_BYTES_MAX / CHUNK_BYTES_MIN
        );
        assert_eq!(gathered(), 4, "the same chunks come back");
        (0..LOOKS_AT_REST_MIN).for_each(|_| account.trim());
        assert_eq!(gathered(), 4, "who has just used them may soon do so again");
        account.trim();
        assert_eq!(gathered(), 0, "and gives them back at rest");
    }

    #[test]
    fn chunks_are_prepared_as_long_as_they_are_in_demand() {
        let account = MemoryAccount::keeping(64 * CHUNK_BYTES_MAX);
        let arena = Arena::new(account.clone());
        let take = |chunks: usize| {
            (0..chunks).for_each(|_| {
                arena.allocate_whole();
            });
        };
        let prepared = || account.0.spare.lock().iter().filter(|chunk| chunk.is_gathered).count();
        take(USED_FOR_PREPARED - 1);
        assert!(!account.prepare(), "little is in use");
        take(5);
        assert!(account.prepare() && account.prepare() && !account.prepare());
        take(1);
        assert_eq!(prepared(), 1, "what was prepared is taken first");
        take(50);
        let more = std::iter::repeat_with(|| account.prepare()).take_while(|did| *did).count();
        assert_eq!((more, prepared()), (64 - 59, 64 - 59), "what is kept for reuse has its bound");
        (0..=LOOKS_IN_DEMAND_MAX).for_each(|_| account.trim());
        drop(Arena::new(account.clone()));
        account.0.spare.lock().clear();
        assert!(!account.prepare(), "nobody has asked for a while");
    }

    #[test]
    fn whole_chunks_are_aligned_and_come_back() {
        let account = MemoryAccount::keeping(2 * CHUNK_BYTES_MAX);
        let whole = || {
            let arena = Arena::new(account.clone());
            let (small, whole) = (arena.copy(b"before"), arena.allocate_whole());
            // SAFETY: both were allocated above with at least these lengths.
            unsafe {
                whole.write_bytes(7, CHUNK_BYTES_MAX);
                assert_eq!(std::slice::from_raw_parts(small.as_ptr(), 6), b"before");
            }
            assert!(arena.reserved_bytes() >= CHUNK_BYTES_MAX + CHUNK_BYTES_MIN);
            whole.addr().get()
        };
        let first = whole();
        assert!(first.is_multiple_of(CHUNK_BYTES_MAX));
        assert_eq!(first, whole());
    }

    #[test]
    fn a_piece_larger_than_any_chunk_is_served() {
        let arena = Arena::default();
        let bytes = vec![7u8; 3 * CHUNK_BYTES_MAX];
        let piece = arena.copy(&bytes);
        // SAFETY: allocated above with this length.
        assert_eq!(unsafe { std::slice::from_raw_parts(piece.as_ptr(), bytes.len()) }, &bytes[..]);
        assert!(arena.reserved_bytes() >= bytes.len());
    }
}
