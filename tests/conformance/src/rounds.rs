//! Generated tables, one after the other: each is made, written and read, and dropped.

use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::answer::Outcome;
use crate::generate::{Draw, GeneratedTable, statement, table};
use crate::run::{Difference, Runner};
use crate::script::{Action, Bound, Statement};
use crate::shrink::shrink;

/// What a run of generated statements is given.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Decides everything that is generated.
    pub seed: u64,
    /// The first table; those before it are passed over.
    pub first: u64,
    /// Statements to send in all.
    pub statements: u64,
    /// Statements of one table.
    pub per_table: usize,
    /// Differences after which it gives up.
    pub failures_max: usize,
    /// Whether the statements of a difference are made fewer.
    pub shrinks: bool,
    /// The keyspace it makes.
    pub keyspace: String,
}

/// Between two lines that say how far a run has come.
const PROGRESS_PERIOD: Duration = Duration::from_secs(60);

/// Runs them, prints each kind of difference once, as a script; how many there were.
///
/// # Errors
/// A server is gone: `Runner::statements` says how far it came.
pub fn run(runner: &mut Runner, rounds: &Rounds) -> Result<usize> {
    runner.begin_keyspace(&rounds.keyspace)?;
    let mut kinds = BTreeSet::new();
    let begun = runner.statements;
    let mut number = rounds.first;
    let mut told = Instant::now();
    while runner.statements - begun < rounds.statements && kinds.len() < rounds.failures_max {
        round(runner, rounds, number, &mut kinds)?;
        number += 1;
        if told.elapsed() >= PROGRESS_PERIOD {
            println!("-- {} statements, before table {number}", runner.statements - begun);
            told = Instant::now();
        }
    }
    runner.end_keyspace()?;
    Ok(kinds.len())
}

fn round(runner: &mut Runner, rounds: &Rounds, number: u64, kinds: &mut BTreeSet<String>) -> Result<()> {
    let mut draw = Draw::new(rounds.seed, number);
    let mut table = table(&mut draw, &format!("t{number}"));
    let made = table.clone();
    for text in &table.create {
        let differences = runner.create(text)?;
        if let Some(difference) = differences.first() {
            let statement = Statement::plain(text.clone());
            if kinds.insert(kind_of(&statement, difference)) {
                report(&table, &[], &statement, difference, rounds);
            }
            return remove(runner, &table);
        }
    }
    let mut history = Vec::new();
    runner.diverged = false;
    for _ in 0..rounds.per_table {
        let action = statement(&mut draw, &mut table);
        let Action::Run(statement) = &action else {
            runner.step(&crate::script::Step { line: 0, action: action.clone() })?;
            history.push(action);
            continue;
        };
        let differences = runner.statement(statement)?;
        if let Some(difference) = differences.first() {
            let reads = statement.verb() == "SELECT";
            if kinds.insert(kind_of(statement, difference)) {
                let least = if rounds.shrinks {
                    shrink(runner, &made, &history, statement)?
                } else {
                    history.clone()
                };
                report(&made, &least, statement, difference, rounds);
                break;
            }
            if !reads {
                break;
            }
        }
        if runner.diverged {
            break;
        }
        if statement.verb() != "SELECT" {
            history.push(action);
        }
    }
    remove(runner, &table)
}

fn remove(runner: &mut Runner, table: &GeneratedTable) -> Result<()> {
    for text in &table.drop {
        runner.must(text)?;
    }
    Ok(())
}

fn report(
    table: &GeneratedTable,
    history: &[Action],
    last: &Statement,
    difference: &Difference,
    rounds: &Rounds,
) {
    let number = table.name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut text = format!("\n-- seed {}, table {number}\n", rounds.seed);
    for create in table.create.iter().filter(|create| **create != last.text) {
        let _ = writeln!(text, "{create};");
    }
    for action in history.iter().chain([&Action::Run(last.clone())]) {
        write_action(&mut text, action);
    }
    println!("{text}{}", difference.describe());
}

/// A step as a script has it.
fn write_action(text: &mut String, action: &Action) {
    let _ = match action {
        Action::Flush => writeln!(text, "-- @flush"),
        Action::Compact => writeln!(text, "-- @compact"),
        Action::Restart => writeln!(text, "-- @restart"),
        Action::Run(statement) => {
            if !statement.bound.is_empty() {
                let bound: Vec<String> = statement.bound.iter().map(bound_text).collect();
                let _ = writeln!(text, "-- @bind {}", bound.join(" "));
            }
            if statement.only_prepared {
                text.push_str("-- @execute\n");
            }
            writeln!(text, "{};", statement.text)
        }
    };
}

fn bound_text(bound: &Bound) -> String {
    match bound {
        Bound::Unset => "unset".to_owned(),
        Bound::Value(None) => "null".to_owned(),
        Bound::Value(Some(bytes)) => {
            bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
    }
}

/// What two differences have in common that have one cause: the texts of errors without what is named in them, or the
/// words of the statement.
fn kind_of(statement: &Statement, difference: &Difference) -> String {
    let words = |text: &str| {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        let parts = shape.split(['\'', '"', '`']).step_by(2).map(str::to_owned);
        parts.collect::<String>().chars().take(90).collect::<String>()
    };
    let of = |answer: &crate::Answer| match &answer.outcome {
        Outcome::Error { message, .. } => words(message),
        Outcome::Rows { .. } => {
            let text = statement.text.to_ascii_uppercase();
            let told =
                ["DISTINCT", "JSON", "COUNT", "TTL(", "GROUP BY", "ORDER BY", "LIMIT", " IN (", "CONTAINS"];
            told.into_iter().filter(|word| text.contains(word)).collect::<Vec<_>>().join(" ")
        }
        _ => statement.verb(),
    };
    let what = difference.what.split(':').next().unwrap_or_default();
    format!("{what} / {} / {}", of(&difference.theirs), of(&difference.ours))
}
