//! Busy polling: after a lone request, an event loop polls for the next one for a moment before it sleeps.
//!
//! If a client sends one request and waits for the answer, client and server wake each other in turn. Waking a sleeping
//! core costs tens of microseconds, far more than a read. So an event loop that has answered one request polls its
//! sockets for `busy_poll_us` before its thread may sleep (as Linux's `net.core.busy_poll` does within one read). It
//! does not poll after many requests at once (a client that sends many does not wait for each), when requests are rare,
//! or on a single core. The more often polling ends in vain, the rarer it becomes: a client that thinks between its
//! requests costs one poll in 64 requests.
//!
//! Polling yields to every other thread that wants the core. If one did, there is no polling for a long time: a thread
//! that has used its share of a busy core waits milliseconds until it runs again, whereas one that has slept runs at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use helenus_host::Clock;
use tokio::sync::Notify;

/// Requests further apart than this many polling windows are not waited for.
const RECENT: u64 = 4;
/// The most vain polls in a row that are counted; after n, polling is skipped for 2^n - 1 lone requests.
const MISSES_MAX: u32 = 6;
/// If yielding takes longer than this, the core is wanted for more than the client's own work.
const CONTENDED_NS: u64 = 1_000_000;
/// Lone requests without polling after the core was wanted by others.
const SKIPS_CONTENDED: u32 = 5_000;

/// The state of one event loop. Only its own thread uses it after construction, so the atomics are never contended.
pub(crate) struct BusyPoll {
    clock: Arc<dyn Clock>,
    /// How long to poll; 0 for never.
    window_ns: u64,
    /// When requests were last answered.
    last_ns: AtomicU64,
    /// How often requests were answered.
    batches_answered: AtomicU64,
    /// Whether a single request was answered the last time.
    lone: AtomicBool,
    is_polling: AtomicBool,
    /// Polls in vain since the last successful one.
    misses: AtomicU32,
    /// Lone requests to come without polling.
    skips: AtomicU32,
    begin: Notify,
}

impl BusyPoll {
    /// Polls for `window` at a time; never if it is zero.
    pub fn new(clock: &Arc<dyn Clock>, window: Duration) -> Arc<BusyPoll> {
        Arc::new(BusyPoll {
            clock: Arc::clone(clock),
            window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
            last_ns: AtomicU64::new(0),
            batches_answered: AtomicU64::new(0),
            lone: AtomicBool::new(false),
            is_polling: AtomicBool::new(false),
            misses: AtomicU32::new(0),
            skips: AtomicU32::new(0),
            begin: Notify::new(),
        })
    }

    /// Records that `requests` were answered at once. Called on the event loop's thread.
    #[inline]
    pub fn answered(&self, requests: u64) {
        if self.window_ns > 0 && requests > 0 {
            self.note(requests == 1);
        }
    }

