//! The promoted index of one wide partition in Index.db. Blocks are found by binary search, without reading all of it.

#![deny(clippy::indexing_slicing)]

use super::entries::Pages;
use crate::block::{BlockFile, ReadContext};
use crate::data::RowLayout;
use crate::deletion_time::{DeletionTimeBytes, DeletionTimeForm};
use crate::error::{Error, Result};
use crate::index_bti::IndexBlock;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::vint;
use std::sync::Arc;

/// Subtracted from the sizes of blocks before they are stored (`IndexInfo.Serializer.WIDTH_BASE`).
pub(super) const WIDTH_BASE: i64 = 64 * 1024;

/// The most bytes before the blocks.
const HEAD_BYTES_MAX: usize = 2 * vint::VINT_LENGTH_MAX + DeletionTimeBytes::LENGTH_MAX;

/// The promoted index of a wide partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromotedIndex {
    /// The position in Data.db at which the partition begins (in bytes before compression).
    pub data_position: u64,
    /// The partition's deletion.
    pub deletion: DeletionTime,
    /// Its number of index blocks, at least one.
    pub block_count: u32,
    /// The offset of the blocks in Index.db.
    blocks_at: u64,
    /// The offset of the table of block offsets in Index.db, at which the blocks end.
    offsets_at: u64,
}

impl PromotedIndex {
    /// Reads the head of the promoted index at offset `at` of Index.db, which has `bytes` bytes.
    pub(super) fn read(
        file: &BlockFile,
        form: DeletionTimeForm,
        (data_position, at, bytes): (u64, u64, u64),
        cx: &mut ReadContext,
    ) -> Result<PromotedIndex> {
        let mut pages = Pages::default();
        let head = parse_head(form, pages.bytes(file, at, HEAD_BYTES_MAX, cx)?);
        let end = at + bytes;
        let read = head.and_then(|(deletion, block_count, head_bytes)| {
            let blocks_at = at + head_bytes as u64;
            let offsets_at = end.checked_sub(4 * u64::from(block_count))?;
            (block_count > 0 && blocks_at <= offsets_at).then_some(PromotedIndex {
                data_position,
                deletion,
                block_count,
                blocks_at,
                offsets_at,
            })
        });
        read.ok_or_else(|| file.corrupt(at, "no index of a wide partition can be stored here"))
    }
}

/// The partition's deletion, the number of blocks, and the size of the head in bytes.
fn parse_head(form: DeletionTimeForm, bytes: &[u8]) -> Option<(DeletionTime, u32, usize)> {
    let (_head_length, mut used) = vint::read_unsigned(bytes)?;
    let (deletion, len) = form.read(bytes.get(used..)?)?;
    used += len;
    let (count, len) = vint::read_unsigned(bytes.get(used..)?)?;
    Some((deletion, u32::try_from(count).ok()?, used + len))
}

/// One block as it is stored, without its clustering positions.
#[derive(Clone, Copy)]
struct Block {
    offset: u64,
    width: u64,
    /// The range deletion that is open at its end.
    open_behind: Option<DeletionTime>,
}

/// The clustering position of a block to decode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    First,
    Last,
    Neither,
}

/// The memory of a reader, for another to use again.
#[derive(Default)]
pub struct PromotedMemory {
    offsets: Pages,
    blocks: Pages,
    key: Vec<u8>,
}

/// Finds the blocks of one partition: forward by `floor_start`, backward by `floor_reversed` and then `previous`. Each
/// can be called again after `WouldBlock`.
pub struct PromotedReader {
    file: Arc<BlockFile>,
    form: DeletionTimeForm,
    index: PromotedIndex,
    memory: PromotedMemory,
    /// Number of the block returned last.
    behind: u32,
}

impl PromotedReader {
    /// A reader of a partition's index, with memory from another reader's `into_memory`.
    pub fn new(
        file: Arc<BlockFile>,
        form: DeletionTimeForm,
        index: PromotedIndex,
        memory: PromotedMemory,
    ) -> PromotedReader {
        PromotedReader { file, form, index, memory, behind: 0 }
    }

    /// Returns the memory for another reader.
    pub fn into_memory(mut self) -> PromotedMemory {
        self.memory.offsets.release();
        self.memory.blocks.release();
        self.memory
    }

