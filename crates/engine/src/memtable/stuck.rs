//! The memory of tables whose flush fails.
//!
//! No flush frees it soon, so it must not stop other tables: they share the rest of the limit, and always have a part
//! of it, as if it did not exist. `table/failures.rs` refuses the writes of such tables, so that it does not grow.

use super::arena::MemoryAccount;
use std::sync::atomic::Ordering;

/// Part of the limit, one in so many, that other tables always have, and that such tables may have together before
/// their writes are refused.
const PART: usize = 4;

impl MemoryAccount {
    /// Bytes in use and their limit for tables that can be flushed. All memtables together stay within the limit and a
    /// quarter.
    pub fn beside_stuck(&self) -> (usize, usize) {
        let limit = self.bytes_max();
        let stuck = self.stuck().load(Ordering::Relaxed).min(limit);
        (self.bytes().saturating_sub(stuck), (limit - stuck).max(limit / PART))
    }

    /// Whether tables that can be flushed have used their memory up, so that their writers wait.
    pub fn is_full(&self) -> bool {
        let (used, limit) = self.beside_stuck();
        used >= limit
    }

    /// Whether the flush of any table fails.
    pub fn has_stuck(&self) -> bool {
        self.stuck().load(Ordering::Relaxed) > 0
    }

    /// Whether tables whose flush fails have more than their part of the limit.
    pub fn has_much_stuck(&self) -> bool {
        self.stuck().load(Ordering::Relaxed) > self.bytes_max() / PART
    }
}

/// The bytes of one table whose flush fails, until this is dropped.
pub(crate) struct StuckMemory {
    account: MemoryAccount,
    bytes: usize,
}

impl StuckMemory {
    /// A table that has this many bytes.
    pub(crate) fn of(account: &MemoryAccount, bytes: usize) -> StuckMemory {
        account.stuck().fetch_add(bytes, Ordering::Relaxed);
        StuckMemory { account: account.clone(), bytes }
    }
}

impl Drop for StuckMemory {
    fn drop(&mut self) {
        self.account.stuck().fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_can_be_flushed_share_the_rest_and_never_less_than_a_quarter() {
        let account = MemoryAccount::keeping(1000);
        assert_eq!((account.beside_stuck(), account.has_stuck()), ((0, 1000), false));
        let first = StuckMemory::of(&account, 250);
        assert!(account.has_stuck() && !account.has_much_stuck());
        assert_eq!(account.beside_stuck(), (0, 750));
        let second = StuckMemory::of(&account, 700);
        assert!(account.has_much_stuck());
        assert_eq!(account.beside_stuck(), (0, 250));
        let third = StuckMemory::of(&account, 5000);
        assert_eq!(account.beside_stuck(), (0, 250));
        drop((second, third));
        assert_eq!(account.beside_stuck(), (0, 750));
        drop(first);
        assert!(!account.has_stuck() && !account.is_full());
    }
}
