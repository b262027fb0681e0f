//! Data sets and answers as `tests/conformance/record.py` writes them.

use super::{Answer, KEYSPACE, Server};
use helenus_cql::CqlError;
use std::fmt::Write as _;

/// A server with a data set.
pub fn loaded(seed: u64, data: &str) -> Server {
    let server = Server::open(seed);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    let is_statement = |line: &&str| !line.is_empty() && !line.starts_with("--");
    data.lines().filter(is_statement).for_each(|line| server.run(line));
    server
}

/// A line of columns as types go over the wire, where nothing says that they are frozen.
fn unfrozen(columns: &str) -> String {
    let mut text = columns.to_owned();
    while let Some(at) = text.rfind("frozen<") {
        let mut depth = 0;
        let close = text[at..].char_indices().find_map(|(index, c)| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            (c == '>' && depth == 0).then_some(at + index)
        });
        let Some(close) = close else { break };
        text.remove(close);
        text.replace_range(at..at + "frozen<".len(), "");
    }
    text
}

/// The names of a function's overloads come in the order of a hash table.
fn without_signatures(text: &str) -> &str {
    text.split("(known type signatures").next().unwrap_or(text)
}

/// An answer as `record.py` writes it.
pub fn written(answer: &Result<Answer, CqlError>) -> String {
    let mut out = String::new();
    match answer {
        Err(error) => {
            let code = match error {
                CqlError::Invalid(_) => "2200",
                CqlError::Syntax(_) => "2000",
                CqlError::FunctionFailure { .. } => "1400",
                CqlError::Server(_) => "0000",
                CqlError::Unauthorized(_) => "2100",
                CqlError::Config(_) => "2300",
                _ => "?",
            };
            _ = writeln!(out, "error {code}: {}", without_signatures(&error.to_string()));
        }
        Ok(answer) => {
            let columns = answer.columns.columns.iter();
            let columns: Vec<_> = columns.map(|c| format!("{}:{}", c.name, c.ty)).collect();
            _ = writeln!(out, "columns {}", unfrozen(&columns.join(" | ")));
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

/// The statements of a file of answers, each with its answer, but for those on counters.
pub fn cases(expected: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    answers(expected).filter(|(query, _)| !query.contains(" FROM tally"))
}

/// The statements of a file of answers, each with its answer.
pub fn answers(expected: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    let split = expected.split("\n> ").map(|case| case.trim_start_matches("> "));
    split.filter(|case| !case.is_empty()).map(|case| {
        let (query, answer) = case.split_once('\n').unwrap_or((case, ""));
        let line = |line: &str| {
            let line = without_signatures(line);
            if line.starts_with("columns ") { unfrozen(line) } else { line.to_owned() }
        };
        let lines = answer.trim_end_matches('\n').lines();
        (query, lines.fold(String::new(), |all, text| all + &line(text) + "\n"))
    })
}
