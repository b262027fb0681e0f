//! Reads one partition of a memtable as a source of unfiltereds (rows and range tombstone markers), in either
//! direction.
//!
//! The cursor merges two lists: the rows, and the points of the runs of range deletions. If a slice starts inside a
//! range deletion, the cursor yields an opening marker at the slice's start and a closing one at its end, so markers
//! are always balanced.

use super::partition::{Version, row_at};
use super::partition_map::{Entry, PartitionRef};
use super::prefetch;
use super::range_runs::{Point, RangeWalk, Run};
use super::row_parts::{RowBuffers, RowVersion, StoredRow};
use super::skiplist::{Node, NodeRef};
use super::store::Memtable;
use super::sync::AtomicPtr;
use helenus_host::account;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{AFTER_ALL, ClusteringFilter};
use helenus_model::packed;
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::sync::Arc;

type RowNode = Node<AtomicPtr<Version<RowVersion>>>;

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
    /// `None` if the partition has no range deletions.
    ranges: Option<Box<Ranges>>,
    /// The deletion that covers the cursor's position: that of the last marker in reading direction.
    covering: DeletionTime,
    memory: Box<CursorMemory>,
    /// The current row's packed bytes, and the current marker's packed prefix: both in the arena.
    row_bytes: &'static [u8],
    marker_bytes: &'static [u8],
    at: At,
    /// Whether a row was merged from parts.
    has_merged: bool,
}

