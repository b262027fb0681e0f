//! Remembers when each address last opened a connection, by protocol version, for `clientstats --by-protocol`.
//!
//! It also has `pause` and `resume` of the native protocol's listener (`disablebinary`, `enablebinary`).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use parking_lot::Mutex;

use super::accept::{ListenOrder, Listeners};
use super::event_loops::NativeServer;
use crate::ServerError;
use crate::admin::{ClientLine, ClientsSeen, ProtocolClient};

/// The number of addresses kept for a version, as in Cassandra's `ProtocolVersionTracker`. The address seen longest ago
/// is dropped first.
const ADDRESSES_MAX: usize = 100;

/// When each address last opened a connection, by protocol version.
#[derive(Default)]
pub(super) struct History {
    seen: Mutex<HashMap<u8, HashMap<IpAddr, i64>>>,
}

impl History {
    /// Records that a connection has begun.
    pub fn note(&self, version: u8, address: IpAddr, now_ms: i64) {
        let mut seen = self.seen.lock();
        let addresses = seen.entry(version).or_default();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
            let oldest = addresses.iter().min_by_key(|(_, seen_ms)| **seen_ms).map(|(address, _)| *address);
            if let Some(oldest) = oldest {
                addresses.remove(&oldest);
            }
        }
        addresses.insert(address, now_ms);
    }

    fn lines(&self) -> Vec<ProtocolClient> {
        let seen = self.seen.lock();
        let mut lines: Vec<ProtocolClient> = seen
            .iter()
            .flat_map(|(version, addresses)| {
                addresses.iter().map(|(address, seen_ms)| ProtocolClient {
                    version: *version,
                    address: *address,
                    last_seen_ms: *seen_ms,
                })
            })
            .collect();
        lines.sort_by_key(|line| (line.version, std::cmp::Reverse(line.last_seen_ms), line.address));
        lines
    }
}

impl NativeServer {
    /// The clients connected now, and those seen since the start.
    pub fn clients_seen(&self) -> ClientsSeen {
        let line = |(facts, requests): (super::clients::ClientFacts, u64)| {
            Some(ClientLine {
                address: facts.address?,
                version: facts.version,
                user: facts.username().map(str::to_owned),
                tls: facts.session.as_ref().map(|(protocol, suite)| ((*protocol).to_owned(), suite.clone())),
                keyspace: facts.keyspace.as_deref().map(str::to_owned),
                requests,
                options: facts.options.into_iter().collect(),
            })
        };
        let mut connections: Vec<ClientLine> = self.shared().clients().into_iter().filter_map(line).collect();
        connections.sort_by_key(|client| client.address);
        ClientsSeen { connections, by_protocol: self.shared().history.lines() }
    }

    /// Forgets the clients seen so far.
    pub fn clear_clients_seen(&self) {
        self.shared().history.seen.lock().clear();
    }

    /// Closes the listener. Connections end once the requests that have arrived are answered. `resume` opens the
    /// listener again.
    pub fn pause(&self) {
        let listening = self.listening().lock();
        let (done, closed) = sync_channel(1);
        self.shared().pause(true);
        if listening.try_send(ListenOrder::Listen(None, done)).is_ok() {
            let _thread_may_be_gone = closed.recv();
        }
        for mailbox in self.shared().mailboxes() {
            mailbox.leaving.store(true, Ordering::Release);
            mailbox.wake();
        }
    }

    /// Listens again on the same address.
    ///
    /// # Errors
    /// Another program uses the address now, or the server has been stopped.
    pub fn resume(&self) -> Result<(), ServerError> {
        let listening = self.listening().lock();
        if self.is_running() {
            return Ok(());
        }
        let address: SocketAddr = self.address();
        let failed = |source| ServerError::Bind { address, source };
        let listeners = Some(Listeners::bind(self.addresses())?);
        let (done, opened) = sync_channel(1);
        self.shared().pause(false);
        let sent = listening.try_send(ListenOrder::Listen(listeners, done)).is_ok();
        if sent && opened.recv().unwrap_or(false) && self.is_running() {
            return Ok(());
        }
        self.shared().pause(true);
        Err(failed(std::io::Error::other("the server has been told to stop; start it again")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_seen_longest_ago_makes_room() {
        let history = History::default();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        for number in 0..150_u32 {
            history.note(5, address(number), i64::from(number));
            history.note(4, address(0), i64::from(number));
        }
        let lines = history.lines();
        assert_eq!(lines.len(), 101);
        assert_eq!((lines[0].version, lines[0].last_seen_ms), (4, 149));
        let of_five: Vec<i64> = lines[1..].iter().map(|line| line.last_seen_ms).collect();
        assert_eq!(of_five, (50..150).rev().collect::<Vec<i64>>());
    }
}
