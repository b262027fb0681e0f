//! The cost of reads as a store grows: partitions of one width, more and more of them.

use crate::Options;
use crate::samples::Samples;
use crate::store::{HUNDRED, KEY, PARTITION, Store};
use crate::stores::open;
use crate::table::Figure;
use crate::workloads::{Read, Reader, Turns, Zone};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Bytes of a row as the sizes count them: ordered key and value.
const ROW: f64 = (KEY + crate::content::WIDE_VALUE) as f64;

/// Grows each store from size to size and reads at each.
pub fn run(options: &Options, dir: &Path) -> Result<()> {
    let (width, mut sizes) = (options.rows, options.curve.clone());
    sizes.sort_by(f64::total_cmp);
    let largest = sizes.last().copied().context("no size")? * 1e9 / ROW;
    ensure!(
        width > 0 && largest / width as f64 <= 8e7,
        "at most 80 million partitions: choose a larger --rows"
    );
    let reads = reads(width);
    let heads: Vec<&str> = reads.iter().map(|(what, _)| *what).collect();
    println!("| store | partitions of {width} rows | on disk | {} |", heads.join(" | "));
    println!("|---|---{}|", "|---".repeat(heads.len() + 1));
    for name in &options.stores {
        let mut store = open(name, dir, largest as u64, options)?;
        let mut partitions = 0;
        for size in &sizes {
            let wanted = ((size * 1e9 / ROW) as u64).div_ceil(width);
            grow(store.as_mut(), width, partitions, wanted)?;
            partitions = wanted;
            let mut cells = Vec::new();
            for (what, read) in &reads {
                let (mut samples, turns) = (Samples::default(), Turns::of(options)?);
                let mut reader = Reader::new(width, partitions << 32).of_partitions(partitions);
                for _ in 0..turns.rounds {
                    turns.take(&mut reader, store.as_mut(), *read, &mut samples).context(*what)?;
                }
                cells.push(Figure::latency(&samples).text());
            }
            let mib = store.disk_bytes()? >> 20;
            println!("| {} | {partitions} | {mib} MiB | {} |", store.name(), cells.join(" | "));
        }
        drop(store);
        std::fs::remove_dir_all(dir.join(name))?;
    }
    Ok(())
}

/// The reads that a partition of so many rows is wide enough for.
fn reads(width: u64) -> Vec<(&'static str, Read)> {
    let mut reads = vec![("one row by its whole key", Read::One)];
    reads.push(("slice of 100, forward", Read::Slice(Zone::Any, false)));
    reads.push(("slice of 100, reversed", Read::Slice(Zone::Any, true)));
    if width >= 100 * HUNDRED {
        reads.push(("100 names on 100 random pages", Read::Pages));
    }
    reads
}

/// Writes partitions up to a number of them.
fn grow(store: &mut dyn Store, width: u64, from: u64, to: u64) -> Result<()> {
    for partition in (from..to).map(|number| PARTITION + number) {
        for first in (0..width).step_by(HUNDRED as usize) {
            store.load(partition, first..(first + HUNDRED).min(width))?;
        }
    }
    store.settle()
}
