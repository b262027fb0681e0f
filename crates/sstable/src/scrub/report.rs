//! What a scrub tells.

use crate::names::Descriptor;

/// Something that could not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The partition's serialised key, if it could be read or the index has it.
    pub key: Option<Vec<u8>>,
    /// What is gone.
    pub lost: Lost,
    /// Where in the data, before compression.
    pub position: u64,
    /// Bytes of it, before compression.
    pub bytes: u64,
    /// Why.
    pub problem: String,
}

/// What is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A partition or, where no index tells, everything up to the end of the file.
    Partition,
    /// The static row, and with it the front of a partition of which the rows were found by its index.
    Front,
    /// The rows of a stretch of a partition.
    Rows,
    /// Everything from a place of a partition to its end.
    RestOfPartition,
    /// One row or range-tombstone bound.
    Element,
    /// A part of a range tombstone that has lost its other end.
    RangeTombstone,
}

impl Lost {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Lost::Partition => "partition",
            Lost::Front => "front_of_partition",
            Lost::Rows => "rows",
            Lost::RestOfPartition => "rest_of_partition",
            Lost::Element => "row",
            Lost::RangeTombstone => "range_tombstone",
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// The new SSTables; none if nothing was left. All but the first hold what was out of order.
    pub written: Vec<Descriptor>,
    /// Partitions that were kept, whole or in part.
    pub partitions: u64,
    /// Rows that were kept.
    pub rows: u64,
    /// Partitions with nothing in them, left out.
    pub empty_partitions: u64,
    /// Partitions that came before one that they should follow.
    pub partitions_out_of_order: u64,
    /// Rows that came before one that they should follow, or for the second time.
    pub rows_out_of_order: u64,
    /// Rows, static ones included, whose time of expiry had overflowed and that were written again.
    pub rows_reinserted: u64,
    /// Times after 2038 that became the latest which the version has. What had expired then by its own reckoning, after an
    /// overflow, lives until that time, as Cassandra 5.0 reads it too.
    pub times_capped: u64,
    /// Number of losses.
    pub losses: u64,
    /// Bytes of them, before compression.
    pub bytes_lost: u64,
    /// What is wrong with components besides Data.db.
    pub notes: Vec<String>,
}
