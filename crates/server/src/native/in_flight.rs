//! The bytes of requests in flight, in all and for each client address (Cassandra's `ClientResourceLimits`). Of IPv6 a network of
//! 64 bits counts as one address.
//!
//! Counted are frames longer than a read while they arrive, and requests that wait for a disk thread or for the log. A
//! request that is answered within the poll that received it is compared with the limit but reserves nothing. A request
//! that exceeds the limit is still answered, as in Cassandra, but its connection is not read until there is room; with
//! THROW_ON_OVERLOAD it gets an error instead.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::task::Context;
use std::time::Duration;

use helenus_cql::backend::InFlight;
use helenus_host::account::{Charge, Share};
use helenus_logins::network_of;
use parking_lot::Mutex;
use tokio::time::Sleep;

use super::mailbox::Mailbox;
use super::room_queue::{Place, RoomQueue, Wanted};

/// From this size on, the reservation of a request that has arrived is also charged to the memory account.
const CHARGED_BYTES: u64 = 64 << 10;
/// The bytes of an unfinished request that each connection may keep, uncounted. While unfinished requests hold much, no more is
/// read at a time.
pub(crate) const LITTLE_BYTES: usize = 4 << 10;
/// The most bytes that logins keep while they wait or are checked, of all clients and of one address: as many as may wait
/// (`helenus_logins::Turns`) of the length of the longest request before a login.
const LOGIN_BYTES_MAX: u64 = 4 << 20;
const LOGIN_BYTES_MAX_PER_ADDRESS: u64 = 512 << 10;

/// The bytes in flight of all connections.
pub(crate) struct InFlightBytes {
    used: AtomicU64,
    /// Bytes of incomplete frames that have no reservation.
    partial: AtomicU64,
    /// Bytes of logins, a part of `used`.
    logins: AtomicU64,
    limit: u64,
    limit_per_address: u64,
    accounts: Mutex<HashMap<IpAddr, Arc<AddressInFlight>>>,
    /// The connections that wait for room.
    queue: Mutex<RoomQueue>,
    /// Whether some do.
    any_waits: AtomicBool,
    /// Held by `try_take` while it checks for room and takes it.
    attempt: Mutex<()>,
}

/// The bytes in flight of one client address.
pub(crate) struct AddressInFlight {
    in_flight: Arc<InFlightBytes>,
    /// The address, or the network of an IPv6 address (`network_of`).
    network: IpAddr,
    used: AtomicU64,
    /// Bytes of logins, a part of `used`.
    logins: AtomicU64,
    /// Open connections of this address.
    connections: AtomicU64,
}

