//! Answers that nobody takes may have all memory; a login is served all the same, because whoever leaves its answers unread would keep
//! everybody out.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")]

#[allow(dead_code, reason = "the tests of the protocol use more of it")]
#[path = "native/canned.rs"]
mod canned;
#[allow(dead_code, reason = "the tests of the protocol use more of it")]
#[path = "native/client.rs"]
mod client;

use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_host::account::{Charge, Share, Split, is_full, set_limits};
use helenus_wire::native::{Request, Response, Version};

use canned::Server;
use client::Client;

/// All in one test, because the limits are those of the process.
#[test]
fn a_login_is_served_while_answers_have_all_memory() {
    set_limits(Split { shared: 1 << 20, one_more: 1 << 20 }, Duration::from_secs(5));
    let unread = Charge::force(Share::Answers, 64 << 20);
    assert!(is_full());
    let server = Server::start();
    server.canned.has_logins.store(true, Ordering::Release);
    server.canned.disk.store(true, Ordering::Release);
    for version in Version::ALL {
        for length in [1, 4_000] {
            let token = ["\0a\0", &"p".repeat(length)].concat();
            let mut client = Client::connect(server.address(), version);
            let asked = client.startup(&[]);
            assert!(matches!(asked.message().response, Response::Authenticate(_)), "{version:?}");
            let answer = client.ask(Request::AuthResponse(Some(token.as_bytes())));
            let is_logged_in = matches!(answer.message().response, Response::AuthSuccess(_));
            assert!(is_logged_in, "{version:?}: {:?}", answer.message());
        }
    }
    drop(unread);
}
