//! The stats part of Statistics.db, in the layouts of all versions (Cassandra's `StatsMetadata`).

use super::clustering_range::ClusteringRange;
use super::histogram::EstimatedHistogram;
use super::input::{Input, write_vint_bytes, write_vint_texts};
use super::tombstone_histogram::TombstoneHistogram;
use crate::deletion_time::{INVALID_LOCAL_S, SIGNED_LOCAL_S_MAX};
use crate::error::Result;
use crate::version::Version;
use helenus_model::deletion::NO_EXPIRY;
use uuid::Uuid;

/// A position in the commit log of the node that wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitLogPosition {
    /// The segment's number.
    pub segment: i64,
    /// The offset in it.
    pub position: i32,
}

impl CommitLogPosition {
    /// No position.
    pub const NONE: CommitLogPosition = CommitLogPosition { segment: -1, position: 0 };
}

/// Statistics of a file's content.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Sizes of partitions in bytes.
    pub partition_sizes: EstimatedHistogram,
    /// Numbers of cells of partitions.
    pub partition_cells: EstimatedHistogram,
    /// The commit log intervals that are no longer needed because the file has their content; from and to, ascending.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Smallest timestamp in microseconds; `i64::MIN` if there is none.
    pub timestamp_us_min: i64,
    /// Greatest timestamp in microseconds; `i64::MAX` if there is none.
    pub timestamp_us_max: i64,
    /// Smallest local deletion time in seconds; `NO_EXPIRY` if nothing is deleted or expires.
    pub local_deletion_s_min: i64,
    /// Greatest local deletion time in seconds; `NO_EXPIRY` if anything is neither deleted nor expires.
    pub local_deletion_s_max: i64,
    /// Smallest TTL in seconds; 0 for none.
    pub ttl_s_min: i32,
    /// Greatest TTL in seconds.
    pub ttl_s_max: i32,
    /// Compressed divided by uncompressed size; -1 if the file is not compressed.
    pub compression_ratio: f64,
    /// The times at which tombstones and expiring data become droppable.
    pub tombstone_drop_times: TombstoneHistogram,
    /// Level of levelled compaction.
    pub level: i32,
    /// Time of the repair, in milliseconds since 1970; 0 for never.
    pub repaired_at_ms: i64,
    /// Class names of the clustering columns' types; empty in versions before `oa`.
    pub clustering_types: Vec<String>,
    /// The range of the file's clusterings.
    pub clustering_range: ClusteringRange,
    /// Whether counters have shards from before Cassandra 2.1.
    pub has_legacy_counter_shards: bool,
    /// Number of columns with a value, summed over rows.
    pub columns_set: i64,
    /// Number of rows, including static ones.
    pub rows: i64,
    /// The repair session for which the file waits.
    pub pending_repair: Option<Uuid>,
    /// Whether the replica was transient.
    pub is_transient: bool,
    /// Host id of the node that wrote the file.
    pub originating_host_id: Option<Uuid>,
    /// Whether there are partition deletions; before `oa`, whether there may be some.
    pub has_partition_deletions: bool,
    /// Serialised key of the first partition; empty before `oa`.
    pub first_key: Vec<u8>,
    /// Serialised key of the last partition; empty before `oa`.
    pub last_key: Vec<u8>,
    /// Part of the token ring that the file covers; NaN if unknown.
    pub token_space_coverage: f64,
}

