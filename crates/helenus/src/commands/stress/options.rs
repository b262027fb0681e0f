//! The command line of `helenus stress`.

use crate::commands::client::DoorAt;
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use helenus_wire::native::Version;

/// Options of `helenus stress`.
#[derive(Args, Clone, Debug)]
pub struct StressOptions {
    #[command(subcommand)]
    pub(super) kind: Kind,
    #[command(flatten)]
    pub(super) load: LoadOptions,
}

/// What every workload takes.
#[derive(Args, Clone, Debug)]
pub(super) struct LoadOptions {
    /// Server to load
    #[arg(long, global = true, value_name = "IP:PORT", default_value = "127.0.0.1:9042")]
    pub host: String,
    /// Over the old RPC interface at this address, in the place of CQL. Tables are of COMPACT STORAGE then, and CQL reads
    /// and writes the same
    #[arg(long, global = true, value_name = "IP:PORT")]
    pub rpc: Option<String>,
    /// Keyspace of the tables; made if it is not there
    #[arg(long, global = true, default_value = "stress")]
    pub keyspace: String,
    /// Rows written, or rows that are there to be read
    #[arg(long, global = true, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Seconds to run; without it insert and load write each row once, and reads run for 10
    #[arg(long, global = true, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// Seconds to run before anything is measured
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 0.0)]
    pub warmup: f64,
    /// Connections, at most one a request in flight
    #[arg(long, global = true, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// Requests in flight over all connections
    #[arg(long, global = true, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub in_flight: u32,
    /// Threads that share the connections out among them
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Version of the native protocol
    #[arg(long, global = true, default_value_t = 4, value_parser = clap::value_parser!(u8).range(3..=5))]
    pub protocol: u8,
    /// Process of the server, on this machine: its CPU time and memory are reported too
    #[arg(long, global = true, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Drop the keyspace first
    #[arg(long, global = true)]
    pub fresh: bool,
    /// Print the figures as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

impl LoadOptions {
    /// What is loaded.
    pub fn door(&self) -> Result<DoorAt<'_>> {
        match &self.rpc {
            Some(address) => Ok(DoorAt::Rpc(address)),
            None => Ok(DoorAt::Cql(&self.host, Version::from_number(self.protocol, false)?)),
        }
    }
}

/// Options of the mailings.
#[derive(Args, Clone, Debug)]
pub(super) struct MailingsOptions {
    /// Users; the text had 3,660,761
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    pub users: u64,
    /// Users of the second day; the text had 1,576,592. Without it its share of them
    #[arg(long)]
    pub second_day: Option<u64>,
    /// As many users as the text had, on both days
    #[arg(long, conflicts_with_all = ["users", "second_day"])]
    pub as_in_the_text: bool,
    /// Parts to do, in this order; `settle` is flush and compaction
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    pub parts: Vec<Part>,
    /// Data directory of a Helenus server on this machine: it is told to flush and compact after the load. Without it
    /// ./data and servers in memory are looked at for the one at the address
    #[arg(long, value_name = "DIR")]
    pub server_data: Option<std::path::PathBuf>,
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
    Insert {
        /// Into a table with an index on one of the columns
        #[arg(long)]
        indexed: bool,
    },
    /// Read rows that `insert` wrote, by key, all five columns, and compare each value
    Read,
    /// Read rows that `insert --indexed` wrote, by the value that has an index, and compare each
    Find,
    /// Add 1 to the five counters of random rows
    Count,
    /// Load the mailings of an old text, compact them, get each user's email and slice each user's mails, and check all
    Mailings(MailingsOptions),
    /// Write one wide partition, names of 10 bytes and values of 25, in unlogged batches
    Load {
        #[command(flatten)]
        table: WideTable,
        /// Rows a batch
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        batch: u16,
    },
    /// Read slices of the partition that `load` wrote, and compare each row
    Slice {
        #[command(flatten)]
        table: WideTable,
        /// Where slices begin
        #[arg(long, value_enum, default_value_t = Start::Random)]
        start: Start,
        /// From higher names to lower ones, from the end of the partition
        #[arg(long)]
        reversed: bool,
        /// Rows a slice
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=5_000))]
        limit: u16,
    },
    /// Read rows of that partition by name, and compare each
    Names {
        #[command(flatten)]
        table: WideTable,
        /// Names a request
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        names: u16,
        /// Random pages of 1,310 rows (64 KiB in the old texts) that the names of a request are spread over
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        pages: u16,
    },
}

/// Which of the two wide tables.
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

/// Where a slice begins.
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
