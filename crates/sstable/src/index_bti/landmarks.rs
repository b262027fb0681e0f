//! The row index of one wide partition in memory: where its blocks begin, searched by a few bytes of their separators.
//!
//! A walk down the trie in Rows.db visits a trie node for each byte of a bound, and looks up each page in the cache. Here
//! the first bytes in which separators differ are stored side by side in order, and so are the block positions. A search
//! touches a handful of cache lines. If the stored bytes cannot decide, the trie does.

#![deny(clippy::indexing_slicing)]

use super::row_index::{IndexBlock, RowIndexEntry};
use helenus_host::prefetch_lines;
use helenus_model::deletion::DeletionTime;

/// Heads of a group: of each group the level above has the first one.
const GROUP: usize = 16;

/// Cache lines of a group's heads, wherever it begins.
const HEADS_LINES: usize = 3;

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
    /// Separators.
    count: usize,
    /// The first one's block, from the partition's start.
    first_offset: u64,
    /// All separators but the first.
    groups: Box<[Group]>,
    /// The first head of each group of the level below, the lowest level first.
    above: Vec<Box<[Head]>>,
    /// The range deletions that are open at blocks, by the blocks' numbers.
    open: Box<[(u32, DeletionTime)]>,
}

/// Separators side by side with their blocks: who has found the one has the other from the same page of memory.
#[repr(align(64))]
struct Group {
    /// In order. Behind the last there are the highest.
    heads: [Head; GROUP],
    /// Of their blocks, from the partition's start.
    offsets: [u64; GROUP],
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
            return Some(if bound < &self.prefix[..] { 0 } else { self.count.checked_sub(1)? });
        };
        let head = head_of(rest);
        let mut number = 0;
        for (depth, level) in self.above.iter().enumerate().rev() {
            let from = number * GROUP;
            let below =
                level.get(from..level.len().min(from + GROUP))?.partition_point(|other| *other < head);
            // Where no head is lower than this one, the first group tells.
            number = (from + below).saturating_sub(1);
            match depth.checked_sub(1).and_then(|next| self.above.get(next)) {
                Some(next) => prefetch_lines(next.get(number * GROUP..)?.as_ptr(), HEADS_LINES),
                None => prefetch_lines(self.groups.get(number)?, size_of::<Group>().div_ceil(64)),
            }
            if depth == 1 {
                // The pages of the groups of which this will be one.
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

    /// Where the block of a separator begins, from the partition's start.
    #[inline]
    fn offset(&self, number: usize) -> Option<u64> {
        let Some(at) = number.checked_sub(1) else { return Some(self.first_offset) };
        let group = self.groups.get(at / GROUP).filter(|_| number < self.count)?;
        group.offsets.get(at % GROUP).copied()
    }

    /// Where the walk to the first position at or after `bound` begins, and the range deletion open there; `None` where the
    /// trie has to tell. As `RowIndexReader::floor_start`.
    #[inline]
    pub(super) fn floor_start(&self, bound: &[u8]) -> Option<(u64, Option<DeletionTime>)> {
        let number = self.floor(bound)?;
        Some((self.offset(number)?, self.open_at(number)))
    }

    /// Number of the block that may hold the last position before `bound`; `None` where the trie has to tell.
    pub(super) fn floor_reversed(&self, bound: &[u8]) -> Option<usize> {
        let last = self.count.checked_sub(2)?;
        Some(self.floor(bound)?.min(last))
    }

    /// The block of a number.
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
        let (first_offset, offsets) = self.offsets.split_first()?;
        let group = |(heads, offsets): (&[Head], &[u64])| {
            let mut group = Group { heads: [Head::MAX; GROUP], offsets: [0; GROUP] };
            group.heads.iter_mut().zip(heads).for_each(|(to, head)| *to = *head);
            group.offsets.iter_mut().zip(offsets).for_each(|(to, offset)| *to = *offset);
            group
        };
        let groups: Box<[Group]> = self.heads.chunks(GROUP).zip(offsets.chunks(GROUP)).map(group).collect();
        let mut above: Vec<Box<[Head]>> = Vec::new();
        if groups.len() > 1 {
            above.push(self.heads.iter().step_by(GROUP).copied().collect());
        }
        while let Some(level) = above.last().filter(|level| level.len() > GROUP) {
            above.push(level.iter().step_by(GROUP).copied().collect());
        }
        Some(Landmarks {
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
