//! The bytes of requests in flight, in all and for each client address (Cassandra's `ClientResourceLimits`).
//!
//! Counted are frames longer than a read while they arrive, and requests that wait for a disk thread or for the log. A
//! request that is answered within the poll that received it is compared with the limit but reserves nothing. A request
//! that exceeds the limit is still answered, as in Cassandra, but its connection is not read until there is room; with
//! THROW_ON_OVERLOAD it gets an error instead.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helenus_host::account::{Charge, Share};
use parking_lot::Mutex;

use super::mailbox::{Mailbox, Waiters};

/// From this size on, a reservation is also charged to the memory account.
const CHARGED_BYTES: u64 = 64 << 10;

/// The bytes in flight of all connections.
pub(crate) struct InFlightBytes {
    used: AtomicU64,
    /// Bytes of incomplete frames that have no reservation.
    partial: AtomicU64,
    limit: u64,
    limit_per_address: u64,
    accounts: Mutex<HashMap<IpAddr, Arc<AddressInFlight>>>,
    waiters: Waiters,
    /// Held by `try_take` while it checks for room and takes it.
    attempt: Mutex<()>,
}

/// The bytes in flight of one client address.
pub(crate) struct AddressInFlight {
    in_flight: Arc<InFlightBytes>,
    address: IpAddr,
    used: AtomicU64,
    /// Open connections of this address.
    connections: AtomicU64,
}

impl InFlightBytes {
    pub fn new(limit: u64, limit_per_address: u64) -> Arc<InFlightBytes> {
        Arc::new(InFlightBytes {
            used: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            limit,
            limit_per_address,
            accounts: Mutex::default(),
            waiters: Waiters::default(),
            attempt: Mutex::default(),
        })
    }

    /// Bytes in flight, and their limit.
    pub fn in_flight(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.limit)
    }

    /// Whether incomplete frames without a reservation hold much: an eighth of the limit.
    fn has_many_partial_frames(&self) -> bool {
        self.partial.load(Ordering::Relaxed) > self.limit / 8
    }

    /// Adds a connection to the account of `address`; `None` if the address already has `connections_max`.
    pub fn enter(self: &Arc<Self>, address: IpAddr, connections_max: Option<u64>) -> Option<ConnectionShare> {
        let mut accounts = self.accounts.lock();
        let account = accounts.entry(address).or_insert_with(|| {
            let (used, connections) = (AtomicU64::new(0), AtomicU64::new(0));
            Arc::new(AddressInFlight { in_flight: Arc::clone(self), address, used, connections })
        });
        let open = account.connections.load(Ordering::Relaxed);
        if connections_max.is_some_and(|max| open >= max) {
            return None;
        }
        account.connections.store(open + 1, Ordering::Relaxed);
        Some(ConnectionShare { account: Arc::clone(account) })
    }
}

/// A connection's membership in the account of its address.
pub(crate) struct ConnectionShare {
    pub account: Arc<AddressInFlight>,
}

impl Drop for ConnectionShare {
    fn drop(&mut self) {
        let account = &self.account;
        let mut accounts = account.in_flight.accounts.lock();
        if account.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            accounts.remove(&account.address);
        }
    }
}

impl AddressInFlight {
    /// Whether `bytes` more would stay within both limits.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        self.used.load(Ordering::Relaxed) + bytes <= self.in_flight.limit_per_address
            && self.in_flight.used.load(Ordering::Relaxed) + bytes <= self.in_flight.limit
    }

    /// Takes `bytes` without regard to the limits.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Reservation {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.in_flight.used.fetch_add(bytes, Ordering::Relaxed);
        let charge = (bytes >= CHARGED_BYTES).then(|| Charge::force(Share::Arriving, bytes));
        Reservation { account: Arc::clone(self), bytes, _charge: charge }
    }

    /// Takes `bytes` if they stay within both limits, or if nothing else is in flight, so that the largest frame is
    /// served eventually.
    ///
    /// A failed attempt changes nothing. If it took the bytes and gave them back, it would wake the other waiters,
    /// whose attempts would wake this one.
    pub fn try_take(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let _attempt = self.in_flight.attempt.lock();
        let alone = self.in_flight.used.load(Ordering::Relaxed) == 0;
        (alone || self.has_room(bytes)).then(|| self.take(bytes))
    }

    /// Wakes `mailbox` once bytes are released.
    pub(super) fn wait(&self, mailbox: &Arc<Mailbox>) {
        self.in_flight.waiters.add(mailbox);
    }

    /// The text of an OverloadedException (`CQLMessageHandler.buildOverloadedException`). v5 words it differently from
    /// older versions.
    pub fn overloaded(&self, v5: bool) -> String {
        let used = self.used.load(Ordering::Relaxed);
        let all = self.in_flight.used.load(Ordering::Relaxed);
        let (limit, limit_all) = (self.in_flight.limit_per_address, self.in_flight.limit);
        let figures = if v5 {
            format!("Endpoint: {used}/{limit} bytes, Global: {all}/{limit_all} bytes.")
        } else {
            format!(
                "Using {used}/{limit} bytes of endpoint limit and {all}/{limit_all} bytes of global limit."
            )
        };
        format!(
            "Request breached limit on bytes in flight. ({figures})Server is currently in an overloaded state and \
             cannot accept more requests."
        )
    }
}

