//! One client of the RPC interface: reads its messages, calls them, and answers them in order.
//!
//! ```text
//! read what is there -> call each whole message -> wait for the log once -> write all answers in one go -> again
//! ```
//! `calls` has the middle part. A call that needs the disk runs on a separate thread, after the earlier answers have been sent,
//! and a login on one of the login pool; nothing here blocks. A client that does not read its answers for too long is
//! disconnected.
//!
//! A connection is one task of an event loop, which polls another task only when this one waits. A client that sends faster
//! than it is served never makes it wait, so it gives way after some rounds, and within a round where tokio's budget of a task is
//! used up. Reads and writes wait with the task's own waker: at the end of the budget they find nothing although the socket is
//! ready, and a loop that only asks the socket would turn for ever.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use helenus_cql::backend::InFlight;
use helenus_engine::Ticket;
use helenus_rpc::{RefusedKind, Session};
use helenus_wire::native::BEFORE_LOGIN_BYTES_MAX;
use helenus_wire::thrift::{ApplicationFailure, Call, ThriftError, put_failure};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::{coop, yield_now};
use tokio::time::{Instant, timeout, timeout_at};

use super::input::Input;
use super::newcomer::RpcNewcomer;
use super::output::Output;
use super::server::Shared;
use super::watch::LoopCounters;
use crate::busy_poll::BusyPoll;
use crate::connection_budget::Newcomer;
use crate::native::{ConnectionShare, LITTLE_BYTES};
use crate::tls::ServerStream;

/// Rounds of a client that sends without a pause, before other clients of the event loop have their turn.
const ROUNDS_PER_TURN: u32 = 16;
/// Rounds of such a client after the server was told to stop.
const LAST_ROUNDS: u32 = 16;
/// The slowest rate at which a long message may arrive, bytes a second, besides its grace period.
const ARRIVAL_BYTES_PER_S: u64 = 128 << 10;
/// Longer than any connection lives.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How often a long message checks whether there is room for it.
const ROOM_PAUSE: Duration = Duration::from_millis(20);
/// How long a connection that the server ends still reads and drops input. If it were closed at once with input that is not
/// read, both systems would throw away the answers that are on their way.
const LINGER: Duration = Duration::from_secs(1);

/// An answer that waits for the log, with its position in the output.
pub(super) struct Held {
    pub start: usize,
    pub end: usize,
    pub call: Call,
    pub ticket: Ticket,
    /// The call among those in flight of its client's role.
    pub _in_flight: Option<InFlight>,
}

/// Why a connection ends.
pub(super) enum Ended {
    /// The client has gone, or it takes no answers.
    Gone,
    /// The client's message is not taken, and it is told why.
    Refused(String),
    /// The client sent something that is not a message. The answers before it are still sent.
    Garbage,
    /// Its session is over, as the last answer says. The answers are still sent.
    SessionOver,
}

impl From<std::io::Error> for Ended {
    fn from(_error: std::io::Error) -> Ended {
        Ended::Gone
    }
}

impl From<ThriftError> for Ended {
    fn from(error: ThriftError) -> Ended {
        match error {
            ThriftError::FrameTooLong { .. } | ThriftError::MessageTooLong { .. } => {
                Ended::Refused(error.to_string())
            }
            _ => Ended::Garbage,
        }
    }
}

pub(super) struct Connection<'a> {
    pub stream: ServerStream,
    pub client: Option<SocketAddr>,
    pub shared: &'a Arc<Shared>,
    pub served: &'a LoopCounters,
    pub session: Box<Session>,
    pub share: &'a ConnectionShare,
    pub input: Input,
    pub output: Output,
    pub held: Vec<Held>,
    /// Notes when a complete message has arrived and, where clients have to log in, the client has.
    newcomer: &'a RpcNewcomer,
    /// When that must have happened.
    begins_by: Instant,
    /// When answers were last sent.
    sent: Option<Instant>,
    /// Changes when the server stops.
    stopped: watch::Receiver<Duration>,
}

/// What the connections of an event loop share.
pub(super) struct EventLoop {
    pub shared: Arc<Shared>,
    pub served: Arc<LoopCounters>,
    pub busy_poll: Arc<BusyPoll>,
}

/// Serves one client until it leaves, sends garbage, or the server stops, or until it must make room for another before it has
/// begun.
pub(super) async fn serve(
    stream: ServerStream,
    share: ConnectionShare,
    event_loop: &EventLoop,
    (newcomer, mut stopped): (&RpcNewcomer, watch::Receiver<Duration>),
) {
    let EventLoop { shared, served, busy_poll } = event_loop;
    let client = stream.socket().peer_addr().ok();
    let session = Box::new(Session::of_client(client, stream.client_certificate()));
    let mut connection = Connection {
        stream,
        client,
        shared,
        served,
        session,
        share: &share,
        input: Input::new(&share, shared.limits.messages),
        output: Output::default(),
        held: Vec::new(),
        newcomer,
        begins_by: after(tokio::time::Instant::now(), shared.limits.handshake_timeout),
        sent: None,
        stopped: stopped.clone(),
    };
    let ended = tokio::select! {
        biased;
        () = newcomer.displaced() => return,
        ended = connection.run(busy_poll, &mut stopped) => ended,
    };
    if ended.is_ok() {
        connection.linger().await;
    }
}

