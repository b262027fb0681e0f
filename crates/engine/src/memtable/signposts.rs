//! A sparse index of a long skip list: finds a node shortly before a key in a few steps that lie close together in memory.
//!
//! A search down the levels of a skip list has a cache miss at each node. This index is a tree whose nodes hold a few bytes
//! of many list keys side by side, in order, with pointers to the list nodes. A leaf stores 64 bits of each key, after the
//! prefix that all its keys share. The few inner nodes store 16 bytes.
//!
//! The index is only a hint, which keeps it simple: entries move in place while others read, so a reader may see an entry
//! twice, miss one, or see one with its neighbour's pointer. It is guaranteed only that the result is some node of the
//! list. The caller checks that the node is before the key; a search from any earlier node is correct too. Every pointer
//! is valid at any time: index nodes live as long as the arena, and an entry below `len` is written before it is counted
//! and is only ever replaced by another valid pointer.

use super::arena::Arena;
use super::prefetch;
use super::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use helenus_host::prefetch_lines;
use std::hint::select_unpredictable;
use std::ptr::{NonNull, null, null_mut};

/// Entries of a board.
const ENTRIES: usize = 32;
/// Levels of boards: 16^8 nodes are more than memory holds.
const DEPTH_MAX: usize = 8;
/// Boards in the largest piece of memory: about 100 KB.
const STOCK_MAX: u32 = 128;
/// Bytes of a key that its head has.
const HEAD_BYTES: usize = 16;
/// Bits of a head that a board of nodes has of each key.
const CUT_BITS: u32 = u64::BITS;
/// Cache lines of a board.
const BOARD_LINES: usize = (32 + ENTRIES * (size_of::<u64>() + size_of::<usize>())).div_ceil(64);
/// And of what stands behind one that leads to boards.
const ABOVE_LINES: usize = ENTRIES * (size_of::<u64>() + size_of::<usize>()) / 64;

/// A key's first 16 bytes as a number, zeroes behind a short one. Of two keys, the one with the lower head is the lower.
type Head = u128;

/// The head of a key.
fn head_of(key: &[u8]) -> Head {
    let mut bytes = [0; HEAD_BYTES];
    let len = key.len().min(HEAD_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
}

/// What a board has of a head, where so many bits of it are left out.
#[inline(always)]
fn cut(head: Head, alike: u32) -> u64 {
    (head << alike >> CUT_BITS) as u64
}

/// The first of so many entries in order that is not before what is looked for.
#[inline(always)]
fn partition_point(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut rest) = (0, len);
    // Which half it is cannot be guessed, and a wrong guess costs more than both.
    while rest > 1 {
        let half = rest / 2;
        from = select_unpredictable(is_before(from + half - 1), from + half, from);
        rest -= half;
    }
    from + usize::from(rest > 0 && is_before(from))
}

/// A tree of boards that leads to nodes of type `N`. One writer at a time, readers without a lock.
pub(super) struct Signposts<N> {
    /// The topmost board; null while there is none.
    root: AtomicPtr<Board<N>>,
    /// The writer's: the boards of the lowest and of the highest heads, to which keys that come in order are added.
    lowest: AtomicPtr<Board<N>>,
    highest: AtomicPtr<Board<N>>,
    stock: Stock<N>,
}

#[repr(C, align(64))]
struct Board<N> {
    /// Entries that are there, in order of their heads; and, above the lowest byte, the bits of their heads that all have alike
    /// and are left out: none on boards that lead to boards.
    state: AtomicU32,
    /// Null where entries lead to nodes. Otherwise they lead to boards, whose entries are not below the head, but for the first
    /// one's.
    above: *const Above<N>,
    /// One of the heads, of which what all have alike is used.
    base: (AtomicU64, AtomicU64),
    /// Of each head the 64 bits behind what is left out.
    cuts: [AtomicU64; ENTRIES],
    places: [AtomicPtr<N>; ENTRIES],
}

/// How a head stands to those on a board.
enum Cut {
    /// Below or above all of them, by the bits that they have alike.
    Below,
    Above,
    /// It has those bits too; what comes behind them.
    Among(u64),
}

/// What a board that leads to boards has more of each.
struct Above<N> {
    /// The bits of the head behind the first 64.
    rests: [AtomicU64; ENTRIES],
    /// Of a board of nodes the first one; null of others.
    firsts: [AtomicPtr<N>; ENTRIES],
}

