//! What a read asks, in storage terms.

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
    /// Rows of each partition.
    pub filter: Arc<ClusteringFilter>,
    /// Against the clustering order.
    pub reversed: bool,
    /// Whether the static row is asked for.
    pub statics: bool,
    /// The regular and static columns that the sink looks at, of one value each; `None` for all of the table. Of the others
    /// there may be cells or not: a row that is known to be alive is not looked for in SSTables that are older than these.
    pub columns: Option<Arc<[ColumnId]>>,
    /// How much at most. Rows that the sink skips do not count.
    pub limits: Limits,
    /// The moment of the read, seconds: decides what has expired.
    pub now_s: i64,
    /// Where an earlier page ended.
    pub resume: Option<Resume>,
    /// Rows after which the page ends.
    pub page_rows: Option<u64>,
}

impl ReadCommand {
    /// Rows of the whole limit that earlier pages have left.
    pub fn rows_left(&self) -> u64 {
        self.resume.as_ref().map_or(self.limits.rows, |resume| resume.rows_left)
    }

    /// Rows of a partition after which it is likely to be left: rows that the sink skips do not count among them. `None` if
    /// nothing limits them.
    pub(super) fn likely_rows(&self) -> Option<u64> {
        let per_partition = self.limits.per_partition;
        Some(self.rows_left().min(per_partition).min(self.page_rows.unwrap_or(u64::MAX)))
            .filter(|rows| *rows < u64::MAX)
    }
}

/// Where a page ended: behind a row, or behind a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The serialised key of the partition it ended in.
    pub key: Vec<u8>,
    /// Ordered clustering of the last row looked at; `None` when the partition was finished.
    pub clustering: Option<Vec<u8>>,
    /// Rows of the whole limit that are left. The next page has this instead of the command's limit.
    pub rows_left: u64,
    /// The same of this partition, where rows of it are left.
    pub rows_left_in_partition: u64,
}

/// What is left of a limit after so many rows; `u64::MAX` is no limit, and stays.
pub fn left_of(limit: u64, rows: u64) -> u64 {
    if limit == u64::MAX { limit } else { limit.saturating_sub(rows) }
}

/// What is left of a filter behind a position, in the direction of the read.
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
