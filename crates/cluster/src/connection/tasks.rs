//! The two tasks of a connection: one writes requests, one reads answers, looks at the clock and asks for signs of life.

use std::sync::Arc;
use std::time::Duration;

use helenus_wire::native::{EVENT_STREAM, Header, Opcode, Request, RequestHead};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::expected::{Asks, Expected};
use super::framing::{Deframer, Framer};
use super::handshake::Ready;
use super::in_flight::Pending;
use super::multiplexed::{Shared, tell};
use super::node_events::EventSender;
use super::stream::{Input, Output};
use crate::{Answer, CallError, Taken};

/// How often the reading task looks at the clock.
const TICK: Duration = Duration::from_millis(100);
/// Bytes that are a sign of life without a whole message among them. A node that sends less of a long message in the time of its heartbeats
/// is asked for one, and loses the connection if it still does.
const SIGN_OF_LIFE_BYTES: usize = 64 << 10;

/// Buffers are kept up to this size.
const KEPT_BYTES: usize = 1 << 20;
/// How long the end of a connection may take: TLS writes what it still has and its farewell, and the node may not read.
const FAREWELL: Duration = Duration::from_secs(1);

/// Starts both tasks.
pub(super) fn start(shared: &Arc<Shared>, ready: Ready, events: Option<EventSender>) {
    let Ready { stream, deframer, framer, .. } = ready;
    tokio::spawn(write(Arc::clone(shared), stream.output, framer));
    let reader = Reader { shared: Arc::clone(shared), input: stream.input, deframer, events };
    tokio::spawn(reader.run());
}

/// Closes the connection when a task of it ends, however that comes.
struct ClosesAtEnd(Arc<Shared>);

impl Drop for ClosesAtEnd {
    fn drop(&mut self) {
        self.0.close("a task of it has ended");
    }
}

async fn write(shared: Arc<Shared>, mut output: Output, mut framer: Framer) {
    let _closes = ClosesAtEnd(Arc::clone(&shared));
    let (mut envelopes, mut framed) = (Vec::new(), Vec::new());
    loop {
        // Before the state is looked at, so that no end is missed.
        let ended = shared.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        let was_full = {
            let mut state = shared.state.lock();
            if state.closed.is_some() {
                break;
            }
            let was_full = state.is_full();
            state.take_out(&mut envelopes);
            was_full
        };
        if was_full {
            shared.room.notify_waiters();
        }
        if envelopes.is_empty() {
            shared.written.notified().await;
            continue;
        }
        let bytes = framer.frame(&envelopes, &mut framed);
        let written = async {
            output.write_all(bytes).await?;
            output.flush().await
        };
        let written = tokio::select! {
            written = written => written,
            () = ended => break,
        };
        if let Err(error) = written {
            shared.close(&error.to_string());
            break;
        }
        for buffer in [&mut envelopes, &mut framed] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
        }
    }
    // A node that is not polite about it loses the connection all the same.
    let _ = tokio::time::timeout(FAREWELL, output.shutdown()).await;
}

/// The request on a stream, which is free from now on; the first who waits for one is woken. `None`: nothing was asked there.
fn finish(shared: &Shared, stream: i16) -> Option<Pending> {
    let (pending, was_full) = {
        let mut state = shared.state.lock();
        let was_full = state.is_full();
        (state.finish(stream), was_full)
    };
    if was_full {
        shared.room.notify_waiters();
    }
    pending
}

struct Reader {
    shared: Arc<Shared>,
    input: Input,
    deframer: Deframer,
    events: Option<EventSender>,
}

