//! An ordered map from bytes to a value, in an arena: one writer at a time, any number of readers without a lock.
//!
//! Nodes are only ever added. Invariants:
//! 1. A node is complete before a pointer to it is stored with Release; readers load pointers with Acquire.
//! 2. Level 0 holds every node in key order; level n holds a subset of level n-1.
//! 3. A node's `previous` pointer never skips a node that was there when a reader began. A backward reader may miss
//!    nodes added later; versions (see `partition`) hide such nodes in both directions anyway.
//! 4. Keys and nodes keep their address until the arena is dropped.
//!
//! A long list also has a sparse index (see `sparse_index`) of some of its nodes, so that a search starts near its
//! target.
//!
//! `find_or_insert` needs a single writer. For the lists of a partition its caller holds the partition's writer lock,
//! for a shard's directory the lock of the shard (`store`).

use super::arena::Arena;
use super::prefetch;
use super::sparse_index::SparseIndex;
use super::sync::{AtomicPtr, AtomicU32, Ordering};
use helenus_host::prefetch_lines;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

/// The greatest height of a node. Each level has a quarter of the nodes below it: 4^12 = 16 million nodes before
/// searches take longer.
const HEIGHT_MAX: usize = 12;
/// The sparse index holds about every sixteenth node: of nodes added in key order exactly each sixteenth, of others
/// those of at least this height.
const INDEXED_HEIGHT: usize = 3;
const INDEXED_DISTANCE: u32 = 16;
/// The length of the list at which the index is built.
const INDEXED_LEN: usize = 256;
/// Nodes that a search visits from an index entry on before it falls back to a search from the head. The index
/// compares only the first bytes of keys.
const STEPS_MAX: usize = 64;
/// Levels below the current one on which a search prefetches the next node.
const PREFETCHED: usize = 2;

/// An ordered map of arena nodes.
pub struct SkipList<V> {
    /// First node of each level: an array in the arena of `height` pointers, replaced when it grows.
    head: AtomicPtr<Tower<V>>,
    /// State of the random generator for node heights, and its seed.
    random: AtomicU32,
    /// Index and finger; null while the list is tiny.
    beside: AtomicPtr<Acceleration<V>>,
    len: AtomicU32,
}

/// The last node before a position, by level.
type Predecessors<V> = [*mut Node<V>; HEIGHT_MAX];

/// The structures that speed up searches in longer lists.
struct Acceleration<V> {
    index: SparseIndex<Node<V>>,
    /// Used by the writer: the predecessors of the last insertion.
    finger: UnsafeCell<Predecessors<V>>,
    /// Used by the writer: nodes added in order since the last one that was indexed.
    unindexed: AtomicU32,
}

struct Tower<V> {
    height: usize,
    next: [AtomicPtr<Node<V>>; 0],
}

/// A node. Its tower of next pointers lies before it in memory, the lowest level last; its key follows `key_len`.
#[repr(C)]
pub struct Node<V> {
    value: V,
    previous: AtomicPtr<Node<V>>,
    key_len: u32,
}

/// A reference to a node, for as long as the list (and its arena) is borrowed.
pub struct NodeRef<'a, V> {
    node: NonNull<Node<V>>,
    list: PhantomData<&'a SkipList<V>>,
}

impl<V> Clone for NodeRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for NodeRef<'_, V> {}

impl<V> Default for SkipList<V> {
    fn default() -> SkipList<V> {
        SkipList {
            head: AtomicPtr::default(),
            random: AtomicU32::new(0x9E37_79B9),
            beside: AtomicPtr::default(),
            len: AtomicU32::new(0),
        }
    }
}

