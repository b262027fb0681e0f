//! The options of `helenus cli`, and the loop over the statements of a script.

use super::session::CliSession;
use super::{lexer, parser};
use crate::commands::access::AccessOptions;
use anyhow::{Context, Result};
use clap::Args;
use std::io::Read;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus cli -f schema.cli                        against 127.0.0.1:9160
  helenus cli --address 127.0.0.1:9160 -k Mailings -f load.cli
  echo 'show keyspaces;' | helenus cli

The server must serve the old interface: helenus serve --rpc 127.0.0.1:9160";

/// Options of `helenus cli`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CliOptions {
    /// Address of the server's RPC interface (Thrift)
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9160")]
    pub address: String,
    #[command(flatten)]
    pub access: AccessOptions,
    /// Script to run; standard input by default
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Keyspace to begin with
    #[arg(short, long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Continue after a statement that fails
    #[arg(long)]
    pub keep_going: bool,
}

/// Runs a script.
///
/// # Errors
/// The server cannot be reached; the first statement that fails, unless `keep_going` is set.
pub fn run(options: &CliOptions) -> Result<()> {
    let script = match &options.file {
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    let mut session = CliSession::open(&options.address, options.access.access()?)?;
    if let Some(keyspace) = &options.keyspace {
        session.use_keyspace(keyspace)?;
    }
    for statement in lexer::statements(&script)? {
        let place = statement.line;
        let done = parser::parse(statement).and_then(|parsed| session.run(&parsed));
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if options.keep_going => eprintln!("line {place}: {error:#}"),
            Err(error) => return Err(error.context(format!("line {place}"))),
        }
    }
    Ok(())
}
