//! `Memtable`: the partitions of one memtable, looked up by key and read in token order.
//!
//! The top bits of a token select one of its shards, so the shards are in token order too. The first write of a
//! partition creates it and locks its shard for that. Every write locks its partition (the writer lock, `partition`).
//! Readers take no lock.

use super::arena::{Arena, MemoryAccount};
use super::partition::{ApplyScratch, WriterLock};
use super::partition_map::{Entry, MapWriter, PartitionMap, PartitionRef, SHARD_BITS};
use crate::check_mutation::TimeRange;
use crate::log_position::LogPosition;
use crate::sharded::{self, CacheLine, Sharded};
use helenus_model::byte_comparable;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::mutation::PartitionUpdate;
use helenus_model::token::Token;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Number of shards: enough that two cores seldom create partitions in the same one.
const SHARDS: usize = 1 << SHARD_BITS;

/// The recent writes of one table.
pub struct Memtable {
    sealed: OnceLock<LogPosition>,
    /// Server timestamps up to this were given out before the memtable's first write: older memtables may hold writes
    /// with them.
    begins_behind_us: i64,
    arena: Arena,
    /// In ring order.
    shards: [PartitionMap; SHARDS],
    /// The state and lock of each shard's writer.
    makers: [CacheLine<Mutex<MapWriter>>; SHARDS],
    stats: Sharded<Stats>,
    /// Whether anything was applied.
    is_dirty: AtomicBool,
}

/// Statistics that a flush needs before it writes, and that reads use to skip the memtable.
#[derive(Clone, Copy, Debug)]
pub struct MemtableStats {
    /// Least timestamp, microseconds; `i64::MAX` when empty.
    pub timestamp_us_min: i64,
    /// Greatest timestamp.
    pub timestamp_us_max: i64,
    /// Least local deletion time; `NO_EXPIRY` without tombstones and TTLs.
    pub local_deletion_s_min: i64,
    /// Least TTL; 0 without TTLs.
    pub ttl_s_min: i32,
    /// Number of partitions.
    pub partitions: u64,
    /// Number of rows, without static rows.
    pub rows: u64,
    /// Number of writes applied.
    pub writes: u64,
}

struct Stats {
    timestamp_us_min: AtomicI64,
    timestamp_us_max: AtomicI64,
    local_deletion_s_min: AtomicI64,
    ttl_s_min: AtomicI64,
    partitions: AtomicU64,
    rows: AtomicU64,
    writes: AtomicU64,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            timestamp_us_min: AtomicI64::new(i64::MAX),
            timestamp_us_max: AtomicI64::new(i64::MIN),
            local_deletion_s_min: AtomicI64::new(NO_EXPIRY),
            ttl_s_min: AtomicI64::new(i64::MAX),
            partitions: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        }
    }
}

impl Memtable {
    /// An empty memtable whose memory is added to `account`.
    pub fn new(account: &MemoryAccount) -> Memtable {
        Memtable::behind(account, i64::MIN)
    }

    /// The same, for writes with server timestamps after `begins_behind_us`.
    pub fn behind(account: &MemoryAccount, begins_behind_us: i64) -> Memtable {
        Memtable {
            sealed: OnceLock::new(),
            begins_behind_us,
            arena: Arena::new(account.clone()),
            shards: Default::default(),
            makers: Default::default(),
            stats: Sharded::default(),
            is_dirty: AtomicBool::new(false),
        }
    }

    /// Marks the memtable as complete: everything up to `position` of the log is in it or in older sources.
    pub fn seal(&self, position: LogPosition) {
        let sealed = self.sealed.set(position);
        assert!(sealed.is_ok(), "a memtable is sealed once");
    }

    /// The log position at which it was sealed.
    pub fn sealed_at(&self) -> Option<LogPosition> {
        self.sealed.get().copied()
    }
}

/// After changes larger than this, the buffers are dropped.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Buffers of the thread that applies changes. They are reused, except after large changes.
    static SCRATCH: RefCell<(ApplyScratch, Vec<u8>)> = RefCell::default();
}

