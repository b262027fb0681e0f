//! What a Cassandra 5.0.9 answered to whole files of statements is what is answered here: rows, column names and types,
//! warnings, error codes and texts. `tests/conformance/record_statements.py` writes the answers.

mod support;

use std::fmt::Write as _;
use support::conformance::{answers, written};
use support::{KEYSPACE, Server};

fn server(seed: u64) -> Server {
    let server = Server::open(seed);
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    server.run(&format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"));
    server
}

fn is_select(statement: &str) -> bool {
    statement.starts_with("SELECT")
}

/// Runs the statements in order; those that select from disk as well, and in pages.
fn assert_answers(seed: u64, recorded: &'static str) {
    let server = server(seed);
    let mut wrong = String::new();
    let mut has_written = false;
    for (statement, expected) in answers(recorded) {
        if !is_select(statement) {
            has_written = true;
            let found =
                server.try_run(statement).map_or_else(|error| written(&Err(error)), |()| String::new());
            if found != expected {
                _ = writeln!(wrong, "{statement}\n--- expected\n{expected}--- found\n{found}");
            }
            continue;
        }
        let from_memory = written(&server.select(statement, None));
        if std::mem::take(&mut has_written) {
            server.flush();
        }
        let from_disk = written(&server.select(statement, None));
        for (place, found) in [("memory", from_memory), ("disk", from_disk)] {
            if found != expected {
                _ = writeln!(wrong, "{place}: {statement}\n--- expected\n{expected}--- found\n{found}");
            }
        }
        if !expected.starts_with("error") {
            check_pages(&server, statement, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    server.end();
}

/// Pages of any size make the whole answer, where it can be paged.
fn check_pages(server: &Server, statement: &str, wrong: &mut String) {
    let whole = server.select(statement, None).expect("answered unpaged").rows;
    for size in [1, 2, 3, 7] {
        if server.select(statement, Some((size, None))).is_err() {
            continue;
        }
        if server.paged(statement, size) != whole {
            _ = writeln!(wrong, "{statement}: pages of {size} make another answer");
        }
    }
}

macro_rules! files {
    ($($test:ident: $file:literal),+ $(,)?) => {$(
        #[test]
        fn $test() {
            let recorded = include_str!(concat!("../../../tests/conformance/statements/", $file, ".txt"));
            assert_answers(1, recorded);
        }
    )+};
}

files! {
    functions_and_operators_answer_as_cassandra: "functions",
    parts_and_literals_are_selected_as_in_cassandra: "parts",
    groups_are_those_of_cassandra_in_pages_of_any_size: "groups",
    json_goes_in_and_out_as_in_cassandra: "json",
    relations_filters_and_orders_answer_as_cassandra: "filters",
    every_type_is_stored_found_and_printed_as_in_cassandra: "types",
    a_mixture_of_all_answers_as_cassandra: "mixed",
    views_functions_triggers_and_roles_answer_as_where_there_are_none: "absent_kinds",
}
