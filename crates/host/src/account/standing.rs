//! Bytes that grow with the data and not with requests: what open SSTables keep in memory.
//!
//! They count on the account, so that requests get less, but only up to half of it, which is about a quarter of
//! `memory_limit`. Beyond that they would take the memory of all requests, and no read could be served: the process exceeds
//! its bound instead, and whoever opens SSTables warns (`is_over`).

use super::charge::Charge;
use super::pool::limit;
use super::share::Share;
use parking_lot::Mutex;

/// Bytes of all open SSTables, and the part of them that counts.
struct Standing {
    bytes: u64,
    counted: Option<Charge>,
}

static STANDING: Mutex<Standing> = Mutex::new(Standing { bytes: 0, counted: None });

/// Bytes of an open SSTable, until this is dropped.
#[derive(Debug)]
pub struct StandingBytes(u64);

impl StandingBytes {
    /// Counts bytes.
    #[must_use]
    pub fn of(bytes: u64) -> StandingBytes {
        STANDING.lock().set(|before| before + bytes);
        StandingBytes(bytes)
    }
}

impl Drop for StandingBytes {
    fn drop(&mut self) {
        STANDING.lock().set(|before| before - self.0);
    }
}

impl Standing {
    fn set(&mut self, change: impl FnOnce(u64) -> u64) {
        self.bytes = change(self.bytes);
        let counted = self.bytes.min(most());
        self.counted.get_or_insert_with(|| Charge::force(Share::SsTables, 0)).resize(counted);
    }
}

/// The most bytes of open SSTables that count.
fn most() -> u64 {
    limit() / 2
}

/// Bytes of all open SSTables, and the most of them that count on the account.
#[must_use]
pub fn standing() -> (u64, u64) {
    (STANDING.lock().bytes, most())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Split, metrics, set_limits};
    use std::time::Duration;

    #[test]
    fn what_sstables_keep_counts_up_to_half_of_the_account() {
        let counted = || metrics().shares.iter().find(|share| share.share == Share::SsTables).map(|s| s.used);
        set_limits(Split { shared: 1 << 40, one_more: 0 }, Duration::from_secs(1));
        let small = StandingBytes::of(1000);
        assert_eq!((counted(), standing().0), (Some(1000), 1000));
        let large = StandingBytes::of(1 << 40);
        assert_eq!((counted(), standing()), (Some(1 << 39), ((1 << 40) + 1000, 1 << 39)));
        drop(large);
        assert_eq!(counted(), Some(1000));
        drop(small);
        assert_eq!((counted(), standing().0), (Some(0), 0));
        set_limits(Split { shared: u64::MAX, one_more: 0 }, Duration::from_secs(1));
    }
}
