//! Every target on a fixed number of inputs: no panic, bounded memory, and no target that rots.

use fuzz::{Mutator, TARGETS, bound_memory, from_hex};
use std::path::Path;

/// Inputs a target, fewer where each is a whole opening of a database or table. `FUZZ_INPUTS` multiplies.
fn inputs_of(name: &str) -> u64 {
    let times: u64 = std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    times
        * match name {
            "commitlog" | "commitlog-records" => 300,
            "statistics" => 50_000,
            "partition-index" | "row-index" | "big-index" | "big-summary" => 1500,
            "compression-info" | "data" | "filter" => 600,
            "scrub" => 150,
            "transaction-log" | "schema-text" => 3000,
            "rpc" | "first-dialect" | "json" => 2000,
            "archive" => 500,
            "tls-records" => 5000,
            "paging-state" => 10_000,
            "settings" | "manifest" => 10_000,
            _ => 100_000,
        }
}

#[test]
fn no_input_makes_a_decoder_panic_or_take_a_gigabyte() {
    let corpora: Vec<_> = TARGETS.iter().map(|target| (target.corpus)()).collect();
    for (target, corpus) in TARGETS.iter().zip(&corpora) {
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        corpus.iter().for_each(|input| (target.run)(input));
    }
    bound_memory(1 << 30);
    for (target, corpus) in TARGETS.iter().zip(&corpora) {
        let begun = std::time::Instant::now();
        for seed in 0..inputs_of(target.name) {
            let input = Mutator::new(seed).input(corpus);
            if let Err(panic) = std::panic::catch_unwind(|| (target.run)(&input)) {
                let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
                println!("cargo run -p fuzz -- {} --input {hex}", target.name);
                std::panic::resume_unwind(panic);
            }
        }
        println!("{}: {} inputs, {:.1?}", target.name, inputs_of(target.name), begun.elapsed());
    }
}

#[test]
fn what_was_found_once_is_not_found_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.unwrap_or_else(|error| panic!("{error}")).path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(target) = name.strip_suffix(".hex").and_then(|name| name.split('.').next()) else {
            continue;
        };
        let target = TARGETS.iter().find(|known| known.name == target);
        let target = target.unwrap_or_else(|| panic!("{name}: no such target"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}");
        (target.run)(&from_hex(&text));
    }
}