/// An entry in hand.
struct Entry<N> {
    head: Head,
    place: *mut N,
    /// Of a board of nodes the first one, null otherwise.
    first: *mut N,
}

impl<N> Default for Signposts<N> {
    fn default() -> Signposts<N> {
        let none = AtomicPtr::default;
        let stock = Stock { leaves: Room::default(), inner: Room::default() };
        Signposts { root: none(), lowest: none(), highest: none(), stock }
    }
}

impl<N> Signposts<N> {
    /// A node whose key lies below this one and near it, if nothing was moved meanwhile; any node otherwise, or `None`, as
    /// where many keys have the first bytes of this one. And the next node with a signpost, if it is at hand: null otherwise.
    #[inline]
    pub(super) fn before(&self, key: &[u8]) -> Option<(NonNull<N>, *mut N)> {
        let head = head_of(key);
        let mut place = self.root.load(Ordering::Acquire);
        prefetch_lines(place, BOARD_LINES);
        for _ in 0..DEPTH_MAX {
            // SAFETY: the root, or from a board whose entries lead to boards: null or a board in the arena.
            let board = unsafe { place.as_ref() }?;
            let (len, alike) = board.state();
            let Some(above) = board.above() else {
                let cut = board.cut(head, alike);
                let index = board.first_not_below(&cut, len);
                // Many keys with these bits, and more behind them: none of them is near for being led to the first.
                if let Cut::Among(cut) = cut
                    && key.len() * 8 > (alike + CUT_BITS) as usize
                    && index + 1 < len
                    && board.cuts[index + 1].load(Ordering::Relaxed) == cut
                {
                    return None;
                }
                let next = if index < len { board.place(index) } else { null_mut() };
                return Some((NonNull::new(board.place(index.checked_sub(1)?))?, next));
            };
            let index = partition_point(len, |index| board.whole(above, index) < head);
            if key.len() > HEAD_BYTES && index + 1 < len && board.whole(above, index + 1) == head {
                return None;
            }
            let child = index.saturating_sub(1);
            place = board.place(child).cast();
            prefetch_lines(place, BOARD_LINES);
            let first = above.firsts[child].load(Ordering::Relaxed);
            if first.is_null() {
                // A board that leads to boards.
                prefetch_lines(place.wrapping_add(1), ABOVE_LINES);
            }
            let next = above.firsts[index.min(len.saturating_sub(1))].load(Ordering::Relaxed);
            prefetch::pages(first, next);
        }
        None
    }

    /// Adds a node. The caller is the only writer, and `arena` is the list's own.
    pub(super) fn add(&self, arena: &Arena, key: &[u8], node: NonNull<N>) {
        let entry = Entry { head: head_of(key), place: node.as_ptr(), first: null_mut() };
        // SAFETY: each is null or a board in the arena.
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
        // The way down: each board, and the entry of the one above that leads to it.
        let mut way = [(self.root.load(Ordering::Relaxed), 0); DEPTH_MAX];
        let mut depth = 0;
        // SAFETY: the root, or from a board whose entries lead to boards: in the arena.
        while let Some(board) = unsafe { way[depth].0.as_ref() }.filter(|board| !board.is_leaf()) {
            let index = board.first_above(entry.head).saturating_sub(1);
            depth += 1;
            if depth == DEPTH_MAX {
                return;
            }
            way[depth] = (board.place(index).cast(), index);
        }
        self.insert(arena, &way[..=depth], entry);
    }

    /// Adds an entry to the lowest board of a way, and to those above what that makes necessary.
    fn insert(&self, arena: &Arena, way: &[(*mut Board<N>, usize)], mut entry: Entry<N>) {
        for (depth, (place, index)) in way.iter().enumerate().rev() {
            // SAFETY: the boards of a way are in the arena.
            let Some(board) = (unsafe { place.as_ref() }) else { return };
            let Some((left, right)) = board.insert((arena, &self.stock), entry) else { return };
            if self.lowest.load(Ordering::Relaxed) == *place {
                self.lowest.store(left.as_ptr(), Ordering::Relaxed);
            }
            if self.highest.load(Ordering::Relaxed) == *place {
                self.highest.store(right.place.cast(), Ordering::Relaxed);
            }
            // SAFETY: made just now, or of the way.
            let left = Entry::of(left, unsafe { left.as_ref() }.head(0));
            // SAFETY: as above.
            match depth.checked_sub(1).and_then(|above| unsafe { way[above].0.as_ref() }) {
                // Below the first entry lies what came since it was put up.
                Some(above) if *index == 0 => above.replace_first(&left),
                Some(above) => above.put_place(*index, &left),
                None => {
                    let root = self.stock.make(arena, false, &[left, right]);
                    self.root.store(root.as_ptr(), Ordering::Release);
                    return;
                }
            }
            // What is left out of heads may make the board's lowest lower than all it leads to.
            let lowest = way.get(depth.wrapping_sub(1)).and_then(|(above, _)| {
                // SAFETY: as above.
                unsafe { above.as_ref() }.map(|above| above.head(*index))
            });
            entry = Entry { head: right.head.max(lowest.unwrap_or(0)), ..right };
        }
    }
}

