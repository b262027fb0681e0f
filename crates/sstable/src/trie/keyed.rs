//! Visits the entries of a trie in ascending order, with their keys.

#![deny(clippy::indexing_slicing)]

use super::walker::Walker;
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Deref;

/// The longest key that is followed.
const KEY_BYTES_MAX: usize = 1 << 18;

/// The result of a step.
pub(crate) enum Advanced {
    /// The walker is at the next entry.
    Entry,
    /// There are no more entries.
    End,
    /// The limit of nodes was reached before the next entry. Call again.
    Later,
}

/// The position of a walk. It keeps no page, so each step may use another walker of the same trie. A step can be
/// repeated after an error.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    /// The path from the root: the position of each node, and the index of the child to visit next.
    stack: Vec<(u64, usize)>,
    /// The bytes that lead to the last node of the path.
    key: Vec<u8>,
}

impl Keyed {
    /// The key of the current entry. It is only valid after `Advanced::Entry`.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Goes to the next entry; the first call goes to the first. It stops with `Advanced::Later` when the context has
    /// counted `nodes_max` nodes.
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
                // The root stays on the stack, so that further calls return `End` too.
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

/// The greatest key of the trie.
pub(crate) fn last_key<F: Deref<Target = BlockFile>>(
    walker: &mut Walker<F>,
    cx: &mut ReadContext,
) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    walker.go_root(cx)?;
    // The last child of a dense node is never absent, because absent children lie between others.
    while let Some(index) = walker.range().checked_sub(1)
        && let Some(child) = walker.child(index)?
        && key.len() < KEY_BYTES_MAX
    {
        key.push(walker.byte(index));
        walker.go(child, cx)?;
    }
    Ok(key)
}
