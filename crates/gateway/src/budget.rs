//! Counts the bytes of all clients: those of requests that arrive or are in flight, and those of answers that clients have not taken.
//!
//! A request takes its bytes before they arrive, when its header announces them (`input`), and keeps them until it is answered (`job`).
//! Answers have bytes of their own, so that clients that read nothing do not keep the requests of others out (`client`). Long answers
//! have room at the cluster's side instead (`helenus_cluster::AnswerRoom`).
//!
//! The requests of one address have at most three quarters of the bytes, as at a server, so that one client with parts of long messages
//! does not keep all others out. Those that wait for bytes have them before any that come later and would leave too few.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use helenus_logins::network_of;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The bytes of a gateway.
#[derive(Clone)]
pub(crate) struct Budgets {
    pub requests: Arc<Budget>,
    pub answers: Arc<Budget>,
    /// The parts of the requests' budget that the addresses have which are connected.
    of_addresses: Arc<Mutex<HashMap<IpAddr, Weak<Budget>>>>,
}

/// The most of all bytes of requests that one address may have: this many quarters.
const QUARTERS_OF_ADDRESS: u64 = 3;

impl Budgets {
    /// The most bytes of requests, and of answers.
    pub fn new(requests_max: u64, answers_max: u64) -> Budgets {
        let (requests, answers) = (Budget::new(requests_max), Budget::new(answers_max));
        Budgets { requests, answers, of_addresses: Arc::default() }
    }

    /// The part of an address, of requests: what is taken of it is taken of all. A network of IPv6 counts as one address.
    pub fn requests_of(&self, address: IpAddr) -> Arc<Budget> {
        let mut known = self.of_addresses.lock();
        let part = known.entry(network_of(address)).or_default();
        if let Some(part) = part.upgrade() {
            return part;
        }
        let max = self.requests.max / 4 * QUARTERS_OF_ADDRESS;
        let new = Arc::new(Budget { whole: Some(Arc::clone(&self.requests)), ..Budget::of(max) });
        *part = Arc::downgrade(&new);
        if known.len() == known.capacity() {
            known.retain(|_, part| part.strong_count() > 0);
        }
        new
    }

    /// Those of a client: of requests the part of its address.
    pub fn of_client(&self, address: IpAddr) -> Budgets {
        Budgets { requests: self.requests_of(address), ..self.clone() }
    }

    /// Whether both have room.
    pub fn have_room(&self) -> bool {
        self.requests.has_room() && self.answers.has_room()
    }

    /// Waits until both have room. A client without a request in flight does not wait, so that each makes progress.
    pub async fn room(&self) {
        while !self.have_room() {
            self.requests.room().await;
            self.answers.room().await;
        }
    }
}

/// Bytes of one kind.
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
    /// What this is a part of: its bytes are those of the whole too.
    whole: Option<Arc<Budget>>,
    /// Those that wait for as many bytes as they need, by the number that they lack. The first of each line looks whenever some were
    /// given back, so that one who needs many is not in front of those who need few, and bytes that come back wake few.
    for_bytes: [Line; LINES],
    /// Those that wait for any room. One is woken when bytes were given back; it wakes the next if there is room left.
    for_any: Waiters,
}

/// Lines of those that wait for bytes: each lacks up to twice as many as those of the line before, in the first up to `LINE_BYTES`; in the
/// last the number has no end.
const LINES: usize = 20;
const LINE_BYTES: u64 = 4 << 10;

/// Some that wait for bytes in the order in which they have come.
#[derive(Default)]
struct Line {
    /// Held by the first.
    first: tokio::sync::Mutex<()>,
    /// The bytes that the first lacks; 0: there is none. Who comes later leaves them.
    first_lacks: AtomicU64,
    waiters: Waiters,
}

impl Line {
    /// Whose lack is about as large.
    fn number_of(lacks: u64) -> usize {
        let doublings = lacks.div_ceil(LINE_BYTES).max(1).next_power_of_two().trailing_zeros() as usize;
        doublings.min(LINES - 1)
    }
}

