//! Remembers for a moment which statements a role may run, so that one that runs often is not checked each time.
//!
//! A permit stands for a role, what was known of rights when it was made, and a tenth of a second. A check that allows a statement without
//! condition leaves the permit's number in the statement. As long as the role has the same permit, the number says that the check
//! would end as before. A change of roles or rights by a statement ends all permits at once; a change that is written into the
//! tables themselves is seen when the caches of roles and permissions look again, a tenth of a second later at most.

use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a permit is valid.
const VALID_NS: u64 = 100_000_000;

/// A permit of a role.
#[derive(Debug)]
struct Permit {
    /// Unlike that of every other permit of the process.
    number: u64,
    /// The changes of roles and rights before it was made.
    changes: u64,
    expires_ns: u64,
}

/// The present permit of a role.
#[derive(Debug, Default)]
pub(crate) struct Permits(ArcSwapOption<Permit>);

/// Makes the numbers of permits.
#[derive(Debug)]
pub(crate) struct PermitNumbers(AtomicU64);

impl Default for PermitNumbers {
    fn default() -> PermitNumbers {
        // 0 is in statements that nobody was allowed to run yet.
        PermitNumbers(AtomicU64::new(1))
    }
}

/// The permit under which a statement was last allowed; 0: none.
#[derive(Debug, Default)]
pub(crate) struct Permitted(AtomicU64);

impl Permits {
    /// The number of the role's permit after so many changes, at this time; a new one if that has ended.
    ///
    /// `changes` must have been read before anything that the check reads.
    pub(crate) fn number(&self, changes: u64, now_ns: u64, numbers: &PermitNumbers) -> u64 {
        if let Some(permit) = &*self.0.load()
            && permit.changes == changes
            && now_ns < permit.expires_ns
        {
            return permit.number;
        }
        let number = numbers.0.fetch_add(1, Ordering::Relaxed);
        let expires_ns = now_ns.saturating_add(VALID_NS);
        self.0.store(Some(Arc::new(Permit { number, changes, expires_ns })));
        number
    }
}

impl Permitted {
    /// Whether the statement was allowed under this permit.
    pub(crate) fn is(&self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }

    /// Notes that it was.
    pub(crate) fn note(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_ends_with_its_time_and_with_a_change_and_is_of_one_role() {
        let (numbers, app, other) = (PermitNumbers::default(), Permits::default(), Permits::default());
        let statement = Permitted::default();
        let first = app.number(7, 1000, &numbers);
        assert!(!statement.is(first), "nobody was allowed to run it");
        statement.note(first);
        assert!(statement.is(app.number(7, 1000 + VALID_NS - 1, &numbers)));
        assert!(!statement.is(other.number(7, 1000, &numbers)), "another role");
        assert!(!statement.is(app.number(8, 1000, &numbers)), "after a change");
        assert!(!statement.is(app.number(7, 1000, &numbers)), "a permit that has ended does not come back");
        statement.note(app.number(8, 1000, &numbers));
        assert!(!statement.is(app.number(8, 1000 + VALID_NS, &numbers)), "its time is over");
    }
}
