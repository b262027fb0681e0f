//! Limits the number of connections of all servers of the process, in all and for each client address.
//!
//! A file descriptor used by a connection is not available to the commit log, the files and the admin socket. So
//! connections get a part of the process's descriptors and never the rest. One address gets most of that part but not
//! all, so that a client that opens connections without end does not keep others out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

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
        Arc::new(ConnectionBudget { in_all, per_address, open: Mutex::default() })
    }

    /// A budget without limits, for embedded servers and tests.
    pub fn unbounded() -> Arc<ConnectionBudget> {
        ConnectionBudget::new(u64::MAX, u64::MAX)
    }

    /// The limit for all addresses.
    pub fn in_all(&self) -> u64 {
        self.in_all
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

/// The part of an address that is counted as one client: for IPv6 the 64 bits of the network, because a host chooses
/// the others freely.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        other => other,
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

#[cfg(test)]
mod tests {
    use super::*;

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
