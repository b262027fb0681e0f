//! The connections whose clients have not begun: who they are is not known yet. A client begins with its login, or with STARTUP where
//! nobody logs in.
//!
//! Each has its memory on the account of the process from the first byte on, with the most that a TLS handshake takes. Together they
//! have at most a part of it, and at most half of the places; beyond that the oldest of them are closed: clients that connect and send
//! half a message do not keep others out. Where the process has no memory for one more because of others, the one that comes is refused,
//! and those that are there go on. `server` adds them and `connection` marks those that begin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::options::{Newcomer, Place};

/// The memory of an idle connection: its task, its sockets' halves and what is kept of its client; a half more than is measured.
const CONNECTION_BYTES: u64 = 4 << 10;
/// The memory of a connection that has not begun: with half a message, or with one behind the login that waits; a little more than is
/// measured.
const NEWCOMER_BYTES: u64 = 20 << 10;
/// The memory of a TLS handshake, and of what a session may hold before its client has begun: the messages of both sides with their
/// certificates, or a record that has come in part. As at a server. A buffer of rustls has up to twice what a client may send in a row
/// (`handshake_socket`).
const HANDSHAKE_BYTES: u64 = 48 << 10;
/// The memory of a TLS session at rest.
const SESSION_BYTES: u64 = 12 << 10;
/// When others need room, one in this many of those that have not begun is closed at once.
const DISPLACED_PART: usize = 16;
/// At most one in this many of the allowed connections may not have begun.
const NEWCOMERS_PART: u64 = 2;
/// A list up to this length is not looked through for those that have begun or gone.
const UNSWEPT: usize = 64;

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const DISPLACED: u8 = 2;

/// A connection from its admission on.
pub(crate) struct Entrant {
    state: AtomicU8,
    /// Its place among the connections of the process, if anybody counts them.
    place: Option<Box<dyn Place>>,
    displaced: Notify,
    /// Its bytes while it has not begun, and those of all that have not.
    waiting_bytes: AtomicU64,
    of_all: Arc<AtomicU64>,
}

impl Entrant {
    /// Counts its bytes among those that have not begun.
    fn count_waiting(&self, bytes: u64) {
        let before = self.waiting_bytes.swap(bytes, Ordering::SeqCst);
        self.of_all.fetch_add(bytes, Ordering::SeqCst);
        self.of_all.fetch_sub(before, Ordering::SeqCst);
    }

    /// Its client has begun. The connection is not closed for others any more.
    pub fn begin(&self, is_encrypted: bool) {
        if self.change_from_waiting(BEGUN) {
            self.count_waiting(0);
            let session = if is_encrypted { SESSION_BYTES } else { 0 };
            self.take_memory(CONNECTION_BYTES + session);
        }
    }

    /// Waits until it must make room for others.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }

    fn change_from_waiting(&self, to: u8) -> bool {
        self.state.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn take_memory(&self, bytes: u64) -> bool {
        self.place.as_ref().is_none_or(|place| place.take_memory(bytes))
    }
}

impl Newcomer for Entrant {
    fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) != WAITING
    }

    fn displace(&self) {
        if self.change_from_waiting(DISPLACED) {
            // At once, for who needs it; its task frees it when it runs next.
            self.count_waiting(0);
            self.take_memory(0);
            self.displaced.notify_one();
        }
    }
}

impl Drop for Entrant {
    fn drop(&mut self) {
        self.count_waiting(0);
    }
}

/// The connections that have not begun, the oldest first; some may have begun or gone.
pub(crate) struct Newcomers {
    list: Mutex<List>,
    /// Their bytes, and the most of them.
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

struct List {
    waiting: VecDeque<Weak<Entrant>>,
    max: usize,
    /// The length at which those that have begun or gone are removed next.
    swept_at: usize,
}

impl Newcomers {
    /// The list of a gateway that allows this many connections, and to those that have not begun this many bytes.
    pub fn of(connections_max: Option<u64>, bytes_max: u64) -> Newcomers {
        let max = connections_max.map_or(u64::MAX, |max| (max / NEWCOMERS_PART).max(1));
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let list = List { waiting: VecDeque::new(), max, swept_at: UNSWEPT.min(max) };
        Newcomers { list: Mutex::new(list), bytes: Arc::default(), bytes_max }
    }

