//! `ColumnMap` for a memtable: a skip list that one thread writes while others read.
//!
//! Each entry is a chain of versions, the newest first. The writer adds a version with the sequence number of its
//! write. A reader sees the newest version whose number is at most its own, and takes no lock. The writer holds the
//! partition's writer lock while it has the map; `partition` describes how a write is published.

use super::arena::Arena;
use super::partition::{Version, first_version, push, visible};
use super::skiplist::{NodeRef, SkipList};
use super::sync::AtomicPtr;
use helenus_model::column_map::{ColumnMap, ColumnMapFactory};
use std::borrow::Borrow;

/// The skip list of a concurrent map.
pub(super) type Versions<V> = SkipList<AtomicPtr<Version<V>>>;

/// A column map that others read while it is written. `L` is its list: borrowed from a partition, or owned.
pub struct ConcurrentMap<'a, V, L> {
    list: L,
    arena: &'a Arena,
    /// Sequence number of the write, which also sees its own additions.
    sequence: u64,
    value: std::marker::PhantomData<V>,
}

impl<'a, V: Copy, L: Borrow<Versions<V>>> ConcurrentMap<'a, V, L> {
    /// The list as a map for the write of this sequence number. `arena` is the list's own, and the caller is its only
    /// writer.
    pub(super) fn new(list: L, arena: &'a Arena, sequence: u64) -> ConcurrentMap<'a, V, L> {
        ConcurrentMap { list, arena, sequence, value: std::marker::PhantomData }
    }

    fn seen<'m>(&self, node: NodeRef<'m, AtomicPtr<Version<V>>>) -> Option<(&'m [u8], &'m V)> {
        Some((node.key(), visible(node.value(), self.sequence)?))
    }
}

impl<V: Copy, L: Borrow<Versions<V>>> ColumnMap for ConcurrentMap<'_, V, L> {
    type Value = V;

    #[inline]
    fn add<I, E>(
        &mut self,
        key: &[u8],
        input: I,
        make: impl FnOnce(I) -> V,
        reconcile: impl FnOnce(&V, I) -> Result<V, E>,
    ) -> Result<bool, E> {
        let (arena, sequence) = (self.arena, self.sequence);
        let mut left = Some((input, make));
        let first = || match left.take() {
            Some((input, make)) => first_version(arena, sequence, make(input)),
            None => AtomicPtr::default(),
        };
        let (node, is_new) = self.list.borrow().find_or_insert(arena, key, first);
        let Some((input, make)) = left else { return Ok(is_new) };
        let value = match visible(node.value(), sequence) {
            Some(present) => reconcile(present, input)?,
            None => make(input),
        };
        push(arena, node.value(), sequence, value);
        Ok(false)
    }

    fn len(&self) -> usize {
        self.list.borrow().len()
    }

    fn get(&self, key: &[u8]) -> Option<&V> {
        self.list.borrow().get(key).and_then(|node| visible(node.value(), self.sequence))
    }

    fn at_or_after(&self, start: &[u8]) -> impl Iterator<Item = (&[u8], &V)> {
        let nodes = std::iter::successors(self.list.borrow().at_or_after(start), |node| node.next());
        nodes.filter_map(|node| self.seen(node))
    }

    fn before(&self, end: &[u8]) -> impl Iterator<Item = (&[u8], &V)> {
        let nodes = std::iter::successors(self.list.borrow().before(end), |node| node.previous());
        nodes.filter_map(|node| self.seen(node))
    }
}

/// Creates independent concurrent maps in one arena, for benchmarks and tests that compare them with the array-backed
/// map. The memtable creates its maps over the lists of its partitions instead.
#[derive(Default)]
pub struct Concurrent {
    arena: Arena,
}

impl<V: Copy> ColumnMapFactory<V> for Concurrent {
    type Map<'f> = ConcurrentMap<'f, V, Versions<V>>;

    fn make(&self) -> Self::Map<'_> {
        ConcurrentMap::new(Versions::default(), &self.arena, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::column_map::check_kind;

    #[test]
    fn the_concurrent_map_keeps_entries_as_a_tree_does() {
        check_kind(&Concurrent::default());
    }
}
