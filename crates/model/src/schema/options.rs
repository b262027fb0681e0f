//! Table options, with the names and defaults of Cassandra 5.0 (`TableParams`).

use std::collections::BTreeMap;

/// Options of a table as given in WITH. Maps keep Cassandra's own keys and full class names.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Policy of extra writes; stored but without effect on a single node.
    pub additional_write_policy: String,
    /// Snapshot on drop and truncate.
    pub allow_auto_snapshot: bool,
    /// False-positive rate that the Bloom filter aims at.
    pub bloom_filter_fp_chance: f64,
    /// `keys` and `rows_per_partition`.
    pub caching: BTreeMap<String, String>,
    /// Change capture.
    pub cdc: bool,
    /// Free text.
    pub comment: String,
    /// `class` and the strategy's options.
    pub compaction: BTreeMap<String, String>,
    /// `class`, `chunk_length_in_kb` and the compressor's options; `enabled: false` for none.
    pub compression: BTreeMap<String, String>,
    /// Fraction of reads that check the chunk's checksum.
    pub crc_check_chance: f64,
    /// TTL of writes without one, seconds; 0 for none.
    pub default_time_to_live_s: i32,
    /// Extensions: bytes by name, for other programs.
    pub extensions: BTreeMap<String, Vec<u8>>,
    /// How long tombstones are kept for replicas, seconds.
    pub gc_grace_seconds: i32,
    /// Incremental backups.
    pub incremental_backups: bool,
    /// Index sampling; stored but without effect on a single node.
    pub max_index_interval: i32,
    /// Name of the memtable configuration.
    pub memtable: Option<String>,
    /// Flush after this long, milliseconds; 0 for never.
    pub memtable_flush_period_in_ms: i32,
    /// Index sampling; stored but without effect on a single node.
    pub min_index_interval: i32,
    /// Read repair; stored but without effect on a single node.
    pub read_repair: String,
    /// Speculative retry; stored but without effect on a single node.
    pub speculative_retry: String,
}

/// Default `gc_grace_seconds`: ten days.
pub const GC_GRACE_SECONDS_DEFAULT: i32 = 864_000;

impl Default for TableOptions {
    fn default() -> TableOptions {
        let map =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        TableOptions {
            additional_write_policy: "99p".into(),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: 0.01,
            caching: map(&[("keys", "ALL"), ("rows_per_partition", "NONE")]),
            cdc: false,
            comment: String::new(),
            compaction: map(&[
                ("class", "org.apache.cassandra.db.compaction.UnifiedCompactionStrategy"),
                ("max_sstables_to_compact", "64"),
                ("min_sstable_size", "100MiB"),
                ("scaling_parameters", "T4"),
                ("sstable_growth", "0.3333333333333333"),
                ("target_sstable_size", "1GiB"),
            ]),
            compression: map(&[
                ("chunk_length_in_kb", "16"),
                ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
            ]),
            crc_check_chance: 1.0,
            default_time_to_live_s: 0,
            extensions: BTreeMap::new(),
            gc_grace_seconds: GC_GRACE_SECONDS_DEFAULT,
            incremental_backups: true,
            max_index_interval: 2048,
            memtable: None,
            memtable_flush_period_in_ms: 0,
            min_index_interval: 128,
            read_repair: "BLOCKING".into(),
            speculative_retry: "99p".into(),
        }
    }
}

/// Compression of a table's data files, parsed from `TableOptions::compression`.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionParams {
    /// Short or full class name of the compressor; `None` for no compression.
    pub class: Option<String>,
    /// Bytes of a chunk before compression; a power of two.
    pub chunk_bytes: u32,
    /// A chunk that compression does not bring below this size is stored uncompressed (`i32::MAX`: always compressed).
    pub max_compressed_bytes: u32,
    /// The compressor's own options.
    pub options: BTreeMap<String, String>,
}

impl CompressionParams {
    /// The most bytes of a chunk, for statements, the writer and readers alike: 256 MiB. A reader and a writer hold a
    /// whole chunk in memory, and its compressed form. Cassandra's own check takes up to 1 GiB.
    pub const CHUNK_BYTES_MAX: u32 = 256 << 20;
}

