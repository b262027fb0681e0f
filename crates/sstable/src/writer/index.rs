//! Writes the index components of a table in either format.

use super::files::Files;
use crate::component::Component;
use crate::error::Result;
use crate::index_big::{BigBlock, BigIndexWriter, BigPartitionEnd};
use crate::index_bti::{DeletionTimeBytes, PartitionEnd, PartitionIndexBuilder, RowIndexWriter};
use crate::version::{Format, Version};
use helenus_model::deletion::DeletionTime;

/// The index writer of one of the formats.
#[expect(clippy::large_enum_variant, reason = "one a table being written")]
pub(super) enum IndexWriter {
    /// Tries.
    Bti { rows: RowIndexWriter, partitions: PartitionIndexBuilder },
    /// Index.db.
    Big(BigIndexWriter),
}

/// An index block that is complete.
pub(super) struct BlockEnd<'a> {
    /// Clustering position of its first row or marker: the ordered one or, in format BIG, the stored one.
    pub(super) first: &'a [u8],
    /// The same of its last row or marker.
    pub(super) last: &'a [u8],
    /// Its offset from the partition's start.
    pub(super) offset: u64,
    /// Its size in bytes.
    pub(super) width: u64,
    /// The range deletion that is open at its start.
    pub(super) open_before: Option<DeletionTime>,
    /// The range deletion that is open at its end.
    pub(super) open_behind: Option<DeletionTime>,
}

/// A partition that is complete.
pub(super) struct Ended<'a> {
    pub(super) key: &'a [u8],
    pub(super) decorated: &'a [u8],
    pub(super) hash_byte: u8,
    pub(super) data_position: u64,
    /// Bytes before its first row or marker.
    pub(super) head_bytes: u64,
    pub(super) deletion: DeletionTime,
    /// The offset of the end-of-partition byte from its start.
    pub(super) end_offset: u64,
}

impl IndexWriter {
    pub(super) fn create(
        files: &mut Files,
        version: Version,
        min_index_interval: u32,
    ) -> Result<IndexWriter> {
        Ok(match version.format() {
            Format::Bti => {
                let rows = RowIndexWriter::new(files.create(Component::Rows)?);
                let partitions = PartitionIndexBuilder::new(files.create(Component::Partitions)?);
                IndexWriter::Bti { rows, partitions }
            }
            Format::Big => {
                let out = files.create(Component::Index)?;
                IndexWriter::Big(BigIndexWriter::new(out, version, min_index_interval))
            }
        })
    }

    /// Whether `BlockEnd` needs the stored clustering positions instead of the ordered ones.
    pub(super) fn has_stored_positions(&self) -> bool {
        matches!(self, IndexWriter::Big(_))
    }

    /// Whether the last block of a partition is written even if it is not full.
    pub(super) fn wants_last_block(&self) -> bool {
        match self {
            IndexWriter::Bti { rows, .. } => rows.block_count() > 0,
            IndexWriter::Big(_) => true,
        }
    }

    /// Whether a block can begin while this range deletion is open. Row indexes of BTI, and of BIG from `oa` on, cannot
    /// store a deletion before 1970 or after 2106; the current block then continues until the deletion ends.
    pub(super) fn can_begin_block(&self, open: Option<DeletionTime>) -> bool {
        open.is_none_or(|open| match self {
            IndexWriter::Bti { .. } => DeletionTimeBytes::new(open).is_some(),
            IndexWriter::Big(index) => index.has_form(open),
        })
    }

    pub(super) fn add_block(&mut self, block: &BlockEnd<'_>) -> Result<()> {
        match self {
            IndexWriter::Bti { rows, .. } => {
                rows.add_block(block.first, block.last, block.offset, block.open_before)
            }
            IndexWriter::Big(index) => index.add_block(&BigBlock {
                first: block.first,
                last: block.last,
                offset: block.offset,
                width: block.width,
                open_behind: block.open_behind,
            }),
        }
    }

    pub(super) fn end_partition(&mut self, end: &Ended<'_>) -> Result<()> {
        match self {
            IndexWriter::Bti { rows, partitions } => {
                let position = rows.finish_partition(&PartitionEnd {
                    key: end.key,
                    data_position: end.data_position,
                    deletion: end.deletion,
                    end_offset: end.end_offset,
                })?;
                partitions.add(end.decorated, end.hash_byte, position)
            }
            IndexWriter::Big(index) => index.finish_partition(&BigPartitionEnd {
                key: end.key,
                data_position: end.data_position,
                head_bytes: end.head_bytes,
                deletion: end.deletion,
            }),
        }
    }

    pub(super) fn finish(self, files: &mut Files, first_key: &[u8], last_key: &[u8]) -> Result<()> {
        match self {
            IndexWriter::Bti { rows, partitions } => {
                files.finished(Component::Rows, &rows.finish()?);
                files.finished(Component::Partitions, &partitions.finish(first_key, last_key)?);
            }
            IndexWriter::Big(index) => {
                let (finished, summary) = index.finish(first_key, last_key)?;
                files.finished(Component::Index, &finished);
                files.small(Component::Summary, &summary)?;
            }
        }
        Ok(())
    }
}
