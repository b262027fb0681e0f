//! Writes a trie to a file from keys in ascending order, byte for byte as Cassandra does.
//!
//! Nodes stay in memory until the subtree ("branch") of a node no longer fits a page. Then the branches of its children
//! are written, each within one page: always the biggest that fits the rest of the page or, if none fits, padding and
//! then the biggest of all. So memory does not grow with the number of keys: for each level of the last key, at most
//! 256 branches of less than a page are kept. Pointers inside a branch are narrow, because the branch lies in one page.
//! The width of pointers to children in earlier pages depends on the position of their parent, so the size of such a
//! node is an estimate until it is placed (`far_children`, `far_in_branch`).
//!
//! Keys may be long, and so may chains of nodes, so nothing here recurses by their length. Source:
//! `IncrementalTrieWriterPageAware` and `IncrementalDeepTrieWriterPageAware`.

use super::node_type::{NodeType, Outline};
use crate::block::PAGE_BYTES;
use crate::error::Result;
use crate::sequential_writer::SequentialWriter;

/// The value of an entry of a trie.
pub(crate) trait TriePayload: Copy {
    /// Size in bytes.
    fn size(&self) -> usize;
    /// The four bits in the node's first byte that define the payload's format; not 0.
    fn flags(&self) -> u8;
    /// Appends `size` bytes.
    fn write(&self, out: &mut Vec<u8>);
}

/// An index into the arena.
type Id = u32;
const NONE: Id = Id::MAX;
const UNPLACED: u64 = u64::MAX;

struct Node<P> {
    payload: Option<P>,
    /// The position at which it was written, or `UNPLACED`.
    position: u64,
    first_child: Id,
    last_child: Id,
    next_sibling: Id,
    child_count: u16,
    byte: u8,
    /// Whether a child is already written, in an earlier page than this node will be in.
    far_children: bool,
    /// Whether the same is true of a node below a child that is not written yet.
    far_in_branch: bool,
    /// Size in bytes of all unwritten nodes below this one. With `far_in_branch` it is an estimate, which may be too
    /// small.
    branch_size: u32,
    /// Size in bytes of the node and its payload. With `far_children` it is an estimate.
    node_size: u32,
}

impl<P> Node<P> {
    fn new(byte: u8) -> Node<P> {
        Node {
            payload: None,
            position: UNPLACED,
            first_child: NONE,
            last_child: NONE,
            next_sibling: NONE,
            child_count: 0,
            byte,
            // The positions of its children are not known until the node is complete.
            far_children: true,
            far_in_branch: false,
            branch_size: 0,
            node_size: 0,
        }
    }

    fn total_size(&self) -> usize {
        (self.branch_size + self.node_size) as usize
    }
}

/// A frame of a walk over unwritten nodes, children first.
struct Visit {
    node: Id,
    next_child: Id,
    /// The position at which the branch begins.
    start: u64,
}

/// Builds one trie after another. The file is passed to each call, because other data is written between tries.
pub(crate) struct TrieWriter<P> {
    nodes: Vec<Node<P>>,
    free: Vec<Id>,
    /// The nodes of the last key, which may still get children; the root first.
    path: Vec<Id>,
    last_key: Vec<u8>,
    count: u64,
    visits: Vec<Visit>,
    bytes: Vec<u8>,
}

impl<P: TriePayload> TrieWriter<P> {
    /// An empty trie.
    pub(crate) fn new() -> TrieWriter<P> {
        let mut writer = TrieWriter {
            nodes: Vec::new(),
            free: Vec::new(),
            path: Vec::new(),
            last_key: Vec::new(),
            count: 0,
            visits: Vec::new(),
            bytes: Vec::new(),
        };
        writer.reset();
        writer
    }

