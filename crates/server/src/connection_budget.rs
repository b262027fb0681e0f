//! Limits the number of connections of all servers of the process, in all and for each client address.
//!
//! A file descriptor used by a connection is not available to the commit log, the files and the admin socket. So
//! connections get a part of the process's descriptors and never the rest. One address gets most of that part but not
//! all, so that a client that opens connections without end does not keep others out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use helenus_logins::network_of;
use parking_lot::Mutex;

/// How the file descriptors of the process are divided.
///
/// Files that are open for reading have their own limit in `host`, a quarter of all. HTTP gets a few. 64 and a
/// sixteenth are for the server itself: the log, the output of flushes and compactions, listening sockets, the admin
/// socket, and refused connections that are being answered. CQL and RPC connections get the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorPlan {
    /// Connections of CQL and RPC together.
    pub connections: u64,
    /// Most of them from one address.
    pub per_address: u64,
    /// Connections of the HTTP port.
    pub http: usize,
}

/// One in this many connections is kept for other addresses.
const KEPT_FROM_ONE_ADDRESS: u64 = 8;
/// The least number of connections, however few descriptors there are; with less the server would be of no use.
const CONNECTIONS_MIN: u64 = 16;
/// At most one in this many of the allowed connections may be without its beginning; the rest is for clients that have begun.
const NEWCOMERS_PART: u64 = 2;
/// When too many connections have not begun, one in this many of them is closed at once.
const EVICTED_PART: usize = 16;
/// A list of newcomers up to this length is not looked through for those that have begun or gone.
const UNSWEPT: usize = 64;

impl DescriptorPlan {
    /// The plan of a process that may have `allowed` descriptors.
    pub fn of(allowed: u64) -> DescriptorPlan {
        let files = helenus_host::real::read_descriptors_max(allowed);
        let http = (allowed / 32).clamp(8, 256);
        let server = 64 + (allowed / 16).min(4096);
        let connections = allowed.saturating_sub(files + http + server).max(CONNECTIONS_MIN);
        let per_address = connections - connections / KEPT_FROM_ONE_ADDRESS;
        DescriptorPlan { connections, per_address, http: http as usize }
    }
}

/// The open connections, and their limits.
#[derive(Debug)]
pub struct ConnectionBudget {
    in_all: u64,
    per_address: u64,
    open: Mutex<Open>,
    newcomers: Mutex<Newcomers>,
}

#[derive(Debug, Default)]
struct Open {
    in_all: u64,
    by_address: HashMap<IpAddr, u64>,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The limit for all addresses is reached.
    #[error(
        "there are {0} connections, as many as there may be; close some, or let the server have more open files (ulimit -n)"
    )]
    InAll(u64),
    /// The limit for the address is reached.
    #[error("this address has {0} connections, as many as it may have; close some")]
    OfAddress(u64),
}

impl ConnectionBudget {
    /// A budget of at most `in_all` connections, and `per_address` from one address.
    pub fn new(in_all: u64, per_address: u64) -> Arc<ConnectionBudget> {
        let newcomers = Mutex::new(Newcomers::of(in_all));
        Arc::new(ConnectionBudget { in_all, per_address, open: Mutex::default(), newcomers })
    }

    /// A budget without limits, for embedded servers and tests.
    pub fn unbounded() -> Arc<ConnectionBudget> {
        ConnectionBudget::new(u64::MAX, u64::MAX)
    }

    /// The limit for all addresses.
    pub fn in_all(&self) -> u64 {
        self.in_all
    }

    /// Adds a connection that has not begun. If there are too many, of whatever server, the oldest are told to end.
    pub fn add_newcomer(&self, newcomer: Weak<dyn Newcomer>) {
        let displaced = self.newcomers.lock().add(newcomer);
        displaced.iter().for_each(|newcomer| newcomer.displace());
    }

    /// Admits a connection from `address`.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Result<Admitted, NoRoom> {
        let address = network_of(address);
        let mut open = self.open.lock();
        if open.in_all >= self.in_all {
            return Err(NoRoom::InAll(self.in_all));
        }
        let of_address = open.by_address.entry(address).or_insert(0);
        if *of_address >= self.per_address {
            return Err(NoRoom::OfAddress(self.per_address));
        }
        *of_address += 1;
        open.in_all += 1;
        Ok(Admitted { budget: Arc::clone(self), address })
    }
}

/// An admitted connection, which leaves the budget on drop.
#[derive(Debug)]
pub struct Admitted {
    budget: Arc<ConnectionBudget>,
    address: IpAddr,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.budget.open.lock();
        open.in_all -= 1;
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// A connection as long as its client has not begun: it has sent no message that shows who it is.
pub trait Newcomer: Send + Sync {
    /// Whether it has begun meanwhile.
    fn has_begun(&self) -> bool;
    /// Tells it to end, so that there is room for another, unless it has begun meanwhile.
    fn displace(&self);
}

/// The connections that have not begun, the oldest first. When there are too many, the oldest are closed, so that clients
/// that connect and send nothing do not keep others out.
pub(crate) struct Newcomers {
    connections: VecDeque<Weak<dyn Newcomer>>,
    max: usize,
    /// The length at which those that have begun or gone are removed next.
    swept_at: usize,
}

impl std::fmt::Debug for Newcomers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Newcomers").field("max", &self.max).finish_non_exhaustive()
    }
}

