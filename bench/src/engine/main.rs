//! The engine in this process: named workloads on one thread, each beside its target, each checking its answers.
//!
//!     cargo run --profile optimized -p bench --bin engine -- [--rows 1000000] [--seconds 2] [--only slice] [--dir DIR]
//!
//! Wide partitions are of 100 rows, 1,200, 5,000, 10,000, 100,000 and so on up to `--rows`, in an ascending table and a
//! descending one. `--memory 256` loads in so many MiB instead of keeping everything in memory until it is flushed once,
//! and says how much memory the process came to; `--granularity 1KiB` sets the extension of the wide tables, `--chunk-kib 4` their option of compression.
//!
//! Latencies are of single calls, timed one by one (the clock costs about 0.05 us of each); rates are calls over the sum
//! of those times. A call is what a statement's execution does below CQL: build the command or the mutation, take the
//! view, read or write, copy the answer's cells into a buffer. What came back is compared with what was written outside
//! the timed part. Times drift on a shared machine: compare within one run.

#[allow(dead_code, reason = "the contents of `helenus stress`, of which each program uses a part")]
#[path = "../../../crates/helenus-cli/src/commands/stress/content.rs"]
mod content;
mod cql;
mod memory;
mod reads;
mod tables;
#[allow(dead_code, reason = "shared with `column_map`, which uses another part")]
mod timing;
mod workloads;

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;

/// Times the engine in this process.
#[derive(Parser, Clone, Debug)]
struct Options {
    /// Rows of the wide partition
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Rows of five columns, each a partition of its own
    #[arg(long, default_value_t = 300_000)]
    single_rows: u64,
    /// Seconds a workload of reads
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only workloads whose name has this in it; what they need is done and not shown
    #[arg(long, default_value = "")]
    only: String,
    /// MiB of memory for memtables and cache together, a quarter each as in a server; everything fits without this
    #[arg(long)]
    memory: Option<u64>,
    /// Bytes of rows for each entry of the wide tables' row index, as the extension has it: 1KiB, 4KiB
    #[arg(long)]
    granularity: Option<String>,
    /// KiB of a chunk of the wide tables before compression, as the option chunk_length_in_kb; 16 without
    #[arg(long)]
    chunk_kib: Option<u32>,
    /// So many calls of each read instead of seconds: for counting instructions
    #[arg(long)]
    calls: Option<u64>,
    /// Where to make the database; removed at the end
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let name = format!("helenus-bench-{}", std::process::id());
    let dir = options.dir.clone().unwrap_or_else(std::env::temp_dir).join(name);
    let ended = workloads::run(&options, &dir);
    let removed = std::fs::remove_dir_all(&dir);
    ended?;
    Ok(removed?)
}
