//! The event loops: one thread with one single-threaded runtime for each core, each serving its share of the connections.
//!
//! A new connection goes to the event loop that has the fewest, and stays there. So a request wakes one thread and takes no
//! lock that another core holds. A work-stealing runtime would balance long requests, at the price of a second wake-up for
//! each request; here reads are cut into pages and whatever waits goes to the disk pool, so there is little to balance.
//! Only this file knows which kind of runtime is used: a connection is a `Send` future.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use helenus_cql::backend::Backend;
use helenus_cql::virtual_table::VirtualTable;
use helenus_engine::Listening;
use helenus_host::{Host, Next, TaskHandle, Worker};
use helenus_tls::session_names;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::accept::{Accepted, Acceptor, Entrant, ListenAddresses, ListenOrder, Listeners};
use super::client_history::History;
use super::clients::{self, ClientFacts};
use super::connection::{Connection, Scratch};
use super::disk_pool::{DiskPool, PoolLimits};
use super::hand_over::{HandOver, Step};
use super::in_flight::InFlightBytes;
use super::job::{JobRunner, Reports};
use super::limits::{Limits, ticks};
use super::mailbox::{Mailbox, Waiters};
use super::metrics::{Counts, NativeMetrics};
use super::refused::Refused;
use crate::ServerError;
use crate::admin::Pool;
use crate::busy_poll::BusyPoll;
use crate::connection_budget::{Admitted, Newcomers};
use crate::log::SlowStatements;
use crate::logins::{LoginFigures, LoginPool};
use crate::tls::{Handshakes, Secured, ServerStream};

/// Accepted connections on their way to an event loop. A connection that finds this queue full is dropped.
const ACCEPTED_MAX: usize = 1024;
/// Connections that the operating system keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// How long a stopping server waits for clients to take their last answers.
const DRAIN: Duration = Duration::from_secs(10);
/// How long a stopping server lets requests on disk threads go on.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What all connections share.
pub(super) struct Shared {
    pub backend: Arc<dyn Backend>,
    pub host: Host,
    pub limits: Limits,
    /// `write_timeout` in ticks. It starts as in `limits` and can be changed at run time.
    pub write_timeout_ticks: AtomicU64,
    pub disk_pool: DiskPool,
    /// Checks logins, which take long by design: few threads, so that no other request waits for them.
    pub login_pool: Arc<LoginPool>,
    /// Runs the logins that the pool takes from this server.
    pub login_runner: Arc<JobRunner>,
    pub counts: Counts,
    /// The log of slow and failed statements; `None` if there is none.
    pub slow: Option<Arc<SlowStatements>>,
    pub in_flight: Arc<InFlightBytes>,
    /// The connections that hold answers until the log is written.
    pub written: Arc<Waiters>,
    /// Grows by one every `limits::TICK`.
    pub ticks: AtomicU64,
    /// The fraction of requests that are traced without asking, from 0 to 1, as the bits of an f64.
    pub trace_probability: AtomicU64,
    /// All open connections, for events and for stopping.
    connections: Mutex<Vec<Arc<Mailbox>>>,
    stopping: AtomicBool,
    /// Connections whose handshake of TLS is not done.
    pub handshakes_count: AtomicUsize,
    /// New connections are refused until `resume`.
    paused: AtomicBool,
    /// The clients seen so far.
    pub history: History,
    /// Where connections wait, and whom they are handed to.
    pub hand_over: HandOver,
}

