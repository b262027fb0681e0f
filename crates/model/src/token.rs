//! Tokens: a partition's position on the ring, computed from its key as `Murmur3Partitioner` does.

use std::fmt;

use crate::murmur3::murmur3_x64_128;

/// A position on the ring. Partitions are ordered by token, then by the bytes of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

impl Token {
    /// Before every partition. Only the empty key has this token.
    pub const MIN: Token = Token(i64::MIN);
    /// The greatest token.
    pub const MAX: Token = Token(i64::MAX);

    /// The token of a serialised partition key.
    pub fn of_key(key: &[u8]) -> Token {
        KeyHash::of(key).token
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The result of hashing a partition key once: its token, and both halves of the hash for Bloom filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    /// Token of the key, normalised.
    pub token: Token,
    /// Both halves of the hash, not normalised.
    pub halves: (i64, i64),
}

impl KeyHash {
    /// Hashes a serialised partition key. `i64::MIN` is reserved for the empty key: a hash of that value becomes the
    /// greatest token (`Murmur3Partitioner.normalize`).
    pub fn of(key: &[u8]) -> KeyHash {
        let halves = murmur3_x64_128(key, 0);
        let token = if key.is_empty() {
            Token::MIN
        } else if halves.0 == i64::MIN {
            Token::MAX
        } else {
            Token(halves.0)
        };
        KeyHash { token, halves }
    }
}
