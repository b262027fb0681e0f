//! A sparse index of a long skip list: finds a node shortly before a key in a few steps that lie close together in
//! memory.
//!
//! A search down the levels of a skip list has a cache miss at each node. This index is a tree whose nodes hold a few
//! bytes of many list keys side by side, in order, with pointers to the list nodes. A leaf stores 64 bits of each key,
//! after the prefix that all its keys share. The few inner nodes store 16 bytes.
//!
//! The index is only a hint, which keeps it simple: entries move in place while others read, so a reader may see an
//! entry twice, miss one, or see one with its neighbour's pointer. It is guaranteed only that the result is some node
//! of the list. The caller checks that the node is before the key; a search from any earlier node is correct too. Every
//! pointer is valid at any time: tree nodes live as long as the arena, and an entry below `len` is written before it
//! is counted and is only ever replaced by another valid pointer.

use super::arena::Arena;
use super::prefetch;
use super::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use helenus_host::prefetch_lines;
use std::hint::select_unpredictable;
use std::ptr::{NonNull, null, null_mut};

/// Entries of a tree node.
const ENTRIES: usize = 32;
/// Greatest depth of the tree: 16^8 nodes are more than memory holds.
const DEPTH_MAX: usize = 8;
/// Tree nodes in the largest allocation: about 100 KB.
const STOCK_MAX: u32 = 128;
/// Bytes of a key prefix.
const PREFIX_BYTES: usize = 16;
/// Bits that a leaf stores of each key prefix.
const CUT_BITS: u32 = u64::BITS;
/// Cache lines of a tree node.
const INDEX_NODE_LINES: usize = (32 + ENTRIES * (size_of::<u64>() + size_of::<usize>())).div_ceil(64);
/// Cache lines of the second part of an inner node.
const ABOVE_LINES: usize = ENTRIES * (size_of::<u64>() + size_of::<usize>()) / 64;

/// A key's first 16 bytes as a number; a shorter key is padded with zeroes. Lower prefixes belong to lower keys.
type KeyPrefix = u128;

/// The prefix of a key.
fn prefix_of(key: &[u8]) -> KeyPrefix {
    let mut bytes = [0; PREFIX_BYTES];
    let len = key.len().min(PREFIX_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
}

/// The 64 bits of a prefix after the first `alike` bits.
#[inline(always)]
fn cut(head: KeyPrefix, alike: u32) -> u64 {
    (head << alike >> CUT_BITS) as u64
}

/// The first of `len` ordered entries for which `is_before` is false.
#[inline(always)]
fn partition_point(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut rest) = (0, len);
    // The comparison is unpredictable, and a mispredicted branch costs more than computing both halves.
    while rest > 1 {
        let half = rest / 2;
        from = select_unpredictable(is_before(from + half - 1), from + half, from);
        rest -= half;
    }
    from + usize::from(rest > 0 && is_before(from))
}

/// A tree that leads to list nodes of type `N`. One writer at a time; readers take no lock.
pub(super) struct SparseIndex<N> {
    /// The root; null while the index is empty.
    root: AtomicPtr<IndexNode<N>>,
    /// Used by the writer: the leaves of the lowest and the highest prefixes, to which keys that arrive in order are
    /// added.
    lowest: AtomicPtr<IndexNode<N>>,
    highest: AtomicPtr<IndexNode<N>>,
    stock: Stock<N>,
}

#[repr(C, align(64))]
struct IndexNode<N> {
    /// The lowest byte is the number of entries, which are ordered by prefix. The bits above it are the number of
    /// leading bits that all prefixes share and that `cuts` leaves out; 0 in inner nodes.
    state: AtomicU32,
    /// Null in a leaf, whose entries lead to list nodes. An entry of an inner node leads to a tree node whose
    /// prefixes are not below the entry's; only the first entry's may be.
    above: *const Above<N>,
    /// One of the prefixes. Only the leading bits that all of them share are used.
    base: (AtomicU64, AtomicU64),
    /// The 64 bits of each prefix after the shared bits.
    cuts: [AtomicU64; ENTRIES],
    places: [AtomicPtr<N>; ENTRIES],
}

