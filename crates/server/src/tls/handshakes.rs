//! The handshakes of new connections, on a thread of their own: a signature takes up to several milliseconds, and no
//! request of another client is to wait for it.
//!
//! The accepting thread of a server gives each new connection to `begin`. Its first byte decides: a TLS record begins with
//! 22, which no message of CQL, Thrift or HTTP does. Then the connection goes to an event loop, with its session. A handshake
//! has a time limit. When there are too many, the oldest is closed, so that clients that connect and send nothing do not keep
//! others out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use helenus_host::{Host, Next, TaskHandle, Worker, account};
use helenus_tls::rustls::ServerConnection;
use helenus_tls::{Policy, ServerTls};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::stream::{HANDSHAKE_BYTES, Secured};

/// The first byte of a TLS record of a handshake.
const HANDSHAKE: u8 = 22;
/// The most handshakes at a time, while there is much memory.
const HANDSHAKES_MAX: usize = 512;
/// The part of the memory of requests that handshakes may take: one in so many. Beyond it the oldest is closed, so that those that go no
/// further do not keep the others out.
const HANDSHAKES_PART: u64 = 8;
/// Connections on their way to the thread. One that finds this queue full is closed.
const QUEUE_MAX: usize = 1024;
/// How long a refused client may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// A connection that waits for its handshake, as its server sees it. Dropping it closes the connection.
pub(crate) trait Candidate: Send + Sync + 'static {
    /// Its client.
    fn client(&self) -> SocketAddr;
    /// Whether to give up. The waker is woken when that may have changed.
    fn is_given_up(&self, waker: &Waker) -> bool;
    /// Takes the connection. Without a session it is in the clear.
    fn take(self: Box<Self>, socket: std::net::TcpStream, secured: Option<Secured>);
    /// Notes that the connection is closed, and why.
    fn refused(&self, reason: &str);
}

struct Begun {
    socket: std::net::TcpStream,
    candidate: Box<dyn Candidate>,
}

/// The way to the thread. The thread ends when this is dropped.
pub(crate) struct Handshakes {
    way: mpsc::Sender<Begun>,
}

impl Handshakes {
    /// Starts the thread. `time_max`: how long a handshake may take.
    ///
    /// # Errors
    /// The system refuses a runtime or a thread.
    pub fn start(
        host: &Host,
        name: &str,
        tls: Arc<ServerTls>,
        time_max: Duration,
    ) -> io::Result<(Handshakes, Arc<dyn TaskHandle>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (way, arriving) = mpsc::channel(QUEUE_MAX);
        let thread = HandshakeThread { work: Some((runtime, arriving, tls, time_max)) };
        let thread = host.tasks.try_start(name, Box::new(thread))?;
        Ok((Handshakes { way }, thread))
    }

    /// Begins a handshake.
    pub fn begin(&self, socket: std::net::TcpStream, candidate: Box<dyn Candidate>) {
        // A connection for which there is no room is closed by dropping it.
        let _begun = self.way.try_send(Begun { socket, candidate });
    }
}

struct HandshakeThread {
    work: Option<(tokio::runtime::Runtime, mpsc::Receiver<Begun>, Arc<ServerTls>, Duration)>,
}

impl Worker for HandshakeThread {
    fn step(&mut self) -> Next {
        if let Some((runtime, arriving, tls, time_max)) = self.work.take() {
            runtime.block_on(run(arriving, tls, time_max));
        }
        Next::Done
    }
}

/// The most handshakes at a time.
fn handshakes_max() -> usize {
    let in_memory = account::limit() / HANDSHAKES_PART / HANDSHAKE_BYTES;
    usize::try_from(in_memory).unwrap_or(HANDSHAKES_MAX).clamp(1, HANDSHAKES_MAX)
}

