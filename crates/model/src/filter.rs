//! What a read requests of a partition: names or slices, direction, limits.
//!
//! Positions are ordered encodings, compared with memcmp (`byte_comparable`). A row's key ends with a terminator. A
//! bound is a prefix followed by a byte that sorts before or after everything with that prefix.

/// A position before every row.
pub const BEFORE_ALL: &[u8] = &[];
/// A position after every row: no ordered encoding begins with this byte.
pub const AFTER_ALL: &[u8] = &[0xFF];

/// A contiguous range of clusterings, `start <= key < end` in ordered bytes. A bound never equals a row's key, so
/// inclusive and exclusive ends need no flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Lower position.
    pub start: Vec<u8>,
    /// Upper position.
    pub end: Vec<u8>,
}

impl Slice {
    /// The whole partition.
    pub fn all() -> Slice {
        Slice { start: BEFORE_ALL.to_vec(), end: AFTER_ALL.to_vec() }
    }

    /// Whether no position lies in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// The rows of a partition that a read requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusteringFilter {
    /// Rows by full clustering: ordered keys, ascending, without duplicates. An empty list requests only the static
    /// row.
    Names(Vec<Vec<u8>>),
    /// Ranges, ascending and not overlapping.
    Slices(Vec<Slice>),
}

impl ClusteringFilter {
    /// Whether it requests every row.
    pub fn is_everything(&self) -> bool {
        let is_all = |slice: &Slice| slice.start == BEFORE_ALL && slice.end == AFTER_ALL;
        matches!(self, ClusteringFilter::Slices(slices) if slices.iter().any(is_all))
    }

    /// Whether it requests the row with this ordered key.
    pub fn selects(&self, key: &[u8]) -> bool {
        match self {
            ClusteringFilter::Names(names) => names.binary_search_by(|name| name[..].cmp(key)).is_ok(),
            ClusteringFilter::Slices(slices) => {
                let before = slices.partition_point(|slice| &slice.start[..] <= key);
                before
                    .checked_sub(1)
                    .and_then(|last| slices.get(last))
                    .is_some_and(|slice| key < &slice.end[..])
            }
        }
    }
}

/// The maximum number of rows to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows in all.
    pub rows: u64,
    /// Rows of each partition.
    pub per_partition: u64,
}

impl Limits {
    /// No limit.
    pub const NONE: Limits = Limits { rows: u64::MAX, per_partition: u64::MAX };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_selected_by_its_name_or_by_the_slice_around_it() {
        let all: Vec<Vec<u8>> = (0..12_u8).map(|byte| vec![byte]).collect();
        let slice = |start: u8, end: u8| Slice { start: vec![start], end: vec![end] };
        let by_slices = ClusteringFilter::Slices(vec![slice(1, 3), slice(3, 4), slice(7, 9)]);
        let by_names = ClusteringFilter::Names(vec![vec![1], vec![2], vec![3], vec![7], vec![8]]);
        for filter in [by_slices, by_names] {
            let selected: Vec<u8> = all.iter().filter(|key| filter.selects(key)).map(|key| key[0]).collect();
            assert_eq!(selected, [1, 2, 3, 7, 8], "{filter:?}");
        }
        assert!(!ClusteringFilter::Slices(Vec::new()).selects(&[1]));
        assert!(ClusteringFilter::Slices(vec![Slice::all()]).selects(&[]));
    }
}
