//! `cargo run --release -p proof -- model --operations N --seed S` and `-- crash --crashes N --seed S`, `-- fault --runs N --seed S`; `-- seed S` runs
//! one seed of the model test alone.

use proof::{Crashed, Faulted, Ran};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: proof model [--operations N] [--seed S] | proof crash [--crashes N] [--seed S] | \
                     proof fault [--runs N] [--seed S] | proof seed S";

/// Whether all arguments are flags of their test, each with a number: a flag that is passed over would test less than it says.
fn understood(args: &[String]) -> Result<(), String> {
    let count = match args.first().map(String::as_str) {
        Some("model") => "--operations",
        Some("crash") => "--crashes",
        Some("fault") => "--runs",
        _ => return Ok(()),
    };
    for pair in args.get(1..).unwrap_or_default().chunks(2) {
        match pair {
            [flag, number] if flag == count || flag == "--seed" => {
                number.parse::<u64>().map_err(|_| format!("{flag} takes a number, not {number}"))?;
            }
            [flag, ..] if flag == count || flag == "--seed" => return Err(format!("{flag} takes a number")),
            [other, ..] => return Err(format!("there is no {other}")),
            [] => {}
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(wrong) = understood(&args) {
        eprintln!("{wrong}\n{USAGE}");
        return ExitCode::FAILURE;
    }
    let number = |flag: &str, default: u64| {
        let at = args.iter().position(|arg| arg == flag);
        at.and_then(|at| args.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let begin = Instant::now();
    let ran = match args.first().map(String::as_str) {
        Some("model") => {
            let progress = |seed: u64, ran: Ran| {
                if ran.runs.is_multiple_of(500) {
                    println!("seed {seed}: {} operations, {} of them reads", ran.operations, ran.reads);
                }
            };
            proof::model(number("--operations", 100_000), number("--seed", 1), progress).map(|ran| {
                format!(
                    "{} operations, {} of them reads, on {} databases",
                    ran.operations, ran.reads, ran.runs
                )
            })
        }
        Some("crash") => {
            let progress = |seed: u64, crashed: Crashed| {
                if crashed.runs.is_multiple_of(20) {
                    println!("seed {seed}: {} crashes", crashed.crashes);
                }
            };
            proof::crash(number("--crashes", 1_000), number("--seed", 1), progress).map(|ran| {
                format!("{} crashes in {} runs of {} operations", ran.crashes, ran.runs, ran.operations)
            })
        }
        Some("fault") => {
            let progress = |seed: u64, faulted: Faulted| {
                if faulted.runs.is_multiple_of(500) {
                    println!("seed {seed}: {} of {} runs met their fault", faulted.struck, faulted.runs);
                }
            };
            proof::fault(number("--runs", 200), number("--seed", 1), progress).map(|ran| {
                format!("{} runs, {} met their fault, {} reported it", ran.runs, ran.struck, ran.reported)
            })
        }
        Some("seed") => {
            let seed = args.get(1).and_then(|text| text.parse().ok()).unwrap_or(1);
            proof::one_seed(seed).map(|()| format!("seed {seed} holds"))
        }
        _ => Err(USAGE.into()),
    };
    match ran {
        Ok(text) => {
            println!("{text}; {:.0} s", begin.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(text) => {
            println!("{text}");
            ExitCode::FAILURE
        }
    }
}
