//! Calls the messages of one client, in order: here, or on a thread that may wait.
//!
//! Called by `connection` in each of its rounds. A call counts for its client's role from here on until its answer may be
//! sent: while it waits for a thread, runs there, and waits for the log. A call on a thread is cancelled when its client leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use helenus_cql::backend::InFlight;
use helenus_engine::Ticket;
use helenus_engine::read::Probe;
use helenus_host::account::{Charge, Scope, Share, Waits};
use helenus_rpc::{Arrival, CallOptions, CallOutcome, LoginTurn, Session, role_to_log_in};
use helenus_wire::thrift::{Call, Framing, Message, ThriftError, next_message};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, Interest};
use tokio::task::coop;

use super::connection::{Connection, Ended, Held};
use super::output::UNCHARGED_BYTES;
use super::watch::Watched;
use crate::native::{LITTLE_BYTES, Reservation};
use crate::thread_pool::{NO_THREAD, Turn};
use crate::tls::ServerStream;

/// From this size on, answers are sent at once: the client can then read them while its next calls are answered.
const WRITE_BYTES: usize = 32 << 10;

/// Cancels a call when it is dropped.
struct EndsCall(Arc<AtomicBool>);

impl Drop for EndsCall {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A call on its way to a thread.
struct Waiting {
    bytes: Vec<u8>,
    /// The room for its message, if it has some of its own.
    reservation: Option<Reservation>,
    framing: Framing,
    watched: Watched,
    arrival: Arrival,
}

/// What a thread has made of a call.
struct Called {
    done: Result<CallOutcome, ThriftError>,
    session: Box<Session>,
    out: Vec<u8>,
    charge: Option<Charge>,
    in_flight: Option<InFlight>,
}

impl Connection<'_> {
    /// Calls every complete message, and returns their number. After an error the input begins with the message that it is
    /// about.
    pub(super) async fn answer(&mut self) -> Result<u64, Ended> {
        let mut used = 0;
        let answered = self.call_all(&mut used).await;
        self.input.served(used);
        answered
    }

    async fn call_all(&mut self, used: &mut usize) -> Result<u64, Ended> {
        let mut calls = 0;
        loop {
            // One read may bring thousands of calls, and other clients of the event loop are not to wait for all of them.
            coop::consume_budget().await;
            let rest = self.input.bytes.get(*used..).unwrap_or_default();
            let found = next_message(rest, self.input.framing, self.shared.limits.messages)?;
            let Some(message) = found else { return Ok(calls) };
            let start = self.output.bytes.len();
            let size = message.size;
            self.check_stranger(size as u64)?;
            let watched = self.shared.watch.begin(self.client);
            let refusal = self.shared.watch.refusal();
            let arrival = self.session.arrive(message.bytes.len());
            let manner = CallOptions {
                refused: refusal.as_deref(),
                arrival: Some(&arrival),
                ..CallOptions::default()
            };
            let rpc = &self.shared.rpc;
            let scope = Scope::begin(Share::Requests, Waits::Never);
            let done = rpc.call(&message, &mut self.session, manner, &mut self.output.bytes)?;
            if !matches!(done, CallOutcome::WouldBlock) {
                self.served.calls.fetch_add(1, Ordering::Relaxed);
                // Within the scope: a description takes memory as its call does.
                let words = || rpc.describe(&message, &self.session);
                self.shared.watch.ended(watched, &done, &words, None);
            }
            drop(scope);
            match done {
                CallOutcome::Answered | CallOutcome::Refused(_) | CallOutcome::Cancelled => {}
                CallOutcome::Held(call, ticket) => self.hold(start, (call, ticket), arrival.into_in_flight()),
                CallOutcome::WouldBlock => {
                    let framing = message.framing;
                    let before = size - message.bytes.len();
                    let is_all = *used == 0 && size == self.input.bytes.len();
                    let (bytes, reservation) = match is_all {
                        true => self.input.take_whole(before),
                        false => (message.bytes.to_vec(), None),
                    };
                    self.settle().await?;
                    self.call_blocking(Waiting { bytes, reservation, framing, watched, arrival }).await?;
                    if is_all {
                        return if self.session.is_over() { Err(Ended::SessionOver) } else { Ok(calls + 1) };
                    }
                }
            }
            *used += size;
            calls += 1;
            if self.session.is_over() {
                return Err(Ended::SessionOver);
            }
            if self.output.bytes.len() >= WRITE_BYTES {
                self.settle().await?;
            }
        }
    }

    fn hold(&mut self, start: usize, (call, ticket): (Call, Ticket), in_flight: Option<InFlight>) {
        self.held.push(Held { start, end: self.output.bytes.len(), call, ticket, _in_flight: in_flight });
    }

