//! What each holder of bytes holds, beside the counters of the pool: the second book of the account.
//!
//! Kept in builds with debug assertions alone, so in tests. The pool writes a change into its counters and into the
//! ledger under the ledger's lock, so that a comparison (`Pool::audit`) is exact while other threads go on. In a release
//! a ledger is empty, and its lock is none.

#[cfg(debug_assertions)]
use super::meter::uncounted;
use super::share::Share;
#[cfg(debug_assertions)]
use parking_lot::{Mutex, MutexGuard};
#[cfg(debug_assertions)]
use std::collections::HashMap;

/// The ledger of a pool.
pub(super) struct Ledger {
    #[cfg(debug_assertions)]
    book: Mutex<Option<Book>>,
}

/// The holders by number.
#[cfg(debug_assertions)]
#[derive(Default)]
struct Book {
    next: u64,
    held: HashMap<u64, (Share, u64)>,
}

/// A holder's place in the ledger; none in a release.
#[derive(Debug, Default)]
pub(super) struct Entry {
    #[cfg(debug_assertions)]
    number: u64,
}

/// The ledger while a change is written.
pub(super) struct Open<'a> {
    #[cfg(debug_assertions)]
    book: MutexGuard<'a, Option<Book>>,
    #[cfg(not(debug_assertions))]
    _ledger: std::marker::PhantomData<&'a Ledger>,
}

#[cfg(all(loom, test))]
impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::new()
    }
}

impl Ledger {
    pub(super) const fn new() -> Ledger {
        Ledger {
            #[cfg(debug_assertions)]
            book: Mutex::new(None),
        }
    }

    /// Locks the ledger.
    pub(super) fn open(&self) -> Open<'_> {
        Open {
            #[cfg(debug_assertions)]
            book: self.book.lock(),
            #[cfg(not(debug_assertions))]
            _ledger: std::marker::PhantomData,
        }
    }
}

impl Open<'_> {
    /// Notes what a holder holds from now on.
    pub(super) fn note(&mut self, entry: &mut Entry, share: Share, bytes: u64) {
        #[cfg(debug_assertions)]
        uncounted(|| {
            let book = self.book.get_or_insert_default();
            if entry.number == 0 {
                book.next += 1;
                entry.number = book.next;
            }
            match bytes {
                0 => book.held.remove(&entry.number),
                _ => book.held.insert(entry.number, (share, bytes)),
            };
        });
        #[cfg(not(debug_assertions))]
        let _no_ledger = (entry, share, bytes);
    }

    /// What all holders of a share hold; `None` where no ledger is kept.
    pub(super) fn held(&self, share: Share) -> Option<u64> {
        #[cfg(debug_assertions)]
        return Some(self.book.as_ref().map_or(0, |book| {
            book.held.values().filter(|(of, _)| *of == share).map(|(_, bytes)| *bytes).sum()
        }));
        #[cfg(not(debug_assertions))]
        {
            let _no_ledger = share;
            None
        }
    }
}