impl<'a, V> NodeRef<'a, V> {
    /// The node's key.
    pub fn key(self) -> &'a [u8] {
        // SAFETY: the key was written behind the node before that was published (invariants 1 and 4).
        unsafe {
            let node = self.node.as_ref();
            let key = self.node.byte_add(Node::<V>::KEY_AT).cast();
            std::slice::from_raw_parts(key.as_ptr(), node.key_len as usize)
        }
    }

    /// Whether its key is below another.
    #[inline(always)]
    pub fn is_below(self, key: &[u8]) -> bool {
        self.key() < key
    }

    /// The node's value.
    pub fn value(self) -> &'a V {
        // SAFETY: written before the node was published, never moved (invariants 1 and 4).
        unsafe { &(*self.node.as_ptr()).value }
    }

    /// The next node in order.
    pub fn next(self) -> Option<NodeRef<'a, V>> {
        // SAFETY: every node has level 0.
        NodeRef::new(unsafe { Node::next(self.node, 0) }.load(Ordering::Acquire))
    }

    /// The node before this one (see invariant 3).
    pub fn previous(self) -> Option<NodeRef<'a, V>> {
        // SAFETY: the node lives as long as the arena.
        NodeRef::new(unsafe { self.node.as_ref() }.previous.load(Ordering::Acquire))
    }

    /// The node's address, for a cursor that keeps the arena alive by other means.
    pub fn as_ptr(self) -> NonNull<Node<V>> {
        self.node
    }

    /// A node from its address.
    ///
    /// # Safety
    /// The arena the node lives in outlives `'a`.
    pub unsafe fn from_ptr(node: NonNull<Node<V>>) -> NodeRef<'a, V> {
        NodeRef { node, list: PhantomData }
    }

    /// Prefetches the nodes that a search at this node would reach when it goes down from `level`, so that they arrive
    /// together with the next node on the level.
    #[inline(always)]
    fn prefetch(self, level: usize) {
        for below in level.saturating_sub(PREFETCHED)..level {
            // SAFETY: a node has every level below one that it was found on.
            prefetch_lines(unsafe { Node::next(self.node, below) }.load(Ordering::Relaxed), 1);
        }
    }

    fn new(node: *mut Node<V>) -> Option<NodeRef<'a, V>> {
        NonNull::new(node).map(|node| NodeRef { node, list: PhantomData })
    }
}

impl<V> Node<V> {
    /// Offset of the key from the node, in bytes: right after its length, whatever the alignment of the node.
    const KEY_AT: usize = std::mem::offset_of!(Node<V>, key_len) + size_of::<u32>();

    /// # Safety
    /// `node` is a live node of a height above `level`.
    unsafe fn next<'a>(node: NonNull<Node<V>>, level: usize) -> &'a AtomicPtr<Node<V>> {
        // SAFETY: a node is preceded by as many pointers as it is high; computed from the node's own pointer.
        unsafe { node.cast::<AtomicPtr<Node<V>>>().sub(level + 1).as_ref() }
    }
}

