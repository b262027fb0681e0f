//! The one binary: a server, and the tools around it.
//!
//! Exit codes: 0 done, 1 it failed, 2 the command line or the configuration is wrong.

mod commands;

use clap::{Args, Command, FromArgMatches};
use commands::cli::{self, CliOptions};
use commands::export::{self, ExportCommand};
use commands::import::{self, ImportCommand};
use commands::profile::{self, ProfileOptions};
use commands::stress::{self, StressOptions};
use commands::{admin, serve, sstable};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ABOUT: &str =
    "A wide-column database that speaks Cassandra's CQL and keeps Cassandra's files, in one small program";

const EXAMPLES: &str = "Examples:
  helenus serve                          data in ./data, clients on 127.0.0.1:9042
  helenus serve --memory --listen 127.0.0.1:0
  helenus admin status";

fn command_line() -> Command {
    let stress = StressOptions::augment_args(Command::new("stress")).about("Load a server and measure it");
    let profile = ProfileOptions::augment_args(Command::new("profile"))
        .about("Measure reads of wide rows, and check them");
    let cli = CliOptions::augment_args(Command::new("cli"))
        .about("Run statements of the old command-line client over the RPC interface");
    let import =
        ImportCommand::augment_args(Command::new("import")).about("Take the SSTables of a Cassandra node in");
    let export = ExportCommand::augment_args(Command::new("export"))
        .about("Write tables as files for another database");
    Command::new("helenus")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(admin::command())
        .subcommand(cli)
        .subcommand(sstable::command())
        .subcommand(import)
        .subcommand(export)
        .subcommand(stress)
        .subcommand(profile)
}

fn main() -> ExitCode {
    let matches = command_line().get_matches();
    let done = match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("admin", matches)) => admin::run(matches),
        Some(("sstable", matches)) => sstable::run(matches),
        Some(("import", matches)) => match ImportCommand::from_arg_matches(matches) {
            Ok(command) => import::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("export", matches)) => match ExportCommand::from_arg_matches(matches) {
            Ok(command) => export::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("stress", matches)) => match StressOptions::from_arg_matches(matches) {
            Ok(options) => stress::run(&options),
            Err(error) => error.exit(),
        },
        Some(("cli", matches)) => match CliOptions::from_arg_matches(matches) {
            Ok(options) => cli::run(&options),
            Err(error) => error.exit(),
        },
        Some(("profile", matches)) => match ProfileOptions::from_arg_matches(matches) {
            Ok(options) => profile::run(&options),
            Err(error) => error.exit(),
        },
        _ => return ExitCode::from(2),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus: {}", text_of(&error));
            let wrong_use = error.downcast_ref::<helenus_server::config::ConfigError>().is_some();
            ExitCode::from(if wrong_use { 2 } else { 1 })
        }
    }
}

/// An error with its causes, but for those that the text before them tells already.
fn text_of(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}
