//! Options for writing a table anew as its files were written, where nothing but the files tells.

use super::WriterOptions;
use crate::statistics::Statistics;
use crate::table::Compression;
use helenus_model::schema::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Fewer bytes no partition has: the length of its key, its deletion, its end.
const PARTITION_BYTES_MIN: u64 = 4;

impl WriterOptions {
    /// By what an SSTable of so many bytes of data says of itself; `compression` is what `compression_of` gives. The number of
    /// partitions, which a damaged file may overstate, is no greater than the data allows.
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
