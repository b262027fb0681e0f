//! The options of `helenus shell`.

use super::output::Format;
use crate::commands::access::TlsOptions;
use clap::Args;
use helenus_wire::native::Version;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  helenus shell                                     type statements; HELP lists the shell's own commands
  helenus shell 10.0.0.7 9142 -k feed               another server, and a keyspace to begin with
  helenus shell -e \"SELECT * FROM feed.timeline LIMIT 5\" --format json
  helenus shell -f schema.cql --stop-on-error       exit code 1 if a statement fails
  helenus shell -e \"COPY feed.timeline FROM 'timeline.csv' WITH HEADER = true\"

It speaks to Helenus and to any Cassandra (native protocol v3 to v5).";

/// The server to connect to, the statements to run, and the form of results.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct ShellOptions {
    /// Server, as HOST or HOST:PORT [default: 127.0.0.1]
    #[arg(value_name = "HOST", env = "CQLSH_HOST")]
    pub host: Option<String>,
    /// Port of the server, if HOST does not contain it [default: 9042]
    #[arg(value_name = "PORT", env = "CQLSH_PORT")]
    pub port: Option<u16>,
    /// Run these statements and end
    #[arg(short, long, value_name = "STATEMENTS", conflicts_with = "file")]
    pub execute: Option<String>,
    /// Run the statements of a file and end; `-` is the standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Keyspace of unqualified names
    #[arg(short, long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Log in as this user (SASL PLAIN)
    #[arg(short, long, value_name = "NAME")]
    pub username: Option<String>,
    /// Password; other users of this machine see it in the list of processes, so better use --password-file,
    /// HELENUS_PASSWORD or cqlsh's credentials file. Asked for at a terminal if there is none
    #[arg(short, long, value_name = "PASSWORD", requires = "username")]
    pub password: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "username", conflicts_with = "password")]
    pub password_file: Option<PathBuf>,
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
    /// Seconds to wait for an answer [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
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
}

impl ShellOptions {
    /// The address as `HOST:PORT`. An IPv6 address is in brackets.
    pub fn address(&self) -> String {
        let (host, port) = (self.host.as_deref().unwrap_or("127.0.0.1").trim(), self.port.unwrap_or(9042));
        let has_port = match host.rsplit_once(':') {
            Some((before, port)) => {
                !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && !before.contains(':')
                    || before.ends_with(']')
            }
            None => false,
        };
        match (has_port, host.contains(':') && !host.starts_with('[')) {
            (true, _) => host.to_owned(),
            (false, true) => format!("[{host}]:{port}"),
            (false, false) => format!("{host}:{port}"),
        }
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
