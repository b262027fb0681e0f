//! `cargo run --release -p fuzz -- TARGET [--seconds N] [--seed S]`: feeds one target for as long as it is told.
//! `-- all` feeds every target so long, one after the other, each in a process of its own. `-- TARGET --input HEX` runs one once;
//! without a target it lists them.

use fuzz::{Mutator, TARGETS, Target, bound_memory, from_hex};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Address space beyond what is mapped at the start.
const MEMORY_BYTES: u64 = 1 << 30;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|name| name == "all") {
        return all(args.get(1..).unwrap_or_default());
    }
    let Some(target) = TARGETS.iter().find(|target| args.first().is_some_and(|name| name == target.name))
    else {
        println!("usage: fuzz TARGET|all [--seconds N] [--seed S] | fuzz TARGET --input HEX\n");
        TARGETS.iter().for_each(|target| println!("  {:<18}{}", target.name, target.about));
        return ExitCode::FAILURE;
    };
    let value = |flag: &str| {
        args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1)).map(String::as_str)
    };
    if let Some(hex) = value("--input") {
        (target.run)(&from_hex(hex));
        println!("{}: the input was taken or refused", target.name);
        return ExitCode::SUCCESS;
    }
    let number = |flag, default| value(flag).and_then(|text| text.parse().ok()).unwrap_or(default);
    run(target, number("--seconds", 10), number("--seed", 1));
    ExitCode::SUCCESS
}

/// Every target in a process of its own, since each bounds its memory; says at the end which found something.
fn all(args: &[String]) -> ExitCode {
    let mut harmed = Vec::new();
    for target in TARGETS {
        let program = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
        let status = std::process::Command::new(program).arg(target.name).args(args).status();
        if !status.is_ok_and(|status| status.success()) {
            harmed.push(target.name);
        }
    }
    if harmed.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("found something: {harmed:?}");
        ExitCode::FAILURE
    }
}

fn run(target: &Target, seconds: u64, seed: u64) {
    let corpus = (target.corpus)();
    corpus.iter().for_each(|input| (target.run)(input));
    bound_memory(MEMORY_BYTES);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0_u64;
    while Instant::now() < end {
        let input = Mutator::new(seed.wrapping_add(count)).input(&corpus);
        let ran = std::panic::catch_unwind(|| (target.run)(&input));
        if ran.is_err() {
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            println!(
                "{} after {count} inputs, seed {}: again with --input {hex}",
                target.name,
                seed.wrapping_add(count)
            );
            std::process::exit(1);
        }
        count += 1;
    }
    println!("{}: {count} inputs in {seconds} s, none of them harmful", target.name);
}