/// The position of a prefix relative to those of a leaf.
enum Cut {
    /// Below or above all of them, because the shared bits differ.
    Below,
    Above,
    /// The shared bits are equal; the value is the 64 bits after them.
    Among(u64),
}

/// The second part of an inner node.
struct Above<N> {
    /// The second 64 bits of each prefix.
    rests: [AtomicU64; ENTRIES],
    /// The first list node of each child that is a leaf; null for other children.
    firsts: [AtomicPtr<N>; ENTRIES],
}

/// A copy of an entry.
struct Entry<N> {
    head: KeyPrefix,
    place: *mut N,
    /// The first list node of the leaf that the entry leads to; null otherwise.
    first: *mut N,
}

impl<N> Default for SparseIndex<N> {
    fn default() -> SparseIndex<N> {
        let none = AtomicPtr::default;
        let stock = Stock { leaves: Room::default(), inner: Room::default() };
        SparseIndex { root: none(), lowest: none(), highest: none(), stock }
    }
}

impl<N> SparseIndex<N> {
    /// A list node near this key and below it, if no entry was moved meanwhile; otherwise any node. `None` if there is
    /// no node, or if many keys share this one's prefix. The second value is the next indexed node if it is in the
    /// same leaf, else null.
    #[inline]
    pub(super) fn before(&self, key: &[u8]) -> Option<(NonNull<N>, *mut N)> {
        let head = prefix_of(key);
        let mut place = self.root.load(Ordering::Acquire);
        prefetch_lines(place, INDEX_NODE_LINES);
        for _ in 0..DEPTH_MAX {
            // SAFETY: the root, or taken from an inner node: null or a tree node in the arena.
            let index_node = unsafe { place.as_ref() }?;
            let (len, alike) = index_node.state();
            let Some(above) = index_node.above() else {
                let cut = index_node.cut(head, alike);
                let index = index_node.first_not_below(&cut, len);
                // Several entries have these bits, and the key has more bits than these: the first of them need not be
                // near.
                if let Cut::Among(cut) = cut
                    && key.len() * 8 > (alike + CUT_BITS) as usize
                    && index + 1 < len
                    && index_node.cuts[index + 1].load(Ordering::Relaxed) == cut
                {
                    return None;
                }
                let next = if index < len { index_node.place(index) } else { null_mut() };
                return Some((NonNull::new(index_node.place(index.checked_sub(1)?))?, next));
            };
            let index = partition_point(len, |index| index_node.whole(above, index) < head);
            if key.len() > PREFIX_BYTES && index + 1 < len && index_node.whole(above, index + 1) == head {
                return None;
            }
            let child = index.saturating_sub(1);
            place = index_node.place(child).cast();
            prefetch_lines(place, INDEX_NODE_LINES);
            let first = above.firsts[child].load(Ordering::Relaxed);
            if first.is_null() {
                // The child is an inner node.
                prefetch_lines(place.wrapping_add(1), ABOVE_LINES);
            }
            let next = above.firsts[index.min(len.saturating_sub(1))].load(Ordering::Relaxed);
            prefetch::pages(first, next);
        }
        None
    }

    /// Adds a list node. The caller is the only writer, and `arena` is the list's own.
    pub(super) fn add(&self, arena: &Arena, key: &[u8], node: NonNull<N>) {
        let entry = Entry { head: prefix_of(key), place: node.as_ptr(), first: null_mut() };
        // SAFETY: each is null or a tree node in the arena.
        let (lowest, highest) = unsafe {
            (self.lowest.load(Ordering::Relaxed).as_ref(), self.highest.load(Ordering::Relaxed).as_ref())
        };
        let (Some(lowest), Some(highest)) = (lowest, highest) else {
            let first = self.stock.make(arena, true, &[entry]).as_ptr();
            self.lowest.store(first, Ordering::Relaxed);
            self.highest.store(first, Ordering::Relaxed);
            self.root.store(first, Ordering::Release);
            return;
        };
        if highest.push_behind(&entry) || lowest.push_before(&entry) {
            return;
        }
        // The path from the root: each tree node, with the index of its entry in its parent.
        let mut way = [(self.root.load(Ordering::Relaxed), 0); DEPTH_MAX];
        let mut depth = 0;
        // SAFETY: the root, or taken from an inner node: in the arena.
        while let Some(index_node) =
            unsafe { way[depth].0.as_ref() }.filter(|index_node| !index_node.is_leaf())
        {
            let index = index_node.first_above(entry.head).saturating_sub(1);
            depth += 1;
            if depth == DEPTH_MAX {
                return;
            }
            way[depth] = (index_node.place(index).cast(), index);
        }
        self.insert(arena, &way[..=depth], entry);
    }

