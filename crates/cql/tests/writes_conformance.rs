//! Writes against Cassandra's own answers: each folder of `tests/conformance` named here holds a data set, statements that
//! write and read in turn, and what Cassandra 5.0.9 answered to each (`record.py` asks it again).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use std::fmt::Write as _;
use support::conformance::{cases, loaded, written};

/// Runs the statements of a folder one after the other, with a flush before every `flush_every`th.
fn assert_answers(data: &str, expected: &'static str, flush_every: Option<usize>) {
    let server = loaded(1, data);
    let mut wrong = String::new();
    let mut count = 0;
    for (number, (query, expected)) in cases(expected).enumerate() {
        if flush_every.is_some_and(|every| number % every == every - 1) {
            server.flush();
        }
        let found = written(&server.select(query, None));
        if found != expected {
            count += 1;
            _ = writeln!(wrong, "{query}\n--- expected\n{expected}--- found\n{found}");
        }
    }
    server.end();
    assert!(wrong.is_empty(), "{count} differ with a flush before every {flush_every:?}:\n{wrong}");
}

macro_rules! folder {
    ($name:ident, $folder:literal) => {
        #[test]
        fn $name() {
            let data = include_str!(concat!("../../../tests/conformance/", $folder, "/data.cql"));
            let expected = include_str!(concat!("../../../tests/conformance/", $folder, "/expected.txt"));
            for flush_every in [None, Some(1), Some(3)] {
                assert_answers(data, expected, flush_every);
            }
        }
    };
}

folder!(conditional_statements_answer_as_cassandra, "conditional");
folder!(lists_that_are_read_before_they_are_written_answer_as_cassandra, "lists");
folder!(counters_answer_as_cassandra, "counters");
folder!(ranges_times_batches_and_nulls_answer_as_cassandra, "writes");
folder!(tables_that_change_answer_as_cassandra, "alter");
folder!(tables_of_compact_storage_answer_as_cassandra, "compact");
