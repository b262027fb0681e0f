//! The index components of a table being written, whichever format it has.

use super::files::Files;
use crate::component::Component;
use crate::error::Result;
use crate::index_big::{BigBlock, BigIndexWriter, BigPartitionEnd};
use crate::index_bti::{DeletionTimeBytes, PartitionEnd, PartitionIndexBuilder, RowIndexWriter};
use crate::version::{Format, Version};
use helenus_model::deletion::DeletionTime;

/// Writes what finds partitions and blocks of rows.
#[expect(clippy::large_enum_variant, reason = "one a table being written")]
pub(super) enum IndexWriter {
    /// Tries.
    Bti { rows: RowIndexWriter, partitions: PartitionIndexBuilder },
    /// Index.db.
    Big(BigIndexWriter),
}

/// The index block that ends.
pub(super) struct BlockEnd<'a> {
    /// Its first element: the ordered position or, of format BIG, the stored one.
    pub(super) first: &'a [u8],
    /// Its last, the same way.
    pub(super) last: &'a [u8],
    /// Where it begins, from the partition's start.
    pub(super) offset: u64,
    /// Its bytes.
    pub(super) width: u64,
    /// The range deletion that is open where it begins.
    pub(super) open_before: Option<DeletionTime>,
    /// The range deletion that is open behind it.
    pub(super) open_behind: Option<DeletionTime>,
}

/// The partition that ends.
pub(super) struct Ended<'a> {
    pub(super) key: &'a [u8],
    pub(super) decorated: &'a [u8],
    pub(super) hash_byte: u8,
    pub(super) data_position: u64,
    /// Bytes before its first row or marker.
    pub(super) head_bytes: u64,
    pub(super) deletion: DeletionTime,
    /// Where its rows end, from its start: the position of the end-of-partition byte.
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

    /// Whether blocks are told by the stored positions of their ends, not by the ordered ones.
    pub(super) fn has_stored_positions(&self) -> bool {
        matches!(self, IndexWriter::Big(_))
    }

    /// Whether the block under way is written although it is not full, when its partition ends.
    pub(super) fn wants_last_block(&self) -> bool {
        match self {
            IndexWriter::Bti { rows, .. } => rows.block_count() > 0,
            IndexWriter::Big(_) => true,
        }
    }

    /// Whether a block can begin where this range deletion is open. Row indexes of format BTI, and those of BIG from version
    /// `oa` on, have no place for one before 1970 or after 2106: the block before goes on until it ends.
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
