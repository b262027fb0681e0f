//! An open SSTable: the parts of it that are kept in memory, and the entry points of reads.
//!
//! To open it reads Statistics.db, the filter, the chunk offsets, the partition index's footer or summary and the page
//! checksums, but no row. A table is immutable and shared. Its files are closed when the last reader is dropped.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod index;
mod index_positions;
mod opener;
mod partition_reader;
mod parts;
mod scan;
mod user_types;
mod verify;
mod verify_blocks;
mod without_schema;

use crate::block::ReadContext;
use crate::buffer::{BufferPool, KeyCache};
use crate::component::Component;
use crate::compression::{DataBlocks, WHOLE};
use crate::data::{KeyRange, RowLayout};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::names::Descriptor;
use crate::partitioner::Partitioner;
use crate::statistics::{ClusteringBound, Statistics, Stats};
use crate::version::Format;
use helenus_host::Disk;
use helenus_host::account::StandingBytes;
use helenus_model::byte_comparable::{clustering_bound, decorated_key};
use helenus_model::schema::{CompressionParams, Table};
use helenus_model::token::{KeyHash, Token};
use opener::Opener;
use std::path::Path;
use std::sync::{Arc, OnceLock};
pub use without_schema::{
    Compression, compression_of, read_statistics, read_whole, remove_files, schema_of_files,
};

pub(crate) use index::{BlocksMemory, Index};
pub use index::{PartitionPosition, RowIndex};
pub(crate) use index_positions::{IndexPositions, IndexedPartition};
pub use partition_reader::{PartitionReader, SpareReaders};
pub(crate) use parts::Parts;
pub use scan::Scan;
pub use verify::Verified;

/// Options for opening a table.
pub struct OpenOptions {
    /// The schema with which rows are read.
    pub schema: Arc<Table>,
    /// The buffer pool, which keeps blocks of the table's files while it is open.
    pub buffers: BufferPool,
}

/// An open table.
pub struct SsTable {
    descriptor: Descriptor,
    partitioner: Partitioner,
    schema: Arc<Table>,
    layout: RowLayout,
    data: DataBlocks,
    index: Index,
    filter: Filter,
    statistics: Statistics,
    first: Vec<u8>,
    last: Vec<u8>,
    tokens: (Token, Token),
    clusterings: Option<(Vec<u8>, Vec<u8>)>,
    size_on_disk: u64,
    key_cache: KeyCache,
    hiding_us_max: OnceLock<i64>,
    /// `memory_bytes` on the memory account.
    _memory: StandingBytes,
}

/// What an opened table must be fit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// All reads.
    Whole,
    /// Scans from start to end, and verification: it may be of another partitioner.
    AnyOrder,
    /// Scans alone: it may also lack its index.
    ForScans,
}

impl SsTable {
    /// Opens a table in a folder. It waits for the disk.
    pub fn open(
        disk: &dyn Disk,
        folder: &Path,
        descriptor: Descriptor,
        options: OpenOptions,
    ) -> Result<Arc<SsTable>> {
        SsTable::open_in_order(disk, (folder, descriptor), options, Opening::Whole)
    }

    fn open_in_order(
        disk: &dyn Disk,
        (folder, descriptor): (&Path, Descriptor),
        options: OpenOptions,
        how: Opening,
    ) -> Result<Arc<SsTable>> {
        let version = descriptor.version;
        let mut opener = Opener::new(disk, folder, descriptor, &options.buffers)?;
        let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };

        let (statistics_path, bytes) = opener.whole(Component::Statistics)?;
        let statistics = Statistics::read(&bytes, version, &statistics_path)?;
        if how == Opening::Whole {
            check_partitioner(&statistics, &statistics_path)?;
        }
        let partitioner = Partitioner::of(&statistics.validation.partitioner);
        let layout = RowLayout::of_header(&statistics.header, &options.schema, (version, &statistics_path))?;
        let filter = if opener.exists(Component::Filter) {
            let (path, bytes) = opener.whole(Component::Filter)?;
            Filter::read(&bytes, version, &path)?
        } else {
            Filter::always_present()
        };
        let of_index = match version.format() {
            Format::Bti => Component::Partitions,
            Format::Big => Component::Index,
        };
        let data = opener.data()?;
        let index = match how == Opening::ForScans && !opener.exists(of_index) {
            true => Index::absent(&data, &statistics.stats, &mut cx)?,
            false => Index::open(&mut opener, (version, &statistics.stats, partitioner), &mut cx)?,
        };
        let size_on_disk = opener.size_on_disk;