    /// The offset at which a search for the first position at or after `bound` begins (an ordered encoding; empty for
    /// the first block), and the range deletion open there. For a bound after all rows it is the last block, because
    /// the end of the rows is not stored exactly.
    pub fn floor_start(
        &mut self,
        layout: &RowLayout,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<(u64, Option<DeletionTime>)> {
        let last = self.index.block_count - 1;
        let (mut low, mut high) = (0, last);
        if bound.is_empty() {
            high = 0;
        }
        // The first block whose last position is not before the bound.
        while low < high {
            let middle = low + (high - low) / 2;
            self.read(layout, (middle, Wanted::Last), cx)?;
            if self.memory.key.as_slice() < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let block = self.block(layout, low, cx)?;
        Ok((block.offset, block.open))
    }

    /// The block that may hold the last position before `bound` (an ordered encoding; `AFTER_ALL` for the last block);
    /// `None` if there is none.
    pub fn floor_reversed(
        &mut self,
        layout: &RowLayout,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Option<IndexBlock>> {
        let (mut low, mut high) = (0, self.index.block_count);
        if bound == AFTER_ALL {
            low = high;
        }
        // The first block whose first position is not before the bound.
        while low < high {
            let middle = low + (high - low) / 2;
            self.read(layout, (middle, Wanted::First), cx)?;
            if self.memory.key.as_slice() < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.behind = low;
        self.previous(layout, cx)
    }

    /// The block before the one returned last; `None` before the first.
    pub fn previous(&mut self, layout: &RowLayout, cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        let Some(before) = self.behind.checked_sub(1) else { return Ok(None) };
        let block = self.block(layout, before, cx)?;
        self.behind = before;
        Ok(Some(block))
    }

    fn block(&mut self, layout: &RowLayout, number: u32, cx: &mut ReadContext) -> Result<IndexBlock> {
        let open = match number.checked_sub(1) {
            Some(before) => {
                let before = self.read(layout, (before, Wanted::Neither), cx)?;
                before.open_behind
            }
            None => None,
        };
        let block = self.read(layout, (number, Wanted::Neither), cx)?;
        Ok(IndexBlock { offset: block.offset, end: block.offset.saturating_add(block.width), open })
    }

    fn read(
        &mut self,
        layout: &RowLayout,
        (number, wanted): (u32, Wanted),
        cx: &mut ReadContext,
    ) -> Result<Block> {
        let (at, len) = self.extent(number, cx)?;
        // A damaged table of offsets must not make a read allocate gigabytes.
        if len > block_bytes_max(layout) {
            return Err(
                self.corrupt(at, "a block of a wide partition's index is longer than its clustering can be")
            );
        }
        cx.touched.index_nodes += 1;
        let PromotedMemory { blocks, key, .. } = &mut self.memory;
        let bytes = blocks.bytes(&self.file, at, len, cx)?;
        let bytes = bytes.get(..len).unwrap_or(bytes);
        let block = parse_block(layout, self.form, bytes, (wanted, key));
        block.ok_or_else(|| self.corrupt(at, "no block of a wide partition's index can be stored here"))
    }

    /// The offset of a block in Index.db, and its size there in bytes.
    fn extent(&mut self, number: u32, cx: &mut ReadContext) -> Result<(u64, usize)> {
        let at = self.index.offsets_at + 4 * u64::from(number);
        let is_last = number + 1 == self.index.block_count;
        let bytes = self.memory.offsets.bytes(&self.file, at, if is_last { 4 } else { 8 }, cx)?;
        let offset = |index: usize| {
            bytes.get(4 * index..)?.first_chunk::<4>().map(|o| u64::from(u32::from_be_bytes(*o)))
        };
        let all = self.index.offsets_at - self.index.blocks_at;
        let end = if is_last { Some(all) } else { offset(1) };
        let extent = offset(0).zip(end).filter(|(start, end)| start < end && *end <= all);
        match extent {
            Some((start, end)) => Ok((self.index.blocks_at + start, (end - start) as usize)),
            None => Err(self.corrupt(at, "the blocks of a wide partition's index do not ascend")),
        }
    }

    fn corrupt(&self, at: u64, problem: &str) -> Error {
        self.file.corrupt(at, problem)
    }
}

/// The most bytes of a block: two clustering positions, each with its kind, the number of its values, a header for each 32
/// of them, and values of up to 65,535 bytes (`ClusteringPrefix.Serializer`); offset, width and deletion.
fn block_bytes_max(layout: &RowLayout) -> usize {
    const VALUE_BYTES_MAX: usize = u16::MAX as usize + vint::VINT_LENGTH_MAX;
    let columns = layout.clustering.len();
    let position = 3 + columns.div_ceil(32) * vint::VINT_LENGTH_MAX + columns * VALUE_BYTES_MAX;
    2 * position + 2 * vint::VINT_LENGTH_MAX + 1 + DeletionTimeBytes::LENGTH_MAX
}

/// Parses a block. The ordered encoding of its wanted clustering position replaces `key`.
fn parse_block(
    layout: &RowLayout,
    form: DeletionTimeForm,
    bytes: &[u8],
    (wanted, key): (Wanted, &mut Vec<u8>),
) -> Option<Block> {
    let mut at = 0;
    for which in [Wanted::First, Wanted::Last] {
        at = if which == wanted {
            key.clear();
            layout.read_position(bytes, at, key)?
        } else {
            layout.pass_position(bytes, at)?
        };
    }
    let (offset, len) = vint::read_unsigned(bytes.get(at..)?)?;
    at += len;
    let (width, len) = vint::read_signed(bytes.get(at..)?)?;
    at += len;
    let width = u64::try_from(width.checked_add(WIDTH_BASE)?).ok()?;
    let open_behind = match bytes.get(at)? {
        0 => None,
        _ => {
            let (deletion, _) = form.read(bytes.get(at + 1..)?)?;
            Some(deletion).filter(|deletion| !deletion.is_live())
        }
    };
    Some(Block { offset, width, open_behind })
}
