//! A cell: one value of one column (of one path, in a collection), with its timestamp and expiry.
//!
//! Cells do not own bytes: path and value are spans into the data of the row that holds them.

use crate::deletion::{DeletionTime, NO_EXPIRY};

/// Number of a column within its table; stable while the table lives in this process, never reused in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

/// A run of bytes within a row's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes; `u32::MAX` for null.
    pub len: u32,
}

impl Span {
    /// No bytes, and not even an empty value.
    pub const NULL: Span = Span { start: 0, len: u32::MAX };
    /// An empty value.
    pub const EMPTY: Span = Span { start: 0, len: 0 };

    /// Whether this is null.
    pub fn is_null(self) -> bool {
        self.len == u32::MAX
    }

    /// The bytes, or `None` for null. A span outside `data` is a bug of who made it: it panics.
    pub fn get(self, data: &[u8]) -> Option<&[u8]> {
        if self.is_null() {
            None
        } else {
            Some(&data[self.start as usize..self.start as usize + self.len as usize])
        }
    }

    /// The bytes; null counts as empty.
    pub fn bytes(self, data: &[u8]) -> &[u8] {
        self.get(data).unwrap_or(&[])
    }
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its column.
    pub column: ColumnId,
    /// TTL in seconds; 0 without one.
    pub ttl_s: i32,
    /// Write timestamp, microseconds.
    pub timestamp_us: i64,
    /// When deleted (tombstone) or expiring, seconds since the epoch; `NO_EXPIRY` otherwise.
    pub local_deletion_s: i64,
    /// Path within a multi-cell column; null in a simple one.
    pub path: Span,
    /// The value; empty in a tombstone.
    pub value: Span,
}

impl Cell {
    /// Whether the cell records a deletion.
    pub fn is_tombstone(&self) -> bool {
        self.local_deletion_s != NO_EXPIRY && self.ttl_s == 0
    }

    /// Whether the cell has a TTL.
    pub fn is_expiring(&self) -> bool {
        self.ttl_s != 0
    }

    /// Whether a read at `now_s` sees the value.
    pub fn is_live(&self, now_s: i64) -> bool {
        self.local_deletion_s == NO_EXPIRY || (self.ttl_s != 0 && now_s < self.local_deletion_s)
    }

    /// Whether `deletion` hides the cell.
    pub fn is_deleted_by(&self, deletion: DeletionTime) -> bool {
        deletion.deletes(self.timestamp_us)
    }
}
