//! Writes an SSTable with all its components, from partitions in order, each with its rows and markers in order.
//!
//! The layout is Cassandra's (`SortedTableWriter`, `SortedTablePartitionWriter`, and those of BTI and BIG). Memory does
//! not grow with a partition: each row is encoded at once, and of an index block only the first and the last position
//! are kept (in format BIG those of all blocks of the partition: see `index_big`). The order of partitions and rows is
//! asserted in release builds too, because a wrong order would make a file that gives wrong answers.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod as_written;
mod covering;
mod files;
mod index;
mod large;
mod times;

use crate::component::Component;
use crate::compression::DataWriter;
use crate::data::{Encoder, RowLayout};
use crate::error::{Error, Result};
use crate::filter::{Filter, FilterBuilder, hash_byte};
use crate::names::Descriptor;
use crate::statistics::{
    CommitLogPosition, EncodingStats, Header, HeaderColumn, MURMUR3_PARTITIONER, Statistics,
    StatisticsCollector, Validation,
};
use crate::version::{Format, Version};
use covering::Covering;
use files::Files;
use helenus_host::Disk;
use helenus_model::byte_comparable::decorated_key;
use helenus_model::cell::Cell;
use helenus_model::counter_context::has_legacy_shards;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, CompressionParams, Table, TableOptions};
use helenus_model::token::KeyHash;
use helenus_model::types::composite_class_name;
use helenus_model::unfiltered::Unfiltered;
use index::{BlockEnd, Ended, IndexWriter};
use large::Noted;
use std::path::Path;
use std::sync::Arc;
use times::{Times, TooLate};
use uuid::Uuid;

pub use files::Unsynced;
pub use large::{LargePartition, PartitionLimits};
pub use times::Beyond2038;

/// Options for writing an SSTable.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The table. The file has its static and regular columns.
    pub table: Arc<Table>,
    /// About the number of partitions, for the size of the filter.
    pub estimated_keys: u64,
    /// The smallest timestamp, local deletion time and TTL that may come. A wrong value only costs space.
    pub encoding: EncodingStats,
    /// Bytes of rows after which the row index begins a new block.
    pub row_index_block_bytes: u64,
    /// Compression of Data.db.
    pub compression: CompressionParams,
    /// Why the table's own compression cannot be written and `compression` is the default. Statements refuse such
    /// options; a schema from elsewhere, or of another version, may have them.
    pub refused: Option<String>,
    /// The server's host id.
    pub host_id: Option<Uuid>,
    /// The commit log intervals that are no longer needed once the file is written.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Level of levelled compaction.
    pub level: i32,
    /// When the content was repaired, in milliseconds since 1970; 0 if it was not.
    pub repaired_at_ms: i64,
    /// How to treat times that versions before `oa` cannot store.
    pub beyond_2038: Beyond2038,
    /// Whether the files, except for their last bytes, are written past the system's page cache. That suits background
    /// work; files that a user asked for are likely to be read next.
    pub past_page_cache: bool,
    /// Whether our page checksums are written. Tables for other programs do not need them.
    pub page_checksums: bool,
    /// Partitions beyond these limits are named in `Written::large_partitions`.
    pub partition_limits: PartitionLimits,
}

/// Bytes of rows in an index block, unless the table's extension sets it. It is an eighth of Cassandra's default;
/// Cassandra can read both (`docs/decisions`, the granularity of the row index).
pub const ROW_INDEX_BLOCK_BYTES_DEFAULT: u64 = 2 * 1024;

/// The same in files of format BIG: Cassandra's default (`BigFormatPartitionWriter.DEFAULT_GRANULARITY`).
pub const BIG_INDEX_BLOCK_BYTES_DEFAULT: u64 = 64 * 1024;

impl WriterOptions {
    /// The options that a table's own settings define, or the default ones in place of those that cannot be written: a
    /// table that could not be flushed would fill memory and log.
    pub fn of_table(table: Arc<Table>, estimated_keys: u64, encoding: EncodingStats) -> WriterOptions {
        let own = table.options.compression_params();
        let refused = DataWriter::refusal(&own);
        WriterOptions {
            compression: match refused {
                None => own,
                Some(_) => TableOptions::default().compression_params(),
            },
            refused,
            row_index_block_bytes: table
                .options
                .row_index_block_bytes()
                .unwrap_or(ROW_INDEX_BLOCK_BYTES_DEFAULT),
            table,
            estimated_keys,
            encoding,
            host_id: None,
            commit_log_intervals: Vec::new(),
            level: 0,
            repaired_at_ms: 0,
            beyond_2038: Beyond2038::Refuse,
            past_page_cache: false,
            page_checksums: true,
            partition_limits: PartitionLimits::NONE,
        }
    }

