//! The connections whose clients have not begun: who they are is not known yet. A client begins with its login, or with STARTUP where
//! nobody logs in.
//!
//! Each has its memory on the account of the process from the first byte on, with the most that a TLS handshake takes. Where there is
//! no memory for one more, or too many places are taken, the oldest of those that have not begun are closed: clients that connect and
//! send half a message do not keep others out. `server` adds them and `connection` marks those that begin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::options::{Newcomer, Place};

/// The memory of an idle connection: its task, its sockets' halves and what is kept of its client; a half more than is measured.
const CONNECTION_BYTES: u64 = 4 << 10;
/// The memory of a TLS handshake, and of what a session may hold before its client has begun: the messages of both sides with their
/// certificates, or a record that has come in part. As at a server.
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
}

impl Entrant {
    pub fn new(place: Option<Box<dyn Place>>) -> Arc<Entrant> {
        Arc::new(Entrant { state: AtomicU8::new(WAITING), place, displaced: Notify::new() })
    }

    /// Its client has begun. The connection is not closed for others any more.
    pub fn begin(&self, is_encrypted: bool) {
        if self.change_from_waiting(BEGUN) {
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
            self.take_memory(0);
            self.displaced.notify_one();
        }
    }
}

/// The connections that have not begun, the oldest first; some may have begun or gone.
pub(crate) struct Newcomers {
    list: Mutex<List>,
}

struct List {
    waiting: VecDeque<Weak<Entrant>>,
    max: usize,
    /// The length at which those that have begun or gone are removed next.
    swept_at: usize,
}

impl Newcomers {
    /// The list of a gateway that allows this many connections.
    pub fn of(connections_max: Option<u64>) -> Newcomers {
        let max = connections_max.map_or(u64::MAX, |max| (max / NEWCOMERS_PART).max(1));
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let list = List { waiting: VecDeque::new(), max, swept_at: UNSWEPT.min(max) };
        Newcomers { list: Mutex::new(list) }
    }

    /// Adds a connection, and takes its memory.
    ///
    /// # Errors
    /// There is none for it: the reason, for the client.
    pub fn add(&self, entrant: &Arc<Entrant>) -> Result<(), String> {
        if !self.take_memory(entrant, CONNECTION_BYTES) {
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
        self.take_memory(entrant, CONNECTION_BYTES + HANDSHAKE_BYTES)
    }

    /// Takes memory, if need be from those that wait longest.
    fn take_memory(&self, entrant: &Arc<Entrant>, bytes: u64) -> bool {
        loop {
            if entrant.take_memory(bytes) {
                return true;
            }
            let oldest = self.list.lock().oldest(entrant);
            if oldest.is_empty() {
                return false;
            }
            oldest.iter().for_each(|one| one.displace());
        }
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
    use std::sync::atomic::AtomicU64;

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

        fn enters(&self) -> Arc<Entrant> {
            Entrant::new(Some(Box::new(Held(self.clone(), AtomicU64::new(0)))))
        }
    }

    #[test]
    fn half_handshakes_make_room_for_the_next_client_and_those_that_have_begun_do_not() {
        const HANDSHAKES: u64 = 100;
        let process = Process::of(HANDSHAKES * (CONNECTION_BYTES + HANDSHAKE_BYTES));
        let newcomers = Newcomers::of(None);
        let mut open = Vec::new();
        let mut begun = Vec::new();
        for number in 0..20 * HANDSHAKES {
            let entrant = process.enters();
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
        assert_eq!(process.free.load(Ordering::Relaxed), HANDSHAKES * (CONNECTION_BYTES + HANDSHAKE_BYTES));
    }

    #[test]
    fn who_has_begun_keeps_its_memory_and_the_next_is_refused_in_words() {
        let process = Process::of(10 * CONNECTION_BYTES);
        let newcomers = Newcomers::of(None);
        let open: Vec<_> = (0..10)
            .map(|_| {
                let entrant = process.enters();
                newcomers.add(&entrant).unwrap();
                entrant.begin(false);
                entrant
            })
            .collect();
        let refused = newcomers.add(&process.enters()).unwrap_err();
        assert!(refused.contains("memory"), "{refused}");
        assert!(!newcomers.begin_handshake(&open[0]));
        drop(open);
        newcomers.add(&process.enters()).unwrap();
    }

    #[test]
    fn half_of_the_places_are_for_those_that_have_begun() {
        let newcomers = Newcomers::of(Some(64));
        let open: Vec<_> = (0..200)
            .map(|_| {
                let entrant = Entrant::new(None);
                newcomers.add(&entrant).unwrap();
                entrant
            })
            .collect();
        let waiting = open.iter().filter(|one| !one.has_begun()).count();
        assert!((30..=32).contains(&waiting), "{waiting}");
        assert!(open[..100].iter().all(|one| one.has_begun()), "the oldest went");
    }
}
