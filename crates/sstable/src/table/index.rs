//! The index of a table in either format. Only here do reads distinguish BTI from BIG.
//!
//! They do so once for each partition and once for each lookup of an index block, but never for a row.

use crate::block::{BlockFile, ReadContext};
use crate::component::Component;
use crate::compression::{DataBlocks, WHOLE};
use crate::data::RowLayout;
use crate::error::{Error, Result};
use crate::filter::hash_byte;
use crate::index_big::{BigIndex, PromotedIndex, PromotedMemory, PromotedReader, Summary};
use crate::index_bti::{
    CachedBlocks, IndexBlock, IndexPosition, PartitionIndex, RowIndexCache, RowIndexEntry, RowIndexReader,
    RowIndexStacks,
};
use crate::partitioner::Partitioner;
use crate::statistics::Stats;
use crate::table::opener::Opener;
use crate::version::{Format, Version};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::partitions::PartitionKey;
use helenus_model::token::KeyHash;
use std::path::PathBuf;
use std::sync::Arc;

/// The index of a table.
pub(crate) enum Index {
    /// Tries.
    Bti {
        /// Partitions.db.
        partitions: PartitionIndex,
        /// Rows.db.
        rows: Arc<BlockFile>,
        /// The row index cache.
        row_index_cache: RowIndexCache,
    },
    /// Index.db.
    Big(BigIndex),
    /// None: the index is missing. Such a table can only be scanned.
    Absent {
        /// The path of Data.db.
        data: PathBuf,
        /// The first partition key.
        first: Vec<u8>,
        /// Number of partitions, by Statistics.db.
        key_count: u64,
    },
}

/// The row index of a wide partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowIndex {
    /// Its entry in Rows.db.
    Bti(RowIndexEntry),
    /// The promoted index in its entry in Index.db.
    Big(PromotedIndex),
}

/// The position of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionPosition {
    /// Its start in the data.
    pub data: u64,
    /// Its row index, if it is wide enough to have one.
    pub index: Option<RowIndex>,
}

impl Index {
    /// Opens the index components.
    pub(super) fn open(
        opener: &mut Opener<'_>,
        (version, stats, partitioner): (Version, &Stats, Partitioner),
        cx: &mut ReadContext,
    ) -> Result<Index> {
        match version.format() {
            Format::Bti => {
                let partitions = opener.paged(Component::Partitions)?;
                let partitions = PartitionIndex::open(partitions, cx)?;
                let rows = Arc::new(opener.paged(Component::Rows)?);
                let row_index_cache = RowIndexCache::new(rows.buffers().budget().clone());
                Ok(Index::Bti { partitions, rows, row_index_cache })
            }
            Format::Big => {
                let index = opener.paged(Component::Index)?;
                let summary = if partitioner != Partitioner::Murmur3 {
                    Some(Summary::in_other_order(&index, cx)?)
                } else if opener.exists(Component::Summary) {
                    let (_, bytes) = opener.whole(Component::Summary)?;
                    Summary::parse(&bytes, index.size())
                } else {
                    None
                };
                let key_count = stats.partition_sizes.count();
                Ok(Index::Big(BigIndex::open(index, summary, (version, key_count), cx)?))
            }
        }
    }

    /// The place of an index whose component is missing. `data` has the partitions.
    ///
    /// # Errors
    /// The first key cannot be read.
    pub(super) fn absent(data: &DataBlocks, stats: &Stats, cx: &mut ReadContext) -> Result<Index> {
        let file = data.file();
        let cut = || file.corrupt(0, "the data ends within a partition key");
        let block_bytes = data.block_bytes() as u64;
        let mut bytes = Vec::new();
        let mut wanted = 2;
        while bytes.len() < wanted && (bytes.len() as u64) < data.data_length() {
            let number = bytes.len() as u64 / block_bytes;
            bytes.extend_from_slice(&data.block(number, WHOLE, cx)?);
            if let Some(length) = bytes.first_chunk::<2>() {
                wanted = 2 + usize::from(u16::from_be_bytes(*length));
            }
        }
        let first = bytes.get(2..wanted).ok_or_else(cut)?.to_vec();
        Ok(Index::Absent { data: file.path().to_owned(), first, key_count: stats.partition_sizes.count() })
    }

