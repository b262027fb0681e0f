//! Reads one partition of a memtable as a source of unfiltereds, in either direction.
//!
//! Rows and points of range deletions are two lists walked together. Where a slice begins inside a range deletion the
//! cursor yields a marker that opens it at the slice's start, and one that closes it at the slice's end, so that
//! markers are balanced whatever is asked.

use super::partition::{Bytes, Point, Version, row_at};
use super::partition_map::{Entry, PartitionRef};
use super::skiplist::{Node, NodeRef};
use super::store::Memtable;
use super::sync::AtomicPtr;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::packed;
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ptr::NonNull;
use std::sync::Arc;

type RowNode = Node<AtomicPtr<Version<Bytes>>>;
type PointNode = Node<Point>;

/// A cursor over part of one partition, as of one moment.
pub struct MemtableCursor {
    /// Keeps the arena that every pointer below leads into.
    _memtable: Arc<Memtable>,
    entry: NonNull<Entry>,
    sequence: u64,
    clustering_columns: usize,
    reversed: bool,
    slices: std::vec::IntoIter<Slice>,
    slice: Option<Slice>,
    row_at: Option<NonNull<RowNode>>,
    point_at: Option<NonNull<PointNode>>,
    /// What covers the place of the cursor: the last marker's deletion in the direction of the read.
    covering: DeletionTime,
    row: RowBuf,
    /// The packed row in hand, and the packed prefix of the marker in hand: both in the arena.
    row_bytes: &'static [u8],
    marker: MarkerBuf,
    marker_bytes: &'static [u8],
    at_marker: bool,
}

// SAFETY: the pointers lead into the arena of `_memtable`, which may be read from any thread and which the cursor keeps.
unsafe impl Send for MemtableCursor {}

impl MemtableCursor {
    /// A cursor over `filter` of a partition of `memtable`, as of `sequence` (from `Partition::sequence`).
    pub fn new(
        memtable: &Arc<Memtable>,
        partition: PartitionRef<'_>,
        (sequence, clustering_columns): (u64, usize),
        filter: &ClusteringFilter,
        reversed: bool,
    ) -> MemtableCursor {
        let mut slices = match filter {
            ClusteringFilter::Slices(slices) => slices.clone(),
            ClusteringFilter::Names(names) => names.iter().map(|name| slice_of_name(name)).collect(),
        };
        if reversed {
            slices.reverse();
        }
        MemtableCursor {
            _memtable: memtable.clone(),
            entry: NonNull::from(partition.entry()),
            sequence,
            clustering_columns,
            reversed,
            slices: slices.into_iter(),
            slice: None,
            row_at: None,
            point_at: None,
            covering: DeletionTime::LIVE,
            row: RowBuf::default(),
            row_bytes: &[],
            marker: MarkerBuf::default(),
            marker_bytes: &[],
            at_marker: false,
        }
    }

    fn partition<'a>(&self) -> &'a super::Partition {
        // SAFETY: the entry lives in the arena that `_memtable` keeps; the cursor never hands the reference out.
        unsafe { &self.entry.as_ref().partition }
    }

    /// Positions both lists at the beginning of a slice. True when a marker must open a range there.
    fn enter(&mut self, slice: Slice) -> bool {
        let partition = self.partition();
        let (row, point);
        if self.reversed {
            row = partition.rows.before(&slice.end);
            point = partition.points.before(&slice.end);
            self.covering = partition.covering_before(&slice.end, self.sequence);
        } else {
            row = partition.rows.at_or_after(&slice.start);
            point = partition.points.at_or_after(&slice.start);
            self.covering = partition.covering_before(&slice.start, self.sequence);
        }
        self.row_at = row.map(NodeRef::as_ptr);
        self.point_at = point.map(NodeRef::as_ptr);
        let opens = !self.covering.is_live();
        if opens {
            let key = if self.reversed { &slice.end } else { &slice.start };
            self.marker.key.clear();
            self.marker.key.extend_from_slice(key);
            self.edge_marker(DeletionTime::LIVE, self.covering);
        }
        self.slice = Some(slice);
        opens
    }

    /// A marker without a prefix at the edge of a slice; its key is set by the caller.
    fn edge_marker(&mut self, from: DeletionTime, to: DeletionTime) {
        (self.marker.close, self.marker.open) = if self.reversed { (to, from) } else { (from, to) };
        self.marker.clustering.clear();
        self.marker.before = !self.reversed;
        self.marker_bytes = &[];
        self.at_marker = true;
    }