/// The bytes of one connection's incomplete frame that has no reservation.
pub(crate) struct PartialFrame {
    in_flight: Arc<InFlightBytes>,
    bytes: u64,
}

impl PartialFrame {
    pub fn new(account: &AddressInFlight) -> PartialFrame {
        PartialFrame { in_flight: Arc::clone(&account.in_flight), bytes: 0 }
    }

    /// Sets the number of bytes.
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes != self.bytes {
            self.in_flight.partial.fetch_add(bytes, Ordering::Relaxed);
            self.in_flight.partial.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Whether all connections together hold many of them.
    pub fn are_many(&self) -> bool {
        self.in_flight.has_many_partial_frames()
    }
}

impl Drop for PartialFrame {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A number of bytes in flight, released on drop.
pub(crate) struct Reservation {
    account: Arc<AddressInFlight>,
    bytes: u64,
    /// The charge on the memory account; small reservations have none.
    _charge: Option<Charge>,
}

impl Reservation {
    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.in_flight.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.in_flight.waiters.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn an_address_is_bounded_by_its_share_and_all_by_the_whole() {
        let in_flight = InFlightBytes::new(100, 60);
        let here = in_flight.enter(HERE, None).expect("no limit on connections");
        let there = in_flight.enter(THERE, None).expect("no limit on connections");
        let first = here.account.try_take(50).expect("within both");
        assert!(here.account.try_take(20).is_none(), "beyond the address's share");
        assert!(there.account.try_take(60).is_none(), "beyond the whole");
        let second = there.account.try_take(50).expect("within both");
        assert!(!there.account.has_room(1));
        drop(first);
        assert!(there.account.has_room(10));
        drop(second);
        assert!(here.account.try_take(1000).is_some(), "alone, anything goes");
        assert_eq!(in_flight.used.load(Ordering::Relaxed), 0, "and everything was given back");
    }

    #[test]
    fn an_attempt_that_finds_no_room_wakes_nobody() {
        struct Count(AtomicU64);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let in_flight = InFlightBytes::new(100, 60);
        let shares =
            [HERE, THERE].map(|address| in_flight.enter(address, None).expect("no limit on connections"));
        let held = shares[0].account.try_take(50).expect("within both");
        let woken = Arc::new(Count(AtomicU64::new(0)));
        let mailbox = Arc::new(Mailbox::default());
        mailbox.register(&Arc::clone(&woken).into());
        shares[0].account.wait(&mailbox);
        for bytes in [11, 60, 1000] {
            assert!(shares[0].account.try_take(bytes).is_none(), "{bytes} beyond the address's share");
        }
        assert!(shares[1].account.try_take(51).is_none(), "beyond the whole");
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(held);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the bytes that were given back");
    }

    #[test]
    fn an_account_ends_with_its_last_connection() {
        let in_flight = InFlightBytes::new(1, 1);
        let first = in_flight.enter(HERE, Some(2));
        let second = in_flight.enter(HERE, Some(2));
        assert!(first.is_some() && second.is_some());
        assert!(in_flight.enter(HERE, Some(2)).is_none());
        drop(first);
        assert!(in_flight.enter(HERE, Some(2)).is_some());
        drop(second);
        assert!(in_flight.accounts.lock().is_empty());
    }
}