impl Stats {
    pub(super) fn write(&self, version: Version, out: &mut Vec<u8>) {
        let none = CommitLogPosition::NONE;
        self.partition_sizes.write(out);
        self.partition_cells.write(out);
        write_position(self.commit_log_intervals.last().map_or(none, |(_, to)| *to), out);
        out.extend_from_slice(&self.timestamp_us_min.to_be_bytes());
        out.extend_from_slice(&self.timestamp_us_max.to_be_bytes());
        write_deletion_time(self.local_deletion_s_min, version, out);
        write_deletion_time(self.local_deletion_s_max, version, out);
        out.extend_from_slice(&self.ttl_s_min.to_be_bytes());
        out.extend_from_slice(&self.ttl_s_max.to_be_bytes());
        out.extend_from_slice(&self.compression_ratio.to_be_bytes());
        self.tombstone_drop_times.write(version, out);
        out.extend_from_slice(&self.level.to_be_bytes());
        out.extend_from_slice(&self.repaired_at_ms.to_be_bytes());
        if version.has_clustering_values() {
            self.clustering_range.write_values(out);
        } else {
            write_vint_texts(&self.clustering_types, out);
            self.clustering_range.write(&self.clustering_types, out);
        }
        out.push(u8::from(self.has_legacy_counter_shards));
        out.extend_from_slice(&self.columns_set.to_be_bytes());
        out.extend_from_slice(&self.rows.to_be_bytes());
        if version.has_commit_log_start() {
            write_position(self.commit_log_intervals.first().map_or(none, |(from, _)| *from), out);
        }
        if version.has_commit_log_intervals() {
            out.extend_from_slice(&(self.commit_log_intervals.len() as u32).to_be_bytes());
            for (from, to) in &self.commit_log_intervals {
                write_position(*from, out);
                write_position(*to, out);
            }
        }
        if version.has_repair_session() {
            write_uuid(self.pending_repair, out);
            out.push(u8::from(self.is_transient));
        }
        if version.has_host_id() {
            write_uuid(self.originating_host_id, out);
        }
        if version.has_key_range() {
            out.push(u8::from(self.has_partition_deletions));
            write_vint_bytes(&self.first_key, out);
            write_vint_bytes(&self.last_key, out);
            out.extend_from_slice(&self.token_space_coverage.to_be_bytes());
            // Cassandra reserves 16 bytes for each point of the tombstone histogram, writes 12, and stores all 16.
            out.resize(out.len() + 4 * self.tombstone_drop_times.points.len(), 0);
        }
    }

    pub(super) fn read(input: &mut Input<'_>, version: Version) -> Result<Stats> {
        Stats::read_noting(input, version).map(|(stats, _)| stats)
    }

    /// The stats, and the offset of the level in the file.
    pub(super) fn read_noting(input: &mut Input<'_>, version: Version) -> Result<(Stats, u64)> {
        let partition_sizes = EstimatedHistogram::read(input)?;
        let partition_cells = EstimatedHistogram::read(input)?;
        let log_end = read_position(input)?;
        let (timestamp_us_min, timestamp_us_max) = (input.i64()?, input.i64()?);
        let (local_deletion_s_min, local_deletion_s_max) =
            (read_deletion_time(input, version)?, read_deletion_time(input, version)?);
        let (ttl_s_min, ttl_s_max) = (input.i32()?, input.i32()?);
        let compression_ratio = input.f64()?;
        let tombstone_drop_times = TombstoneHistogram::read(input, version)?;
        let level_at = input.at();
        let level = input.i32()?;
        let repaired_at_ms = input.i64()?;
        let (clustering_types, clustering_range) = read_clusterings(input, version)?;
        let has_legacy_counter_shards = input.bool()?;
        let (columns_set, rows) = (input.i64()?, input.i64()?);
        let commit_log_intervals = read_intervals(input, version, log_end)?;
        let mut stats = Stats {
            partition_sizes,
            partition_cells,
            commit_log_intervals,
            timestamp_us_min,
            timestamp_us_max,
            local_deletion_s_min,
            // A time that has overflowed is negative (CASSANDRA-14092), and what has it is alive until the last time there
            // is. Cassandra 5.0 compares these bounds as they are, and drops such a file as expired.
            local_deletion_s_max: match local_deletion_s_min.min(local_deletion_s_max) < 0 {
                true => local_deletion_s_max.max(INVALID_LOCAL_S),
                false => local_deletion_s_max,
            },
            ttl_s_min,
            ttl_s_max,
            compression_ratio,
            tombstone_drop_times,
            level,
            repaired_at_ms,
            clustering_types,
            clustering_range,
            has_legacy_counter_shards,
            columns_set,
            rows,
            pending_repair: None,
            is_transient: false,
            originating_host_id: None,
            // Versions that do not store it can only exclude partition deletions if there are no deletions at all.
            has_partition_deletions: local_deletion_s_min != NO_EXPIRY,
            first_key: Vec::new(),
            last_key: Vec::new(),
            token_space_coverage: f64::NAN,
        };
        if version.has_repair_session() {
            stats.pending_repair = read_uuid(input)?;
            stats.is_transient = input.bool()?;
        }
        if version.has_host_id() {
            stats.originating_host_id = read_uuid(input)?;
        }
        if version.has_key_range() {
            stats.has_partition_deletions = input.bool()?;
            stats.first_key = input.vint_bytes()?.to_vec();
            stats.last_key = input.vint_bytes()?.to_vec();
            stats.token_space_coverage = input.f64()?;
        }
        Ok((stats, level_at))
    }
}

