//! The partitions that a read requests: by key, or by a range of the ring.

use crate::byte_comparable;
use crate::filter::{AFTER_ALL, BEFORE_ALL};
use crate::token::KeyHash;

/// A partition key with everything derived from it, computed once.
#[derive(Clone, Debug)]
pub struct PartitionKey {
    /// The serialised key.
    pub bytes: Vec<u8>,
    /// Token and filter hash.
    pub hash: KeyHash,
    /// Ordered encoding of token and key.
    pub decorated: Vec<u8>,
}

impl PartitionKey {
    /// From the serialised key.
    pub fn new(bytes: Vec<u8>) -> PartitionKey {
        let hash = KeyHash::of(&bytes);
        let mut decorated = Vec::with_capacity(bytes.len() + 12);
        byte_comparable::decorated_key(hash.token, &bytes, &mut decorated);
        PartitionKey { bytes, hash, decorated }
    }
}

/// The partitions to read.
#[derive(Clone, Debug)]
pub enum Partitions {
    /// These partitions, in this order.
    Keys(Vec<PartitionKey>),
    /// All partitions whose ordered position is in the range.
    Range(KeyRange),
}

/// A range of partitions by their ordered position (`byte_comparable::decorated_key` and its bounds): from `start`
/// (inclusive) to `end` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Lower position.
    pub start: Vec<u8>,
    /// Upper position.
    pub end: Vec<u8>,
}

impl KeyRange {
    /// Every partition.
    pub fn all() -> KeyRange {
        KeyRange { start: BEFORE_ALL.to_vec(), end: AFTER_ALL.to_vec() }
    }
}
