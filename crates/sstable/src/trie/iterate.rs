//! Visits the entries of a trie in ascending or descending order, from a bound on.
//!
//! Both directions keep the path from the root as a stack of nodes. In these tries an entry may be only a prefix of its
//! key. Then the entry to begin with is the last one that is not greater than the bound, which `Neighbours` finds. An
//! error leaves the stack unchanged, so a step that failed with `WouldBlock` can be repeated. Source: Cassandra's
//! `ValueIterator`, `ReverseValueIterator` and `Walker.prefixAndNeighbours`.

#![deny(clippy::indexing_slicing)]

use super::walker::{Found, Walker};
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Deref;

/// The deepest path that is followed. A clustering has at most 64 KiB; escapes can double that, and each component adds
/// a byte.
const DEPTH_MAX: usize = 1 << 18;

/// Number of steps that a `SearchPath` keeps. Further down the path is searched again.
const TRAIL_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Frame {
    node: u64,
    /// Forward: the index of the next child. Backward: the number of children still to visit.
    index: u16,
}

/// The neighbours of a bound that a search passed. They are kept as a node and an index in it, and looked up only when
/// they are needed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Neighbours {
    prefix: Option<u64>,
    lesser: Option<(u64, usize)>,
    greater: Option<(u64, usize)>,
}

impl Neighbours {
    #[inline]
    fn pass<F>(&mut self, walker: &Walker<F>, found: Found)
    where
        F: Deref<Target = BlockFile>,
    {
        let (before, after) = match found {
            Ok(index) => (index, index + 1),
            Err(index) => (index, index),
        };
        if after < walker.range() {
            self.greater = Some((walker.position(), after));
        }
        if before > 0 {
            self.lesser = Some((walker.position(), before));
            self.prefix = None;
        } else if walker.payload_flags() != 0 {
            self.prefix = Some(walker.position());
        }
    }

    /// The longest entry that is the bound or a prefix of it, if there is no entry between it and the bound.
    pub(crate) fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    /// Goes to the last entry that is not greater than the bound; false if there is none.
    pub(crate) fn go_floor<F>(&self, walker: &mut Walker<F>, cx: &mut ReadContext) -> Result<bool>
    where
        F: Deref<Target = BlockFile>,
    {
        if let Some(prefix) = self.prefix {
            walker.go(prefix, cx)?;
            return Ok(true);
        }
        let Some((node, before)) = self.lesser else { return Ok(false) };
        walker.go(node, cx)?;
        match walker.child_before(before)? {
            Some(lesser) => walker.go_max(lesser, cx).map(|()| true),
            None => Err(walker.corrupt("a trie node lacks its first child")),
        }
    }

    /// Goes to the first entry that is greater than the bound; false if there is none.
    pub(crate) fn go_greater<F>(&self, walker: &mut Walker<F>, cx: &mut ReadContext) -> Result<bool>
    where
        F: Deref<Target = BlockFile>,
    {
        let Some((node, after)) = self.greater else { return Ok(false) };
        walker.go(node, cx)?;
        match walker.child_from(after)? {
            Some(greater) => walker.go_min(greater, cx).map(|()| true),
            None => Err(walker.corrupt("a trie node lacks its last child")),
        }
    }
}

/// The path of the last search for a bound. The next search begins where the two bounds differ, because names that are
/// looked up in order share most of their paths.
#[derive(Debug, Default)]
pub(crate) struct SearchPath {
    bound: Vec<u8>,
    /// The position of each node on the path, and the neighbours found before it; the root first.
    steps: Vec<(u64, Neighbours)>,
}

impl SearchPath {
    /// Forgets the path, because the next search is in another trie.
    pub(crate) fn clear(&mut self) {
        self.bound.clear();
        self.steps.clear();
    }

