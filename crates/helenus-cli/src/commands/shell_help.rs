//! Shell completions and manual pages, generated from the definition of the command line so that they always match it.

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use helenus_cql::counted;
use std::io::Write;
use std::path::Path;

/// Defines `helenus completions`.
pub fn completions() -> Command {
    let shell = Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell));
    Command::new("completions")
        .about("Print completions of the command line for a shell")
        .after_help(
            "Examples:
  helenus completions bash > ~/.local/share/bash-completion/completions/helenus
  helenus completions zsh > ~/.zfunc/_helenus
  helenus completions fish > ~/.config/fish/completions/helenus.fish",
        )
        .arg(shell.help("Which shell"))
}

/// Defines `helenus man`.
pub fn man() -> Command {
    Command::new("man")
        .about("Write manual pages, one a command")
        .after_help(
            "Example:
  helenus man /usr/local/share/man/man1; man helenus-admin-tablestats",
        )
        .arg(
            Arg::new("directory").value_name("DIR").required(true).help("The folder to write, which is made"),
        )
}

/// Prints completions.
///
/// # Errors
/// Failures of writing.
pub fn run_completions(matches: &ArgMatches, mut all: Command) -> Result<()> {
    let Some(shell) = matches.get_one::<Shell>("shell") else { return Ok(()) };
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut all, "helenus", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(())
}

/// Writes the pages: `helenus.1`, `helenus-serve.1`, `helenus-admin-status.1` and so on.
///
/// # Errors
/// Failures of writing.
pub fn run_man(matches: &ArgMatches, mut all: Command) -> Result<()> {
    let Some(directory) = matches.get_one::<String>("directory").map(Path::new) else { return Ok(()) };
    all.build();
    // Manual pages are for all users of a machine, so the umask decides their permissions.
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut pages = Vec::new();
    render(&all, "helenus", &mut pages)?;
    for (name, page) in &pages {
        let path = directory.join(format!("{name}.1"));
        let made = std::fs::File::options().write(true).create_new(true).open(&path);
        made.and_then(|mut file| file.write_all(page))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    writeln!(std::io::stdout(), "written     {} to {}", counted(pages.len(), "page"), directory.display())?;
    Ok(())
}

fn render(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let mut page = Vec::new();
    let title = name.to_owned();
    clap_mangen::Man::new(command.clone().name(title.clone()).display_name(title)).render(&mut page)?;
    pages.push((name.to_owned(), page));
    let shown =
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in shown {
        render(command, &format!("{name}-{}", command.get_name()), pages)?;
    }
    Ok(())
}
