//! Notes the partitions of a file being written that pass limits of size or of tombstones, for the operator's log.

/// The most partitions that one file notes; their keys stay in memory until it is finished.
const NOTED_MAX: usize = 100;

/// Limits beyond which a partition is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLimits {
    /// Bytes in Data.db, before compression.
    pub bytes: u64,
    /// Deletions of the partition, its rows, ranges and cells.
    pub tombstones: u64,
}

impl PartitionLimits {
    /// No partition is noted.
    pub const NONE: PartitionLimits = PartitionLimits { bytes: u64::MAX, tombstones: u64::MAX };
}

/// A partition that passes a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargePartition {
    /// Its serialised key.
    pub key: Vec<u8>,
    /// Its bytes.
    pub bytes: u64,
    /// Its tombstones.
    pub tombstones: u64,
}

/// The partitions that were noted so far.
#[derive(Debug)]
pub(super) struct Noted {
    limits: PartitionLimits,
    found: Vec<LargePartition>,
}

impl Noted {
    pub(super) fn new(limits: PartitionLimits) -> Noted {
        Noted { limits, found: Vec::new() }
    }

    #[inline]
    pub(super) fn ended(&mut self, key: &[u8], bytes: u64, tombstones: u64) {
        let passes = bytes > self.limits.bytes || tombstones > self.limits.tombstones;
        if passes && self.found.len() < NOTED_MAX {
            self.found.push(LargePartition { key: key.to_vec(), bytes, tombstones });
        }
    }

    pub(super) fn into_found(self) -> Vec<LargePartition> {
        self.found
    }
}