impl Shared {
    /// The periodic work.
    pub(super) fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        // Connections that hold answers check whether these have waited too long.
        self.written.wake_all();
        self.login_runner.send_due();
    }

    /// Whether no more input is to be read.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The client of each connection, and its number of requests so far.
    pub fn clients(&self) -> Vec<(ClientFacts, u64)> {
        let connections = self.connections.lock();
        let client = |mailbox: &Arc<Mailbox>| {
            (mailbox.facts.lock().clone(), mailbox.requests_count.load(Ordering::Relaxed))
        };
        connections.iter().map(client).collect()
    }

    /// The mailboxes of all connections.
    pub fn mailboxes(&self) -> Vec<Arc<Mailbox>> {
        self.connections.lock().clone()
    }

    /// Sets whether new connections are refused.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    /// Connections open now.
    pub fn connections_count(&self) -> usize {
        self.connections.lock().len()
    }

    /// Draws by `trace_probability` whether a request that did not ask for tracing is traced; returns its session.
    pub fn drawn_to_be_traced(&self) -> Option<uuid::Uuid> {
        let bits = self.trace_probability.load(Ordering::Relaxed);
        if bits == 0 {
            return None;
        }
        let mut draw = [0; 8];
        self.host.random.fill(&mut draw);
        // 53 bits, the precision of an f64.
        let drawn = (u64::from_le_bytes(draw) >> 11) as f64 / (1_u64 << 53) as f64;
        (drawn < f64::from_bits(bits)).then(|| super::answer::tracing_id(&self.host))
    }

    fn leave(&self, mailbox: &Arc<Mailbox>) {
        let mut connections = self.connections.lock();
        if let Some(at) = connections.iter().position(|other| Arc::ptr_eq(other, mailbox)) {
            connections.swap_remove(at);
            self.counts.ended(&mailbox.requested());
        }
    }
}

/// One event loop.
pub(super) struct EventLoop {
    pub shared: Arc<Shared>,
    pub busy_poll: Arc<BusyPoll>,
    scratch: Mutex<Vec<Box<Scratch>>>,
    pub connections: AtomicUsize,
}

impl EventLoop {
    /// Lends buffers for one poll.
    pub fn lend(&self) -> Box<Scratch> {
        self.scratch.lock().pop().unwrap_or_default()
    }

    /// Takes the buffers back.
    pub fn take_back(&self, scratch: Box<Scratch>) {
        self.scratch.lock().push(scratch);
    }
}

/// A running server of the native protocol.
pub struct NativeServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    encrypted_address: Option<SocketAddr>,
    shard_aware_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    listening: Mutex<mpsc::Sender<ListenOrder>>,
    threads: Vec<Arc<dyn TaskHandle>>,
    /// Removes the callbacks when this server goes: the backend outlives it.
    _listening_to_backend: [Listening; 2],
}

impl NativeServer {
    /// Binds `address` (port 0: a free one) and starts to serve.
    ///
    /// # Errors
    /// The address cannot be bound, or a runtime cannot be built.
    pub fn start(
        host: &Host,
        backend: Arc<dyn Backend>,
        address: SocketAddr,
        limits: Limits,
    ) -> Result<NativeServer, ServerError> {
        NativeServer::start_watched(host, backend, address, limits, None)
    }

