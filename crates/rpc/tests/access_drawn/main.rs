//! Drawn rights against every call of the RPC interface that needs any: a call is done if and only if its role has every right
//! that it needs.
//!
//! The needs stand here by hand a second time (`CassandraServer` of Cassandra 3.11), and so does what was granted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod data_calls;
mod schema_calls;
mod server;
mod statement_calls;

use data_calls::data_call;
use schema_calls::schema_call;
use server::{Draw, Server};
use statement_calls::statement_call;
use std::collections::BTreeSet;

const ROUNDS: usize = 4000;
/// Errors of a call that was allowed: nothing is found (an exception without text), or the tables have no index.
const ALLOWED_ERRORS: [&str; 2] = ["", "No indexed columns present in index clause with operator EQ"];

#[test]
fn a_call_is_done_if_and_only_if_its_role_has_every_right_that_it_needs() {
    let mut server = Server::open();
    let mut draw = Draw(11);
    let (mut allowed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..ROUNDS {
        for _ in 0..draw.below(4) {
            server.change(&mut draw);
        }
        // Before the call, which may drop a table and its rights.
        let before = server.rights.clone();
        let (name, needs, answer) = match draw.below(6) {
            0 => schema_call(&mut server, &mut draw),
            1 => statement_call(&mut server, &mut draw),
            _ => data_call(&mut server, &mut draw),
        };
        let after = std::mem::replace(&mut server.rights, before);
        let missing: Vec<_> =
            needs.iter().filter(|(permission, resource)| !server.has(permission, resource)).collect();
        server.rights = after;
        let method = name.split(' ').next().unwrap().to_owned();
        match answer {
            Err(text) if text.contains("permission on") => {
                let is_one_of_them = missing.iter().any(|(permission, resource)| {
                    text == format!(
                        "User bob has no {permission} permission on {} or any of its parents",
                        resource.named()
                    )
                });
                assert!(is_one_of_them, "{name}: {text}; it lacks {missing:?}");
                refused.insert(method);
            }
            answer => {
                assert!(missing.is_empty(), "{name} was done without {missing:?}: {answer:?}");
                let is_fine =
                    answer.as_ref().err().is_none_or(|text| ALLOWED_ERRORS.contains(&text.as_str()));
                assert!(is_fine, "{name}: {answer:?}");
                allowed.insert(method);
            }
        }
    }
    // describe_keyspace needs nothing.
    assert_eq!(allowed.len(), 30, "{allowed:?}");
    assert_eq!(refused.len(), 29, "{refused:?}");
}
