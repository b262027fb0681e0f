//! Reads one partition of a memtable as a source of unfiltereds (rows and range tombstone markers), in either
//! direction.
//!
//! The cursor merges two lists: the rows, and the points where range deletions begin or end. If a slice starts inside a
//! range deletion, the cursor yields an opening marker at the slice's start and a closing one at its end, so markers
//! are always balanced.

use super::partition::{Bytes, Point, Version, row_at};
use super::partition_map::{Entry, PartitionRef};
use super::prefetch;
use super::skiplist::{Node, NodeRef};
use super::store::Memtable;
use super::sync::AtomicPtr;
use helenus_host::account;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{AFTER_ALL, ClusteringFilter};
use helenus_model::packed;
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::sync::Arc;

type RowNode = Node<AtomicPtr<Version<Bytes>>>;
type PointNode = Node<Point>;

/// A row of this size or more is charged to the account before it is copied for merging.
const LARGE_ROW_BYTES: usize = 64 << 10;
/// From this number of cells on, the same.
const MANY_CELLS: usize = 4096;

/// The most bytes of a row's buffers that are kept for the next cursor.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A cursor over part of one partition, as of one sequence number.
pub struct MemtableCursor {
    /// Keeps the arena that every pointer below leads into.
    _memtable: Arc<Memtable>,
    entry: NonNull<Entry>,
    sequence: u64,
    clustering_columns: usize,
    reversed: bool,
    /// Whether rows are given with their ordered keys.
    with_keys: bool,
    filter: Arc<ClusteringFilter>,
    /// Number of slices or names begun.
    begun: usize,
    /// Whether the cursor is in a slice.
    in_slice: bool,
    /// Whether the slice extends beyond every row.
    is_open_ended: bool,
    row_at: Option<NonNull<RowNode>>,
    point_at: Option<NonNull<PointNode>>,
    /// The deletion that covers the cursor's position: that of the last marker in reading direction.
    covering: DeletionTime,
    memory: Box<CursorMemory>,
    /// The current row's packed bytes, and the current marker's packed prefix: both in the arena.
    row_bytes: &'static [u8],
    marker_bytes: &'static [u8],
    at_marker: bool,
}

/// Buffers of a cursor, which the next cursor reuses.
#[derive(Default)]
pub struct CursorMemory {
    row: RowBuf,
    marker: MarkerBuf,
    /// The bounds of the current slice.
    start: Vec<u8>,
    end: Vec<u8>,
}

/// The part of a partition that a cursor reads.
pub struct Selected<'a> {
    /// The sequence number to read at (from `Partition::sequence`).
    pub sequence: u64,
    /// Number of clustering columns of the table.
    pub clustering_columns: usize,
    /// Which rows to read.
    pub filter: &'a Arc<ClusteringFilter>,
    /// Whether to read against the clustering order.
    pub reversed: bool,
}

// SAFETY: the pointers lead into the arena of `_memtable`, which any thread may read and which the cursor keeps alive.
unsafe impl Send for MemtableCursor {}

impl MemtableCursor {
    /// A cursor over part of a partition of `memtable`. `memory` comes from an earlier cursor, or is new.
    pub fn new(
        memtable: &Arc<Memtable>,
        partition: PartitionRef<'_>,
        selected: &Selected<'_>,
        memory: Box<CursorMemory>,
    ) -> MemtableCursor {
        MemtableCursor {
            _memtable: memtable.clone(),
            entry: NonNull::from(partition.entry()),
            sequence: selected.sequence,
            clustering_columns: selected.clustering_columns,
            reversed: selected.reversed,
            with_keys: true,
            filter: selected.filter.clone(),
            begun: 0,
            in_slice: false,
            is_open_ended: false,
            row_at: None,
            point_at: None,
            covering: DeletionTime::LIVE,
            memory,
            row_bytes: &[],
            marker_bytes: &[],
            at_marker: false,
        }
    }

    /// Sets whether rows are given with their ordered keys; by default they are. Where nothing is compared, keys are
    /// not needed.
    pub fn set_keys(&mut self, with_keys: bool) {
        self.with_keys = with_keys;
    }

    /// Returns the buffers for the next cursor.
    pub fn into_memory(mut self) -> Box<CursorMemory> {
        if self.memory.row.memory_bytes() > KEPT_BYTES_MAX {
            self.memory.row = RowBuf::default();
        }
        self.memory
    }

    /// Begins the next slice. A name is the slice `name <= key < name + 0x00`. False after the last one.
    fn next_slice(&mut self) -> bool {
        let count = match &*self.filter {
            ClusteringFilter::Slices(slices) => slices.len(),
            ClusteringFilter::Names(names) => names.len(),
        };
        if self.begun >= count {
            return false;
        }
        let index = if self.reversed { count - 1 - self.begun } else { self.begun };
        self.begun += 1;
        let CursorMemory { start, end, .. } = &mut *self.memory;
        start.clear();
        end.clear();
        match &*self.filter {
            ClusteringFilter::Slices(slices) => {
                start.extend_from_slice(&slices[index].start);
                end.extend_from_slice(&slices[index].end);
            }
            ClusteringFilter::Names(names) => {
                start.extend_from_slice(&names[index]);
                end.extend_from_slice(&names[index]);
                end.push(0);
            }
        }
        self.is_open_ended = if self.reversed { start.is_empty() } else { end == AFTER_ALL };
        true
    }

    fn partition<'a>(&self) -> &'a super::Partition {
        // SAFETY: the entry lives in the arena that `_memtable` keeps; the cursor never hands the reference out.
        unsafe { &self.entry.as_ref().partition }
    }

