//! How other threads reach a connection: its waker, the messages left for it, and the lists of waiting connections.
//!
//! A connection is one task on one event loop. Disk threads leave finished answers here and schema changes leave events;
//! the commit log's listener only wakes the task.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use helenus_cql::backend::ClientCertificate;
use helenus_engine::SchemaChange;
use helenus_wire::native::Opcode;
use parking_lot::Mutex;

use super::clients::ClientFacts;
use super::job::Finished;
use crate::connection_budget::Newcomer;

/// Most events kept for a client that does not read, and the bytes of their names. With more, its connection is closed, because it would
/// miss some. Clients share the events, so the bytes are those of one client, however many there are.
const EVENTS_MAX: usize = 4096;
const EVENTS_BYTES_MAX: usize = 1 << 20;

/// The messages left for a connection.
#[derive(Default)]
pub(super) struct Messages {
    /// Answers from disk threads.
    pub finished: Vec<Finished>,
    /// Schema changes, if the connection registered for them.
    pub events: Vec<Arc<SchemaChange>>,
    /// The bytes of their names.
    events_bytes: usize,
}

fn event_bytes(change: &SchemaChange) -> usize {
    change.keyspace.len() + change.name.as_ref().map_or(0, |name| name.len())
}

/// The number of requests of a connection.
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
    messages: Mutex<Messages>,
    has_messages: AtomicBool,
    /// The client has gone, so its requests may be abandoned. The backend gets this as its cancel flag.
    pub gone: AtomicBool,
    /// Whether the client registered for schema changes.
    pub wants_schema: AtomicBool,
    /// Whether the client was warned that its prepared statements depend on the keyspace in use; once is enough.
    pub warned_of_use: AtomicBool,
    /// Set when an answer says that the session has ended: the connection ends with it.
    pub has_ended: AtomicBool,
    /// What `system_views` shows of the client. Only its connection changes it.
    pub facts: Mutex<ClientFacts>,
    /// Whom the certificate is for that the client has shown; empty if it has shown none.
    pub certificate: OnceLock<ClientCertificate>,
    /// Requests so far. Only the connection changes it.
    pub requests_count: AtomicU64,
    prepared_count: AtomicU64,
    regular_count: AtomicU64,
    /// Events were lost, so the connection must end.
    pub overrun: AtomicBool,
    /// STARTUP was answered with READY or, with logins, the login has succeeded.
    pub began: AtomicBool,
    /// The server is paused: the connection ends once its received requests are answered.
    pub leaving: AtomicBool,
    /// The last order during which it had no request in flight (`hand_over`).
    pub at_rest_since: AtomicU64,
    /// The connection must make room for another unless it has begun.
    pub displaced: AtomicBool,
}

impl Newcomer for Mailbox {
    fn has_begun(&self) -> bool {
        self.began.load(Ordering::Acquire)
    }

    fn displace(&self) {
        self.displaced.store(true, Ordering::Release);
        self.wake();
    }
}

impl Mailbox {
    /// Stores the task's waker; called at each poll.
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
        // There is one writer, so a load and a store suffice and cost less than an atomic addition.
        let count =
            |counter: &AtomicU64| counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        count(&self.requests_count);
        match opcode {
            Opcode::Execute => count(&self.prepared_count),
            Opcode::Query => count(&self.regular_count),
            _ => {}
        }
    }

    /// The requests so far.
    pub fn requested(&self) -> Requested {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (all, prepared) = (get(&self.requests_count), get(&self.prepared_count));
        Requested { all, prepared, regular: get(&self.regular_count) }
    }

    /// Schedules a poll of the connection.
    pub fn wake(&self) {
        // Cloned, so that this lock is not held while the runtime takes its own.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Leaves an answer and wakes the connection.
    pub fn finish(&self, finished: Finished) {
        self.messages.lock().finished.push(finished);
        self.has_messages.store(true, Ordering::Release);
        self.wake();
    }

    /// Leaves an event and wakes the connection, if the client registered for it.
    pub fn announce(&self, change: &Arc<SchemaChange>) {
        if !self.wants_schema.load(Ordering::Acquire) {
            return;
        }
        let mut messages = self.messages.lock();
        let bytes = messages.events_bytes + event_bytes(change);
        if messages.events.len() < EVENTS_MAX && bytes <= EVENTS_BYTES_MAX {
            messages.events.push(Arc::clone(change));
            messages.events_bytes = bytes;
        } else {
            self.overrun.store(true, Ordering::Release);
        }
        drop(messages);
        self.has_messages.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether there are messages.
    pub fn has_messages(&self) -> bool {
        self.has_messages.load(Ordering::Acquire)
    }

    /// Takes the messages, if there are any; without the events if its client has much to read already: encoded, they are each client's own.
    pub fn take(&self, with_events: bool) -> Option<Messages> {
        if !self.has_messages.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut kept = self.messages.lock();
        let mut taken = std::mem::take(&mut *kept);
        if !with_events && !taken.events.is_empty() {
            kept.events = std::mem::take(&mut taken.events);
            kept.events_bytes = taken.events_bytes;
            self.has_messages.store(true, Ordering::Release);
        }
        Some(taken)
    }
}

/// The connections that wait for one condition. The list may contain a connection a few times.
///
/// A waiter adds itself, then checks the condition once more; the thread that changes the condition calls `wake_all`
/// after the change. One of the two sees the other, so no wake-up is lost.
#[derive(Default)]
pub(super) struct Waiters {
    any: AtomicBool,
    list: Mutex<Vec<Arc<Mailbox>>>,
}

impl Waiters {
    /// Adds a connection, which is woken once.
    pub fn add(&self, mailbox: &Arc<Mailbox>) {
        let mut list = self.list.lock();
        if !list.iter().rev().take(8).any(|waiting| Arc::ptr_eq(waiting, mailbox)) {
            list.push(Arc::clone(mailbox));
        }
        self.any.store(true, Ordering::Relaxed);
        // Pairs with the fence of `wake_all`: either `wake_all` sees `any`, or the waiter sees the change when it
        // checks once more.
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

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_engine::SchemaChangeKind;

    fn change(name: &str) -> Arc<SchemaChange> {
        let (kind, name) = (SchemaChangeKind::Created, Some(Arc::from(name)));
        Arc::new(SchemaChange { kind, keyspace: Arc::from("ks"), name, is_type: true })
    }

    #[test]
    fn events_wait_while_their_client_has_much_to_read_and_too_many_end_the_connection() {
        let mailbox = Mailbox::default();
        mailbox.wants_schema.store(true, Ordering::Release);
        mailbox.announce(&change("first"));
        assert!(mailbox.take(false).is_some_and(|taken| taken.events.is_empty()));
        assert!(mailbox.has_messages(), "they are asked for again");
        mailbox.announce(&change("second"));
        let names: Vec<_> = mailbox.take(true).into_iter().flat_map(|taken| taken.events).collect();
        assert_eq!(names, [change("first"), change("second")]);
        assert!(!mailbox.has_messages() && !mailbox.overrun.load(Ordering::Acquire));
        let long = "n".repeat(60_000);
        (0..20).for_each(|_| mailbox.announce(&change(&long)));
        assert!(mailbox.overrun.load(Ordering::Acquire));
        let kept = mailbox.take(true).map_or(0, |taken| taken.events.len());
        assert!((10..=EVENTS_BYTES_MAX / 60_000).contains(&kept), "{kept}");
    }
}
