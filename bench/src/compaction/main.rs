//! Compaction in this process: how fast SSTables become one, and in how much memory.
//!
//!     cargo run --profile optimized -p bench --bin compaction -- [--rows 1000000] [--wide 10000000] [--dir DIR]
//!
//! Two cases, without a throttle: so many SSTables of so many small rows, each with rows of every partition (100 rows of 25
//! bytes a partition and SSTable), and one partition of very many rows, a part of it in each SSTable. What comes out is
//! counted. Memory is what the process holds beyond what it held before the compaction began, at its highest.

#[allow(dead_code, reason = "the contents of `helenus stress`, of which each program uses a part")]
#[path = "../../../crates/helenus-cli/src/commands/stress/content.rs"]
mod content;
#[allow(dead_code, reason = "the tables of the other workloads, of which this uses one")]
#[path = "../engine/tables.rs"]
mod tables;

use anyhow::{Result, anyhow, ensure};
use clap::Parser;
use helenus_engine::MemoryShares;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tables::{Tables, database_options, wide_rows};

/// Times compactions.
#[derive(Parser, Clone, Debug)]
struct Options {
    /// SSTables
    #[arg(long, default_value_t = 4)]
    sstables: u64,
    /// Small rows of each SSTable
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Rows of the wide partition, all SSTables together
    #[arg(long, default_value_t = 10_000_000)]
    wide: u64,
    /// Where to make the database; removed at the end
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Rows of a partition in an SSTable, and of a write.
const HUNDRED: u64 = 100;

fn main() -> Result<()> {
    let options = Options::parse();
    let name = format!("helenus-compaction-{}", std::process::id());
    let dir = options.dir.clone().unwrap_or_else(std::env::temp_dir).join(name);
    let ended = run(&options, &dir);
    std::fs::remove_dir_all(&dir)?;
    ended
}

fn run(options: &Options, dir: &Path) -> Result<()> {
    let mut database = database_options(dir, MemoryShares { memtables: 4 << 30, cache: 64 << 20 });
    database.segment_bytes = 256 << 20; // the log must not ask for a flush
    database.compaction.bytes_per_s = 0;
    let tables = Tables::create(database, (None, None))?;
    println!("| case | rows/s | data MB/s | files MB/s | seconds | memory MiB | of |");
    println!("|---|---|---|---|---|---|---|");
    for sstable in 0..options.sstables {
        let rows = sstable * HUNDRED..(sstable + 1) * HUNDRED;
        for partition in 0..options.rows / HUNDRED {
            let _ticket = tables.database.write(&wide_rows(&tables.ascending, partition, rows.clone()))?;
        }
        tables.database.flush(tables.ascending.id)?;
    }
    let rows = options.sstables * (options.rows / HUNDRED) * HUNDRED;
    compact(&tables, "ascending", (options, rows), "small rows, 100 a partition and SSTable")?;
    for sstable in 0..options.sstables {
        // Every fourth hundred, so that all SSTables take turns.
        for first in (sstable * HUNDRED..options.wide).step_by((options.sstables * HUNDRED) as usize) {
            let rows = first..(first + HUNDRED).min(options.wide);
            let _ticket = tables.database.write(&wide_rows(&tables.descending, options.wide, rows))?;
        }
        tables.database.flush(tables.descending.id)?;
    }
    compact(&tables, "descending", (options, options.wide), "one partition")?;
    tables.database.close()?;
    Ok(())
}

fn compact(tables: &Tables, table: &str, (options, rows): (&Options, u64), case: &str) -> Result<()> {
    let id = if table == "ascending" { tables.ascending.id } else { tables.descending.id };
    let line = || {
        let found = tables.database.status().tables.into_iter().find(|line| line.table == table);
        found.ok_or_else(|| anyhow!("no table {table}"))
    };
    let before = line()?;
    ensure!(before.sstables == options.sstables, "{} SSTables to compact", before.sstables);
    let held = resident_bytes()?;
    let (mut highest, mut data_bytes) = (held, 0);
    let begin = Instant::now();
    let request = tables.database.compact(vec![id]);
    while request.status().ended.is_none() {
        std::thread::sleep(Duration::from_millis(5));
        highest = highest.max(resident_bytes()?);
        data_bytes = tables.database.status().compactions.first().map_or(data_bytes, |c| c.bytes_total);
    }
    let seconds = begin.elapsed().as_secs_f64();
    request.wait().map_err(|failure| anyhow!(failure))?;
    let after = line()?;
    ensure!(after.sstables == 1, "{} SSTables are left", after.sstables);
    let view =
        tables.database.view(if table == "ascending" { &tables.ascending } else { &tables.descending })?;
    let written: i64 = view.sstables.iter().map(|sstable| sstable.stats().rows).sum();
    ensure!(written as u64 == rows, "{written} rows of {rows} were written");
    let rate = |things: u64| things as f64 / 1e6 / seconds;
    println!(
        "| {case} | {:.2}M | {:.0} | {:.0} | {seconds:.1} | {:.0} | {} SSTables, {:.1}M rows |",
        rate(rows),
        rate(data_bytes),
        rate(before.disk_bytes),
        (highest - held) as f64 / f64::from(1 << 20),
        options.sstables,
        rows as f64 / 1e6,
    );
    Ok(())
}

/// Bytes of memory that the process holds (VmRSS).
fn resident_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| anyhow!("no VmRSS in /proc/self/status"))? * 1024)
}