/// What the current element is.
#[derive(Clone, Copy)]
enum At {
    /// A row in one part: its bytes are `row_bytes`.
    Row,
    /// A row that was merged from several parts: its bytes are the buffer's own.
    Merged,
    /// A row in several parts, which are merged before anyone sees it.
    Parts(StoredRow<'static>),
    Marker,
}

/// The range deletions of the partition, as of the cursor's sequence number. They live in the arena.
struct Ranges {
    newest: &'static Run,
    walk: RangeWalk<'static>,
    /// The next point in reading direction.
    next: Option<Point>,
}

/// Buffers of a cursor, which the next cursor reuses.
#[derive(Default)]
pub struct CursorMemory {
    /// The current row is `buffers.row`.
    buffers: RowBuffers,
    /// The table of the rows.
    table: Option<Arc<Table>>,
    marker: MarkerBuf,
    /// The bounds of the current slice.
    start: Vec<u8>,
    end: Vec<u8>,
}

/// The part of a partition that a cursor reads.
pub struct Selected<'a> {
    /// The sequence number to read at (from `Partition::sequence`).
    pub sequence: u64,
    /// The table.
    pub table: &'a Arc<Table>,
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
        mut memory: Box<CursorMemory>,
    ) -> MemtableCursor {
        let table = selected.table;
        if memory.table.as_ref().is_none_or(|known| !Arc::ptr_eq(known, table)) {
            memory.table = Some(table.clone());
        }
        // SAFETY: in the arena that `_memtable` keeps; the cursor never hands the reference out.
        let content: &super::Partition = unsafe { &NonNull::from(partition.entry()).as_ref().partition };
        let ranges = content
            .ranges(selected.sequence)
            .map(|newest| Box::new(Ranges { newest, walk: RangeWalk::default(), next: None }));
        MemtableCursor {
            _memtable: memtable.clone(),
            entry: NonNull::from(partition.entry()),
            sequence: selected.sequence,
            clustering_columns: table.clustering.len(),
            reversed: selected.reversed,
            with_keys: true,
            filter: selected.filter.clone(),
            begun: 0,
            in_slice: false,
            is_open_ended: false,
            row_at: None,
            ranges,
            covering: DeletionTime::LIVE,
            memory,
            row_bytes: &[],
            marker_bytes: &[],
            at: At::Row,
            has_merged: false,
        }
    }

    /// Sets whether rows are given with their ordered keys; by default they are. Where nothing is compared, keys are
    /// not needed.
    pub fn set_keys(&mut self, with_keys: bool) {
        self.with_keys = with_keys;
    }

    /// Returns the buffers for the next cursor.
    pub fn into_memory(mut self) -> Box<CursorMemory> {
        let buffers = &self.memory.buffers;
        // Without a merge only the row's buffer has grown.
        let bytes = if self.has_merged { buffers.memory_bytes() } else { buffers.row.memory_bytes() };
        if bytes > KEPT_BYTES_MAX {
            self.memory.buffers = RowBuffers::default();
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
        let slice = &mut *self.memory;
        let (row, key) = match self.reversed {
            true => (partition.rows.before(&slice.end), &slice.end),
            false => (partition.rows.at_or_after(&slice.start), &slice.start),
        };
        self.row_at = row.map(NodeRef::as_ptr);
        if let Some(ranges) = &mut self.ranges {
            ranges.walk.restart(ranges.newest, key);
            self.covering = ranges.walk.covering();
            ranges.seek(self.reversed);
        }
        let opens = !self.covering.is_live();
        if opens {
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
        self.at = At::Marker;
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
                (Some(row), Some(point)) => (row.key() < point.place().key()) != self.reversed,
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

    fn row_in_slice<'a>(&self) -> Option<NodeRef<'a, AtomicPtr<Version<RowVersion>>>> {
        // SAFETY: the node lives in the arena that `_memtable` keeps; the reference does not leave the cursor.
        let node = unsafe { NodeRef::from_ptr(self.row_at?) };
        self.within(node.key()).then_some(node)
    }

    fn point_in_slice(&self) -> Option<Point> {
        let point = self.ranges.as_ref()?.next?;
        self.within(point.place().key()).then_some(point)
    }

    fn within(&self, key: &[u8]) -> bool {
        self.is_open_ended
            || if self.reversed { key >= &self.memory.start[..] } else { key < &self.memory.end[..] }
    }

    #[inline(always)]
    fn take_row(&mut self, node: NodeRef<'_, AtomicPtr<Version<RowVersion>>>) -> bool {
        let next = if self.reversed { node.previous() } else { node.next() };
        self.row_at = next.map(NodeRef::as_ptr);
        if let Some(next) = self.row_at {
            prefetch::stride(node.as_ptr(), next);
        }
        // SAFETY: `_memtable` keeps the arena alive, and the bytes are only lent out with a borrow of the cursor.
        let Some(stored) = (unsafe { row_at(node, self.sequence) }) else { return false };
        let row = &mut self.memory.buffers.row;
        row.key.clear();
        if self.with_keys {
            row.key.extend_from_slice(node.key());
        }
        let Some(bytes) = stored.whole() else {
            self.at = At::Parts(stored);
            return true;
        };
        let unpacked = packed::unpack(bytes, self.clustering_columns, row);
        assert!(unpacked.is_ok(), "a row in the memtable was checked when it was applied");
        self.row_bytes = bytes;
        self.at = At::Row;
        true
    }

    /// Merges the parts of the current row. The row has its key already.
    #[cold]
    fn merge_parts(&mut self, stored: StoredRow<'static>) -> Result<(), helenus_sstable::Error> {
        let bytes: usize = stored.parts().map(<[u8]>::len).sum();
        if bytes >= LARGE_ROW_BYTES {
            // The row that is being merged and the result.
            account::grow(2 * bytes)?;
        }
        let CursorMemory { buffers, table, .. } = &mut *self.memory;
        let Some(table) = table else { unreachable!("a cursor has the table of its rows") };
        let key = std::mem::take(&mut buffers.row.key);
        let merged = buffers.merge((table, self.clustering_columns), stored.parts());
        assert!(merged.is_ok(), "a row in the memtable was checked when it was applied");
        buffers.row.key = key;
        (self.at, self.has_merged) = (At::Merged, true);
        Ok(())
    }

    /// Charges the account for what a merge with other sources will take for the current row.
    #[inline(always)]
    fn charge(&self) -> Result<(), helenus_sstable::Error> {
        // A row with a key may be merged with others, which copies it twice, the second time into the next merged row. A row
        // without one is passed through.
        if self.row_bytes().len() >= LARGE_ROW_BYTES && self.with_keys {
            account::grow(2 * self.row_bytes().len())?;
        }
        if self.memory.buffers.row.cells.len() >= MANY_CELLS {
            // A merge makes two more rows of them.
            account::grow(2 * size_of_val(&*self.memory.buffers.row.cells))?;
        }
        Ok(())
    }

    /// The bytes of the current row.
    fn row_bytes(&self) -> &[u8] {
        if matches!(self.at, At::Merged) { &self.memory.buffers.row.data } else { self.row_bytes }
    }

    /// Calls `each` for the remaining rows of the slice; `each` may break after a row. Gives no rows if a range
    /// deletion begins or ends in the rest of the slice, which `advance` must read, and stops before a row in several
    /// parts. Rows are given as by `PartitionReader::plain_rows`.
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
                if matches!(self.at, At::Parts(_)) {
                    break;
                }
                each(&self.memory.buffers.row, self.row_bytes, cx)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn take_point(&mut self, point: Point) -> bool {
        let Some(ranges) = &mut self.ranges else { return false };
        let beyond =
            if self.reversed { ranges.walk.pass::<true>(point) } else { ranges.walk.pass::<false>(point) };
        ranges.seek(self.reversed);
        if beyond == self.covering {
            return false;
        }
        let place = point.place();
        let marker = &mut self.memory.marker;
        (marker.close, marker.open) =
            if self.reversed { (beyond, self.covering) } else { (self.covering, beyond) };
        self.covering = beyond;
        marker.key.clear();
        marker.key.extend_from_slice(place.key());
        self.marker_bytes = place.prefix(&mut marker.clustering);
        marker.before = place.before;
        self.at = At::Marker;
        true
    }
}

impl Ranges {
    /// Finds the next point.
    fn seek(&mut self, reversed: bool) {
        self.next = if reversed { self.walk.next::<true>() } else { self.walk.next::<false>() };
    }
}

impl<Cx> Source<Cx> for MemtableCursor {
    type Error = helenus_sstable::Error;

    fn advance(&mut self, _cx: &mut Cx) -> Result<bool, helenus_sstable::Error> {
        loop {
            // `plain_rows` may have left it.
            if let At::Parts(stored) = self.at {
                self.merge_parts(stored)?;
                return self.charge().map(|()| true);
            }
            if self.in_slice && self.step() {
                match self.at {
                    At::Parts(_) => continue,
                    At::Marker => return Ok(true),
                    At::Row | At::Merged => return self.charge().map(|()| true),
                }
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
        match self.at {
            At::Marker => {
                Unfiltered::Marker(MarkerView { marker: &self.memory.marker, data: self.marker_bytes })
            }
            _ => Unfiltered::Row(RowView { row: &self.memory.buffers.row, data: self.row_bytes() }),
        }
    }
}
