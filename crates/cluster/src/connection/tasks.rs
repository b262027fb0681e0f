//! The two tasks of a connection: one writes requests, one reads answers, looks at the clock and asks for signs of life.

use std::sync::Arc;
use std::time::Duration;

use helenus_wire::native::{EVENT_STREAM, Header, Request, RequestHead};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::framing::{Deframer, Framer};
use super::handshake::Ready;
use super::multiplexed::{EventBody, Shared};
use super::stream::{Input, Output};
use crate::{Answer, CallError};

/// How often the reading task looks at the clock.
const TICK: Duration = Duration::from_millis(100);

/// Buffers are kept up to this size.
const KEPT_BYTES: usize = 1 << 20;

/// Starts both tasks.
pub(super) fn start(shared: &Arc<Shared>, ready: Ready, events: Option<mpsc::Sender<EventBody>>) {
    let Ready { stream, deframer, framer, .. } = ready;
    tokio::spawn(write(Arc::clone(shared), stream.output, framer));
    let reader = Reader { shared: Arc::clone(shared), input: stream.input, deframer, events };
    tokio::spawn(reader.run());
}

async fn write(shared: Arc<Shared>, mut output: Output, mut framer: Framer) {
    let (mut envelopes, mut framed) = (Vec::new(), Vec::new());
    loop {
        {
            let mut state = shared.state.lock();
            if state.closed.is_some() {
                break;
            }
            state.take_out(&mut envelopes);
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
            () = shared.ended.notified() => break,
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
    let _ = output.shutdown().await;
}

struct Reader {
    shared: Arc<Shared>,
    input: Input,
    deframer: Deframer,
    events: Option<mpsc::Sender<EventBody>>,
}

impl Reader {
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = tokio::time::Instant::now();
        let mut is_asked = false;
        loop {
            // Envelopes may have arrived with the last answer of the handshake.
            if let Err(reason) = self.take_all() {
                return self.shared.close(&reason);
            }
            tokio::select! {
                read = self.deframer.fill(&mut self.input) => match read {
                    Ok(0) => return self.shared.close("the node closed it"),
                    Ok(_) => {
                        heard = tokio::time::Instant::now();
                        is_asked = false;
                    }
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

    fn take_all(&mut self) -> Result<(), String> {
        let (shared, events) = (&self.shared, &self.events);
        let mut unasked = None;
        let taken = self.deframer.each(|header: &Header, body: &[u8]| {
            let Header { version, flags, stream, opcode, .. } = *header;
            let answer = Answer { version, flags, opcode, body };
            if stream == EVENT_STREAM {
                // An event that finds no room is lost; who gets events reads all again when it has missed some.
                if let Some(events) = events {
                    let _ = events.try_send(answer.to_owned());
                }
                return true;
            }
            let (pending, was_full) = {
                let mut state = shared.state.lock();
                let was_full = state.is_full();
                (state.finish(stream), was_full)
            };
            if was_full {
                shared.room.notify_waiters();
            }
            match pending {
                Some(pending) => {
                    if let Some(done) = pending.done {
                        done(Ok(answer));
                    }
                }
                None if shared.state.lock().closed.is_none() => unasked = Some(stream),
                None => {}
            }
            true
        });
        match (taken, unasked) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(()), Some(stream)) => {
                Err(format!("an answer came on stream {stream}, where nothing was asked"))
            }
            (Ok(()), None) => Ok(()),
        }
    }

    fn expire(&mut self, now: Instant) {
        let (expired, is_stuck) = {
            let mut state = self.shared.state.lock();
            (state.expire(now), state.is_stuck())
        };
        let (node, after) = (self.shared.node, self.shared.timeout);
        for done in expired {
            done(Err(CallError::Timeout { node, after }));
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
        let written = state.accept(deadline, &mut |stream, out| {
            Request::Options.encode(&RequestHead::new(version, stream), out)
        });
        if let Ok(stream) = written {
            state.set_done(stream, Box::new(|_| {}));
        }
        drop(state);
        self.shared.written.notify_one();
    }
}
