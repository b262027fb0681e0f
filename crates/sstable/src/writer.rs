//! Writes an SSTable: partitions in order, each with its rows and markers in order, to all its components.
//!
//! The layout is Cassandra's (`SortedTableWriter`, `SortedTablePartitionWriter`, `BtiFormatPartitionWriter`,
//! `BtiTableWriter`). Memory does not grow with a partition: what was added is encoded at once, and of an index block
//! only its first and last position are kept. Wrong order of what is added would make a file that answers wrongly, so
//! it is asserted in release too.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod files;

use crate::component::Component;
use crate::compression::DataWriter;
use crate::data::{Encoder, RowLayout};
use crate::error::{Error, Result};
use crate::filter::{Filter, hash_byte};
use crate::index_bti::{DeletionTimeBytes, PartitionEnd, PartitionIndexBuilder, RowIndexWriter};
use crate::names::Descriptor;
use crate::statistics::{
    CommitLogPosition, EncodingStats, Header, HeaderColumn, MURMUR3_PARTITIONER, Statistics,
    StatisticsCollector, Validation,
};
use files::Files;
use helenus_host::Disk;
use helenus_model::byte_comparable::decorated_key;
use helenus_model::cell::Cell;
use helenus_model::counter_context::has_legacy_shards;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, CompressionParams, Table};
use helenus_model::token::KeyHash;
use helenus_model::types::composite_class_name;
use helenus_model::unfiltered::Unfiltered;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// What is written how.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The table; its static and regular columns are the file's.
    pub table: Arc<Table>,
    /// About how many partitions will come; sizes the filter.
    pub estimated_keys: u64,
    /// The smallest timestamp, local deletion time and TTL that may come. Greater than true costs space only.
    pub encoding: EncodingStats,
    /// Bytes of rows after which the row index begins a new block.
    pub row_index_block_bytes: u64,
    /// Compression of Data.db.
    pub compression: CompressionParams,
    /// The server's host id.
    pub host_id: Option<Uuid>,
    /// What of the commit log the file makes unneeded.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Level of levelled compaction.
    pub level: i32,
}

/// Bytes of rows for an entry of the row index, where the table's extension does not say: an eighth of Cassandra's, which
/// reads either (`docs/decisions`, the granularity of the row index).
pub const ROW_INDEX_BLOCK_BYTES_DEFAULT: u64 = 2 * 1024;

impl WriterOptions {
    /// Options of a table as its own settings have them.
    pub fn of_table(table: Arc<Table>, estimated_keys: u64, encoding: EncodingStats) -> WriterOptions {
        WriterOptions {
            compression: table.options.compression_params(),
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
        }
    }
}

/// A finished table.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its names.
    pub descriptor: Descriptor,
    /// Its components, as TOC.txt lists them.
    pub components: Vec<Component>,
    /// What Statistics.db holds.
    pub statistics: Statistics,
    /// Bytes of all components.
    pub size_on_disk: u64,
}

/// A table being written.
pub struct SsTableWriter {
    descriptor: Descriptor,
    files: Files,
    options: WriterOptions,
    data: DataWriter,
    rows: RowIndexWriter,
    partitions: PartitionIndexBuilder,
    filter: Filter,
    statistics: StatisticsCollector,
    /// Whether the table holds counters.
    counts: bool,
    encoder: Encoder,
    partition: Partition,
    first_key: Option<Vec<u8>>,
    out: Vec<u8>,
}

/// The partition under way, or the last one.
#[derive(Default)]
struct Partition {
    is_open: bool,
    key: Vec<u8>,
    decorated: Vec<u8>,
    hash_byte: u8,
    deletion: Option<DeletionTime>,
    start: u64,
    /// Where the element before starts, from the partition's start; 0 before the first.
    previous: u64,
    /// Position of the element before; empty before the first.
    last: Vec<u8>,
    open: Option<DeletionTime>,
    block: Option<Block>,
    /// Position of the block's first element.
    block_first: Vec<u8>,
}

/// The index block under way.
struct Block {
    offset: u64,
    open: Option<DeletionTime>,
}

impl SsTableWriter {
    /// Creates the components of a new table in a folder.
    pub fn create(
        disk: Arc<dyn Disk>,
        folder: &Path,
        descriptor: Descriptor,
        options: WriterOptions,
    ) -> Result<SsTableWriter> {
        let mut files = Files::new(disk, folder, descriptor);
        let data = DataWriter::new(files.create(Component::Data)?, &options.compression)?;
        let rows = RowIndexWriter::new(files.create(Component::Rows)?);
        let partitions = PartitionIndexBuilder::new(files.create(Component::Partitions)?);
        let layout = RowLayout::of_table(&options.table, options.encoding);
        let fp_chance = options.table.options.bloom_filter_fp_chance;
        Ok(SsTableWriter {
            descriptor,
            files,
            data,
            rows,
            partitions,
            filter: Filter::with_capacity(options.estimated_keys.max(1), fp_chance),
            statistics: StatisticsCollector::default(),
            counts: options.table.is_counter(),
            encoder: Encoder::new(layout),
            partition: Partition::default(),
            first_key: None,
            out: Vec::new(),
            options,
        })
    }

    /// Bytes of Data.db so far, about.
    pub fn stored_bytes(&self) -> u64 {
        self.data.stored_bytes()
    }

