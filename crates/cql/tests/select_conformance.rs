//! SELECT against Cassandra's own answers: `tests/conformance/select` holds a data set, statements, and what Cassandra
//! 5.0.9 answered (`record.py` asks it again). Every statement is run from memory and from disk, whole and in pages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use std::fmt::Write as _;
use support::Server;
use support::conformance::{cases, loaded, written};

const DATA: &str = include_str!("../../../tests/conformance/select/data.cql");
const EXPECTED: &str = include_str!("../../../tests/conformance/select/expected.txt");

fn assert_answers(server: &Server, place: &str) {
    let mut wrong = String::new();
    for (query, expected) in cases(EXPECTED) {
        let found = written(&server.select(query, None));
        if found != expected {
            _ = writeln!(wrong, "{place}: {query}\n--- expected\n{expected}--- found\n{found}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn selects_answer_as_cassandra_from_memory_and_from_disk() {
    let server = loaded(1, DATA);
    assert_answers(&server, "memory");
    server.flush();
    assert_answers(&server, "disk");
    server.end();
}

#[test]
fn pages_of_any_size_make_the_whole_answer() {
    let server = loaded(2, DATA);
    for flushed in [false, true] {
        if flushed {
            server.flush();
        }
        for (query, expected) in cases(EXPECTED) {
            if expected.starts_with("error") {
                continue;
            }
            let whole = server.select(query, None).expect("answered unpaged");
            for size in [1, 2, 3, 7, 100] {
                // What is sorted after it was read cannot be paged, and says so.
                if let Err(error) = server.select(query, Some((size, None))) {
                    assert!(
                        error.to_string().starts_with("Cannot page queries with both"),
                        "{query}: {error}"
                    );
                    continue;
                }
                assert_eq!(server.paged(query, size), whole.rows, "{query} in pages of {size}");
            }
        }
    }
    server.end();
}

#[test]
fn a_paging_state_is_of_use_to_other_statements_and_a_part_of_one_is_refused() {
    let server = loaded(3, DATA);
    let state =
        |query| server.select(query, Some((1, None))).expect("a page").paging_state.expect("there is more");
    let (one, other) = ("SELECT * FROM plain", "SELECT v FROM plain");
    assert!(server.select(one, Some((1, Some(&state(one))))).is_ok());
    let behind =
        |query, state: &[u8]| server.select(query, Some((100, Some(state)))).expect("answered").rows.len();
    assert_eq!(behind(one, &state(other)), behind(one, &state(one)));
    let mut states = vec![Vec::new(), vec![0; 40]];
    let whole = state(one);
    states.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    for state in states {
        let error = server.select(one, Some((1, Some(&state)))).err().expect("refused");
        assert_eq!(error.to_string(), "Invalid value for the paging state");
    }
    server.end();
}
