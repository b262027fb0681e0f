//! Versions of a row in the arena: a small row is one packed row, a large row a list of parts.
//!
//! A write merges a small row with its changes and stores the result. Of a large row (a collection of many elements, a
//! row with a large value) it stores the changes alone, as a part that leads to the older parts; from time to time
//! (`tiers`) it merges the first parts into one instead. So n writes to a row take `n log n` memory and work, and not a
//! copy of the whole row each. A reader merges the parts, of which there are `log n`.
//!
//! A part is a packed row of its own, with the deletions of its writes. The merge of rows is associative
//! (`helenus_model::reconcile`), so the parts give the row that merging write by write would give. Only counters are
//! not: a tombstone hides counts and is hidden by deletions. A row of counters is always one part; it has at most as
//! many cells as the table has columns.
//!
//! Parts never change and stay in the arena, so a reader that has loaded a version sees fixed parts.

use super::arena::Arena;
use super::tiers::merged_count;
use super::work;
use helenus_model::cell::Cell;
use helenus_model::deletion::DeletionTime;
use helenus_model::packed::{self, Damaged, RowReader};
use helenus_model::reconcile::merge_rows;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Rows up to this size are copied for each write. Reads of such rows need no merge: a row of ten columns of 100 bytes
/// is one of them. A write to a larger row copies at most so much for itself.
const WHOLE_BYTES_MAX: usize = 2 << 10;
/// The unit of the tiers of parts: parts of up to four times this are in the smallest tier.
const PART_BYTES: usize = 64;
/// Parts are merged up to this size: a length has 31 bits.
const PART_BYTES_MAX: usize = 1 << 30;
/// Buffers are kept for the next row up to this size.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A version of a row: the address of its newest part's length.
///
/// In memory: the address of the older parts (none: the part is the whole row), the length of the part as a `u32`, the
/// packed row. The length's top bit says whether there are older parts; without them their address is left out.
#[derive(Clone, Copy)]
pub(super) struct RowVersion(NonNull<u8>);

const LEN_BYTES: usize = size_of::<u32>();
const OLDER_BYTES: usize = size_of::<RowVersion>();
/// Set in the length of a part that has older ones.
const HAS_OLDER: u32 = 1 << 31;

/// A row as a reader finds it: one packed row, or parts that must be merged.
#[derive(Clone, Copy)]
pub struct StoredRow<'a> {
    newest: RowVersion,
    arena: PhantomData<&'a [u8]>,
}

/// Buffers for decoding and merging rows.
#[derive(Default)]
pub struct RowBuffers {
    /// The decoded row.
    pub(super) row: RowBuf,
    older: RowBuf,
    merged: RowBuf,
}

impl RowVersion {
    /// Copies a packed row into the arena, as a whole row or in front of older parts.
    fn put(arena: &Arena, packed: &[u8], older: Option<RowVersion>) -> RowVersion {
        let len = u32::try_from(packed.len()).ok().filter(|len| len & HAS_OLDER == 0);
        let Some(len) = len else {
            unreachable!("a row in a memtable is far shorter than 2 GiB: the log's records are")
        };
        let before = if older.is_some() { OLDER_BYTES } else { 0 };
        let place = arena.allocate(before + LEN_BYTES + packed.len());
        // SAFETY: just allocated with room for the three, and handed to nobody else.
        unsafe {
            if let Some(older) = older {
                place.cast().write(older);
            }
            let length = place.add(before);
            length.cast().write_unaligned(if older.is_some() { len | HAS_OLDER } else { len });
            length.add(LEN_BYTES).copy_from_nonoverlapping(NonNull::from(packed).cast(), packed.len());
            RowVersion(length)
        }
    }

    /// A row's first version.
    pub(super) fn first(arena: &Arena, row: &[u8]) -> RowVersion {
        RowVersion::put(arena, row, None)
    }

    /// The row with the changes of one write.
    pub(super) fn with(
        self,
        arena: &Arena,
        (table, columns): (&Table, usize),
        row: &[u8],
        scratch: &mut MergeScratch,
    ) -> Result<RowVersion, Damaged> {
        // SAFETY: the caller holds the arena until this returns.
        let stored: StoredRow<'_> = unsafe { self.stored() };
        if let Some(old) = stored.whole() {
            if !table.is_counter() && packed::replaces(row, old, columns) {
                return Ok(RowVersion::put(arena, row, None));
            }
            if table.is_counter() || old.len() <= WHOLE_BYTES_MAX {
                let merged = scratch.merge((table, columns), [row, old].into_iter())?;
                return Ok(RowVersion::put(arena, merged, None));
            }
        }
        let mut total = 0;
        let sizes =
            std::iter::once(row.len()).chain(stored.parts().map(<[u8]>::len)).take_while(move |size| {
                total += size;
                total <= PART_BYTES_MAX
            });
        let merged_parts = merged_count(PART_BYTES, sizes).saturating_sub(1);
        if merged_parts == 0 {
            return Ok(RowVersion::put(arena, row, Some(self)));
        }
        let merged = stored.parts().take(merged_parts);
        let merged = scratch.merge((table, columns), std::iter::once(row).chain(merged))?;
        let older = stored.versions().nth(merged_parts);
        let version = RowVersion::put(arena, merged, older);
        scratch.trim();
        Ok(version)
    }

    /// # Safety
    /// The arena outlives `'a`.
    #[inline(always)]
    pub(super) unsafe fn stored<'a>(self) -> StoredRow<'a> {
        StoredRow { newest: self, arena: PhantomData }
    }

