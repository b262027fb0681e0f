//! No answer takes memory before it has asked the account for it, on its way from the backend to the socket: not while it is
//! compressed, nor while warnings or a paging state are inserted, nor while it waits for the log.
//!
//! The allocator of this program (`Watched`) compares each allocation of a request with what the request has asked for.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")]

#[allow(dead_code, reason = "the tests of the protocol use more of it")]
#[path = "native/canned.rs"]
mod canned;
#[allow(dead_code, reason = "the tests of the protocol use more of it")]
#[path = "native/client.rs"]
mod client;

use std::alloc::System;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_host::account::{Metered, Watched, set_limits, split, take_excess};
use helenus_wire::native::{Response, ResultMessage, Version};

use canned::Server;
use client::Client;

#[global_allocator]
static ALLOCATOR: Watched<System> = Watched(Metered(System));

/// A mebibyte.
const MIB: usize = 1 << 20;

/// All in one test, because the limits are those of the process.
#[test]
fn no_copy_of_a_finished_answer_is_made_without_asking() {
    set_limits(split(1 << 30, 0), Duration::from_secs(5));
    let server = Server::start();
    let compressions: [&[(&str, &str)]; 3] = [&[], &[("COMPRESSION", "lz4")], &[("COMPRESSION", "snappy")]];
    let mut found = Vec::new();
    for version in [Version::V3, Version::V4, Version::V5] {
        for options in compressions.iter().filter(|options| version < Version::V5 || options.is_empty()) {
            let mut client = Client::ready(server.address(), version, options);
            for way in ["plain", "warned", "paged", "held"] {
                // Within what an event loop gives an answer, and beyond; many rows, and one.
                for (rows, bytes) in [(1, 10), (20, 60 << 10), (1500, 20 << 10), (1, 30 * MIB)] {
                    let query = format!("asked {way} {rows} {bytes}");
                    let cells = ask(&server, &mut client, &query);
                    assert_eq!(cells, rows * (4 + bytes), "{query} {version:?} {options:?}");
                    if let (_, Some(stack)) = take_excess() {
                        let lines: Vec<&str> =
                            stack.lines().filter(|line| line.contains("helenus_")).take(20).collect();
                        found.push(format!("{query} {version:?} {options:?}\n{}", lines.join("\n")));
                    }
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} answers take what they have not asked for:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Sends a query, opens the gate once its answer is held, and returns the length of the cells.
fn ask(server: &Server, client: &mut Client, query: &str) -> usize {
    let canned = &server.canned;
    canned.gate.store(false, Ordering::Release);
    let before = canned.written_out.load(Ordering::Acquire);
    let is_held = query.contains("held");
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| client.query(query));
        while is_held && canned.written_out.load(Ordering::Acquire) == before && !answer.is_finished() {
            std::thread::yield_now();
        }
        canned.open_gate();
        answer.join().unwrap()
    });
    let message = answer.message();
    let warned = query.contains("warned") && client.version >= Version::V4;
    assert_eq!(message.warnings.iter().count(), usize::from(warned), "{query}");
    match message.response {
        Response::Result(ResultMessage::Rows(rows)) => {
            assert_eq!(rows.metadata.paging_state.is_some(), query.contains("paged"));
            rows.cells().len()
        }
        other => panic!("{query}: {other:?}"),
    }
}