    /// Adds an entry to the last tree node of a path, and to its ancestors where nodes are split.
    fn insert(&self, arena: &Arena, way: &[(*mut IndexNode<N>, usize)], mut entry: Entry<N>) {
        for (depth, (place, index)) in way.iter().enumerate().rev() {
            // SAFETY: the tree nodes of a path are in the arena.
            let Some(index_node) = (unsafe { place.as_ref() }) else { return };
            let Some((left, right)) = index_node.insert((arena, &self.stock), entry) else { return };
            if self.lowest.load(Ordering::Relaxed) == *place {
                self.lowest.store(left.as_ptr(), Ordering::Relaxed);
            }
            if self.highest.load(Ordering::Relaxed) == *place {
                self.highest.store(right.place.cast(), Ordering::Relaxed);
            }
            // SAFETY: just created, or on the path.
            let left = Entry::of(left, unsafe { left.as_ref() }.head(0));
            // SAFETY: as above.
            match depth.checked_sub(1).and_then(|above| unsafe { way[above].0.as_ref() }) {
                // The first child also holds prefixes below its entry, so the entry is replaced.
                Some(above) if *index == 0 => above.replace_first(&left),
                Some(above) => above.put_place(*index, &left),
                None => {
                    let root = self.stock.make(arena, false, &[left, right]);
                    self.root.store(root.as_ptr(), Ordering::Release);
                    return;
                }
            }
            // A leaf cuts its prefixes off, so the right half's lowest may seem to be below the parent's entry.
            let lowest = way.get(depth.wrapping_sub(1)).and_then(|(above, _)| {
                // SAFETY: as above.
                unsafe { above.as_ref() }.map(|above| above.head(*index))
            });
            entry = Entry { head: right.head.max(lowest.unwrap_or(0)), ..right };
        }
    }
}

impl<N> Entry<N> {
    /// The entry that leads to a tree node.
    fn of(index_node: NonNull<IndexNode<N>>, head: KeyPrefix) -> Entry<N> {
        // SAFETY: tree nodes are in the arena.
        let it = unsafe { index_node.as_ref() };
        let first = if it.is_leaf() { it.place(0) } else { null_mut() };
        Entry { head, place: index_node.as_ptr().cast(), first }
    }
}

impl<N> IndexNode<N> {
    #[inline(always)]
    fn above(&self) -> Option<&Above<N>> {
        // SAFETY: null, or in the arena since before this tree node was published.
        unsafe { self.above.as_ref() }
    }

    fn is_leaf(&self) -> bool {
        self.above.is_null()
    }

    #[inline(always)]
    fn place(&self, index: usize) -> *mut N {
        self.places[index].load(Ordering::Acquire)
    }

    /// The number of entries, and the number of leading bits that their prefixes share.
    #[inline(always)]
    fn state(&self) -> (usize, u32) {
        let state = self.state.load(Ordering::Acquire);
        ((state as usize & 0xFF).min(ENTRIES), (state >> 8).min(KeyPrefix::BITS - CUT_BITS))
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.state().0
    }

    fn set_state(&self, len: usize, alike: u32) {
        self.state.store(len as u32 | alike << 8, Ordering::Release);
    }

    #[inline(always)]
    fn base(&self) -> KeyPrefix {
        let (high, low) = (&self.base.0, &self.base.1);
        KeyPrefix::from(high.load(Ordering::Relaxed)) << 64 | KeyPrefix::from(low.load(Ordering::Relaxed))
    }

    /// The position of a prefix relative to those of this leaf, which share their first `alike` bits.
    #[inline(always)]
    fn cut(&self, head: KeyPrefix, alike: u32) -> Cut {
        let base = self.base();
        match (head ^ base).leading_zeros() < alike {
            true if head < base => Cut::Below,
            true => Cut::Above,
            false => Cut::Among(cut(head, alike)),
        }
    }