    /// A connection with its place in the process, which has no memory yet.
    pub fn enter(&self, place: Option<Box<dyn Place>>) -> Arc<Entrant> {
        Arc::new(Entrant {
            state: AtomicU8::new(WAITING),
            place,
            displaced: Notify::new(),
            waiting_bytes: AtomicU64::new(0),
            of_all: Arc::clone(&self.bytes),
        })
    }

    /// Adds a connection, and takes its memory.
    ///
    /// # Errors
    /// There is none for it: the reason, for the client.
    pub fn add(&self, entrant: &Arc<Entrant>) -> Result<(), String> {
        if !self.take_memory(entrant, NEWCOMER_BYTES) {
            return Err("there is no memory for another connection now; try again later".to_owned());
        }
        if let Some(place) = &entrant.place {
            let newcomer: Weak<Entrant> = Arc::downgrade(entrant);
            place.show_newcomer(newcomer);
        }
        let displaced = self.list.lock().add(entrant);
        displaced.iter().for_each(|one| one.displace());
        Ok(())
    }

    /// Takes the memory of a TLS handshake. False: there is none for it.
    pub fn begin_handshake(&self, entrant: &Arc<Entrant>) -> bool {
        self.take_memory(entrant, NEWCOMER_BYTES + HANDSHAKE_BYTES)
    }

    /// Takes memory. If those that have not begun have too much, the oldest of them give theirs back.
    fn take_memory(&self, entrant: &Arc<Entrant>, bytes: u64) -> bool {
        if !entrant.take_memory(bytes) {
            return false;
        }
        entrant.count_waiting(bytes);
        while self.bytes.load(Ordering::SeqCst) > self.bytes_max {
            let oldest = self.list.lock().oldest(entrant);
            if oldest.is_empty() {
                break;
            }
            oldest.iter().for_each(|one| one.displace());
        }
        true
    }
}

impl List {
    fn add(&mut self, entrant: &Arc<Entrant>) -> Vec<Arc<Entrant>> {
        let mut displaced = Vec::new();
        if self.waiting.len() >= self.swept_at {
            self.sweep();
            if self.waiting.len() >= self.max {
                displaced = self.oldest(entrant);
            }
            self.swept_at = (2 * self.waiting.len()).max(UNSWEPT).min(self.max);
        }
        self.waiting.push_back(Arc::downgrade(entrant));
        displaced
    }

    fn sweep(&mut self) {
        self.waiting.retain(|weak| weak.upgrade().is_some_and(|one| !one.has_begun()));
    }

