//! `cqlsh`: the shell, with the options of cqlsh 6.2 that the shell itself does not have.

use crate::commands::shell::{self, ShellOptions};
use anyhow::Result;
use clap::{Arg, ArgAction, Args, Command, FromArgMatches};
use std::ffi::OsString;

/// The version of cqlsh in Cassandra 5.0, which scripts read (`cqlshlib/cqlshmain.py`, `version`).
const VERSION: &str = "6.2.0";

/// Flags of cqlsh about its Python, its driver and its browser: accepted, and without effect here.
const WITHOUT_EFFECT: [&str; 4] = ["debug", "coverage", "no_compact", "no-file-io"];
/// The same with a value.
const WITHOUT_EFFECT_VALUES: [&str; 4] = ["browser", "encoding", "cqlversion", "connect-timeout"];

/// Runs the shell.
///
/// # Errors
/// As [`shell::run`].
pub fn run(words: Vec<OsString>) -> Result<()> {
    let matches = command().get_matches_from(std::iter::once("cqlsh".into()).chain(words));
    match ShellOptions::from_arg_matches(&matches) {
        Ok(options) => shell::run(&options),
        Err(error) => error.exit(),
    }
}

fn command() -> Command {
    let flags =
        WITHOUT_EFFECT.iter().map(|name| Arg::new(*name).long(*name).action(ArgAction::SetTrue).hide(true));
    let values = WITHOUT_EFFECT_VALUES.iter().map(|name| Arg::new(*name).long(*name).num_args(1).hide(true));
    let version = Arg::new("version").short('v').long("version").action(ArgAction::Version);
    ShellOptions::augment_args(Command::new("cqlsh"))
        .version(VERSION)
        .disable_version_flag(true)
        .arg(version.help("Print the version of cqlsh whose options it has"))
        .args(flags)
        .args(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> ShellOptions {
        let matches = command().get_matches_from(std::iter::once("cqlsh").chain(words.iter().copied()));
        ShellOptions::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn the_command_lines_of_test_tools_are_understood() {
        command().debug_assert();
        let found = options(&["-u", "cassandra", "-p", "cassandra", "-e", "SELECT now() FROM system.local"]);
        assert_eq!(found.username.as_deref(), Some("cassandra"));
        assert_eq!(found.execute.as_deref(), Some("SELECT now() FROM system.local"));
        let found = options(&[
            "--debug",
            "--cqlversion=3.4.7",
            "--encoding",
            "utf8",
            "db",
            "9142",
            "--file",
            "/a.cql",
        ]);
        assert_eq!((found.address().as_str(), found.file.is_some()), ("db:9142", true));
    }
}
