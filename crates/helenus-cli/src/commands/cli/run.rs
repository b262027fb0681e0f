//! The options of `helenus cli`, and the loop over the statements of a script.

use super::session::CliSession;
use super::{lexer, parser};
use crate::commands::access::AccessOptions;
use crate::commands::server_address::{of_environment, rpc_address, rpc_beside};
use anyhow::{Context, Result};
use clap::Args;
use std::io::Read;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus cli -f schema.cli                        against 127.0.0.1:9160
  helenus cli --host db.example:9160 -k Mailings -f load.cli
  echo 'show keyspaces;' | helenus cli

The server must serve the old interface: helenus serve --rpc localhost";

/// Options of `helenus cli`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CliOptions {
    /// Server of the RPC interface (Thrift) [default: the host in HELENUS_HOST, else 127.0.0.1; port 9160]
    #[arg(long, alias = "address", value_name = "HOST[:PORT]", value_parser = rpc_address)]
    pub host: Option<String>,
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
    let address = match &options.host {
        Some(address) => address.clone(),
        None => rpc_beside(&of_environment()?.map(|address| address.to_string()).unwrap_or_default()),
    };
    let mut session = CliSession::open(&address, options.access.access()?)?;
    if let Some(keyspace) = &options.keyspace {
        session.use_keyspace(keyspace)?;
    }
    for statement in lexer::statements(&script)? {
        let place = statement.line;
        let done = parser::parse(statement).and_then(|parsed| session.run(&parsed));
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if options.keep_going && !crate::is_broken_pipe(&error) => {
                note!("line {place}: {error:#}")
            }
            Err(error) => return Err(error.context(format!("line {place}"))),
        }
    }
    Ok(())
}
