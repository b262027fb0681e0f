//! The cached row index of one wide partition: finds a block by a few bytes of the separators.
//!
//! A walk down the trie in Rows.db visits a trie node for each byte of a bound, and looks up each page in the block
//! cache. Here the key prefixes of the separators (the first bytes in which they differ) are stored side by side in
//! order, and so are the block positions. A search touches a handful of cache lines. If the prefixes cannot decide, the
//! caller asks the trie.

#![deny(clippy::indexing_slicing)]

use super::row_index::{IndexBlock, RowIndexEntry};
use helenus_host::prefetch_lines;
use helenus_model::deletion::DeletionTime;

/// Number of key prefixes in a group. The level above contains the first of each group.
const GROUP: usize = 16;

/// Number of cache lines that the key prefixes of a group may touch, at any alignment.
const PREFIX_LINES: usize = 3;

/// Bytes of memory for each separator: key prefix and offset, and its share of the levels above.
pub(super) const SEPARATOR_BYTES: u64 = 18;

/// Bytes of memory for each range deletion that is open at the start of a block.
pub(super) const OPEN_BYTES: u64 = size_of::<(u32, DeletionTime)>() as u64;

/// The key prefix of a separator: up to eight bytes after the prefix that all separators share, padded with zeroes. Of
/// two separators with different key prefixes, the one with the lower key prefix is the lower.
type KeyPrefix = u64;

/// The blocks of one partition, searched by the key prefixes of their separators. The first separator is empty and has
/// no key prefix; the last marks the end of the rows.
pub(crate) struct CachedRowIndex {
    entry: RowIndexEntry,
    /// The prefix that all separators but the first share.
    prefix: Box<[u8]>,
    /// Number of separators.
    count: usize,
    /// The offset of the first block, from the partition's start.
    first_offset: u64,
    /// All separators but the first.
    groups: Box<[Group]>,
    /// The upper levels, the lowest first. Each has the first key prefix of each group of the level below.
    above: Vec<Box<[KeyPrefix]>>,
    /// The range deletions that are open at the start of blocks, with the block numbers.
    open: Box<[(u32, DeletionTime)]>,
}

/// The key prefixes and the block offsets of some separators. Both are in one structure, so that one page of memory has
/// both.
#[repr(align(64))]
struct Group {
    /// The key prefixes in order. Unused slots have the highest value.
    heads: [KeyPrefix; GROUP],
    /// The offsets of their blocks, from the partition's start.
    offsets: [u64; GROUP],
}

impl CachedRowIndex {
    /// The partition's entry in Rows.db.
    pub(super) fn entry(&self) -> &RowIndexEntry {
        &self.entry
    }

    /// The number of the last separator that is not greater than `bound`; `None` if the key prefixes cannot decide.
    #[inline]
    fn floor(&self, bound: &[u8]) -> Option<usize> {
        let Some(rest) = bound.strip_prefix(&self.prefix[..]) else {
            // All separators but the first are on one side of the bound.
            return Some(if bound < &self.prefix[..] { 0 } else { self.count.checked_sub(1)? });
        };
        let head = prefix_of(rest);
        let mut number = 0;
        for (depth, level) in self.above.iter().enumerate().rev() {
            let from = number * GROUP;
            let below =
                level.get(from..level.len().min(from + GROUP))?.partition_point(|other| *other < head);
            // If no key prefix is lower than the bound's, the first group decides.
            number = (from + below).saturating_sub(1);
            match depth.checked_sub(1).and_then(|next| self.above.get(next)) {
                Some(next) => prefetch_lines(next.get(number * GROUP..)?.as_ptr(), PREFIX_LINES),
                None => prefetch_lines(self.groups.get(number)?, size_of::<Group>().div_ceil(64)),
            }
            if depth == 1 {
                // One of the next `GROUP` groups will be searched: prefetch the memory pages that they lie in.
                let groups = self.groups.get(number * GROUP..)?;
                prefetch_lines(groups.first()?, 1);
                prefetch_lines(groups.get(GROUP - 1).or(groups.last())?, 1);
            }
        }
        let group = self.groups.get(number)?;
        let below = group.heads.partition_point(|other| *other < head);
        let next = match group.heads.get(below) {
            Some(next) => Some(next),
            None => self.groups.get(number + 1).and_then(|next| next.heads.first()),
        };
        (next != Some(&head)).then_some(number * GROUP + below)
    }

    /// The offset of a separator's block, from the partition's start.
    #[inline]
    fn offset(&self, number: usize) -> Option<u64> {
        let Some(at) = number.checked_sub(1) else { return Some(self.first_offset) };
        let group = self.groups.get(at / GROUP).filter(|_| number < self.count)?;
        group.offsets.get(at % GROUP).copied()
    }

    /// As `RowIndexReader::floor_start`; `None` if only the trie can decide.
    #[inline]
    pub(super) fn floor_start(&self, bound: &[u8]) -> Option<(u64, Option<DeletionTime>)> {
        let number = self.floor(bound)?;
        Some((self.offset(number)?, self.open_at(number)))
    }

