//! The requests of a connection that have no answer yet, by stream.
//!
//! A stream whose request has timed out stays taken until its answer comes, because a late answer must not be given to another
//! request.

use helenus_wire::WireError;
use tokio::time::Instant;

use super::expected::Expected;
use crate::{Answer, CallError};

/// Gets the answer of a request, on the task that reads the connection; it must not wait.
pub type Done = Box<dyn for<'a> FnOnce(Result<Answer<'a>, CallError>) + Send>;

/// Appends the envelope of a request on a stream.
pub(super) type WriteEnvelope<'a> = &'a mut dyn FnMut(i16, &mut Vec<u8>) -> Result<(), WireError>;

/// One request.
pub(super) struct Pending {
    /// Its number, in the order in which requests were accepted.
    pub number: u64,
    /// When it fails.
    pub deadline: Instant,
    /// The answers that it may have.
    pub expected: Expected,
    /// `None` once it has timed out.
    pub done: Option<Done>,
}

/// Bytes of requests that wait for the socket; then no further one is accepted. One that has timed out leaves its bytes here, and a node that
/// stops reading may go on answering.
const OUT_BYTES_MAX: usize = 4 << 20;

/// What the mutex of a connection guards.
pub(super) struct State {
    /// Envelopes that are not written yet.
    pub out: Vec<u8>,
    pub slots: Vec<Option<Pending>>,
    free: Vec<i16>,
    most: usize,
    /// The number of the next request.
    next: u64,
    /// Requests with smaller numbers are given to the socket.
    pub taken: u64,
    /// Streams that wait for a late answer.
    pub late: usize,
    /// Why the connection ended.
    pub closed: Option<String>,
}

/// Why a request was not accepted.
pub(super) enum NotAccepted {
    Full,
    Closed(String),
    Wire(WireError),
}

impl State {
    pub fn new(most: usize) -> State {
        let most = most.clamp(1, 1 << 15);
        State {
            out: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            most,
            next: 0,
            taken: 0,
            late: 0,
            closed: None,
        }
    }

    /// Takes a stream, and lets `write` append the envelope.
    pub fn accept(
        &mut self,
        (deadline, expected): (Instant, Expected),
        write: WriteEnvelope<'_>,
    ) -> Result<i16, NotAccepted> {
        if let Some(reason) = &self.closed {
            return Err(NotAccepted::Closed(reason.clone()));
        }
        if self.out.len() >= OUT_BYTES_MAX {
            return Err(NotAccepted::Full);
        }
        let stream = match self.free.pop() {
            Some(stream) => stream,
            None if self.slots.len() < self.most => {
                self.slots.push(None);
                (self.slots.len() - 1) as i16
            }
            None => return Err(NotAccepted::Full),
        };
        if let Err(error) = write(stream, &mut self.out) {
            self.free.push(stream);
            return Err(NotAccepted::Wire(error));
        }
        let pending = Pending { number: self.next, deadline, expected, done: None };
        self.next += 1;
        if let Some(slot) = self.slots.get_mut(stream as usize) {
            *slot = Some(pending);
        }
        Ok(stream)
    }

    /// Gives the answer's recipient to the request that was just accepted.
    pub fn set_done(&mut self, stream: i16, done: Done) {
        if let Some(Some(pending)) = self.slots.get_mut(stream as usize) {
            pending.done = Some(done);
        }
    }

    /// Whether no further request is accepted.
    pub fn is_full(&self) -> bool {
        self.out.len() >= OUT_BYTES_MAX || self.free.is_empty() && self.slots.len() >= self.most
    }

    /// Whether somebody waits for an answer on this stream.
    pub fn is_awaited(&self, stream: i16) -> bool {
        let slot = usize::try_from(stream).ok().and_then(|stream| self.slots.get(stream)?.as_ref());
        slot.is_some_and(|pending| pending.done.is_some())
    }

    /// The request on a stream, which is free from now on. `None`: the node answers what nobody has asked.
    pub fn finish(&mut self, stream: i16) -> Option<Pending> {
        let pending = self.slots.get_mut(usize::try_from(stream).ok()?)?.take()?;
        self.free.push(stream);
        if pending.done.is_none() {
            self.late -= 1;
        }
        Some(pending)
    }

    /// The envelopes that are to be written now.
    pub fn take_out(&mut self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut self.out, into);
        self.taken = self.next;
    }

    /// The recipients of requests whose time is over.
    pub fn expire(&mut self, now: Instant) -> Vec<Done> {
        let mut expired = Vec::new();
        for pending in self.slots.iter_mut().flatten() {
            if pending.deadline <= now
                && let Some(done) = pending.done.take()
            {
                self.late += 1;
                expired.push(done);
            }
        }
        expired
    }

    /// Whether so many answers are late that the connection is of no use.
    pub fn is_stuck(&self) -> bool {
        self.late > self.most / 2
    }
}

#[cfg(test)]
mod tests {
    use helenus_wire::native::Opcode;

    use super::super::expected::Asks;
    use super::*;

    fn accept(state: &mut State, bytes: usize, deadline: Instant) -> bool {
        let expected = Expected::of(Opcode::Query, Asks::Statement);
        let accepted = state.accept((deadline, expected), &mut |_, out| {
            out.extend(std::iter::repeat_n(0, bytes));
            Ok(())
        });
        match accepted {
            Ok(stream) => {
                state.set_done(stream, Box::new(|_| {}));
                true
            }
            Err(NotAccepted::Full) => false,
            Err(_) => panic!("neither closed nor wrong"),
        }
    }

    /// A node that does not read, but answers some of what has reached it.
    #[tokio::test]
    async fn requests_that_have_timed_out_leave_bounded_bytes_behind() {
        let now = tokio::time::Instant::now();
        for bytes in [1_000, 100_000, 3 << 20] {
            let mut state = State::new(1024);
            let mut given = Vec::new();
            assert!(accept(&mut state, 10, now));
            state.take_out(&mut given);
            for _ in 0..20_000 {
                if accept(&mut state, bytes, now) {
                    state.expire(now).into_iter().for_each(drop);
                    // Late answers come, in whatever order.
                    for stream in 0..state.slots.len() {
                        state.finish(stream as i16);
                    }
                }
            }
            assert!(
                state.is_full() && state.out.len() < OUT_BYTES_MAX + bytes,
                "{bytes}: {}",
                state.out.len()
            );
            state.take_out(&mut given);
            assert!(!state.is_full() && accept(&mut state, bytes, now));
        }
    }
}
