//! Serves the admin socket: one thread, one request at a time, several connections.
//!
//! A tool that connects and sends nothing, or half a request, does not keep others out: it is closed after a while, or
//! earlier if others need its connection.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::LocalBackend;
use helenus_cql::audit::EventType;
use helenus_host::account::{Charge, Share};
use helenus_host::{Host, Next, TaskHandle, Worker};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, JoinSet, LocalSet};
use tokio::time::timeout;

use super::answer::{AdminAnswer, AuditState, ClientsSeen, Reloaded};
use super::dispatcher::Dispatcher;
use super::metrics::Pool;
use super::request::AdminRequest;
use super::socket::{AdminError, FileIdentity, bind, may_use, remove_socket};
use crate::audit::AuditOverrides;
use crate::thread_pool::ThreadPool;

/// The longest request, bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The most connections at a time. When there are more, the oldest one without a request in progress is closed.
const CONNECTIONS_MAX: usize = 32;
/// An answer of at most this length needs no room on the memory account.
const UNCHARGED_BYTES: usize = 64 << 10;
/// How long a tool may take to send a request and to read the answer. A tool that follows a job asks every few seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often expired snapshots are searched.
const EXPIRY_LOOK: Duration = Duration::from_secs(5);
/// How long a stopping server waits for what other parts of the program (`FurtherVerbs`) do for a tool. Whatever still runs then ends
/// with the process.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the admin socket reports besides the engine's metrics, and what it may do to the whole server.
pub struct ServerInfo {
    /// Version of the program.
    pub version: &'static str,
    /// Address of the native protocol.
    pub listening: std::net::SocketAddr,
    /// Address of the old RPC interface, if it is served.
    pub rpc: Option<std::net::SocketAddr>,
    /// The data directory; `None` in memory.
    pub directory: Option<PathBuf>,
    /// How writes are synced; `None` in memory.
    pub sync: Option<&'static str>,
    /// Warnings about the configuration, a sentence each.
    pub warnings: Vec<String>,
    /// The listeners of the server.
    pub control: Arc<dyn ServerControl>,
    /// Further parts of the program that answer requests of tools, by name.
    pub further: BTreeMap<&'static str, Arc<dyn FurtherVerbs>>,
}

/// A part of the program that answers requests of its own on the admin socket.
pub trait FurtherVerbs: Send + Sync {
    /// Answers a request. It runs on a thread of its own and may take long.
    ///
    /// # Errors
    /// The reason, for a person.
    fn answer(&self, request: &str) -> Result<String, String>;
}

