//! Answers on the admin socket: one thread, one request after the other, several connections.
//!
//! A tool that connects and asks nothing, or half of something, keeps nobody else out: it is closed after a while, and earlier
//! if others need its place.

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::LocalBackend;
use helenus_host::{Host, Next, TaskHandle, Worker};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, JoinSet, LocalSet};
use tokio::time::timeout;

use super::answer::{AdminAnswer, ClientsSeen, Reloaded};
use super::desk::Desk;
use super::figures::Pool;
use super::socket::{AdminError, bind, may_use};

/// The longest request, bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Connections at a time; beyond them the oldest that has nothing under way is closed.
const CONNECTIONS_MAX: usize = 32;
/// How long a tool may take to ask, and to take its answer. It asks again within seconds while it follows something.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often snapshots that have expired are looked for.
const EXPIRY_LOOK: Duration = Duration::from_secs(5);
/// How long after a failure to accept (too many open files) the next is tried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the admin socket tells besides the engine's figures, and what it may ask of the whole server.
pub struct Facts {
    /// Version of the program.
    pub version: &'static str,
    /// Where clients connect.
    pub listening: std::net::SocketAddr,
    /// Where clients of the old RPC interface connect, if it is served.
    pub rpc: Option<std::net::SocketAddr>,
    /// Where the data is; none in memory.
    pub directory: Option<PathBuf>,
    /// How writes are synced; none in memory.
    pub sync: Option<&'static str>,
    /// What its owner should know of how the server is set up, a sentence each.
    pub warnings: Vec<String>,
    /// The doors.
    pub doors: Box<dyn Doors>,
}

/// What the admin socket may ask of the server around it.
pub trait Doors: Send + Sync {
    /// Clients connected at this moment.
    fn connections(&self) -> usize;
    /// Threads of the doors and their queues.
    fn pools(&self) -> Vec<Pool>;
    /// Bytes of requests in flight, and how many there may be.
    fn request_bytes(&self) -> (u64, u64);
    /// Bytes of memory that the process has, if the system tells.
    fn resident_bytes(&self) -> Option<u64>;
    /// How many requests are traced without having asked for it, from 0 to 1.
    fn trace_probability(&self) -> f64;
    /// Sets it.
    fn set_trace_probability(&self, probability: f64);
    /// Answers what has come, lets nobody in any more, and closes all connections.
    fn close(&self);
    /// Whether clients are served.
    fn are_open(&self) -> bool;
    /// Lets clients in again after `pause`.
    ///
    /// # Errors
    /// They are not to be let in any more, or the address is taken.
    fn resume(&self) -> Result<(), String>;
    /// Closes the listener of the native protocol, answers what has come and closes its connections.
    fn pause(&self);
    /// Clients of the native protocol, now and since the start.
    fn clients(&self) -> ClientsSeen;
    /// Forgets clients of before.
    fn clear_clients(&self);
    /// The value of a setting, as it holds now.
    fn setting(&self, key: &'static str) -> String;
    /// Sets one that a running server takes over, until the next start; `None`: as at the start.
    ///
    /// # Errors
    /// The value is not allowed.
    fn set(&self, key: &'static str, value: Option<&str>) -> Result<(), String>;
    /// Reads the configuration again.
    ///
    /// # Errors
    /// What is wrong with it; nothing changes then.
    fn reload(&self) -> Result<Reloaded, String>;
}

/// A running admin socket.
pub struct AdminServer {
    path: PathBuf,
    stop: watch::Sender<bool>,
    thread: Arc<dyn TaskHandle>,
}

impl AdminServer {
    /// Binds the socket and answers from then on.
    ///
    /// # Errors
    /// When the socket cannot be bound for its owner alone.
    pub fn start(
        host: &Host,
        backend: &Arc<LocalBackend>,
        path: &Path,
        facts: Facts,
    ) -> Result<AdminServer, AdminError> {
        let listener = bind(path)?;
        listener.set_nonblocking(true).map_err(AdminError::io("open", path))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(AdminError::io("serve", path))?;
        let (stop, stopped) = watch::channel(false);
        let desk = Desk::new(backend, facts, host.clock.monotonic_ns());
        let work = Work { runtime, listener, desk, stopped };
        let thread = host.tasks.start("admin", Box::new(AdminThread { work: Some(work) }));
        Ok(AdminServer { path: path.to_owned(), stop, thread })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it and removes the socket.
    pub fn stop(&self) {
        let _thread_may_be_gone = self.stop.send(true);
        self.thread.join();
        let _may_be_gone = rustix::fs::unlink(&self.path);
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
    desk: Desk,
    stopped: watch::Receiver<bool>,
}

struct AdminThread {
    work: Option<Work>,
}

impl Worker for AdminThread {
    fn step(&mut self) -> Next {
        if let Some(Work { runtime, listener, desk, stopped }) = self.work.take() {
            runtime.block_on(LocalSet::new().run_until(accept(listener, desk, stopped)));
        }
        Next::Done
    }
}

async fn accept(listener: std::os::unix::net::UnixListener, desk: Desk, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let desk = Rc::new(desk);
    // Answers are made one after the other.
    let turn = Rc::<Mutex<()>>::default();
    let mut connections = JoinSet::new();
    let mut expiring = tokio::time::interval(EXPIRY_LOOK);
    let mut waiting: VecDeque<(Rc<Cell<bool>>, AbortHandle)> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            _ = expiring.tick() => {
                let _turn = turn.lock().await;
                desk.remove_expired_snapshots();
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
            // All of them have answers under way: their tools know what they do, and one more waits for them.
            if let Some((_, connection)) = oldest.and_then(|at| waiting.remove(at)) {
                connection.abort();
            }
        }
        let is_answered = Rc::<Cell<bool>>::default();
        let serving = serve(Rc::clone(&desk), stream, (Rc::clone(&turn), Rc::clone(&is_answered)));
        waiting.push_back((is_answered, connections.spawn_local(serving)));
    }
}

/// Answers line after line until the tool leaves, or is silent for too long.
async fn serve(desk: Rc<Desk>, stream: UnixStream, (turn, is_answered): (Rc<Mutex<()>>, Rc<Cell<bool>>)) {
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
            Ok(request) => {
                let _turn = turn.lock().await;
                desk.answer(&request).await
            }
            Err(error) => AdminAnswer::Error(format!("not a request: {error}")),
        };
        is_answered.set(false);
        let mut text = serde_json::to_string(&answer).unwrap_or_default();
        text.push('\n');
        if !matches!(timeout(PATIENCE, write.write_all(text.as_bytes())).await, Ok(Ok(()))) {
            return;
        }
    }
}