    /// The prefix of an entry of an inner node.
    #[inline(always)]
    fn whole(&self, above: &Above<N>, index: usize) -> KeyPrefix {
        let rest = above.rests[index].load(Ordering::Relaxed);
        KeyPrefix::from(self.cuts[index].load(Ordering::Relaxed)) << CUT_BITS | KeyPrefix::from(rest)
    }

    /// The prefix of an entry. Bits that a leaf does not store are zero.
    fn head(&self, index: usize) -> KeyPrefix {
        if let Some(above) = self.above() {
            return self.whole(above, index);
        }
        let (_, alike) = self.state();
        let cut = KeyPrefix::from(self.cuts[index].load(Ordering::Relaxed)) << CUT_BITS >> alike;
        (self.base() & !(KeyPrefix::MAX >> alike)) | cut
    }

    /// The first entry of a leaf whose prefix is not below a prefix.
    #[inline]
    fn first_not_below(&self, cut: &Cut, len: usize) -> usize {
        match cut {
            Cut::Below => 0,
            Cut::Above => len,
            Cut::Among(cut) => partition_point(len, |index| self.cuts[index].load(Ordering::Relaxed) < *cut),
        }
    }

    /// The first entry whose prefix is above this one.
    fn first_above(&self, head: KeyPrefix) -> usize {
        let (len, alike) = self.state();
        if let Some(above) = self.above() {
            return partition_point(len, |index| self.whole(above, index) <= head);
        }
        match self.cut(head, alike) {
            Cut::Below => 0,
            Cut::Above => len,
            Cut::Among(cut) => partition_point(len, |index| self.cuts[index].load(Ordering::Relaxed) <= cut),
        }
    }

    /// Prepares a leaf for a prefix: reduces the number of shared bits if the prefix differs in one of them.
    fn admit(&self, head: KeyPrefix) {
        if !self.is_leaf() {
            return;
        }
        let (len, alike) = self.state();
        let common = (head ^ self.base()).leading_zeros();
        if len == 0 {
            self.base.0.store((head >> 64) as u64, Ordering::Relaxed);
            self.base.1.store(head as u64, Ordering::Relaxed);
            self.set_state(0, KeyPrefix::BITS - CUT_BITS);
        } else if common < alike {
            for index in 0..len {
                self.cuts[index].store(cut(self.head(index), common), Ordering::Relaxed);
            }
            self.set_state(len, common);
        }
    }

    fn put(&self, index: usize, entry: &Entry<N>) {
        let (_, alike) = self.state();
        self.cuts[index].store(cut(entry.head, alike), Ordering::Relaxed);
        if let Some(above) = self.above() {
            above.rests[index].store(entry.head as u64, Ordering::Relaxed);
        }
        self.put_place(index, entry);
    }

    /// Replaces the first entry by one that is not above it.
    fn replace_first(&self, entry: &Entry<N>) {
        self.admit(entry.head);
        self.put(0, entry);
    }

    fn put_place(&self, index: usize, entry: &Entry<N>) {
        self.places[index].store(entry.place, Ordering::Release);
        if let Some(above) = self.above() {
            above.firsts[index].store(entry.first, Ordering::Relaxed);
        }
    }

    fn entry(&self, index: usize) -> Entry<N> {
        let first = self.above().map_or(null_mut(), |above| above.firsts[index].load(Ordering::Relaxed));
        Entry { head: self.head(index), place: self.place(index), first }
    }

    /// Adds an entry after all others, if it belongs there and there is room.
    #[inline]
    fn push_behind(&self, entry: &Entry<N>) -> bool {
        let len = self.len();
        let belongs = len < ENTRIES && len > 0 && self.first_above(entry.head) == len;
        if belongs {
            self.put_between(len, entry);
        }
        belongs
    }

    /// Adds an entry before all others, if it belongs there and there is room.
    #[inline]
    fn push_before(&self, entry: &Entry<N>) -> bool {
        let len = self.len();
        let belongs = len < ENTRIES && len > 0 && self.first_above(entry.head) == 0;
        if belongs {
            self.put_between(0, entry);
        }
        belongs
    }

