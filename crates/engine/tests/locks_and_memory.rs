//! One request holds memory and waits for a partition lock; another has the lock and waits for memory. The first
//! releases its memory and starts again, so that both finish long before any deadline.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, Error, ReadRequest};
use helenus_host::account::{Scope, Share, Split, Waits, grow, set_limits};
use helenus_host::memory;
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use std::sync::Barrier;
use std::time::Duration;
use support::*;

const MIB: u64 = 1 << 20;

fn partition(database: &Database) -> [(TableId, Token); 1] {
    [(table_of(database, "t").id, Token::of_key(b"a"))]
}

fn waits() -> ReadRequest<'static> {
    ReadRequest { may_block: true, ..ReadRequest::default() }
}

/// Serves a request as a thread that may wait does: starts it again whenever it must give way. Returns the number of
/// starts.
fn served(mut attempt: impl FnMut() -> Result<(), Error>) -> u32 {
    let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
    let mut begun = 0;
    loop {
        begun += 1;
        match attempt() {
            Ok(()) => return begun,
            Err(error) => assert!(scope.should_retry(), "refused for good: {error}"),
        }
    }
}

#[test]
fn who_waits_for_a_lock_gives_its_memory_to_who_has_the_lock() {
    // A request that waits longer than this is refused, and `served` panics.
    set_limits(Split { shared: 8 * MIB, one_more: MIB }, Duration::from_secs(3600));
    let database = open(&memory::host());
    create(&database, vec![table("t", 7, false)]);
    for (first, second) in [(6, 7), (7, 7), (3, 8), (7, 3)] {
        let has_lock = Barrier::new(2);
        let (of_first, of_second) = std::thread::scope(|scope| {
            let second_request = scope.spawn(|| {
                let mut is_met = false;
                served(|| {
                    let locked = database.lock_partition(partition(&database).into_iter(), waits())?;
                    if !std::mem::replace(&mut is_met, true) {
                        has_lock.wait();
                        // The other request has its memory now.
                        has_lock.wait();
                    }
                    grow((second * MIB) as usize)?;
                    drop(locked);
                    Ok(())
                })
            });
            let mut is_met = false;
            let begun = served(|| {
                if !is_met {
                    has_lock.wait();
                }
                grow((first * MIB) as usize)?;
                if !std::mem::replace(&mut is_met, true) {
                    has_lock.wait();
                }
                drop(database.lock_partition(partition(&database).into_iter(), waits())?);
                Ok(())
            });
            (begun, second_request.join().unwrap())
        });
        assert_eq!(of_second, 1, "the one with the lock goes on");
        assert!(
            of_first >= 2,
            "{first} and {second} MiB are more than there are: the one without the lock gives way"
        );
    }
    database.close().unwrap();
}
