//! The requests of a connection that have no answer yet, by stream.
//!
//! A stream whose request has timed out stays taken until its answer comes, because a late answer must not be given to another
//! request.

use helenus_wire::WireError;
use tokio::time::Instant;

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
    /// `None` once it has timed out.
    pub done: Option<Done>,
}

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
    pub fn accept(&mut self, deadline: Instant, write: WriteEnvelope<'_>) -> Result<i16, NotAccepted> {
        if let Some(reason) = &self.closed {
            return Err(NotAccepted::Closed(reason.clone()));
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
        let pending = Pending { number: self.next, deadline, done: None };
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
        self.free.is_empty() && self.slots.len() >= self.most
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
