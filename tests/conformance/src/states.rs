//! Paging states that come back with another statement, and forged ones, on generated tables: the same bytes to both servers.
//!
//! A state of either server goes to both with the second statement, as it is or damaged, and all pages that follow are
//! compared. What a state means there is `crates/cql/src/plan/paging_state.rs`.

use anyhow::Result;
use helenus_model::vint;
use std::collections::BTreeSet;

use crate::generate::{Draw, GeneratedTable, carried, table, write};
use crate::rounds::Rounds;
use crate::run::{Difference, Runner};
use crate::script::Statement;

/// Writes of a table.
const WRITES: usize = 60;

/// Runs `rounds.statements` pairs of statements, `rounds.per_table` of a table; prints each difference, and says how many.
///
/// # Errors
/// A server is gone.
pub fn run(runner: &mut Runner, rounds: &Rounds) -> Result<usize> {
    runner.begin_keyspace(&rounds.keyspace)?;
    let (mut number, mut found, mut pairs) = (rounds.first, 0, 0);
    while pairs < rounds.statements && found < rounds.failures_max {
        let mut draw = Draw::new(rounds.seed, number);
        let table = table(&mut draw, &format!("t{number}"));
        if let Some(writes) = filled(runner, &mut draw, &table)? {
            for _ in 0..rounds.per_table {
                pairs += 1;
                let Some(text) = pair(runner, &mut draw, &table)? else { continue };
                found += 1;
                let made = table.create.iter().chain(&writes).map(|text| format!("{text};\n"));
                println!("\n-- seed {}, table {number}\n{}{text}", rounds.seed, made.collect::<String>());
                break;
            }
        }
        for text in &table.drop {
            runner.must(text)?;
        }
        number += 1;
    }
    runner.end_keyspace()?;
    println!("{} states carried, {} of them answered with rows by both", runner.carried.0, runner.carried.1);
    Ok(found)
}

/// Makes and fills a table; what was written, `None` if the servers do not agree on it.
fn filled(runner: &mut Runner, draw: &mut Draw, table: &GeneratedTable) -> Result<Option<Vec<String>>> {
    for text in &table.create {
        if !runner.create(text)?.is_empty() {
            return Ok(None);
        }
    }
    runner.diverged = false;
    let mut writes = Vec::new();
    for _ in 0..WRITES {
        let mut out = Default::default();
        write(draw, table, true, &mut out);
        if !runner.statement(&Statement::plain(&*out.text))?.is_empty() || runner.diverged {
            return Ok(None);
        }
        writes.push(out.text);
    }
    Ok(Some(writes))
}

/// Carries states from one statement to another; what differs.
fn pair(runner: &mut Runner, draw: &mut Draw, table: &GeneratedTable) -> Result<Option<String>> {
    let (from, to) = carried(draw, table);
    let sizes = (draw.between(1, 4) as i32, (!draw.chance(10)).then(|| draw.between(1, 5) as i32));
    let states = runner.states(&Statement::plain(&*from), sizes.0)?;
    let mut seen = BTreeSet::new();
    for state in states {
        let is_damaged = draw.chance(20);
        let whole = state.clone();
        let state = if is_damaged { damaged(draw, state) } else { state };
        if !seen.insert(state.clone()) || is_damaged && !is_harmless(&whole, &state) {
            continue;
        }
        let to = Statement::plain(&*to);
        let difference = match is_damaged {
            true => runner.forge(&to, sizes.1, &state)?,
            false => runner.carry(&to, sizes.1, &state)?,
        };
        if let Some(difference) = difference {
            return Ok(Some(report(&from, &to.text, sizes, &state, &difference)));
        }
    }
    Ok(None)
}

fn report(
    from: &str,
    to: &str,
    (first, second): (i32, Option<i32>),
    state: &[u8],
    difference: &Difference,
) -> String {
    let state = state.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let second = second.map_or("no pages".to_owned(), |size| format!("pages of {size}"));
    format!(
        "-- pages of {first}\n{from};\n-- {second}, with the state 0x{state}\n{to};\n{}",
        difference.describe()
    )
}

/// The state with a bit turned, a part left out, another number or another tail.
fn damaged(draw: &mut Draw, mut state: Vec<u8>) -> Vec<u8> {
    let at = draw.below(state.len().max(1));
    match draw.below(5) {
        0 => state.truncate(at),
        1 => drop(state.drain(at..(at + 2).min(state.len()))),
        2 => state.insert(at, draw.below(256) as u8),
        _ => state.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << draw.below(8)),
    }
    state
}

/// Whether Cassandra survives a damaged state: it takes memory by the lengths of a row's values, and of what is within them,
/// before it knows that there are fewer bytes, and ends where there is none. Rows that are damaged are given to Helenus
/// alone, by `crates/cql/tests/pages.rs` and `fuzz`.
fn is_harmless(whole: &[u8], damaged: &[u8]) -> bool {
    match mark(damaged) {
        Some(found) => Some(found) == mark(whole),
        // A length that is written longer than it needs is counted there as if it were not.
        None => lengths(damaged).is_none_or(|shortest| shortest),
    }
}

/// The mark of the row in a state of protocol 4 or 5.
fn mark(state: &[u8]) -> Option<&[u8]> {
    part(part(state)?.1).map(|(mark, _)| mark)
}

/// What stands behind its length, and what behind that.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, taken) =
        vint::read_unsigned(bytes).filter(|(value, taken)| *taken == vint::unsigned_length(*value))?;
    bytes.get(taken..)?.split_at_checked(usize::try_from(length).ok()?)
}

/// Whether the two lengths of a state are as short as they can be; `None` if they are not there.
fn lengths(state: &[u8]) -> Option<bool> {
    let (value, taken) = vint::read_unsigned(state)?;
    if taken != vint::unsigned_length(value) {
        return Some(false);
    }
    let rest = state.get(taken..)?.get(usize::try_from(value).ok()?..)?;
    let (value, taken) = vint::read_unsigned(rest)?;
    Some(taken == vint::unsigned_length(value))
}
