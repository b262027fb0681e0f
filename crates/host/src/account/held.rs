//! Bytes that belong to a holder, by its type: only a pool that has counted them makes one, and its end gives them back.
//!
//! A refusal makes no `Held`, so there is nothing whose end could give back what was never taken. A request's scope
//! holds its grant in one, and a `Charge` is one of the process's account.

use super::ledger::Entry;
use super::pool::{Holder, Pool, Taken};
use super::share::Share;
use std::fmt;
use std::time::Instant;

/// Bytes of a pool; given back when dropped.
#[must_use = "the bytes are given back at once"]
pub(super) struct Held<'p> {
    pool: &'p Pool,
    share: Share,
    bytes: u64,
    entry: Entry,
}

impl<'p> Held<'p> {
    /// A holder of no bytes.
    pub(super) fn none(pool: &'p Pool, share: Share) -> Held<'p> {
        Held { pool, share, bytes: 0, entry: Entry::default() }
    }

    /// Their number.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Their purpose.
    pub(super) fn share(&self) -> Share {
        self.share
    }

    /// Takes this many more if they are free now.
    pub(super) fn try_take(&mut self, bytes: u64) -> bool {
        let most = self.pool.shared();
        self.take_within(bytes, most)
    }

    /// Takes this many more if all holders then have at most `most`.
    pub(super) fn take_within(&mut self, bytes: u64, most: u64) -> bool {
        let after = self.bytes.saturating_add(bytes);
        let taken =
            self.pool.add_within(Holder { entry: &mut self.entry, share: self.share }, (bytes, after), most);
        if taken {
            self.bytes = after;
        }
        taken
    }

    /// Takes this many more for the request of this number. Waits for them until `due`.
    pub(super) fn take(&mut self, request: u64, bytes: u64, due: Instant) -> Taken {
        let pool = self.pool;
        pool.take(request, self, bytes, due)
    }

    /// Changes the number of bytes, even beyond the limit.
    pub(super) fn resize(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.pool.change(Holder { entry: &mut self.entry, share: self.share }, before, bytes);
    }

    /// Moves bytes to a holder of another share. Those that this one has not are taken, even beyond the limit.
    pub(super) fn split_off(&mut self, share: Share, bytes: u64) -> Held<'p> {
        if bytes > self.bytes {
            self.resize(bytes);
        }
        let mut other = Held::none(self.pool, share);
        self.bytes -= bytes;
        let from = Holder { entry: &mut self.entry, share: self.share };
        let to = Holder { entry: &mut other.entry, share };
        self.pool.move_bytes((from, self.bytes), to, bytes);
        other.bytes = bytes;
        other
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.resize(0);
    }
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("share", &self.share).field("bytes", &self.bytes).finish()
    }
}
