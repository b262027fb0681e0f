//! Features that can be disabled (`EnableFlag`).

use crate::error::{CqlError, Result};

/// A feature that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// `ALLOW FILTERING`.
    AllowFiltering,
    /// `GROUP BY`.
    GroupBy,
    /// `USING TIMESTAMP`.
    UserTimestamps,
    /// ALTER TABLE that changes columns.
    AlterTable,
    /// DROP TABLE and TRUNCATE.
    DropTruncateTable,
    /// DROP KEYSPACE.
    DropKeyspace,
    /// Keyspaces with SimpleStrategy.
    SimpleStrategy,
    /// Tables without compression.
    UncompressedTables,
    /// `WITH COMPACT STORAGE`.
    CompactTables,
    /// CREATE INDEX.
    SecondaryIndexes,
    /// Columns of vectors.
    VectorType,
    /// Time-window compaction without a default TTL.
    ZeroTtlOnTwcs,
    /// List operations that read first.
    ReadBeforeWriteLists,
    /// Reads through an index without a restricted partition key.
    IndexWithoutPartition,
}

/// Key in cassandra.yaml, the guardrail's name, the refused feature, the reason.
type Entry = (Feature, &'static str, &'static str, &'static str, &'static str);

/// From `Guardrails.java` and its callers.
const FEATURES: &[Entry] = &[
    (
        Feature::AllowFiltering,
        "allow_filtering_enabled",
        "allow_filtering",
        "Querying with ALLOW FILTERING",
        "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.",
    ),
    (Feature::GroupBy, "group_by_enabled", "group_by", "GROUP BY functionality", ""),
    (
        Feature::UserTimestamps,
        "user_timestamps_enabled",
        "user_timestamps",
        "User provided timestamps (USING TIMESTAMP)",
        "",
    ),
    (Feature::AlterTable, "alter_table_enabled", "alter_table", "ALTER TABLE changing columns", ""),
    (
        Feature::DropTruncateTable,
        "drop_truncate_table_enabled",
        "drop_truncate_table_enabled",
        "DROP and TRUNCATE TABLE functionality",
        "",
    ),
    (
        Feature::DropKeyspace,
        "drop_keyspace_enabled",
        "drop_keyspace_enabled",
        "DROP KEYSPACE functionality",
        "",
    ),
    (Feature::SimpleStrategy, "simplestrategy_enabled", "simplestrategy", "SimpleStrategy", ""),
    (
        Feature::UncompressedTables,
        "uncompressed_tables_enabled",
        "uncompressed_tables_enabled",
        "Uncompressed table",
        "",
    ),
    (
        Feature::CompactTables,
        "compact_tables_enabled",
        "compact_tables",
        "Creation of new COMPACT STORAGE tables",
        "",
    ),
    (
        Feature::SecondaryIndexes,
        "secondary_indexes_enabled",
        "secondary_indexes",
        "Creating secondary indexes",
        "",
    ),
    // Cassandra prints the column here.
    (Feature::VectorType, "vector_type_enabled", "vector_type_enabled", "usage of the vector type", ""),
    // Cassandra prints the operation here.
    (
        Feature::ReadBeforeWriteLists,
        "read_before_write_list_operations_enabled",
        "read_before_write_list_operations",
        "List operation requiring read before write",
        "",
    ),
    (
        Feature::IndexWithoutPartition,
        "non_partition_restricted_index_query_enabled",
        "non_partition_restricted_index_query_enabled",
        "Non-partition key restricted query",
        "Executing a query on secondary indexes without partition key restriction might degrade performance",
    ),
    (
        Feature::ZeroTtlOnTwcs,
        "zero_ttl_on_twcs_enabled",
        "zero_ttl_on_twcs",
        "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy",
        "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind \
         that data will not start to automatically expire after they are older than a respective compaction window \
         unit of a certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired \
         as table settings will not do it. ",
    ),
];

impl Feature {
    /// The feature of a key in cassandra.yaml.
    pub fn of_key(key: &str) -> Option<Feature> {
        FEATURES.iter().find(|entry| entry.1 == key).map(|entry| entry.0)
    }

    /// Cassandra's warning of a feature that is not recommended.
    pub(crate) fn warning(self) -> Option<String> {
        let (_, _, guardrail, feature, reason) = FEATURES.iter().find(|entry| entry.0 == self)?;
        Some(decorated(guardrail, &format!("{feature} is not recommended"), reason))
    }

    /// Refuses the feature with Cassandra's message; `what` replaces the feature's name in it.
    ///
    /// # Errors
    /// Always.
    pub(super) fn refuse<T>(self, what: Option<&str>) -> Result<T> {
        let Some((_, _, guardrail, feature, reason)) = FEATURES.iter().find(|entry| entry.0 == self) else {
            return Err(CqlError::Invalid("this is not allowed".to_owned()));
        };
        let message = format!("{} is not allowed", what.unwrap_or(feature));
        Err(CqlError::Invalid(decorated(guardrail, &message, reason)))
    }
}

/// The message of `Guardrail.decorateMessage`.
pub(super) fn decorated(guardrail: &str, message: &str, reason: &str) -> String {
    let join = match (reason.is_empty(), message.ends_with('.')) {
        (true, _) => "",
        (false, true) => " ",
        (false, false) => ". ",
    };
    format!("Guardrail {guardrail} violated: {message}{join}{reason}")
}
