//! One client of the RPC interface: reads its messages, calls them, and answers them in order.
//!
//! ```text
//! read what is there -> call each whole message -> wait for the log once -> write all answers in one go -> again
//! ```
//! A call that needs the disk runs on a separate thread, after the earlier answers have been sent, and a login on one of the
//! login pool; nothing here blocks.
//! Such a call is cancelled when its client leaves. A client that does not read its answers for too long is
//! disconnected.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helenus_engine::Ticket;
use helenus_engine::read::Probe;
use helenus_host::account::{Charge, Scope, Share, Waits};
use helenus_rpc::{CallOptions, CallOutcome, RefusedKind, Session, role_to_log_in};
use helenus_wire::thrift::{Call, Framing, Message, ThriftError, next_message};
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use super::server::Shared;
use super::watch::{LoopCounters, Watched};
use crate::busy_poll::BusyPoll;
use crate::logins::Turn;
use crate::native::{ConnectionShare, PartialFrame, Reservation};
use crate::tls::ServerStream;

/// Bytes of a read, and of an input buffer that is kept while a client is busy.
const READ_BYTES: usize = 64 << 10;
/// The same while incomplete messages hold much. Each connection may keep as many.
const LITTLE_BYTES: usize = 4 << 10;
/// Bytes of an output buffer that is kept while a client is busy.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// From this size on, answers are sent at once: the client can then read them while its next calls are answered.
const WRITE_BYTES: usize = 32 << 10;
/// The slowest rate at which a long message may arrive, bytes a second, besides its grace period.
const ARRIVAL_BYTES_PER_S: u64 = 128 << 10;
/// The longest message before the login.
const BEFORE_LOGIN_BYTES_MAX: u64 = 128 << 10;
/// How often a long message checks whether there is room for it.
const ROOM_PAUSE: Duration = Duration::from_millis(20);

/// An answer that waits for the log, with its position in the output.
struct Held {
    start: usize,
    end: usize,
    call: Call,
    ticket: Ticket,
}

/// Cancels a call when it is dropped.
struct EndsCall(Arc<AtomicBool>);

impl Drop for EndsCall {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a connection ends.
enum Ended {
    /// The client has gone, it was too slow, or the server stops.
    Gone,
    /// The client sent something that is not a message. The answers before it are still sent.
    Garbage,
}

impl From<std::io::Error> for Ended {
    fn from(_error: std::io::Error) -> Ended {
        Ended::Gone
    }
}

impl From<ThriftError> for Ended {
    fn from(_error: ThriftError) -> Ended {
        Ended::Garbage
    }
}

struct Connection<'a> {
    stream: ServerStream,
    client: Option<SocketAddr>,
    shared: &'a Arc<Shared>,
    served: &'a LoopCounters,
    session: Box<Session>,
    framing: Option<Framing>,
    input: Vec<u8>,
    output: Vec<u8>,
    held: Vec<Held>,
    /// A complete message has arrived and, where clients have to log in, the client has.
    has_begun: bool,
    /// When that must have happened.
    begins_by: tokio::time::Instant,
    /// The charge of a long answer on the memory account.
    charge: Option<Charge>,
    /// The reservation of a long message among the bytes in flight, until it is answered.
    reservation: Option<Reservation>,
    /// The bytes of an incomplete message while there is no reservation.
    partial: PartialFrame,
}

/// Serves one client until it leaves, sends garbage, or the server stops.
pub(super) async fn serve(
    stream: ServerStream,
    share: ConnectionShare,
    (shared, served, busy_poll): (&Arc<Shared>, &LoopCounters, &BusyPoll),
    mut stopped: watch::Receiver<Duration>,
) {
    let client = stream.socket().peer_addr().ok();
    let session = Box::new(Session::of_client(client, stream.client_certificate()));
    let mut connection = Connection {
        stream,
        client,
        shared,
        served,
        session,
        framing: None,
        input: Vec::new(),
        output: Vec::new(),
        held: Vec::new(),
        has_begun: false,
        begins_by: tokio::time::Instant::now() + shared.limits.handshake_timeout,
        charge: None,
        reservation: None,
        partial: PartialFrame::new(&share.account),
    };
    loop {
        let read = tokio::select! {
            biased;
            read = connection.read(&share) => read,
            _ = stopped.changed() => return,
        };
        if read.is_err() {
            return;
        }
        let answered = connection.answer().await;
        connection.has_begun |= !shared.rpc.has_logins() || connection.session.has_role();
        let delay = connection.session.take_login_delay();
        if !delay.is_zero() {
            // The answer to a failed login waits, and so does its client.
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                _ = stopped.changed() => return,
            }
        }
        if connection.input.is_empty() {
            connection.reservation = None;
        }
        if connection.settle().await.is_err() {
            return;
        }
        let Ok(calls) = answered else { return };
        busy_poll.answered(calls);
    }
}