impl<N> Entry<N> {
    /// The entry that leads to a board.
    fn of(board: NonNull<Board<N>>, head: Head) -> Entry<N> {
        // SAFETY: boards are in the arena.
        let it = unsafe { board.as_ref() };
        let first = if it.is_leaf() { it.place(0) } else { null_mut() };
        Entry { head, place: board.as_ptr().cast(), first }
    }
}

impl<N> Board<N> {
    #[inline(always)]
    fn above(&self) -> Option<&Above<N>> {
        // SAFETY: null or in the arena since before the board was.
        unsafe { self.above.as_ref() }
    }

    fn is_leaf(&self) -> bool {
        self.above.is_null()
    }

    #[inline(always)]
    fn place(&self, index: usize) -> *mut N {
        self.places[index].load(Ordering::Acquire)
    }

    /// Entries, and the bits that their heads have alike.
    #[inline(always)]
    fn state(&self) -> (usize, u32) {
        let state = self.state.load(Ordering::Acquire);
        ((state as usize & 0xFF).min(ENTRIES), (state >> 8).min(Head::BITS - CUT_BITS))
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.state().0
    }

    fn set_state(&self, len: usize, alike: u32) {
        self.state.store(len as u32 | alike << 8, Ordering::Release);
    }

    #[inline(always)]
    fn base(&self) -> Head {
        let (high, low) = (&self.base.0, &self.base.1);
        Head::from(high.load(Ordering::Relaxed)) << 64 | Head::from(low.load(Ordering::Relaxed))
    }

    /// How a head stands to those here, which have so many bits alike.
    #[inline(always)]
    fn cut(&self, head: Head, alike: u32) -> Cut {
        let base = self.base();
        match (head ^ base).leading_zeros() < alike {
            true if head < base => Cut::Below,
            true => Cut::Above,
            false => Cut::Among(cut(head, alike)),
        }
    }

    /// The head of an entry of a board that leads to boards.
    #[inline(always)]
    fn whole(&self, above: &Above<N>, index: usize) -> Head {
        let rest = above.rests[index].load(Ordering::Relaxed);
        Head::from(self.cuts[index].load(Ordering::Relaxed)) << CUT_BITS | Head::from(rest)
    }

    /// The head of an entry as far as it is here, with zeroes behind it.
    fn head(&self, index: usize) -> Head {
        if let Some(above) = self.above() {
            return self.whole(above, index);
        }
        let (_, alike) = self.state();
        let cut = Head::from(self.cuts[index].load(Ordering::Relaxed)) << CUT_BITS >> alike;
        (self.base() & !(Head::MAX >> alike)) | cut
    }

    /// The first entry of a board of nodes that is not below a head.
    #[inline]
    fn first_not_below(&self, cut: &Cut, len: usize) -> usize {
        match cut {
            Cut::Below => 0,
            Cut::Above => len,
            Cut::Among(cut) => partition_point(len, |index| self.cuts[index].load(Ordering::Relaxed) < *cut),
        }
    }

