//! One partition in a memtable: rows, range tombstones, static row and partition deletion, all versioned.
//!
//! A writer holds the partition's writer lock. It takes the next sequence number, links its versions, and publishes
//! them with a single store of that number. A reader first loads the number, then reads everywhere the newest version
//! that is not above it. So a read sees each write whole or not at all, however long the read runs, and takes no lock.
//!
//! A version of a row leads to its packed bytes (`row_parts`), a version of the range deletions to a list of sorted runs
//! (`range_runs`). Both make a new version from an old one without a copy of all that is there.

use super::arena::Arena;
use super::concurrent_map::{ConcurrentMap, Versions};
use super::prefetch;
use super::range_runs::{Place, Point, Run};
use super::row_parts::{MergeScratch, RowVersion, StoredRow};
use super::skiplist::NodeRef;
use super::sync::{AtomicI64, AtomicPtr, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::log_position::LogPosition;
use helenus_host::prefetch_lines;
use helenus_model::byte_comparable;
use helenus_model::column_map::ColumnMap;
use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::{Change, Changes, RangeBound};
use helenus_model::packed::{self, Damaged};
use helenus_model::schema::Table;
use helenus_model::types::TypeError;
use ranges::{Range, disjoint};
use std::ptr::NonNull;

/// One partition.
#[derive(Default)]
pub struct Partition {
    writer_mutex: Mutex<()>,
    published: AtomicU64,
    /// The log position after the last write that readers see or are about to see, stored as a `LogPosition`.
    logged: AtomicU64,
    /// The server timestamp of the last plain write. Only the holder of the writer lock changes it.
    stamped_us: AtomicI64,
    deletion: AtomicPtr<Version<DeletionTime>>,
    static_row: AtomicPtr<Version<RowVersion>>,
    pub(super) rows: Versions<RowVersion>,
    /// The newest run of range deletions. Null until a range is deleted.
    ranges: AtomicPtr<Version<&'static Run>>,
}

/// A value as one write left it. If it replaced an older version, that version's address lies before it in memory.
pub struct Version<T> {
    /// Twice the write's sequence number, plus one if there is an older version.
    stamp: u64,
    value: T,
}

/// A version with the address of the one that it replaced.
#[repr(C)]
struct Replacing<T> {
    older: *const Version<T>,
    version: Version<T>,
}

/// Bytes in the arena, preceded by their length as a `u32`.
#[derive(Clone, Copy)]
pub(super) struct Bytes(NonNull<u8>);

/// Size of the length before the bytes.
const LEN_BYTES: usize = size_of::<u32>();

impl Bytes {
    /// Arena memory that these bytes take, with their length.
    fn room_for(bytes: &[u8]) -> usize {
        LEN_BYTES + bytes.len()
    }

    /// Copies the bytes to an address in the arena.
    ///
    /// # Safety
    /// The caller owns `room_for(bytes)` bytes from `place` on.
    unsafe fn put(place: NonNull<u8>, bytes: &[u8]) -> Bytes {
        let Ok(len) = u32::try_from(bytes.len()) else {
            unreachable!("a row or key in a memtable is far shorter than 4 GiB: the log's records are")
        };
        // SAFETY: the caller's promise.
        unsafe {
            place.cast().write_unaligned(len);
            place.add(LEN_BYTES).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
        Bytes(place)
    }

    /// # Safety
    /// The arena outlives `'a`.
    pub(super) unsafe fn get<'a>(self) -> &'a [u8] {
        // SAFETY: written before it was published, never changed; the caller keeps the arena alive.
        unsafe {
            let len: u32 = self.0.cast().read_unaligned();
            std::slice::from_raw_parts(self.0.add(LEN_BYTES).as_ptr(), len as usize)
        }
    }
}

/// Holds the writer lock of a partition.
#[must_use = "a lock that is dropped at once keeps nobody out"]
pub struct WriterLock<'a> {
    partition: &'a Partition,
    _held: MutexGuard<'a, ()>,
}

impl WriterLock<'_> {
    /// Whether this server timestamp is above those of all plain writes so far: a write that is applied later must
    /// have a later timestamp. If so, later writes are compared with this one.
    pub fn is_next(&self, stamped_us: i64) -> bool {
        let last_us = &self.partition.stamped_us;
        let is_next = stamped_us > last_us.load(Ordering::Relaxed);
        if is_next {
            last_us.store(stamped_us, Ordering::Relaxed);
        }
        is_next
    }
}

