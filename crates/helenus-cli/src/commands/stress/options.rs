//! The command line of `helenus stress`.

use super::interface::Interface;
use super::interrupt::Interrupt;
use crate::commands::access::AccessOptions;
use crate::commands::client::Endpoint;
use crate::commands::server_address::{VARIABLE, cql_address, rpc_address, rpc_beside};
use anyhow::{Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use helenus_server::quantity::parse_seconds;
use helenus_wire::native::Version;
use std::path::PathBuf;
use std::sync::OnceLock;

const EXAMPLES: &str = "Examples:
  helenus stress insert --rows 1000000
  helenus stress read --rows 1000000 --duration 30s --warmup 5s --report read.html
  helenus stress read --rate 20000 --duration 1m --json=before.json
  helenus stress insert --over rpc --rpc localhost
  helenus stress interfaces --rpc localhost --rows 1000000
  helenus stress run shop.toml --duration 1m
  helenus stress compare before.json after.json

docs/book/stress.md says what is measured and how.";

/// Options of `helenus stress`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct StressOptions {
    #[command(subcommand)]
    pub(super) kind: Kind,
    #[command(flatten)]
    pub(super) load: LoadOptions,
}

/// Options of every workload.
#[derive(Args, Clone, Debug)]
pub(super) struct LoadOptions {
    /// Server to load
    #[arg(long, global = true, value_name = "HOST[:PORT]", default_value = "127.0.0.1:9042", env = VARIABLE, value_parser = cql_address)]
    pub host: String,
    #[command(flatten)]
    pub access: AccessOptions,
    /// Use the RPC interface (Thrift) at this address instead of CQL. Its tables have COMPACT STORAGE, and CQL reads
    /// and writes the same ones
    #[arg(long, global = true, value_name = "HOST[:PORT]", value_parser = rpc_address)]
    pub rpc: Option<String>,
    /// Interface of the requests; `prepared`, or `rpc` if --rpc is given
    #[arg(long, global = true, value_enum)]
    pub over: Option<Interface>,
    /// Keyspace of the tables; created if it does not exist
    #[arg(long, global = true, default_value = "stress")]
    pub keyspace: String,
    /// Number of rows to write, or of existing rows to read
    #[arg(long, global = true, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Time to run, such as 30s or 2m; by default insert and load write each row once, and reads run for 10s
    #[arg(long, global = true, value_name = "DURATION", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Requests to send; by default as many as the duration allows
    #[arg(long, global = true, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Requests a second over all connections, sent when they are due whatever the server does; latencies count from
    /// that time. By default each answer is followed by the next request
    #[arg(long, global = true, value_name = "PER_SECOND", value_parser = rate)]
    pub rate: Option<f64>,
    /// Time to run before anything is measured
    #[arg(long, global = true, value_name = "DURATION", default_value = "0s", value_parser = seconds)]
    pub warmup: f64,
    /// Number of connections, at most one for each request in flight
    #[arg(long, global = true, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// Requests in flight over all connections
    #[arg(long, global = true, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub in_flight: u32,
    /// Number of threads, which share the connections
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Version of the native protocol
    #[arg(long, global = true, default_value_t = 4, value_parser = clap::value_parser!(u8).range(3..=5))]
    pub protocol: u8,
    /// Process id of the server on this machine: its CPU time and memory are reported too
    #[arg(long, global = true, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Drop the keyspace first
    #[arg(long, global = true)]
    pub fresh: bool,
    /// Print the results as JSON instead of progress and table; with `=FILE` write them there
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write a page with throughput and latency over time and histograms: one file of HTML that needs no network
    #[arg(long, global = true, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Name of the run in its results
    #[arg(long, global = true, value_name = "TEXT")]
    pub label: Option<String>,
    /// Show no progress
    #[arg(long, global = true)]
    pub quiet: bool,
    #[arg(skip)]
    pub interrupt: Interrupt,
    /// The RPC interface of `host`, for `--over rpc` without `--rpc`.
    #[arg(skip)]
    pub rpc_beside: OnceLock<String>,
}

