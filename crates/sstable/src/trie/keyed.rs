//! Payloads of a trie in order, with their keys.

#![deny(clippy::indexing_slicing)]

use super::walker::Walker;
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Deref;

/// Longest key that is followed; the trie's own paths may be longer.
const KEY_BYTES_MAX: usize = 1 << 18;

/// What became of a step.
pub(crate) enum Advanced {
    /// The walker is at the next entry.
    Entry,
    /// There is none.
    End,
    /// It is further on.
    Later,
}

/// Visits entries in ascending order and tells their keys. Keeps no page: each step may be taken with another walker of the
/// same trie. After an error it may be called again.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    /// From the root: each node, and the child to visit next.
    stack: Vec<(u64, usize)>,
    /// The bytes that lead to the last of them.
    key: Vec<u8>,
}

impl Keyed {
    /// The key of the entry that `advance` went to; a part of one after anything else.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Goes to the next entry, from before the first one on. Leaves it for later where the context counts `nodes_max` nodes.
    pub(crate) fn advance<F: Deref<Target = BlockFile>>(
        &mut self,
        walker: &mut Walker<F>,
        nodes_max: u64,
        cx: &mut ReadContext,
    ) -> Result<Advanced> {
        if self.stack.is_empty() {
            walker.go_root(cx)?;
            self.stack.push((walker.position(), 0));
            if walker.payload_flags() != 0 {
                return Ok(Advanced::Entry);
            }
        }
        while let Some((node, index)) = self.stack.last().copied() {
            if cx.touched.index_nodes >= nodes_max {
                return Ok(Advanced::Later);
            }
            if walker.position() != node {
                walker.go(node, cx)?;
            }
            if index >= walker.range() {
                // The root stays: behind the last entry the walk is at its end for good.
                if self.stack.len() == 1 {
                    return Ok(Advanced::End);
                }
                self.stack.pop();
                self.key.pop();
                continue;
            }
            let child = walker.child(index)?;
            if let Some(child) = child {
                let byte = walker.byte(index);
                walker.go(child, cx)?;
                if self.key.len() >= KEY_BYTES_MAX {
                    return Err(walker.corrupt("the trie is too deep"));
                }
                self.key.push(byte);
            }
            if let Some(top) = self.stack.last_mut() {
                top.1 += 1;
            }
            if child.is_some() {
                self.stack.push((walker.position(), 0));
                if walker.payload_flags() != 0 {
                    return Ok(Advanced::Entry);
                }
            }
        }
        Ok(Advanced::End)
    }
}

/// The greatest key.
pub(crate) fn last_key<F: Deref<Target = BlockFile>>(
    walker: &mut Walker<F>,
    cx: &mut ReadContext,
) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    walker.go_root(cx)?;
    // The last child of a dense node is there: absent ones lie between others.
    while let Some(index) = walker.range().checked_sub(1)
        && let Some(child) = walker.child(index)?
        && key.len() < KEY_BYTES_MAX
    {
        key.push(walker.byte(index));
        walker.go(child, cx)?;
    }
    Ok(key)
}
