//! The results of a profile, in the JSON file that `--json` writes and `compare` reads.
//!
//! Times are microseconds and sizes are bytes, unless the name states another unit. Fields are only added; if a field
//! changes its meaning, `format` changes.

use super::cases::{CASES, Case, Test};
use super::rows::{ROWS, Row};
use crate::commands::machine::machine;
use crate::commands::numbers::quantile;
use crate::commands::stress::WideOrder as Order;
use anyhow::{Context, Result, ensure};
use helenus_engine::read::Probe;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name and number of the file format.
const FORMAT: &str = "helenus-profile-1";

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Profile {
    pub format: String,
    /// The version of the program that measured.
    pub program: String,
    /// The measured subject in words: the `--label`, or how it was reached.
    pub subject: String,
    /// `in-process`, `cql` or `rpc`.
    pub reached: String,
    /// Begin of the run, in seconds since the epoch.
    pub begun_s: u64,
    /// The machine of this program, in words.
    #[serde(default)]
    pub machine: String,
    /// The number of timed queries of each case and row.
    pub repeats: u64,
    /// The number of queries of each case and row before the timed ones.
    #[serde(default)]
    pub discarded: u64,
    /// The seed of the random pages.
    pub seed: u64,
    /// The rows loaded, in order, without the rows that existed before.
    pub loads: Vec<Passed>,
    /// The state after the load.
    pub settled: Settled,
    /// The warm-up: reads of every column of every row, in pages of 5,000.
    pub warm_ups: Vec<Passed>,
    /// The cases by row, in the order of the texts.
    pub cases: Vec<Measured>,
    /// Reads by key over the size of a table, the smallest first.
    #[serde(default)]
    pub sizes: Vec<AtSize>,
}

/// Reads of small rows by key, in a table of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct AtSize {
    /// Bytes of keys and values.
    pub data_bytes: u64,
    pub rows: u64,
    pub sstables: u64,
    /// Bytes of the SSTables' files.
    pub disk_bytes: u64,
    pub latency_us: Latency,
    /// The work of queries that were not timed.
    pub touched: Option<TouchedMean>,
}

/// A row that was loaded or read completely.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Passed {
    pub table: String,
    pub row: String,
    pub columns: u64,
    pub seconds: f64,
    pub columns_per_s: f64,
}

/// The state of the data before the reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Settled {
    /// Seconds of the flush; `None` without a flush.
    pub flush_s: Option<f64>,
    /// Seconds of the compaction; `None` without a compaction.
    pub compact_s: Option<f64>,
    /// The number of SSTables of both tables afterwards; `None` if unknown.
    pub sstables: Option<u64>,
    /// Bytes of the SSTables' files.
    pub disk_bytes: Option<u64>,
    /// The `--after-load` command that was run.
    #[serde(default)]
    pub after_load: Option<String>,
}

/// The results of a case on a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// `names`, `start` or `recent`.
    pub test: String,
    pub case: String,
    pub title: String,
    pub table: String,
    pub row: String,
    /// Number of columns of the row.
    pub width: u64,
    /// Number of columns that a query returned.
    pub columns: u64,
    pub latency_us: Latency,
    /// The work of queries that were not timed.
    pub touched: Option<TouchedMean>,
}

/// The latencies of a case.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Latency {
    pub min: f64,
    pub p50: f64,
    pub p80: f64,
    pub p95: f64,
    pub max: f64,
    pub mean: f64,
}

/// The work of a query: means over `queries` queries.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TouchedMean {
    pub queries: u64,
    pub memtables: f64,
    pub sstables: f64,
    /// Number of trie nodes visited.
    pub index_nodes: f64,
    /// Number of blocks read, from cache or file.
    pub blocks: f64,
    /// Number of those blocks that were not in the cache.
    pub blocks_read: f64,
    /// Decompressed bytes of the blocks.
    pub bytes: f64,
    /// Bytes read from files, of index and data; zero if everything was cached.
    pub bytes_read: f64,
    pub rows_decoded: f64,
}