impl Newcomers {
    /// A list for servers that allow this many connections.
    pub fn of(connections_max: u64) -> Newcomers {
        let max = usize::try_from(connections_max / NEWCOMERS_PART).unwrap_or(usize::MAX).max(1);
        Newcomers { connections: VecDeque::new(), max, swept_at: UNSWEPT.min(max) }
    }

    /// Adds a connection; returns those that must make room.
    #[must_use]
    pub fn add(&mut self, newcomer: Weak<dyn Newcomer>) -> Vec<Arc<dyn Newcomer>> {
        let mut displaced = Vec::new();
        if self.connections.len() >= self.swept_at {
            let waits = |weak: &Weak<dyn Newcomer>| weak.upgrade().is_some_and(|one| !one.has_begun());
            self.connections.retain(waits);
            if self.connections.len() >= self.max {
                // Several are closed at once, so that the list is not looked through for every new connection.
                let kept = self.max - self.max.div_ceil(EVICTED_PART);
                let surplus = self.connections.len().saturating_sub(kept);
                displaced.extend(self.connections.drain(..surplus).filter_map(|weak| weak.upgrade()));
            }
            // A list without a limit is not looked through for every new connection either.
            self.swept_at = (2 * self.connections.len()).max(UNSWEPT).min(self.max);
        }
        self.connections.push_back(newcomer);
        displaced
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct Silent {
        began: AtomicBool,
        displaced: AtomicBool,
    }

    impl Newcomer for Silent {
        fn has_begun(&self) -> bool {
            self.began.load(Ordering::Acquire)
        }

        fn displace(&self) {
            self.displaced.store(true, Ordering::Release);
        }
    }

    fn add(budget: &ConnectionBudget, one: &Arc<Silent>) {
        let one: Weak<Silent> = Arc::downgrade(one);
        budget.add_newcomer(one);
    }

    #[test]
    fn the_oldest_that_have_not_begun_make_room_and_those_that_have_do_not() {
        let budget = ConnectionBudget::new(64, 64);
        let first: Vec<Arc<Silent>> = (0..40).map(|_| Arc::default()).collect();
        for (number, one) in first.iter().enumerate() {
            one.began.store(number % 4 == 0, Ordering::Release);
            add(&budget, one);
        }
        let displaced = |one: &&Arc<Silent>| one.displaced.load(Ordering::Acquire);
        assert_eq!(first.iter().filter(displaced).count(), 0, "30 wait, and 32 may");
        let more: Vec<Arc<Silent>> = (0..8).map(|_| Arc::default()).collect();
        more.iter().for_each(|one| add(&budget, one));
        assert!(displaced(&&first[1]) && displaced(&&first[2]), "the oldest");
        assert!(!first.iter().step_by(4).any(|one| displaced(&one)), "none that has begun");
        assert!(budget.newcomers.lock().connections.len() <= 32);
    }

    #[test]
    fn a_list_without_a_limit_forgets_those_that_have_gone() {
        let budget = ConnectionBudget::unbounded();
        for _ in 0..10_000 {
            add(&budget, &Arc::default());
        }
        assert!(budget.newcomers.lock().connections.len() <= UNSWEPT);
    }

    #[test]
    fn connections_and_files_never_have_all_descriptors() {
        for allowed in [256, 512, 1024, 4096, 20_000, 65_536, 1 << 20, u64::MAX >> 1] {
            let plan = DescriptorPlan::of(allowed);
            let files = helenus_host::real::read_descriptors_max(allowed);
            let left = allowed - plan.connections - files - plan.http as u64;
            assert!(left >= 64, "{allowed}: {plan:?} leaves {left}");
            assert!(plan.per_address < plan.connections && plan.connections >= allowed / 4, "{plan:?}");
        }
    }

    #[test]
    fn an_address_leaves_room_for_others_and_places_come_back() {
        let budget = ConnectionBudget::new(5, 3);
        let from = |text: &str| budget.enter(text.parse().unwrap());
        let mut here: Vec<Admitted> = (0..3).map(|_| from("10.0.0.1").unwrap()).collect();
        assert_eq!(from("::ffff:10.0.0.1").unwrap_err(), NoRoom::OfAddress(3));
        let there = [from("2001:db8::1").unwrap(), from("2001:db8::2").unwrap()];
        assert_eq!(from("10.0.0.2").unwrap_err(), NoRoom::InAll(5));
        here.pop();
        here.push(from("10.0.0.1").unwrap());
        drop((here, there));
        assert!(budget.open.lock().by_address.is_empty());
    }
}