    /// Calls a message where it may wait for the disk. If the client leaves meanwhile, the call is cancelled.
    async fn call_blocking(&mut self, call: Waiting) -> Result<(), Ended> {
        let Waiting { bytes, reservation, framing, watched, arrival } = call;
        // The call may wait for long.
        self.output.rest();
        let shared = Arc::clone(self.shared);
        let mut session = std::mem::take(&mut self.session);
        let gone = Arc::<AtomicBool>::default();
        let cancelled = Arc::clone(&gone);
        // Also cancels when this future is dropped, as happens when the server stops.
        let _ends = EndsCall(gone);
        let login = role_to_log_in(&Message { bytes: &bytes, size: bytes.len(), framing });
        let kept = (bytes.len() + login.as_ref().map_or(0, String::len)) as u64;
        let reservation = match (reservation, &login) {
            (Some(reservation), _) => Some(reservation),
            (None, None) => Some(self.share.account.take(kept)),
            // A login may wait for long, and whoever sends it is a stranger: it needs room for all that is kept of it.
            (None, Some(_)) => self.share.account.try_take_login(kept),
        };
        let is_login = login.is_some();
        let login_turn = Arc::<OnceLock<LoginTurn>>::default();
        let found_turn = Arc::clone(&login_turn);
        let under_way = is_login.then(|| shared.logins_under_way.begin());
        let work = move |turn: Turn| {
            let waits = if turn == Turn::Run { Waits::ForRoom } else { Waits::Never };
            let mut scope = Scope::begin(Share::Requests, waits);
            let mut out = Vec::new();
            let message = Message { bytes: &bytes, size: bytes.len(), framing };
            let probe = watched.began_ns.map(|_| Mutex::new(Probe::of_disk()));
            let refusal = shared.watch.refusal();
            let no_thread = (turn == Turn::Refuse && !is_login).then_some(NO_THREAD);
            let manner = CallOptions {
                refused: refusal.as_deref().or(no_thread),
                may_block: true,
                probe: probe.as_ref(),
                cancelled: Some(&cancelled),
                refuses_login: turn == Turn::Refuse,
                arrival: Some(&arrival),
                login_turn: found_turn.get(),
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
            let charge = (out.capacity() >= UNCHARGED_BYTES)
                .then(|| scope.hand_over(Share::Answers, out.capacity() as u64));
            let called = Called { done, session, out, charge, in_flight: arrival.into_in_flight() };
            // The end of the server waits for the last: what it serves is not used after it.
            drop(shared);
            drop(under_way);
            called
        };
        let called = match reservation.is_some() {
            // Refused here, without a thread.
            false => Some(work(Turn::Refuse)),
            true => {
                let (logins, threads, client) = (&self.shared.logins, &self.shared.threads, self.client);
                let waits = |role: &str| self.shared.rpc.login_turn(role, client.map(|client| client.ip()));
                let called = async {
                    let Some(role) = login else { return threads.run(work).await };
                    // A login that has to wait for long takes no thread meanwhile.
                    if let Some(turn) = waits(&role) {
                        let Some(turn) = turn.await else { return Some(work(Turn::Refuse)) };
                        // Set once, here.
                        let _ = login_turn.set(turn);
                    }
                    logins.run((client, &role), work).await
                };
                tokio::select! {
                    biased;
                    called = called => called,
                    // A call that has no thread yet is dropped.
                    () = client_gone(&mut self.stream, &mut self.input.bytes) => return Err(Ended::Gone),
                }
            }
        };
        drop(reservation);
        let Some(Called { done, session, out, charge, in_flight }) = called else { return Err(Ended::Gone) };
        self.session = session;
        self.served.calls.fetch_add(1, Ordering::Relaxed);
        let start = self.output.bytes.len();
        // The earlier answers have been sent, so a long answer is not copied.
        self.output.add(out, charge);
        match done? {
            CallOutcome::Held(call, ticket) => self.hold(start, (call, ticket), in_flight),
            // A call that may block is answered by its deadline. It is cancelled only where the select above returns.
            CallOutcome::Answered
            | CallOutcome::Refused(_)
            | CallOutcome::WouldBlock
            | CallOutcome::Cancelled => {}
        }
        Ok(())
    }
}

/// Returns when the client has gone. A little of its further input goes to `input`; the system keeps the rest,
/// and reports the end of the connection as long as it can buffer everything before it: 64 KiB and more.
async fn client_gone(stream: &mut ServerStream, input: &mut Vec<u8>) {
    input.reserve_exact(LITTLE_BYTES);
    while input.len() < input.capacity() {
        match stream.read_buf(input).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
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