/// The clustering types, which early versions do not store, and the range.
fn read_clusterings(input: &mut Input<'_>, version: Version) -> Result<(Vec<String>, ClusteringRange)> {
    if !version.has_clustering_values() {
        let types = input.vint_texts()?;
        let range = ClusteringRange::read(&types, input)?;
        return Ok((types, range));
    }
    let range = ClusteringRange::read_values(input)?;
    Ok((Vec::new(), if version.has_right_clusterings() { range } else { ClusteringRange::all() }))
}

/// The commit log intervals. Early versions store one interval, and the earliest only its end.
fn read_intervals(
    input: &mut Input<'_>,
    version: Version,
    end: CommitLogPosition,
) -> Result<Vec<(CommitLogPosition, CommitLogPosition)>> {
    let none = CommitLogPosition::NONE;
    let start = if version.has_commit_log_start() { read_position(input)? } else { none };
    if !version.has_commit_log_intervals() {
        return Ok(if end == none { Vec::new() } else { vec![(start, end)] });
    }
    let count = input.u32()?;
    let count = input.count(u64::from(count), 24)?;
    (0..count).map(|_| Ok((read_position(input)?, read_position(input)?))).collect()
}

fn write_position(position: CommitLogPosition, out: &mut Vec<u8>) {
    out.extend_from_slice(&position.segment.to_be_bytes());
    out.extend_from_slice(&position.position.to_be_bytes());
}

fn read_position(input: &mut Input<'_>) -> Result<CommitLogPosition> {
    Ok(CommitLogPosition { segment: input.i64()?, position: input.i32()? })
}

/// Writes seconds as an unsigned 32-bit number, with all ones for `NO_EXPIRY`; in early versions as a signed number,
/// with the greatest for `NO_EXPIRY`.
fn write_deletion_time(seconds: i64, version: Version, out: &mut Vec<u8>) {
    let number = match (seconds, version.has_unsigned_deletion_times()) {
        (NO_EXPIRY, true) => u32::MAX,
        (NO_EXPIRY, false) => i32::MAX as u32,
        (seconds, true) => seconds as u32,
        (seconds, false) => seconds.min(SIGNED_LOCAL_S_MAX) as u32,
    };
    out.extend_from_slice(&number.to_be_bytes());
}

fn read_deletion_time(input: &mut Input<'_>, version: Version) -> Result<i64> {
    if !version.has_unsigned_deletion_times() {
        return Ok(match input.i32()? {
            i32::MAX => NO_EXPIRY,
            seconds => i64::from(seconds),
        });
    }
    Ok(match input.u32()? {
        u32::MAX => NO_EXPIRY,
        seconds => i64::from(seconds),
    })
}

fn write_uuid(uuid: Option<Uuid>, out: &mut Vec<u8>) {
    out.push(u8::from(uuid.is_some()));
    if let Some(uuid) = uuid {
        out.extend_from_slice(uuid.as_bytes());
    }
}

fn read_uuid(input: &mut Input<'_>) -> Result<Option<Uuid>> {
    if input.bool()? { Ok(Some(input.uuid()?)) } else { Ok(None) }
}
