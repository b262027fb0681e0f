//! The command line of `helenus profile`.

use super::cases::Test;
use super::rows::{ROWS, Row};
use super::small_rows::Size;
use crate::commands::access::AccessOptions;
use crate::commands::server_address::{cql_address, rpc_address};
use clap::{Args, Subcommand};
use helenus_server::quantity::parse_mebibytes;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus profile --in-process
  helenus profile --in-process --rows small-row,ten-thousand --cases names --report profile.html
  helenus profile --host localhost --server-data ./data --json helenus.json
  helenus profile --host localhost --after-load 'nodetool flush profile && nodetool compact profile' --json cassandra.json
  helenus profile --rpc localhost --server-data ./data --json rpc.json
  helenus profile --rpc localhost --host localhost --server-data ./data
  helenus profile --in-process --sizes 0.1GB,1GB,10GB --repeats 2000 --report sizes.html
  helenus profile compare cassandra.json helenus.json";

/// Options of `helenus profile`.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES
)]
pub struct ProfileOptions {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// Commands on profiles that were written before.
#[derive(Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Print two profiles side by side, with ratios
    #[command(after_help = "Example:\n  helenus profile compare cassandra.json helenus.json")]
    Compare {
        /// The first profile
        #[arg(value_name = "A.json")]
        first: PathBuf,
        /// The second profile
        #[arg(value_name = "B.json")]
        second: PathBuf,
    },
}

/// Options for making a profile.
#[derive(Args, Clone, Debug)]
pub(super) struct RunOptions {
    /// Profile the engine in this process, below CQL and sockets
    #[arg(long, conflicts_with_all = ["cql", "rpc"])]
    pub in_process: bool,
    /// Profile a CQL server: Helenus, Cassandra [default: HELENUS_HOST, if it is set]
    #[arg(long = "host", alias = "cql", value_name = "HOST[:PORT]", value_parser = cql_address)]
    pub cql: Option<String>,
    #[command(flatten)]
    pub access: AccessOptions,
    /// Profile a server of the RPC interface (Thrift): get_slice with names, start, reversed and count. Together with
    /// --host both read the same tables, with COMPACT STORAGE, and are printed side by side
    #[arg(long, value_name = "HOST[:PORT]", value_parser = rpc_address)]
    pub rpc: Option<String>,
    /// Directory of the database in this process; without it a temporary one, removed at the end
    #[arg(long, value_name = "DIR", requires = "in_process")]
    pub data: Option<PathBuf>,
    /// Block cache of the database in this process, such as 512M; a number alone is MiB
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = parse_mebibytes, conflicts_with_all = ["cql", "rpc"])]
    pub cache: u64,
    /// Rows to load and read, by name; all by default
    #[arg(long, value_enum, value_delimiter = ',')]
    pub rows: Vec<Row>,
    /// Cases to measure; all by default
    #[arg(long, value_enum, value_delimiter = ',')]
    pub cases: Vec<Test>,
    /// Read a table of small rows by key as it grows to these sizes, such as 0.1GB,1GB,10GB. Without --rows and --cases
    /// nothing else is measured
    #[arg(long, value_name = "SIZE", value_delimiter = ',', conflicts_with_all = ["cql", "rpc", "keep"])]
    pub sizes: Vec<Size>,
    /// Number of timed queries for each case and row; the texts took 10
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub repeats: u64,
    /// Number of queries for each case and row before the timed ones. A server in Java needs thousands to get up to
    /// speed
    #[arg(long, default_value_t = 20)]
    pub discard: u64,
    /// Seed of the random pages
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keyspace of the two tables. It is dropped first, unless --keep is given
    #[arg(long, default_value = "profile")]
    pub keyspace: String,
    /// Read the rows that an earlier run has loaded; load only those that are missing
    #[arg(long)]
    pub keep: bool,
    /// Version of the native protocol
    #[arg(long, default_value_t = 4, conflicts_with = "in_process", value_parser = clap::value_parser!(u8).range(3..=5))]
    pub protocol: u8,
    /// Data directory of a Helenus server on this machine, which is then flushed and compacted after the load. Without
    /// it, the server at the address is looked for among those of this user on this machine
    #[arg(long, value_name = "DIR", conflicts_with = "in_process")]
    pub server_data: Option<PathBuf>,
    /// Shell command to run after the load, such as nodetool's flush and compact for a server other than Helenus
    #[arg(long, value_name = "COMMAND")]
    pub after_load: Option<String>,
    /// Name of the subject in results; by default how it was reached
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Write the results as JSON; `-` writes them to standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with curves: one file of HTML that needs no network
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

impl RunOptions {
    /// The rows to read, narrow ones first.
    pub fn wide_rows(&self) -> Vec<Row> {
        let mut rows = if self.rows.is_empty() { ROWS.to_vec() } else { self.rows.clone() };
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Whether the cases of a test are measured.
    pub fn measures(&self, test: Test) -> bool {
        self.cases.is_empty() || self.cases.contains(&test)
    }

    /// Whether wide rows are measured.
    pub fn has_wide_rows(&self) -> bool {
        self.sizes.is_empty() || !self.rows.is_empty() || !self.cases.is_empty()
    }
}
