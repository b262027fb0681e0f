//! The limits of a native protocol server: sizes, numbers and durations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_tls::ServerTls;

use super::own_clients::OwnClients;
use crate::audit::Audit;
use crate::connection_budget::ConnectionBudget;

/// How often held answers are checked for timeouts, and so the precision of timeouts.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The longest decompressed body, after the login, of a request that is not for the backend.
pub(super) const SMALL_REQUEST_BYTES_MAX: u64 = 128 << 10;

/// The limits of the native protocol's server, filled in from the configuration.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of event loops.
    pub event_loops: usize,
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
    /// `native_transport_throw_on_overload`: treats every STARTUP as if it asked for THROW_ON_OVERLOAD.
    pub throws_on_overload: bool,
    /// `rpc_keepalive`.
    pub keeps_alive: bool,
    /// `concurrent_reads`: the most disk threads.
    pub disk_threads_max: usize,
    /// The most requests that wait for a disk thread.
    pub disk_queue_max: usize,
    /// `native_transport_max_auth_threads`: the most threads that check logins.
    pub login_threads_max: usize,
    /// The grace period of a frame longer than one read. To it is added the time that its length takes at 128 KiB a
    /// second.
    pub frame_grace: Duration,
    /// `handshake_timeout`: how long a connection may take to send STARTUP. Cassandra waits without limit.
    pub handshake_timeout: Duration,
    /// `native_transport_idle_timeout`: how long a client may be silent while none of its requests is in progress;
    /// `None`: without limit.
    pub idle_timeout: Option<Duration>,
    /// The limit on the connections of all servers of the process.
    pub budget: Arc<ConnectionBudget>,
    /// How long a client may leave its answers unread before its connection is closed. Cassandra waits without limit.
    pub reader_grace: Duration,
    /// `write_request_timeout`: how long an answer waits for the log.
    pub write_timeout: Duration,
    /// `busy_poll_us`: how long an event loop polls for the next request before it sleeps.
    pub busy_poll: Duration,
    /// The audit log; `None`: nothing is audited.
    pub audit: Option<Arc<Audit>>,
    /// `client_encryption_options`; `None`: connections are in the clear.
    pub tls: Option<Arc<ServerTls>>,
    /// `native_transport_port_ssl`: a second address, for TLS, while the first is in the clear.
    pub encrypted_address: Option<SocketAddr>,
    /// `native_shard_aware_transport_port`: a second address that is as the first.
    pub shard_aware_address: Option<SocketAddr>,
    /// The only clients, for a server inside a tool; `None`: everybody.
    pub own_clients: Option<Arc<OwnClients>>,
    /// Whether the server takes its addresses but listens on none until `NativeServer::resume`.
    pub starts_paused: bool,
}

/// Memory for each disk thread. A thread keeps freed memory of every size that its requests used: sixteen threads kept
/// 60 MiB, which exceeded a limit of 64 MiB, and served no more requests than four.
const DISK_THREAD_BYTES: u64 = 16 << 20;

impl Limits {
    /// The bytes in flight of one address: a quarter of all stays for others. A larger message is taken when nothing else of its address is
    /// in flight and the whole has room for it.
    pub fn of_one_address(wanted: u64, all: u64) -> u64 {
        wanted.min(all - all / 4)
    }

    /// Cassandra's defaults where there are any, with `memory_bytes` in place of the heap: a tenth of it for requests
    /// in flight, a fortieth for those of one address (`DatabaseDescriptor`), but never less than the largest frame, and for one address
    /// never all.
    pub fn for_memory(memory_bytes: u64, event_loops: usize) -> Limits {
        let frame_bytes_max = helenus_wire::native::DEFAULT_MAX_FRAME;
        Limits {
            event_loops,
            frame_bytes_max,
            message_bytes_max: frame_bytes_max,
            in_flight_bytes_max: (memory_bytes / 10).max(frame_bytes_max),
            in_flight_bytes_max_per_address: Limits::of_one_address(
                (memory_bytes / 40).max(frame_bytes_max),
                (memory_bytes / 10).max(frame_bytes_max),
            ),
            connections_max: None,
            connections_max_per_address: None,
            throws_on_overload: false,
            keeps_alive: true,
            disk_threads_max: usize::try_from(memory_bytes / DISK_THREAD_BYTES)
                .unwrap_or(usize::MAX)
                .clamp(4, 32),
            login_threads_max: 4,
            disk_queue_max: 1024,
            frame_grace: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: None,
            budget: ConnectionBudget::unbounded(),
            reader_grace: Duration::from_secs(60),
            write_timeout: Duration::from_secs(2),
            busy_poll: Duration::ZERO,
            audit: None,
            tls: None,
            encrypted_address: None,
            shard_aware_address: None,
            own_clients: None,
            starts_paused: false,
        }
    }
}

/// Converts a time to ticks.
pub(super) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX >> 1)
}
