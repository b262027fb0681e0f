//! The pool under many threads, and the division of the limit.

use super::held::Held;
use super::pool::{Pool, Taken, Unbalanced};
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
                    let mut held = Held::none(pool, Share::Requests);
                    // Takes bytes in steps, up to the amount that one request may have beyond the others. The test
                    // looks for deadlocks.
                    loop {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let step = 1 + (state >> 33) % 9;
                        if held.bytes() + step > 30 {
                            break;
                        }
                        match held.take(request, step, later()) {
                            Taken::Yes => {}
                            Taken::NoRoom => panic!("a minute is enough"),
                            Taken::BackOff => held.resize(0),
                        }
                        highest.fetch_max(pool.used(), Ordering::Relaxed);
                        assert_eq!(pool.audit(), Ok(()));
                    }
                    drop(held);
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
    let mut held = [(); 5].map(|()| Held::none(&pool, Share::Requests));
    let [one, two, three, four, _] = &mut held;
    assert_eq!(one.take(1, 21, later()), Taken::NoRoom, "more than there is at all");
    pool.end(1);
    assert_eq!(two.take(2, 20, later()), Taken::Yes, "alone it may have everything");
    assert_eq!(three.take(3, 1, Instant::now()), Taken::NoRoom, "there is nothing left");
    assert_eq!(two.take(2, 1, later()), Taken::NoRoom, "alone, and it does not fit");
    two.resize(0);
    pool.end(2);
    assert_eq!(four.take(4, 5, Instant::now()), Taken::Yes);
    let mut answer = Held::none(&pool, Share::Answers);
    assert!(answer.try_take(5) && !answer.try_take(1));
    assert_eq!((answer.bytes(), one.bytes(), three.bytes()), (5, 0, 0), "a refusal takes nothing");
    drop(held);
    drop(answer);
    assert_eq!((pool.used(), pool.audit()), (0, Ok(())));
}

#[test]
fn who_waits_with_a_part_gives_it_back_to_one_that_can_come_to_its_end() {
    let pool = pool(10, 10);
    let [mut one, mut two] = [(); 2].map(|()| Held::none(&pool, Share::Requests));
    assert_eq!((one.take(1, 8, later()), two.take(2, 2, later())), (Taken::Yes, Taken::Yes));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| one.take(1, 12, later()));
        let other = scope.spawn(move || (two.take(2, 5, later()), two));
        // One of the two is the first, and gets the bytes it asks for only after the other has given its own back.
        let (other, held) = other.join().expect("a thread");
        drop(held);
        if other != Taken::BackOff {
            assert_eq!(other, Taken::Yes);
            pool.end(2);
        }
        assert_eq!(first.join().expect("a thread"), Taken::Yes);
    });
}

#[test]
fn requests_give_way_to_a_flush_that_holds_a_part() {
    // Often, because a request that was told to give way may wake before the flush does.
    for _ in 0..2000 {
        give_way_to_a_flush();
    }
}

fn give_way_to_a_flush() {
    let pool = pool(10, 10);
    let (mut flush, mut request) = (Held::none(&pool, Share::Background), Held::none(&pool, Share::Requests));
    assert_eq!(flush.take(1, 8, later()), Taken::Yes);
    assert_eq!(request.take(2, 2, later()), Taken::Yes);
    std::thread::scope(|scope| {
        let request = scope.spawn(move || {
            loop {
                match request.take(2, 11, later()) {
                    Taken::BackOff => request.resize(0),
                    ended => return ended,
                }
            }
        });
        assert_eq!(flush.take(1, 12, later()), Taken::Yes, "it is let through in any order");
        flush.resize(0);
        pool.end(1);
        assert_eq!(request.join().expect("a thread"), Taken::Yes);
    });
}

#[test]
fn a_compaction_goes_on_before_a_request_that_waits_with_nothing() {
    let pool = pool(10, 30);
    let mut arriving = Held::none(&pool, Share::Arriving);
    arriving.resize(10);
    let mut compaction = Held::none(&pool, Share::Background);
    assert_eq!(compaction.take(1, 15, later()), Taken::Yes);
    std::thread::scope(|scope| {
        let request = scope.spawn(|| {
            let mut held = Held::none(&pool, Share::Requests);
            let taken = held.take(2, 20, later());
            drop(held);
            pool.end(2);
            taken
        });
        // It is the first, because the compaction does not wait yet.
        while !pool.has_waiter(2) {
            std::thread::yield_now();
        }
        assert_eq!(compaction.take(1, 10, later()), Taken::Yes);
        drop(compaction);
        pool.end(1);
        assert_eq!(request.join().expect("a thread"), Taken::Yes);
    });
}

#[test]
fn requests_and_background_work_in_any_order_never_wait_until_their_time_is_over() {
    let seed = 50_u64;
    println!("seed {seed}");
    for round in 0..60 {
        let pool = pool(10, 30);
        let mut arriving = Held::none(&pool, Share::Arriving);
        arriving.resize(round % 12);
        std::thread::scope(|scope| {
            for thread in 0..5_u64 {
                let pool = &pool;
                scope.spawn(move || go_on_in_steps(pool, thread, seed ^ round << 16 ^ thread << 32));
            }
        });
        drop(arriving);
        assert_eq!((pool.used(), pool.audit()), (0, Ok(())), "round {round}");
    }
}

