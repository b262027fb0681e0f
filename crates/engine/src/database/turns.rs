//! Turns of partitions: who reads a partition in order to write it holds its turn from the read until the write is in
//! the log and the memtable, so that no other such write comes between. Counters, conditional statements, operations on
//! lists and tables with indexes take turns; plain writes do not.
//!
//! A turn is held for the length of a read and an apply, never for a sync. Partitions share a fixed number of locks, so
//! two of them may wait for each other without need, and a turn over several takes its locks in one order: no two turns
//! ever wait in a circle, as long as nobody takes a second turn while holding one.

use super::shared::Database;
use crate::error::{Error, Result};
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use parking_lot::{Mutex, MutexGuard};

/// Locks of a database; far more than threads that could hold them.
const LOCKS: usize = 1024;

/// The locks.
pub(super) struct Turns {
    locks: Box<[Mutex<()>]>,
}

/// The turn of some partitions; given back when dropped.
#[must_use = "a turn that is dropped at once keeps nobody out"]
pub struct Turn<'a> {
    _held: Vec<MutexGuard<'a, ()>>,
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns { locks: (0..LOCKS).map(|_| Mutex::new(())).collect() }
    }

    fn take(&self, partitions: impl Iterator<Item = (TableId, Token)>, may_block: bool) -> Result<Turn<'_>> {
        let mut wanted: Vec<usize> = partitions.map(|(table, token)| lock_of(table, token)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut held = Vec::with_capacity(wanted.len());
        for lock in wanted.iter().filter_map(|index| self.locks.get(*index)) {
            held.push(match lock.try_lock() {
                Some(guard) => guard,
                None if may_block => lock.lock(),
                None => return Err(Error::WouldBlock),
            });
        }
        Ok(Turn { _held: held })
    }
}

fn lock_of(table: TableId, token: Token) -> usize {
    // Tokens are hashes already; the table's id is mixed in so that equal keys of two tables do not meet.
    let mixed = (token.0 as u64) ^ table.0.as_u128() as u64;
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % LOCKS
}

impl Database {
    /// Takes the turn of partitions that are going to be read and then written. Take one turn for all partitions of a
    /// statement or batch, never a second while one is held.
    ///
    /// # Errors
    /// `WouldBlock` when somebody else has the turn of one and `may_block` is false.
    pub fn turn(
        &self,
        partitions: impl Iterator<Item = (TableId, Token)>,
        may_block: bool,
    ) -> Result<Turn<'_>> {
        self.shared.turns.take(partitions, may_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn partition(token: i64) -> (TableId, Token) {
        (TableId(uuid::Uuid::nil()), Token(token))
    }

    #[test]
    fn a_taken_turn_keeps_others_out_until_it_is_given_back() {
        let turns = Turns::new();
        let held = turns.take([partition(1), partition(2), partition(1)].into_iter(), false);
        assert!(held.is_ok());
        assert!(matches!(turns.take([partition(2)].into_iter(), false), Err(Error::WouldBlock)));
        drop(held);
        assert!(turns.take([partition(2)].into_iter(), false).is_ok());
    }

    #[test]
    fn turns_over_many_partitions_in_any_order_neither_meet_nor_lock_each_other_out() {
        let (turns, count) = (Turns::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_i64 {
                let (turns, count) = (&turns, &count);
                scope.spawn(move || {
                    for round in 0..500 {
                        let tokens = (0..8).map(|step| partition((round * 7 + step * (thread + 1)) % 13));
                        let _turn = turns.take(tokens.chain([partition(99)]), true);
                        // 99 is in every turn, so a load and a store lose nothing.
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2000);
    }
}
