//! The RPC server: one thread accepts, and one event loop for each core serves its share of the connections.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use helenus_engine::Listening;
use helenus_host::{Clock, Host, Next, TaskHandle, Worker};
use helenus_rpc::Rpc;
use helenus_tls::ServerTls;
use helenus_wire::thrift;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

use super::connection::{EventLoop, serve};
use super::newcomer::RpcNewcomer;
use super::under_way::UnderWay;
use super::watch::{CallWatch, LoopCounters, RpcMetrics};
use crate::ServerError;
use crate::audit::Audit;
use crate::busy_poll::BusyPoll;
use crate::connection_budget::{Admitted, ConnectionBudget};
use crate::log::SlowStatements;
use crate::logins::LoginPool;
use crate::native::{ConnectionShare, InFlightBytes, bind};
use crate::thread_pool::ThreadPool;
use crate::tls::{Candidate, Handshakes, Secured, ServerStream};

/// Accepted connections on their way to an event loop. A connection that finds this queue full is closed.
const ACCEPTED_MAX: usize = 1024;
/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The threads that check logins, of a server that has its own.
const OWN_LOGIN_THREADS: usize = 4;
/// How long a stopping server waits for clients to take their last answers.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the end of a server waits for logins at least: a check of a password takes up to a second.
const LOGINS_MIN: Duration = Duration::from_secs(2);

/// The limits of the RPC server.
#[derive(Clone, Debug)]
pub struct RpcLimits {
    /// The number of event loops.
    pub threads: usize,
    /// `thrift_framed_transport_size` and `thrift_max_message_length`.
    pub messages: thrift::Limits,
    /// Limits on the bytes of messages in flight, of all clients and of one address.
    pub in_flight_bytes_max: (u64, u64),
    /// `concurrent_reads`: disk threads for each event loop.
    pub disk_threads_max: usize,
    /// `write_request_timeout`: how long an answer waits for the log.
    pub write_timeout: Duration,
    /// `rpc_handshake_timeout`: how long a connection may take to send its first message.
    pub handshake_timeout: Duration,
    /// The limit on the connections of all servers of the process.
    pub budget: Arc<ConnectionBudget>,
    /// The grace period of a message. To it is added the time that its length takes at 128 KiB a second.
    pub message_grace: Duration,
    /// How long a client may leave its answers unread.
    pub reader_grace: Duration,
    /// `rpc_keepalive`.
    pub keeps_alive: bool,
    /// `busy_poll_us`: how long an event loop polls for the next message before it sleeps.
    pub busy_poll: Duration,
    /// The audit log; `None`: nothing is audited.
    pub audit: Option<Arc<Audit>>,
    /// The threads that check logins, if they are another server's too; `None`: threads of its own.
    pub logins: Option<Arc<LoginPool>>,
    /// `client_encryption_options`; `None`: connections are in the clear.
    pub tls: Option<Arc<ServerTls>>,
}

/// What all connections share.
pub(super) struct Shared {
    pub rpc: Rpc,
    pub limits: RpcLimits,
    /// Notified whenever tickets may have become ready.
    pub written: Notify,
    pub watch: CallWatch,
    /// Checks logins.
    pub logins: Arc<LoginPool>,
    /// `write_timeout` in milliseconds. It starts as in `limits` and can be changed at run time.
    pub write_timeout_ms: Arc<AtomicU64>,
    /// The logins that wait for their turn or are checked.
    pub logins_under_way: UnderWay,
    /// Runs calls that may wait.
    pub threads: ThreadPool,
    in_flight: Arc<InFlightBytes>,
    clock: Arc<dyn Clock>,
}

/// A server of the interface. It listens until it is stopped; what it serves can be replaced in between.
pub struct RpcServer {
    address: SocketAddr,
    host: Host,
    limits: RpcLimits,
    slow: Option<Arc<SlowStatements>>,
    write_timeout_ms: Arc<AtomicU64>,
    /// `None` once the server is stopped.
    listener: Mutex<Option<std::net::TcpListener>>,
    /// `None` while clients wait.
    serving: Mutex<Option<Running>>,
    /// What was counted before the last pause.
    before: Mutex<RpcMetrics>,
}

/// The threads that serve an interface.
struct Running {
    /// How long clients may take their last answers. Changed once, at the end.
    stop: watch::Sender<Duration>,
    threads: Vec<Arc<dyn TaskHandle>>,
    shared: Arc<Shared>,
    served: Vec<Arc<LoopCounters>>,
    /// Removes the callback when this is over. Not in `Shared`, which the callback may be the last to hold.
    _listening: Listening,
}