    /// The first and the last partition key, serialised.
    pub(crate) fn keys(&self) -> [&[u8]; 2] {
        match self {
            Index::Bti { partitions, .. } => [partitions.first_key(), partitions.last_key()],
            Index::Big(index) => [index.first_key(), index.last_key()],
            // The last key is not known, and no partition is looked up.
            Index::Absent { first, .. } => [first, first],
        }
    }

    /// Number of partitions.
    pub(crate) fn key_count(&self) -> u64 {
        match self {
            Index::Bti { partitions, .. } => partitions.key_count(),
            Index::Big(index) => index.key_count(),
            Index::Absent { key_count, .. } => *key_count,
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Index::Bti { .. } | Index::Absent { .. } => 0,
            Index::Big(index) => index.memory_bytes(),
        }
    }

    /// Its components.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<BlockFile>> {
        let (first, second) = match self {
            Index::Bti { partitions, rows, .. } => (Some(partitions.file()), Some(rows)),
            Index::Big(index) => (Some(index.file()), None),
            Index::Absent { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The position of a key's partition, if the table has it. A wide partition is certain. For others, in format BTI,
    /// the caller must compare the key at that position.
    #[inline]
    pub(crate) fn candidate(
        &self,
        key: &[u8],
        (hash, decorated): (&KeyHash, &[u8]),
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionPosition>> {
        match self {
            Index::Bti { partitions, rows, .. } => {
                let Some(found) = partitions.lookup(decorated, hash_byte(hash.halves.1), cx)? else {
                    return Ok(None);
                };
                Ok(match found {
                    IndexPosition::Data(data) => Some(PartitionPosition { data, index: None }),
                    IndexPosition::Rows(at) => RowIndexEntry::read_of(rows, at, key, cx)?.map(wide),
                })
            }
            Index::Big(index) => {
                let found = index.find(key, hash.token, cx)?;
                Ok(found.map(|found| PartitionPosition {
                    data: found.data,
                    index: found.promoted.map(RowIndex::Big),
                }))
            }
            Index::Absent { .. } => Ok(None),
        }
    }

    /// Whether a partition may have an index of its rows.
    pub(crate) fn may_have_row_indexes(&self) -> bool {
        match self {
            Index::Bti { rows, .. } => rows.size() > 0,
            Index::Big(_) => true,
            Index::Absent { .. } => false,
        }
    }

    /// Whether a position from `candidate` is certainly that of the key's partition.
    pub(crate) fn is_certain(&self, position: &PartitionPosition) -> bool {
        position.index.is_some() || matches!(self, Index::Big(_))
    }

    /// The position of a wide partition in the row index cache, and its slot there.
    #[inline]
    pub(crate) fn find_cached(&self, key: &PartitionKey) -> Option<(PartitionPosition, usize)> {
        let Index::Bti { row_index_cache, .. } = self else { return None };
        row_index_cache.find(key).map(|(slot, entry)| (wide(*entry), slot))
    }

    /// Counts a read of a wide partition, and may load a part of its row index into the cache.
    pub(crate) fn see(&self, key: &PartitionKey, entry: &RowIndex, cx: &ReadContext) {
        if let (Index::Bti { rows, row_index_cache, .. }, RowIndex::Bti(entry)) = (self, entry) {
            row_index_cache.record_read(key, (rows, entry), cx);
        }
    }

    /// A reader of the index blocks of a wide partition.
    pub(crate) fn blocks(
        &self,
        entry: &RowIndex,
        memory: &mut BlocksMemory,
        cx: &mut ReadContext,
    ) -> Result<Blocks> {
        match (self, entry) {
            (Index::Bti { rows, .. }, RowIndex::Bti(entry)) => {
                let reader = RowIndexReader::with_stacks(rows.clone(), entry, &mut memory.bti, cx)?;
                Ok(Blocks::Bti(reader))
            }
            (Index::Big(index), RowIndex::Big(entry)) => {
                let memory = std::mem::take(&mut memory.big);
                Ok(Blocks::Big(PromotedReader::new(index.file().clone(), index.form(), *entry, memory)))
            }
            _ => Err(self.corrupt("a place of a partition in a table of another format")),
        }
    }

    /// The row index cache and Rows.db.
    fn in_memory(&self) -> Result<(&RowIndexCache, &Arc<BlockFile>)> {
        match self {
            Index::Bti { rows, row_index_cache, .. } => Ok((row_index_cache, rows)),
            Index::Big(_) | Index::Absent { .. } => {
                Err(self.corrupt("a place of a partition in a table of another format"))
            }
        }
    }

    /// An error that names Rows.db or Index.db.
    pub(crate) fn corrupt(&self, problem: &str) -> Error {
        match self {
            Index::Bti { rows, .. } => rows.corrupt(0, problem),
            Index::Big(index) => index.file().corrupt(0, problem),
            Index::Absent { data, .. } => {
                Error::Corrupt { file: data.clone(), offset: 0, problem: problem.to_owned() }
            }
        }
    }
}

/// The position of a partition with an entry in Rows.db.
pub(crate) fn wide(entry: RowIndexEntry) -> PartitionPosition {
    PartitionPosition { data: entry.data_position, index: Some(RowIndex::Bti(entry)) }
}

impl RowIndex {
    /// The partition's deletion.
    pub(crate) fn deletion(&self) -> DeletionTime {
        match self {
            RowIndex::Bti(entry) => entry.deletion,
            RowIndex::Big(entry) => entry.deletion,
        }
    }
}

/// Memory of a `Blocks`, for another to use again.
#[derive(Default)]
pub(crate) struct BlocksMemory {
    bti: RowIndexStacks,
    big: PromotedMemory,
}

/// Finds the index blocks of one wide partition. Each method can be called again after `WouldBlock`.
pub(crate) enum Blocks {
    /// In its trie in Rows.db.
    Bti(RowIndexReader<Arc<BlockFile>>),
    /// In the row index cache.
    Known(CachedBlocks),
    /// In its promoted index in Index.db.
    Big(PromotedReader),
}

impl Blocks {
    /// Returns the memory for another reader.
    pub(crate) fn into_memory(self, memory: &mut BlocksMemory) {
        match self {
            Blocks::Bti(reader) => memory.bti = reader.into_stacks(),
            Blocks::Known(known) => {
                if let Some(stacks) = known.into_stacks() {
                    memory.bti = stacks;
                }
            }
            Blocks::Big(reader) => memory.big = reader.into_memory(),
        }
    }

    /// The offset at which a search for the first position at or after `bound` begins, and the range deletion open
    /// there.
    #[inline]
    pub(crate) fn floor_start(
        &mut self,
        (index, layout): (&Index, &RowLayout),
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<(u64, Option<DeletionTime>)> {
        match self {
            Blocks::Bti(reader) => reader.floor_start(bound, cx),
            Blocks::Known(known) => known.floor_start(index.in_memory()?, bound, cx),
            Blocks::Big(reader) => reader.floor_start(layout, bound, cx),
        }
    }

    /// The block that may hold the last position before `bound`; `None` if there is none.
    #[inline]
    pub(crate) fn floor_reversed(
        &mut self,
        (index, layout): (&Index, &RowLayout),
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Option<IndexBlock>> {
        match self {
            Blocks::Bti(reader) => reader.floor_reversed(bound, cx),
            Blocks::Known(known) => known.floor_reversed(index.in_memory()?, bound, cx),
            Blocks::Big(reader) => reader.floor_reversed(layout, bound, cx),
        }
    }

    /// The block before the one returned last; `None` before the first.
    #[inline]
    pub(crate) fn previous(
        &mut self,
        (index, layout): (&Index, &RowLayout),
        cx: &mut ReadContext,
    ) -> Result<Option<IndexBlock>> {
        match self {
            Blocks::Bti(reader) => reader.previous(cx),
            Blocks::Known(known) => known.previous(index.in_memory()?, cx),
            Blocks::Big(reader) => reader.previous(layout, cx),
        }
    }

    /// An offset near the partition's end: that of the end-of-partition byte, and `true`, or that of the last block.
    pub(crate) fn near_end(
        &mut self,
        (index, layout): (&Index, &RowLayout),
        cx: &mut ReadContext,
    ) -> Result<Option<(u64, bool)>> {
        let last = self.floor_reversed((index, layout), AFTER_ALL, cx)?;
        Ok(last.map(|block| match self {
            Blocks::Bti(_) | Blocks::Known(_) => (block.end, true),
            // The size of the last block may or may not include that byte.
            Blocks::Big(_) => (block.offset, false),
        }))
    }
}