    /// Adapts the options to a version. In format BIG the index has another granularity, unless the table's extension
    /// sets it. Before `na` no chunk is stored uncompressed, and compressors that Cassandra 3 does not have (Zstd and
    /// Noop) become LZ4.
    pub fn for_version(mut self, version: Version) -> WriterOptions {
        if version.format() == Format::Big && self.table.options.row_index_block_bytes().is_none() {
            self.row_index_block_bytes = BIG_INDEX_BLOCK_BYTES_DEFAULT;
        }
        if !version.has_max_compressed_length() {
            self.compression.max_compressed_bytes = i32::MAX as u32;
            let class = self.compression.class.as_deref().unwrap_or_default();
            if class.ends_with("ZstdCompressor") || class.ends_with("NoopCompressor") {
                self.compression.class = Some("LZ4Compressor".to_owned());
                self.compression.options.clear();
            }
        }
        self
    }
}

/// A finished table.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its version and identifier.
    pub descriptor: Descriptor,
    /// Its components, as TOC.txt lists them.
    pub components: Vec<Component>,
    /// The content of Statistics.db.
    pub statistics: Statistics,
    /// The greatest timestamp of a deletion, or of a value that expires; `i64::MIN` without any.
    pub hiding_us_max: i64,
    /// Size of all components in bytes.
    pub size_on_disk: u64,
    /// Number of times after 2038 that were capped, because the version cannot store them.
    pub times_capped: u64,
    /// Partitions beyond the limits of the options; at most a hundred.
    pub large_partitions: Vec<LargePartition>,
}

/// The largest encoding buffer that is kept for the next row.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A table being written.
pub struct SsTableWriter {
    descriptor: Descriptor,
    files: Files,
    options: WriterOptions,
    data: DataWriter,
    index: IndexWriter,
    times: Times,
    filter: FilterBuilder,
    statistics: StatisticsCollector,
    large: Noted,
    /// Whether the table is a counter table.
    counts: bool,
    encoder: Encoder,
    partition: Partition,
    /// The current partition's deletion, if its front cannot hold it.
    covering: Option<Box<Covering>>,
    first_key: Option<Vec<u8>>,
    out: Vec<u8>,
    /// Buffer for a decorated key.
    decorated: Vec<u8>,
}

/// The current partition, or the last one.
#[derive(Default)]
struct Partition {
    is_open: bool,
    key: Vec<u8>,
    decorated: Vec<u8>,
    hash_byte: u8,
    deletion: Option<DeletionTime>,
    start: u64,
    /// Offset of the previous row or marker from the partition's start; 0 before the first.
    previous: u64,
    /// Ordered clustering position of the previous row or marker; empty before the first.
    last: Vec<u8>,
    open: Option<DeletionTime>,
    block: Option<Block>,
    /// Clustering position of the block's first row or marker: the ordered one or, in format BIG, the stored one.
    block_first: Vec<u8>,
    /// Stored clustering position of the previous row or marker; only in format BIG.
    stored_last: Vec<u8>,
    /// Bytes before the first row or marker.
    head_bytes: u64,
}

/// The current index block.
struct Block {
    offset: u64,
    open: Option<DeletionTime>,
}

impl SsTableWriter {
    /// Creates the components of a new table in a folder. `Unsupported` if the descriptor's version cannot be written.
    pub fn create(
        disk: Arc<dyn Disk>,
        folder: &Path,
        descriptor: Descriptor,
        mut options: WriterOptions,
    ) -> Result<SsTableWriter> {
        let version = descriptor.version;
        options.encoding = options.encoding.for_version(version);
        if !version.is_written() {
            let written = Version::all().filter(|version| version.is_written()).map(Version::letters);
            let written = written.collect::<Vec<_>>().join(", ");
            let what = format!("version {version} is read but not written; {written} are");
            return Err(Error::Unsupported { file: folder.to_owned(), what });
        }
        let mut files = Files::new(disk, folder, descriptor, &options);
        let data = DataWriter::new(files.create(Component::Data)?, &options.compression)?;
        let interval = u32::try_from(options.table.options.min_index_interval).unwrap_or(0);
        let index = IndexWriter::create(&mut files, version, interval)?;
        let layout = RowLayout::of_table(&options.table, options.encoding, version);
        let fp_chance = options.table.options.bloom_filter_fp_chance;
        Ok(SsTableWriter {
            descriptor,
            files,
            data,
            index,
            times: Times::new(version, options.beyond_2038),
            filter: FilterBuilder::new(Filter::with_capacity(options.estimated_keys.max(1), fp_chance)),
            statistics: StatisticsCollector::default(),
            large: Noted::new(options.partition_limits),
            counts: options.table.is_counter(),
            encoder: Encoder::new(layout),
            partition: Partition::default(),
            covering: None,
            first_key: None,
            out: Vec::new(),
            decorated: Vec::new(),
            options,
        })
    }

