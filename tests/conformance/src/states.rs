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

/// The greatest length that Cassandra is told of.
const LENGTH_MAX: u64 = 1 << 16;

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
        let state = if is_damaged { damaged(draw, state) } else { state };
        // Cassandra asks for memory by such a length before it knows that there are fewer bytes, and ends where there is none.
        if !seen.insert(state.clone())
            || is_damaged && greatest_length(&state, table.clustering.len()) > LENGTH_MAX
        {
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

/// The greatest length that a state of protocol 4 or 5 says something of it has: its key, its mark or a value.
fn greatest_length(state: &[u8], columns: usize) -> u64 {
    let mut rest = state;
    let number = |rest: &mut &[u8]| {
        let (value, length) = vint::read_unsigned(rest)?;
        *rest = rest.get(length..)?;
        Some(value)
    };
    let mut longest = 0;
    let mut look = || {
        let key = number(&mut rest)?;
        longest = key;
        rest = rest.get(usize::try_from(key).ok()?..)?;
        longest = longest.max(number(&mut rest)?);
        let mut header = number(&mut rest)?;
        for _ in 0..columns {
            if header & 3 == 0 {
                let value = number(&mut rest)?;
                longest = longest.max(value);
                rest = rest.get(usize::try_from(value).ok()?..)?;
            }
            header >>= 2;
        }
        Some(())
    };
    look();
    longest
}