impl Connection<'_> {
    /// Serves messages. An error: there is nobody to whom anything is to be said.
    async fn run(
        &mut self,
        busy_poll: &BusyPoll,
        stopped: &mut watch::Receiver<Duration>,
    ) -> Result<(), Ended> {
        let (mut rounds, mut last_rounds) = (0_u32, LAST_ROUNDS);
        loop {
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_PER_TURN) {
                yield_now().await;
            }
            if stopped.has_changed().unwrap_or(true) {
                // What has been received is answered, unless the client sends more for ever.
                if last_rounds == 0 {
                    return Ok(());
                }
                last_rounds -= 1;
            }
            let read = tokio::select! {
                biased;
                read = self.read() => read,
                _ = stopped.changed() => return Ok(()),
            };
            match read {
                Ok(()) => {}
                Err(Ended::Refused(text)) => return self.refuse(&text).await,
                Err(Ended::Gone | Ended::Garbage | Ended::SessionOver) => return Err(Ended::Gone),
            }
            let answered = self.answer().await;
            if !self.shared.rpc.has_logins() || self.session.has_role() {
                self.newcomer.begin();
            }
            match answered {
                Ok(calls) => {
                    self.settle().await?;
                    busy_poll.answered(calls);
                }
                Err(Ended::Refused(text)) => return self.refuse(&text).await,
                Err(Ended::Garbage | Ended::SessionOver) => return self.settle().await,
                Err(Ended::Gone) => return Err(Ended::Gone),
            }
            if !self.newcomer.has_begun() && tokio::time::Instant::now() >= self.begins_by {
                // Calls that are refused do not keep a connection open without a login.
                return Ok(());
            }
        }
    }

    /// Answers the incoming call with an exception, after the answers before it. Where its name has not come, whoever sends it may
    /// speak another protocol, and gets no answer.
    async fn refuse(&mut self, text: &str) -> Result<(), Ended> {
        let role = self.session.role().map(|role| &**role);
        let head = self.input.head();
        self.shared.watch.not_taken((self.client, role), head.map_or(b"", |(name, _)| name), text);
        if let (Some(head), Some(framing)) = (head, self.input.framing) {
            put_failure(head, (ApplicationFailure::Internal, text), framing, &mut self.output.bytes);
        }
        self.settle().await
    }

    /// Ends a connection whose last answer was just sent: shuts down the sending side, then reads and drops input for a while.
    async fn linger(&mut self) {
        if self.sent.is_none_or(|sent| sent.elapsed() >= LINGER) {
            return;
        }
        let ending = async {
            self.stream.shutdown().await?;
            let mut rest = [0; LITTLE_BYTES];
            while self.stream.read(&mut rest).await? > 0 {}
            Ok::<_, std::io::Error>(())
        };
        let _over = timeout(LINGER, ending).await;
    }

    /// Refuses a message that is longer than one may be before the login.
    pub(super) fn check_stranger(&self, bytes: u64) -> Result<(), Ended> {
        let is_stranger = self.shared.rpc.has_logins() && !self.session.has_role();
        match is_stranger && bytes > BEFORE_LOGIN_BYTES_MAX {
            true => Err(Ended::Refused(format!(
                "A message before the login may have {BEFORE_LOGIN_BYTES_MAX} bytes"
            ))),
            false => Ok(()),
        }
    }

    /// Reads until a message is complete. A client that sends nothing holds no buffer. After its first message it may
    /// be idle for any time. But once a message begins, it must arrive at some speed, so that nobody occupies memory by
    /// sending single bytes.
    async fn read(&mut self) -> Result<(), Ended> {
        if self.input.bytes.is_empty() {
            self.output.rest();
            self.wait_for_client().await?;
        }
        let mut begun = tokio::time::Instant::now();
        // A call that came while another one ran may be here already, so this looks before it reads.
        while !self.input.has_message()? {
            self.output.rest();
            self.check_stranger(self.input.announced())?;
            let waits_since = tokio::time::Instant::now();
            while !self.input.make_room(self.share) {
                let is_late = !self.newcomer.has_begun() && tokio::time::Instant::now() >= self.begins_by;
                if is_late || waits_since.elapsed() > self.shared.limits.message_grace {
                    return Err(Ended::Refused(
                        "The server has no room for this request now; try again later".to_owned(),
                    ));
                }
                tokio::time::sleep(ROOM_PAUSE).await;
            }
            // The client is not to blame for this wait.
            begun += waits_since.elapsed();
            if !self.input.bytes.is_empty() {
                self.read_more(begun).await?;
            } else if !self.read_now().await? {
                self.input.served(0);
                self.wait_for_client().await?;
                begun = tokio::time::Instant::now();
            }
        }
        Ok(())
    }

    /// Reads what is there. False: nothing, or the task has used up its turn.
    async fn read_now(&mut self) -> Result<bool, Ended> {
        let read = {
            let mut reading = pin!(self.stream.read_buf(&mut self.input.bytes));
            poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await
        };
        match read {
            Poll::Ready(Ok(0) | Err(_)) => Err(Ended::Gone),
            Poll::Ready(Ok(_)) => Ok(true),
            Poll::Pending => {
                // Whoever tries again has a new turn then. Otherwise it would find nothing again, for ever.
                coop::consume_budget().await;
                Ok(false)
            }
        }
    }

    /// Reads more of a message of which a part has come, since `begun`.
    async fn read_more(&mut self, begun: Instant) -> Result<(), Ended> {
        let arrival = arrival_time(self.input.announced());
        let mut due = after(begun, self.shared.limits.message_grace.saturating_add(arrival));
        if !self.newcomer.has_begun() {
            due = due.min(after(self.begins_by, arrival));
        }
        match timeout_at(due, self.stream.read_buf(&mut self.input.bytes)).await {
            Ok(Ok(0) | Err(_)) => Err(Ended::Gone),
            Ok(Ok(_)) => Ok(()),
            Err(_too_slow) => {
                let text = "The request did not arrive in time; send it without pauses";
                Err(Ended::Refused(text.to_owned()))
            }
        }
    }

    /// Waits for input; until the client has begun, at most the handshake timeout in all.
    async fn wait_for_client(&mut self) -> Result<(), Ended> {
        if self.newcomer.has_begun() {
            return Ok(self.stream.readable().await?);
        }
        match timeout_at(self.begins_by, self.stream.readable()).await {
            Ok(ready) => Ok(ready?),
            Err(_silent) => Err(Ended::Gone),
        }
    }

    /// Waits until all answers may be sent, and sends them.
    pub(super) async fn settle(&mut self) -> Result<(), Ended> {
        let delay = self.session.take_login_delay();
        if !delay.is_zero() || !self.held.is_empty() {
            self.output.rest();
        }
        if !delay.is_zero() {
            // The answer to a failed login waits, and so does its client, also if its next login is here already.
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                _ = self.stopped.changed() => return Err(Ended::Gone),
            }
        }
        if !self.held.is_empty() {
            self.wait_written().await;
        }
        if self.output.bytes.is_empty() {
            return Ok(());
        }
        self.write_output().await?;
        self.output.sent();
        self.sent = Some(tokio::time::Instant::now());
        Ok(())
    }

    /// Sends the answers as fast as the client takes them. A client that takes nothing for too long is disconnected.
    async fn write_output(&mut self) -> Result<(), Ended> {
        let mut written = 0;
        while written < self.output.bytes.len() {
            let due = self.takes_by();
            let (stream, output) = (&mut self.stream, &mut self.output);
            let taken = poll_fn(|context| {
                let rest = output.bytes.get(written..).unwrap_or_default();
                let taken = Pin::new(&mut *stream).poll_write(context, rest);
                if taken.is_pending() {
                    output.charge();
                }
                taken
            });
            match timeout_at(due, taken).await {
                Ok(Ok(0) | Err(_)) | Err(_) => return Err(Ended::Gone),
                Ok(Ok(bytes)) => written += bytes,
            }
        }
        // An encrypted stream may hold what it has taken.
        match timeout_at(self.takes_by(), self.stream.flush()).await {
            Ok(flushed) => Ok(flushed?),
            Err(_takes_nothing) => Err(Ended::Gone),
        }
    }

    /// When the client must have taken some of its answers.
    fn takes_by(&self) -> Instant {
        let grace = self.shared.limits.reader_grace;
        let due = after(tokio::time::Instant::now(), grace);
        if self.newcomer.has_begun() { due } else { due.min(after(self.begins_by, grace)) }
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
        let mut output = Vec::with_capacity(self.output.bytes.len());
        let mut copied = 0;
        for held in self.held.iter().filter(|held| !is_written(held)) {
            output.extend_from_slice(self.output.bytes.get(copied..held.start).unwrap_or_default());
            self.shared.rpc.not_written(held.call, &mut output);
            self.shared.watch.count(RefusedKind::TimedOut);
            copied = held.end;
        }
        output.extend_from_slice(self.output.bytes.get(copied..).unwrap_or_default());
        self.output.bytes = output;
    }
}

/// A moment some time after another; however long the time is, one that a timer has.
fn after(from: Instant, time: Duration) -> Instant {
    from + time.min(FAR)
}

fn arrival_time(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / ARRIVAL_BYTES_PER_S)
}
