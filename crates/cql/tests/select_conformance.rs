//! SELECT against Cassandra's own answers: `tests/conformance/select` holds a data set, statements, and what Cassandra
//! 5.0.6 answered (`record.py` asks it again). Every statement is run from memory and from disk, whole and in pages.

mod support;

use helenus_cql::CqlError;
use std::fmt::Write as _;
use support::{Answer, KEYSPACE, Server};

const DATA: &str = include_str!("../../../tests/conformance/select/data.cql");
const EXPECTED: &str = include_str!("../../../tests/conformance/select/expected.txt");

fn loaded(seed: u64) -> Server {
    let server = Server::open(seed);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    let is_statement = |line: &&str| !line.is_empty() && !line.starts_with("--") && !writes_counters(line);
    DATA.lines().filter(is_statement).for_each(|line| server.run(line));
    server
}

/// Counters cannot be written yet; their reads wait in the table of statements.
fn writes_counters(statement: &str) -> bool {
    statement.contains(" tally ")
}

/// A type as it goes over the wire, where nothing but tuples says that it is frozen.
fn type_text(ty: &str) -> String {
    let mut text = ty.to_owned();
    while let Some(at) = text.find("frozen<").filter(|at| !text[*at..].starts_with("frozen<tuple")) {
        let mut depth = 0;
        let close = text[at..].char_indices().find_map(|(index, c)| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            (c == '>' && depth == 0).then_some(at + index)
        });
        text.remove(close.expect("brackets are closed"));
        text.replace_range(at..at + "frozen<".len(), "");
    }
    text
}

/// The names of a function's overloads come in the order of a hash table.
fn without_signatures(text: &str) -> &str {
    text.split("(known type signatures").next().unwrap_or(text)
}

fn written(answer: &Result<Answer, CqlError>) -> String {
    let mut out = String::new();
    match answer {
        Err(error) => {
            let code = match error {
                CqlError::Invalid(_) => "2200",
                CqlError::Syntax(_) => "2000",
                _ => "?",
            };
            _ = writeln!(out, "error {code}: {}", without_signatures(&error.to_string()));
        }
        Ok(answer) => {
            let columns = answer.columns.columns.iter();
            let columns: Vec<_> =
                columns.map(|c| format!("{}:{}", c.name, type_text(&c.ty.to_string()))).collect();
            _ = writeln!(out, "columns {}", columns.join(" | "));
            for row in &answer.rows {
                let cells: Vec<String> = row.iter().map(cell).collect();
                _ = writeln!(out, "row {}", cells.join(" | "));
            }
            answer.warnings.iter().for_each(|warning| _ = writeln!(out, "warning {warning}"));
        }
    }
    out
}

fn cell(value: &Option<Vec<u8>>) -> String {
    let Some(value) = value else { return "null".to_owned() };
    value.iter().fold("0x".to_owned(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn cases() -> impl Iterator<Item = (&'static str, String)> {
    let split = EXPECTED.split("\n> ").map(|case| case.trim_start_matches("> "));
    split.filter(|case| !case.is_empty() && !case.contains(" FROM tally")).map(|case| {
        let (query, answer) = case.split_once('\n').unwrap_or((case, ""));
        let answer = answer
            .trim_end_matches('\n')
            .lines()
            .fold(String::new(), |all, line| all + without_signatures(line) + "\n");
        (query, answer)
    })
}

fn assert_answers(server: &Server, place: &str) {
    let mut wrong = String::new();
    for (query, expected) in cases() {
        let found = written(&server.select(query, None));
        if found != expected {
            _ = writeln!(wrong, "{place}: {query}\n--- expected\n{expected}--- found\n{found}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn selects_answer_as_cassandra_from_memory_and_from_disk() {
    let server = loaded(1);
    assert_answers(&server, "memory");
    server.flush();
    assert_answers(&server, "disk");
    server.end();
}

#[test]
fn pages_of_any_size_make_the_whole_answer() {
    let server = loaded(2);
    for flushed in [false, true] {
        if flushed {
            server.flush();
        }
        for (query, expected) in cases() {
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
fn a_paging_state_is_of_use_to_its_own_statement_only() {
    let server = loaded(3);
    let state =
        |query| server.select(query, Some((1, None))).expect("a page").paging_state.expect("there is more");
    let (one, other) = ("SELECT * FROM plain", "SELECT v FROM plain");
    assert!(server.select(one, Some((1, Some(&state(one))))).is_ok());
    let mut states = vec![state(other), state("SELECT * FROM down"), Vec::new(), vec![0; 40]];
    let whole = state(one);
    states.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    for state in states {
        let error = server.select(one, Some((1, Some(&state)))).err().expect("refused");
        assert_eq!(error.to_string(), "Invalid value for the paging state");
    }
    server.end();
}
