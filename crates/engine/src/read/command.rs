//! The read command: what a read asks of the storage.

use helenus_model::cell::ColumnId;
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::schema::Table;
use std::sync::Arc;

pub use helenus_model::partitions::{KeyRange, PartitionKey, Partitions};

/// A read.
#[derive(Clone, Debug)]
pub struct ReadCommand {
    /// The table.
    pub table: Arc<Table>,
    /// Its partitions.
    pub partitions: Partitions,
    /// The rows of each partition.
    pub filter: Arc<ClusteringFilter>,
    /// Whether rows come in the reverse of the clustering order.
    pub reversed: bool,
    /// Whether the static row is read.
    pub statics: bool,
    /// The regular and static columns that the sink needs, each of a single-value type; `None` means all columns of the
    /// table. Cells of other columns may be missing: once these columns are found and the row is known to be alive,
    /// older SSTables are skipped.
    pub columns: Option<Arc<[ColumnId]>>,
    /// Limits of the read. Rows that the sink skips do not count.
    pub limits: Limits,
    /// Time of the read in seconds; it decides which cells have expired.
    pub now_s: i64,
    /// Where an earlier page ended.
    pub resume: Option<Resume>,
    /// Rows after which the page ends; `None` for a read without pages.
    pub page_rows: Option<u64>,
}

impl ReadCommand {
    /// Rows left of the command's limit after earlier pages.
    pub fn rows_left(&self) -> u64 {
        self.resume.as_ref().map_or(self.limits.rows, |resume| resume.rows_left)
    }

    /// The number of rows after which the read probably leaves a partition; `None` without a limit. It is an estimate,
    /// because rows that the sink skips do not count against limits.
    pub(super) fn likely_rows(&self) -> Option<u64> {
        let per_partition = self.limits.per_partition;
        Some(self.rows_left().min(per_partition).min(self.page_rows.unwrap_or(u64::MAX)))
            .filter(|rows| *rows < u64::MAX)
    }
}

/// The position where a page ended: after a row, or after a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The serialised key of the partition in which the page ended.
    pub key: Vec<u8>,
    /// Byte-comparable clustering of the last row visited; `None` when the partition was finished.
    pub clustering: Option<Vec<u8>>,
    /// Rows left of the command's limit. The next page uses this number instead of the limit.
    pub rows_left: u64,
    /// Rows left of the partition's limit, if the partition is not finished.
    pub rows_left_in_partition: u64,
    /// Whether rows of the partition were returned, if it is not finished. Until then its static row may still be the
    /// partition's only row: a page may end among dead rows before the first live one.
    pub has_given: bool,
}

/// Subtracts `rows` from a limit. `u64::MAX` means no limit and stays unchanged.
pub fn left_of(limit: u64, rows: u64) -> u64 {
    if limit == u64::MAX { limit } else { limit.saturating_sub(rows) }
}

/// The part of a filter that lies after a position in the direction of the read.
pub(super) fn filter_after(filter: &ClusteringFilter, position: &[u8], reversed: bool) -> ClusteringFilter {
    match filter {
        ClusteringFilter::Names(names) => {
            let left = names
                .iter()
                .filter(|name| if reversed { &name[..] < position } else { &name[..] > position });
            ClusteringFilter::Names(left.cloned().collect())
        }
        ClusteringFilter::Slices(slices) => {
            let mut behind = position.to_vec();
            behind.push(0);
            let cut = |slice: &Slice| {
                if reversed {
                    Slice { start: slice.start.clone(), end: slice.end.clone().min(position.to_vec()) }
                } else {
                    Slice { start: slice.start.clone().max(behind.clone()), end: slice.end.clone() }
                }
            };
            ClusteringFilter::Slices(slices.iter().map(cut).filter(|slice| !slice.is_empty()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(start: &[u8], end: &[u8]) -> Slice {
        Slice { start: start.to_vec(), end: end.to_vec() }
    }

    #[test]
    fn a_resumed_filter_begins_behind_the_last_row_in_either_direction() {
        let slices = ClusteringFilter::Slices(vec![slice(b"a", b"c"), slice(b"f", b"k")]);
        let after = filter_after(&slices, b"g", false);
        assert_eq!(after, ClusteringFilter::Slices(vec![slice(b"g\0", b"k")]));
        let before = filter_after(&slices, b"g", true);
        assert_eq!(before, ClusteringFilter::Slices(vec![slice(b"a", b"c"), slice(b"f", b"g")]));
        let names = ClusteringFilter::Names(vec![b"a".to_vec(), b"g".to_vec(), b"h".to_vec()]);
        assert_eq!(filter_after(&names, b"g", false), ClusteringFilter::Names(vec![b"h".to_vec()]));
        assert_eq!(filter_after(&names, b"g", true), ClusteringFilter::Names(vec![b"a".to_vec()]));
    }
}