    /// The part's packed row and whether there are older parts.
    ///
    /// # Safety
    /// The arena outlives `'a`.
    #[inline(always)]
    unsafe fn part<'a>(self) -> (&'a [u8], bool) {
        // SAFETY: written before it was published, never changed; the caller keeps the arena alive.
        unsafe {
            let len: u32 = self.0.cast().read_unaligned();
            let bytes = self.0.add(LEN_BYTES).as_ptr();
            (std::slice::from_raw_parts(bytes, (len & !HAS_OLDER) as usize), len & HAS_OLDER != 0)
        }
    }
}

impl<'a> StoredRow<'a> {
    /// The packed row, if it is in one part.
    #[inline(always)]
    pub(super) fn whole(self) -> Option<&'a [u8]> {
        // SAFETY: the arena outlives `'a`, by whoever made this.
        let (bytes, has_older) = unsafe { self.newest.part() };
        (!has_older).then_some(bytes)
    }

    /// The parts, the newest first.
    pub(super) fn parts(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        // SAFETY: as in `whole`.
        self.versions().map(|version| unsafe { version.part() }.0)
    }

    fn versions(self) -> impl Iterator<Item = RowVersion> + Clone {
        std::iter::successors(Some(self.newest), |version| {
            // SAFETY: as in `whole`; if a part has older ones, their address lies before its length.
            unsafe {
                let (_, has_older) = version.part();
                has_older.then(|| version.0.sub(OLDER_BYTES).cast::<RowVersion>().read())
            }
        })
    }

    /// Copies the cells that `wants` names by column and path, without merging the row. Parts are read from the newest on, and
    /// only as many as have up to `bytes_max` bytes together. So a cell may be missing, or come in several versions: one
    /// from each part that has it. Nothing but cells is copied.
    ///
    /// # Errors
    /// The bytes are not those of a row with so many clustering columns.
    pub fn copy_cells(
        self,
        (columns, bytes_max): (usize, usize),
        wants: impl Fn(&Cell, &[u8]) -> bool,
        out: &mut RowBuf,
    ) -> Result<(), Damaged> {
        out.clear();
        let mut left = bytes_max;
        for part in self.parts() {
            let Some(rest) = left.checked_sub(part.len()) else { break };
            left = rest;
            let mut reader = RowReader::new(part);
            for _ in 0..columns {
                reader.clustering_value()?;
            }
            for _ in 0..reader.head()?.complex_deletions {
                reader.complex_deletion()?;
            }
            reader.begin_cells()?;
            while let Some(cell) = reader.next_cell()? {
                work::add(1);
                if wants(&cell, cell.path.get(part).unwrap_or_default()) {
                    out.push_cell(&cell, part);
                }
            }
        }
        out.cells.sort_by_key(|cell| cell.column);
        Ok(())
    }

    /// Decodes the row, merged from its parts if it has several. Its key is empty.
    ///
    /// # Errors
    /// The bytes are not those of a row with so many clustering columns.
    pub fn decode<'b>(
        self,
        table: (&Table, usize),
        buffers: &'b mut RowBuffers,
    ) -> Result<RowView<'b>, Damaged>
    where
        'a: 'b,
    {
        self.decode_with_key(table, &[], buffers)
    }

    /// As `decode`, with the ordered key of the row.
    ///
    /// # Errors
    /// As `decode`.
    #[inline]
    pub fn decode_with_key<'b>(
        self,
        (table, columns): (&Table, usize),
        key: &[u8],
        buffers: &'b mut RowBuffers,
    ) -> Result<RowView<'b>, Damaged>
    where
        'a: 'b,
    {
        let data = match self.whole() {
            Some(bytes) => {
                packed::unpack(bytes, columns, &mut buffers.row)?;
                Some(bytes)
            }
            None => buffers.merge((table, columns), self.parts())?,
        };
        let row = &mut buffers.row;
        row.key.clear();
        row.key.extend_from_slice(key);
        Ok(RowView { row, data: data.unwrap_or(&row.data) })
    }
}

impl RowBuffers {
    /// Merges packed rows, the newest first, into `row`. Returns the bytes that its spans refer to, if they are not its
    /// own.
    pub(super) fn merge<'a>(
        &mut self,
        (table, columns): (&Table, usize),
        mut parts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Option<&'a [u8]>, Damaged> {
        let RowBuffers { row, older, merged } = self;
        let mut data = parts.next();
        packed::unpack(data.unwrap_or_default(), columns, row)?;
        row.key.clear();
        // The newest parts are the smallest. So each step costs about as much as all before it together.
        for part in parts {
            packed::unpack(part, columns, older)?;
            older.key.clear();
            let left = RowView { row: older, data: part };
            let right = RowView { row, data: data.unwrap_or(&row.data) };
            merge_rows(table, left, right, DeletionTime::LIVE, merged);
            work::add(merged.cells.len());
            std::mem::swap(row, merged);
            data = None;
        }
        Ok(data)
    }

    /// Bytes of memory that the buffers take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.row.memory_bytes() + self.older.memory_bytes() + self.merged.memory_bytes()
    }
}

/// Buffers that a writer reuses for each row.
#[derive(Default)]
pub(super) struct MergeScratch {
    buffers: RowBuffers,
    packed: Vec<u8>,
}

impl MergeScratch {
    /// Merges packed rows, the newest first, into one.
    fn merge<'p>(
        &mut self,
        table: (&Table, usize),
        parts: impl Iterator<Item = &'p [u8]>,
    ) -> Result<&[u8], Damaged> {
        let data = self.buffers.merge(table, parts)?;
        let row = &self.buffers.row;
        self.packed.clear();
        packed::pack(RowView { row, data: data.unwrap_or(&row.data) }, &mut self.packed);
        Ok(&self.packed)
    }

    /// Drops buffers that a large row has left behind.
    fn trim(&mut self) {
        if self.buffers.memory_bytes() + self.packed.capacity() > KEPT_BYTES_MAX {
            *self = MergeScratch::default();
        }
    }
}
