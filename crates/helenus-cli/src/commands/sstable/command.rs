//! The command line of `helenus sstable`.

use super::{dump, ls, metadata, partitions, scrub, upgrade_split, verify};
use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use helenus_host::Host;

const EXAMPLES: &str = "Examples:
  helenus sstable ls data
  helenus sstable dump data/shop/orders-*/da-*-Data.db | head
  helenus sstable verify data

Files are read where they lie; nothing here needs a server or a schema. A server that runs on the directory may remove
files while they are read: copy them, or stop it.";

/// Defines the command.
pub fn command() -> Command {
    let options = [
        // `about` must follow `augment_args`, which would otherwise replace it by the documentation of the struct.
        ls::LsOptions::augment_args(Command::new("ls"))
            .about("List SSTables: whose, which version, how large"),
        dump::DumpOptions::augment_args(Command::new("dump"))
            .about("Print everything that SSTables hold, as JSON"),
        metadata::MetadataOptions::augment_args(Command::new("metadata"))
            .about("Print what Statistics.db says of SSTables"),
        partitions::PartitionsOptions::augment_args(Command::new("partitions"))
            .about("Print the sizes of partitions, and name the large ones"),
        verify::VerifyOptions::augment_args(Command::new("verify"))
            .about("Read SSTables whole and say what is wrong"),
        scrub::ScrubOptions::augment_args(Command::new("scrub"))
            .about("Write damaged SSTables anew, with everything that can be read"),
        upgrade_split::UpgradeOptions::augment_args(Command::new("upgrade"))
            .about("Write SSTables anew, in another version"),
        upgrade_split::SplitOptions::augment_args(Command::new("split"))
            .about("Write SSTables anew, in smaller ones"),
    ];
    Command::new("sstable")
        .about("Look at SSTables, check them and write them anew")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(options)
}

/// Runs the subcommand.
///
/// # Errors
/// Errors of the subcommand.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let host = helenus_host::real::host();
    match matches.subcommand() {
        Some(("ls", matches)) => with(matches, &host, ls::run),
        Some(("dump", matches)) => with(matches, &host, dump::run),
        Some(("metadata", matches)) => with(matches, &host, metadata::run),
        Some(("partitions", matches)) => with(matches, &host, partitions::run),
        Some(("upgrade", matches)) => with(matches, &host, upgrade_split::upgrade),
        Some(("split", matches)) => with(matches, &host, upgrade_split::split),
        Some(("verify", matches)) => with(matches, &host, verify::run),
        Some(("scrub", matches)) => with(matches, &host, scrub::run),
        _ => bail!("no command"),
    }
}

fn with<O: FromArgMatches>(
    matches: &ArgMatches,
    host: &Host,
    run: impl FnOnce(&Host, &O) -> Result<()>,
) -> Result<()> {
    match O::from_arg_matches(matches) {
        Ok(options) => run(host, &options),
        Err(error) => error.exit(),
    }
}
