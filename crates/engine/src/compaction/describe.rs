//! Describes the SSTables of a view for the strategies.

use super::choose::SsTableInfo;
use helenus_sstable::names::SsTableId;
use helenus_sstable::table::SsTable;

/// Milliseconds from 1582-10-15, the epoch of the time UUIDs in names, to 1970.
const UUID_EPOCH_MS: i64 = 12_219_292_800_000;

/// Describes an SSTable; tombstones from before `gc_before_s` count as droppable.
pub(super) fn describe(table: &SsTable, gc_before_s: i64) -> SsTableInfo {
    let stats = table.stats();
    let created_ms = match table.descriptor().id {
        SsTableId::Time { ticks, .. } => (ticks / 10_000) as i64 - UUID_EPOCH_MS,
        SsTableId::Sequence(_) => 0,
    };
    // Like StatsMetadata.getEstimatedDroppableTombstoneRatio, which truncates the mean to a whole number.
    let cells = stats.partition_cells.mean().floor() * stats.partition_cells.count() as f64;
    let droppable = if cells > 0.0 { stats.tombstone_drop_times.sum_until(gc_before_s) / cells } else { 0.0 };
    SsTableInfo {
        id: *table.descriptor(),
        bytes: table.data_bytes(),
        first: table.first_decorated().to_vec(),
        last: table.last_decorated().to_vec(),
        tokens: table.tokens(),
        coverage: stats.token_space_coverage,
        timestamp_us_min: stats.timestamp_us_min,
        timestamp_us_max: stats.timestamp_us_max,
        local_deletion_s_max: stats.local_deletion_s_max,
        level: usize::try_from(stats.level).unwrap_or(0),
        created_ms,
        droppable,
    }
}
