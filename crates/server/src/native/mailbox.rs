//! How other threads reach a connection: its waker, the messages left for it, and the lists of waiting connections.
//!
//! A connection is one task on one event loop. Disk threads leave finished answers here and schema changes leave events;
//! the commit log's listener only wakes the task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::task::Waker;

use helenus_engine::SchemaChange;
use helenus_wire::native::Opcode;
use parking_lot::Mutex;

use super::clients::ClientFacts;
use super::disk_pool::Finished;

/// Most events kept for a client that does not read; beyond it the client has lost track and is let go.
const EVENTS_MAX: usize = 4096;

/// What somebody left for a connection.
#[derive(Default)]
pub(super) struct Letters {
    /// Answers from disk threads.
    pub finished: Vec<Finished>,
    /// Schema changes, if the connection registered for them.
    pub events: Vec<Arc<SchemaChange>>,
}

/// Requests of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requested {
    pub all: u64,
    /// EXECUTE.
    pub prepared: u64,
    /// QUERY.
    pub regular: u64,
}

/// One connection as other threads see it.
#[derive(Default)]
pub(super) struct Mailbox {
    waker: Mutex<Option<Waker>>,
    letters: Mutex<Letters>,
    has_letters: AtomicBool,
    /// The client has gone: work for it may stop. Handed to the backend as its cancel flag.
    pub gone: AtomicBool,
    /// Whether the client registered for schema changes.
    pub wants_schema: AtomicBool,
    /// The client was told that its prepared statements depend on the keyspace in use; once is enough.
    pub warned_of_use: AtomicBool,
    /// What `system_views` says of the client; changed by its connection alone.
    pub facts: Mutex<ClientFacts>,
    /// Requests so far; changed by its connection alone.
    pub requests_count: AtomicU64,
    prepared_count: AtomicU64,
    regular_count: AtomicU64,
    /// Events were lost: the connection must end.
    pub overrun: AtomicBool,
    /// Its STARTUP was answered with READY.
    pub began: AtomicBool,
    /// Clients are not served for a while: it ends once what has come is answered.
    pub leaving: AtomicBool,
    /// Unless it has begun, it must make room for another connection.
    pub displaced: AtomicBool,
}

impl Mailbox {
    /// Remembers whom to wake; called at each poll.
    pub fn register(&self, waker: &Waker) {
        let mut kept = self.waker.lock();
        match &mut *kept {
            Some(kept) => kept.clone_from(waker),
            None => *kept = Some(waker.clone()),
        }
    }

    /// Counts a request.
    #[inline]
    pub fn count_request(&self, opcode: Opcode) {
        // One writer: a load and a store do, and cost less than an addition that others could see half done.
        let count =
            |counter: &AtomicU64| counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        count(&self.requests_count);
        match opcode {
            Opcode::Execute => count(&self.prepared_count),
            Opcode::Query => count(&self.regular_count),
            _ => {}
        }
    }

    /// What has been requested so far.
    pub fn requested(&self) -> Requested {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (all, prepared) = (get(&self.requests_count), get(&self.prepared_count));
        Requested { all, prepared, regular: get(&self.regular_count) }
    }

    /// Has the connection polled soon.
    pub fn wake(&self) {
        // Cloned, so that no lock is held while the runtime's are taken.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Leaves an answer and wakes.
    pub fn finish(&self, finished: Finished) {
        self.letters.lock().finished.push(finished);
        self.has_letters.store(true, Ordering::Release);
        self.wake();
    }

    /// Leaves an event and wakes, if the client wants it.
    pub fn announce(&self, change: &Arc<SchemaChange>) {
        if !self.wants_schema.load(Ordering::Acquire) {
            return;
        }
        let mut letters = self.letters.lock();
        if letters.events.len() < EVENTS_MAX {
            letters.events.push(Arc::clone(change));
        } else {
            self.overrun.store(true, Ordering::Release);
        }
        drop(letters);
        self.has_letters.store(true, Ordering::Release);
        self.wake();
    }

    /// Takes what was left.
    pub fn take(&self) -> Option<Letters> {
        if !self.has_letters.swap(false, Ordering::AcqRel) {
            return None;
        }
        Some(std::mem::take(&mut *self.letters.lock()))
    }
}

/// Connections that wait for the same thing, each at most a few times in the list.
///
/// Who waits adds itself, then looks once more at what it waits for; who changes that calls `wake_all` after the change.
/// One of both sees the other, so no wake is lost.
#[derive(Default)]
pub(super) struct Waiters {
    any: AtomicBool,
    list: Mutex<Vec<Arc<Mailbox>>>,
}

impl Waiters {
    /// Adds a connection, to be woken once.
    pub fn add(&self, mailbox: &Arc<Mailbox>) {
        let mut list = self.list.lock();
        if !list.iter().rev().take(8).any(|waiting| Arc::ptr_eq(waiting, mailbox)) {
            list.push(Arc::clone(mailbox));
        }
        self.any.store(true, Ordering::Relaxed);
        // With the fence of `wake_all`: either it sees `any`, or who waits sees the change when it looks once more.
        fence(Ordering::SeqCst);
    }

    /// Wakes all and empties the list.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let waiting = {
            let mut list = self.list.lock();
            self.any.store(false, Ordering::Relaxed);
            std::mem::take(&mut *list)
        };
        for mailbox in waiting {
            mailbox.wake();
        }
    }
}
