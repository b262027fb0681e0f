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