impl Profile {
    /// Begins the results of a run.
    pub fn begin(subject: String, reached: &str, begun_s: u64) -> Profile {
        Profile {
            format: FORMAT.into(),
            program: env!("CARGO_PKG_VERSION").into(),
            subject,
            reached: reached.into(),
            begun_s,
            machine: machine(),
            repeats: 0,
            discarded: 0,
            seed: 0,
            loads: Vec::new(),
            settled: Settled::default(),
            warm_ups: Vec::new(),
            cases: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Reads results from a file.
    pub fn read(path: &Path) -> Result<Profile> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let profile: Profile = serde_json::from_str(&text)
            .with_context(|| format!("{} is not what `helenus profile --json` writes", path.display()))?;
        let format = &profile.format;
        ensure!(format == FORMAT, "{} has format `{format}`, this program knows {FORMAT}", path.display());
        Ok(profile)
    }

    /// The measured cases, each with its rows, in the order of the texts.
    pub fn by_case(&self) -> impl Iterator<Item = (&'static Case, Vec<&Measured>)> {
        CASES.iter().filter_map(|case| {
            let of_case =
                |measured: &&Measured| measured.test == case.test.name() && measured.case == case.id;
            let rows: Vec<&Measured> = self.cases.iter().filter(of_case).collect();
            (!rows.is_empty()).then_some((case, rows))
        })
    }

    /// The measured cases of one test.
    pub fn of_test(&self, test: Test) -> impl Iterator<Item = (&'static Case, Vec<&Measured>)> {
        self.by_case().filter(move |(case, _)| case.test == test)
    }
}

impl Settled {
    /// The state in words, for the readers of the results.
    pub fn words(&self) -> String {
        let told = match (self.flush_s, self.compact_s) {
            (Some(_), Some(_)) => "flushed and compacted",
            (Some(_), None) => "flushed, not compacted",
            (None, _) if self.after_load.is_none() => "neither flushed nor compacted by this command",
            (None, _) => "",
        };
        let files = match self.sstables {
            Some(1) => "1 SSTable".to_owned(),
            Some(sstables) => format!("{sstables} SSTables"),
            None => String::new(),
        };
        let command = self.after_load.as_ref().map(|command| format!("`{command}`")).unwrap_or_default();
        [told, &files, &command].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

impl Measured {
    /// The results of a case on a row, from its latencies in microseconds.
    pub fn new(case: &Case, row: Row, columns: u64, latencies_us: Vec<f64>) -> Measured {
        Measured {
            test: case.test.name().into(),
            case: case.id.into(),
            title: case.title.into(),
            table: case.order.table().into(),
            row: row.name.into(),
            width: row.width,
            columns,
            latency_us: Latency::of(latencies_us),
            touched: None,
        }
    }

    /// The index of the row in `ROWS`, if it is one of the two articles' rows.
    pub fn place(&self) -> Option<usize> {
        ROWS.iter().position(|row| row.name == self.row)
    }
}

impl Latency {
    /// From latencies in microseconds.
    pub fn of(mut values: Vec<f64>) -> Latency {
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let at = |place| quantile(&values, place);
        Latency { min: at(0.0), p50: at(0.5), p80: at(0.8), p95: at(0.95), max: at(1.0), mean }
    }
}

impl TouchedMean {
    /// Adds the probe of a query.
    pub fn add(&mut self, probe: &Probe) {
        let touched = &probe.touched;
        self.queries += 1;
        for (sum, count) in [
            (&mut self.memtables, probe.memtables),
            (&mut self.sstables, probe.sstables),
            (&mut self.index_nodes, touched.index_nodes),
            (&mut self.blocks, touched.blocks_cached + touched.blocks_read),
            (&mut self.blocks_read, touched.blocks_read),
            (&mut self.bytes, touched.block_bytes),
            (&mut self.bytes_read, touched.bytes_read),
            (&mut self.rows_decoded, touched.rows_decoded),
        ] {
            *sum += count as f64;
        }
    }

    /// The means of the sums; `None` without a query.
    pub fn mean(mut self) -> Option<TouchedMean> {
        if self.queries == 0 {
            return None;
        }
        for sum in [
            &mut self.memtables,
            &mut self.sstables,
            &mut self.index_nodes,
            &mut self.blocks,
            &mut self.blocks_read,
            &mut self.bytes,
            &mut self.bytes_read,
            &mut self.rows_decoded,
        ] {
            *sum /= self.queries as f64;
        }
        Some(self)
    }
}

impl Passed {
    /// A row that took `took`.
    pub fn new(order: Order, row: Row, took: std::time::Duration) -> Passed {
        Passed {
            table: order.table().into(),
            row: row.name.into(),
            columns: row.width,
            seconds: took.as_secs_f64(),
            columns_per_s: super::progress::rate(row.width, took),
        }
    }
}