    /// As `start`, and logs slow and failed statements, overload and refused connections.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_watched(
        host: &Host,
        backend: Arc<dyn Backend>,
        address: SocketAddr,
        limits: Limits,
        slow: Option<Arc<SlowStatements>>,
    ) -> Result<NativeServer, ServerError> {
        let (encrypted, shard_aware) = (limits.encrypted_address, limits.shard_aware_address);
        let listeners = Listeners::bind(ListenAddresses { first: address, encrypted, shard_aware })?;
        let own = |listener: &std::net::TcpListener| {
            listener.local_addr().map_err(|source| ServerError::Bind { address, source })
        };
        let encrypted_address = listeners.encrypted.as_ref().map(own).transpose()?;
        let shard_aware_address = listeners.shard_aware.as_ref().map(own).transpose()?;
        let address = own(&listeners.first)?;
        let shared = Arc::new(Shared {
            disk_pool: DiskPool::new(
                host.clone(),
                Arc::clone(&backend),
                PoolLimits {
                    name: "disk",
                    threads_max: limits.disk_threads_max,
                    queue_max: limits.disk_queue_max,
                    frame_bytes_max: limits.frame_bytes_max,
                },
                Reports { slow: slow.clone(), audit: limits.audit.clone() },
            ),
            login_pool: {
                let backend = Arc::clone(&backend);
                let rooms = move |client, role: &str| backend.login_room(client, role);
                LoginPool::with_rooms(host.clone(), limits.login_threads_max, Box::new(rooms))
            },
            login_runner: Arc::new(JobRunner::new(
                host.clock.clone(),
                Arc::clone(&backend),
                limits.frame_bytes_max,
                Reports { slow: None, audit: limits.audit.clone() },
            )),
            counts: Counts::default(),
            slow,
            in_flight: InFlightBytes::new(limits.in_flight_bytes_max, limits.in_flight_bytes_max_per_address),
            written: Arc::default(),
            ticks: AtomicU64::new(0),
            trace_probability: AtomicU64::new(0),
            connections: Mutex::default(),
            stopping: AtomicBool::new(false),
            paused: AtomicBool::new(limits.starts_paused),
            handshakes_count: AtomicUsize::new(0),
            history: History::default(),
            hand_over: HandOver::default(),
            host: host.clone(),
            backend,
            write_timeout_ticks: AtomicU64::new(ticks(limits.write_timeout)),
            limits,
        });
        let listening_to_backend = listen_to_backend(&shared);
        let (stop, stopped) = watch::channel(false);
        let (listening, orders) = mpsc::channel(1);
        let mut threads = Vec::new();
        let mut ways = Vec::new();
        for number in 0..shared.limits.event_loops.max(1) {
            let (way, arriving) = mpsc::channel(ACCEPTED_MAX);
            let event_loop = Arc::new(EventLoop {
                shared: Arc::clone(&shared),
                busy_poll: BusyPoll::new(&host.clock, shared.limits.busy_poll),
                scratch: Mutex::default(),
                connections: AtomicUsize::new(0),
            });
            ways.push((way, Arc::clone(&event_loop)));
            let stopped = stopped.clone();
            let work = runtime()?;
            threads.push((number, EventLoopThread { work: Some((work, event_loop, arriving, stopped)) }));
        }
        let (handshakes, handshake_thread) = match &shared.limits.tls {
            None => (None, None),
            Some(tls) => {
                let (tls, time_max) = (Arc::clone(tls), shared.limits.handshake_timeout);
                let started = Handshakes::start(host, "tls-handshakes", tls, time_max);
                let (handshakes, thread) = started.map_err(|source| ServerError::Runtime { source })?;
                (Some(handshakes), Some(thread))
            }
        };
        let accepting = Acceptor {
            newcomers: shared.limits.connections_max.map(Newcomers::of),
            shared: Arc::clone(&shared),
            ways: Arc::new(ways),
            handshakes,
            stopped,
            orders,
            refused: Refused::default(),
        };
        let accept = AcceptThread { work: Some((runtime()?, listeners, accepting)) };
        let mut server = NativeServer {
            shared,
            address,
            encrypted_address,
            shard_aware_address,
            stop,
            listening: Mutex::new(listening),
            threads: handshake_thread.into_iter().collect(),
            _listening_to_backend: listening_to_backend,
        };
        // Clients are accepted once there is a thread for each event loop. If there is none, those that there are end with the server.
        let mut named: VecDeque<(String, Box<dyn Worker>)> = VecDeque::new();
        for (number, thread) in threads {
            named.push_back((format!("event-loop-{number}"), Box::new(thread)));
        }
        named.push_back(("accept".to_owned(), Box::new(accept)));
        while let Some((name, worker)) = named.pop_front() {
            match host.tasks.try_start(&name, worker) {
                Ok(thread) => server.threads.push(thread),
                Err(source) => {
                    drop(named);
                    drop(server);
                    return Err(ServerError::Runtime { source });
                }
            }
        }
        Ok(server)
    }

    /// The threads that check logins, for the other interfaces of this database.
    pub fn login_pool(&self) -> &Arc<LoginPool> {
        &self.shared.login_pool
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn listening(&self) -> &Mutex<mpsc::Sender<ListenOrder>> {
        &self.listening
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The second address, for TLS, if there is one.
    pub fn encrypted_address(&self) -> Option<SocketAddr> {
        self.encrypted_address
    }

    /// The second address for clients in the clear or by TLS, if there is one.
    pub fn shard_aware_address(&self) -> Option<SocketAddr> {
        self.shard_aware_address
    }

    /// All addresses, with the ports that the system chose.
    pub(super) fn addresses(&self) -> ListenAddresses {
        let (encrypted, shard_aware) = (self.encrypted_address, self.shard_aware_address);
        ListenAddresses { first: self.address, encrypted, shard_aware }
    }

    /// Connections open now.
    pub fn connections_count(&self) -> usize {
        self.shared.connections_count()
    }

    /// The metrics of the server.
    pub fn figures(&self) -> NativeMetrics {
        let shared = &self.shared;
        let counts = &shared.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        // The list is locked meanwhile. Otherwise a connection that ends now would be missed, and the sum would fall,
        // or be counted twice, and the sum would stay wrong.
        let connections = shared.connections.lock();
        let mut figures = NativeMetrics {
            connections: connections.len() as u64,
            accepted: get(&counts.accepted),
            refused: get(&counts.refused),
            handshakes_failed: get(&counts.handshakes_failed),
            requests: get(&counts.requests_ended),
            prepared: get(&counts.prepared_ended),
            regular: get(&counts.regular_ended),
            errors: counts.errors(),
            in_flight_bytes: shared.in_flight.in_flight(),
            disk_jobs: get(&counts.disk_jobs),
            ..NativeMetrics::default()
        };
        for mailbox in connections.iter() {
            let requested = mailbox.requested();
            figures.requests += requested.all;
            figures.prepared += requested.prepared;
            figures.regular += requested.regular;
        }
        drop(connections);
        (figures.disk_queue, figures.disk_threads) = shared.disk_pool.figures();
        figures
    }

    /// The load of the event loops and the disk threads. Requests that an event loop answers at once are never counted
    /// as waiting.
    pub fn pools(&self) -> Vec<Pool> {
        let disk = self.shared.disk_pool.pool();
        let requests = Pool {
            name: "Native-Transport-Requests".to_owned(),
            active: disk.active,
            pending: disk.pending,
            completed: self.figures().requests,
            refused: disk.refused,
        };
        let LoginFigures { active, pending, completed, refused } = self.shared.login_pool.figures();
        let name = "Native-Transport-Auth-Requests".to_owned();
        vec![requests, Pool { name, active, pending, completed, refused }, disk]
    }

    /// Bytes of requests in flight, and their limit.
    pub fn request_bytes(&self) -> (u64, u64) {
        self.shared.in_flight.in_flight()
    }

    /// The fraction of requests that are traced without asking, from 0 to 1.
    pub fn trace_probability(&self) -> f64 {
        f64::from_bits(self.shared.trace_probability.load(Ordering::Relaxed))
    }

    /// Sets that fraction until the next start.
    pub fn set_trace_probability(&self, probability: f64) {
        // Adding 0.0 turns -0.0, which has a bit set, into 0.
        self.shared.trace_probability.store((probability + 0.0).to_bits(), Ordering::Relaxed);
    }

    /// Sets how long answers to writes may wait for the log.
    pub fn set_write_timeout(&self, timeout: Duration) {
        self.shared.write_timeout_ticks.store(ticks(timeout), Ordering::Relaxed);
    }

    /// Whether new clients are accepted.
    pub fn is_running(&self) -> bool {
        !self.shared.is_stopping() && !self.shared.paused.load(Ordering::Acquire)
    }

    /// `system_views.clients`, to be registered with the backend's virtual tables.
    pub fn clients_table(&self) -> Arc<dyn VirtualTable> {
        clients::table(&self.shared)
    }

    /// `system.clients`, the same in the shape of ScyllaDB's table.
    pub fn clients_table_of_scylla(&self) -> Arc<dyn VirtualTable> {
        clients::table_of_scylla(&self.shared)
    }

    /// Stops accepting, answers the requests that have been received, and closes all connections. Requests on disk
    /// threads are cancelled after one second. Blocks until that is done, but at most ten seconds for clients that do
    /// not take their answers.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        let _doors_may_be_gone = self.stop.send(true);
        for mailbox in self.shared.connections.lock().clone() {
            mailbox.wake();
        }
        self.shared.login_runner.end_delays();
        self.shared.login_pool.drain(STOP_PATIENCE);
        self.shared.disk_pool.drain(STOP_PATIENCE);
        for thread in &self.threads {
            thread.join();
        }
        self.shared.disk_pool.stop();
    }
}