    /// The number of the block that may hold the last position before `bound`; `None` if only the trie can decide.
    pub(super) fn floor_reversed(&self, bound: &[u8]) -> Option<usize> {
        let last = self.count.checked_sub(2)?;
        Some(self.floor(bound)?.min(last))
    }

    /// The block with this number.
    pub(super) fn block(&self, number: usize) -> Option<IndexBlock> {
        let (offset, end) = (self.offset(number)?, self.offset(number + 1)?);
        Some(IndexBlock { offset, end, open: self.open_at(number) })
    }

    #[inline]
    fn open_at(&self, number: usize) -> Option<DeletionTime> {
        if self.open.is_empty() {
            return None;
        }
        let found = self.open.binary_search_by_key(&number, |(block, _)| *block as usize).ok()?;
        self.open.get(found).map(|(_, deletion)| *deletion)
    }
}

#[inline]
fn prefix_of(rest: &[u8]) -> KeyPrefix {
    if let Some(head) = rest.first_chunk::<8>() {
        return KeyPrefix::from_be_bytes(*head);
    }
    rest.iter()
        .zip([56, 48, 40, 32, 24, 16, 8])
        .fold(0, |head, (byte, shift)| head | KeyPrefix::from(*byte) << shift)
}

/// Collects the separators of a partition in ascending order.
pub(super) struct CachedRowIndexBuilder {
    prefix: Vec<u8>,
    last: Vec<u8>,
    heads: Vec<KeyPrefix>,
    offsets: Vec<u64>,
    open: Vec<(u32, DeletionTime)>,
    /// Number of neighbours with the same key prefix.
    alike: usize,
}

impl CachedRowIndexBuilder {
    /// Empty, for a partition whose last separator is `last`.
    pub(super) fn new(last: Vec<u8>) -> CachedRowIndexBuilder {
        CachedRowIndexBuilder {
            prefix: Vec::new(),
            last,
            heads: Vec::new(),
            offsets: Vec::new(),
            open: Vec::new(),
            alike: 0,
        }
    }

    /// Bytes of memory that the separators so far need.
    pub(super) fn bytes(&self) -> u64 {
        self.offsets.len() as u64 * SEPARATOR_BYTES + self.open.len() as u64 * OPEN_BYTES
    }

    /// Adds the next separator; `None` if it cannot come next in a sound index, or if too many key prefixes are the
    /// same.
    pub(super) fn push(
        &mut self,
        separator: &[u8],
        (offset, open): (u64, Option<DeletionTime>),
        entry: &RowIndexEntry,
    ) -> Option<()> {
        let number = self.offsets.len();
        if number as u64 > entry.block_count || self.offsets.last().is_some_and(|before| *before >= offset) {
            return None;
        }
        if number == 0 {
            // The first block begins with the first row, so its separator is empty.
            separator.is_empty().then_some(())?;
        } else {
            if number == 1 {
                let alike = separator.iter().zip(&self.last).take_while(|(one, other)| one == other).count();
                self.prefix.extend_from_slice(separator.get(..alike)?);
            }
            let head = prefix_of(separator.strip_prefix(&self.prefix[..])?);
            match self.heads.last() {
                Some(before) if *before > head => return None,
                Some(before) => self.alike += usize::from(*before == head),
                None => {}
            }
            if self.alike as u64 > entry.block_count / GROUP as u64 {
                return None;
            }
            self.heads.push(head);
        }
        if let Some(open) = open {
            self.open.push((u32::try_from(number).ok()?, open));
        }
        self.offsets.push(offset);
        Some(())
    }

    /// The cached row index, if the number of separators is the one that the entry requires.
    pub(super) fn finish(self, entry: &RowIndexEntry) -> Option<CachedRowIndex> {
        let is_whole = self.offsets.len() as u64 == entry.block_count.checked_add(1)?;
        if !is_whole {
            return None;
        }
        let (first_offset, offsets) = self.offsets.split_first()?;
        let group = |(heads, offsets): (&[KeyPrefix], &[u64])| {
            let mut group = Group { heads: [KeyPrefix::MAX; GROUP], offsets: [0; GROUP] };
            group.heads.iter_mut().zip(heads).for_each(|(to, head)| *to = *head);
            group.offsets.iter_mut().zip(offsets).for_each(|(to, offset)| *to = *offset);
            group
        };
        let groups: Box<[Group]> = self.heads.chunks(GROUP).zip(offsets.chunks(GROUP)).map(group).collect();
        let mut above: Vec<Box<[KeyPrefix]>> = Vec::new();
        if groups.len() > 1 {
            above.push(self.heads.iter().step_by(GROUP).copied().collect());
        }
        while let Some(level) = above.last().filter(|level| level.len() > GROUP) {
            above.push(level.iter().step_by(GROUP).copied().collect());
        }
        Some(CachedRowIndex {
            entry: *entry,
            prefix: self.prefix.into(),
            count: self.offsets.len(),
            first_offset: *first_offset,
            groups,
            above,
            open: self.open.into(),
        })
    }
}
