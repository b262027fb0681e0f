//! No statement takes memory before it has asked the account for it, whatever its values, types and repetitions.
//!
//! The allocator of this program (`Watched`) compares each allocation of a request with what the request has asked for.
//! Statements run as the server runs them: on an event loop first, which never waits, and then where they may wait, in
//! a scope of the account with the share that each `memory_limit` leaves. A statement may be refused; it may not hold
//! more than `WATCH_BYTES` beyond what it was given.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod drawn;
mod server;
mod statements;

use helenus_host::account::{self, Metered, Scope, Share, WATCH_BYTES, Waits, Watched, take_excess};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Watched<System> = Watched(Metered(System));

/// A mebibyte.
const MIB: usize = 1 << 20;
/// The limits of memory, in MiB.
const LIMITS: [usize; 3] = [64, 128, 512];

/// What the instrument is for: memory that is taken without asking, after what was asked for, and after `commit`.
fn it_finds_what_is_not_asked_for() {
    let scope = Scope::begin(Share::Requests, Waits::ForRoom);
    account::grow(8 * MIB).unwrap();
    let asked = vec![1_u8; 8 * MIB];
    assert!(take_excess().0 < WATCH_BYTES);
    account::commit();
    let more = vec![1_u8; 4 * MIB];
    let (excess, stack) = take_excess();
    assert!(excess > 3 * MIB as isize, "{excess}");
    assert!(stack.unwrap_or_default().contains("it_finds_what_is_not_asked_for"));
    drop((asked, more, scope));
}

/// All in one test, because the limits are those of the process.
#[test]
fn no_statement_takes_memory_that_it_has_not_asked_for() {
    it_finds_what_is_not_asked_for();
    let mut found = Vec::new();
    for limit in LIMITS {
        let server = server::Server::start(limit * MIB);
        statements::create(&server);
        // They take long, and their sizes are those of the least.
        if limit == LIMITS[0] {
            statements::run(&server, &mut found);
        }
        if limit == LIMITS[LIMITS.len() - 1] {
            statements::run_with_room(&server, &mut found);
        }
        drawn::run(&server, limit as u64, &mut found);
        server.end();
    }
    assert!(
        found.is_empty(),
        "{} statements take what they have not asked for:\n{}",
        found.len(),
        found.join("\n")
    );
}