impl Drop for NativeServer {
    fn drop(&mut self) {
        self.stop();
        // Not by `stop`: after it, the HTTP port still takes logins.
        self.shared.login_pool.stop();
    }
}

/// Opens a non-blocking listener on `address`.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| ServerError::Runtime { source })
}

/// Listens to what the backend reports. The server keeps the results, and not `Shared`, which a callback may be the last to hold.
fn listen_to_backend(shared: &Arc<Shared>) -> [Listening; 2] {
    let waiting = Arc::clone(&shared.written);
    let written = shared.backend.on_written(Box::new(move || waiting.wake_all()));
    // Weak: the backend outlives the server and must not keep it alive.
    let weak = Arc::downgrade(shared);
    let changed = shared.backend.on_schema_change(Box::new(move |change| {
        let Some(shared) = weak.upgrade() else { return };
        let change = Arc::new(change.clone());
        for mailbox in shared.connections.lock().iter() {
            mailbox.announce(&change);
        }
    }));
    [written, changed]
}

struct AcceptThread {
    work: Option<(tokio::runtime::Runtime, Listeners, Acceptor)>,
}

impl Worker for AcceptThread {
    fn step(&mut self) -> Next {
        if let Some((runtime, listeners, accepting)) = self.work.take() {
            runtime.block_on(accepting.run(listeners));
        }
        Next::Done
    }
}