/// Buffers that a writer reuses for each change.
#[derive(Default)]
pub struct ApplyScratch {
    key: Vec<u8>,
    end: Vec<u8>,
    points: Vec<Point>,
    merge: MergeScratch,
}

// SAFETY: the raw pointers lead into the arena of the memtable that owns the partition, to versions that are written
// before they are published and never changed after; writers hold the writer lock.
unsafe impl Send for Partition {}
// SAFETY: as above.
unsafe impl Sync for Partition {}

/// The newest version a reader at `sequence` may see.
pub(super) fn visible<'a, T>(newest: &AtomicPtr<Version<T>>, sequence: u64) -> Option<&'a T> {
    let mut version: *const Version<T> = newest.load(Ordering::Acquire);
    // SAFETY: versions live as long as the arena, which the holder of the partition keeps alive.
    while let Some(found) = unsafe { version.as_ref() } {
        if found.stamp >> 1 <= sequence {
            return Some(&found.value);
        }
        if found.stamp & 1 == 0 {
            return None;
        }
        // SAFETY: the stamp says that this version is part of a `Replacing`.
        let replacing = unsafe { version.byte_sub(std::mem::offset_of!(Replacing<T>, version)) };
        // SAFETY: as above.
        version = unsafe { (*replacing.cast::<Replacing<T>>()).older };
    }
    None
}

/// Links a new version in front of the newest one.
pub(super) fn push<T>(arena: &Arena, newest: &AtomicPtr<Version<T>>, sequence: u64, value: T) {
    let older = newest.load(Ordering::Relaxed);
    let version = if older.is_null() {
        arena.place(Version { stamp: sequence << 1, value })
    } else {
        let replacing =
            arena.place(Replacing { older, version: Version { stamp: sequence << 1 | 1, value } });
        // SAFETY: within what was placed.
        unsafe { replacing.byte_add(std::mem::offset_of!(Replacing<T>, version)).cast() }
    };
    newest.store(version.as_ptr(), Ordering::Release);
}

pub(super) fn first_version<T>(arena: &Arena, sequence: u64, value: T) -> AtomicPtr<Version<T>> {
    AtomicPtr::new(arena.place(Version { stamp: sequence << 1, value }).as_ptr())
}

/// Copies two byte strings to adjacent memory.
pub(super) fn copy_both(arena: &Arena, one: &[u8], other: &[u8]) -> (Bytes, Bytes) {
    let place = arena.allocate(Bytes::room_for(one) + Bytes::room_for(other));
    // SAFETY: the allocation has room for both and was handed to nobody else.
    unsafe { (Bytes::put(place, one), Bytes::put(place.add(Bytes::room_for(one)), other)) }
}

impl Partition {
    /// The sequence number of the last write that readers see. A reader loads it once, before anything else.
    pub fn sequence(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// The log position after all writes that a reader of the present sequence number sees. Load it after that number:
    /// it may then be too high, never too low.
    pub fn logged(&self) -> LogPosition {
        LogPosition(self.logged.load(Ordering::Acquire))
    }

    /// Waits for the writer lock.
    pub fn writer_lock(&self) -> WriterLock<'_> {
        WriterLock { partition: self, _held: self.writer_mutex.lock() }
    }

    /// The partition deletion as of a sequence number.
    pub fn deletion(&self, sequence: u64) -> DeletionTime {
        visible(&self.deletion, sequence).copied().unwrap_or(DeletionTime::LIVE)
    }