impl Connection<'_> {
    /// Reads until a message is complete. A client that sends nothing holds no buffer. After its first message it may
    /// be idle for any time. But once a message begins, it must arrive at some speed, so that nobody occupies memory by
    /// sending single bytes.
    async fn read(&mut self, share: &ConnectionShare) -> Result<(), Ended> {
        if self.input.is_empty() {
            (self.input, self.output) = (Vec::new(), Vec::new());
            self.wait_for_client().await?;
            self.input.reserve(self.read_bytes());
        }
        let mut begun = tokio::time::Instant::now();
        loop {
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Err(Ended::Gone),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && self.input.is_empty() => {
                    self.wait_for_client().await?;
                    begun = tokio::time::Instant::now();
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let due = begun + self.shared.limits.message_grace + arrival_time(self.announced());
                    match timeout_at(due, self.stream.readable()).await {
                        Ok(ready) => ready?,
                        Err(_too_slow) => return Err(Ended::Gone),
                    }
                    continue;
                }
                Err(_) => return Err(Ended::Gone),
            }
            let whole = next_message(&self.input, self.framing, self.shared.limits.messages)?;
            if whole.is_some() {
                self.partial.set(0);
                return Ok(());
            }
            if !self.has_begun && self.shared.rpc.has_logins() && self.announced() > BEFORE_LOGIN_BYTES_MAX {
                return Err(Ended::Garbage);
            }
            // An unserved buffer counts with its capacity, which is what it takes.
            let is_counted = self.reservation.is_none() && self.input.capacity() > LITTLE_BYTES;
            self.partial.set(if is_counted { self.input.capacity() } else { 0 });
            let expected = usize::try_from(self.announced()).unwrap_or(usize::MAX);
            // A message without a frame does not state its length, so its reservation is renewed each time it has
            // doubled.
            let reserved = self.reservation.as_ref().map_or(0, Reservation::bytes);
            if expected as u64 > reserved.max(self.read_bytes() as u64) {
                let wanted = if self.framing == Some(Framing::Framed) { expected } else { expected * 2 };
                let waits_since = tokio::time::Instant::now();
                // The old reservation is part of the new one.
                self.reservation = None;
                while self.reservation.is_none() {
                    self.reservation = share.account.try_take(wanted as u64);
                    if self.reservation.is_none() {
                        tokio::time::sleep(ROOM_PAUSE).await;
                    }
                }
                // The client is not to blame for this wait.
                begun += waits_since.elapsed();
                self.partial.set(0);
            }
            let missing = expected.saturating_sub(self.input.len()).min(READ_BYTES << 2);
            self.input.reserve(missing.max(self.read_bytes()));
        }
    }

    /// Bytes to read at a time: few while incomplete messages of all clients hold much.
    fn read_bytes(&self) -> usize {
        if self.partial.are_many() { LITTLE_BYTES } else { READ_BYTES }
    }

    /// Waits for input; until the client has begun, at most the handshake timeout in all.
    async fn wait_for_client(&mut self) -> Result<(), Ended> {
        if self.has_begun {
            return Ok(self.stream.readable().await?);
        }
        match timeout_at(self.begins_by, self.stream.readable()).await {
            Ok(ready) => Ok(ready?),
            Err(_silent) => Err(Ended::Gone),
        }
    }

    /// The stated length of the current message; without a frame, the bytes received so far.
    fn announced(&self) -> u64 {
        match (self.framing, self.input.first_chunk::<4>()) {
            (Some(Framing::Framed), Some(length)) => {
                u64::from(u32::from_be_bytes(*length)).min(self.shared.limits.messages.frame)
            }
            _ => self.input.len() as u64,
        }
    }

    /// Calls every complete message, and returns their number.
    async fn answer(&mut self) -> Result<u64, Ended> {
        let (mut used, mut calls) = (0, 0);
        while let Some(rest) = self.input.get(used..).filter(|rest| !rest.is_empty()) {
            let Some(message) = next_message(rest, self.framing, self.shared.limits.messages)? else { break };
            self.framing = Some(message.framing);
            let start = self.output.len();
            let size = message.size;
            let watched = self.shared.watch.begin(self.client);
            let (rpc, manner) = (&self.shared.rpc, CallOptions::default());
            let scope = Scope::begin(Share::Requests, Waits::Never);
            let done = rpc.call(&message, &mut self.session, manner, &mut self.output)?;
            drop(scope);
            if !matches!(done, CallOutcome::WouldBlock) {
                self.served.calls.fetch_add(1, Ordering::Relaxed);
                let words = || rpc.describe(&message, &self.session);
                self.shared.watch.ended(watched, &done, &words, None);
            }
            match done {
                CallOutcome::Answered | CallOutcome::Refused(_) | CallOutcome::Cancelled => {}
                CallOutcome::Held(call, ticket) => self.hold(start, call, ticket),
                CallOutcome::WouldBlock => {
                    let framing = message.framing;
                    let before = size - message.bytes.len();
                    let is_all = used == 0 && size == self.input.len();
                    let bytes = if is_all {
                        // A long message is not copied.
                        let mut bytes = std::mem::take(&mut self.input);
                        bytes.drain(..before);
                        bytes
                    } else {
                        message.bytes.to_vec()
                    };
                    self.settle().await?;
                    self.call_blocking(bytes, framing, watched).await?;
                    if is_all {
                        return Ok(calls + 1);
                    }
                }
            }
            used += size;
            calls += 1;
            if self.output.len() >= WRITE_BYTES {
                self.settle().await?;
            }
        }
        self.input.drain(..used);
        Ok(calls)
    }

    fn hold(&mut self, start: usize, call: Call, ticket: Ticket) {
        self.held.push(Held { start, end: self.output.len(), call, ticket });
    }

    /// Calls a message where it may wait for the disk. If the client leaves meanwhile, the call is cancelled.
    async fn call_blocking(
        &mut self,
        bytes: Vec<u8>,
        framing: Framing,
        watched: Watched,
    ) -> Result<(), Ended> {
        let shared = Arc::clone(self.shared);
        let mut session = std::mem::take(&mut self.session);
        let gone = Arc::<AtomicBool>::default();
        let cancelled = Arc::clone(&gone);
        // Also cancels when this future is dropped, as happens when the server stops.
        let _ends = EndsCall(gone);
        let login = role_to_log_in(&Message { bytes: &bytes, size: bytes.len(), framing });
        let work = move |turn: Turn| {
            let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
            let mut out = Vec::new();
            let message = Message { bytes: &bytes, size: bytes.len(), framing };
            let probe = watched.began_ns.map(|_| Mutex::new(Probe::of_disk()));
            let manner = CallOptions {
                may_block: true,
                probe: probe.as_ref(),
                cancelled: Some(&cancelled),
                refuses_login: turn == Turn::Refuse,
                ..CallOptions::default()
            };
            let done = loop {
                let done = shared.rpc.call(&message, &mut session, manner, &mut out);
                if !scope.should_retry() {
                    break done;
                }
                out = Vec::new();
            };
            if let Ok(done) = &done {
                let words = || shared.rpc.describe(&message, &session);
                let probe = probe.map(Mutex::into_inner);
                shared.watch.ended(watched, done, &words, probe.as_ref());
            }
            let charge = (out.capacity() >= KEPT_BYTES_MAX)
                .then(|| scope.hand_over(Share::Answers, out.capacity() as u64));
            (done, session, out, charge)
        };
        let (logins, client) = (&self.shared.logins, self.client);
        let called = async {
            match login {
                Some(role) => logins.run((client, &role), work).await,
                None => run_blocking(move || work(Turn::Check)).await,
            }
        };
        let called = tokio::select! {
            biased;
            called = called => called,
            // A call that has no thread yet is dropped.
            () = client_gone(&mut self.stream, &mut self.input) => return Err(Ended::Gone),
        };
        let Some((done, session, out, charge)) = called else { return Err(Ended::Gone) };
        self.session = session;
        self.served.calls.fetch_add(1, Ordering::Relaxed);
        let start = self.output.len();
        // The earlier answers have been sent, so a long answer is not copied.
        if self.output.is_empty() {
            self.output = out;
        } else {
            self.output.extend_from_slice(&out);
        }
        self.charge = charge;
        match done? {
            CallOutcome::Held(call, ticket) => self.hold(start, call, ticket),
            // A call that may block is answered by its deadline. It is cancelled only where the select above returns.
            CallOutcome::Answered
            | CallOutcome::Refused(_)
            | CallOutcome::WouldBlock
            | CallOutcome::Cancelled => {}
        }
        Ok(())
    }

    /// Waits until all answers may be sent, and sends them.
    async fn settle(&mut self) -> Result<(), Ended> {
        if !self.held.is_empty() {
            self.wait_written().await;
        }
        if self.output.is_empty() {
            return Ok(());
        }
        self.write_output().await?;
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES_MAX);
        self.charge = None;
        Ok(())
    }

    /// Sends the answers as fast as the client takes them. A client that takes nothing for too long is disconnected.
    async fn write_output(&mut self) -> Result<(), Ended> {
        let mut written = 0;
        while let Some(rest) = self.output.get(written..).filter(|rest| !rest.is_empty()) {
            match self.stream.try_write(rest) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    match timeout(self.shared.limits.reader_grace, self.stream.writable()).await {
                        Ok(ready) => ready?,
                        Err(_takes_nothing) => return Err(Ended::Gone),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        // An encrypted stream may hold what it has taken.
        match timeout(self.shared.limits.reader_grace, self.stream.flush()).await {
            Ok(flushed) => Ok(flushed?),
            Err(_takes_nothing) => Err(Ended::Gone),
        }
    }

    /// Waits for the log. Answers whose writes are not logged become exceptions.
    async fn wait_written(&mut self) {
        // If the log has failed, each ticket reports it.
        let _told_by_tickets = self.shared.rpc.write_out();
        let is_over = |held: &Held| !matches!(held.ticket.is_ready(), Ok(false));
        let waiting = async {
            loop {
                let mut woken = std::pin::pin!(self.shared.written.notified());
                woken.as_mut().enable();
                if self.held.iter().all(is_over) {
                    return;
                }
                woken.await;
            }
        };
        let since_ns = self.shared.watch.now_ns();
        let patience = Duration::from_millis(self.shared.write_timeout_ms.load(Ordering::Relaxed));
        let _some_wait_too_long = timeout(patience, waiting).await;
        self.shared.watch.waited(since_ns);
        // A write that is logged and waits only for memory is answered as done: it has waited long enough.
        let is_written = |held: &Held| matches!(held.ticket.is_logged(), Ok(true));
        if !self.held.iter().all(is_written) {
            self.replace_unwritten(is_written);
        }
        self.held.clear();
    }

    fn replace_unwritten(&mut self, is_written: impl Fn(&Held) -> bool) {
        let mut output = Vec::with_capacity(self.output.len());
        let mut copied = 0;
        for held in self.held.iter().filter(|held| !is_written(held)) {
            output.extend_from_slice(self.output.get(copied..held.start).unwrap_or_default());
            self.shared.rpc.not_written(held.call, &mut output);
            self.shared.watch.count(RefusedKind::TimedOut);
            copied = held.end;
        }
        output.extend_from_slice(self.output.get(copied..).unwrap_or_default());
        self.output = output;
    }
}

/// Runs `work` on a disk thread. If this future is dropped before a thread has taken it, it is dropped too. `None`: it panicked.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    /// Drops the work that no thread has taken.
    struct Aborts<T>(tokio::task::JoinHandle<T>);
    impl<T> Drop for Aborts<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut running = Aborts(tokio::task::spawn_blocking(work));
    (&mut running.0).await.ok()
}

/// Returns when the client has gone. Up to one read of its further input goes to `input`; the system keeps the rest,
/// and reports the end of the connection as long as it can buffer everything before it: 64 KiB and more.
async fn client_gone(stream: &mut ServerStream, input: &mut Vec<u8>) {
    input.reserve_exact(READ_BYTES);
    while input.len() < input.capacity() {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read_buf(input) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    loop {
        // Urgent bytes, which have no meaning here, wake this once. The readiness is cleared, but not the end of the
        // connection.
        match stream.socket().ready(Interest::PRIORITY).await {
            Ok(ready) if !ready.is_read_closed() => {
                let forget = || Err::<(), _>(std::io::ErrorKind::WouldBlock.into());
                let _ = stream.socket().try_io(Interest::PRIORITY, forget);
            }
            Ok(_) | Err(_) => return,
        }
    }
}

fn arrival_time(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / ARRIVAL_BYTES_PER_S)
}