impl Running {
    /// Ends the threads. When it returns, no call is under way but logins that a node does not answer.
    fn end(&self, within: Duration) {
        let _threads_may_be_gone = self.stop.send(within);
        for thread in &self.threads {
            thread.join();
        }
        self.shared.threads.stop();
        match self.shared.limits.logins {
            None => self.shared.logins.stop(),
            // Its threads go on for other servers. The clients of this one have gone.
            Some(_) => self.shared.logins.forget_gone(),
        }
        self.shared.logins_under_way.wait(within.max(LOGINS_MIN));
    }
}

impl RpcServer {
    /// Binds `address` (port 0: a free one) and starts to serve. Slow and failed calls are logged to `slow`, if given.
    ///
    /// # Errors
    /// The address cannot be bound, or a runtime cannot be built.
    pub fn start(
        host: &Host,
        rpc: Rpc,
        address: SocketAddr,
        limits: RpcLimits,
        slow: Option<Arc<SlowStatements>>,
    ) -> Result<RpcServer, ServerError> {
        let server = RpcServer::bind(host, address, limits, slow)?;
        server.serve(rpc, server.limits.disk_threads_max)?;
        Ok(server)
    }

    /// Binds `address` as `start` does. Clients that connect wait until `serve`.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(
        host: &Host,
        address: SocketAddr,
        limits: RpcLimits,
        slow: Option<Arc<SlowStatements>>,
    ) -> Result<RpcServer, ServerError> {
        let listener = bind(address).map_err(|source| ServerError::Bind { address, source })?;
        let address = listener.local_addr().map_err(|source| ServerError::Bind { address, source })?;
        Ok(RpcServer {
            address,
            host: host.clone(),
            write_timeout_ms: Arc::new(AtomicU64::new(ms(limits.write_timeout))),
            limits,
            slow,
            listener: Mutex::new(Some(listener)),
            serving: Mutex::default(),
            before: Mutex::default(),
        })
    }

    /// Serves this interface, after `bind` or `pause`. `threads_max`: of each event loop, for calls that wait.
    ///
    /// # Errors
    /// The server is stopped, or a runtime cannot be built.
    pub fn serve(&self, rpc: Rpc, threads_max: usize) -> Result<(), ServerError> {
        self.pause(DRAIN);
        let listener = self.listener.lock().as_ref().map(std::net::TcpListener::try_clone);
        let stopped = || std::io::Error::other("the server has been told to stop; start it again");
        let listener = listener.unwrap_or_else(|| Err(stopped()));
        let listener = listener.map_err(|source| ServerError::Bind { address: self.address, source })?;
        let limits = RpcLimits { disk_threads_max: threads_max, ..self.limits.clone() };
        let running = self.run(rpc, limits, listener)?;
        *self.serving.lock() = Some(running);
        Ok(())
    }

    fn run(
        &self,
        rpc: Rpc,
        limits: RpcLimits,
        listener: std::net::TcpListener,
    ) -> Result<Running, ServerError> {
        let (in_all, per_address) = limits.in_flight_bytes_max;
        let in_flight = InFlightBytes::new(in_all, per_address);
        let audit = (limits.audit.clone(), rpc.has_logins());
        let watch = CallWatch::new(self.slow.clone(), audit, &self.host.clock);
        let (written, clock) = (Notify::new(), self.host.clock.clone());
        let write_timeout_ms = Arc::clone(&self.write_timeout_ms);
        let own_logins = || LoginPool::new(self.host.clone(), OWN_LOGIN_THREADS);
        let logins = limits.logins.clone().unwrap_or_else(own_logins);
        let threads_max = limits.disk_threads_max.max(1).saturating_mul(limits.threads.max(1));
        let threads = ThreadPool::new(self.host.clone(), "rpc-disk", threads_max);
        let shared = Arc::new(Shared {
            rpc,
            limits,
            written,
            watch,
            logins,
            logins_under_way: UnderWay::default(),
            write_timeout_ms,
            threads,
            in_flight,
            clock,
        });
        // Weak: the database outlives the server and must not keep it alive.
        let weak = Arc::downgrade(&shared);
        let listening = shared.rpc.on_written(Box::new(move || {
            if let Some(shared) = weak.upgrade() {
                shared.written.notify_waiters();
            }
        }));
        let (stop, stopped) = watch::channel(DRAIN);
        let (mut ways, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..shared.limits.threads.max(1) {
            let (way, arriving) = mpsc::channel(ACCEPTED_MAX);
            let served = Arc::<LoopCounters>::default();
            ways.push((way, Arc::clone(&served)));
            let (shared, stopped) = (Arc::clone(&shared), stopped.clone());
            workers.push(Serving { work: Some((runtime()?, shared, arriving, served, stopped)) });
        }
        let served = ways.iter().map(|(_, served)| Arc::clone(served)).collect();
        let handshakes = shared.limits.tls.as_ref().map(|tls| {
            let within = shared.limits.handshake_timeout;
            Handshakes::start(&self.host, "rpc-handshakes", Arc::clone(tls), within)
        });
        let handshakes = handshakes.transpose().map_err(|source| ServerError::Runtime { source })?;
        let (handshakes, handshake_thread) = handshakes.unzip();
        let to = (Arc::clone(&shared), Arc::new(ways), handshakes);
        let accepting = AcceptThread { work: Some((runtime()?, listener, to, stopped)) };
        let mut running = Running { stop, threads: Vec::new(), shared, served, _listening: listening };
        running.threads.extend(handshake_thread);
        // Clients are accepted once there is a thread for each event loop.
        let mut named: VecDeque<(String, Box<dyn Worker>)> = VecDeque::new();
        for (number, worker) in workers.into_iter().enumerate() {
            named.push_back((format!("rpc-{number}"), Box::new(worker)));
        }
        named.push_back(("rpc-accept".to_owned(), Box::new(accepting)));
        while let Some((name, worker)) = named.pop_front() {
            match self.host.tasks.try_start(&name, worker) {
                Ok(thread) => running.threads.push(thread),
                Err(source) => {
                    // The thread of handshakes ends with the work of the one that accepts.
                    drop(named);
                    running.end(Duration::ZERO);
                    return Err(ServerError::Runtime { source });
                }
            }
        }
        Ok(running)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The metrics of the server.
    pub fn figures(&self) -> RpcMetrics {
        let now = self.serving.lock().as_ref().map(|running| running.shared.watch.figures(&running.served));
        let before = self.before.lock();
        now.map_or_else(|| before.clone(), |now| now.after(&before))
    }

    /// Sets how long answers to writes may wait for the log.
    pub fn set_write_timeout(&self, timeout: Duration) {
        self.write_timeout_ms.store(ms(timeout), Ordering::Relaxed);
    }

    /// Answers the received calls and closes all connections, of clients that do not take their answers within this time too. When
    /// it returns, no call is under way, but a login that asks a node which does not answer: nobody gets its answer. The socket stays open, so that clients which connect wait for the next `serve`.
    pub fn pause(&self, within: Duration) {
        let Some(running) = self.serving.lock().take() else { return };
        running.end(within);
        let counted = running.shared.watch.figures(&running.served);
        let mut before = self.before.lock();
        *before = RpcMetrics { connections: 0, ..counted.after(&before) };
    }

    /// Stops listening, answers the received calls, and closes all connections.
    pub fn stop(&self) {
        self.listener.lock().take();
        self.pause(DRAIN);
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| ServerError::Runtime { source })
}

/// An accepted connection.
struct Accepted {
    stream: std::net::TcpStream,
    /// The session, if it is encrypted.
    secured: Option<Secured>,
    entrant: Entrant,
    load: OpenConnection,
}

/// What an accepted connection has besides its socket.
struct Entrant {
    share: ConnectionShare,
    admitted: Admitted,
    newcomer: Arc<RpcNewcomer>,
}

/// Counts a connection among those of its event loop, until dropped.
struct OpenConnection {
    served: Arc<LoopCounters>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.served.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

type LoopChannel = (mpsc::Sender<Accepted>, Arc<LoopCounters>);
type Ways = Arc<Vec<LoopChannel>>;
type Accept = (
    tokio::runtime::Runtime,
    std::net::TcpListener,
    (Arc<Shared>, Ways, Option<Handshakes>),
    watch::Receiver<Duration>,
);

/// An accepted connection that waits for its handshake.
struct WithoutSession {
    client: SocketAddr,
    shared: Arc<Shared>,
    ways: Ways,
    entrant: Entrant,
}

impl Candidate for WithoutSession {
    fn client(&self) -> SocketAddr {
        self.client
    }

    fn is_given_up(&self, waker: &Waker) -> bool {
        self.entrant.newcomer.is_displaced(waker)
    }

    fn take(self: Box<Self>, stream: std::net::TcpStream, secured: Option<Secured>) {
        place(&self.ways, (stream, secured), self.entrant);
    }

    fn refused(&self, reason: &str) {
        self.shared.watch.not_secured(self.client, reason);
    }
}

struct AcceptThread {
    work: Option<Accept>,
}

impl Worker for AcceptThread {
    fn step(&mut self) -> Next {
        if let Some((runtime, listener, to, stopped)) = self.work.take() {
            runtime.block_on(accept(listener, to, stopped));
        }
        Next::Done
    }
}

async fn accept(
    listener: std::net::TcpListener,
    (shared, ways, handshakes): (Arc<Shared>, Ways, Option<Handshakes>),
    mut stopped: watch::Receiver<Duration>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, client)) => take((&shared, &ways, handshakes.as_ref()), stream, client),
            Err(error) => {
                shared.watch.not_accepted(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Checks the limits on connections and gives a connection to an event loop. The protocol has no message for a refusal:
/// a refused connection is closed and logged.
fn take(
    (shared, ways, handshakes): (&Arc<Shared>, &Ways, Option<&Handshakes>),
    stream: TcpStream,
    client: SocketAddr,
) {
    let address = client.ip();
    let admitted = match shared.limits.budget.enter(address) {
        Ok(admitted) => admitted,
        Err(no_room) => return shared.watch.connection_refused(client, &no_room.to_string()),
    };
    let Some(share) = shared.in_flight.enter(address, None) else { return };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    if shared.limits.keeps_alive && socket2::SockRef::from(&stream).set_keepalive(true).is_err() {
        return;
    }
    let Ok(stream) = stream.into_std() else { return };
    let newcomer = Arc::<RpcNewcomer>::default();
    let waiting: Weak<RpcNewcomer> = Arc::downgrade(&newcomer);
    let entrant = Entrant { share, admitted, newcomer };
    match handshakes {
        None => place(ways, (stream, None), entrant),
        Some(handshakes) => {
            let (shared, ways) = (Arc::clone(shared), Arc::clone(ways));
            handshakes.begin(stream, Box::new(WithoutSession { client, shared, ways, entrant }));
        }
    }
    shared.limits.budget.add_newcomer(waiting);
}

/// Gives a connection to the event loop that has the fewest.
fn place(ways: &[LoopChannel], (stream, secured): (std::net::TcpStream, Option<Secured>), entrant: Entrant) {
    let Some((way, served)) =
        ways.iter().min_by_key(|(_, served)| served.connections.load(Ordering::Relaxed))
    else {
        return;
    };
    served.connections.fetch_add(1, Ordering::Relaxed);
    let load = OpenConnection { served: Arc::clone(served) };
    // If the event loop's queue is full, the connection is closed.
    let _taken = way.try_send(Accepted { stream, secured, entrant, load });
}

type Serve = (
    tokio::runtime::Runtime,
    Arc<Shared>,
    mpsc::Receiver<Accepted>,
    Arc<LoopCounters>,
    watch::Receiver<Duration>,
);

struct Serving {
    work: Option<Serve>,
}

impl Worker for Serving {
    fn step(&mut self) -> Next {
        if let Some((runtime, shared, arriving, served, stopped)) = self.work.take() {
            runtime.block_on(keep(shared, arriving, served, stopped));
        }
        Next::Done
    }
}

/// Serves connections until told to stop and its connections have ended.
async fn keep(
    shared: Arc<Shared>,
    mut arriving: mpsc::Receiver<Accepted>,
    served: Arc<LoopCounters>,
    mut stopped: watch::Receiver<Duration>,
) {
    let mut connections = JoinSet::new();
    let busy_poll = BusyPoll::new(&shared.clock, shared.limits.busy_poll);
    let awake = tokio::spawn(Arc::clone(&busy_poll).run());
    let event_loop = Arc::new(EventLoop { shared, served, busy_poll });
    loop {
        tokio::select! {
            arrival = arriving.recv() => {
                let Some(Accepted { stream, secured, entrant, load }) = arrival else { break };
                let Ok(stream) = TcpStream::from_std(stream) else { continue };
                let stream = ServerStream::new(stream, secured);
                let event_loop = Arc::clone(&event_loop);
                let stopped = stopped.clone();
                connections.spawn(async move {
                    let Entrant { share, admitted, newcomer } = entrant;
                    serve(stream, share, &event_loop, (&newcomer, stopped)).await;
                    drop((load, admitted));
                });
            }
            _ = stopped.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    let within = *stopped.borrow();
    let drained = async { while connections.join_next().await.is_some() {} };
    let _some_would_not_read = tokio::time::timeout(within, drained).await;
    awake.abort();
}
