//! Signposts into a long ordered list: from a key to a node shortly before it, in two or three steps that lie close together.
//!
//! A search that goes down a list's levels waits for memory at each node it looks at. Signposts are a tree of boards: the first
//! bytes of many nodes' keys side by side, and where those nodes stand.
//!
//! They only ever hint, which makes them simple. Any node whose key lies below the one looked for is a right place to begin,
//! since nodes are never taken away; so a reader may meet boards of any age, and boards that were split while it was on its way.
//! What is asked of a writer: an entry is written whole before it is counted, and never changed afterwards but for the pointer
//! to a board that was written anew; a board once published keeps its place until the arena is dropped.

use super::arena::Arena;
use super::sync::{AtomicPtr, AtomicU32, Ordering};
use helenus_host::prefetch_lines;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

/// Entries of a board.
const ENTRIES: usize = 32;
/// Entries of a board out of order, behind those in order, before it is written anew.
const LOOSE_MAX: usize = 8;
/// Levels of boards: 32^8 nodes are more than memory holds.
const DEPTH_MAX: usize = 8;
/// Cache lines of a board's heads.
const HEAD_LINES: usize = ENTRIES * size_of::<Head>() / 64 + 1;

/// A key's first 16 bytes as numbers, zeroes behind a short one. Of two keys, the one with the lower head is the lower.
type Head = (u64, u64);

/// The head of a key.
fn head_of(key: &[u8]) -> Head {
    let mut bytes = [0; 16];
    let len = key.len().min(16);
    bytes[..len].copy_from_slice(&key[..len]);
    let number = u128::from_be_bytes(bytes);
    ((number >> 64) as u64, number as u64)
}

/// A tree of boards that leads to nodes of type `N`. One writer at a time, readers without a lock.
pub(super) struct Signposts<N> {
    /// The topmost board; null while there is none.
    root: AtomicPtr<Board<N>>,
}

struct Board<N> {
    /// Entries that are there.
    len: AtomicU32,
    /// Entries from the first on that are in order.
    ordered: AtomicU32,
    /// Whether entries lead to nodes; otherwise to boards.
    is_leaf: bool,
    heads: UnsafeCell<[MaybeUninit<Head>; ENTRIES]>,
    places: [AtomicPtr<N>; ENTRIES],
}

/// An entry.
struct Entry<N> {
    head: Head,
    place: *mut N,
}

impl<N> Clone for Entry<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Entry<N> {}

impl<N> Default for Signposts<N> {
    fn default() -> Signposts<N> {
        Signposts { root: AtomicPtr::default() }
    }
}

impl<N> Signposts<N> {
    /// A node whose key lies below this one, near it if nothing went wrong; `None` if none is known.
    #[inline]
    pub(super) fn before(&self, key: &[u8]) -> Option<NonNull<N>> {
        let head = head_of(key);
        let mut board = self.root.load(Ordering::Acquire);
        for _ in 0..DEPTH_MAX {
            // SAFETY: null or a board in the arena, written before it was published.
            let found = unsafe { board.as_ref() }?;
            prefetch_lines(board, HEAD_LINES);
            let place = found.last_below(head)?;
            if found.is_leaf {
                return NonNull::new(place);
            }
            board = place.cast();
        }
        None
    }

