//! Helenus beside other stores in one process: the same bytes, the same reads, one thread, everything in memory.
//!
//!     bench/peers/run.py --only-stores [--rows 10000000] [--seconds 1] [--stores helenus,lmdb] [--only slice]
//!     bench/peers/run.py --curve 0.1,1
//!
//! Every store holds `--rows` rows of one partition: names of 10 bytes, values of 25, in order under the key
//! `row-10000000` and name. An answer is a buffer into which names and values are copied, as the engine's own bench does;
//! it is compared with what was written, outside the timed part. Reads go round the stores in turns, so that a
//! disturbance of the machine hits all of them. Prints a section in Markdown.

#[allow(dead_code, reason = "the contents of `helenus stress`, of which each program uses a part")]
#[path = "../../../crates/helenus-cli/src/commands/stress/content.rs"]
mod content;
mod curve;
#[allow(dead_code, reason = "the reads of the engine's bench, of which this program uses a part")]
#[path = "../../src/engine/reads.rs"]
mod reads;
mod samples;
mod store;
mod stores;
mod table;
#[allow(dead_code, reason = "the tables of the engine's bench, of which this program uses a part")]
#[path = "../../src/engine/tables.rs"]
mod tables;
mod workloads;

use anyhow::Result;
use clap::Parser;
use std::path::{Path, PathBuf};

/// Times Helenus and other stores in this process.
#[derive(Parser, Clone, Debug)]
struct Options {
    /// Rows of the partition
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Seconds of each read in each store
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// So many calls of each read instead
    #[arg(long)]
    calls: Option<u64>,
    /// Stores, in this order; the first is the one that the others are peers of
    #[arg(long, value_delimiter = ',', default_value = "helenus,rocksdb,lmdb,sqlite,map")]
    stores: Vec<String>,
    /// Only reads whose name has this in it
    #[arg(long, default_value = "")]
    only: String,
    /// Block cache of the stores that have one, MiB. Helenus always has 512
    #[arg(long, default_value_t = 1024)]
    cache: u64,
    /// Bytes between entries of Helenus's row index, as the table's extension has it: 1KiB, 16KiB
    #[arg(long)]
    granularity: Option<String>,
    /// Instead: reads of the first store as it grows to these sizes, GB of names and values
    #[arg(long, value_delimiter = ',')]
    curve: Vec<f64>,
    /// Where to make the stores; removed at the end
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let name = format!("helenus-peers-{}", std::process::id());
    let dir = options.dir.clone().unwrap_or_else(std::env::temp_dir).join(name);
    std::fs::create_dir_all(&dir)?;
    let ended = run(&options, &dir);
    std::fs::remove_dir_all(&dir)?;
    ended
}

fn run(options: &Options, dir: &Path) -> Result<()> {
    if options.curve.is_empty() { workloads::run(options, dir) } else { curve::run(options, dir) }
}