/// What the admin socket may ask of the server's listeners and settings.
pub trait ServerControl: Send + Sync {
    /// Clients connected at this moment.
    fn connections(&self) -> usize;
    /// The thread pools of the listeners.
    fn pools(&self) -> Vec<Pool>;
    /// Bytes of requests in flight, and their limit.
    fn request_bytes(&self) -> (u64, u64);
    /// Resident memory of the process, if the system reports it.
    fn resident_bytes(&self) -> Option<u64>;
    /// The fraction of requests that are traced without asking, from 0 to 1.
    fn trace_probability(&self) -> f64;
    /// Sets that fraction.
    fn set_trace_probability(&self, probability: f64);
    /// Answers the received requests, then closes all connections and accepts no more.
    fn close(&self);
    /// Whether clients are served.
    fn are_open(&self) -> bool;
    /// Accepts clients again after `pause`.
    ///
    /// # Errors
    /// The server was closed for good, or the address is in use.
    fn resume(&self) -> Result<(), String>;
    /// Closes the listener of the native protocol, answers the received requests and closes its connections.
    ///
    /// # Errors
    /// Clients are not served by this database.
    fn pause(&self) -> Result<(), String>;
    /// Notes that something writes to the database beside clients, until the result is dropped.
    ///
    /// # Errors
    /// Clients are not served by this database, and would not see what is written.
    fn begin_writing(&self, _what: &str) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
    /// The clients of the native protocol, now and since the start.
    fn clients(&self) -> ClientsSeen;
    /// Forgets the clients seen so far.
    fn clear_clients(&self);
    /// Switches the audit log on, with some options replaced.
    ///
    /// # Errors
    /// An option is not allowed, or the log cannot be written.
    fn enable_audit(&self, overrides: &AuditOverrides) -> Result<(), String>;
    /// Switches the audit log off.
    fn disable_audit(&self);
    /// Reads keys and certificates again, for new connections.
    ///
    /// # Errors
    /// There is no TLS, or a file cannot be used; then the former ones stay in use.
    fn reload_tls(&self) -> Result<(), String>;
    /// Writes a change of roles or rights to the audit log. `operation` has no password.
    fn audit_change(&self, event: EventType, operation: &str);
    /// The audit log's options: those in force, or those of the configuration while it is off.
    fn audit(&self) -> AuditState;
    /// The present value of a setting.
    fn setting(&self, key: &'static str) -> String;
    /// Sets a setting that can change at run time, until the next start; `None`: to its value at the start.
    ///
    /// # Errors
    /// The value is not allowed.
    fn set(&self, key: &'static str, value: Option<&str>) -> Result<(), String>;
    /// Reads the configuration again.
    ///
    /// # Errors
    /// The configuration is wrong; then nothing changes.
    fn reload(&self) -> Result<Reloaded, String>;
}

/// A running admin socket.
pub struct AdminServer {
    path: PathBuf,
    /// Which file the socket is, until it is removed: another server may have put its own at the path meanwhile.
    file: parking_lot::Mutex<Option<FileIdentity>>,
    stop: watch::Sender<bool>,
    thread: Arc<dyn TaskHandle>,
    threads: Arc<ThreadPool>,
}

impl AdminServer {
    /// Binds the socket and starts to serve.
    ///
    /// # Errors
    /// The socket cannot be bound for its owner alone.
    pub fn start(
        host: &Host,
        backend: &Arc<LocalBackend>,
        path: &Path,
        facts: ServerInfo,
    ) -> Result<AdminServer, AdminError> {
        let (listener, file) = bind(path)?;
        listener.set_nonblocking(true).map_err(AdminError::io("open", path))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(AdminError::io("serve", path))?;
        let (stop, stopped) = watch::channel(false);
        let threads = Arc::new(ThreadPool::new(host.clone(), "admin-part", CONNECTIONS_MAX));
        let dispatcher = Dispatcher::new(backend, facts, &threads, host.clock.monotonic_ns());
        let work = Work { runtime, listener, dispatcher, stopped };
        let thread = host.tasks.try_start("admin", Box::new(AdminThread { work: Some(work) }));
        let thread = thread.map_err(AdminError::io("serve", path))?;
        Ok(AdminServer { path: path.to_owned(), file: Some(file).into(), stop, thread, threads })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops serving and removes the socket, if the file at its path is still this one.
    pub fn stop(&self) {
        let _thread_may_be_gone = self.stop.send(true);
        self.thread.join();
        self.threads.stop_within(STOP_PATIENCE);
        if let Some(file) = self.file.lock().take() {
            remove_socket(&self.path, file);
        }
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Work {
    runtime: tokio::runtime::Runtime,
    listener: std::os::unix::net::UnixListener,
    dispatcher: Dispatcher,
    stopped: watch::Receiver<bool>,
}

struct AdminThread {
    work: Option<Work>,
}

impl Worker for AdminThread {
    fn step(&mut self) -> Next {
        if let Some(Work { runtime, listener, dispatcher, stopped }) = self.work.take() {
            runtime.block_on(LocalSet::new().run_until(accept(listener, dispatcher, stopped)));
            runtime.shutdown_background();
        }
        Next::Done
    }
}

async fn accept(
    listener: std::os::unix::net::UnixListener,
    dispatcher: Dispatcher,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let dispatcher = Rc::new(dispatcher);
    // One request is answered at a time.
    let turn = Rc::<Mutex<()>>::default();
    let mut connections = JoinSet::new();
    let mut expiring = tokio::time::interval(EXPIRY_LOOK);
    let mut waiting: VecDeque<(Rc<Cell<bool>>, AbortHandle)> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            _ = expiring.tick() => {
                // Who waited here would accept nobody: a request may take as long as a compaction.
                let Ok(_turn) = turn.try_lock() else { continue };
                dispatcher.remove_expired_snapshots();
                dispatcher.record_history();
                continue;
            }
            _ = stopped.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if !stream.peer_cred().is_ok_and(|peer| may_use(peer.uid())) {
            continue;
        }
        waiting.retain(|(_, connection)| !connection.is_finished());
        if waiting.len() >= CONNECTIONS_MAX {
            let oldest = waiting.iter().position(|(is_answered, _)| !is_answered.get());
            // If all of them have requests in progress, the new connection is accepted in addition.
            if let Some((_, connection)) = oldest.and_then(|at| waiting.remove(at)) {
                connection.abort();
            }
        }
        let is_answered = Rc::<Cell<bool>>::default();
        let serving = serve(Rc::clone(&dispatcher), stream, (Rc::clone(&turn), Rc::clone(&is_answered)));
        waiting.push_back((is_answered, connections.spawn_local(serving)));
    }
}

/// Answers line by line until the tool leaves or is silent for too long.
async fn serve(
    dispatcher: Rc<Dispatcher>,
    stream: UnixStream,
    (turn, is_answered): (Rc<Mutex<()>>, Rc<Cell<bool>>),
) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(LINE_BYTES_MAX);
        match timeout(PATIENCE, bounded.read_until(b'\n', &mut line)).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0) | Err(_)) | Err(_) => return,
        }
        is_answered.set(true);
        let answer = match serde_json::from_slice(&line) {
            // Whoever waits for changes keeps no other tool waiting.
            Ok(AdminRequest::Changes(order)) if order.wait => dispatcher.wait_for_changes(order, &turn).await,
            Ok(AdminRequest::Further { tool, request }) => dispatcher.ask_further(&tool, request).await,
            Ok(request) => {
                let _turn = turn.lock().await;
                dispatcher.answer(&request).await
            }
            Err(error) => AdminAnswer::Error(format!("not a request: {error}")),
        };
        is_answered.set(false);
        let mut text = serde_json::to_string(&answer).unwrap_or_default();
        drop(answer);
        // As long as the tool has not read it. A short one needs no room: who looks why there is no memory must get it.
        let is_short = text.len() <= UNCHARGED_BYTES;
        let charge = if is_short { None } else { Charge::try_take(Share::Answers, text.len() as u64) };
        if charge.is_none() && !is_short {
            let answer = AdminAnswer::Error("there is no memory for the answer now; try again".to_owned());
            text = serde_json::to_string(&answer).unwrap_or_default();
        }
        text.push('\n');
        if !matches!(timeout(PATIENCE, write.write_all(text.as_bytes())).await, Ok(Ok(()))) {
            return;
        }
    }
}
