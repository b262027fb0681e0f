//! Partition locks for writes that depend on a read. They are held from the read until the write is in the log and the
//! memtable. Counter updates, conditional statements and operations on lists lock; plain writes do not, but none of
//! them comes between such a read and its write.
//!
//! How plain writes are kept out:
//! 1. A caller that locks sets `after_us` of each lock to `LOCKED`, then waits until every write that is within the
//!    gate has left (`WriteGate::wait_for_current`). The read that follows sees those writes.
//! 2. A plain write checks `after_us` within the gate, before its log record. The gate's own locks order the two: a
//!    write that enters after step 1 finds `LOCKED`, leaves, and waits for the lock. No fence is needed for that, and
//!    a partition that nobody locks costs its writes one load.
//! 3. Unlocking sets `after_us` to the last server timestamp that was given out. A plain write with an earlier or
//!    equal timestamp would be hidden by the locked write although it is applied later, so it gets a new timestamp. So
//!    server timestamps have the order in which locked and plain writes of a partition are applied.
//!
//! A lock is held during a read and an apply, never during a sync. Partitions share a fixed number of locks, so
//! unrelated partitions may wait for each other. A caller that needs several locks takes them in index order. So there
//! is no deadlock, as long as nobody locks while holding a lock, or within the gate.

use super::reading::ReadRequest;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::timestamps::Timestamps;
use crate::write_gate::WriteGate;
use helenus_host::account;
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Number of locks of a database. A batch of counters or conditions may hold some thousand of them while it reads from the
/// disk, and a write to any other partition must seldom meet one of these: a batch of 1,000 partitions holds 6 %. They
/// take 9 bytes each, 144 KiB, from the start on.
const LOCKS: usize = 16_384;

/// How long a caller that may not block waits for a lock. Most locks are held for a few microseconds, and starting
/// over on another thread takes longer than that.
const SPIN_MAX: Duration = Duration::from_micros(200);

/// How often a caller that waits for a lock checks its deadline, its client, and whether other requests wait for its
/// memory.
const LOOK: Duration = Duration::from_millis(10);

/// Value of `after_us` while the lock is held.
const LOCKED: i64 = i64::MAX;

/// The locks.
pub(super) struct PartitionLocks {
    locks: Box<[Mutex<()>]>,
    /// For each lock: plain writes with this timestamp or an earlier one are refused. Kept apart from the locks, so
    /// that the cache lines that plain writes read change only when somebody locks.
    after_us: Box<[AtomicI64]>,
}

/// Holds the locks of some partitions until it is dropped.
#[must_use = "a lock that is dropped at once keeps nobody out"]
pub struct PartitionLock<'a> {
    held: Vec<(MutexGuard<'a, ()>, &'a AtomicI64)>,
    timestamps: &'a Timestamps,
    may_block: bool,
}

impl PartitionLock<'_> {
    /// Whether its holder may block.
    pub(super) fn may_block(&self) -> bool {
        self.may_block
    }
}

impl Drop for PartitionLock<'_> {
    fn drop(&mut self) {
        let last_us = self.timestamps.last_us();
        for (_, after_us) in &self.held {
            after_us.store(last_us, Ordering::Release);
        }
    }
}

impl PartitionLocks {
    pub(super) fn new() -> PartitionLocks {
        PartitionLocks {
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            after_us: (0..LOCKS).map(|_| AtomicI64::new(i64::MIN)).collect(),
        }
    }

    /// Whether a plain write may be applied to a partition: nobody holds its lock, and nobody has released it since
    /// `stamped_us`. The caller is within the gate.
    pub(super) fn admits(&self, table: TableId, token: Token, stamped_us: i64) -> bool {
        self.after_us
            .get(lock_of(table, token))
            .is_none_or(|after_us| after_us.load(Ordering::Acquire) < stamped_us)
    }