/// The first of a line, until it is dropped.
struct First<'l>(&'l Line);

impl<'l> First<'l> {
    fn of(line: &'l Line, lacks: u64) -> First<'l> {
        line.first_lacks.store(lacks, Ordering::SeqCst);
        First(line)
    }
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        self.0.first_lacks.store(0, Ordering::SeqCst);
    }
}

/// Some that wait for bytes.
#[derive(Default)]
struct Waiters {
    /// Their number, so that others need not look for them.
    count: AtomicUsize,
    freed: Notify,
}

impl Waiters {
    fn are_some(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

/// One that waits, until it is dropped.
struct Waiting<'b>(&'b Waiters);

impl<'b> Waiting<'b> {
    /// Before the number of bytes is looked at: who gives some back looks for waiters after that.
    fn among(waiters: &'b Waiters) -> Waiting<'b> {
        waiters.count.fetch_add(1, Ordering::SeqCst);
        Waiting(waiters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Budget {
    pub fn new(max: u64) -> Arc<Budget> {
        Arc::new(Budget::of(max))
    }

    fn of(max: u64) -> Budget {
        let (for_bytes, for_any) = (Default::default(), Waiters::default());
        Budget { used: AtomicU64::new(0), max, whole: None, for_bytes, for_any }
    }

    /// The most bytes.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The bytes in use of this part or of all, of which the fewer are left; the most of them; and whose they are.
    pub fn most_used(&self) -> (u64, u64, &'static str) {
        let left = |budget: &Budget| budget.max.saturating_sub(budget.used());
        match &self.whole {
            Some(whole) if left(self) < left(whole) => (self.used(), self.max, "endpoint"),
            Some(whole) => (whole.used(), whole.max, "global"),
            None => (self.used(), self.max, "global"),
        }
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// Whether any byte is left, of a part and of all.
    pub fn has_room(&self) -> bool {
        self.has_own_room() && self.whole.as_ref().is_none_or(|whole| whole.has_own_room())
    }

    fn has_own_room(&self) -> bool {
        self.used() < self.max
    }

    /// Whether half of it is in use. Then no connection gets more than it needs to go on.
    pub fn is_pressed(&self) -> bool {
        self.used() > self.max / 2 || self.whole.as_ref().is_some_and(|whole| whole.is_pressed())
    }

    /// Adds bytes if there is room, or if nobody else than who has `own` of them has any. `is_first`: its caller has waited for them;
    /// others leave the bytes for which the first of those wait that lack as few.
    fn try_add(&self, (own, more): (u64, u64), max: u64, is_first: bool) -> bool {
        let kept_free = || {
            let lines = self.for_bytes.iter().take(Line::number_of(more) + 1);
            lines.map(|line| line.first_lacks.load(Ordering::SeqCst)).max().unwrap_or_default()
        };
        let kept_free = if is_first || more == 0 { 0 } else { kept_free() };
        let fits = |used: u64| {
            let sum = used.checked_add(more)?;
            (more == 0 || used == own || sum.saturating_add(kept_free) <= max).then_some(sum)
        };
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok()
    }

    /// Whether `try_add` would add bytes now to one who has waited for them.
    fn could_add(&self, (own, more): (u64, u64)) -> bool {
        let used = self.used();
        more == 0 || used == own || used.checked_add(more).is_some_and(|sum| sum <= self.max)
    }

    /// Gives bytes back, and wakes those that wait for them.
    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.for_any.are_some() {
            self.for_any.freed.notify_one();
        }
        for line in self.for_bytes.iter().filter(|line| line.waiters.are_some()) {
            line.waiters.freed.notify_waiters();
        }
    }

    /// Takes bytes without regard to the limit: they are there already.
    pub fn take(self: &Arc<Budget>, bytes: u64) -> Held {
        let mut held = Held { budget: Arc::clone(self), bytes: 0 };
        held.set(bytes);
        held
    }

    /// Waits until there has been any room, in the part and then in all.
    async fn room(&self) {
        self.own_room().await;
        if let Some(whole) = &self.whole {
            whole.own_room().await;
        }
    }

    async fn own_room(&self) {
        let _waiting = Waiting::among(&self.for_any);
        loop {
            let freed = self.for_any.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.has_own_room() {
                break;
            }
            freed.await;
        }
        self.for_any.freed.notify_one();
    }

    /// Waits for bytes behind the others who lack about as many, until `is_met` says so, which is asked again whenever some were given
    /// back.
    async fn until(&self, lacks: u64, mut is_met: impl FnMut() -> bool) {
        let Some(line) = self.for_bytes.get(Line::number_of(lacks)) else { return };
        let _waiting = Waiting::among(&line.waiters);
        let _turn = line.first.lock().await;
        let _first = First::of(line, lacks);
        loop {
            let freed = line.waiters.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if is_met() {
                return;
            }
            freed.await;
        }
    }
}

/// A part of the bytes, until it is dropped.
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Held {
    /// Makes it as large as this, without regard to the limit.
    pub fn set(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        for budget in [Some(&self.budget), self.budget.whole.as_ref()].into_iter().flatten() {
            if bytes > before {
                budget.used.fetch_add(bytes - before, Ordering::SeqCst);
            } else if bytes < before {
                budget.give_back(before - bytes);
            }
        }
    }

    /// Adds bytes without regard to the limit.
    pub fn add(&mut self, bytes: u64) {
        self.set(self.bytes + bytes);
    }

    /// Makes it as large as this if there is room, or if nobody else has any, so that the longest message comes through eventually.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        self.try_grow_within(bytes, self.budget.max)
    }

    /// Adds bytes as [`Held::try_grow`] does, with another limit than the budget's own.
    pub fn try_add_within(&mut self, bytes: u64, max: u64) -> bool {
        self.try_grow_within(self.bytes + bytes, max)
    }

    fn try_grow_within(&mut self, bytes: u64, max: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let added = (self.bytes, more);
        // Of all first: to take them of a part and give them back would wake those that wait for it.
        let has_room = match &self.budget.whole {
            None => self.budget.try_add(added, max, false),
            Some(whole) if whole.try_add(added, whole.max, false) => {
                let has_room = self.budget.try_add(added, max, false);
                if !has_room {
                    whole.give_back(more);
                }
                has_room
            }
            Some(_) => false,
        };
        if has_room {
            self.bytes += more;
        }
        has_room
    }

    /// Waits until it is as large as this.
    pub async fn grow(&mut self, bytes: u64) {
        let added = (self.bytes, bytes.saturating_sub(self.bytes));
        let budget = Arc::clone(&self.budget);
        match &budget.whole {
            None => budget.until(added.1, || budget.try_add(added, budget.max, true)).await,
            Some(whole) => loop {
                // Whoever waits keeps nothing: others of the address may have its part, and others the bytes of all.
                budget.until(added.1, || budget.could_add(added)).await;
                let mut has_part = false;
                let both = || {
                    let has_room = whole.try_add(added, whole.max, true);
                    has_part = has_room && budget.try_add(added, budget.max, true);
                    if has_room && !has_part {
                        whole.give_back(added.1);
                    }
                    has_room
                };
                whole.until(added.1, both).await;
                if has_part {
                    break;
                }
            },
        }
        self.bytes += added.1;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_are_taken_within_the_limit_by_one_alone_beyond_it_and_come_back_to_who_waits() {
        let budget = Budget::new(100);
        let (mut first, mut second) = (budget.take(0), budget.take(0));
        assert!(first.try_grow(1000), "alone, anything goes");
        assert!(!second.try_grow(1), "but then no more");
        second.set(5);
        assert_eq!(budget.used(), 1005, "bytes that are there count, room or not");
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move {
                let mut third = budget.take(0);
                third.grow(90).await;
                third.bytes
            })
        };
        tokio::task::yield_now().await;
        first.set(6);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "6, 5 and 90 are too many");
        drop(first);
        assert_eq!(waiting.await.unwrap(), 90);
        assert_eq!(budget.used(), 5);
        budget.room().await;
        let waits = budget.for_bytes.iter().any(|line| line.waiters.are_some());
        assert!(!waits && !budget.for_any.are_some());
    }

    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Woken>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Each byte that comes back is for the first of those that wait, and those behind it are not asked.
    #[tokio::test]
    async fn bytes_that_come_back_go_to_the_first_and_wake_few() {
        use std::task::{Context, Poll, Waker};
        const WAITERS: usize = 200;

        let budget = Budget::new(100);
        let mut held: Vec<Held> = (0..100).map(|_| budget.take(1)).collect();
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let wait = |number: usize| {
            let mut own = budget.take(0);
            async move {
                own.grow(1).await;
                (number, own)
            }
        };
        let mut waiting: Vec<_> = (0..WAITERS).map(|number| Box::pin(wait(number))).collect();
        // One that needs more than there is does not keep those out that need few.
        let mut large = budget.take(1);
        let mut large = Box::pin(large.grow(1 << 20));
        assert!(large.as_mut().poll(&mut context).is_pending());
        let (mut served, mut kept) = (Vec::new(), Vec::new());
        for freed in 0..=100_usize {
            waiting.retain_mut(|one| match one.as_mut().poll(&mut context) {
                Poll::Ready((number, own)) => {
                    served.push(number);
                    kept.push(own);
                    false
                }
                Poll::Pending => true,
            });
            // The one that is large has a byte too.
            assert_eq!(served, (0..freed.saturating_sub(1)).collect::<Vec<_>>());
            drop(held.pop());
        }
        let woken = woken.0.load(Ordering::SeqCst);
        assert!(woken <= 4 * 101, "{woken} wakes for 100 bytes");
    }

    /// Counts how often each of many waiters is asked, as the bytes of a full budget come back one by one.
    #[tokio::test]
    async fn bytes_that_come_back_wake_one_and_room_wakes_all() {
        use std::task::{Context, Poll, Waker};
        const WAITERS: usize = 100;

        let budget = Budget::new(100);
        let mut held: Vec<Held> = (0..150).map(|_| budget.take(1)).collect();
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut waiting: Vec<_> = (0..WAITERS).map(|_| Box::pin(budget.room())).collect();
        let mut poll_all = || {
            let mut context = Context::from_waker(&waker);
            waiting.retain_mut(|one| one.as_mut().poll(&mut context) == Poll::Pending);
            waiting.len()
        };
        assert_eq!(poll_all(), WAITERS);
        for freed in 1..=50 {
            drop(held.pop());
            assert_eq!(woken.0.load(Ordering::SeqCst), freed, "one at a time");
            assert_eq!(poll_all(), WAITERS, "{freed}: no room yet");
        }
        drop(held.pop());
        let mut left = WAITERS;
        while left > 0 {
            let before = left;
            left = poll_all();
            assert!(left < before, "{left} were forgotten");
        }
    }

    /// Polls a wait once.
    fn is_ready(waiting: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        use std::task::{Context, Waker};
        waiting.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn who_comes_later_leaves_the_bytes_for_which_others_wait() {
        const KIB: u64 = 1 << 10;
        // The bytes that one waits for, and those of a newcomer that must not pass it.
        for (waits, comes) in [(40, 40), (40, 33), (40, 60), (1, 1), (1, 90), (90, 90)] {
            let budget = Budget::new(100 * KIB);
            let mut all = budget.take(100 * KIB);
            let mut first = budget.take(0);
            {
                let mut waiting = Box::pin(first.grow(waits * KIB));
                assert!(!is_ready(waiting.as_mut()));
                // Not enough for the first, or not enough for both.
                all.set((100 - waits) * KIB);
                let mut newcomer = budget.take(0);
                assert!(!newcomer.try_grow(comes * KIB), "{comes} KiB pass {waits} KiB");
                if waits > 8 {
                    assert!(newcomer.try_grow(KIB), "one that needs little may pass one that needs much");
                    newcomer.set(0);
                }
                assert!(is_ready(waiting.as_mut()), "{waits} KiB are there");
            }
            assert_eq!(budget.used(), 100 * KIB);
            assert!(budget.for_bytes.iter().all(|line| line.first_lacks.load(Ordering::SeqCst) == 0));
        }
    }

    #[test]
    fn one_address_leaves_a_quarter_to_the_others_and_gives_everything_back() {
        let budgets = Budgets::new(160, 160);
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let one = budgets.requests_of(address(1));
        assert!(Arc::ptr_eq(&one, &budgets.requests_of(address(1))));
        let mut parts: Vec<Held> = (0..16).map(|_| one.take(0)).collect();
        let taken = parts.iter_mut().filter_map(|part| part.try_grow(10).then_some(())).count();
        assert_eq!((taken, one.used(), budgets.requests.used()), (12, 120, 120));
        // It waits for its own, and stands in front of nobody else.
        let mut more = one.take(0);
        let mut waiting = Box::pin(more.grow(10));
        assert!(!is_ready(waiting.as_mut()));
        let other = budgets.requests_of(address(2));
        let mut held = other.take(0);
        assert!(held.try_grow(40));
        assert_eq!(budgets.requests.used(), 160);
        parts.clear();
        assert!(is_ready(waiting.as_mut()));
        drop(waiting);
        // A wait for the others keeps nothing of the part.
        drop((more, held));
        let _all = budgets.requests.take(155);
        let mut late = one.take(0);
        let mut waiting = Box::pin(late.grow(10));
        assert!(!is_ready(waiting.as_mut()));
        assert_eq!(one.used(), 0);
        drop(waiting);
        drop(late);
        assert_eq!((one.used(), budgets.requests.used()), (0, 155));
    }

    #[test]
    fn long_messages_that_wait_for_others_keep_no_short_ones_of_their_address_out() {
        const KIB: u64 = 1 << 10;
        for waits in [[60, 60], [100, 20], [120, 1], [200, 90]] {
            let budgets = Budgets::new(160 * KIB, 160);
            let address = |last: u8| IpAddr::from([10, 0, 0, last]);
            let (one, other) = (budgets.requests_of(address(1)), budgets.requests_of(address(2)));
            let mut of_other = other.take(150 * KIB);
            let mut held = waits.map(|_| one.take(0));
            let mut waiting: Vec<_> = held
                .iter_mut()
                .zip(waits)
                .map(|(held, waits)| Box::pin(async move { held.grow(waits * KIB).await }))
                .collect();
            waiting.retain_mut(|one| !is_ready(one.as_mut()));
            assert_eq!(one.used(), if waiting.len() == 2 { 0 } else { KIB });
            let mut short = one.take(0);
            assert!(short.try_grow(512), "{waits:?}");
            // All come through, one after the other.
            drop(short);
            of_other.set(0);
            for _ in 0..4 {
                waiting.retain_mut(|one| !is_ready(one.as_mut()));
            }
            drop(waiting);
            assert!(one.used() > 0, "{waits:?}");
            drop(held);
            assert_eq!((one.used(), budgets.requests.used()), (0, 0));
        }
    }

    #[test]
    fn an_address_that_has_its_part_is_not_read_on() {
        let budgets = Budgets::new(160, 160);
        let one = budgets.of_client(IpAddr::from([10, 0, 0, 1]));
        let other = budgets.of_client(IpAddr::from([10, 0, 0, 2]));
        let mut held = one.requests.take(120);
        assert!(!one.have_room() && other.have_room(), "three quarters are its part");
        let mut waiting = Box::pin(one.room());
        assert!(!is_ready(waiting.as_mut()));
        held.set(119);
        assert!(is_ready(waiting.as_mut()));
        let _others = other.requests.take(41);
        assert!(!one.have_room() && !other.have_room(), "all is in use");
    }
}
