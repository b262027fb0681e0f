//! Counts the open connections, of all clients and of each address, and says when there are too many. Of IPv6 a network of 64 bits
//! counts as one address.
//!
//! Asked by `server` before a connection costs anything: a refused one is not counted and gets no handshake (`refused`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use helenus_logins::network_of;
use parking_lot::Mutex;

/// The connections that are open now.
#[derive(Default)]
pub(crate) struct OpenConnections {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: u64,
    of_address: HashMap<IpAddr, u64>,
}

/// An open connection, until it is dropped.
pub(crate) struct Opened {
    connections: Arc<OpenConnections>,
    address: IpAddr,
}

impl OpenConnections {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.counts.lock().all == 0
    }

    /// Counts a connection from this address. `None` as a limit: as many as come.
    ///
    /// # Errors
    /// There is no place for it: the reason, for the client.
    pub fn open(
        self: &Arc<OpenConnections>,
        address: IpAddr,
        max: Option<u64>,
        max_of_address: Option<u64>,
    ) -> Result<Opened, String> {
        let address = network_of(address);
        let mut counts = self.counts.lock();
        if let Some(max) = max.filter(|max| counts.all >= *max) {
            return Err(format!("there are {max} connections, as many as there may be; close some"));
        }
        let of_address = counts.of_address.get(&address).copied().unwrap_or_default();
        if let Some(max) = max_of_address.filter(|max| of_address >= *max) {
            return Err(format!(
                "there are {max} connections from {address}, as many as there may be; close some"
            ));
        }
        Ok(self.count(address, &mut counts))
    }

    /// Counts a connection that is open already, whatever the limits.
    pub fn go_on(self: &Arc<OpenConnections>, address: IpAddr) -> Opened {
        self.count(network_of(address), &mut self.counts.lock())
    }

    fn count(self: &Arc<OpenConnections>, address: IpAddr, counts: &mut Counts) -> Opened {
        counts.all += 1;
        *counts.of_address.entry(address).or_default() += 1;
        Opened { connections: Arc::clone(self), address }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut counts = self.connections.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.of_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.of_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_all_and_for_an_address_and_refused_ones_count_for_nothing() {
        let connections = Arc::new(OpenConnections::default());
        let from =
            |text: &str, max, max_of_address| connections.open(text.parse().unwrap(), max, max_of_address);
        let first = from("10.0.0.1", Some(3), Some(2)).unwrap();
        let second = from("::ffff:10.0.0.1", Some(3), Some(2)).unwrap();
        for _ in 0..10 {
            let refused = from("10.0.0.1", Some(3), Some(2)).err().unwrap();
            assert!(refused.contains("2 connections from 10.0.0.1"), "{refused}");
            assert!(from("10.0.0.2", Some(2), None).err().unwrap().contains("there are 2 connections"));
        }
        let third = from("10.0.0.2", Some(3), Some(2)).expect("the refused ones have taken no place");
        let beyond = connections.go_on("10.0.0.1".parse().unwrap());
        assert_eq!(connections.counts.lock().all, 4);
        drop((first, second, third, beyond));
        let of_network = |host: u8| from(&format!("2001:db8::{host}"), None, Some(2));
        let two = (of_network(1).unwrap(), of_network(2).unwrap());
        assert!(of_network(3).is_err(), "a network of 64 bits is one address");
        drop(two);
        assert!(from("10.0.0.1", Some(1), Some(1)).is_ok());
        assert!(connections.counts.lock().of_address.is_empty());
    }
}
