//! Parses a node inside a page. Every access is checked; a node that runs over the page's end is `None`.

#![deny(clippy::indexing_slicing)]

use super::node_type::{NODE_TYPES, NodeType, Pointer, Shape};
use super::sized_int::read_unsigned;

/// A parsed node: offsets into its page. Children are numbered from 0; in a dense node some may be absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    kind: NodeType,
    /// Flags of the payload; 0 without a payload.
    payload_flags: u8,
    /// For a dense node, the byte of child 0.
    first: u8,
    range: u16,
    at: u32,
    keys_at: u32,
    pointers_at: u32,
    end: u32,
}

impl Node {
    /// Parses the node at offset `at` of `page`.
    #[inline]
    pub(super) fn parse(page: &[u8], at: usize) -> Option<Node> {
        let header = *page.get(at)?;
        let kind = *NODE_TYPES.get(usize::from(header >> 4))?;
        let low = header & 0xF;
        let (payload_flags, first, range, keys_at, pointers_at, end) = match (kind.shape, kind.pointer) {
            (Shape::PayloadOnly, _) => (low, 0, 0, at + 1, at + 1, at + 1),
            (Shape::Single, Pointer::Bits4) => (0, 0, 1, at + 1, at, at + 2),
            (Shape::Single, Pointer::Bits12) => (0, 0, 1, at + 2, at, at + 3),
            (Shape::Single, pointer) => (low, 0, 1, at + 1, at + 2, at + 2 + pointer.bytes(1)),
            (Shape::Sparse, pointer) => {
                let count = *page.get(at + 1)?;
                let pointers_at = at + 2 + usize::from(count);
                let end = pointers_at + pointer.bytes(usize::from(count));
                (low, 0, u16::from(count), at + 2, pointers_at, end)
            }
            (Shape::Dense, pointer) => {
                let range = u16::from(*page.get(at + 2)?) + 1;
                let end = at + 3 + pointer.bytes(usize::from(range));
                (low, *page.get(at + 1)?, range, at + 1, at + 3, end)
            }
        };
        if end > page.len() {
            return None;
        }
        let [at, keys_at, pointers_at, end] = [at, keys_at, pointers_at, end].map(|offset| offset as u32);
        Some(Node { kind, payload_flags, first, range, at, keys_at, pointers_at, end })
    }

    /// The flags of the payload; 0 without a payload.
    #[inline]
    pub(super) fn payload_flags(&self) -> u8 {
        self.payload_flags
    }

    /// The offset of the first byte after the node, where a payload begins.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }

    /// Number of children, including the absent ones of a dense node.
    #[inline]
    pub(super) fn range(&self) -> usize {
        usize::from(self.range)
    }

    /// Whether children of this node may be absent.
    #[inline]
    pub(super) fn may_lack_children(&self) -> bool {
        self.kind.shape == Shape::Dense
    }

    /// The byte that leads to a child.
    pub(super) fn byte(&self, page: &[u8], index: usize) -> u8 {
        match self.kind.shape {
            Shape::Dense => self.first.wrapping_add(index as u8),
            _ => page.get(self.keys_at as usize + index).copied().unwrap_or_default(),
        }
    }

    /// The index of the child for this byte; otherwise, as error, the index of the first child with a greater byte.
    #[inline]
    pub(super) fn search(&self, page: &[u8], byte: u8) -> Result<usize, usize> {
        match self.kind.shape {
            Shape::PayloadOnly => Err(0),
            Shape::Single | Shape::Sparse => {
                let keys = self.keys_at as usize;
                page.get(keys..keys + self.range()).unwrap_or_default().binary_search(&byte)
            }
            Shape::Dense => {
                let Some(index) = byte.checked_sub(self.first).map(usize::from) else { return Err(0) };
                if index >= self.range() {
                    return Err(self.range());
                }
                if self.distance(page, index) == 0 { Err(index) } else { Ok(index) }
            }
        }
    }

    /// The distance from this node back to a child; 0 if the child is absent, or in damaged nodes.
    #[inline]
    pub(super) fn distance(&self, page: &[u8], index: usize) -> u64 {
        let base = self.pointers_at as usize;
        let bytes = |from: usize, len: usize| read_unsigned(page.get(from..from + len).unwrap_or_default());
        match (self.kind.pointer, self.kind.shape) {
            _ if index >= self.range() => 0,
            (Pointer::Bits4, _) => bytes(self.at as usize, 1) & 0xF,
            (Pointer::Bits12, Shape::Single) => bytes(base, 2) & 0xFFF,
            (Pointer::Bits12, _) => {
                let word = bytes(base + 3 * index / 2, 2);
                if index.is_multiple_of(2) { word >> 4 } else { word & 0xFFF }
            }
            (Pointer::Bytes(width), _) => {
                let width = usize::from(width);
                bytes(base + index * width, width)
            }
        }
    }
}