impl InFlightBytes {
    pub fn new(limit: u64, limit_per_address: u64) -> Arc<InFlightBytes> {
        Arc::new(InFlightBytes {
            used: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            logins: AtomicU64::new(0),
            limit,
            limit_per_address,
            accounts: Mutex::default(),
            queue: Mutex::default(),
            any_waits: AtomicBool::new(false),
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
        let network = network_of(address);
        let mut accounts = self.accounts.lock();
        let account = accounts.entry(network).or_insert_with(|| {
            Arc::new(AddressInFlight {
                in_flight: Arc::clone(self),
                network,
                used: AtomicU64::new(0),
                logins: AtomicU64::new(0),
                connections: AtomicU64::new(0),
            })
        });
        let open = account.connections.load(Ordering::Relaxed);
        if connections_max.is_some_and(|max| open >= max) {
            if account.is_unused() {
                accounts.remove(&network);
            }
            return None;
        }
        account.connections.store(open + 1, Ordering::Relaxed);
        Some(ConnectionShare { account: Arc::clone(account) })
    }

    /// Wakes the connections that fit, now that an account has released bytes, and forgets the account if these were the last after
    /// its last connection.
    fn released(&self, account: &Arc<AddressInFlight>) {
        // Pairs with the fence of `wait`: either this sees `any_waits`, or the waiter sees the release when it tries once more. Also
        // with that of `ConnectionShare::drop`: one of the two sees that the account is not used.
        fence(Ordering::SeqCst);
        if account.is_unused() {
            self.forget(account);
        }
        if self.any_waits.load(Ordering::Relaxed) {
            self.change_queue(|queue| ((), queue.fitting(account.network)));
        }
    }

    /// Removes an account that nothing uses. The next connection of its address gets a new one.
    #[cold]
    fn forget(&self, account: &Arc<AddressInFlight>) {
        let mut accounts = self.accounts.lock();
        let is_it = accounts.get(&account.network).is_some_and(|known| Arc::ptr_eq(known, account));
        // A connection may have come meanwhile: its number changes under the lock.
        if is_it && account.is_unused() {
            accounts.remove(&account.network);
        }
    }

    /// Changes the queue, then wakes those that `change` returns.
    fn change_queue<T>(&self, change: impl FnOnce(&mut RoomQueue) -> (T, Vec<Arc<Mailbox>>)) -> T {
        let (done, woken) = {
            let mut queue = self.queue.lock();
            let done = change(&mut queue);
            self.any_waits.store(!queue.is_empty(), Ordering::Relaxed);
            done
        };
        woken.iter().for_each(|mailbox| mailbox.wake());
        done
    }
}

/// The place of a connection that waits for room, or has been woken for it. Given back when dropped.
pub(super) struct RoomTicket {
    account: Arc<AddressInFlight>,
    place: Place,
}

impl Drop for RoomTicket {
    fn drop(&mut self) {
        let place = self.place;
        let in_flight = &self.account.in_flight;
        drop(in_flight.change_queue(|queue| (queue.remove(place), queue.fitting(self.account.network))));
    }
}

/// A connection's membership in the account of its address.
pub(crate) struct ConnectionShare {
    pub account: Arc<AddressInFlight>,
}

impl Drop for ConnectionShare {
    fn drop(&mut self) {
        let account = &self.account;
        {
            let _accounts = account.in_flight.accounts.lock();
            account.connections.fetch_sub(1, Ordering::Relaxed);
        }
        // Requests of a connection may outlive it. Their bytes count for the next connections of the address: it would get rid of them by
        // connecting again.
        fence(Ordering::SeqCst);
        if account.is_unused() {
            account.in_flight.forget(account);
        }
    }
}

/// A connection's waiting for room.
#[derive(Default)]
pub(super) struct RoomWait {
    ticket: Option<RoomTicket>,
    /// Whether this poll ends without room. Otherwise the ticket is given back.
    waits: bool,
    /// When a message that is longer than a limit has waited long enough.
    due: Option<Pin<Box<Sleep>>>,
}

impl RoomWait {
    /// Whether a message has waited for longer than `within` that is longer than a limit. It needs a moment in which nothing else of its
    /// address is in flight, which may never come, so it is refused then. Any other is served in its turn.
    pub fn is_late(
        &mut self,
        account: &AddressInFlight,
        wanted: Option<u64>,
        (within, context): (Duration, &mut Context<'_>),
    ) -> bool {
        if wanted.is_none_or(|bytes| bytes <= account.limit()) {
            self.due = None;
            return false;
        }
        let due = self.due.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        let is_late = due.as_mut().poll(context).is_ready();
        if is_late {
            // The next message waits for as long.
            self.due = None;
        }
        is_late
    }

    /// Waits for the bytes that `wanted` is more than `has`; `None`: until the limits are no longer exceeded. The caller tries once
    /// more after this, and tells `note`.
    pub fn wait(
        &mut self,
        account: &Arc<AddressInFlight>,
        mailbox: &Arc<Mailbox>,
        (wanted, has): (Option<u64>, Option<&Reservation>),
    ) {
        let has = has.map_or(0, Reservation::bytes);
        let bytes = wanted.map_or(0, |wanted| wanted.saturating_sub(has));
        account.wait(&mut self.ticket, mailbox, Wanted { bytes, has });
    }

    /// Notes whether there is room now; returns the same.
    pub fn note(&mut self, has_room: bool) -> bool {
        self.waits = !has_room;
        has_room
    }

    /// Called at the end of each poll of the connection.
    pub fn end_poll(&mut self) {
        if !std::mem::take(&mut self.waits) {
            (self.ticket, self.due) = (None, None);
        }
    }
}

impl AddressInFlight {
    /// Whether it has neither connections nor bytes in flight.
    fn is_unused(&self) -> bool {
        self.connections.load(Ordering::Relaxed) == 0 && self.used.load(Ordering::Relaxed) == 0
    }

    /// Whether `bytes` more would stay within both limits.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        self.used.load(Ordering::Relaxed) + bytes <= self.in_flight.limit_per_address
            && self.in_flight.used.load(Ordering::Relaxed) + bytes <= self.in_flight.limit
    }

    /// Takes `bytes` without regard to the limits: those of a request that has arrived.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Reservation {
        let charge = (bytes >= CHARGED_BYTES).then(|| Charge::force(Share::Arriving, bytes));
        self.reserve(bytes, charge)
    }

    /// Whether `more` bytes for a message of `bytes` may be taken although the message is longer than the limit of one address: nothing else
    /// of its address is in flight, and they stay within the limit of all. The traffic of others alone would keep it out for ever.
    fn has_room_for_long(&self, bytes: u64, more: u64) -> bool {
        bytes > self.in_flight.limit_per_address
            && self.used.load(Ordering::Relaxed) == bytes - more
            && self.in_flight.used.load(Ordering::Relaxed) + more <= self.in_flight.limit
    }

    /// Takes `bytes` of a message that arrives, if they stay within both limits, or if nothing else is in flight, so that the
    /// largest message is served eventually. They are charged to the memory account, however few.
    ///
    /// A failed attempt changes nothing. If it took the bytes and gave them back, it would wake the other waiters,
    /// whose attempts would wake this one.
    pub fn try_take(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let _attempt = self.in_flight.attempt.lock();
        let alone = self.in_flight.used.load(Ordering::Relaxed) == 0;
        (alone || self.has_room(bytes) || self.has_room_for_long(bytes, bytes))
            .then(|| self.reserve(bytes, Some(Charge::force(Share::Arriving, bytes))))
    }

    /// Takes `bytes` of a login. They are compared with those of other logins alone, and are charged beyond the memory account's limit: neither
    /// requests in flight nor answers that nobody takes keep a login out.
    pub fn try_take_login(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let in_flight = &self.in_flight;
        let _attempt = in_flight.attempt.lock();
        let fits = |used: &AtomicU64, max: u64| used.load(Ordering::Relaxed) + bytes <= max;
        let of_address_max = LOGIN_BYTES_MAX_PER_ADDRESS.min(in_flight.limit_per_address);
        if !fits(&self.logins, of_address_max)
            || !fits(&in_flight.logins, LOGIN_BYTES_MAX.min(in_flight.limit))
        {
            return None;
        }
        self.logins.fetch_add(bytes, Ordering::Relaxed);
        in_flight.logins.fetch_add(bytes, Ordering::Relaxed);
        let mut reservation = self.reserve(bytes, Some(Charge::force(Share::Arriving, bytes)));
        reservation.of_logins = bytes;
        Some(reservation)
    }

    fn reserve(self: &Arc<Self>, bytes: u64, charge: Option<Charge>) -> Reservation {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.in_flight.used.fetch_add(bytes, Ordering::Relaxed);
        Reservation { account: Arc::clone(self), bytes, of_logins: 0, charge, of_role: None }
    }

    /// Wakes `mailbox` once there is room for what it wants. The caller tries once more after this, keeps the ticket until it is
    /// polled again, and either drops it at the end of that poll or waits with it again.
    pub(super) fn wait(
        self: &Arc<Self>,
        ticket: &mut Option<RoomTicket>,
        mailbox: &Arc<Mailbox>,
        wanted: Wanted,
    ) {
        let before = ticket.as_ref().map(|ticket| ticket.place);
        let place = self.in_flight.change_queue(|queue| {
            let place = queue.add(self, mailbox, wanted, before);
            // What was promised to it may be enough for another one.
            let woken = if before.is_some() { queue.fitting(self.network) } else { Vec::new() };
            (place, woken)
        });
        match ticket {
            Some(ticket) => ticket.place = place,
            none => *none = Some(RoomTicket { account: Arc::clone(self), place }),
        }
        // Pairs with the fence of `released`.
        fence(Ordering::SeqCst);
    }

    /// The address, or the network of an IPv6 address.
    pub(super) fn network(&self) -> IpAddr {
        self.network
    }

    /// The lower of both limits.
    pub(super) fn limit(&self) -> u64 {
        self.in_flight.limit.min(self.in_flight.limit_per_address)
    }

    /// What is free of the account's share and of the whole; `None` if the limit is exceeded.
    pub(super) fn free(&self) -> (Option<u64>, Option<u64>) {
        let (used, all) = (self.used.load(Ordering::Relaxed), self.in_flight.used.load(Ordering::Relaxed));
        (self.in_flight.limit_per_address.checked_sub(used), self.in_flight.limit.checked_sub(all))
    }

    /// Whether nothing is in flight but `bytes`, of its address and of all.
    pub(super) fn is_alone(&self, bytes: u64) -> (bool, bool) {
        let is_all = |used: &AtomicU64| used.load(Ordering::Relaxed) == bytes;
        (is_all(&self.used), is_all(&self.in_flight.used))
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

/// The bytes of one connection's incomplete message that has no reservation. They are charged to the memory account.
///
/// This bounds the unfinished requests of every interface: a connection keeps [`LITTLE_BYTES`] that nobody counts; all of them
/// together keep an eighth of the limit without a reservation (`are_many`), and then read little at a time and reserve the rest.
pub(crate) struct PartialFrame {
    in_flight: Arc<InFlightBytes>,
    bytes: u64,
    charge: Option<Charge>,
}

impl PartialFrame {
    pub fn new(account: &AddressInFlight) -> PartialFrame {
        PartialFrame { in_flight: Arc::clone(&account.in_flight), bytes: 0, charge: None }
    }

    /// Sets the number of bytes.
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes != self.bytes {
            self.in_flight.partial.fetch_add(bytes, Ordering::Relaxed);
            self.in_flight.partial.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = bytes;
            match &mut self.charge {
                _ if bytes == 0 => self.charge = None,
                Some(charge) => charge.resize(bytes),
                none => *none = Some(Charge::force(Share::Arriving, bytes)),
            }
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
    /// Those of them that count among the logins'.
    of_logins: u64,
    /// The charge on the memory account; small reservations of requests that have arrived have none.
    charge: Option<Charge>,
    /// The request among those of its client's role.
    of_role: Option<InFlight>,
}

impl Reservation {
    /// The same for a request that counts for a role too.
    pub fn of_role(mut self, of_role: Option<InFlight>) -> Reservation {
        self.of_role = of_role;
        self
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more, up to `bytes` in all, as [`AddressInFlight::try_take`] does. What is held stays held where there is no room:
    /// its memory is in use. False: there is none.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let in_flight = &self.account.in_flight;
        let _attempt = in_flight.attempt.lock();
        let alone = in_flight.used.load(Ordering::Relaxed) == self.bytes;
        let account = &self.account;
        if !(alone || account.has_room(more) || account.has_room_for_long(self.bytes + more, more)) {
            return false;
        }
        self.account.used.fetch_add(more, Ordering::Relaxed);
        in_flight.used.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        match &mut self.charge {
            Some(charge) => charge.resize(self.bytes),
            none => *none = Some(Charge::force(Share::Arriving, self.bytes)),
        }
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.in_flight.used.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.of_logins > 0 {
            self.account.logins.fetch_sub(self.of_logins, Ordering::Relaxed);
            self.account.in_flight.logins.fetch_sub(self.of_logins, Ordering::Relaxed);
        }
        self.account.in_flight.released(&self.account);
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
        // A message longer than the share of an address has to be the only one of its address, and within the whole.
        let other = there.account.try_take(20).expect("within both");
        let own = here.account.try_take(1).expect("within both");
        assert!(here.account.try_take(70).is_none(), "not the only one");
        drop(own);
        assert!(here.account.try_take(81).is_none(), "beyond the whole");
        let mut long = here.account.try_take(70).expect("the only one of its address");
        assert!(!long.try_grow(81) && long.try_grow(80));
        drop((other, long));
        assert_eq!(in_flight.used.load(Ordering::Relaxed), 0, "and everything was given back");
    }

    #[test]
    fn logins_have_room_that_requests_cannot_use_and_few_of_it() {
        let in_flight = InFlightBytes::new(1 << 30, 1 << 30);
        let enter = |address| in_flight.enter(address, None).expect("no limit on connections");
        let (here, there) = (enter(HERE), enter(THERE));
        let requests = here.account.take(2 << 30);
        let login = |share: &ConnectionShare| share.account.try_take_login(4 << 10);
        let of_here: Vec<Reservation> = std::iter::from_fn(|| login(&here)).collect();
        assert_eq!(of_here.len(), helenus_logins::OF_ADDRESS_MAX, "whatever is in flight");
        assert!(login(&there).is_some(), "another address");
        drop(of_here);
        assert_eq!(in_flight.logins.load(Ordering::Relaxed), 0);
        let others: Vec<ConnectionShare> =
            (1..20).map(|last| enter(IpAddr::from([10, 0, 1, last]))).collect();
        let each = |share| std::iter::from_fn(move || login(share)).collect::<Vec<Reservation>>();
        let of_all: Vec<Reservation> = others.iter().flat_map(each).collect();
        assert_eq!(of_all.len(), helenus_logins::WAITING_MAX);
        drop(requests);
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
        let mut ticket = None;
        shares[0].account.wait(&mut ticket, &mailbox, Wanted { bytes: 11, has: 0 });
        for bytes in [11, 60, 1000] {
            assert!(shares[0].account.try_take(bytes).is_none(), "{bytes} beyond the address's share");
        }
        assert!(shares[1].account.try_take(51).is_none(), "beyond the whole");
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(held);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the bytes that were given back");
    }

    #[test]
    fn hosts_of_a_network_of_ipv6_share_connections_and_bytes() {
        let in_flight = InFlightBytes::new(100, 60);
        let enter = |text: &str| in_flight.enter(text.parse().expect("an address"), Some(2));
        let first = enter("2001:db8::1").expect("the first of two");
        let second = enter("2001:db8::2:3").expect("the second of two");
        assert!(enter("2001:db8::4").is_none(), "a third host of the network");
        let other = enter("2001:db8:0:1::1").expect("of another network");
        let held = first.account.try_take(50).expect("within both");
        assert!(second.account.try_take(20).is_none(), "beyond the share of the network");
        assert!(other.account.try_take(20).is_some());
        drop((held, first, second, other));
        assert!(in_flight.accounts.lock().is_empty());
    }

    #[test]
    fn bytes_in_flight_count_for_the_connections_that_follow() {
        for ends_first in [false, true] {
            let in_flight = InFlightBytes::new(1000, 60);
            let first = in_flight.enter(HERE, None).expect("no limit on connections");
            let other = in_flight.enter(THERE, None).expect("no limit on connections");
            let held = other.account.try_take(1).expect("within both");
            let (job, little) = (first.account.take(50), first.account.take(5));
            drop(first);
            let mut again = in_flight.enter(HERE, None).expect("no limit on connections");
            assert!(
                again.account.try_take(10).is_none(),
                "the requests of the connection that ended are in flight"
            );
            drop(little);
            assert!(again.account.try_take(10).is_some(), "within the share");
            if ends_first {
                drop(again);
                drop(job);
                assert!(!in_flight.accounts.lock().contains_key(&HERE));
                again = in_flight.enter(HERE, None).expect("no limit on connections");
            } else {
                drop(job);
            }
            assert!(again.account.try_take(60).is_some());
            drop((again, other, held));
            assert!(in_flight.accounts.lock().is_empty());
            assert!(in_flight.enter(HERE, Some(0)).is_none() && in_flight.accounts.lock().is_empty());
        }
    }

    #[test]
    fn an_account_is_forgotten_whoever_is_the_last() {
        for _ in 0..500 {
            let in_flight = InFlightBytes::new(1000, 60);
            let share = in_flight.enter(HERE, None).expect("no limit on connections");
            let job = share.account.take(50);
            std::thread::scope(|scope| {
                scope.spawn(|| drop(share));
                scope.spawn(|| drop(job));
            });
            assert!(in_flight.accounts.lock().is_empty());
        }
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