    /// Removes the oldest that have not begun, without this one.
    fn oldest(&mut self, own: &Arc<Entrant>) -> Vec<Arc<Entrant>> {
        self.sweep();
        let is_own = |weak: &Weak<Entrant>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(own));
        let count = self.waiting.len().div_ceil(DISPLACED_PART);
        let (mut oldest, mut kept) = (Vec::new(), None);
        while oldest.len() < count
            && let Some(weak) = self.waiting.pop_front()
        {
            if is_own(&weak) {
                kept = Some(weak);
            } else {
                oldest.extend(weak.upgrade());
            }
        }
        if let Some(kept) = kept {
            self.waiting.push_front(kept);
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// A process with memory for so many bytes.
    #[derive(Clone, Default)]
    struct Process {
        free: Arc<AtomicU64>,
    }

    struct Held(Process, AtomicU64);

    impl Place for Held {
        fn take_memory(&self, bytes: u64) -> bool {
            let held = self.1.load(Ordering::Relaxed);
            let free = self.0.free.load(Ordering::Relaxed);
            let Some(left) = (free + held).checked_sub(bytes) else { return false };
            self.0.free.store(left, Ordering::Relaxed);
            self.1.store(bytes, Ordering::Relaxed);
            true
        }

        fn show_newcomer(&self, _newcomer: Weak<dyn Newcomer>) {}
    }

    impl Drop for Held {
        fn drop(&mut self) {
            self.take_memory(0);
        }
    }

    impl Process {
        fn of(bytes: u64) -> Process {
            Process { free: Arc::new(AtomicU64::new(bytes)) }
        }

        fn enters(&self, newcomers: &Newcomers) -> Arc<Entrant> {
            newcomers.enter(Some(Box::new(Held(self.clone(), AtomicU64::new(0)))))
        }
    }

    #[test]
    fn half_handshakes_make_room_for_the_next_client_and_those_that_have_begun_do_not() {
        const HANDSHAKES: u64 = 100;
        const ALL: u64 = 2 * HANDSHAKES * (NEWCOMER_BYTES + HANDSHAKE_BYTES);
        let process = Process::of(ALL);
        let newcomers = Newcomers::of(None, ALL / 2);
        let mut open = Vec::new();
        let mut begun = Vec::new();
        for number in 0..20 * HANDSHAKES {
            let entrant = process.enters(&newcomers);
            newcomers.add(&entrant).unwrap();
            assert!(newcomers.begin_handshake(&entrant), "the {number}th is served");
            if number % 100 == 0 {
                entrant.begin(true);
                begun.push(Arc::clone(&entrant));
            }
            open.push(entrant);
        }
        let state = |one: &Arc<Entrant>| one.state.load(Ordering::Relaxed);
        assert!(begun.iter().all(|one| state(one) == BEGUN));
        assert!(open.iter().filter(|one| state(one) == WAITING).count() as u64 <= HANDSHAKES);
        assert_eq!(state(open.last().unwrap()), WAITING, "the youngest stays");
        drop((open, begun));
        assert_eq!(process.free.load(Ordering::Relaxed), ALL);
        assert_eq!(newcomers.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn where_others_have_the_memory_those_that_log_in_stay_and_the_next_is_refused() {
        let process = Process::of(100 * (NEWCOMER_BYTES + HANDSHAKE_BYTES));
        let newcomers = Newcomers::of(None, u64::MAX);
        let open: Vec<_> = (0..50).map(|_| process.enters(&newcomers)).collect();
        for entrant in &open {
            newcomers.add(entrant).unwrap();
            assert!(newcomers.begin_handshake(entrant));
        }
        process.free.store(0, Ordering::Relaxed);
        for _ in 0..1000 {
            assert!(newcomers.add(&process.enters(&newcomers)).is_err());
        }
        assert!(open.iter().all(|one| one.state.load(Ordering::Relaxed) == WAITING));
    }

    #[test]
    fn who_has_begun_keeps_its_memory_and_the_next_is_refused_in_words() {
        let process = Process::of(9 * CONNECTION_BYTES + NEWCOMER_BYTES);
        let newcomers = Newcomers::of(None, u64::MAX);
        let open: Vec<_> = (0..10)
            .map(|_| {
                let entrant = process.enters(&newcomers);
                newcomers.add(&entrant).unwrap();
                entrant.begin(false);
                entrant
            })
            .collect();
        let refused = newcomers.add(&process.enters(&newcomers)).unwrap_err();
        assert!(refused.contains("memory"), "{refused}");
        assert!(!newcomers.begin_handshake(&open[0]));
        drop(open);
        newcomers.add(&process.enters(&newcomers)).unwrap();
    }

    #[test]
    fn half_of_the_places_are_for_those_that_have_begun() {
        let newcomers = Newcomers::of(Some(64), u64::MAX);
        let open: Vec<_> = (0..200)
            .map(|_| {
                let entrant = newcomers.enter(None);
                newcomers.add(&entrant).unwrap();
                entrant
            })
            .collect();
        let waiting = open.iter().filter(|one| !one.has_begun()).count();
        assert!((30..=32).contains(&waiting), "{waiting}");
        assert!(open[..100].iter().all(|one| one.has_begun()), "the oldest went");
    }
}
