//! How fast the target is written to: a limit in rows a second, and fewer requests in flight while its latency is too high.
//!
//! Every `LOOK` the 99th percentile of the latencies since the last look is compared with its bound. Above it, and after failures,
//! a third fewer requests may be in flight; below it a few more.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// How often the number of requests in flight is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Requests in flight at first, at least and at most.
const IN_FLIGHT: (usize, usize, usize) = (64, 4, 512);
/// How many more may be in flight after a good look.
const STEP: usize = 16;

/// The pace of a move.
pub(crate) struct Pace {
    rows_per_second: u64,
    p99_bound: Duration,
    permits: Semaphore,
    /// Permits that exist.
    allowed: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    /// When the next row may be sent.
    next: Instant,
    /// Latencies since the last look, microseconds.
    latencies: Vec<u64>,
    has_failed: bool,
    looked: Instant,
    p99: Duration,
    /// Permits that are taken back as they become free.
    to_forget: usize,
    /// Rows since the last look, and a second by the last one.
    rows: u64,
    rows_a_second: u64,
}

impl Pace {
    pub(crate) fn new(rows_per_second: u64, target_p99_ms: u64) -> Pace {
        let now = tokio::time::Instant::now();
        Pace {
            rows_per_second,
            p99_bound: Duration::from_millis(target_p99_ms),
            permits: Semaphore::new(IN_FLIGHT.0),
            allowed: AtomicUsize::new(IN_FLIGHT.0),
            state: Mutex::new(State {
                next: now,
                latencies: Vec::new(),
                has_failed: false,
                looked: now,
                p99: Duration::ZERO,
                to_forget: 0,
                rows: 0,
                rows_a_second: 0,
            }),
        }
    }

    /// Waits until so many rows may be sent, and for one of the requests that may be in flight. A request without rows that count, as the
    /// second attempt of one, waits for none.
    pub(crate) async fn turn(&self, rows: u64) -> Option<SemaphorePermit<'_>> {
        let until = {
            let mut state = self.state.lock();
            state.rows += rows;
            let now = tokio::time::Instant::now();
            let begin = state.next.max(now);
            if let Some(ns) = (rows * 1_000_000_000).checked_div(self.rows_per_second) {
                state.next = begin + Duration::from_nanos(ns);
            }
            (rows > 0 && begin > now).then_some(begin)
        };
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        loop {
            let permit = self.permits.acquire().await.ok()?;
            let is_forgotten = {
                let mut state = self.state.lock();
                let forgets = state.to_forget > 0;
                state.to_forget -= usize::from(forgets);
                forgets
            };
            match is_forgotten {
                true => permit.forget(),
                false => return Some(permit),
            }
        }
    }

    /// Notes the latency of a request, and whether it was answered.
    pub(crate) fn note(&self, latency: Duration, is_answered: bool) {
        let mut state = self.state.lock();
        state.latencies.push(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        state.has_failed |= !is_answered;
        let passed = state.looked.elapsed();
        if passed < LOOK {
            return;
        }
        let rank = state.latencies.len() * 99 / 100;
        let rank = rank.min(state.latencies.len() - 1);
        let (_, p99, _) = state.latencies.select_nth_unstable(rank);
        state.p99 = Duration::from_micros(*p99);
        let is_too_slow = state.p99 > self.p99_bound || state.has_failed;
        let allowed = self.allowed.load(Ordering::Relaxed);
        let next = match is_too_slow {
            true => (allowed * 2 / 3).max(IN_FLIGHT.1),
            false => (allowed + STEP).min(IN_FLIGHT.2),
        };
        match next.checked_sub(allowed) {
            Some(more) => {
                let kept = more.min(state.to_forget);
                state.to_forget -= kept;
                self.permits.add_permits(more - kept);
            }
            None => state.to_forget += allowed - next,
        }
        self.allowed.store(next, Ordering::Relaxed);
        state.rows_a_second = (state.rows as f64 / passed.as_secs_f64()) as u64;
        (state.rows, state.has_failed, state.looked) = (0, false, tokio::time::Instant::now());
        state.latencies.clear();
    }

    /// What keeps the move from sending faster, with the option that ends it; `None` if nothing does.
    pub(crate) fn bound(&self) -> Option<String> {
        let state = self.state.lock();
        let allowed = self.allowed.load(Ordering::Relaxed);
        if allowed < IN_FLIGHT.0 && state.p99 > self.p99_bound {
            return Some(format!(
                "the target answers in {:.0} ms (99th percentile), which is more than --target-p99 {}, so at most {allowed} requests are in \
                 flight: helenus move resume --target-p99 with a greater one sends more",
                state.p99.as_secs_f64() * 1e3,
                self.p99_bound.as_millis()
            ));
        }
        let is_at_limit = state.next > tokio::time::Instant::now();
        (self.rows_per_second > 0 && is_at_limit).then(|| {
            format!(
                "the move sends the {} rows a second that --rows-per-second allows: helenus move resume --rows-per-second with a greater one, \
                 or 0, sends more",
                self.rows_per_second
            )
        })
    }

    /// Rows a second, the 99th percentile and the requests in flight at most, by the last look.
    pub(crate) fn seen(&self) -> (u64, Duration, usize) {
        let state = self.state.lock();
        let is_current = state.looked.elapsed() < LOOK * 4;
        let rows = if is_current { state.rows_a_second } else { 0 };
        (rows, state.p99, self.allowed.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fewer_requests_are_in_flight_while_the_target_is_slow_and_more_when_it_is_fast() {
        let pace = Pace::new(0, 20);
        let look = async |ms: u64| {
            tokio::time::advance(LOOK).await;
            pace.note(Duration::from_millis(ms), true);
            pace.seen().2
        };
        assert_eq!(look(5).await, 80);
        assert_eq!(look(50).await, 53);
        for _ in 0..20 {
            look(50).await;
        }
        assert_eq!(look(50).await, IN_FLIGHT.1);
        // What is taken back is not given out again.
        let mut held = Vec::new();
        for _ in 0..IN_FLIGHT.1 {
            held.push(pace.turn(1).await);
        }
        let more = tokio::time::timeout(Duration::from_secs(1), pace.turn(1)).await;
        assert!(more.is_err(), "one more than allowed is in flight");
    }

    #[tokio::test(start_paused = true)]
    async fn what_bounds_the_pace_is_told_with_its_option_while_it_does() {
        for (rows_per_second, latency_ms, idle, option) in [
            (0, 50, Duration::ZERO, "--target-p99 20"),
            (1_000, 50, Duration::ZERO, "--target-p99 20"),
            (1_000, 5, Duration::ZERO, "--rows-per-second allows"),
            (1_000, 5, Duration::from_secs(1), ""),
            (0, 5, Duration::ZERO, ""),
        ] {
            let pace = Pace::new(rows_per_second, 20);
            for _ in 0..6 {
                tokio::time::advance(LOOK).await;
                pace.note(Duration::from_millis(latency_ms), true);
            }
            drop(pace.turn(100).await);
            tokio::time::advance(idle).await;
            let text = pace.bound().unwrap_or_default();
            assert!(text.contains(option) && text.is_empty() == option.is_empty(), "{option:?}: {text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rows_a_second_are_limited() {
        let pace = Pace::new(1000, 20);
        let begun = tokio::time::Instant::now();
        for _ in 0..11 {
            drop(pace.turn(100).await);
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        drop(pace.turn(0).await);
        assert_eq!(begun.elapsed(), Duration::from_secs(1), "a second attempt waits behind rows");
    }
}