impl TableOptions {
    /// The compression parameters. Invalid text means the default chunk length; statements validate it earlier.
    pub fn compression_params(&self) -> CompressionParams {
        let map = &self.compression;
        let enabled = map.get("enabled").is_none_or(|v| v.eq_ignore_ascii_case("true"));
        let class = map.get("class").or_else(|| map.get("sstable_compression"));
        let class = class.filter(|c| enabled && !c.is_empty()).cloned();
        let kib: u32 = map.get("chunk_length_in_kb").and_then(|v| v.parse().ok()).unwrap_or(16);
        let ratio: f64 = map.get("min_compress_ratio").and_then(|v| v.parse().ok()).unwrap_or(0.0);
        let chunk_bytes = kib.saturating_mul(1024).max(1024);
        let max_compressed_bytes =
            if ratio <= 0.0 { i32::MAX as u32 } else { (f64::from(chunk_bytes) / ratio).ceil() as u32 };
        let own = ["class", "sstable_compression", "chunk_length_in_kb", "min_compress_ratio", "enabled"];
        let options = map
            .iter()
            .filter(|(k, _)| !own.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        CompressionParams { class, chunk_bytes, max_compressed_bytes, options }
    }
}

/// Name of the extension that sets the row index granularity: the bytes of rows for one index entry. Cassandra keeps
/// unknown extensions, so a schema with it loads there unchanged.
pub const ROW_INDEX_GRANULARITY: &str = "helenus.row_index_granularity";

/// Name of a CREATE TABLE extension with the `flags` of `system_schema.tables`, separated by commas, for tables whose
/// columns and COMPACT STORAGE do not determine them. It is not stored as an extension; the flags are. From the same
/// statement Cassandra makes a table without COMPACT STORAGE, whose files have the same rows.
pub const FLAGS_EXTENSION: &str = "helenus.flags";

/// Name of a CREATE TABLE extension with the declared name of the column whose real name is empty, which CQL cannot
/// write.
pub const UNNAMED_COLUMN_EXTENSION: &str = "helenus.unnamed_column";

/// Prefix of a CREATE TABLE extension that describes a dropped column; the column's name follows. The value is the time
/// of the drop in microseconds, `static` or `regular`, and the type.
pub const DROPPED_COLUMN_EXTENSION: &str = "helenus.dropped_column.";

/// Smallest and largest granularity. Below a kibibyte the index costs more than it saves; Cassandra's
/// `column_index_size` allows far more than the largest, but there an index has no use.
pub const ROW_INDEX_GRANULARITY_BYTES: (u64, u64) = (1 << 10, 16 << 20);

/// The error for a value that is not a valid granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidGranularity;

/// Parses the value of the extension: a number of bytes with Cassandra's unit (`4KiB`, `1MiB`) or without one.
pub fn row_index_granularity(value: &[u8]) -> Result<u64, InvalidGranularity> {
    let text = std::str::from_utf8(value).map_err(|_| InvalidGranularity)?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_bytes: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return Err(InvalidGranularity),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_bytes));
    let (least, most) = ROW_INDEX_GRANULARITY_BYTES;
    bytes.filter(|bytes| (least..=most).contains(bytes)).ok_or(InvalidGranularity)
}

impl TableOptions {
    /// Bytes of rows for one entry of the row index, if the table sets it. Statements check the value; an invalid value
    /// from another source counts as absent.
    pub fn row_index_block_bytes(&self) -> Option<u64> {
        self.extensions.get(ROW_INDEX_GRANULARITY).and_then(|value| row_index_granularity(value).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_granularity_is_read_in_bytes_and_in_units_and_nothing_else_is() {
        for (text, bytes) in [("4KiB", 4096), ("1024", 1024), (" 16MiB ", 16 << 20), ("65536B", 65_536)] {
            assert_eq!(row_index_granularity(text.as_bytes()), Ok(bytes));
        }
        for text in ["", "KiB", "4kb", "1023", "17MiB", "-4KiB", "4 KiB", "99999999999999999999"] {
            assert_eq!(row_index_granularity(text.as_bytes()), Err(InvalidGranularity), "{text}");
        }
        assert_eq!(row_index_granularity(&[0xFF]), Err(InvalidGranularity));
    }

    #[test]
    fn a_table_without_the_extension_leaves_the_granularity_open() {
        let mut options = TableOptions::default();
        assert_eq!(options.row_index_block_bytes(), None);
        options.extensions.insert(ROW_INDEX_GRANULARITY.into(), b"1KiB".to_vec());
        assert_eq!(options.row_index_block_bytes(), Some(1024));
    }
}