impl Memtable {
    /// Locks the partition and applies changes to it. `extent` comes from the check of these changes; checked changes
    /// can always be applied. They are in the log already.
    pub(crate) fn apply(&self, update: &PartitionUpdate, token: Token, extent: &TimeRange) {
        let partition = self.get_or_create(token, &update.key);
        let writer_lock = partition.content().writer_lock();
        self.apply_in(&writer_lock, partition, update, (extent, LogPosition::START));
    }

    /// The partition of a write; created if it does not exist.
    pub fn get_or_create(&self, token: Token, key: &[u8]) -> PartitionRef<'_> {
        SCRATCH.with_borrow_mut(|(_, decorated)| {
            PartitionRef::new(self.partition_or_new(decorated, token, key, self.stats.of_this_thread()))
        })
    }

    /// Whether this server timestamp is above those of all plain writes before it.
    pub fn is_next(&self, writer_lock: &WriterLock<'_>, stamped_us: i64) -> bool {
        stamped_us > self.begins_behind_us && writer_lock.is_next(stamped_us)
    }

    /// Applies changes to a partition of this memtable, whose writer lock the caller holds. Their log record ends at
    /// `logged`.
    pub(crate) fn apply_in(
        &self,
        _turn: &WriterLock<'_>,
        partition: PartitionRef<'_>,
        update: &PartitionUpdate,
        (extent, logged): (&TimeRange, LogPosition),
    ) {
        SCRATCH.with_borrow_mut(|(scratch, _)| {
            let stats = self.stats.of_this_thread();
            stats.observe(extent);
            let changes = (&update.changes, logged);
            let applied = partition.content().apply(&self.arena, &update.table, changes, scratch);
            let Ok(added) = applied else { unreachable!("changes are checked before they are logged") };
            sharded::add(&stats.rows, added);
            sharded::add(&stats.writes, 1);
            if !self.is_dirty.load(Ordering::Relaxed) {
                self.is_dirty.store(true, Ordering::Release);
            }
            if update.changes.as_bytes().len() > KEPT_BYTES_MAX {
                *scratch = ApplyScratch::default();
            }
        })
    }

    /// Prefetches the memory in which the partition of this token is looked up, for a write that follows.
    pub fn prefetch(&self, token: Token) {
        self.shards[shard_of(token)].prefetch(token);
    }

    /// Whether nothing was applied yet.
    pub fn is_empty(&self) -> bool {
        !self.is_dirty.load(Ordering::Acquire)
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.arena.reserved_bytes()
    }

    /// Memory that writes have taken, for tests that count it exactly.
    #[cfg(test)]
    pub(super) fn used_bytes(&self) -> usize {
        self.arena.used_bytes()
    }

    /// Statistics of all that was applied.
    pub fn stats(&self) -> MemtableStats {
        let least = |of: fn(&Stats) -> &AtomicI64, none: i64| {
            self.stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).min().unwrap_or(none)
        };
        let sum = |of: fn(&Stats) -> &AtomicU64| -> u64 {
            self.stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum()
        };
        let greatest = self.stats.iter().map(|stats| stats.timestamp_us_max.load(Ordering::Relaxed)).max();
        let ttl = least(|stats| &stats.ttl_s_min, i64::MAX);
        MemtableStats {
            timestamp_us_min: least(|stats| &stats.timestamp_us_min, i64::MAX),
            timestamp_us_max: greatest.unwrap_or(i64::MIN),
            local_deletion_s_min: least(|stats| &stats.local_deletion_s_min, NO_EXPIRY),
            ttl_s_min: if ttl == i64::MAX { 0 } else { ttl as i32 },
            partitions: sum(|stats| &stats.partitions),
            rows: sum(|stats| &stats.rows),
            writes: sum(|stats| &stats.writes),
        }
    }

    /// Whether something that is deleted or expires may have this timestamp or a later one.
    pub(crate) fn may_have_tombstones_from(&self, timestamp_us: i64) -> bool {
        let has_some = |stats: &Stats| stats.local_deletion_s_min.load(Ordering::Relaxed) != NO_EXPIRY;
        let reaches = |stats: &Stats| stats.timestamp_us_max.load(Ordering::Relaxed) >= timestamp_us;
        self.stats.iter().any(reaches) && self.stats.iter().any(has_some)
    }

    /// A partition by token and serialised key.
    pub fn partition_of_key(&self, token: Token, key: &[u8]) -> Option<PartitionRef<'_>> {
        self.shards[shard_of(token)].get(token, key).map(PartitionRef::new)
    }

    /// The first partition at or after a position in ring order: a token, and the ordered encoding that begins with it.
    pub fn partition_at_or_after(&self, token: Token, decorated: &[u8]) -> Option<PartitionRef<'_>> {
        let shard = shard_of(token);
        let found = self.shards[shard].at_or_after(token, decorated);
        found.or_else(|| self.first_from(shard + 1)).map(PartitionRef::new)
    }

    /// The first partition in token order.
    pub fn first(&self) -> Option<PartitionRef<'_>> {
        self.first_from(0).map(PartitionRef::new)
    }

    /// The partition after this one.
    pub fn next(&self, partition: PartitionRef<'_>) -> Option<PartitionRef<'_>> {
        let shard = shard_of(partition.token());
        let next = self.shards[shard].after(partition.entry());
        next.or_else(|| self.first_from(shard + 1)).map(PartitionRef::new)
    }

    /// Calls `each` for every partition in ring order. Only for a sealed memtable.
    pub fn walk<'a, E>(&'a self, mut each: impl FnMut(PartitionRef<'a>) -> Result<(), E>) -> Result<(), E> {
        let mut each = |entry: &'a Entry| each(PartitionRef::new(entry));
        self.shards.iter().try_for_each(|shard| shard.walk(&mut each))
    }

    fn first_from(&self, shard: usize) -> Option<&Entry> {
        self.shards[shard..].iter().find_map(PartitionMap::first)
    }

    fn partition_or_new(&self, decorated: &mut Vec<u8>, token: Token, key: &[u8], stats: &Stats) -> &Entry {
        let number = shard_of(token);
        let shard = &self.shards[number];
        if let Some(entry) = shard.get(token, key) {
            return entry;
        }
        let mut maker = self.makers[number].lock();
        // Another writer may have created it meanwhile.
        if let Some(entry) = shard.get(token, key) {
            return entry;
        }
        decorated.clear();
        byte_comparable::decorated_key(token, key, decorated);
        sharded::add(&stats.partitions, 1);
        shard.insert(&mut maker, &self.arena, token, key, decorated)
    }
}

/// The shard of a token: its top bits, in ring order.
fn shard_of(token: Token) -> usize {
    (((token.0 as u64) ^ (1 << 63)) >> (u64::BITS - SHARD_BITS)) as usize
}

impl Stats {
    fn observe(&self, seen: &TimeRange) {
        // A write with a lower timestamp than all before it is rare.
        if seen.timestamp_us_min < self.timestamp_us_min.load(Ordering::Relaxed) {
            self.timestamp_us_min.fetch_min(seen.timestamp_us_min, Ordering::Relaxed);
        }
        if seen.timestamp_us_max > self.timestamp_us_max.load(Ordering::Relaxed) {
            self.timestamp_us_max.fetch_max(seen.timestamp_us_max, Ordering::Relaxed);
        }
        if seen.local_deletion_s_min != NO_EXPIRY {
            self.local_deletion_s_min.fetch_min(seen.local_deletion_s_min, Ordering::Relaxed);
        }
        if seen.ttl_s_min != i32::MAX {
            self.ttl_s_min.fetch_min(i64::from(seen.ttl_s_min), Ordering::Relaxed);
        }
    }
}