    /// Adds a node. The caller is the only writer, and `arena` is the list's own.
    pub(super) fn add(&self, arena: &Arena, key: &[u8], node: NonNull<N>) {
        let entry = Entry { head: head_of(key), place: node.as_ptr() };
        let Some(root) = NonNull::new(self.root.load(Ordering::Relaxed)) else {
            self.root.store(Board::place(arena, true, &[entry]).as_ptr(), Ordering::Release);
            return;
        };
        // The way down: each board, and the entry of the one above that leads to it.
        let mut way = [(root, 0); DEPTH_MAX];
        let mut depth = 0;
        loop {
            // SAFETY: boards live as long as the arena.
            let board = unsafe { way[depth].0.as_ref() };
            if board.is_leaf {
                break;
            }
            let index = board.index_for(entry.head);
            let Some(below) = NonNull::new(board.places[index].load(Ordering::Relaxed)) else { return };
            if depth + 1 == DEPTH_MAX {
                return;
            }
            depth += 1;
            way[depth] = (below.cast(), index);
        }
        let mut added = entry;
        loop {
            let (board, index) = way[depth];
            // SAFETY: as above.
            let board = unsafe { board.as_ref() };
            if board.push(added) {
                return;
            }
            let (left, right) = board.rewrite(arena, added);
            match (depth.checked_sub(1), right) {
                (Some(above), None) => {
                    // SAFETY: as above.
                    unsafe { way[above].0.as_ref() }.places[index]
                        .store(left.cast().as_ptr(), Ordering::Release);
                    return;
                }
                (Some(above), Some(right)) => {
                    // SAFETY: as above.
                    unsafe { way[above].0.as_ref() }.places[index]
                        .store(left.cast().as_ptr(), Ordering::Release);
                    added = right;
                    depth = above;
                }
                (None, None) => {
                    self.root.store(left.as_ptr(), Ordering::Release);
                    return;
                }
                (None, Some(right)) => {
                    // Nothing lies below the first entry of the leftmost boards.
                    let first = Entry { head: (0, 0), place: left.cast().as_ptr() };
                    self.root.store(Board::place(arena, false, &[first, right]).as_ptr(), Ordering::Release);
                    return;
                }
            }
        }
    }
}

impl<N> Board<N> {
    /// A board of these entries, which are in order.
    fn place(arena: &Arena, is_leaf: bool, entries: &[Entry<N>]) -> NonNull<Board<N>> {
        let mut heads = [MaybeUninit::uninit(); ENTRIES];
        let mut places = [const { AtomicPtr::new(null_mut()) }; ENTRIES];
        for (entry, (head, place)) in entries.iter().zip(heads.iter_mut().zip(&mut places)) {
            head.write(entry.head);
            *place = AtomicPtr::new(entry.place);
        }
        let len = entries.len().min(ENTRIES) as u32;
        let (len, ordered) = (AtomicU32::new(len), AtomicU32::new(len));
        arena.place(Board { len, ordered, is_leaf, heads: UnsafeCell::new(heads), places })
    }

    /// The heads of entries that are there, and how many are in order.
    #[inline]
    fn heads(&self) -> (&[Head], usize) {
        let len = (self.len.load(Ordering::Acquire) as usize).min(ENTRIES);
        let ordered = (self.ordered.load(Ordering::Acquire) as usize).min(len);
        // SAFETY: the first `len` heads were written before they were counted, and are not written again; the writer writes
        // others, which this slice does not cover.
        (unsafe { std::slice::from_raw_parts(self.heads.get().cast::<Head>(), len) }, ordered)
    }

    /// Where the entry with the highest head below this one leads.
    #[inline]
    fn last_below(&self, head: Head) -> Option<*mut N> {
        let (heads, ordered) = self.heads();
        let (in_order, loose) = heads.split_at(ordered);
        let mut best = in_order.partition_point(|other| *other < head).checked_sub(1);
        for (index, other) in loose.iter().enumerate() {
            if *other < head && best.is_none_or(|best| heads[best] < *other) {
                best = Some(ordered + index);
            }
        }
        best.map(|best| self.places[best].load(Ordering::Acquire))
    }

    /// The entry under which a new one belongs: the last with a head not above it.
    fn index_for(&self, head: Head) -> usize {
        let (heads, _) = self.heads();
        let not_above = heads.iter().enumerate().filter(|(_, other)| **other <= head);
        not_above.max_by_key(|(_, other)| **other).map_or(0, |(index, _)| index)
    }

    /// Adds an entry in place; `false` if the board has no room for it. Writer only.
    fn push(&self, entry: Entry<N>) -> bool {
        let (heads, ordered) = self.heads();
        let len = heads.len();
        let is_next = ordered == len && heads.last().is_none_or(|last| *last <= entry.head);
        if len == ENTRIES || (!is_next && len - ordered == LOOSE_MAX) {
            return false;
        }
        // SAFETY: the entry is behind those that are counted, which alone are read; the caller is the only writer.
        unsafe { self.heads.get().cast::<Head>().add(len).write(entry.head) };
        self.places[len].store(entry.place, Ordering::Release);
        if is_next {
            self.ordered.store(len as u32 + 1, Ordering::Release);
        }
        self.len.store(len as u32 + 1, Ordering::Release);
        true
    }

