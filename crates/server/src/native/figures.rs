//! What the native protocol's server has done and is doing, for `/metrics`.
//!
//! Requests are counted where one thread alone counts (`mailbox`), and summed here when somebody looks; errors and refusals
//! are seldom enough for shared counters.

use std::sync::atomic::{AtomicU64, Ordering};

use helenus_wire::native::ErrorCode;

use super::mailbox::Requested;

/// Counters that all connections share.
#[derive(Default)]
pub(super) struct Counts {
    errors: [AtomicU64; ErrorCode::ALL.len()],
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    /// Requests that were run by disk threads.
    pub disk_jobs: AtomicU64,
    /// Requests of connections that have ended.
    pub requests_ended: AtomicU64,
    pub prepared_ended: AtomicU64,
    pub regular_ended: AtomicU64,
}

impl Counts {
    /// Counts an ERROR that was sent.
    pub fn error(&self, code: ErrorCode) {
        let at = ErrorCode::ALL.iter().position(|known| *known == code);
        if let Some(count) = at.and_then(|at| self.errors.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps what a connection that ends has requested.
    pub fn ended(&self, requested: &Requested) {
        self.requests_ended.fetch_add(requested.all, Ordering::Relaxed);
        self.prepared_ended.fetch_add(requested.prepared, Ordering::Relaxed);
        self.regular_ended.fetch_add(requested.regular, Ordering::Relaxed);
    }

    /// Errors by code, those that never came included.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        ErrorCode::ALL.iter().map(|code| code.name()).zip(counts).collect()
    }
}

/// The figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct NativeFigures {
    /// Connections open.
    pub connections: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once, for limits on them.
    pub refused: u64,
    /// Requests received.
    pub requests: u64,
    /// Prepared statements among them.
    pub prepared: u64,
    /// Statements from their text.
    pub regular: u64,
    /// ERROR answers, by Cassandra's name of the code.
    pub errors: Vec<(&'static str, u64)>,
    /// Bytes of requests in flight, and how many there may be.
    pub in_flight_bytes: (u64, u64),
    /// Requests that were run by disk threads.
    pub disk_jobs: u64,
    /// Requests that wait for a disk thread.
    pub disk_queue: u64,
    /// Disk threads that were started.
    pub disk_threads: u64,
}
