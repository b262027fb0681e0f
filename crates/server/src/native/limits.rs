//! The limits of a native protocol server: sizes, numbers and durations.

use std::sync::Arc;
use std::time::Duration;

use crate::connection_budget::ConnectionBudget;

/// How often held answers are looked at for having waited too long: timeouts are exact to this.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Limits of the native protocol's server; the configuration fills them in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Threads that serve connections.
    pub doors: usize,
    /// `native_transport_max_frame_size`, v3 and v4.
    pub frame_bytes_max: u64,
    /// `native_transport_max_message_size`, v5.
    pub message_bytes_max: u64,
    /// `native_transport_max_request_data_in_flight`.
    pub in_flight_bytes_max: u64,
    /// `native_transport_max_request_data_in_flight_per_ip`.
    pub in_flight_bytes_max_per_address: u64,
    /// `native_transport_max_concurrent_connections`.
    pub connections_max: Option<u64>,
    /// `native_transport_max_concurrent_connections_per_ip`.
    pub connections_max_per_address: Option<u64>,
    /// `native_transport_throw_on_overload`: as if every STARTUP asked for it.
    pub throws_on_overload: bool,
    /// `rpc_keepalive`.
    pub keeps_alive: bool,
    /// `concurrent_reads`: threads for reads that wait for the disk.
    pub disk_threads_max: usize,
    /// Reads waiting for one of them.
    pub disk_queue_max: usize,
    /// How long a frame longer than one read may take to arrive, besides the time its length needs at 128 KiB a second.
    pub frame_grace: Duration,
    /// `handshake_timeout`: how long a connection may take to its STARTUP. Cassandra waits without end.
    pub handshake_timeout: Duration,
    /// `native_transport_idle_timeout`: how long a client may say nothing while nothing of it is in hand; `None`: as long as it likes.
    pub idle_timeout: Option<Duration>,
    /// What all servers of the process may have together.
    pub budget: Arc<ConnectionBudget>,
    /// How long a client may take nothing of answers that wait for it, before it is let go. Cassandra waits without end.
    pub reader_grace: Duration,
    /// `write_request_timeout`: how long an answer waits for the log.
    pub write_timeout: Duration,
    /// `busy_poll_us`: how long a door looks for the next request before it sleeps.
    pub busy_poll: Duration,
}

/// Bytes of the limit for each disk thread. A thread keeps freed memory of every size that its requests had: sixteen of
/// them kept 60 MiB, with which a limit of 64 MiB was passed, and did not do more requests than four.
const DISK_THREAD_BYTES: u64 = 16 << 20;

impl Limits {
    /// Cassandra's defaults where it has any, with `memory_bytes` in the place of its heap: a tenth of it for requests in
    /// flight, a fortieth for those of one address (`DatabaseDescriptor`), but never less than one largest frame.
    pub fn for_memory(memory_bytes: u64, doors: usize) -> Limits {
        let frame_bytes_max = helenus_wire::native::DEFAULT_MAX_FRAME;
        Limits {
            doors,
            frame_bytes_max,
            message_bytes_max: frame_bytes_max,
            in_flight_bytes_max: (memory_bytes / 10).max(frame_bytes_max),
            in_flight_bytes_max_per_address: (memory_bytes / 40).max(frame_bytes_max),
            connections_max: None,
            connections_max_per_address: None,
            throws_on_overload: false,
            keeps_alive: true,
            disk_threads_max: usize::try_from(memory_bytes / DISK_THREAD_BYTES)
                .unwrap_or(usize::MAX)
                .clamp(4, 32),
            disk_queue_max: 1024,
            frame_grace: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: None,
            budget: ConnectionBudget::unbounded(),
            reader_grace: Duration::from_secs(60),
            write_timeout: Duration::from_secs(2),
            busy_poll: Duration::ZERO,
        }
    }
}

/// A time in ticks.
pub(super) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX >> 1)
}
