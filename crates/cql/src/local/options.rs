//! Options of the local backend. The binary sets them from its configuration; nothing here reads a file.

use super::access::AccessOptions;
use crate::guardrails::Guardrails;
use crate::plan::batch::BatchLimits;
use helenus_model::schema::TableOptions;
use std::sync::Arc;

/// The options of a `LocalBackend`.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The server's datacenter: `replication_factor` of a NetworkTopologyStrategy applies to it.
    pub datacenter: Arc<str>,
    /// Default options of tables.
    pub table_options: TableOptions,
    /// Memory for prepared statements, bytes (Cassandra's `prepared_statements_cache_size`).
    pub prepared_bytes_max: u64,
    /// Memory for statements that were sent as text, bytes.
    pub statements_bytes_max: u64,
    /// Limits of batches.
    pub batches: BatchLimits,
    /// Whether columns may be masked.
    pub masks_columns: bool,
    /// Whether tables may lose COMPACT STORAGE.
    pub drops_compact_storage: bool,
    /// Tombstones in a read above which its client is warned (`tombstone_warn_threshold`).
    pub tombstones_warn: u64,
    /// Tombstones in a read above which it fails (`tombstone_failure_threshold`).
    pub tombstones_fail: u64,
    /// Maximum bytes of an answer without pages; pages end after a megabyte.
    pub answer_bytes_max: usize,
    /// Logins and permissions.
    pub access: AccessOptions,
    /// Restrictions for clients.
    pub guardrails: Guardrails,
    /// Whether those who log in and are no superusers are warned of tables with time windows and without TTL
    /// (`zero_ttl_on_twcs_warned`).
    pub warns_of_zero_ttl: bool,
}

impl Default for LocalOptions {
    /// Datacenter `datacenter1`, tables with the defaults of Cassandra 5.0.9, 32 MiB and 8 MiB for statements.
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
            access: AccessOptions::default(),
            guardrails: Guardrails::default(),
            warns_of_zero_ttl: true,
        }
    }
}