    /// Searches `bound`. Only the landing is returned; the trail cannot be advanced.
    pub(crate) fn land<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Neighbours> {
        let common = self.bound.iter().zip(bound).take_while(|(old, new)| old == new).count();
        // Keep the path up to the last common byte. If this search fails half way, the steps are still valid, because
        // all of them are on the path of the new bound.
        self.steps.truncate(common + 1);
        self.bound.clear();
        self.bound.extend_from_slice(bound);
        let mut landing = match self.steps.last() {
            Some((node, landing)) => {
                walker.go(*node, cx)?;
                *landing
            }
            None => {
                walker.go_root(cx)?;
                self.steps.push((walker.position(), Neighbours::default()));
                Neighbours::default()
            }
        };
        let mut rest = bound.get(self.steps.len() - 1..).unwrap_or_default().iter();
        loop {
            let found = rest.next().map_or(Err(0), |byte| walker.search(*byte));
            landing.pass(walker, found);
            let Ok(child) = found else { return Ok(landing) };
            walker.go_child(child, cx)?;
            if self.steps.len() < TRAIL_MAX {
                self.steps.push((walker.position(), landing));
            }
        }
    }
}

/// Searches `bound` and pushes the path onto the stack. `index` converts the result at each node to a frame's index.
fn land<F: Deref<Target = BlockFile>>(
    walker: &mut Walker<F>,
    (bound, stack): (&[u8], &mut Vec<Frame>),
    index: fn(Found) -> usize,
    cx: &mut ReadContext,
) -> Result<Neighbours> {
    stack.clear();
    walker.go_root(cx)?;
    let mut landing = Neighbours::default();
    let mut rest = bound.iter();
    loop {
        let found = rest.next().map_or(Err(0), |byte| walker.search(*byte));
        landing.pass(walker, found);
        push(walker, stack, index(found))?;
        let Ok(child) = found else { return Ok(landing) };
        walker.go_child(child, cx)?;
    }
}

fn push<F: Deref<Target = BlockFile>>(
    walker: &Walker<F>,
    stack: &mut Vec<Frame>,
    index: usize,
) -> Result<()> {
    if stack.len() >= DEPTH_MAX {
        return Err(walker.corrupt("the trie is too deep"));
    }
    stack.push(Frame { node: walker.position(), index: index as u16 });
    Ok(())
}

/// Visits entries in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    stack: Vec<Frame>,
}

impl Forward {
    /// Begins a walk: `advance` then visits the entries greater than `bound`.
    pub(crate) fn start_after<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Neighbours> {
        let index = |found| match found {
            Ok(index) => index + 1,
            Err(index) => index,
        };
        land(walker, (bound, &mut self.stack), index, cx)
    }

    /// Goes to the next entry; false when there is none.
    pub(crate) fn advance<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        while let Some(Frame { node, index }) = self.stack.last().copied() {
            if walker.position() != node {
                walker.go(node, cx)?;
            }
            if usize::from(index) >= walker.range() {
                self.stack.pop();
                continue;
            }
            let child = walker.child(usize::from(index))?;
            if let Some(child) = child {
                walker.go(child, cx)?;
            }
            if let Some(top) = self.stack.last_mut() {
                top.index += 1;
            }
            if child.is_some() {
                push(walker, &mut self.stack, 0)?;
                if walker.payload_flags() != 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Visits entries in descending order.
#[derive(Debug, Default)]
pub(crate) struct Backward {
    stack: Vec<Frame>,
}

impl Backward {
    /// Begins a walk: `advance` then visits `bound`, if it is an entry, and the entries less than it.
    pub(crate) fn start_at<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Neighbours> {
        let index = |found| match found {
            Ok(index) | Err(index) => index,
        };
        land(walker, (bound, &mut self.stack), index, cx)
    }

    /// Goes to the next entry; false when there is none.
    pub(crate) fn advance<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        while let Some(Frame { node, index }) = self.stack.last().copied() {
            if walker.position() != node {
                walker.go(node, cx)?;
            }
            let Some(index) = usize::from(index).checked_sub(1) else {
                self.stack.pop();
                if walker.payload_flags() != 0 {
                    return Ok(true);
                }
                continue;
            };
            let child = walker.child(index)?;
            if let Some(child) = child {
                walker.go(child, cx)?;
            }
            if let Some(top) = self.stack.last_mut() {
                top.index = index as u16;
            }
            if child.is_some() {
                let range = walker.range();
                push(walker, &mut self.stack, range)?;
            }
        }
        Ok(false)
    }
}
