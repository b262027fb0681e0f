//! What a read asks of a partition: names or slices, direction, limits.
//!
//! Positions are ordered encodings, compared with memcmp (`byte_comparable`): a row's key ends with a terminator, a
//! bound is a prefix and a byte that sorts before or after everything with that prefix.

/// A position before every row.
pub const BEFORE_ALL: &[u8] = &[];
/// A position after every row: no ordered encoding begins with this byte.
pub const AFTER_ALL: &[u8] = &[0xFF];

/// A contiguous range of clusterings, `start <= key < end` in ordered bytes. Bounds never equal a row's key, so open
/// and closed ends need no flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Lower position.
    pub start: Vec<u8>,
    /// Upper position.
    pub end: Vec<u8>,
}

impl Slice {
    /// Everything.
    pub fn all() -> Slice {
        Slice { start: BEFORE_ALL.to_vec(), end: AFTER_ALL.to_vec() }
    }

    /// Whether nothing can lie within.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// Which rows of a partition are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusteringFilter {
    /// Rows by full clustering: ordered keys, ascending, without duplicates. Empty: only the static row.
    Names(Vec<Vec<u8>>),
    /// Ranges, ascending, not overlapping.
    Slices(Vec<Slice>),
}

/// How much to return at most.
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
