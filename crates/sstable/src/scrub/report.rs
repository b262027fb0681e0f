//! The report of a scrub.

use crate::names::Descriptor;

/// A part of an SSTable that could not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The partition's serialised key, if it could be read or if the index contains it.
    pub key: Option<Vec<u8>>,
    /// The kind of loss.
    pub lost: Lost,
    /// Its position in the data, before compression.
    pub position: u64,
    /// Its size in bytes, before compression.
    pub bytes: u64,
    /// The reason.
    pub problem: String,
}

/// The kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A partition or, if the index cannot tell where it ends, everything up to the end of the file.
    Partition,
    /// The static row, or the front of a partition whose rows were found by its row index.
    Front,
    /// The rows of a part of a partition.
    Rows,
    /// Everything from a position in a partition to its end.
    RestOfPartition,
    /// One row or range-tombstone bound.
    Element,
    /// A part of a range tombstone whose other end is lost.
    RangeTombstone,
}

impl Lost {
    /// The name in reports.
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

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// The new SSTables; none if nothing was kept. All but the first contain the partitions and rows that were out of
    /// order.
    pub written: Vec<Descriptor>,
    /// Number of partitions that were kept, whole or in part.
    pub partitions: u64,
    /// Number of rows that were kept.
    pub rows: u64,
    /// Number of partitions without content, which were left out.
    pub empty_partitions: u64,
    /// Number of partitions that came after a partition that they must precede.
    pub partitions_out_of_order: u64,
    /// Number of rows that came after a row that they must precede, or that came a second time.
    pub rows_out_of_order: u64,
    /// Number of rows, including static ones, whose overflowed expiry was repaired.
    pub rows_reinserted: u64,
    /// Number of times after 2038 that were replaced by the latest that the version can store. Data whose expiry
    /// overflowed lives until that time, as Cassandra 5.0 reads it too.
    pub times_capped: u64,
    /// Number of losses.
    pub losses: u64,
    /// Size of the losses in bytes, before compression.
    pub bytes_lost: u64,
    /// Size of the old SSTable's data in bytes, before compression.
    pub data_bytes: u64,
    /// Problems of the components other than Data.db.
    pub notes: Vec<String>,
}