    /// Admits every timestamp from now on, after timestamps were set back. The caller has the gate closed.
    pub(super) fn reset(&self) {
        for after_us in &self.after_us {
            let _ = after_us
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |us| (us != LOCKED).then_some(i64::MIN));
        }
    }

    fn take<'a>(
        &'a self,
        (gate, timestamps): (&WriteGate, &'a Timestamps),
        partitions: impl Iterator<Item = (TableId, Token)>,
        (may_block, interrupt): (bool, &dyn Fn() -> Result<()>),
    ) -> Result<PartitionLock<'a>> {
        let mut wanted: Vec<usize> = partitions.map(|(table, token)| lock_of(table, token)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut taken = PartitionLock { held: Vec::with_capacity(wanted.len()), timestamps, may_block };
        for (lock, after_us) in
            wanted.iter().filter_map(|index| self.locks.get(*index).zip(self.after_us.get(*index)))
        {
            let guard = match may_block {
                true => wait_for(lock, interrupt)?,
                false => lock.try_lock_for(SPIN_MAX).ok_or(Error::WouldBlock)?,
            };
            after_us.store(LOCKED, Ordering::Relaxed);
            taken.held.push((guard, after_us));
        }
        gate.wait_for_current();
        Ok(taken)
    }
}

/// Waits for a lock until `interrupt` fails. The lock's holder may be waiting for memory that this request holds; then
/// this request fails and retries later.
fn wait_for<'l>(lock: &'l Mutex<()>, interrupt: &dyn Fn() -> Result<()>) -> Result<MutexGuard<'l, ()>> {
    loop {
        if let Some(guard) = lock.try_lock_for(LOOK) {
            return Ok(guard);
        }
        interrupt()?;
        account::give_way()?;
    }
}

fn lock_of(table: TableId, token: Token) -> usize {
    // Tokens are hashes already. The table's id is mixed in, so that equal keys of two tables use different locks.
    let id = table.0.as_u128();
    // Tables that one node has made differ in the upper half alone.
    let mixed = (token.0 as u64) ^ (id as u64) ^ (id >> 64) as u64;
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % LOCKS
}

