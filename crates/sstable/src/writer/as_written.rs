//! Derives the options for rewriting an SSTable from its own files, for tables without a known schema.

use super::WriterOptions;
use crate::statistics::Statistics;
use helenus_model::schema::{CompressionParams, Table};
use std::sync::Arc;

/// The least bytes of a partition: the length of its key, its deletion, its end.
const PARTITION_BYTES_MIN: u64 = 4;

impl WriterOptions {
    /// Options like those with which an SSTable was written: filter, compression, repair state, level, host id.
    /// `data_bytes` is the size of the data, which limits the number of partitions, because a damaged file may overstate
    /// that.
    pub fn as_written(
        table: &Table,
        statistics: &Statistics,
        (compression, data_bytes): (CompressionParams, u64),
    ) -> WriterOptions {
        let mut schema = Table::clone(table);
        schema.options.bloom_filter_fp_chance = statistics.validation.bloom_filter_fp_chance;
        // Both histograms have an entry for each partition, and nothing protects them before `na`.
        let (sizes, cells) = (&statistics.stats.partition_sizes, &statistics.stats.partition_cells);
        let keys = sizes.count().min(cells.count()).min(data_bytes / PARTITION_BYTES_MIN);
        let mut options = WriterOptions::of_table(Arc::new(schema), keys, statistics.header.encoding);
        options.compression = compression;
        options.host_id = statistics.stats.originating_host_id;
        options.repaired_at_ms = statistics.stats.repaired_at_ms;
        options.level = statistics.stats.level;
        options
    }
}