type EventLoopWork =
    (tokio::runtime::Runtime, Arc<EventLoop>, mpsc::Receiver<Accepted>, watch::Receiver<bool>);

struct EventLoopThread {
    work: Option<EventLoopWork>,
}

impl Worker for EventLoopThread {
    fn step(&mut self) -> Next {
        if let Some((runtime, event_loop, arriving, stopped)) = self.work.take() {
            runtime.block_on(keep(event_loop, arriving, stopped));
        }
        Next::Done
    }
}

/// Runs an event loop until it is told to stop and its connections have ended.
async fn keep(
    event_loop: Arc<EventLoop>,
    mut arriving: mpsc::Receiver<Accepted>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let awake = tokio::spawn(Arc::clone(&event_loop.busy_poll).run());
    loop {
        tokio::select! {
            arrival = arriving.recv() => match arrival {
                Some(arrival) => open(&event_loop, arrival, &mut connections),
                None => break,
            },
            _ = stopped.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    let _some_would_not_read = tokio::time::timeout(DRAIN, drained).await;
    awake.abort();
}

fn open(event_loop: &Arc<EventLoop>, arrival: Accepted, connections: &mut JoinSet<()>) {
    let Ok(stream) = TcpStream::from_std(arrival.stream) else {
        event_loop.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    };
    let Entrant { client, share, mailbox, admitted } = arrival.entrant;
    if let Some(Secured { session, .. }) = &arrival.secured {
        let (protocol, suite) = (session.protocol_version(), session.negotiated_cipher_suite());
        mailbox.facts.lock().session = Some(session_names(protocol, suite));
    }
    let stream = ServerStream::new(stream, arrival.secured);
    if let Some(certificate) = stream.client_certificate() {
        mailbox.certificate.get_or_init(|| certificate);
    }
    {
        let mut connections = event_loop.shared.connections.lock();
        connections.push(Arc::clone(&mailbox));
        // The connection was accepted before `pause` closed the listener. While the server is at rest it waits, to be handed over or served.
        let shared = &event_loop.shared;
        let leaves = shared.paused.load(Ordering::Acquire) && shared.hand_over.order().step() == Step::Serve;
        mailbox.leaving.store(leaves, Ordering::Release);
    }
    let place = ConnectionEntry {
        event_loop: Arc::clone(event_loop),
        mailbox: Arc::clone(&mailbox),
        _admitted: admitted,
    };
    let mut connection = Connection::new(stream, Some(client), share, Arc::clone(event_loop), mailbox);
    connections.spawn(async move {
        (&mut connection).await;
        let shared = Arc::clone(&place.event_loop.shared);
        if let Some((stream, state)) = connection.handed_over() {
            shared.hand_over.give(stream, state);
        }
        drop(place);
    });
}

/// A connection's entry in the lists, removed on drop, however the connection ends.
struct ConnectionEntry {
    event_loop: Arc<EventLoop>,
    mailbox: Arc<Mailbox>,
    _admitted: Admitted,
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.event_loop.connections.fetch_sub(1, Ordering::Relaxed);
        self.event_loop.shared.leave(&self.mailbox);
    }
}
