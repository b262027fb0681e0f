//! The row index of one wide partition in memory: where its blocks begin, found by a few bytes of their separators.
//!
//! A walk down the trie in Rows.db looks at a node for each byte of a bound, in pages that each are looked for in the cache.
//! Here the first bytes in which separators differ stand side by side in order, and so do the blocks' places: a search looks
//! at a handful of cache lines. What those bytes cannot tell is left to the trie.

#![deny(clippy::indexing_slicing)]

use super::row_index::{IndexBlock, RowIndexEntry};
use helenus_host::prefetch_lines;
use helenus_model::deletion::DeletionTime;

/// Heads of a group: of each group the level above has the first one.
const GROUP: usize = 16;

/// Cache lines of a group, wherever it begins.
const GROUP_LINES: usize = 3;

/// Bytes of memory for each separator: head and offset, and its share of the levels above.
pub(super) const SEPARATOR_BYTES: u64 = 18;

/// And for each range deletion that is open where a block begins.
pub(super) const OPEN_BYTES: u64 = size_of::<(u32, DeletionTime)>() as u64;

/// The bytes of a separator behind what all have alike, up to eight, with zeroes behind a short one. Of two separators, the
/// one with the lower head is the lower.
type Head = u64;

/// Blocks of one partition by the heads of their separators. The first separator is empty and has no head; the last stands
/// for the end of the rows.
pub(crate) struct Landmarks {
    entry: RowIndexEntry,
    /// What all separators but the first begin with.
    prefix: Box<[u8]>,
    /// The heads of all separators but the first, and above them the first head of each group of the level below.
    levels: Vec<Box<[Head]>>,
    /// Of each separator, from the partition's start.
    offsets: Box<[u64]>,
    /// The range deletions that are open at blocks, by the blocks' numbers.
    open: Box<[(u32, DeletionTime)]>,
}

impl Landmarks {
    /// The partition's entry in Rows.db.
    pub(super) fn entry(&self) -> &RowIndexEntry {
        &self.entry
    }

    /// Number of the last separator that is not greater than `bound`; `None` where the heads cannot tell.
    #[inline]
    fn floor(&self, bound: &[u8]) -> Option<usize> {
        let Some(rest) = bound.strip_prefix(&self.prefix[..]) else {
            // All separators lie on one side.
            return Some(if bound < &self.prefix[..] { 0 } else { self.offsets.len().checked_sub(1)? });
        };
        let head = head_of(rest);
        let mut at = 0;
        for (depth, level) in self.levels.iter().enumerate().rev() {
            let group = level.get(at..level.len().min(at + GROUP))?;
            let below = group.partition_point(|other| *other < head);
            if depth == 0 {
                at += below;
                break;
            }
            // No head is lower than this one.
            let Some(last) = (at + below).checked_sub(1) else { break };
            at = last * GROUP;
            let next = self.levels.get(depth - 1)?;
            prefetch_lines(next.get(at..)?.as_ptr(), GROUP_LINES);
            if depth == 1 {
                // One of these will be asked for.
                prefetch_lines(self.offsets.get(at..)?.as_ptr(), GROUP_LINES);
            }
        }
        let is_told = self.levels.first()?.get(at) != Some(&head);
        is_told.then_some(at)
    }

    /// Where the walk to the first position at or after `bound` begins, and the range deletion open there; `None` where the
    /// trie has to tell. As `RowIndexReader::floor_start`.
    #[inline]
    pub(super) fn floor_start(&self, bound: &[u8]) -> Option<(u64, Option<DeletionTime>)> {
        let number = self.floor(bound)?;
        Some((self.offsets.get(number).copied()?, self.open_at(number)))
    }

    /// Number of the block that may hold the last position before `bound`; `None` where the trie has to tell.
    pub(super) fn floor_reversed(&self, bound: &[u8]) -> Option<usize> {
        let last = self.offsets.len().checked_sub(2)?;
        Some(self.floor(bound)?.min(last))
    }

    /// The block of a number.
    pub(super) fn block(&self, number: usize) -> Option<IndexBlock> {
        let (offset, end) = (*self.offsets.get(number)?, *self.offsets.get(number + 1)?);
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
fn head_of(rest: &[u8]) -> Head {
    if let Some(head) = rest.first_chunk::<8>() {
        return Head::from_be_bytes(*head);
    }
    rest.iter()
        .zip([56, 48, 40, 32, 24, 16, 8])
        .fold(0, |head, (byte, shift)| head | Head::from(*byte) << shift)
}

/// Collects the separators of a partition, in order.
pub(super) struct Collected {
    prefix: Vec<u8>,
    last: Vec<u8>,
    heads: Vec<Head>,
    offsets: Vec<u64>,
    open: Vec<(u32, DeletionTime)>,
    /// Neighbours whose heads are the same.
    alike: usize,
}

impl Collected {
    /// For separators of which this is the last.
    pub(super) fn new(last: Vec<u8>) -> Collected {
        Collected {
            prefix: Vec::new(),
            last,
            heads: Vec::new(),
            offsets: Vec::new(),
            open: Vec::new(),
            alike: 0,
        }
    }

    /// Bytes of what is there.
    pub(super) fn bytes(&self) -> u64 {
        self.offsets.len() as u64 * SEPARATOR_BYTES + self.open.len() as u64 * OPEN_BYTES
    }

    /// Adds the next separator of a partition; `None` if it cannot come next in a sound index, or heads tell too few apart.
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
            // The first block begins with the first row.
            separator.is_empty().then_some(())?;
        } else {
            if number == 1 {
                let alike = separator.iter().zip(&self.last).take_while(|(one, other)| one == other).count();
                self.prefix.extend_from_slice(separator.get(..alike)?);
            }
            let head = head_of(separator.strip_prefix(&self.prefix[..])?);
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

    /// All of them, if these are as many as the entry says.
    pub(super) fn finish(self, entry: &RowIndexEntry) -> Option<Landmarks> {
        let is_whole = self.offsets.len() as u64 == entry.block_count.checked_add(1)?;
        if !is_whole {
            return None;
        }
        let mut levels = vec![self.heads.into_boxed_slice()];
        while let Some(level) = levels.last().filter(|level| level.len() > GROUP) {
            levels.push(level.iter().step_by(GROUP).copied().collect());
        }
        Some(Landmarks {
            entry: *entry,
            prefix: self.prefix.into(),
            levels,
            offsets: self.offsets.into(),
            open: self.open.into(),
        })
    }
}