    /// Begins a partition, which must come after the one before in token and key order.
    pub fn begin_partition(
        &mut self,
        key: &[u8],
        hash: &KeyHash,
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> Result<()> {
        let partition = &mut self.partition;
        assert!(!partition.is_open, "a partition ends before the next begins");
        self.out.clear();
        decorated_key(hash.token, key, &mut self.out);
        assert!(
            self.out > partition.decorated,
            "partitions are written in the order of their tokens and keys"
        );
        std::mem::swap(&mut partition.decorated, &mut self.out);
        partition.key.clear();
        partition.key.extend_from_slice(key);
        partition.hash_byte = hash_byte(hash.halves.1);
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
        let deletion = DeletionTimeBytes::new(deletion).ok_or_else(|| {
            let DeletionTime { timestamp_us, local_s } = deletion;
            unsupported(format!("a partition deletion with timestamp {timestamp_us} us at {local_s} s"))
        })?;
        self.out.clear();
        self.out.extend_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(deletion.as_slice());
        if !self.encoder.layout().statics.is_empty() {
            self.encoder.static_row(static_row, &mut self.out);
            if let Some(row) = static_row.filter(|row| !row.is_empty()) {
                self.statistics.static_row(row);
                self.look_at_counters(row);
            }
        }
        self.data.write(&self.out)
    }

    /// Notes counters with shards of before Cassandra 2.1, which only files of others bring.
    fn look_at_counters(&mut self, row: RowView<'_>) {
        let is_old = |cell: &Cell| !cell.is_tombstone() && has_legacy_shards(row.value(cell));
        if self.counts && row.row.cells.iter().any(is_old) {
            self.statistics.legacy_counter_shards();
        }
    }

    /// Adds a row or marker, which must come after the one before. A row without content, or with cells of columns
    /// only that the table no longer has, is left out.
    pub fn add(&mut self, element: Unfiltered<'_>) -> Result<()> {
        assert!(self.partition.is_open, "rows are added to a partition");
        let key = element.key();
        assert!(self.partition.last.as_slice() < key, "rows and markers are written in clustering order");
        let offset = self.data.position() - self.partition.start;
        let previous = offset - self.partition.previous;
        self.out.clear();
        match element {
            Unfiltered::Row(row) => {
                if !self.encoder.row(row, previous, &mut self.out) {
                    return Ok(());
                }
                self.statistics.row(row);
                self.look_at_counters(row);
            }
            Unfiltered::Marker(marker) => {
                self.encoder.marker(marker, previous, &mut self.out);
                self.statistics.marker(marker);
            }
        }
        self.data.write(&self.out)?;
        self.partition.added(element, offset);
        let end = self.data.position() - self.partition.start;
        match &self.partition.block {
            Some(block) if end - block.offset >= self.options.row_index_block_bytes => self.end_block(),
            _ => Ok(()),
        }
    }

    fn end_block(&mut self) -> Result<()> {
        let partition = &mut self.partition;
        let Some(block) = partition.block.take() else { return Ok(()) };
        self.rows.add_block(&partition.block_first, &partition.last, block.offset, block.open)
    }

    /// Ends the partition.
    pub fn end_partition(&mut self) -> Result<()> {
        const END_OF_PARTITION: u8 = 0x01;
        assert!(self.partition.is_open, "a partition that ends has begun");
        assert!(self.partition.open.is_none(), "every range tombstone is closed in its partition");
        self.partition.is_open = false;
        let end_offset = self.data.position() - self.partition.start;
        self.data.write(&[END_OF_PARTITION])?;
        if self.rows.block_count() > 0 {
            self.end_block()?;
        }
        let partition = &self.partition;
        let position = self.rows.finish_partition(&PartitionEnd {
            key: &partition.key,
            data_position: partition.start,
            deletion: partition.deletion.unwrap_or(DeletionTime::LIVE),
            end_offset,
        })?;
        self.partitions.add(&partition.decorated, partition.hash_byte, position)?;
        self.statistics.end_partition(self.data.position() - partition.start);
        Ok(())
    }

    /// Writes what is left and makes every component and the folder durable. A writer without partitions makes a table
    /// that Cassandra would not: `abort` it instead.
    pub fn finish(self) -> Result<Written> {
        assert!(!self.partition.is_open, "a table is finished between partitions");
        let SsTableWriter {
            mut files, options, data, rows, partitions, filter, statistics, partition, ..
        } = self;
        let data = data.finish()?;
        files.finished(Component::Rows, &rows.finish()?);
        let first_key = self.first_key.unwrap_or_default();
        files.finished(Component::Partitions, &partitions.finish(&first_key, &partition.key)?);
        if filter.is_informative() {
            let mut out = files.create(Component::Filter)?;
            filter.write(&mut out)?;
            files.finished(Component::Filter, &out.finish()?);
        }
        files.data(&data)?;
        let (partitions, mut stats) = statistics.finish();
        stats.compression_ratio = data.compression_ratio();
        stats.commit_log_intervals = options.commit_log_intervals;
        stats.originating_host_id = options.host_id;
        stats.level = options.level;
        stats.first_key = first_key;
        stats.last_key = partition.key;
        let header = header(&options.table, options.encoding);
        stats.clustering_types = header.clustering_types.clone();
        let validation = Validation {
            partitioner: MURMUR3_PARTITIONER.to_owned(),
            bloom_filter_fp_chance: options.table.options.bloom_filter_fp_chance,
        };
        let statistics = Statistics { validation, partitions, stats, header };
        files.small(Component::Statistics, &statistics.to_bytes())?;
        let (components, size_on_disk) = files.finish()?;
        Ok(Written { descriptor: self.descriptor, components, statistics, size_on_disk })
    }

    /// Removes what was written.
    pub fn abort(self) -> Result<()> {
        self.files.remove()
    }
}

impl Partition {
    /// Keeps what the next element and the index need of the one just written.
    fn added(&mut self, element: Unfiltered<'_>, offset: u64) {
        let key = element.key();
        if self.block.is_none() {
            self.block = Some(Block { offset, open: self.open });
            self.block_first.clear();
            self.block_first.extend_from_slice(key);
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

/// What a marker closes and opens.
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
