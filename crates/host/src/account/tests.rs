//! The pool under many threads, and how the limit is divided.

use super::pool::Pool;
use super::{Share, Split, split};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn pool(shared: u64, one_more: u64) -> Arc<Pool> {
    let pool = Pool::new();
    pool.set(Split { shared, one_more });
    Arc::new(pool)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn many_that_each_hold_a_part_all_come_to_their_end_and_all_stay_within_the_limit() {
    let seed = 33_u64;
    println!("seed {seed}");
    let pool = pool(10, 30);
    let highest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16_u64 {
            let (pool, highest) = (&pool, &highest);
            scope.spawn(move || {
                let mut state = seed ^ thread << 32;
                for turn in 0..200 {
                    let request = 1 + thread * 1000 + turn;
                    let mut held = 0;
                    // In steps, up to what one may have beyond the others: deadlock is what this looks for.
                    loop {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let step = 1 + (state >> 33) % 9;
                        if held + step > 30 {
                            break;
                        }
                        assert!(pool.take((Share::Requests, request), step, later()), "a minute is enough");
                        held += step;
                        highest.fetch_max(pool.used(), Ordering::Relaxed);
                    }
                    pool.give_back(Share::Requests, held);
                    pool.end(request);
                }
            });
        }
    });
    assert_eq!(pool.used(), 0);
    assert!(highest.load(Ordering::Relaxed) <= pool.limit());
}

#[test]
fn what_can_never_fit_is_refused_at_once_and_what_does_not_in_time_then() {
    let pool = pool(10, 10);
    assert!(!pool.take((Share::Requests, 1), 21, later()), "more than there is at all");
    pool.end(1);
    assert!(pool.take((Share::Requests, 2), 20, later()), "alone it may have everything");
    assert!(!pool.take((Share::Requests, 3), 1, Instant::now()), "there is nothing left");
    pool.give_back(Share::Requests, 20);
    pool.end(2);
    assert!(pool.take((Share::Requests, 4), 5, Instant::now()));
    assert!(pool.try_take(Share::Answers, 5) && !pool.try_take(Share::Answers, 1));
}

#[test]
fn requests_get_what_the_fixed_shares_leave_of_the_bound() {
    for limit_mib in [16_u64, 64, 128, 512, 4096, 1 << 20] {
        let (limit, shares) = (limit_mib << 20, (limit_mib << 20) / 2);
        let Split { shared, one_more } = split(limit, shares);
        let bound = limit + limit / 10 + (32 << 20);
        assert!(shared + one_more >= 50 << 20, "a largest write fits");
        assert!(limit_mib < 128 || shared + one_more + shares <= bound, "with a limit of {limit_mib} MiB");
        assert!(one_more <= 50 << 20);
    }
    assert_eq!(split(64 << 20, 1 << 40), split(0, 1 << 40), "shares beyond the limit leave the least");
}