    /// Positions both lists at the beginning of the slice. Returns true if a marker must open a range there.
    fn enter(&mut self) -> bool {
        let partition = self.partition();
        let (row, point);
        let slice = &mut *self.memory;
        if self.reversed {
            row = partition.rows.before(&slice.end);
            point = partition.points().and_then(|points| points.before(&slice.end));
            self.covering = partition.covering_before(&slice.end, self.sequence);
        } else {
            row = partition.rows.at_or_after(&slice.start);
            point = partition.points().and_then(|points| points.at_or_after(&slice.start));
            self.covering = partition.covering_before(&slice.start, self.sequence);
        }
        self.row_at = row.map(NodeRef::as_ptr);
        self.point_at = point.map(NodeRef::as_ptr);
        let opens = !self.covering.is_live();
        if opens {
            let key = if self.reversed { &slice.end } else { &slice.start };
            slice.marker.key.clear();
            slice.marker.key.extend_from_slice(key);
            self.edge_marker(DeletionTime::LIVE, self.covering);
        }
        self.in_slice = true;
        opens
    }

    /// Makes a marker without a prefix at the edge of a slice. The caller sets its key.
    fn edge_marker(&mut self, from: DeletionTime, to: DeletionTime) {
        let marker = &mut self.memory.marker;
        (marker.close, marker.open) = if self.reversed { (to, from) } else { (from, to) };
        marker.clustering.clear();
        marker.before = !self.reversed;
        self.marker_bytes = &[];
        self.at_marker = true;
    }

    /// Moves to the next element of the slice.
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

    /// Ends the slice. Returns true if a marker must close a range at its end.
    fn leave(&mut self) -> bool {
        if !std::mem::take(&mut self.in_slice) || self.covering.is_live() {
            return false;
        }
        let CursorMemory { marker, start, end, .. } = &mut *self.memory;
        marker.key.clear();
        marker.key.extend_from_slice(if self.reversed { start } else { end });
        self.edge_marker(self.covering, DeletionTime::LIVE);
        self.memory.marker.before = self.reversed;
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
        self.is_open_ended
            || if self.reversed { key >= &self.memory.start[..] } else { key < &self.memory.end[..] }
    }

    fn take_row(&mut self, node: NodeRef<'_, AtomicPtr<Version<Bytes>>>) -> bool {
        let next = if self.reversed { node.previous() } else { node.next() };
        self.row_at = next.map(NodeRef::as_ptr);
        if let Some(next) = self.row_at {
            prefetch::stride(node.as_ptr(), next);
        }
        // SAFETY: `_memtable` keeps the arena alive, and the bytes are only lent out with a borrow of the cursor.
        let Some(bytes) = (unsafe { row_at(node, self.sequence) }) else { return false };
        let row = &mut self.memory.row;
        let unpacked = packed::unpack(bytes, self.clustering_columns, row);
        assert!(unpacked.is_ok(), "a row in the memtable was checked when it was applied");
        row.key.clear();
        if self.with_keys {
            row.key.extend_from_slice(node.key());
        }
        self.row_bytes = bytes;
        self.at_marker = false;
        true
    }

    /// Calls `each` for the remaining rows of the slice; `each` may break after a row. Gives no rows if a range
    /// deletion begins or ends in the rest of the slice, which `advance` must read. Rows are given as by
    /// `PartitionReader::plain_rows`.
    pub fn plain_rows<Cx>(
        &mut self,
        cx: &mut Cx,
        mut each: impl FnMut(&RowBuf, &[u8], &mut Cx) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_slice || self.point_in_slice().is_some() {
            return ControlFlow::Continue(());
        }
        while let Some(node) = self.row_in_slice() {
            if self.take_row(node) {
                each(&self.memory.row, self.row_bytes, cx)?;
            }
        }
        ControlFlow::Continue(())
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
        let marker = &mut self.memory.marker;
        (marker.close, marker.open) =
            if self.reversed { (beyond, self.covering) } else { (self.covering, beyond) };
        self.covering = beyond;
        marker.key.clear();
        marker.key.extend_from_slice(node.key());
        // SAFETY: `_memtable` keeps the arena alive, and the bytes are only lent out with a borrow of the cursor.
        self.marker_bytes = unsafe { point.prefix(&mut marker.clustering) };
        marker.before = point.before;
        self.at_marker = true;
        true
    }
}

impl<Cx> Source<Cx> for MemtableCursor {
    type Error = helenus_sstable::Error;

    fn advance(&mut self, _cx: &mut Cx) -> Result<bool, helenus_sstable::Error> {
        loop {
            if self.in_slice && self.step() {
                // A row with a key may be merged with others, which copies it; a row without one is passed through.
                if self.row_bytes.len() >= LARGE_ROW_BYTES && self.with_keys {
                    account::grow(self.row_bytes.len())?;
                }
                if self.memory.row.cells.len() >= MANY_CELLS {
                    // A merge makes two more rows of them.
                    account::grow(2 * size_of_val(&*self.memory.row.cells))?;
                }
                return Ok(true);
            }
            if !self.next_slice() {
                return Ok(false);
            }
            if self.enter() {
                return Ok(true);
            }
        }
    }

    fn current(&self) -> Unfiltered<'_> {
        if self.at_marker {
            Unfiltered::Marker(MarkerView { marker: &self.memory.marker, data: self.marker_bytes })
        } else {
            Unfiltered::Row(RowView { row: &self.memory.row, data: self.row_bytes })
        }
    }
}
