//! Options of the local backend. The binary fills them from its own; nothing here reads a file.

use crate::guardrails::Guardrails;
use crate::plan::batch::BatchLimits;
use helenus_model::schema::TableOptions;
use std::sync::Arc;

/// What a `LocalBackend` needs to know besides its database.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The server's datacenter: what `replication_factor` of a NetworkTopologyStrategy stands for.
    pub datacenter: Arc<str>,
    /// Options of tables that say nothing else.
    pub table_options: TableOptions,
    /// Memory for prepared statements, bytes (Cassandra's `prepared_statements_cache_size`).
    pub prepared_bytes_max: u64,
    /// Memory for statements that came as text, bytes.
    pub statements_bytes_max: u64,
    /// How large batches may be.
    pub batches: BatchLimits,
    /// Whether columns may be masked.
    pub masks_columns: bool,
    /// Whether tables may lose COMPACT STORAGE.
    pub drops_compact_storage: bool,
    /// Tombstones that a read may pass before its client is warned (`tombstone_warn_threshold`).
    pub tombstones_warn: u64,
    /// Tombstones that a read may pass before it fails (`tombstone_failure_threshold`).
    pub tombstones_fail: u64,
    /// Bytes that an answer without pages may have; pages end after a megabyte.
    pub answer_bytes_max: usize,
    /// What clients may not do.
    pub guardrails: Guardrails,
}

impl Default for LocalOptions {
    /// Datacenter `datacenter1`, tables as a stock Cassandra 5.0.9 makes them, 32 MiB and 8 MiB of statements.
    fn default() -> LocalOptions {
        let compaction = [
            ("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"),
            ("max_threshold", "32"),
            ("min_threshold", "4"),
        ];
        let compaction = compaction.map(|(key, value)| (key.to_owned(), value.to_owned()));
        LocalOptions {
            datacenter: "datacenter1".into(),
            table_options: TableOptions { compaction: compaction.into(), ..TableOptions::default() },
            prepared_bytes_max: 32 << 20,
            statements_bytes_max: 8 << 20,
            batches: BatchLimits::default(),
            masks_columns: false,
            drops_compact_storage: false,
            tombstones_warn: 1000,
            tombstones_fail: 100_000,
            answer_bytes_max: usize::MAX,
            guardrails: Guardrails::default(),
        }
    }
}