    /// The static row as of a sequence number.
    pub fn static_row(&self, sequence: u64) -> Option<StoredRow<'_>> {
        // SAFETY: the partition lives in the arena that the bytes live in.
        visible(&self.static_row, sequence).map(|row| unsafe { row.stored() })
    }

    /// The row with this ordered key as of a sequence number, without what range deletions do to it.
    pub fn row(&self, key: &[u8], sequence: u64) -> Option<StoredRow<'_>> {
        let node = self.rows.get(key)?;
        // SAFETY: the partition lives in the arena that the bytes live in.
        unsafe { row_at(node, sequence) }
    }

    /// The rows as of a sequence number, each with its ordered key; `None` if a range was ever deleted. With the static
    /// row and the partition deletion, these rows are the whole partition.
    pub fn plain_rows(&self, sequence: u64) -> Option<impl Iterator<Item = (&[u8], StoredRow<'_>)>> {
        if self.ranges(sequence).is_some() {
            return None;
        }
        let nodes = std::iter::successors(self.rows.first(), |node| {
            let next = node.next()?;
            prefetch::stride(node.as_ptr(), next.as_ptr());
            Some(next)
        });
        Some(nodes.filter_map(move |node| {
            // SAFETY: the partition lives in the arena that the bytes live in.
            let row: Option<StoredRow<'_>> = unsafe { row_at(node, sequence) };
            row.map(|row| (node.key(), row))
        }))
    }

    /// The newest run of range deletions as of a sequence number; it leads to the older ones. `None` if no range was
    /// deleted.
    #[inline]
    pub(super) fn ranges(&self, sequence: u64) -> Option<&Run> {
        visible(&self.ranges, sequence).copied()
    }

    /// Prefetches the newest version of the first row: an overwritten row lies elsewhere in the arena than the
    /// partition.
    pub(super) fn prefetch_first(&self) {
        const LINES_BEFORE: usize = 4;
        const LINE_BYTES: usize = 64;
        if let Some(node) = self.rows.first() {
            // The row's bytes were put into the arena right before the version that leads to them.
            let version = node.value().load(Ordering::Relaxed);
            prefetch_lines(version.wrapping_byte_sub(LINES_BEFORE * LINE_BYTES), LINES_BEFORE + 1);
        }
    }

    /// Applies the changes of one write, whose log record ends at `logged`; they become visible together. The caller
    /// holds the writer lock. Returns the number of rows added.
    pub fn apply(
        &self,
        arena: &Arena,
        table: &Table,
        (changes, logged): (&Changes, LogPosition),
        scratch: &mut ApplyScratch,
    ) -> Result<u64, Damaged> {
        let sequence = self.published.load(Ordering::Relaxed) + 1;
        let mut added = 0;
        let mut ranges = Vec::new();
        for change in changes.iter() {
            match change? {
                Change::PartitionDeletion(deletion) => {
                    let present = self.deletion(sequence);
                    if deletion.supersedes(present) {
                        push(arena, &self.deletion, sequence, deletion);
                    }
                }
                Change::StaticRow(row) => self.apply_static(arena, table, sequence, row, scratch)?,
                Change::Row(row) => added += u64::from(self.apply_row(arena, table, sequence, row, scratch)?),
                // Range deletions give the same result in any order.
                Change::RangeDeletion { start, end, deletion } => {
                    ranges.push(RangeDeletion { start, end, deletion });
                }
            }
        }
        if !ranges.is_empty() {
            self.apply_ranges(arena, table, sequence, &ranges, scratch)?;
        }
        // Stored before the sequence number: a reader that sees the write then knows how far the log must be synced.
        if logged.0 > self.logged.load(Ordering::Relaxed) {
            self.logged.store(logged.0, Ordering::Relaxed);
        }
        self.published.store(sequence, Ordering::Release);
        Ok(added)
    }

    fn apply_static(
        &self,
        arena: &Arena,
        table: &Table,
        sequence: u64,
        row: &[u8],
        scratch: &mut ApplyScratch,
    ) -> Result<(), Damaged> {
        let version = match visible(&self.static_row, sequence) {
            None => RowVersion::first(arena, row),
            Some(old) => old.with(arena, (table, 0), row, &mut scratch.merge)?,
        };
        push(arena, &self.static_row, sequence, version);
        Ok(())
    }

    /// Returns whether the row is new in this memtable.
    fn apply_row(
        &self,
        arena: &Arena,
        table: &Table,
        sequence: u64,
        row: &[u8],
        scratch: &mut ApplyScratch,
    ) -> Result<bool, Damaged> {
        let columns = table.clustering.len();
        scratch.key.clear();
        byte_comparable::clustering_key(
            packed::clustering_values(row, columns),
            &table.clustering,
            &mut scratch.key,
        )
        .map_err(unordered)?;
        let key = std::mem::take(&mut scratch.key);
        let mut rows = ConcurrentMap::new(&self.rows, arena, sequence);
        let added = rows.add(
            &key,
            row,
            |row| RowVersion::first(arena, row),
            |old, row| old.with(arena, (table, columns), row, &mut scratch.merge),
        );
        scratch.key = key;
        added
    }

    /// Adds the range deletions of one write as one run.
    fn apply_ranges(
        &self,
        arena: &Arena,
        table: &Table,
        sequence: u64,
        ranges: &[RangeDeletion<'_>],
        scratch: &mut ApplyScratch,
    ) -> Result<(), Damaged> {
        let ApplyScratch { key, end, points, .. } = scratch;
        points.clear();
        if let [range] = ranges {
            bound_key(table, &range.start, key)?;
            bound_key(table, &range.end, end)?;
            if key < end {
                points.push(Point::new(Place::new(arena, key, &range.start), range.deletion));
                points.push(Point::new(Place::new(arena, end, &range.end), DeletionTime::LIVE));
            }
        } else {
            let disjoint = disjoint(ranges_of(table, ranges)?);
            for (at, Range { start, end, deletion }) in disjoint.iter().enumerate() {
                points.push(Point::new(Place::new(arena, &start.0, &start.1), *deletion));
                if disjoint.get(at + 1).is_none_or(|next| next.start.0 != end.0) {
                    points.push(Point::new(Place::new(arena, &end.0, &end.1), DeletionTime::LIVE));
                }
            }
        }
        if !points.is_empty() {
            let run = Run::add(arena, points, self.ranges(sequence));
            push(arena, &self.ranges, sequence, run);
            // They must not outlive the arena that they lead into.
            points.clear();
        }
        Ok(())
    }
}

