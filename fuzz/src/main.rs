//! `cargo run --release -p fuzz -- TARGET [--seconds N] [--seed S]`: feeds one target for as long as it is told.
//! `-- TARGET --input HEX` runs it once; without a target it lists them.

use fuzz::{Mutator, TARGETS, Target, bound_memory};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Address space beyond what is mapped at the start.
const MEMORY_BYTES: u64 = 1 << 30;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(target) = TARGETS.iter().find(|target| args.first().is_some_and(|name| name == target.name))
    else {
        println!("usage: fuzz TARGET [--seconds N] [--seed S] | fuzz TARGET --input HEX\n");
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

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}
