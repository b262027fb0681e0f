//! A cell: one value of one column (or of one path of a collection), with its timestamp and expiry.
//!
//! Cells do not own bytes: path and value are spans into the data of the row that holds them.

use crate::deletion::{DeletionTime, NO_EXPIRY};

/// Number of a column in its table. It does not change while the process runs, and is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

/// A range of bytes in a row's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes; `u32::MAX` for null.
    pub len: u32,
}

impl Span {
    /// Null: no value, not even an empty one.
    pub const NULL: Span = Span { start: 0, len: u32::MAX };
    /// An empty value.
    pub const EMPTY: Span = Span { start: 0, len: 0 };

    /// Whether this is null.
    pub fn is_null(self) -> bool {
        self.len == u32::MAX
    }

    /// The bytes, or `None` for null. Panics if the span is outside `data`, which is a bug of the code that made it.
    pub fn get(self, data: &[u8]) -> Option<&[u8]> {
        if self.is_null() {
            None
        } else {
            Some(&data[self.start as usize..self.start as usize + self.len as usize])
        }
    }

    /// The bytes; empty for null.
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
    /// Local deletion time of a tombstone, or the expiry, in seconds since the epoch; `NO_EXPIRY` otherwise.
    pub local_deletion_s: i64,
    /// Path in a multi-cell column; null in a simple column.
    pub path: Span,
    /// The value; empty in a tombstone.
    pub value: Span,
}

impl Cell {
    /// Whether the cell is a tombstone.
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