impl<V> SkipList<V> {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// The first node.
    pub fn first(&self) -> Option<NodeRef<'_, V>> {
        NodeRef::new(self.head_next(0))
    }

    /// The first node whose key is not below `key`.
    pub fn at_or_after(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        // No key is below an empty one, so no node needs to be compared.
        if key.is_empty() {
            return self.first();
        }
        match self.find_before::<false>(key) {
            None => self.first(),
            Some(node) => node.next(),
        }
    }

    /// The node of exactly this key.
    pub fn get(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        self.at_or_after(key).filter(|node| node.key() == key)
    }

    /// The last node whose key is below `key`.
    pub fn before(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        self.find_before::<true>(key)
    }

    /// As `before`. `BACKWARDS` means that the caller then reads towards lower keys.
    fn find_before<const BACKWARDS: bool>(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        self.before_from_index::<BACKWARDS>(key).or_else(|| self.before_from_head(key))
    }

    /// As `find_before`; also `None` if the index leads to no node near the key.
    #[inline]
    fn before_from_index<const BACKWARDS: bool>(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        let (node, next) = self.acceleration()?.index.before(key)?;
        // A backward read starts at the index entry above the key and prefetches downwards.
        if let Some(behind) = NodeRef::new(next).filter(|_| BACKWARDS) {
            prefetch::towards(behind.node, node.as_ptr());
            let mut nodes = std::iter::successors(Some(behind), |node| node.previous()).take(STEPS_MAX);
            if !behind.is_below(key)
                && let Some(found) = nodes.find(|node| node.is_below(key))
            {
                return Some(found);
            }
        }
        prefetch::towards(node, next);
        let mut found = NodeRef { node, list: PhantomData };
        if !found.is_below(key) {
            return None;
        }
        // The next indexed node is close, unless many keys have the same first bytes.
        for _ in 0..STEPS_MAX {
            match found.next() {
                Some(next) if next.is_below(key) => found = next,
                _ => return Some(found),
            }
        }
        None
    }

    fn before_from_head(&self, key: &[u8]) -> Option<NodeRef<'_, V>> {
        let mut found: Option<NodeRef<'_, V>> = None;
        for level in (0..self.height()).rev() {
            loop {
                let next = match found {
                    None => self.head_next(level),
                    // SAFETY: a node found on a level above has that level too.
                    Some(node) => unsafe { Node::next(node.node, level) }.load(Ordering::Acquire),
                };
                match NodeRef::new(next) {
                    Some(next) if next.is_below(key) => {
                        found = Some(next);
                        next.prefetch(level);
                    }
                    _ => break,
                }
            }
        }
        found
    }

    /// The node of a key, and whether it was added. A new node gets the value that `make` returns.
    ///
    /// The caller is the only writer of this list until the call returns, and `arena` is the list's own.
    pub fn find_or_insert(
        &self,
        arena: &Arena,
        key: &[u8],
        make: impl FnOnce() -> V,
    ) -> (NodeRef<'_, V>, bool) {
        let mut before = [null_mut::<Node<V>>(); HEIGHT_MAX];
        self.find_predecessors(key, &mut before);
        let next = match NodeRef::new(before[0]) {
            None => self.first(),
            Some(node) => node.next(),
        };
        match next.filter(|node| node.key() == key) {
            Some(node) => (node, false),
            None => (self.link_new(arena, key, make(), &mut before), true),
        }
    }

    fn link_new(&self, arena: &Arena, key: &[u8], value: V, before: &mut Predecessors<V>) -> NodeRef<'_, V> {
        let height = self.random_height();
        // On levels above the old head the predecessor is the head, which `before` denotes by null.
        self.grow_head(arena, height);
        let Ok(key_len) = u32::try_from(key.len()) else {
            unreachable!("a clustering key is far shorter than 4 GiB: the log's records are")
        };
        let tower_bytes = height * size_of::<AtomicPtr<Node<V>>>();
        let start = arena.allocate(tower_bytes + (Node::<V>::KEY_AT + key.len()).max(size_of::<Node<V>>()));
        // SAFETY: the allocation has room for the tower, the node and its key, and nobody else has a pointer to it
        // yet.
        let node = unsafe {
            let node = start.byte_add(tower_bytes).cast::<Node<V>>();
            node.write(Node { value, previous: AtomicPtr::new(before[0]), key_len });
            // The key starts in the padding at the end of the node.
            let key_at = node.byte_add(Node::<V>::KEY_AT).cast::<u8>();
            key_at.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            for (level, &predecessor) in before.iter().enumerate().take(height) {
                let next = self.link(predecessor, level).load(Ordering::Relaxed);
                node.cast::<AtomicPtr<Node<V>>>().sub(level + 1).write(AtomicPtr::new(next));
            }
            // Published from the lowest level up: a reader that finds the node on a level also finds it on those
            // below.
            let successor = NonNull::new(Node::next(node, 0).load(Ordering::Relaxed));
            for (level, &predecessor) in before.iter().enumerate().take(height) {
                self.link(predecessor, level).store(node.as_ptr(), Ordering::Release);
            }
            if let Some(successor) = successor {
                successor.as_ref().previous.store(node.as_ptr(), Ordering::Release);
            }
            node
        };
        // No locked instruction is needed, because this is the only writer.
        self.len.store(self.len.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let node = NodeRef { node, list: PhantomData };
        self.remember(arena, node, height, before);
        node
    }

    /// The pointer that leads from a predecessor (null: the head) to its successor on a level.
    ///
    /// # Safety
    /// `predecessor` is null or a live node of a height above `level`; the head is at least as high.
    unsafe fn link(&self, predecessor: *mut Node<V>, level: usize) -> &AtomicPtr<Node<V>> {
        match NonNull::new(predecessor) {
            // SAFETY: the caller's promise.
            Some(node) => unsafe { Node::next(node, level) },
            // SAFETY: the head was grown above `level` before.
            None => unsafe { Tower::next(self.head.load(Ordering::Acquire), level) },
        }
    }

    /// Fills `before` with the last node below `key` on each level. The search starts from the finger if the key is
    /// near it.
    fn find_predecessors(&self, key: &[u8], before: &mut Predecessors<V>) {
        let height = self.height();
        // SAFETY: only the writer uses the finger, and the writer calls this.
        let finger = self.acceleration().map(|beside| unsafe { &*beside.finger.get() });
        let brackets = |finger: &Predecessors<V>, level: usize| {
            let after = NodeRef::new(finger[level]).is_none_or(|node: NodeRef<'_, V>| node.key() < key);
            // SAFETY: a finger node of a level has that level.
            let next = unsafe { self.link(finger[level], level) }.load(Ordering::Relaxed);
            after && NodeRef::new(next).is_none_or(|node: NodeRef<'_, V>| key < node.key())
        };
        let found =
            finger.and_then(|finger| Some((finger, (0..height).find(|&level| brackets(finger, level))?)));
        match found {
            // On this level the key lies right behind the finger. So the finger's predecessors are right on the levels
            // above too, and the search for those below starts at this level's.
            Some((finger, level)) => {
                before[level + 1..height].copy_from_slice(&finger[level + 1..height]);
                self.descend(key, level + 1, NodeRef::new(finger[level]), before);
            }
            None => self.descend(key, height, None, before),
        }
    }

    fn descend<'a>(
        &'a self,
        key: &[u8],
        height: usize,
        mut found: Option<NodeRef<'a, V>>,
        before: &mut Predecessors<V>,
    ) {
        for level in (0..height).rev() {
            loop {
                let from = found.map_or(null_mut(), |node| node.node.as_ptr());
                // SAFETY: `from` is the head or was found on this level or above.
                let next = unsafe { self.link(from, level) }.load(Ordering::Acquire);
                match NodeRef::new(next) {
                    Some(next) if next.is_below(key) => {
                        found = Some(next);
                        next.prefetch(level);
                    }
                    _ => break,
                }
            }
            before[level] = found.map_or(null_mut(), |node| node.node.as_ptr());
        }
    }

    /// Moves the finger to the node just added, and adds the node to the index if it is due.
    fn remember(&self, arena: &Arena, node: NodeRef<'_, V>, height: usize, before: &Predecessors<V>) {
        const TINY: usize = 16;
        let mut finger = *before;
        finger[..height].fill(node.node.as_ptr());
        let Some(beside) = self.acceleration() else {
            if self.len() >= TINY {
                let finger = UnsafeCell::new(finger);
                let (index, unindexed) = (SparseIndex::default(), AtomicU32::new(0));
                let beside = arena.place(Acceleration { index, finger, unindexed });
                self.beside.store(beside.as_ptr(), Ordering::Release);
            }
            return;
        };
        // SAFETY: only the writer uses the finger; it calls this and holds no other reference to the finger.
        let last = unsafe { std::mem::replace(&mut *beside.finger.get(), finger) }[0];
        if self.len() == INDEXED_LEN {
            self.index_all(arena, beside);
        } else if self.len() > INDEXED_LEN {
            // The new node is right after or right before the last one.
            let next = node.next().map_or(null_mut(), |next| next.node.as_ptr());
            let is_in_order = before[0] == last || next == last;
            let unindexed = beside.unindexed.load(Ordering::Relaxed) + u32::from(is_in_order);
            let is_posted =
                if is_in_order { unindexed >= INDEXED_DISTANCE } else { height >= INDEXED_HEIGHT };
            beside.unindexed.store(if is_posted { 0 } else { unindexed }, Ordering::Relaxed);
            if is_posted {
                beside.index.add(arena, node.key(), node.node);
            }
        }
    }

    /// Adds every sixteenth of the existing nodes to the index.
    fn index_all(&self, arena: &Arena, beside: &Acceleration<V>) {
        let nodes = std::iter::successors(self.first(), |node| node.next());
        for node in nodes.step_by(INDEXED_DISTANCE as usize) {
            beside.index.add(arena, node.key(), node.node);
        }
    }

    fn acceleration(&self) -> Option<&Acceleration<V>> {
        // SAFETY: null or in the arena, written before it was published.
        unsafe { self.beside.load(Ordering::Acquire).as_ref() }
    }

    fn height(&self) -> usize {
        // SAFETY: null or a tower in the arena, written before it was published.
        unsafe { self.head.load(Ordering::Acquire).as_ref() }.map_or(0, |tower| tower.height)
    }

    fn head_next(&self, level: usize) -> *mut Node<V> {
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: null or a tower in the arena, written before it was published; `level` is checked.
        match unsafe { head.as_ref() } {
            Some(tower) if level < tower.height => {
                unsafe { Tower::next(head, level) }.load(Ordering::Acquire)
            }
            _ => null_mut(),
        }
    }

    /// Makes the head at least `height` high. A reader that uses the old head misses only nodes added after it began.
    fn grow_head(&self, arena: &Arena, height: usize) {
        let old = self.height();
        if old >= height {
            return;
        }
        let size = size_of::<Tower<V>>() + height * size_of::<AtomicPtr<Node<V>>>();
        let tower = arena.allocate(size).cast::<Tower<V>>().as_ptr();
        // SAFETY: fresh memory for the head and `height` pointers.
        unsafe {
            (*tower).height = height;
            let next = tower.byte_add(std::mem::offset_of!(Tower<V>, next)).cast::<AtomicPtr<Node<V>>>();
            for level in 0..height {
                next.add(level).write(AtomicPtr::new(self.head_next(level)));
            }
        }
        self.head.store(tower, Ordering::Release);
        // The finger's upper levels are null, which denotes the head, and so stay correct.
    }

    /// A random height: n with probability 4^-(n-1), at most one above the present head.
    fn random_height(&self) -> usize {
        let mut x = self.random.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.store(x, Ordering::Relaxed);
        let height = 1 + (x.trailing_zeros() / 2) as usize;
        height.min(self.height() + 1).min(HEIGHT_MAX)
    }
}

