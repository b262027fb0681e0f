//! The options of `helenus shell`.

use super::output::Format;
use crate::commands::access::TlsOptions;
use crate::commands::passwords::USER_VARIABLE;
use crate::commands::server_address::{CQL_PORT, VARIABLE};
use anyhow::{Context, Result};
use clap::Args;
use helenus_server::address::Address;
use helenus_server::quantity::parse_seconds;
use helenus_wire::native::Version;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  helenus shell                                     type statements; HELP lists the shell's own commands
  helenus shell db.example:9142 -k feed             another server, and a keyspace to begin with
  helenus shell --data ./data                       a directory, without a server
  helenus shell --memory                            an empty database that ends with the shell
  helenus shell --sstables backup/monday            a backup, an export, a snapshot or the data of a node, where it lies
  helenus shell -e \"SELECT * FROM feed.timeline LIMIT 5\" --format json
  helenus shell -f schema.cql --stop-on-error       exit code 1 if a statement fails
  helenus shell -e \"COPY feed.timeline FROM 'timeline.csv' WITH HEADER = true\"

It speaks to Helenus and to any Cassandra (native protocol v3 to v5).";

/// The server to connect to, the statements to run, and the form of results.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct ShellOptions {
    /// Server, as --host
    #[arg(value_name = "HOST[:PORT]", conflicts_with = "host")]
    pub server: Option<Address>,
    /// Port of the server, as in cqlsh's command line
    #[arg(value_name = "PORT", conflicts_with = "host")]
    pub port: Option<u16>,
    /// Server [default: HELENUS_HOST, else CQLSH_HOST and CQLSH_PORT, else the file of defaults, else 127.0.0.1:9042]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub host: Option<Address>,
    /// Open this directory in the shell itself, without a server; it is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host", "server", "port", "memory", "username"])]
    pub data: Option<PathBuf>,
    /// An empty database in memory, without a server; it ends with the shell
    #[arg(long, conflicts_with_all = ["host", "server", "port", "username"])]
    pub memory: bool,
    /// Read the SSTables of this folder where they are, by their own schema, without a server: a backup, an export, a snapshot, or the
    /// data directory of a node that is stopped. What is written is kept in memory and ends with the shell
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host", "server", "port", "memory", "data", "username"])]
    pub sstables: Option<PathBuf>,
    /// A file of statements that create the schema of --sstables, if the folder has none
    #[arg(long, value_name = "FILE", requires = "sstables")]
    pub schema: Option<PathBuf>,
    /// Run these statements and end
    #[arg(short, long, value_name = "STATEMENTS", conflicts_with = "file")]
    pub execute: Option<String>,
    /// Run the statements of a file and end; `-` is the standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Keyspace of unqualified names
    #[arg(short, long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Log in as this user (SASL PLAIN) [default: HELENUS_USERNAME, else cqlsh's file of defaults]
    #[arg(short, long, value_name = "NAME")]
    pub username: Option<String>,
    /// Password; other users of this machine see it in the list of processes, so better use --password-file,
    /// HELENUS_PASSWORD or cqlsh's credentials file. Asked for at a terminal if there is none
    #[arg(short, long, value_name = "PASSWORD", requires = "username")]
    pub password: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "username", conflicts_with = "password")]
    pub password_file: Option<PathBuf>,
    /// File with user and password, as cqlsh's [default: ~/.cassandra/credentials, if it exists]
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// No warning of a password on the command line
    #[arg(long, hide = true)]
    pub insecure_password_without_warning: bool,
    /// How results are shown: json is one object a line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// End at the first statement that fails; the exit code is 1 after a failure in any case
    #[arg(long)]
    pub stop_on_error: bool,
    /// Use colours although the output is no terminal
    #[arg(short = 'C', long, conflicts_with = "no_color")]
    pub color: bool,
    /// No colours
    #[arg(long, env = "NO_COLOR", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_color: bool,
    /// Prompt and edit lines although the input is no terminal
    #[arg(short, long)]
    pub tty: bool,
    /// Rows to request at a time, and to show at a time on a terminal
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(i32).range(1..))]
    pub page_size: i32,
    /// Time to wait for an answer, in seconds or such as 2m [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = whole_seconds)]
    pub request_timeout: Option<u64>,
    /// Version of the native protocol; the newest that the server speaks by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(3..=5))]
    pub protocol_version: Option<u8>,
    /// Do not write statements to the history file
    #[arg(long)]
    pub disable_history: bool,
    /// File of defaults [default: ~/.cassandra/cqlshrc, if it exists]
    #[arg(long, value_name = "FILE")]
    pub cqlshrc: Option<PathBuf>,
    #[command(flatten)]
    pub tls: TlsOptions,
    /// The password, where the server itself runs the shell.
    #[arg(skip)]
    pub own_password: Option<String>,
}

/// Parses a duration, or a number of seconds. The result is in seconds, at least one.
fn whole_seconds(text: &str) -> Result<u64, String> {
    match parse_seconds(text)? {
        Duration::ZERO => Err("at least 1s".to_owned()),
        time => Ok(time.as_secs() + u64::from(time.subsec_nanos() > 0)),
    }
}

impl ShellOptions {
    /// Takes over the server that the environment names, for what the command line leaves open.
    ///
    /// # Errors
    /// A variable is no address or no port.
    pub fn read_environment(&mut self, variable: &dyn Fn(&str) -> Option<String>) -> Result<()> {
        let address = |name: &str| -> Result<Option<Address>> {
            let text = variable(name).filter(|text| !text.is_empty());
            let parsed = text.map(|text| text.parse()).transpose();
            parsed.with_context(|| format!("the environment variable {name}"))
        };
        self.host = self.host.take().or(self.server.take());
        let of_cqlsh = variable("CQLSH_PORT").filter(|text| !text.is_empty()).map(|text| text.parse());
        let port = of_cqlsh
            .transpose()
            .context("the environment variable CQLSH_PORT: give a port from 0 to 65535")?;
        if self.host.is_none() {
            self.host =
                address(VARIABLE)?.map(|address| address.or_port(CQL_PORT)).or(address("CQLSH_HOST")?);
        }
        self.port = self.port.or(port);
        if self.username.is_none() && self.data.is_none() && self.sstables.is_none() && !self.memory {
            self.username = variable(USER_VARIABLE).filter(|text| !text.is_empty());
        }
        Ok(())
    }

    /// The address as `HOST:PORT`. An IPv6 address is in brackets.
    pub fn address(&self) -> String {
        let port = self.port.unwrap_or(CQL_PORT);
        let given = self.host.as_ref().or(self.server.as_ref());
        given.map_or_else(|| format!("127.0.0.1:{port}"), |address| address.with_port(port))
    }

    /// The maximum time to wait for an answer.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.request_timeout.unwrap_or(10).max(1))
    }

    /// The options of a command line.
    #[cfg(test)]
    pub fn of(args: &[&str]) -> ShellOptions {
        use clap::{Command, FromArgMatches};
        let command = ShellOptions::augment_args(Command::new("shell"));
        let matches = command.get_matches_from(std::iter::once("shell").chain(args.iter().copied()));
        ShellOptions::from_arg_matches(&matches).unwrap()
    }

    /// The requested protocol version, if any.
    pub fn version(&self) -> Option<Version> {
        Version::ALL.into_iter().find(|version| Some(version.number()) == self.protocol_version)
    }
}