/// Takes bytes in steps and gives them back, 40 times, as compactions do (the first thread) and requests do.
fn go_on_in_steps(pool: &Pool, thread: u64, mut state: u64) {
    let mut next = |count: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % count
    };
    let share = if thread == 0 { Share::Background } else { Share::Requests };
    for turn in 0..40 {
        let request = 1 + thread * 1000 + turn;
        let mut held = Held::none(pool, share);
        let most = 3 + next(25);
        while held.bytes() < most {
            let mut wanted = (1 + next(20)).min(most - held.bytes());
            loop {
                let due = later();
                match held.take(request, wanted, due) {
                    Taken::Yes => break,
                    // One that is told to begin again asks for everything at once.
                    Taken::BackOff => {
                        wanted += held.bytes();
                        held.resize(0);
                    }
                    // Refused at once, or after the whole time?
                    Taken::NoRoom => assert!(Instant::now() < due, "{share:?} stood still"),
                }
            }
            if next(3) == 0 {
                std::thread::yield_now();
            }
        }
        drop(held);
        pool.end(request);
    }
}

#[test]
fn background_work_that_goes_on_for_hours_does_not_keep_requests_from_giving_way() {
    let pool = pool(10, 10);
    let (mut other, mut compaction) =
        (Held::none(&pool, Share::Requests), Held::none(&pool, Share::Background));
    assert_eq!(other.take(9, 8, later()), Taken::Yes);
    assert_eq!(compaction.take(1, 4, later()), Taken::Yes, "it goes beyond the shared bytes");
    drop(other);
    pool.end(9);
    std::thread::scope(|scope| {
        for request in [2, 3] {
            let pool = &pool;
            scope.spawn(move || {
                let mut held = Held::none(pool, Share::Requests);
                let mut wanted = 3;
                loop {
                    match held.take(request, wanted, later()) {
                        Taken::Yes if wanted == 9 || held.bytes() == 9 => break,
                        Taken::Yes => wanted = 6,
                        Taken::BackOff => {
                            held.resize(0);
                            wanted = 9;
                        }
                        Taken::NoRoom => panic!("a minute is enough"),
                    }
                }
                drop(held);
                pool.end(request);
            });
        }
    });
    assert_eq!((pool.used(), pool.audit()), (4, Ok(())));
}

#[test]
fn one_at_a_time_goes_beyond_the_shared_bytes_when_messages_on_their_way_fill_them() {
    // Waiters arrive in any order. One kind of them is background work, which cannot back off.
    for background in 0..6_u64 {
        let pool = pool(10, 30);
        let mut arriving = Held::none(&pool, Share::Arriving);
        arriving.resize(12);
        let mut first = Held::none(&pool, Share::Requests);
        assert_eq!(first.take(100, 2, later()), Taken::Yes, "the first goes beyond them");
        std::thread::scope(|scope| {
            for request in 0..6 {
                let pool = &pool;
                let share = if request == background { Share::Background } else { Share::Requests };
                scope.spawn(move || {
                    let mut held = Held::none(pool, share);
                    assert_eq!(held.take(1 + request, 3, later()), Taken::Yes);
                    drop(held);
                    pool.end(1 + request);
                });
                while !pool.has_waiter(1 + request) {
                    std::thread::yield_now();
                }
            }
            drop(first);
            pool.end(100);
        });
        assert_eq!((pool.used(), pool.audit()), (12, Ok(())));
    }
}

#[test]
fn bytes_that_nobody_held_are_counted_and_never_bring_a_share_or_the_total_below_zero() {
    let pool = pool(10, 10);
    let [mut requests, mut answers] = [Share::Requests, Share::Answers].map(|share| Held::none(&pool, share));
    requests.resize(4);
    answers.resize(3);
    assert_eq!(pool.subtract(Share::Answers, 5), 2);
    assert_eq!((pool.used_of(Share::Answers), pool.used_of(Share::Requests), pool.used()), (0, 4, 4));
    assert_eq!((pool.subtract(Share::Answers, 1), pool.surplus()), (1, 3));
    let wrong = Unbalanced::Share { share: Share::Answers, counted: 0, held: 3 };
    assert_eq!(pool.audit(), Err(wrong), "an audit finds it");
    let mut others = Held::none(&pool, Share::Answers);
    assert!(others.try_take(6) && pool.used() == 10, "the account works on");
    // Its bytes are no longer there to be given back.
    std::mem::forget(answers);
    drop((requests, others));
    assert_eq!(pool.used(), 0);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "7 bytes were given back that answers did not hold")]
fn a_holder_that_gives_back_more_than_it_took_stops_a_test() {
    let pool = pool(10, 10);
    let mut held = Held::none(&pool, Share::Answers);
    held.resize(7);
    assert_eq!(pool.subtract(Share::Answers, 7), 0);
    drop(held);
}

#[test]
fn bytes_that_are_handed_to_another_share_stay_counted_once() {
    let pool = pool(10, 10);
    let mut request = Held::none(&pool, Share::Requests);
    assert!(request.try_take(6));
    let answer = request.split_off(Share::Answers, 4);
    assert_eq!((request.bytes(), answer.bytes(), pool.used(), pool.audit()), (2, 4, 6, Ok(())));
    let longer = request.split_off(Share::Answers, 12);
    assert_eq!((request.bytes(), longer.bytes(), pool.used()), (0, 12, 16), "what was not granted is taken");
    drop(request);
    assert_eq!((pool.used(), pool.used_of(Share::Requests), pool.audit()), (16, 0, Ok(())));
    drop((answer, longer));
    assert_eq!((pool.used(), pool.audit()), (0, Ok(())));
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