    /// Adds an entry before the one at `index`. There is room.
    fn put_between(&self, index: usize, entry: &Entry<N>) {
        self.admit(entry.head);
        let (len, alike) = self.state();
        for moved in (index..len).rev() {
            self.put(moved + 1, &self.entry(moved));
        }
        self.put(index, entry);
        self.set_state(len + 1, alike);
    }

    /// Adds an entry. If the tree node is full it is split: returns the left node and the entry that leads to the
    /// right one.
    fn insert(
        &self,
        (arena, stock): (&Arena, &Stock<N>),
        entry: Entry<N>,
    ) -> Option<(NonNull<IndexNode<N>>, Entry<N>)> {
        let (len, index) = (self.len(), self.first_above(entry.head));
        if len < ENTRIES {
            self.put_between(index, &entry);
            return None;
        }
        let this = NonNull::from(self);
        // Keys that arrive in ascending or descending order leave full tree nodes behind.
        if index == len {
            let head = entry.head;
            return Some((this, Entry::of(stock.make(arena, self.is_leaf(), &[entry]), head)));
        }
        if index == 0 && self.is_leaf() {
            let left = stock.make(arena, true, &[entry]);
            return Some((left, Entry::of(this, self.head(0))));
        }
        let half = ENTRIES / 2;
        let upper: [Entry<N>; ENTRIES / 2] = std::array::from_fn(|index| self.entry(half + index));
        let right = stock.make(arena, self.is_leaf(), &upper);
        self.set_state(half, self.state().1);
        match index.checked_sub(half) {
            // SAFETY: just created.
            Some(index) if index > 0 => unsafe { right.as_ref() }.put_between(index, &entry),
            _ => self.put_between(index, &entry),
        }
        Some((this, Entry::of(right, upper[0].head)))
    }
}

/// Used by the writer: memory for tree nodes. Inner nodes are kept apart from the many leaves, because each search
/// reads several inner nodes.
struct Stock<N> {
    leaves: Room<IndexNode<N>>,
    inner: Room<Inner<N>>,
}

/// An inner node with its second part.
#[repr(C)]
struct Inner<N> {
    index_node: IndexNode<N>,
    above: Above<N>,
}

impl<N> Stock<N> {
    /// Creates a tree node with these entries, at most `ENTRIES` and in order.
    fn make(&self, arena: &Arena, is_leaf: bool, entries: &[Entry<N>]) -> NonNull<IndexNode<N>> {
        let index_node = IndexNode {
            state: AtomicU32::new(0),
            above: null(),
            base: Default::default(),
            cuts: std::array::from_fn(|_| AtomicU64::default()),
            places: std::array::from_fn(|_| AtomicPtr::default()),
        };
        let index_node = if is_leaf {
            self.leaves.place(arena, index_node)
        } else {
            let above = Above {
                rests: std::array::from_fn(|_| AtomicU64::default()),
                firsts: std::array::from_fn(|_| AtomicPtr::default()),
            };
            let inner = self.inner.place(arena, Inner { index_node, above }).as_ptr();
            // SAFETY: just created, and nobody else has a pointer to it.
            unsafe {
                (*inner).index_node.above = &raw const (*inner).above;
                NonNull::new_unchecked(&raw mut (*inner).index_node)
            }
        };
        // SAFETY: as above.
        let made = unsafe { index_node.as_ref() };
        for (index, entry) in entries.iter().enumerate() {
            made.put_between(index, entry);
        }
        index_node
    }
}

/// Allocates values of one type side by side. Between the list nodes, each tree node would lie on a page of its own
/// and cost a search a TLB miss.
struct Room<T> {
    next: AtomicPtr<T>,
    left: AtomicU32,
    /// Number of values in the last allocation.
    taken: AtomicU32,
}

impl<T> Default for Room<T> {
    fn default() -> Room<T> {
        Room { next: AtomicPtr::default(), left: AtomicU32::new(0), taken: AtomicU32::new(0) }
    }
}

