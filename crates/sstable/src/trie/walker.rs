//! Follows a trie in a file, node by node.
//!
//! It keeps the page of the current node, so that a step inside a page needs no lookup in the block cache, and
//! allocates nothing. Every pointer is checked to lead backward and to stay in the file, so no damage makes a walk
//! endless.

#![deny(clippy::indexing_slicing)]

use super::node::Node;
use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::error::{Error, Result};
use std::ops::Deref;

/// A node of a trie, the current one, and its page. `F` is a `&BlockFile` or an `Arc` of one; its blocks must be a
/// multiple of 4 KiB.
pub(crate) struct Walker<F> {
    file: F,
    root: u64,
    page: Block,
    /// The offset of the page in the file.
    page_start: u64,
    position: u64,
    node: Node,
}

/// The result of a search for a byte in a node: the index of its child, or the index of the first child with a greater
/// byte.
pub(crate) type Found = std::result::Result<usize, usize>;

impl<F: Deref<Target = BlockFile>> Walker<F> {
    /// A walker at the root.
    pub(crate) fn new(file: F, root: u64, cx: &mut ReadContext) -> Result<Walker<F>> {
        let (page, page_start, at) = load(&file, root, cx)?;
        let node = Node::parse(&page, at).ok_or_else(|| cut(&file, root))?;
        cx.touched.index_nodes += 1;
        Ok(Walker { file, root, page, page_start, position: root, node })
    }

    /// A walker at the root, whose page the caller has.
    pub(crate) fn in_page(file: F, root: u64, page: Block, cx: &mut ReadContext) -> Result<Walker<F>> {
        let block_bytes = file.block_bytes().max(1) as u64;
        let at = (root % block_bytes) as usize;
        let node = Node::parse(&page, at).ok_or_else(|| cut(&file, root))?;
        cx.touched.index_nodes += 1;
        cx.touched.index_pages_cached += 1;
        Ok(Walker { file, root, page, page_start: root - at as u64, position: root, node })
    }

    /// The page of the current node.
    pub(crate) fn block(&self) -> &Block {
        &self.page
    }

    /// Goes to the root.
    pub(crate) fn go_root(&mut self, cx: &mut ReadContext) -> Result<()> {
        if self.position == self.root { Ok(()) } else { self.go(self.root, cx) }
    }

    /// Goes to the node at this position of the file. On an error the walker stays where it was.
    #[inline]
    pub(crate) fn go(&mut self, position: u64, cx: &mut ReadContext) -> Result<()> {
        cx.touched.index_nodes += 1;
        let at = position.wrapping_sub(self.page_start);
        if at >= self.page().len() as u64 {
            return self.go_to_page(position, cx);
        }
        self.node = Node::parse(self.page(), at as usize).ok_or_else(|| cut(&self.file, position))?;
        self.position = position;
        Ok(())
    }

    #[cold]
    fn go_to_page(&mut self, position: u64, cx: &mut ReadContext) -> Result<()> {
        let (page, page_start, at) = load(&self.file, position, cx)?;
        self.node = Node::parse(&page, at).ok_or_else(|| cut(&self.file, position))?;
        self.page = page;
        self.page_start = page_start;
        self.position = position;
        Ok(())
    }

    #[inline]
    fn page(&self) -> &[u8] {
        &self.page
    }

    /// The current node's position in the file.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The flags of the current node's payload; 0 without a payload.
    #[inline]
    pub(crate) fn payload_flags(&self) -> u8 {
        self.node.payload_flags()
    }

    /// The first `len` bytes of the current node's payload.
    pub(crate) fn payload(&self, len: usize) -> Result<&[u8]> {
        let start = self.node.end();
        self.page().get(start..start + len).ok_or_else(|| cut(&self.file, self.position))
    }

    /// Number of children of the current node, including the absent ones of a dense node.
    #[inline]
    pub(crate) fn range(&self) -> usize {
        self.node.range()
    }

    /// Searches the child for a byte.
    #[inline]
    pub(crate) fn search(&self, byte: u8) -> Found {
        self.node.search(self.page(), byte)
    }

    /// The byte that leads to a child.
    pub(crate) fn byte(&self, index: usize) -> u8 {
        self.node.byte(self.page(), index)
    }

    /// The position of a child; `None` for an absent one of a dense node and after the last.
    #[inline]
    pub(crate) fn child(&self, index: usize) -> Result<Option<u64>> {
        let distance = self.node.distance(self.page(), index);
        if distance == 0 {
            if self.node.may_lack_children() || index >= self.range() {
                return Ok(None);
            }
            return Err(self.corrupt("a trie node points to itself"));
        }
        match self.position.checked_sub(distance) {
            Some(child) => Ok(Some(child)),
            None => Err(self.corrupt("a trie node points before the start of the file")),
        }
    }

    /// The first child from `index` on.
    pub(crate) fn child_from(&self, index: usize) -> Result<Option<u64>> {
        for index in index..self.range() {
            if let Some(child) = self.child(index)? {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// The last child before `index`.
    pub(crate) fn child_before(&self, index: usize) -> Result<Option<u64>> {
        for index in (0..index.min(self.range())).rev() {
            if let Some(child) = self.child(index)? {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// Goes to the child with this index, which `search` has found.
    #[inline]
    pub(crate) fn go_child(&mut self, index: usize, cx: &mut ReadContext) -> Result<()> {
        match self.child(index)? {
            Some(child) => self.go(child, cx),
            None => Err(self.corrupt("a trie node lacks a child")),
        }
    }

    /// Goes to the last node of the subtree at `position`.
    pub(crate) fn go_max(&mut self, position: u64, cx: &mut ReadContext) -> Result<()> {
        self.go(position, cx)?;
        while let Some(child) = self.child_before(usize::MAX)? {
            self.go(child, cx)?;
        }
        Ok(())
    }

    /// Goes to the first node with a payload in the subtree at `position`.
    pub(crate) fn go_min(&mut self, position: u64, cx: &mut ReadContext) -> Result<()> {
        self.go(position, cx)?;
        while self.payload_flags() == 0
            && let Some(child) = self.child_from(0)?
        {
            self.go(child, cx)?;
        }
        Ok(())
    }

    /// Follows `key` from the root as far as there are nodes. Returns whether it followed all of the key.
    pub(crate) fn follow(&mut self, key: &[u8], cx: &mut ReadContext) -> Result<bool> {
        self.go_root(cx)?;
        for byte in key {
            match self.search(*byte) {
                Ok(index) => self.go_child(index, cx)?,
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// An error at the current node.
    #[cold]
    pub(crate) fn corrupt(&self, problem: &str) -> Error {
        self.file.corrupt(self.position, problem)
    }
}

fn load(file: &BlockFile, position: u64, cx: &mut ReadContext) -> Result<(Block, u64, usize)> {
    let block_bytes = file.block_bytes().max(1) as u64;
    let number = position / block_bytes;
    let page = file.block(number, cx)?;
    Ok((page, number * block_bytes, (position % block_bytes) as usize))
}

#[cold]
fn cut(file: &BlockFile, position: u64) -> Error {
    file.corrupt(position, "a trie node runs over the end of its page")
}