    /// Makes room for an entry: the board that takes the place of this one, and what is to be added above if there are two.
    fn rewrite(&self, arena: &Arena, added: Entry<N>) -> (NonNull<Board<N>>, Option<Entry<N>>) {
        let (heads, ordered) = self.heads();
        let split = |entries: &[Entry<N>]| {
            let right = Board::place(arena, self.is_leaf, entries);
            Some(Entry { head: entries[0].head, place: right.cast().as_ptr() })
        };
        // Keys that come in order leave full boards behind.
        if ordered == ENTRIES && heads.last().is_some_and(|last| *last <= added.head) {
            return (NonNull::from(self), split(&[added]));
        }
        let mut entries = [added; ENTRIES + 1];
        for (entry, (head, place)) in entries.iter_mut().zip(heads.iter().zip(&self.places)) {
            *entry = Entry { head: *head, place: place.load(Ordering::Relaxed) };
        }
        let entries = &mut entries[..=heads.len()];
        entries.sort_by_key(|entry| entry.head);
        if entries.len() + LOOSE_MAX <= ENTRIES {
            return (Board::place(arena, self.is_leaf, entries), None);
        }
        let (left, right) = entries.split_at(entries.len() / 2);
        (Board::place(arena, self.is_leaf, left), split(right))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Adds keys in this order; each search afterwards leads to a key below the one looked for, at most so many away.
    fn check(keys: impl Iterator<Item = u32>, away_max: usize) {
        let (arena, posts) = (Arena::default(), Signposts::<[u8; 4]>::default());
        let mut sorted = Vec::new();
        for key in keys {
            let key = key.to_be_bytes();
            posts.add(&arena, &key, arena.place(key));
            sorted.push(key);
        }
        sorted.sort();
        for (index, key) in sorted.iter().enumerate() {
            // SAFETY: in the arena.
            let found = posts.before(key).map(|found| *unsafe { found.as_ref() });
            let below = sorted.partition_point(|other| other < key);
            match found {
                None => assert!(below <= away_max, "nothing before {index}"),
                Some(found) => {
                    assert!(found < *key);
                    let place = sorted.partition_point(|other| *other <= found);
                    assert!(below - place <= away_max, "{} away", below - place);
                }
            }
        }
    }

    #[test]
    fn each_key_is_led_to_the_one_before_it_in_whatever_order_they_came() {
        let n: u32 = if cfg!(miri) { 200 } else { 30_000 };
        check(0..n, 0);
        check((0..n).rev(), 0);
        check((0..n).map(|n| n.wrapping_mul(2_654_435_761)), 0);
        check((0..n).map(|n| if n % 2 == 0 { n } else { 2 * n }), 0);
    }

    #[test]
    fn keys_with_one_head_lead_no_further_than_before_all_of_them() {
        let (arena, posts) = (Arena::default(), Signposts::<u32>::default());
        let mut key = [7_u8; 20];
        for last in 0..200 {
            key[19] = last;
            posts.add(&arena, &key, arena.place(u32::from(last)));
        }
        assert!(posts.before(&key).is_none());
        assert!(posts.before(&[7; 3]).is_none());
        assert!(posts.before(&[8]).is_some());
    }

    #[test]
    fn readers_go_on_while_a_writer_adds() {
        let (arena, posts) = (Arena::default(), Signposts::<[u8; 4]>::default());
        let n: u32 = if cfg!(miri) { 150 } else { 50_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..n {
                    let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
                    posts.add(&arena, &key, arena.place(key));
                }
            });
            for number in 0..n {
                let key = number.wrapping_mul(40_503).to_be_bytes();
                if let Some(found) = posts.before(&key) {
                    // SAFETY: in the arena.
                    assert!(*unsafe { found.as_ref() } < key);
                }
            }
        });
    }
}