    /// Makes the table one that was never repaired.
    pub(crate) fn forget_repair(&mut self) {
        self.options.repaired_at_ms = 0;
    }

    /// About the size of Data.db so far in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.data.stored_bytes()
    }

    /// Begins a partition, which must be after the one before in token and key order.
    pub fn begin_partition(
        &mut self,
        key: &[u8],
        hash: &KeyHash,
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> Result<()> {
        let mut decorated = std::mem::take(&mut self.decorated);
        decorated.clear();
        decorated_key(hash.token, key, &mut decorated);
        let begun = self.begin_decorated((key, &decorated), hash, deletion, static_row);
        self.decorated = decorated;
        begun
    }

    /// The same, for a caller that already has the decorated key.
    pub fn begin_decorated(
        &mut self,
        (key, decorated): (&[u8], &[u8]),
        hash: &KeyHash,
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> Result<()> {
        let deletion = self.times.deletion(deletion).map_err(|late| self.too_late(&late))?;
        let partition = &mut self.partition;
        assert!(!partition.is_open, "a partition ends before the next begins");
        assert!(
            decorated > partition.decorated.as_slice(),
            "partitions are written in the order of their tokens and keys"
        );
        partition.decorated.clear();
        partition.decorated.extend_from_slice(decorated);
        partition.key.clear();
        partition.key.extend_from_slice(key);
        partition.hash_byte = hash_byte(hash.halves.1);
        let has_form = self.encoder.layout().deletion_times.encode(deletion).is_some();
        self.covering = (!has_form).then(|| Box::new(Covering::new(deletion)));
        let deletion = if has_form { deletion } else { DeletionTime::LIVE };
        partition.deletion = Some(deletion);
        partition.start = self.data.position();
        partition.previous = 0;
        partition.last.clear();
        partition.open = None;
        partition.block = None;
        partition.is_open = true;
        if self.first_key.is_none() {
            self.first_key = Some(key.to_vec());
        }
        let (h1, h2) = hash.halves;
        self.filter.add(h1, h2);
        self.statistics.start_partition(key, deletion);
        self.front(deletion, static_row)
    }

    /// Writes key, deletion and, in tables with static columns, the static row.
    fn front(&mut self, deletion: DeletionTime, static_row: Option<RowView<'_>>) -> Result<()> {
        let key = &self.partition.key;
        let unsupported = |what: String| Error::Unsupported { file: self.files.path(Component::Data), what };
        let len = u16::try_from(key.len()).map_err(|_| {
            unsupported(format!("a partition key of {} bytes; the longest is 65535", key.len()))
        })?;
        let deletion = self.encoder.layout().deletion_times.encode(deletion).ok_or_else(|| {
            let DeletionTime { timestamp_us, local_s } = deletion;
            unsupported(format!("a partition deletion with timestamp {timestamp_us} us at {local_s} s"))
        })?;
        self.out.clear();
        self.out.extend_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(deletion.as_slice());
        if !self.encoder.layout().statics.is_empty() {
            let static_row = match &mut self.covering {
                Some(covering) => Some(covering.row(static_row)),
                None => static_row,
            };
            let (data, version) = (Component::Data, self.descriptor.version);
            let static_row = static_row.map(|row| self.times.row(row)).transpose();
            let static_row = static_row.map_err(|late| late.error(self.files.path(data), version))?;
            let encoded = self.encoder.static_row(static_row, &mut self.out);
            encoded.map_err(|what| Error::RowTooLarge { key: key.clone(), what })?;
            if let Some(row) = static_row.filter(|row| !row.is_empty()) {
                self.statistics.static_row(row);
                look_at_counters(self.counts, row, &mut self.statistics);
            }
        }
        self.partition.head_bytes = self.out.len() as u64;
        self.data.write(&self.out)
    }

    fn too_late(&self, late: &TooLate) -> Error {
        late.error(self.files.path(Component::Data), self.descriptor.version)
    }

    /// Adds a row or marker, which must be after the one before. A row that is empty, or that has only cells of columns
    /// that the table no longer has, is left out.
    pub fn add(&mut self, element: Unfiltered<'_>) -> Result<()> {
        let Some(mut covering) = self.covering.take() else { return self.add_element(element) };
        let added = self.add_covered(&mut covering, element);
        self.covering = Some(covering);
        added
    }

    fn add_element(&mut self, element: Unfiltered<'_>) -> Result<()> {
        assert!(self.partition.is_open, "rows are added to a partition");
        let key = element.key();
        assert!(self.partition.last.as_slice() < key, "rows and markers are written in clustering order");
        let offset = self.data.position() - self.partition.start;
        let previous = offset - self.partition.previous;
        self.out.clear();
        let version = self.descriptor.version;
        let fit = match element {
            Unfiltered::Row(row) => self.times.row(row).map(Unfiltered::Row),
            Unfiltered::Marker(marker) => self.times.marker(marker).map(Unfiltered::Marker),
        };
        let element = fit.map_err(|late| late.error(self.files.path(Component::Data), version))?;
        match element {
            Unfiltered::Row(row) => {
                let encoded = self.encoder.row(row, previous, &mut self.out);
                let too_large = |what| Error::RowTooLarge { key: self.partition.key.clone(), what };
                if !encoded.map_err(too_large)? {
                    return Ok(());
                }
                self.statistics.row(row);
                look_at_counters(self.counts, row, &mut self.statistics);
            }
            Unfiltered::Marker(marker) => {
                self.encoder.marker(marker, previous, &mut self.out);
                self.statistics.marker(marker);
            }
        }
        self.data.write(&self.out)?;
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::new();
        }
        let layout = self.index.has_stored_positions().then(|| self.encoder.layout());
        self.partition.added(element, offset, layout);
        let end = self.data.position() - self.partition.start;
        match &self.partition.block {
            Some(block)
                if end - block.offset >= self.options.row_index_block_bytes
                    && self.index.can_begin_block(self.partition.open) =>
            {
                self.end_block()
            }
            _ => Ok(()),
        }
    }

    fn end_block(&mut self) -> Result<()> {
        let position = self.data.position();
        let partition = &mut self.partition;
        let Some(block) = partition.block.take() else { return Ok(()) };
        let is_stored = self.index.has_stored_positions();
        self.index.add_block(&BlockEnd {
            first: &partition.block_first,
            last: if is_stored { &partition.stored_last } else { &partition.last },
            offset: block.offset,
            width: position - partition.start - block.offset,
            open_before: block.open,
            open_behind: partition.open,
        })
    }

    /// Ends the partition.
    pub fn end_partition(&mut self) -> Result<()> {
        const END_OF_PARTITION: u8 = 0x01;
        assert!(self.partition.is_open, "a partition that ends has begun");
        if let Some(covering) = self.covering.take() {
            self.end_covered(*covering)?;
        }
        assert!(self.partition.open.is_none(), "every range tombstone is closed in its partition");
        self.partition.is_open = false;
        let end_offset = self.data.position() - self.partition.start;
        self.data.write(&[END_OF_PARTITION])?;
        if self.index.wants_last_block() {
            self.end_block()?;
        }
        let partition = &self.partition;
        self.index.end_partition(&Ended {
            key: &partition.key,
            decorated: &partition.decorated,
            hash_byte: partition.hash_byte,
            data_position: partition.start,
            head_bytes: partition.head_bytes,
            deletion: partition.deletion.unwrap_or(DeletionTime::LIVE),
            end_offset,
        })?;
        let bytes = self.data.position() - partition.start;
        self.statistics.end_partition(bytes);
        self.large.ended(&partition.key, bytes, self.statistics.tombstones());
        Ok(())
    }

    /// Writes the rest and makes every component and the folder durable. A writer without partitions should be aborted
    /// instead: Cassandra never writes such a table.
    pub fn finish(self) -> Result<Written> {
        let (written, unsynced) = self.write_out()?;
        unsynced.sync()?;
        Ok(written)
    }

    /// The same, but nothing is durable before `Unsynced::sync`. A caller that writes many tables can sync them
    /// together, which costs little more than one file.
    pub fn write_out(self) -> Result<(Written, Unsynced)> {
        assert!(!self.partition.is_open, "a table is finished between partitions");
        let SsTableWriter {
            mut files, options, data, index, filter, statistics, partition, descriptor, ..
        } = self;
        let data = data.finish()?;
        let first_key = self.first_key.unwrap_or_default();
        index.finish(&mut files, &first_key, &partition.key)?;
        let filter = filter.finish();
        if filter.is_informative() {
            let mut out = files.create(Component::Filter)?;
            filter.write(descriptor.version, &mut out)?;
            files.finished(Component::Filter, &out.finish()?);
        }
        files.data(&data)?;
        let hiding_us_max = statistics.hiding_us_max();
        let (partitions, mut stats) = statistics.finish();
        stats.compression_ratio = data.compression_ratio();
        stats.commit_log_intervals = options.commit_log_intervals;
        stats.originating_host_id = options.host_id;
        stats.level = options.level;
        stats.repaired_at_ms = options.repaired_at_ms;
        stats.first_key = first_key;
        stats.last_key = partition.key;
        let header = header(&options.table, options.encoding);
        stats.clustering_types = header.clustering_types.clone();
        let validation = Validation {
            partitioner: MURMUR3_PARTITIONER.to_owned(),
            bloom_filter_fp_chance: options.table.options.bloom_filter_fp_chance,
        };
        let statistics = Statistics { validation, partitions: Some(partitions), stats, header };
        files.small(Component::Statistics, &statistics.to_bytes(descriptor.version))?;
        let (components, size_on_disk, unsynced) = files.finish()?;
        let times_capped = self.times.capped;
        let large_partitions = self.large.into_found();
        let written = Written {
            descriptor,
            components,
            statistics,
            hiding_us_max,
            size_on_disk,
            times_capped,
            large_partitions,
        };
        Ok((written, unsynced))
    }

    /// Removes the files.
    pub fn abort(self) -> Result<()> {
        self.files.remove()
    }
}