/// Parses a duration, or a number of seconds. The result is in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    parse_seconds(text).map(|time| time.as_secs_f64())
}

/// Parses a rate, between 0 and 1e8 requests a second.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e8 => Ok(rate),
        _ => Err("a number of requests a second above 0, as 20000 or 0.5".to_owned()),
    }
}

impl LoadOptions {
    /// The interface that is loaded.
    pub fn interface(&self) -> Interface {
        let without = if self.rpc.is_some() { Interface::Rpc } else { Interface::Prepared };
        self.over.unwrap_or(without)
    }

    /// The address and protocol of the loaded server.
    pub fn endpoint(&self) -> Result<Endpoint<'_>> {
        let access = self.access.access()?;
        if self.interface().is_rpc() {
            let beside = || self.rpc_beside.get_or_init(|| rpc_beside(&self.host));
            return Ok(Endpoint::Rpc(self.rpc.as_ref().unwrap_or_else(beside), access));
        }
        Ok(Endpoint::Cql(&self.host, Version::from_number(self.protocol, false)?, access))
    }

    /// Refuses an interface that a workload does not support.
    pub fn ensure_known(&self, workload: &str, known: &[Interface]) -> Result<()> {
        let interface = self.interface();
        let names = || known.iter().map(|one| one.title()).collect::<Vec<_>>().join(" or ");
        ensure!(
            known.contains(&interface),
            "`stress {workload}` goes over {}, not over {}: leave --over out, or measure insert, read, find or count",
            names(),
            interface.title()
        );
        Ok(())
    }

    /// Whether progress is shown on a terminal: not if the results are printed as JSON.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && !self.prints_json()
    }

    /// Whether the results go to standard output as JSON.
    pub fn prints_json(&self) -> bool {
        self.json.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// Options of `interfaces`.
#[derive(Args, Clone, Debug)]
pub(super) struct InterfacesOptions {
    /// Interfaces to compare, the first of them with the others; by default all that can be reached: CQL and CQL
    /// prepared, and with --rpc also RPC and CQL 2
    #[arg(long, value_enum, value_delimiter = ',')]
    pub interfaces: Vec<Interface>,
    /// Tests to run, in this order
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Test::ALL)]
    pub tests: Vec<Test>,
    /// Number of runs of each test over each interface, in turn; the run of median rate is shown
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: u16,
    /// As many rows as "CQL benchmarking" (2011) had: 20 million, and 10 million with an index and of counters
    #[arg(long)]
    pub as_in_the_text: bool,
    /// Data directory of a Helenus server on this machine, which is then flushed and compacted before the reads.
    /// Without it, the server at the address is looked for among those of this user on this machine
    #[arg(long, value_name = "DIR")]
    pub server_data: Option<PathBuf>,
}

/// One of the four tests.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Rows of five columns
    Insert,
    /// The same with an index on one of the columns
    Indexed,
    /// Increments of five counters
    Count,
    /// Reads of the rows
    Read,
}

impl Test {
    const ALL: [Test; 4] = [Test::Insert, Test::Indexed, Test::Count, Test::Read];
}

/// Options of `mailings`.
#[derive(Args, Clone, Debug)]
pub(super) struct MailingsOptions {
    /// Number of users; the text had 3,660,761
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    pub users: u64,
    /// Number of users with mail on the second day; the text had 1,576,592. By default the same share
    #[arg(long)]
    pub second_day: Option<u64>,
    /// As many users as the text had, on both days
    #[arg(long, conflicts_with_all = ["users", "second_day"])]
    pub as_in_the_text: bool,
    /// Parts to run, in this order; `settle` is flush and compaction
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    pub parts: Vec<Part>,
    /// Data directory of a Helenus server on this machine, which is then flushed and compacted after the load. Without
    /// it, the server at the address is looked for among those of this user on this machine
    #[arg(long, value_name = "DIR")]
    pub server_data: Option<PathBuf>,
}

/// A part of the mailings.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The mails of both days
    Load,
    /// Flush and compact, with the bytes on disk before and after
    Settle,
    /// Get each user's email
    Get,
    /// Slice each user's mails between two dates, and count them
    Slice,
}

