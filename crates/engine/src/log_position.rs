//! Positions in the commit log. Memtables keep them, to tell which records they cover.

/// A position in the log: segment number and byte offset. Positions are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// Before all records.
    pub const START: LogPosition = LogPosition(0);

    /// From a segment's number and an offset in it.
    pub fn new(segment: u32, offset: u32) -> LogPosition {
        LogPosition(u64::from(segment) << 32 | u64::from(offset))
    }

    /// The segment's number.
    pub fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Bytes from the segment's start.
    pub fn offset(self) -> u32 {
        self.0 as u32
    }
}
