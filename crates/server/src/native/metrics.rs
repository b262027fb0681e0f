//! The metrics of the native protocol's server, for `/metrics`.
//!
//! Each connection counts its own requests (see `mailbox`), and they are summed when the metrics are read. Errors and
//! refusals are rare enough for shared counters.

use std::sync::atomic::{AtomicU64, Ordering};

use helenus_wire::native::ErrorCode;

use super::mailbox::Requested;

/// Counters that all connections share.
#[derive(Default)]
pub(super) struct Counts {
    errors: [AtomicU64; ErrorCode::ALL.len()],
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    /// Connections whose handshake of TLS failed.
    pub handshakes_failed: AtomicU64,
    /// Requests that were sent to disk threads.
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

    /// Adds the requests of a connection that ends.
    pub fn ended(&self, requested: &Requested) {
        self.requests_ended.fetch_add(requested.all, Ordering::Relaxed);
        self.prepared_ended.fetch_add(requested.prepared, Ordering::Relaxed);
        self.regular_ended.fetch_add(requested.regular, Ordering::Relaxed);
    }

    /// Error counts by code, zeros included.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        ErrorCode::ALL.iter().map(|code| code.name()).zip(counts).collect()
    }
}

/// The metrics at one moment.
#[derive(Clone, Debug, Default)]
pub struct NativeMetrics {
    /// Open connections.
    pub connections: u64,
    /// Accepted connections, since the start.
    pub accepted: u64,
    /// Connections that were refused because of a limit.
    pub refused: u64,
    /// Connections whose handshake of TLS failed.
    pub handshakes_failed: u64,
    /// Requests received.
    pub requests: u64,
    /// EXECUTE requests among them.
    pub prepared: u64,
    /// QUERY requests among them.
    pub regular: u64,
    /// ERROR answers, by Cassandra's name of the code.
    pub errors: Vec<(&'static str, u64)>,
    /// Bytes of requests in flight, and their limit.
    pub in_flight_bytes: (u64, u64),
    /// Requests that were sent to disk threads.
    pub disk_jobs: u64,
    /// Requests that wait for a disk thread.
    pub disk_queue: u64,
    /// Disk threads that have been started.
    pub disk_threads: u64,
}