    /// The next element within the slice in hand.
    fn step(&mut self) -> bool {
        loop {
            let row = self.row_in_slice();
            let point = self.point_in_slice();
            let row_first = match (row, point) {
                (None, None) => return self.leave(),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(row), Some(point)) => (row.key() < point.key()) != self.reversed,
            };
            let found = match (row_first, row, point) {
                (true, Some(row), _) => self.take_row(row),
                (false, _, Some(point)) => self.take_point(point),
                _ => return self.leave(),
            };
            if found {
                return true;
            }
        }
    }

    /// Ends the slice in hand; true when a marker must close a range at its end.
    fn leave(&mut self) -> bool {
        let Some(slice) = self.slice.take() else { return false };
        if self.covering.is_live() {
            return false;
        }
        self.marker.key.clear();
        self.marker.key.extend_from_slice(if self.reversed { &slice.start } else { &slice.end });
        self.edge_marker(self.covering, DeletionTime::LIVE);
        self.marker.before = self.reversed;
        self.covering = DeletionTime::LIVE;
        true
    }

    fn row_in_slice<'a>(&self) -> Option<NodeRef<'a, AtomicPtr<Version<Bytes>>>> {
        // SAFETY: the node lives in the arena that `_memtable` keeps; the reference does not leave the cursor.
        let node = unsafe { NodeRef::from_ptr(self.row_at?) };
        self.within(node.key()).then_some(node)
    }

    fn point_in_slice<'a>(&self) -> Option<NodeRef<'a, Point>> {
        // SAFETY: as in `row_in_slice`.
        let node = unsafe { NodeRef::from_ptr(self.point_at?) };
        self.within(node.key()).then_some(node)
    }

    fn within(&self, key: &[u8]) -> bool {
        let Some(slice) = &self.slice else { return false };
        if self.reversed { key >= &slice.start[..] } else { key < &slice.end[..] }
    }

    fn take_row(&mut self, node: NodeRef<'_, AtomicPtr<Version<Bytes>>>) -> bool {
        let next = if self.reversed { node.previous() } else { node.next() };
        self.row_at = next.map(NodeRef::as_ptr);
        // SAFETY: the arena is kept by `_memtable`, and the bytes are only lent out with a borrow of the cursor.
        let Some(bytes) = (unsafe { row_at(node, self.sequence) }) else { return false };
        let unpacked = packed::unpack(bytes, self.clustering_columns, &mut self.row);
        assert!(unpacked.is_ok(), "a row in the memtable was checked when it was applied");
        self.row.key.clear();
        self.row.key.extend_from_slice(node.key());
        self.row_bytes = bytes;
        self.at_marker = false;
        true
    }

    fn take_point(&mut self, node: NodeRef<'_, Point>) -> bool {
        let next = if self.reversed { node.previous() } else { node.next() };
        self.point_at = next.map(NodeRef::as_ptr);
        let point = node.value();
        let Some(after) = point.covering_at(self.sequence) else { return false };
        let beyond =
            if self.reversed { self.partition().covering_before(node.key(), self.sequence) } else { after };
        if beyond == self.covering {
            return false;
        }
        (self.marker.close, self.marker.open) =
            if self.reversed { (beyond, self.covering) } else { (self.covering, beyond) };
        self.covering = beyond;
        self.marker.key.clear();
        self.marker.key.extend_from_slice(node.key());
        // SAFETY: the arena is kept by `_memtable`, and the bytes are only lent out with a borrow of the cursor.
        self.marker_bytes = unsafe { point.prefix(&mut self.marker.clustering) };
        self.marker.before = point.before;
        self.at_marker = true;
        true
    }
}

/// A name as the smallest slice that holds it: `name <= key < name + 0x00`.
fn slice_of_name(name: &[u8]) -> Slice {
    let mut end = name.to_vec();
    end.push(0);
    Slice { start: name.to_vec(), end }
}

impl<Cx> Source<Cx> for MemtableCursor {
    type Error = helenus_sstable::Error;

    fn advance(&mut self, _cx: &mut Cx) -> Result<bool, helenus_sstable::Error> {
        loop {
            if self.slice.is_some() && self.step() {
                return Ok(true);
            }
            match self.slices.next() {
                None => return Ok(false),
                Some(slice) => {
                    if self.enter(slice) {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn current(&self) -> Unfiltered<'_> {
        if self.at_marker {
            Unfiltered::Marker(MarkerView { marker: &self.marker, data: self.marker_bytes })
        } else {
            Unfiltered::Row(RowView { row: &self.row, data: self.row_bytes })
        }
    }
}