impl<V> Tower<V> {
    /// # Safety
    /// `tower` is a live tower of a height above `level`.
    unsafe fn next<'a>(tower: *mut Tower<V>, level: usize) -> &'a AtomicPtr<Node<V>> {
        // SAFETY: `height` pointers follow the tower's head in its allocation.
        unsafe {
            let next = tower.byte_add(std::mem::offset_of!(Tower<V>, next)).cast::<AtomicPtr<Node<V>>>();
            &*next.add(level)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Checks a list of these keys behind `alike` bytes that are the same in all of them.
    fn check(alike: usize, keys: impl Iterator<Item = u32>) {
        let key_of = |number: u32| [&vec![7; alike][..], &number.to_be_bytes()].concat();
        let (arena, list, mut model) = (Arena::default(), SkipList::default(), BTreeMap::new());
        for number in keys {
            let key = key_of(number);
            if model.insert(key.clone(), number).is_none() {
                assert!(list.find_or_insert(&arena, &key, || number).1);
            }
        }
        let forward = std::iter::successors(list.first(), |node| node.next());
        assert!(forward.map(|node| *node.value()).eq(model.values().copied()));
        let backward = std::iter::successors(list.before(&[0xFF; 5]), |node| node.previous());
        assert!(backward.map(|node| *node.value()).eq(model.values().rev().copied()));
        for probe in
            (0..if cfg!(miri) { 50 } else { 2_000u32 }).map(|n: u32| n.wrapping_mul(2_654_435_761) % 5_000)
        {
            let key = key_of(probe);
            let after = list.at_or_after(&key).map(|node| *node.value());
            assert_eq!(after, model.range(key.clone()..).next().map(|(_, v)| *v));
            let before = list.before(&key).map(|node| *node.value());
            assert_eq!(before, model.range(..key).next_back().map(|(_, v)| *v));
        }
    }

    #[test]
    fn keys_in_any_order_come_back_sorted_both_ways() {
        let n = if cfg!(miri) { 80 } else { 4_000 };
        // The index compares at most the first 16 bytes of keys.
        for alike in [0, 13, 20] {
            check(alike, 0..n);
            check(alike, (0..n).rev());
            check(alike, (0..n).map(|n| n.wrapping_mul(2_654_435_761) % 5_000));
            check(alike, (0..n).map(|n| if n % 2 == 0 { n } else { 5_000 - n }));
        }
    }
}
