//! Bytes on the account that belong to a value: given back when it is dropped.

use super::held::Held;
use super::pool::POOL;
use super::share::Share;

/// Bytes charged to the account; given back when dropped.
///
/// Made only of bytes that the account has counted (`Held`).
#[derive(Debug)]
pub struct Charge(Held<'static>);

impl Charge {
    /// Charges bytes even beyond the limit: for memory that is already allocated.
    #[must_use]
    pub fn force(share: Share, bytes: u64) -> Charge {
        let mut held = Held::none(&POOL, share);
        held.resize(bytes);
        Charge(held)
    }

    /// Charges bytes if they are free now.
    #[must_use]
    pub fn try_take(share: Share, bytes: u64) -> Option<Charge> {
        let mut held = Held::none(&POOL, share);
        held.try_take(bytes).then(|| Charge(held))
    }

    /// Charges bytes that a request holds to a share that outlives it.
    pub(super) fn of_grant(grant: &mut Held<'static>, share: Share, bytes: u64) -> Charge {
        Charge(grant.split_off(share, bytes))
    }

    /// Changes the number of bytes held, even beyond the limit.
    pub fn resize(&mut self, bytes: u64) {
        self.0.resize(bytes);
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