impl Shared {
    /// Locks partitions. A wait ends at the request's deadline, or after the timeout of a read by key, and when its
    /// client is gone.
    pub(super) fn lock_partition(
        &self,
        partitions: impl Iterator<Item = (TableId, Token)>,
        request: ReadRequest<'_>,
    ) -> Result<PartitionLock<'_>> {
        let clock = &self.host.clock;
        let own_ns = self.timeouts.own_ns(true);
        let deadline_ns = request.deadline_ns.or_else(|| Some(clock.monotonic_ns().saturating_add(own_ns?)));
        let interrupt = || match deadline_ns {
            _ if request.is_cancelled() => Err(Error::Cancelled),
            Some(deadline_ns) if clock.monotonic_ns() >= deadline_ns => Err(Error::TimedOut),
            _ => Ok(()),
        };
        self.partition_locks.take((&self.gate, &self.timestamps), partitions, (request.may_block, &interrupt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn partition(token: i64) -> (TableId, Token) {
        (TableId(uuid::Uuid::nil()), Token(token))
    }

    /// Locks without a database.
    struct Alone {
        locks: PartitionLocks,
        gate: WriteGate,
        timestamps: Timestamps,
    }

    impl Alone {
        fn new() -> Alone {
            let clock = helenus_host::sim::Machine::new(1).host().clock;
            Alone {
                locks: PartitionLocks::new(),
                gate: WriteGate::default(),
                timestamps: Timestamps::new(clock, 0),
            }
        }

        fn take(
            &self,
            partitions: impl Iterator<Item = (TableId, Token)>,
            may_block: bool,
        ) -> Result<PartitionLock<'_>> {
            self.locks.take((&self.gate, &self.timestamps), partitions, (may_block, &|| Ok(())))
        }

        fn admits(&self, token: i64, stamped_us: i64) -> bool {
            let _gate = self.gate.enter();
            let (table, token) = partition(token);
            self.locks.admits(table, token, stamped_us)
        }
    }

    #[test]
    fn a_held_lock_keeps_others_out_until_it_is_given_back() {
        let alone = Alone::new();
        let held = alone.take([partition(1), partition(2), partition(1)].into_iter(), false);
        assert!(held.is_ok());
        assert!(matches!(alone.take([partition(2)].into_iter(), false), Err(Error::WouldBlock)));
        drop(held);
        assert!(alone.take([partition(2)].into_iter(), false).is_ok());
    }

    #[test]
    fn a_batch_of_a_thousand_partitions_leaves_nearly_all_others_free() {
        let alone = Alone::new();
        let token = |n: i64| n.wrapping_mul(0x5851_F42D_4C95_7F2D);
        let held = alone.take((0..1000).map(|n| partition(token(n))), false).unwrap();
        let others = 1000..2000;
        let kept_out = others.filter(|n| !alone.admits(token(*n), i64::MAX - 1)).count();
        assert!(kept_out <= 100, "{kept_out} of 1000 other partitions wait for the batch");
        drop(held);
    }

    #[test]
    fn a_wait_for_a_lock_ends_when_its_request_does_and_leaves_the_locks_it_has() {
        let alone = Alone::new();
        let held = alone.take([partition(2)].into_iter(), true).unwrap();
        let looks = std::cell::Cell::new(0);
        let interrupt = || {
            looks.set(looks.get() + 1);
            if looks.get() < 3 { Ok(()) } else { Err(Error::TimedOut) }
        };
        let wanted = [partition(1), partition(2), partition(3)].into_iter();
        let taken = alone.locks.take((&alone.gate, &alone.timestamps), wanted, (true, &interrupt));
        assert!(matches!(taken, Err(Error::TimedOut)) && looks.get() == 3);
        assert!(alone.take([partition(1), partition(3)].into_iter(), false).is_ok());
        drop(held);
    }

    #[test]
    fn a_plain_write_passes_only_a_lock_that_was_given_back_before_it_was_stamped() {
        let alone = Alone::new();
        let before_us = alone.timestamps.next().unwrap().timestamp_us;
        assert!(alone.admits(1, before_us), "nobody has locked");
        let held = alone.take([partition(1)].into_iter(), false).unwrap();
        assert!(!alone.admits(1, i64::MAX - 1), "somebody holds the lock");
        assert!(alone.admits(2, before_us), "of another partition");
        let within_us = alone.timestamps.next().unwrap().timestamp_us;
        drop(held);
        assert!(
            !alone.admits(1, before_us) && !alone.admits(1, within_us),
            "stamped before it was given back"
        );
        assert!(alone.admits(1, alone.timestamps.next().unwrap().timestamp_us));
    }

    #[test]
    fn a_lock_that_was_refused_in_part_is_given_back() {
        let alone = Alone::new();
        let held = alone.take([partition(2)].into_iter(), false).unwrap();
        assert!(alone.take([partition(1), partition(2), partition(3)].into_iter(), false).is_err());
        let later_us = alone.timestamps.next().unwrap().timestamp_us;
        assert!(alone.admits(1, later_us) && alone.admits(3, later_us) && !alone.admits(2, later_us));
        drop(held);
    }

    #[test]
    fn locks_of_many_partitions_in_any_order_neither_meet_nor_lock_each_other_out() {
        let (alone, count) = (Alone::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_i64 {
                let (alone, count) = (&alone, &count);
                scope.spawn(move || {
                    for round in 0..500 {
                        let tokens = (0..8).map(|step| partition((round * 7 + step * (thread + 1)) % 13));
                        let _turn = alone.take(tokens.chain([partition(99)]), true);
                        // Partition 99 is locked in every round, so a load and a store lose nothing.
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2000);
    }

    #[test]
    fn plain_writes_never_come_between_the_read_and_the_write_of_who_holds_the_lock() {
        let alone = Alone::new();
        // Plain writes store their timestamps; the lock holder must find the same value at its end.
        let value = AtomicI64::new(0);
        let per_thread = if cfg!(miri) { 50 } else { 3000 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..per_thread {
                        let stamped_us = alone.timestamps.next().unwrap().timestamp_us;
                        let _gate = alone.gate.enter();
                        if alone.locks.admits(partition(1).0, partition(1).1, stamped_us) {
                            std::thread::yield_now();
                            value.store(stamped_us, Ordering::Relaxed);
                        }
                    }
                });
                scope.spawn(|| {
                    for _ in 0..per_thread / 10 {
                        let _turn = alone.take([partition(1)].into_iter(), true);
                        let found = value.load(Ordering::Relaxed);
                        std::thread::yield_now();
                        assert_eq!(value.load(Ordering::Relaxed), found);
                        value.store(alone.timestamps.next().unwrap().timestamp_us, Ordering::Relaxed);
                    }
                });
            }
        });
    }
}