        let [first_token, last_token] = index.keys().map(|key| KeyHash::of(key).token);
        let tokens = (first_token, last_token);
        let [first, last] = index.keys().map(|key| {
            let mut decorated = Vec::new();
            decorated_key(KeyHash::of(key).token, key, &mut decorated);
            decorated
        });
        let clusterings = ordered_range(&options.schema, &statistics.stats);
        let key_cache = KeyCache::new(index.key_count(), options.buffers.budget());
        let memory = memory_bytes(&filter, &index, &data);
        Ok(Arc::new(SsTable {
            descriptor,
            partitioner,
            schema: options.schema,
            layout,
            data,
            index,
            filter,
            statistics,
            first,
            last,
            tokens,
            clusterings,
            size_on_disk,
            key_cache,
            hiding_us_max: OnceLock::new(),
            _memory: StandingBytes::of(memory as u64),
        }))
    }

    /// Its version and identifier.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The schema it was opened with.
    pub fn schema(&self) -> &Arc<Table> {
        &self.schema
    }

    /// Its partitioner. Only a table opened with `open_alone` can have another than Murmur3Partitioner.
    pub fn partitioner(&self) -> Partitioner {
        self.partitioner
    }

    /// Whether the table may have the partition with this hash; false is certain.
    pub fn may_contain(&self, hash: &KeyHash) -> bool {
        let (h1, h2) = hash.halves;
        self.filter.may_contain(h1, h2)
    }

    /// Decorated key of the first partition.
    pub fn first_decorated(&self) -> &[u8] {
        &self.first
    }

    /// Decorated key of the last partition.
    pub fn last_decorated(&self) -> &[u8] {
        &self.last
    }

    /// Tokens of the first and the last partition.
    pub fn tokens(&self) -> (Token, Token) {
        self.tokens
    }

    /// Whether a decorated key lies between those of the first and the last partition, inclusively.
    pub fn covers(&self, decorated: &[u8]) -> bool {
        self.first.as_slice() <= decorated && decorated <= self.last.as_slice()
    }

    /// Statistics of the content.
    pub fn stats(&self) -> &Stats {
        &self.statistics.stats
    }

    /// All of Statistics.db.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Whether the table may contain anything that is deleted or expires. If not, its reads find no tombstones.
    pub fn may_have_tombstones(&self) -> bool {
        self.stats().local_deletion_s_min != helenus_model::deletion::NO_EXPIRY
    }

    /// Records the greatest timestamp of a deletion, or of a value that expires, which the table's files do not say:
    /// `Written::hiding_us_max`.
    pub fn note_hiding_us_max(&self, timestamp_us: i64) {
        let _ = self.hiding_us_max.set(timestamp_us);
    }

    /// The timestamp that was recorded by `note_hiding_us_max`.
    pub fn known_hiding_us_max(&self) -> Option<i64> {
        self.hiding_us_max.get().copied()
    }

    /// No deletion, and no value that expires, has a greater timestamp than this; `i64::MIN` without any.
    pub fn hiding_us_max(&self) -> i64 {
        match self.known_hiding_us_max() {
            _ if !self.may_have_tombstones() => i64::MIN,
            Some(known) => known,
            None => self.stats().timestamp_us_max,
        }
    }

    /// Ordered bounds around all rows and markers; `None` if there are none.
    pub fn clustering_range(&self) -> Option<(&[u8], &[u8])> {
        self.clusterings.as_ref().map(|(start, end)| (start.as_slice(), end.as_slice()))
    }

    /// Number of partitions. In format BIG it is the number in Statistics.db.
    pub fn partition_count(&self) -> u64 {
        self.index.key_count()
    }

    /// Size of all components in bytes.
    pub fn size_on_disk(&self) -> u64 {
        self.size_on_disk
    }

    /// Size in bytes of the files that stay open with the table: Data.db and the index.
    pub fn open_file_bytes(&self) -> u64 {
        self.data_bytes() + self.index.files().map(|file| file.size()).sum::<u64>()
    }

    /// Size of Data.db in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.data.file().size()
    }

    /// Size of the data in bytes before compression.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.data.data_length()
    }

    /// The parameters with which its data is compressed.
    pub fn compression_params(&self) -> CompressionParams {
        self.data.compression_params()
    }

    /// Whether the data is compressed as these options of a table say.
    pub fn is_compressed_as(&self, params: &CompressionParams) -> bool {
        match (&self.data, &params.class) {
            (DataBlocks::Plain(_), class) => class.is_none(),
            (DataBlocks::Compressed(_), None) => false,
            (DataBlocks::Compressed(blocks), Some(class)) => {
                let info = blocks.info();
                class.ends_with(info.compressor.class_name())
                    && (info.chunk_bytes, info.max_compressed_bytes)
                        == (params.chunk_bytes, params.max_compressed_bytes)
                    && info.options == params.options
            }
        }
    }

    /// About the bytes of memory that the table keeps while it is open: filter, chunk offsets and summary.
    pub fn memory_bytes(&self) -> usize {
        memory_bytes(&self.filter, &self.index, &self.data)
    }

    /// Finds a partition by its serialised key, the key's hash and its decorated form. The filter is not asked.
    pub fn find(
        &self,
        key: &[u8],
        hash: &KeyHash,
        decorated: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionPosition>> {
        let Some(position) = self.candidate(key, (hash, decorated), cx)? else { return Ok(None) };
        let is_found = self.index.is_certain(&position) || self.has_key(position.data, key, cx)?;
        Ok(is_found.then_some(position))
    }

    /// The position at which a partition must be if the table has it; see `Index::candidate`.
    #[inline]
    pub(crate) fn candidate(
        &self,
        key: &[u8],
        (hash, decorated): (&KeyHash, &[u8]),
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionPosition>> {
        if !self.covers(decorated) || self.partitioner != Partitioner::Murmur3 {
            return Ok(None);
        }
        self.index.candidate(key, (hash, decorated), cx)
    }

    /// Iterates over partitions in order.
    pub fn scan(self: &Arc<SsTable>, range: &KeyRange, cx: &mut ReadContext) -> Result<Scan> {
        Scan::new(self, range, cx)
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    pub(crate) fn data(&self) -> &DataBlocks {
        &self.data
    }

    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.key_cache
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Whether the partition at `position` has this key, which may cross block boundaries.
    fn has_key(&self, position: u64, key: &[u8], cx: &mut ReadContext) -> Result<bool> {
        let len = (key.len() as u16).to_be_bytes();
        let mut position = position;
        for expected in [&len[..], key] {
            let mut expected = expected;
            while !expected.is_empty() {
                let block_bytes = self.data.block_bytes() as u64;
                let block = self.data.block(position / block_bytes, WHOLE, cx)?;
                let rest = block.get((position % block_bytes) as usize..).unwrap_or(&[]);
                let here = rest.len().min(expected.len());
                if here == 0 {
                    return Err(self.data.file().corrupt(position, "the data ends within a partition key"));
                }
                let (now, later) = expected.split_at(here);
                if rest.get(..here) != Some(now) {
                    return Ok(false);
                }
                position += here as u64;
                expected = later;
            }
        }
        Ok(true)
    }
}

fn memory_bytes(filter: &Filter, index: &Index, data: &DataBlocks) -> usize {
    let offsets = match data {
        DataBlocks::Compressed(blocks) => blocks.info().memory_bytes(),
        DataBlocks::Plain(_) => 0,
    };
    filter.memory_bytes() + index.memory_bytes() + offsets
}

/// Refuses a table whose partitions are not in the order that reads rely on.
fn check_partitioner(statistics: &Statistics, file: &Path) -> Result<()> {
    let partitioner = statistics.validation.partitioner.as_str();
    if Partitioner::of(partitioner) == Partitioner::Murmur3 {
        return Ok(());
    }
    let what = other_partitioner(partitioner);
    Err(Error::Unsupported { file: file.to_owned(), what })
}

/// The error text for a table of another partitioner, which tells the user what to do.
pub fn other_partitioner(class: &str) -> String {
    format!(
        "its partitions are in the order of {class}: `helenus sstable scrub --output DIR` writes them into DIR in that of \
         Murmur3Partitioner, the one that is taken here"
    )
}

/// The slice of clusterings in the statistics as ordered bounds.
fn ordered_range(schema: &Table, stats: &Stats) -> Option<(Vec<u8>, Vec<u8>)> {
    let ordered = |bound: &ClusteringBound| {
        let mut out = Vec::new();
        let values = bound.values.iter().map(|value| value.as_deref());
        clustering_bound(values, &schema.clustering, bound.kind.is_before(), &mut out).ok()?;
        Some(out)
    };
    let range = &stats.clustering_range;
    let (start, end) = (ordered(&range.start)?, ordered(&range.end)?);
    // Without rows, the bounds in Statistics.db are those of everything in reverse order.
    (start < end).then_some((start, end))
}