impl Part {
    const ALL: [Part; 4] = [Part::Load, Part::Settle, Part::Get, Part::Slice];
}

/// The workloads.
#[derive(Subcommand, Clone, Debug)]
pub(super) enum Kind {
    /// Write rows of five columns: keys of 7 bytes, values of 34
    #[command(after_help = "Example:\n  helenus stress insert --rows 1000000 --fresh")]
    Insert {
        /// Into a table with an index on one of the columns
        #[arg(long)]
        indexed: bool,
    },
    /// Read rows that `insert` wrote, by key, all five columns, and compare each value
    #[command(
        after_help = "Example:\n  helenus stress read --rows 1000000 --rate 20000 --duration 1m --report read.html"
    )]
    Read,
    /// Read rows that `insert --indexed` wrote, by the value that has an index, and compare each
    #[command(after_help = "Example:\n  helenus stress insert --indexed; helenus stress find --duration 30s")]
    Find,
    /// Add 1 to the five counters of random rows
    #[command(after_help = "Example:\n  helenus stress count --rows 100000 --duration 30s")]
    Count {
        /// To one of them a request: `add` over RPC
        #[arg(long)]
        single: bool,
    },
    /// Four tests over every interface of a server, side by side: insert, insert with an index, count, read
    #[command(
        after_help = "Example:\n  helenus stress interfaces --rpc localhost --rows 1000000 --runs 3 --report interfaces.html"
    )]
    Interfaces(InterfacesOptions),
    /// Run the statements of a file, with generated values
    #[command(after_help = "Example:\n  helenus stress run shop.toml --duration 1m")]
    Run {
        /// The file, in TOML
        #[arg(value_name = "FILE.toml")]
        file: PathBuf,
    },
    /// Print two results side by side, with ratios
    #[command(after_help = "Example:\n  helenus stress compare before.json after.json")]
    Compare {
        /// The first results
        #[arg(value_name = "A.json")]
        first: PathBuf,
        /// The second results; the ratios are second to first
        #[arg(value_name = "B.json")]
        second: PathBuf,
    },
    /// Load the mailings of "First Experience With Cassandra" (2009), compact them, get each user's email and slice
    /// each user's mails, and check all answers
    #[command(after_help = "Example:\n  helenus stress mailings --users 200000 --server-data ./data")]
    Mailings(MailingsOptions),
    /// Write one wide partition, names of 10 bytes and values of 25, in unlogged batches
    #[command(after_help = "Example:\n  helenus stress load --rows 1000000 --batch 100")]
    Load {
        #[command(flatten)]
        table: WideTable,
        /// Rows a batch
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        batch: u16,
    },
    /// Read slices of the partition that `load` wrote, and compare each row
    #[command(after_help = "Example:\n  helenus stress slice --rows 1000000 --limit 100 --reversed")]
    Slice {
        #[command(flatten)]
        table: WideTable,
        /// Start of the slices
        #[arg(long, value_enum, default_value_t = Start::Random)]
        start: Start,
        /// Read from higher names to lower ones, from the end of the partition
        #[arg(long)]
        reversed: bool,
        /// Rows a slice
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=5_000))]
        limit: u16,
    },
    /// Read rows of that partition by name, and compare each
    #[command(after_help = "Example:\n  helenus stress names --rows 1000000 --names 100 --pages 100")]
    Names {
        #[command(flatten)]
        table: WideTable,
        /// Names a request
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        names: u16,
        /// Random pages of 1,310 rows (64 KiB in "Cassandra Query Plans") that the names of a request are spread over
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        pages: u16,
    },
}

/// The choice between the two wide tables.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct WideTable {
    /// Clustering order of the table
    #[arg(long, value_enum, default_value_t = Order::Asc)]
    pub order: Order,
}

/// A clustering order.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The table `ascending`
    Asc,
    /// The table `reversed`
    Desc,
}

/// The start of a slice.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// No bound: the first rows in the direction of the slice
    First,
    /// Half way
    Middle,
    /// So that the last rows are read
    Last,
    /// Anywhere
    Random,
}
