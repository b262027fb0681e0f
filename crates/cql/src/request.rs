//! A request: what is sent with a statement, and who sends it. What comes back is in `answer`.
//!
//! Analysis and plans know requests. The interface for front ends, with prepared statements, is `backend`, above them.

use helenus_engine::Database;
use helenus_engine::read::{Probe, Stage};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

mod permits;
mod role_limits;
mod role_use;

pub(crate) use permits::{PermitNumbers, Permitted};
pub use role_limits::RoleLimits;
use role_use::Seat;
pub use role_use::{AnswerMemory, InFlight, is_role_limit};
pub(crate) use role_use::{Place, RoleFigures, RoleUses};

/// The most bytes of values that are decoded, or computed with, on a thread that may not wait.
pub(crate) const VALUES_AT_ONCE_BYTES: usize = 8 << 10;

/// The most statements of a batch that run on a thread that may not wait.
pub(crate) const STATEMENTS_AT_ONCE: usize = 256;

/// The identity behind a request: a role, or anonymous. Every statement carries it.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The role that logged in. `None`: nobody has; where clients have to log in, such an identity may do nothing.
    pub role: Option<Arc<str>>,
    /// The address of its client; `None` in the server's process, where no network lies between.
    pub address: Option<IpAddr>,
    /// Whether the server itself asks: it may do everything.
    is_server: bool,
    /// Its place among the sessions of its role, from the login on.
    seat: Option<Arc<Seat>>,
}

impl PartialEq for Identity {
    /// Who it is. In which session does not matter.
    fn eq(&self, other: &Identity) -> bool {
        (&self.role, self.address, self.is_server) == (&other.role, other.address, other.is_server)
    }
}

impl Eq for Identity {}

impl Identity {
    /// The identity of a role.
    pub fn of_role(role: &str) -> Identity {
        Identity { role: Some(role.into()), ..Identity::default() }
    }

    /// The same identity, of a client at this address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Identity {
        Identity { address, ..self }
    }

    /// The identity of the server itself, for its own statements.
    pub fn server() -> Identity {
        Identity { is_server: true, ..Identity::default() }
    }

    /// Whether it is that of the server itself.
    #[inline]
    pub fn is_server(&self) -> bool {
        self.is_server
    }
}

/// A bound value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundValue<'a> {
    /// A serialised value.
    Bytes(&'a [u8]),
    /// Null.
    Null,
    /// Unset: the column keeps its value (v4 and later).
    Unset,
}

/// The values of a request, by position or by name.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// In the order of the bind markers.
    Positional(&'a [BoundValue<'a>]),
    /// By name; markers may be in another order.
    Named(&'a [(&'a str, BoundValue<'a>)]),
}

/// What is sent with a statement that is to be run.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The keyspace of the session or, in v5, of the request.
    pub keyspace: Option<&'a str>,
    /// The identity of the client.
    pub identity: &'a Identity,
    /// The client's address, for tracing and logs.
    pub client: Option<SocketAddr>,
    /// The consistency level, numbered as in the protocol. One node holds every replica, so it only decides errors.
    pub consistency: u16,
    /// Serial consistency level, if given.
    pub serial_consistency: Option<u16>,
    /// The bound values.
    pub values: Values<'a>,
    /// The number of rows in a page; `None` for all.
    pub page_size: Option<u32>,
    /// The paging state of the last page.
    pub paging_state: Option<&'a [u8]>,
    /// The timestamp of the writes, microseconds; `None`: the server's.
    pub timestamp_us: Option<i64>,
    /// The client's current time (v5), seconds.
    pub now_s: Option<i64>,
    /// Whether reads may wait for the disk.
    pub may_block: bool,
    /// Monotonic time (of the host's clock, ns) at which the request is given up; `None`: the backend's own limit.
    pub deadline_ns: Option<u64>,
    /// Set when the client has disconnected.
    pub cancelled: Option<&'a AtomicBool>,
    /// Counts what the request touches and where its time is spent; `None`: not counted. It sums over requests, so a
    /// request that is run again after `WouldBlock` takes a fresh one.
    pub probe: Option<&'a Mutex<Probe>>,
    /// Whether a write without a condition is only checked: what would refuse it does, and nothing is written.
    pub is_trial: bool,
}

/// Consistency level ONE, as the protocol numbers it.
const CONSISTENCY_ONE: u16 = 1;

impl<'a> Request<'a> {
    /// A request with these values and nothing else: no keyspace, no paging, level ONE, and it may wait for the disk.
    pub fn plain(identity: &'a Identity, values: &'a [BoundValue<'a>]) -> Request<'a> {
        Request {
            keyspace: None,
            identity,
            client: None,
            consistency: CONSISTENCY_ONE,
            serial_consistency: None,
            values: Values::Positional(values),
            page_size: None,
            paging_state: None,
            timestamp_us: None,
            now_s: None,
            may_block: true,
            deadline_ns: None,
            cancelled: None,
            probe: None,
            is_trial: false,
        }
    }
}

impl Values<'_> {
    /// The total size of the values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |value: &BoundValue<'_>| match value {
            BoundValue::Bytes(bytes) => bytes.len(),
            BoundValue::Null | BoundValue::Unset => 0,
        };
        match self {
            Values::Positional(values) => values.iter().map(of).sum(),
            Values::Named(values) => values.iter().map(|(_, value)| of(value)).sum(),
        }
    }
}

impl Request<'_> {
    /// Whether the consistency level is SERIAL or LOCAL_SERIAL.
    pub(crate) fn is_serial(&self) -> bool {
        matches!(self.consistency, 0x08 | 0x09)
    }

    /// The clock, if the request has a probe; pass it to `spent`.
    pub(crate) fn began_ns(&self, database: &Database) -> Option<u64> {
        self.probe.map(|_| database.host().clock.monotonic_ns())
    }

    /// Adds the time since `began_ns` to a stage of the request's probe.
    pub(crate) fn spent(&self, database: &Database, stage: Stage, began_ns: Option<u64>) {
        if let (Some(probe), Some(began_ns)) = (self.probe, began_ns) {
            let passed_ns = database.host().clock.monotonic_ns().saturating_sub(began_ns);
            probe.lock().times.add(stage, passed_ns);
        }
    }
}

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Atomic across partitions.
    Logged,
    /// Atomic within each partition (here across partitions too).
    Unlogged,
    /// Counter updates.
    Counter,
}