    /// Begins another trie, and keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.nodes.clear();
        self.free.clear();
        self.last_key.clear();
        self.count = 0;
        self.path.clear();
        self.nodes.push(Node::new(0));
        self.path.push(0);
    }

    /// Number of entries of the current trie.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds an entry. The key must be greater than the one before.
    pub(crate) fn add(&mut self, key: &[u8], payload: P, out: &mut SequentialWriter) -> Result<()> {
        let shared = common_prefix(&self.last_key, key);
        assert!(
            self.count == 0 || (key.len() > shared && key.get(shared) > self.last_key.get(shared)),
            "keys of a trie must ascend: {:02x?} after {:02x?}",
            key,
            self.last_key
        );
        self.count += 1;
        while self.path.len() > shared + 1 {
            self.complete_last(out)?;
        }
        for byte in &key[shared..] {
            let child = self.add_child(*byte);
            self.path.push(child);
        }
        if let Some(last) = self.path.last() {
            self.nodes[*last as usize].payload = Some(payload);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        Ok(())
    }

    /// Writes the rest and returns the root's position. Call `reset` before the next trie.
    pub(crate) fn finish(&mut self, out: &mut SequentialWriter) -> Result<u64> {
        let root = self.path[0];
        while !self.path.is_empty() {
            self.complete_last(out)?;
        }
        let mut size = self.measure(root, out.position());
        if size > out.bytes_left_in_page() && size <= PAGE_BYTES {
            out.pad_to_page()?;
            size = self.measure(root, out.position());
        }
        if size > out.bytes_left_in_page() {
            self.place_children(root, out)?;
            if self.nodes[root as usize].node_size as usize > out.bytes_left_in_page() {
                out.pad_to_page()?;
                self.measure(root, out.position());
            }
        }
        let position = self.write_branch(root, out)?;
        self.forget_branch(root, position);
        Ok(position)
    }

    fn add_child(&mut self, byte: u8) -> Id {
        let node = Node::new(byte);
        let child = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as Id
            }
        };
        let parent = self.path[self.path.len() - 1];
        let parent = &mut self.nodes[parent as usize];
        parent.child_count += 1;
        let last = std::mem::replace(&mut parent.last_child, child);
        if last == NONE {
            parent.first_child = child;
        } else {
            self.nodes[last as usize].next_sibling = child;
        }
        child
    }

    /// Removes the last node from the path, because it gets no more children. Writes its children if they do not fit a
    /// page together with it.
    fn complete_last(&mut self, out: &mut SequentialWriter) -> Result<()> {
        let Some(id) = self.path.pop() else { return Ok(()) };
        let mut branch_size = 0;
        let (mut far_children, mut far_in_branch) = (false, false);
        for child in self.children(id) {
            branch_size += child.branch_size + child.node_size;
            if child.position != UNPLACED {
                far_children = true;
            } else if child.far_children || child.far_in_branch {
                far_in_branch = true;
            }
        }
        self.nodes[id as usize].branch_size = branch_size;
        let node_size = self.node_size(id, out.position());
        if (node_size + branch_size) as usize >= PAGE_BYTES {
            return self.place_children(id, out);
        }
        let node = &mut self.nodes[id as usize];
        node.node_size = node_size;
        node.far_children = far_children;
        node.far_in_branch = far_in_branch;
        Ok(())
    }

    /// Writes all children of a node that are not written yet.
    ///
    /// It calls itself only for a branch that grew beyond a page because of pointers to earlier pages, a few levels at
    /// most.
    fn place_children(&mut self, id: Id, out: &mut SequentialWriter) -> Result<()> {
        // Ordered by size, then by byte: of equal sizes the last is written first, because its own children are the
        // nearest.
        let mut waiting: Vec<(usize, u8, Id)> = Vec::new();
        let mut child = self.nodes[id as usize].first_child;
        while child != NONE {
            let node = &self.nodes[child as usize];
            if node.position == UNPLACED {
                waiting.push((node.total_size(), node.byte, child));
            }
            child = node.next_sibling;
        }
        waiting.sort_unstable();
        let mut left = out.bytes_left_in_page();
        while !waiting.is_empty() {
            let mut fitting = waiting.partition_point(|(size, ..)| *size <= left);
            if fitting == 0 {
                out.pad_to_page()?;
                left = PAGE_BYTES;
                fitting = waiting.len();
            }
            let (_, byte, child) = waiting.remove(fitting - 1);
            let node = &self.nodes[child as usize];
            if (node.far_children || node.far_in_branch) && self.measure(child, out.position()) > left {
                if left == PAGE_BYTES {
                    self.place_children(child, out)?;
                    left = out.bytes_left_in_page();
                }
                let again = (self.nodes[child as usize].total_size(), byte, child);
                let place = waiting.partition_point(|other| *other < again);
                waiting.insert(place, again);
                continue;
            }
            let position = self.write_branch(child, out)?;
            self.forget_branch(child, position);
            left = out.bytes_left_in_page();
        }
        let node = &mut self.nodes[id as usize];
        node.branch_size = 0;
        node.far_children = true;
        node.far_in_branch = false;
        let node_size = self.node_size(id, out.position());
        self.nodes[id as usize].node_size = node_size;
        Ok(())
    }

    /// The size in bytes of a node's branch if it begins at `start`. It corrects the estimates within the branch.
    fn measure(&mut self, id: Id, start: u64) -> usize {
        let base = self.visits.len();
        let mut position = self.measure_enter(id, start);
        while self.visits.len() > base {
            let Some(visit) = self.visits.last_mut() else { break };
            let child = visit.next_child;
            if child != NONE {
                visit.next_child = self.nodes[child as usize].next_sibling;
                position = self.measure_enter(child, position);
                continue;
            }
            let (node, start) = (visit.node, visit.start);
            self.visits.pop();
            self.nodes[node as usize].branch_size = (position - start) as u32;
            position = self.measure_node(node, start);
        }
        (position - start) as usize
    }

    /// Begins to measure a branch. Returns the position of its end if no size within it depends on the position;
    /// otherwise pushes a visit and returns `start`.
    fn measure_enter(&mut self, id: Id, start: u64) -> u64 {
        let node = &self.nodes[id as usize];
        if node.far_in_branch {
            self.visits.push(Visit { node: id, next_child: node.first_child, start });
            return start;
        }
        self.measure_node(id, start)
    }

    fn measure_node(&mut self, id: Id, start: u64) -> u64 {
        let node = &self.nodes[id as usize];
        if node.far_children || node.far_in_branch {
            let node_size = self.node_size(id, start + u64::from(node.branch_size));
            self.nodes[id as usize].node_size = node_size;
        }
        start + self.nodes[id as usize].total_size() as u64
    }

    /// Writes the unwritten nodes of a branch, children first. Returns the position of its top node.
    fn write_branch(&mut self, id: Id, out: &mut SequentialWriter) -> Result<u64> {
        debug_assert!(self.visits.is_empty());
        let visit = |nodes: &[Node<P>], node: Id, start| Visit {
            node,
            next_child: nodes[node as usize].first_child,
            start,
        };
        self.visits.push(visit(&self.nodes, id, out.position()));
        while let Some(top) = self.visits.last_mut() {
            let child = top.next_child;
            if child != NONE {
                top.next_child = self.nodes[child as usize].next_sibling;
                if self.nodes[child as usize].position == UNPLACED {
                    self.visits.push(visit(&self.nodes, child, out.position()));
                }
                continue;
            }
            let (node, start) = (top.node, top.start);
            self.visits.pop();
            self.write_node(node, start, out)?;
        }
        Ok(self.nodes[id as usize].position)
    }

    fn write_node(&mut self, id: Id, start: u64, out: &mut SequentialWriter) -> Result<()> {
        let node = &self.nodes[id as usize];
        let position = start + u64::from(node.branch_size);
        assert_eq!(out.position(), position, "a trie's branch was not as long as it was measured");
        let end = position + u64::from(node.node_size);
        self.bytes.clear();
        self.serialize(id, position);
        out.write(&self.bytes)?;
        assert_eq!(out.position(), end, "a trie's node was not as long as it was measured");
        self.nodes[id as usize].position = position;
        Ok(())
    }

    /// Frees the nodes of a written branch except the top one, of which only the position is kept.
    fn forget_branch(&mut self, id: Id, position: u64) {
        let node = &mut self.nodes[id as usize];
        node.position = position;
        node.payload = None;
        node.branch_size = 0;
        node.node_size = 0;
        node.far_children = false;
        node.far_in_branch = false;
        node.child_count = 0;
        node.last_child = NONE;
        let mut child = std::mem::replace(&mut node.first_child, NONE);
        // The free list also serves as the queue of nodes whose children must be freed.
        let mut seen = self.free.len();
        loop {
            while child != NONE {
                self.free.push(child);
                child = self.nodes[child as usize].next_sibling;
            }
            let Some(freed) = self.free.get(seen) else { return };
            child = self.nodes[*freed as usize].first_child;
            seen += 1;
        }
    }

    fn children(&self, id: Id) -> impl Iterator<Item = &Node<P>> + Clone {
        let mut next = self.nodes[id as usize].first_child;
        std::iter::from_fn(move || {
            let child = self.nodes.get(next as usize)?;
            next = child.next_sibling;
            Some(child)
        })
    }

    /// Size in bytes of the node and its payload if it is written at `position`.
    fn node_size(&self, id: Id, position: u64) -> u32 {
        let outline = self.outline(id, position);
        let payload = self.nodes[id as usize].payload.as_ref().map_or(0, TriePayload::size);
        (NodeType::choose(&outline).size(&outline) + payload) as u32
    }

    fn outline(&self, id: Id, position: u64) -> Outline {
        let node = &self.nodes[id as usize];
        if node.child_count == 0 {
            return Outline {
                child_count: 0,
                span: (0, 0),
                distance_max: 0,
                has_payload: node.payload.is_some(),
            };
        }
        let first = &self.nodes[node.first_child as usize];
        let last = &self.nodes[node.last_child as usize];
        let distance_max = if node.far_children {
            self.distance_max(node, id, position)
        } else {
            u64::from(node.branch_size - first.branch_size)
        };
        assert!(distance_max > 0, "a trie's child must lie before its parent");
        Outline {
            child_count: usize::from(node.child_count),
            span: (first.byte, last.byte),
            distance_max,
            has_payload: node.payload.is_some(),
        }
    }

    /// The distance to the farthest child: a written one, or the first unwritten one, which will be written first.
    fn distance_max(&self, node: &Node<P>, id: Id, position: u64) -> u64 {
        let mut farthest = 0;
        let mut first_unplaced = None;
        for child in self.children(id) {
            if child.position != UNPLACED {
                farthest = farthest.max(position - child.position);
            } else if first_unplaced.is_none() {
                first_unplaced = Some(u64::from(node.branch_size - child.branch_size));
            }
        }
        farthest.max(first_unplaced.unwrap_or(0))
    }

    /// Appends the node to `bytes`. All its children must be written.
    fn serialize(&mut self, id: Id, position: u64) {
        let outline = self.outline(id, position);
        let mut bytes = std::mem::take(&mut self.bytes);
        let payload = self.nodes[id as usize].payload;
        let flags = payload.as_ref().map_or(0, TriePayload::flags);
        let children = self.children(id).map(|child| (child.byte, position - child.position));
        NodeType::choose(&outline).write(&outline, flags, children, &mut bytes);
        if let Some(payload) = payload {
            payload.write(&mut bytes);
        }
        self.bytes = bytes;
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::test_file::MemoryFile;
    use std::path::Path;

    #[derive(Clone, Copy)]
    struct One;

    impl TriePayload for One {
        fn size(&self) -> usize {
            1
        }
        fn flags(&self) -> u8 {
            1
        }
        fn write(&self, out: &mut Vec<u8>) {
            out.push(1);
        }
    }

    fn writer() -> (TrieWriter<One>, SequentialWriter) {
        (TrieWriter::new(), SequentialWriter::on(MemoryFile::empty(), Path::new("t"), false))
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_keys() {
        let (mut trie, mut out) = writer();
        for key in 0..600_000u32 {
            trie.add(&key.wrapping_mul(7).to_be_bytes(), One, &mut out).unwrap();
        }
        trie.finish(&mut out).unwrap();
        assert_eq!(trie.count(), 600_000);
        // Of 700,000 nodes these are kept: 65 of the second level, complete, with the positions of their 256 children;
        // and for the next one, 256 children with a leaf for every seventh byte.
        let waiting = 65 * 257 + 256 * 37;
        assert!(trie.nodes.len() < waiting + 500, "{} nodes", trie.nodes.len());
    }

    #[test]
    #[should_panic(expected = "keys of a trie must ascend")]
    fn a_key_that_is_not_greater_is_never_written() {
        let (mut trie, mut out) = writer();
        trie.add(b"ab", One, &mut out).unwrap();
        let _ = trie.add(b"a", One, &mut out);
    }
}