impl Reader {
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = tokio::time::Instant::now();
        let (mut is_asked, mut arrived) = (false, 0);
        let _closes = ClosesAtEnd(Arc::clone(&self.shared));
        loop {
            // Envelopes may have arrived with the last answer of the handshake.
            let has_taken = match self.take_all() {
                Ok(has_taken) => has_taken,
                Err(reason) => return self.shared.close(&reason),
            };
            if has_taken || arrived >= SIGN_OF_LIFE_BYTES {
                heard = tokio::time::Instant::now();
                (is_asked, arrived) = (false, 0);
            }
            tokio::select! {
                read = self.deframer.fill(&mut self.input) => match read {
                    Ok(0) => return self.shared.close("the node closed it"),
                    Ok(bytes) => arrived += bytes,
                    Err(error) => return self.shared.close(&error.to_string()),
                },
                now = ticks.tick() => {
                    self.expire(now);
                    if self.shared.state.lock().closed.is_some() {
                        return;
                    }
                    let silent = now.saturating_duration_since(heard);
                    if is_asked && silent > 2 * self.shared.heartbeat {
                        return self.shared.close("the node gives no sign of life");
                    }
                    if !is_asked && silent > self.shared.heartbeat {
                        is_asked = true;
                        self.ask();
                    }
                },
            }
        }
    }

    /// Takes the messages that are whole. Returns whether there was one.
    fn take_all(&mut self) -> Result<bool, String> {
        let (shared, events) = (&self.shared, &self.events);
        let (mut unasked, mut objection, mut has_taken) = (None, None, false);
        let taken = self.deframer.each(|header: &Header, body: &[u8], room: Option<&Arc<Taken>>| {
            let Header { version, flags, stream, opcode, .. } = *header;
            let answer = Answer { version, flags, opcode, body, room };
            has_taken = true;
            // What follows an answer that nothing has asked for is not believed; its requests are lost with the connection.
            if objection.is_some() {
                return false;
            }
            if stream == EVENT_STREAM {
                if let Some(events) = events {
                    events.send(answer.to_owned());
                }
                return true;
            }
            match finish(shared, stream) {
                Some(pending) => {
                    objection = pending.expected.objection(&answer);
                    let taken = match &objection {
                        None => Ok(answer),
                        Some(reason) => Err(CallError::Unasked { node: shared.node, reason: reason.clone() }),
                    };
                    if let Some(done) = pending.done {
                        tell(done, taken);
                    }
                }
                None if shared.state.lock().closed.is_none() => unasked = Some(stream),
                None => {}
            }
            true
        });
        // Nobody waits any more for a long answer that comes too late, nor for a long event: it keeps no room until it has arrived.
        if let Some(stream) = self.deframer.arriving()
            && !shared.state.lock().is_awaited(stream)
        {
            self.deframer.give_up();
        }
        for (stream, reason) in self.deframer.take_refused() {
            has_taken = true;
            if stream == EVENT_STREAM {
                events.iter().for_each(EventSender::miss);
                continue;
            }
            match finish(shared, stream) {
                Some(Pending { done: Some(done), .. }) => {
                    tell(done, Err(CallError::TooLong { node: shared.node, reason }));
                }
                Some(_) => {}
                None if shared.state.lock().closed.is_none() => unasked = Some(stream),
                None => {}
            }
        }
        match (taken, objection, unasked) {
            (_, Some(reason), _) => Err(reason),
            (Err(error), ..) => Err(error.to_string()),
            (Ok(()), _, Some(stream)) => {
                Err(format!("an answer came on stream {stream}, where nothing was asked"))
            }
            (Ok(()), _, None) => Ok(has_taken),
        }
    }

    fn expire(&mut self, now: Instant) {
        let (expired, is_stuck) = {
            let mut state = self.shared.state.lock();
            (state.expire(now), state.is_stuck())
        };
        let (node, after) = (self.shared.node, self.shared.timeout);
        for done in expired {
            tell(done, Err(CallError::Timeout { node, after }));
        }
        if is_stuck {
            self.shared.close("too many requests have timed out on it");
        }
    }

    /// OPTIONS, whose answer nobody needs.
    fn ask(&self) {
        let version = self.shared.version;
        let mut state = self.shared.state.lock();
        let deadline = tokio::time::Instant::now() + self.shared.timeout;
        let written = state
            .accept((deadline, Expected::of(Opcode::Options, Asks::Statement)), &mut |stream, out| {
                Request::Options.encode(&RequestHead::new(version, stream), out)
            });
        if let Ok(stream) = written {
            state.set_done(stream, Box::new(|_| {}));
        }
        drop(state);
        self.shared.written.notify_one();
    }
}
