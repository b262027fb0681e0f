//! Counts the bytes of all clients: those of requests that arrive or are in flight, and those of answers that clients have not taken.
//!
//! A request takes its bytes before they arrive, when its header announces them (`input`), and keeps them until it is answered (`job`).
//! Answers have bytes of their own, so that clients that read nothing do not keep the requests of others out (`client`). Long answers
//! have room at the cluster's side instead (`helenus_cluster::AnswerRoom`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The bytes of a gateway.
#[derive(Clone)]
pub(crate) struct Budgets {
    pub requests: Arc<Budget>,
    pub answers: Arc<Budget>,
}

impl Budgets {
    /// The most bytes of requests, and of answers.
    pub fn new(requests_max: u64, answers_max: u64) -> Budgets {
        Budgets { requests: Budget::new(requests_max), answers: Budget::new(answers_max) }
    }

    /// Whether both have room.
    pub fn have_room(&self) -> bool {
        self.requests.has_room() && self.answers.has_room()
    }

    /// Waits until both have had room. A client without a request in flight does not wait, so that each makes progress.
    pub async fn room(&self) {
        self.requests.room().await;
        self.answers.room().await;
    }
}

/// Bytes of one kind.
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
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
    waiters: Waiters,
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
        let (for_bytes, for_any) = (Default::default(), Waiters::default());
        Arc::new(Budget { used: AtomicU64::new(0), max, for_bytes, for_any })
    }

    /// The most bytes.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    fn has_room(&self) -> bool {
        self.used() < self.max
    }

    /// Whether half of it is in use. Then no connection gets more than it needs to go on.
    pub fn is_pressed(&self) -> bool {
        self.used() > self.max / 2
    }

    /// Takes bytes without regard to the limit: they are there already.
    pub fn take(self: &Arc<Budget>, bytes: u64) -> Held {
        let mut held = Held { budget: Arc::clone(self), bytes: 0 };
        held.set(bytes);
        held
    }

    /// Waits until there is any room.
    async fn room(&self) {
        let _waiting = Waiting::among(&self.for_any);
        loop {
            let freed = self.for_any.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.has_room() {
                break;
            }
            freed.await;
        }
        self.for_any.freed.notify_one();
    }

    /// Waits for bytes behind the others who lack about as many, until `is_met` says so, which is asked again whenever some were given
    /// back.
    async fn until(&self, lacks: u64, mut is_met: impl FnMut() -> bool) {
        let doublings = lacks.div_ceil(LINE_BYTES).max(1).next_power_of_two().trailing_zeros() as usize;
        let Some(line) = self.for_bytes.get(doublings.min(LINES - 1)) else { return };
        let _waiting = Waiting::among(&line.waiters);
        let _first = line.first.lock().await;
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
        if bytes > before {
            self.budget.used.fetch_add(bytes - before, Ordering::SeqCst);
        } else if bytes < before {
            self.budget.used.fetch_sub(before - bytes, Ordering::SeqCst);
            if self.budget.for_any.are_some() {
                self.budget.for_any.freed.notify_one();
            }
            for line in self.budget.for_bytes.iter().filter(|line| line.waiters.are_some()) {
                line.waiters.freed.notify_waiters();
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
        let fits = |used: u64| {
            let sum = used.checked_add(more)?;
            (more == 0 || used == self.bytes || sum <= max).then_some(sum)
        };
        let has_room = self.budget.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok();
        if has_room {
            self.bytes += more;
        }
        has_room
    }

    /// Waits until it is as large as this.
    pub async fn grow(&mut self, bytes: u64) {
        let budget = Arc::clone(&self.budget);
        budget.until(bytes.saturating_sub(self.bytes), || self.try_grow(bytes)).await;
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
}