    /// The first entry above this head.
    fn first_above(&self, head: Head) -> usize {
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

    /// Makes a head one that can stand here: where it has not the bits that all have alike, fewer are.
    fn admit(&self, head: Head) {
        if !self.is_leaf() {
            return;
        }
        let (len, alike) = self.state();
        let common = (head ^ self.base()).leading_zeros();
        if len == 0 {
            self.base.0.store((head >> 64) as u64, Ordering::Relaxed);
            self.base.1.store(head as u64, Ordering::Relaxed);
            self.set_state(0, Head::BITS - CUT_BITS);
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

    /// Puts an entry in the place of the first, which is not below it.
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

    /// Adds an entry behind all others, if it belongs there and there is room.
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

    /// Adds an entry before that of an index. There is room.
    fn put_between(&self, index: usize, entry: &Entry<N>) {
        self.admit(entry.head);
        let (len, alike) = self.state();
        for moved in (index..len).rev() {
            self.put(moved + 1, &self.entry(moved));
        }
        self.put(index, entry);
        self.set_state(len + 1, alike);
    }

    /// Adds an entry where it belongs. If there is no room, this board becomes two: the left one, and the entry that leads to
    /// the right one.
    fn insert(
        &self,
        (arena, stock): (&Arena, &Stock<N>),
        entry: Entry<N>,
    ) -> Option<(NonNull<Board<N>>, Entry<N>)> {
        let (len, index) = (self.len(), self.first_above(entry.head));
        if len < ENTRIES {
            self.put_between(index, &entry);
            return None;
        }
        let this = NonNull::from(self);
        // Keys that come in order, either way, leave full boards behind.
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
            // SAFETY: made just now.
            Some(index) if index > 0 => unsafe { right.as_ref() }.put_between(index, &entry),
            _ => self.put_between(index, &entry),
        }
        Some((this, Entry::of(right, upper[0].head)))
    }
}

/// The writer's: room for boards to come. Boards that lead to boards stand apart from the many others: each search looks at several.
struct Stock<N> {
    leaves: Room<Board<N>>,
    inner: Room<Inner<N>>,
}

/// A board that leads to boards, and what it has beside its entries.
#[repr(C)]
struct Inner<N> {
    board: Board<N>,
    above: Above<N>,
}

impl<N> Stock<N> {
    /// A board of at most `ENTRIES` entries, which are in order.
    fn make(&self, arena: &Arena, is_leaf: bool, entries: &[Entry<N>]) -> NonNull<Board<N>> {
        let board = Board {
            state: AtomicU32::new(0),
            above: null(),
            base: Default::default(),
            cuts: std::array::from_fn(|_| AtomicU64::default()),
            places: std::array::from_fn(|_| AtomicPtr::default()),
        };
        let board = if is_leaf {
            self.leaves.place(arena, board)
        } else {
            let above = Above {
                rests: std::array::from_fn(|_| AtomicU64::default()),
                firsts: std::array::from_fn(|_| AtomicPtr::default()),
            };
            let inner = self.inner.place(arena, Inner { board, above }).as_ptr();
            // SAFETY: made just now, and nobody else knows it.
            unsafe {
                (*inner).board.above = &raw const (*inner).above;
                NonNull::new_unchecked(&raw mut (*inner).board)
            }
        };
        // SAFETY: as above.
        let made = unsafe { board.as_ref() };
        for (index, entry) in entries.iter().enumerate() {
            made.put_between(index, entry);
        }
        board
    }
}

/// Room for things side by side. Each search goes to another board, and among the nodes each would be on a page of memory of
/// its own, whose place the processor has to look up first.
struct Room<T> {
    next: AtomicPtr<T>,
    left: AtomicU32,
    /// Things of the last piece of memory.
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
        // SAFETY: a piece has room for as many as were counted, behind what aligns the first.
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

    /// Adds keys in this order; each search afterwards leads to the key before the one looked for.
    fn check(keys: impl Iterator<Item = u32>) {
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
    fn keys_far_from_others_keep_their_order_on_boards_that_are_split() {
        let (arena, posts) = (Arena::default(), Signposts::<[u8; 12]>::default());
        let key = |group: u8, number: u32| -> [u8; 12] {
            std::array::from_fn(|at| if at < 8 { group } else { number.to_be_bytes()[at - 8] })
        };
        // The last goes on the second board, which then has nothing of what tells its others apart, and is split.
        let in_order = (0..60).map(|number| key(5, 2 * number)).chain([key(6, 0)]);
        let between = (32..60).map(|number| key(5, 2 * number + 1));
        // Their first six bits are all that those of both groups have alike: what is different stands before the 71st.
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
        let (arena, posts) = (Arena::default(), Signposts::<u32>::default());
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
                // Any node, but a node.
                if let Some((found, _)) = posts.before(&key) {
                    // SAFETY: in the arena.
                    let found = u32::from_be_bytes(*unsafe { found.as_ref() });
                    assert!(found.wrapping_mul(INVERSE) < n);
                }
            }
        });
    }
}
