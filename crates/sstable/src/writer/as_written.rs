//! Derives the options for rewriting an SSTable from its own files, for tables without a known schema.

use super::WriterOptions;
use crate::statistics::Statistics;
use crate::table::Compression;
use helenus_model::schema::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The least bytes of a partition: the length of its key, its deletion, its end.
const PARTITION_BYTES_MIN: u64 = 4;

impl WriterOptions {
    /// Options like those with which an SSTable was written. `compression` comes from `compression_of`; `data_bytes` is
    /// the size of the data, which limits the number of partitions, because a damaged file may overstate that.
    pub fn as_written(
        table: &Table,
        statistics: &Statistics,
        (compression, data_bytes): (Option<Compression>, u64),
    ) -> WriterOptions {
        let mut schema = Table::clone(table);
        schema.options.bloom_filter_fp_chance = statistics.validation.bloom_filter_fp_chance;
        schema.options.compression = match compression {
            None => BTreeMap::from([("enabled".to_owned(), "false".to_owned())]),
            Some(compression) => BTreeMap::from([
                ("class".to_owned(), compression.class),
                ("chunk_length_in_kb".to_owned(), (compression.chunk_bytes / 1024).to_string()),
            ]),
        };
        let keys = statistics.stats.partition_sizes.count().min(data_bytes / PARTITION_BYTES_MIN);
        let mut options = WriterOptions::of_table(Arc::new(schema), keys, statistics.header.encoding);
        options.host_id = statistics.stats.originating_host_id;
        options
    }
}
