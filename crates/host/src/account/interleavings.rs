//! Every interleaving of a few threads that take bytes of a pool, wait for more and give them back, by loom. A thread that
//! is left waiting is a deadlock, which loom reports.

use super::held::Held;
use super::pool::{Pool, Taken};
use super::{Share, Split};
use loom::thread;
use std::sync::Arc;
use std::time::Instant;

/// Runs threads over a pool of 10 shared bytes and 30 for one more, of which `standing` are arriving messages; each
/// takes its bytes in these steps.
fn interleave(standing: u64, threads: &'static [(Share, &'static [u64])]) {
    loom::model(move || {
        let pool = Pool::new();
        pool.set(Split { shared: 10, one_more: 30 });
        let pool = Arc::new(pool);
        let mut arriving = Held::none(&pool, Share::Arriving);
        arriving.resize(standing);
        let spawn = |(request, (share, steps)): (u64, &'static (Share, &'static [u64]))| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || come_to_its_end(&pool, request, *share, steps))
        };
        let running: Vec<_> = (1..).zip(threads).map(spawn).collect();
        for thread in running {
            thread.join().expect("a thread");
        }
        drop(arriving);
        assert_eq!((pool.used(), pool.surplus()), (0, 0));
    });
}

/// Takes all steps, and begins again with all its bytes at once if it is told to back off.
fn come_to_its_end(pool: &Pool, request: u64, share: Share, steps: &[u64]) {
    let mut held = Held::none(pool, share);
    let due = Instant::now();
    for step in steps {
        let mut wanted = *step;
        loop {
            match held.take(request, wanted, due) {
                Taken::Yes => break,
                Taken::BackOff => {
                    wanted += held.bytes();
                    held.resize(0);
                }
                Taken::NoRoom => panic!("{share:?} {request} can be served"),
            }
        }
    }
    drop(held);
    pool.end(request);
}

#[test]
fn a_compaction_with_a_part_and_a_request_with_nothing() {
    interleave(10, &[(Share::Background, &[15, 10]), (Share::Requests, &[20])]);
}

#[test]
fn two_requests_that_each_hold_a_part() {
    interleave(4, &[(Share::Requests, &[3, 20]), (Share::Requests, &[3, 18])]);
}

#[test]
fn a_compaction_and_a_request_that_each_hold_a_part() {
    interleave(4, &[(Share::Background, &[3, 14]), (Share::Requests, &[3, 18])]);
}

#[test]
fn a_compaction_and_two_requests() {
    interleave(5, &[(Share::Background, &[6, 10]), (Share::Requests, &[2, 20]), (Share::Requests, &[15])]);
}