async fn run(mut arriving: mpsc::Receiver<Begun>, tls: Arc<ServerTls>, time_max: Duration) {
    let mut handshakes = JoinSet::new();
    // The oldest first; some of them may have ended.
    let mut ages: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let begun = tokio::select! {
            begun = arriving.recv() => begun,
            Some(_) = handshakes.join_next(), if !handshakes.is_empty() => continue,
        };
        let Some(Begun { socket, candidate }) = begun else { return };
        let handshakes_max = handshakes_max();
        while ages.front().is_some_and(AbortHandle::is_finished) {
            ages.pop_front();
        }
        if ages.len() >= handshakes_max {
            ages.retain(|age| !age.is_finished());
        }
        if ages.len() >= handshakes_max
            && let Some(oldest) = ages.pop_front()
        {
            oldest.abort();
        }
        ages.push_back(handshakes.spawn(attempt(socket, candidate, Arc::clone(&tls), time_max)));
    }
}

/// Does one handshake and passes the connection on.
async fn attempt(
    socket: std::net::TcpStream,
    candidate: Box<dyn Candidate>,
    tls: Arc<ServerTls>,
    time_max: Duration,
) {
    let Ok(socket) = TcpStream::from_std(socket) else { return };
    let given_up = poll_fn(|context| match candidate.is_given_up(context.waker()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    });
    let secured = tokio::select! {
        secured = timeout(time_max, secure(&socket, (&tls, tls.policy()), candidate.client())) => secured,
        () = given_up => return,
    };
    match secured {
        Ok(Ok(secured)) => {
            if let Ok(socket) = socket.into_std() {
                candidate.take(socket, secured);
            }
        }
        Ok(Err(Refusal::Gone)) => {}
        Ok(Err(Refusal::Because(reason))) => {
            candidate.refused(&reason);
            let _read = timeout(LINGER, linger(socket)).await;
        }
        Err(_) => candidate.refused("its handshake took too long"),
    }
}

/// Why a connection is closed.
pub(crate) enum Refusal {
    /// The client has gone.
    Gone,
    /// It did not do what is asked for.
    Because(String),
}

impl From<io::Error> for Refusal {
    fn from(_error: io::Error) -> Refusal {
        Refusal::Gone
    }
}

/// The socket for rustls.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for the first byte, and does the handshake if it begins one. `None`: the connection is in the clear.
pub(crate) async fn secure(
    socket: &TcpStream,
    (tls, policy): (&ServerTls, Policy),
    client: SocketAddr,
) -> Result<Option<Secured>, Refusal> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 0 {
        return Err(Refusal::Gone);
    }
    if first != [HANDSHAKE] {
        return match policy {
            Policy::Optional => Ok(None),
            Policy::Required => {
                Err(Refusal::Because("it does not use TLS, which this port requires".to_owned()))
            }
        };
    }
    let session = ServerConnection::new(tls.config());
    let session = session.map_err(|error| Refusal::Because(error.to_string()))?;
    let secured = Secured::begin(session);
    let mut secured =
        secured.ok_or_else(|| Refusal::Because("there is no memory for another session".to_owned()))?;
    let session = &mut *secured.session;
    loop {
        send(session, socket).await?;
        if !session.is_handshaking() {
            break;
        }
        match session.read_tls(&mut Socket(socket)) {
            Ok(0) => return Err(Refusal::Gone),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                socket.readable().await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = session.process_new_packets() {
            // The alert says to the client what the log says here.
            let _told = send(session, socket).await;
            return Err(Refusal::Because(error.to_string()));
        }
    }
    if tls.verifies_endpoints() && !is_at_its_address(session, client) {
        return Err(Refusal::Because(
            "its certificate is not for the address that it connects from".to_owned(),
        ));
    }
    Ok(Some(secured))
}

async fn send(session: &mut ServerConnection, socket: &TcpStream) -> io::Result<()> {
    while session.wants_write() {
        match session.write_tls(&mut Socket(socket)) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A client without a certificate passes: whether it needs one was decided in the handshake.
fn is_at_its_address(session: &ServerConnection, client: SocketAddr) -> bool {
    let own = session.peer_certificates().and_then(|chain| chain.first());
    own.is_none_or(|own| helenus_tls::is_for_address(own, client.ip().to_canonical()))
}

/// Lets a client read the alert: closing with unread input would throw it away.
async fn linger(mut socket: TcpStream) -> io::Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    socket.shutdown().await?;
    let mut rest = [0; 1024];
    while socket.read(&mut rest).await? > 0 {}
    Ok(())
}
