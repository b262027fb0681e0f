//! Deletions and expiry: when data was deleted, and whether its TTL has passed.
//!
//! Source: Cassandra's `DeletionTime`, `LivenessInfo` and `Cell`.

/// A deletion time: of the data that it covers, everything written at or before `timestamp_us` is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletionTime {
    /// Timestamp of the delete, microseconds; `i64::MIN` when nothing is deleted.
    pub timestamp_us: i64,
    /// Server time of the delete, seconds since the epoch; decides when the tombstone may be purged.
    pub local_s: i64,
}

impl DeletionTime {
    /// No deletion.
    pub const LIVE: DeletionTime = DeletionTime { timestamp_us: i64::MIN, local_s: i64::MAX };

    /// Whether this is no deletion.
    pub fn is_live(self) -> bool {
        self.timestamp_us == i64::MIN
    }

    /// Whether this deletion hides data written at `timestamp_us`.
    pub fn deletes(self, timestamp_us: i64) -> bool {
        timestamp_us <= self.timestamp_us
    }

    /// Whether this deletion replaces `other`: the greater timestamp, then the greater local time.
    pub fn supersedes(self, other: DeletionTime) -> bool {
        (self.timestamp_us, self.local_s) > (other.timestamp_us, other.local_s)
            && !(self.is_live() && other.is_live())
    }

    /// The stronger of two deletions.
    pub fn max(self, other: DeletionTime) -> DeletionTime {
        if other.supersedes(self) { other } else { self }
    }
}

/// The row marker that an INSERT writes: the row exists even without cells (Cassandra's primary key liveness).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    /// Timestamp, microseconds; `i64::MIN` when the row has no marker.
    pub timestamp_us: i64,
    /// TTL in seconds; 0 when it does not expire.
    pub ttl_s: i32,
    /// When it expires, seconds since the epoch; `NO_EXPIRY` without a TTL.
    pub expires_s: i64,
}

/// Local deletion time of data that is neither deleted nor expiring.
pub const NO_EXPIRY: i64 = i64::MAX;

/// The TTL that Cassandra gives to an expired liveness, which it keeps like a tombstone.
pub const EXPIRED_LIVENESS_TTL: i32 = i32::MAX;

impl Liveness {
    /// No marker.
    pub const NONE: Liveness = Liveness { timestamp_us: i64::MIN, ttl_s: 0, expires_s: NO_EXPIRY };

    /// A marker that never expires.
    pub fn at(timestamp_us: i64) -> Liveness {
        Liveness { timestamp_us, ttl_s: 0, expires_s: NO_EXPIRY }
    }

    /// Whether there is no marker.
    pub fn is_none(self) -> bool {
        self.timestamp_us == i64::MIN
    }

    /// Whether the marker keeps its row alive at `now_s`.
    pub fn is_live(self, now_s: i64) -> bool {
        !self.is_none() && (self.ttl_s == 0 || (self.ttl_s != EXPIRED_LIVENESS_TTL && now_s < self.expires_s))
    }

    /// Whether this marker replaces `other`.
    ///
    /// The greater timestamp wins. On a tie an expired marker beats any other, an expiring one beats a permanent one,
    /// then the later expiry wins, then the lower TTL (`LivenessInfo.supersedes`).
    pub fn supersedes(self, other: Liveness) -> bool {
        if self.timestamp_us != other.timestamp_us {
            return self.timestamp_us > other.timestamp_us;
        }
        let expired = |l: Liveness| l.ttl_s == EXPIRED_LIVENESS_TTL;
        if expired(self) != expired(other) {
            return expired(self);
        }
        if (self.ttl_s != 0) != (other.ttl_s != 0) {
            return self.ttl_s != 0;
        }
        self.expires_s > other.expires_s || (self.expires_s == other.expires_s && self.ttl_s < other.ttl_s)
    }
}