    fn note(&self, lone: bool) {
        let now_ns = self.clock.monotonic_ns();
        let gap_ns = now_ns.saturating_sub(self.last_ns.load(Relaxed));
        self.last_ns.store(now_ns, Relaxed);
        self.batches_answered.store(self.batches_answered.load(Relaxed).wrapping_add(1), Relaxed);
        self.lone.store(lone, Relaxed);
        if !lone || self.is_polling.load(Relaxed) || gap_ns > self.window_ns * RECENT {
            return;
        }
        let skips = self.skips.load(Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Relaxed);
            return;
        }
        self.begin.notify_one();
    }

    /// Keeps the event loop awake when it should poll. Runs without end, as a task beside the connections.
    pub async fn run(self: Arc<BusyPoll>) {
        loop {
            self.begin.notified().await;
            self.is_polling.store(true, Relaxed);
            self.poll().await;
            self.is_polling.store(false, Relaxed);
        }
    }

    async fn poll(&self) {
        let mut seen = self.batches_answered.load(Relaxed);
        loop {
            // The runtime checks its sockets without waiting, runs the tasks that are ready, then returns here.
            tokio::task::yield_now().await;
            let batches = self.batches_answered.load(Relaxed);
            if batches != seen {
                self.misses.store(0, Relaxed);
                if batches != seen.wrapping_add(1) || !self.lone.load(Relaxed) {
                    return;
                }
                seen = batches;
            }
            let before_ns = self.clock.monotonic_ns();
            std::thread::yield_now();
            let now_ns = self.clock.monotonic_ns();
            if now_ns.saturating_sub(before_ns) > CONTENDED_NS {
                self.skips.store(SKIPS_CONTENDED, Relaxed);
                return;
            }
            if now_ns.saturating_sub(self.last_ns.load(Relaxed)) >= self.window_ns {
                let misses = (self.misses.load(Relaxed) + 1).min(MISSES_MAX);
                self.misses.store(misses, Relaxed);
                self.skips.store((1 << misses) - 1, Relaxed);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A clock that moves when set, and by a fixed amount whenever it is read.
    #[derive(Default)]
    struct Hand(Mutex<u64>, AtomicU64);

    impl Clock for Hand {
        fn wall_us(&self) -> i64 {
            0
        }

        fn monotonic_ns(&self) -> u64 {
            let mut now_ns = self.0.lock().unwrap();
            *now_ns += self.1.load(Relaxed);
            *now_ns
        }
    }

    fn busy_poll() -> (Arc<Hand>, Arc<BusyPoll>) {
        let hand = Arc::new(Hand::default());
        let clock: Arc<dyn Clock> = hand.clone();
        *hand.0.lock().unwrap() = 1_000_000_000;
        (hand, BusyPoll::new(&clock, Duration::from_micros(100)))
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
    }

    async fn settle() {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    /// Answers `requests` after `us` microseconds; returns whether the event loop polls then.
    async fn after(us: u64, requests: u64, (hand, busy_poll): (&Hand, &BusyPoll)) -> bool {
        *hand.0.lock().unwrap() += us * 1000;
        settle().await;
        busy_poll.answered(requests);
        settle().await;
        busy_poll.is_polling.load(Relaxed)
    }

    #[test]
    fn a_door_keeps_awake_after_lone_requests_that_follow_each_other() {
        run(async {
            let (hand, busy_poll) = busy_poll();
            let kept = tokio::spawn(Arc::clone(&busy_poll).run());
            let at = (&*hand, &*busy_poll);
            assert!(!after(0, 1, at).await, "the first follows nothing");
            assert!(after(300, 1, at).await);
            for _ in 0..1000 {
                assert!(after(50, 1, at).await);
            }
            assert!(!after(50, 7, at).await, "many at once are no reason");
            assert!(after(50, 1, at).await);
            assert!(!after(1000, 1, at).await, "nor are rare ones");
            kept.abort();
        });
    }

    #[test]
    fn polls_in_vain_become_rare() {
        run(async {
            let (hand, busy_poll) = busy_poll();
            let kept = tokio::spawn(Arc::clone(&busy_poll).run());
            let at = (&*hand, &*busy_poll);
            let mut vigils = 0;
            for _ in 0..6400 {
                vigils += u32::from(after(200, 1, at).await);
            }
            assert!((90..=110).contains(&vigils), "{vigils}");
            // After a successful poll, every lone request is followed by one again.
            while !after(200, 1, at).await {}
            assert!(after(50, 1, at).await);
            assert!(after(50, 1, at).await);
            kept.abort();
        });
    }

    #[test]
    fn a_door_does_not_fight_for_its_core() {
        run(async {
            let (hand, busy_poll) = busy_poll();
            let kept = tokio::spawn(Arc::clone(&busy_poll).run());
            let at = (&*hand, &*busy_poll);
            assert!(!after(0, 1, at).await);
            busy_poll.answered(1);
            // The time between the readings before and after yielding shows that others had the core.
            hand.1.store(CONTENDED_NS + 1, Relaxed);
            settle().await;
            hand.1.store(0, Relaxed);
            for _ in 0..100 {
                assert!(!after(50, 1, at).await);
            }
            kept.abort();
        });
    }

    #[test]
    fn without_a_window_there_is_none() {
        run(async {
            let (hand, _) = busy_poll();
            let clock: Arc<dyn Clock> = hand.clone();
            let busy_poll = BusyPoll::new(&clock, Duration::ZERO);
            let kept = tokio::spawn(Arc::clone(&busy_poll).run());
            for _ in 0..10 {
                assert!(!after(1, 1, (&*hand, &*busy_poll)).await);
            }
            kept.abort();
        });
    }
}