impl Partition {
    /// Keeps what the next row or marker and the index need of the one that was just written. With a layout, stored
    /// positions too.
    fn added(&mut self, element: Unfiltered<'_>, offset: u64, stored_by: Option<&RowLayout>) {
        let key = element.key();
        if let Some(layout) = stored_by {
            self.stored_last.clear();
            layout.write_position(element, &mut self.stored_last);
        }
        if self.block.is_none() {
            self.block = Some(Block { offset, open: self.open });
            self.block_first.clear();
            self.block_first.extend_from_slice(if stored_by.is_some() { &self.stored_last } else { key });
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.previous = offset;
        if let Unfiltered::Marker(marker) = element {
            let MarkerEnds { close, open } = MarkerEnds::of(marker.marker);
            assert!(close == self.open, "a marker closes the range tombstone that is open before it");
            self.open = open;
        }
    }
}

/// Records whether counters have shards from before Cassandra 2.1, which only files of other programs have.
fn look_at_counters(counts: bool, row: RowView<'_>, statistics: &mut StatisticsCollector) {
    let is_old = |cell: &Cell| !cell.is_tombstone() && has_legacy_shards(row.value(cell));
    if counts && row.row.cells.iter().any(is_old) {
        statistics.legacy_counter_shards();
    }
}

/// The deletions that a marker closes and opens.
struct MarkerEnds {
    close: Option<DeletionTime>,
    open: Option<DeletionTime>,
}

impl MarkerEnds {
    fn of(marker: &helenus_model::range_tombstone::MarkerBuf) -> MarkerEnds {
        let some = |deletion: DeletionTime| Some(deletion).filter(|deletion| !deletion.is_live());
        MarkerEnds { close: some(marker.close), open: some(marker.open) }
    }
}

/// The header of a file with every column of the table.
fn header(table: &Table, encoding: EncodingStats) -> Header {
    let columns = |columns: &[Column]| {
        let header = |column: &Column| HeaderColumn {
            name: column.name.as_bytes().to_vec(),
            type_name: column.ty.class_name(),
        };
        columns.iter().map(header).collect()
    };
    let key_type = match table.partition_key.as_slice() {
        [column] => column.ty.class_name(),
        columns => composite_class_name(&columns.iter().map(|c| (c.ty.clone(), false)).collect::<Vec<_>>()),
    };
    Header {
        encoding,
        key_type,
        clustering_types: table.clustering.iter().map(|c| c.ty.class_name_ordered(c.reversed)).collect(),
        statics: columns(&table.statics),
        regulars: columns(&table.regulars),
    }
}
