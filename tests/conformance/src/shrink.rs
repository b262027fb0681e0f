//! Finds few of the statements before a difference that still show it, by leaving parts of them out (delta debugging,
//! Zeller 1999).

use anyhow::Result;
use std::time::{Duration, Instant};

use crate::generate::GeneratedTable;
use crate::run::Runner;
use crate::script::{Action, Statement, Step};

/// Runs of the statements before it is enough.
const TRIES_MAX: usize = 80;
/// The same in time.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The least found of `history` before which `last` still differs. Leaves the table in some state.
///
/// # Errors
/// A server is gone.
pub fn shrink(
    runner: &mut Runner,
    table: &GeneratedTable,
    history: &[Action],
    last: &Statement,
) -> Result<Vec<Action>> {
    let begin = Instant::now();
    let mut least = history.to_vec();
    if differs(runner, table, &[], last)? {
        return Ok(Vec::new());
    }
    let mut part = least.len().div_ceil(2);
    let mut tries = 0;
    while part > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < least.len() {
            tries += 1;
            if tries > TRIES_MAX || begin.elapsed() > TIME_MAX {
                return Ok(least);
            }
            let without: Vec<Action> =
                least[..at].iter().chain(least.iter().skip(at + part)).cloned().collect();
            if differs(runner, table, &without, last)? {
                least = without;
                shorter = true;
            } else {
                at += part;
            }
        }
        if part == 1 && !shorter {
            break;
        }
        part = if part > 1 { part / 2 } else { 1 };
    }
    Ok(least)
}

/// Whether `last` differs on a new table after these.
fn differs(
    runner: &mut Runner,
    table: &GeneratedTable,
    history: &[Action],
    last: &Statement,
) -> Result<bool> {
    for text in &table.drop {
        runner.must(text)?;
    }
    for text in &table.create {
        runner.create(text)?;
    }
    for action in history {
        runner.step(&Step { line: 0, action: action.clone() })?;
    }
    Ok(!runner.statement(last)?.is_empty())
}
