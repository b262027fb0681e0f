//! Simulates the back-fill of large tables, from the sizes of the ranges of a real one, with the schedule and the assumptions of
//! `helenus move plan`. For `docs/past-one-machine.md`.
//!
//! `docs/measurements/ranges-of-a-move.txt` is such a file: rows of each of the 256 ranges, a number a line.
//!
//!     cargo run -p helenus-mover --example simulate_back_fill -- docs/measurements/ranges-of-a-move.txt 250
//!
//! The second argument is the bytes of a row, and a third, which may be left out, the rows of one more partition. The ranges are
//! scaled until they hold as many bytes as wanted.

use std::error::Error;

use helenus_mover::estimate::{NODE_ROWS_PER_SECOND, RANGES, Sizes, order_of_ranges, schedule, time};

/// Bytes of the simulated tables, the nodes of the target, and the ranges that are sent at a time.
const MOVES: [(&str, f64, u64, u64); 5] = [
    ("1 TB", 1e12, 6, 4),
    ("10 TB", 1e13, 12, 4),
    ("10 TB", 1e13, 12, 8),
    ("100 TB", 1e14, 100, 4),
    ("100 TB", 1e14, 100, 64),
];

/// The range of the one more partition, whose key is the int 0.
const OF_ONE_PARTITION: usize = 79;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(row_bytes)) = (arguments.next(), arguments.next()) else {
        return Err("give a file with the rows of each range, and the bytes of a row".into());
    };
    let recorded = std::fs::read_to_string(&file)?;
    let mut recorded: Vec<f64> = recorded.lines().map(str::parse).collect::<Result<_, _>>()?;
    if recorded.len() != RANGES as usize {
        return Err(format!("{file} has {} lines, not {RANGES}", recorded.len()).into());
    }
    let row_bytes: f64 = row_bytes.parse()?;
    if let Some(rows) = arguments.next() {
        recorded[OF_ONE_PARTITION] += rows.parse::<f64>()?;
    }
    let all: f64 = recorded.iter().sum();
    println!("| data | nodes | ranges at a time | bound | rows / rate | simulated |");
    println!("|---|---|---|---|---|---|");
    for (name, bytes, nodes, at_once) in MOVES {
        let rows = bytes / row_bytes;
        let ranges: Vec<f64> =
            order_of_ranges(RANGES).map(|number| recorded[number as usize] * rows / all).collect();
        let sizes = Sizes {
            rows: rows as u64,
            bytes: bytes as u64,
            largest: 0,
            nodes,
            copies: 3,
            at_once,
            limit: 0,
            log_bytes: 0,
        };
        let (rate, bound) = sizes.rate();
        let seconds = schedule(&ranges, at_once as usize, rate as f64, NODE_ROWS_PER_SECOND as f64);
        let without = time(rows / rate as f64);
        println!("| {name} | {nodes} | {at_once} | {bound} | {without} | {} |", time(seconds));
    }
    Ok(())
}
