//! The pool under many threads, and the division of the limit.

use super::pool::{Pool, Taken};
use super::{Share, Split, fixed_share, split};
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
                    // Takes bytes in steps, up to the amount that one request may have beyond the others. The test
                    // looks for deadlocks.
                    loop {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let step = 1 + (state >> 33) % 9;
                        if held + step > 30 {
                            break;
                        }
                        match pool.take((Share::Requests, request), (step, held), later()) {
                            Taken::Yes => held += step,
                            Taken::NoRoom => panic!("a minute is enough"),
                            Taken::BackOff => {
                                pool.give_back(Share::Requests, std::mem::take(&mut held));
                            }
                        }
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
    let take = |request, sizes, due| pool.take((Share::Requests, request), sizes, due);
    assert_eq!(take(1, (21, 0), later()), Taken::NoRoom, "more than there is at all");
    pool.end(1);
    assert_eq!(take(2, (20, 0), later()), Taken::Yes, "alone it may have everything");
    assert_eq!(take(3, (1, 0), Instant::now()), Taken::NoRoom, "there is nothing left");
    assert_eq!(take(2, (1, 20), later()), Taken::NoRoom, "alone, and it does not fit");
    pool.give_back(Share::Requests, 20);
    pool.end(2);
    assert_eq!(take(4, (5, 0), Instant::now()), Taken::Yes);
    assert!(pool.try_take(Share::Answers, 5) && !pool.try_take(Share::Answers, 1));
}

#[test]
fn who_waits_with_a_part_gives_it_back_to_one_that_can_come_to_its_end() {
    let pool = pool(10, 10);
    let take = |request, sizes| pool.take((Share::Requests, request), sizes, later());
    assert_eq!((take(1, (8, 0)), take(2, (2, 0))), (Taken::Yes, Taken::Yes));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| take(1, (12, 8)));
        let other = scope.spawn(|| take(2, (5, 2)));
        // One of the two is the first, and gets the bytes it asks for only after the other has given its own back.
        let other = other.join().expect("a thread");
        if other == Taken::BackOff {
            pool.give_back(Share::Requests, 2);
            assert_eq!(first.join().expect("a thread"), Taken::Yes);
        } else {
            assert_eq!(other, Taken::Yes);
            pool.give_back(Share::Requests, 7);
            pool.end(2);
            assert_eq!(first.join().expect("a thread"), Taken::Yes);
        }
    });
}

#[test]
fn requests_give_way_to_a_flush_that_holds_a_part() {
    let pool = pool(10, 10);
    let take = |share, request, sizes| pool.take((share, request), sizes, later());
    assert_eq!(take(Share::Background, 1, (8, 0)), Taken::Yes);
    assert_eq!(take(Share::Requests, 2, (2, 0)), Taken::Yes);
    std::thread::scope(|scope| {
        let request = scope.spawn(|| {
            let mut taken = 2;
            loop {
                match take(Share::Requests, 2, (11, taken)) {
                    Taken::BackOff => pool.give_back(Share::Requests, std::mem::take(&mut taken)),
                    ended => return ended,
                }
            }
        });
        assert_eq!(take(Share::Background, 1, (12, 8)), Taken::Yes, "it is let through in any order");
        pool.give_back(Share::Background, 20);
        pool.end(1);
        assert_eq!(request.join().expect("a thread"), Taken::Yes);
    });
}

#[test]
fn one_at_a_time_goes_beyond_the_shared_bytes_when_messages_on_their_way_fill_them() {
    // Waiters arrive in any order. One kind of them is background work, which cannot back off.
    for background in 0..6_u64 {
        let pool = pool(10, 30);
        pool.force(Share::Arriving, 12);
        assert_eq!(
            pool.take((Share::Requests, 100), (2, 0), later()),
            Taken::Yes,
            "the first goes beyond them"
        );
        std::thread::scope(|scope| {
            for request in 0..6 {
                let pool = &pool;
                let share = if request == background { Share::Background } else { Share::Requests };
                scope.spawn(move || {
                    assert_eq!(pool.take((share, 1 + request), (3, 0), later()), Taken::Yes);
                    pool.give_back(share, 3);
                    pool.end(1 + request);
                });
                while !pool.has_waiter(1 + request) {
                    std::thread::yield_now();
                }
            }
            pool.give_back(Share::Requests, 2);
            pool.end(100);
        });
        assert_eq!(pool.used(), 12);
    }
}

#[test]
fn requests_get_what_the_fixed_shares_leave_of_the_bound() {
    for limit_mib in (16_u64..=256).chain([512, 4096, 1 << 20]) {
        let limit = limit_mib << 20;
        let shares = 2 * fixed_share(limit);
        let Split { shared, one_more } = split(limit, shares);
        let bound = limit + limit / 10 + (32 << 20);
        assert!(shared + one_more >= 50 << 20, "a largest write fits");
        assert!(
            limit_mib < 64 || shared + one_more + shares + (22 << 20) <= bound,
            "with a limit of {limit_mib} MiB"
        );
        assert!(one_more <= 50 << 20);
    }
    assert_eq!(split(64 << 20, 1 << 40), split(0, 1 << 40), "shares beyond the limit leave the least");
}