/// A range deletion of a write.
#[derive(Clone, Copy)]
struct RangeDeletion<'a> {
    start: RangeBound<'a>,
    end: RangeBound<'a>,
    deletion: DeletionTime,
}

/// For a clustering value that its type cannot order. Statements refuse such values, so the bytes are damaged.
fn unordered(_: TypeError) -> Damaged {
    Damaged { offset: 0 }
}

/// Range deletions with the ordered keys of their bounds.
fn ranges_of<'a>(table: &Table, ranges: &[RangeDeletion<'a>]) -> Result<Vec<Range<'a>>, Damaged> {
    let placed = |bound: RangeBound<'a>| {
        let mut key = Vec::new();
        bound_key(table, &bound, &mut key).map(|()| (key, bound))
    };
    let range = |range: &RangeDeletion<'a>| {
        Ok(Range { start: placed(range.start)?, end: placed(range.end)?, deletion: range.deletion })
    };
    ranges.iter().map(range).collect()
}

/// The ordered key of a range's bound.
pub(super) fn bound_key(table: &Table, bound: &RangeBound<'_>, out: &mut Vec<u8>) -> Result<(), Damaged> {
    out.clear();
    byte_comparable::clustering_bound(bound.values(), &table.clustering, bound.before, out).map_err(unordered)
}

/// The row that a reader at `sequence` sees in a row's node.
///
/// # Safety
/// The arena outlives `'a`.
pub(super) unsafe fn row_at<'a>(
    node: NodeRef<'_, AtomicPtr<Version<RowVersion>>>,
    sequence: u64,
) -> Option<StoredRow<'a>> {
    // SAFETY: the caller's promise.
    visible(node.value(), sequence).map(|row| unsafe { row.stored() })
}

#[cfg(all(test, loom))]
mod published;
mod ranges;