impl<T> Room<T> {
    fn place(&self, arena: &Arena, thing: T) -> NonNull<T> {
        let mut left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            left = (self.taken.load(Ordering::Relaxed) * 2).clamp(1, STOCK_MAX);
            self.taken.store(left, Ordering::Relaxed);
            let bytes = left as usize * size_of::<T>() + align_of::<T>();
            let memory = arena.allocate(bytes);
            let ahead = memory.as_ptr().align_offset(align_of::<T>());
            self.next.store(memory.as_ptr().wrapping_add(ahead).cast(), Ordering::Relaxed);
        }
        let place = self.next.load(Ordering::Relaxed);
        self.left.store(left - 1, Ordering::Relaxed);
        // SAFETY: an allocation has room for `taken` values after the alignment of the first, and `left` of them are
        // unused.
        unsafe {
            self.next.store(place.add(1), Ordering::Relaxed);
            place.write(thing);
            NonNull::new_unchecked(place)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Adds keys in this order, then checks that the search for each leads to the key before it.
    fn check(keys: impl Iterator<Item = u32>) {
        let (arena, posts) = (Arena::default(), SparseIndex::<[u8; 4]>::default());
        let mut sorted = Vec::new();
        for key in keys {
            let key = key.to_be_bytes();
            posts.add(&arena, &key, arena.place(key));
            sorted.push(key);
        }
        sorted.sort();
        for (index, key) in sorted.iter().enumerate() {
            // SAFETY: in the arena.
            let found = posts.before(key).map(|(found, _)| *unsafe { found.as_ref() });
            assert_eq!(found, index.checked_sub(1).map(|before| sorted[before]));
        }
    }

    #[test]
    fn each_key_is_led_to_the_one_before_it_in_whatever_order_they_came() {
        let n: u32 = if cfg!(miri) { 200 } else { 30_000 };
        check(0..n);
        check((0..n).rev());
        check((0..n).map(|n| n.wrapping_mul(2_654_435_761)));
        check((0..n).map(|n| if n % 2 == 0 { n } else { n + 2 * (n % 7) }));
    }

    #[test]
    fn keys_far_from_others_keep_their_order_in_nodes_that_are_split() {
        let (arena, posts) = (Arena::default(), SparseIndex::<[u8; 12]>::default());
        let key = |group: u8, number: u32| -> [u8; 12] {
            std::array::from_fn(|at| if at < 8 { group } else { number.to_be_bytes()[at - 8] })
        };
        // The last key goes to the second leaf, whose 64 bits then no longer tell its other keys apart. Then the leaf
        // is split.
        let in_order = (0..60).map(|number| key(5, 2 * number)).chain([key(6, 0)]);
        let between = (32..60).map(|number| key(5, 2 * number + 1));
        // Keys of both groups share only their first six bits; these keys differ before the 71st bit.
        let far = (1..60).map(|number| key(6, number << 26));
        for key in in_order.chain(between).chain(far) {
            posts.add(&arena, &key, arena.place(key));
        }
        for number in 1..60 {
            // SAFETY: in the arena.
            let found = posts.before(&key(6, number << 26)).map(|(found, _)| *unsafe { found.as_ref() });
            assert_eq!(found, Some(key(6, (number - 1) << 26)));
        }
    }

    #[test]
    fn keys_of_which_many_have_one_head_are_led_nowhere() {
        let (arena, posts) = (Arena::default(), SparseIndex::<u32>::default());
        let mut key = [7_u8; 20];
        for last in 0..200 {
            key[19] = last;
            posts.add(&arena, &key, arena.place(u32::from(last)));
        }
        assert!(posts.before(&key).is_none());
        assert!(posts.before(&[7; 3]).is_none());
        posts.add(&arena, &[6; 20], arena.place(0));
        assert!(posts.before(&key).is_none());
        assert!(posts.before(&[6; 21]).is_none() && posts.before(&[7; 8]).is_some());
        assert!(posts.before(&[8]).is_some());
    }

    #[test]
    fn readers_go_on_while_a_writer_adds() {
        // 2,654,435,761 times this is 1.
        const INVERSE: u32 = 244_002_641;
        let (arena, posts) = (Arena::default(), SparseIndex::<[u8; 4]>::default());
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
                // Any node is allowed, but it must be one that was added.
                if let Some((found, _)) = posts.before(&key) {
                    // SAFETY: in the arena.
                    let found = u32::from_be_bytes(*unsafe { found.as_ref() });
                    assert!(found.wrapping_mul(INVERSE) < n);
                }
            }
        });
    }
}
