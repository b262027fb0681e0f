//! The `helenus` binary: a server, and the tools for it.
//!
//! Exit codes: 0 success, 1 failure, 2 a wrong command line or configuration.

#[macro_use]
mod print;

mod commands;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches};
use commands::backup::{self, BackupCommand};
use commands::cert::{self, CertCommand};
use commands::changes::{self, ChangesCommand};
use commands::cli::{self, CliOptions};
use commands::container;
use commands::export::{self, ExportCommand};
use commands::import::{self, ImportCommand};
use commands::moving::MoveCommand;
use commands::profile::{self, ProfileOptions};
use commands::pull::PullCommand;
use commands::restore::{self, RestoreCommand};
use commands::shell::{self, ShellOptions};
use commands::stress::{self, StressOptions};
use commands::{admin, moving, pull, serve, shell_help, sstable};
use helenus_host::account::Metered;
use std::io::Write;
use std::process::ExitCode;

#[cfg(not(feature = "watch"))]
#[global_allocator]
static ALLOCATOR: Metered<mimalloc::MiMalloc> = Metered(mimalloc::MiMalloc);

#[cfg(feature = "watch")]
#[global_allocator]
static ALLOCATOR: helenus_host::account::Watched<mimalloc::MiMalloc> =
    helenus_host::account::Watched(Metered(mimalloc::MiMalloc));

/// Milliseconds that the allocator keeps freed memory before it returns it to the system. With the allocator's default
/// of one second, a server under requests of seven megabytes held up to 100 MiB more; inserts of small rows were
/// equally fast with both.
const FREED_MEMORY_KEPT_MS: u32 = 100;

const ABOUT: &str =
    "A wide-column database that speaks Cassandra's CQL and keeps Cassandra's files, in one small program";

const EXAMPLES: &str = "Examples:
  helenus serve                          data in ./data, clients on 127.0.0.1:9042
  helenus serve --memory --listen 127.0.0.1:0
  helenus admin status";

/// Commands whose files contain data of a database, or statements typed by the user. These files are readable by their
/// owner only, whatever the umask.
const KEEPS_DATA: [&str; 12] = [
    "cert", "changes", "move", "pull", "serve", "shell", "cli", "backup", "restore", "sstable", "import",
    "export",
];

/// The version, the commit that it was built from, and the features that not every build has.
fn version() -> String {
    let analysis = if cfg!(feature = "analysis") { "with" } else { "without" };
    let (version, from) = (env!("CARGO_PKG_VERSION"), env!("HELENUS_BUILT_FROM"));
    format!("{version} ({from}; {analysis} feature analysis: Parquet and Arrow)")
}

/// `-V`, `--version`, and what other programs call it: `-v`.
fn version_option() -> Arg {
    let option = Arg::new("version").short('V').short_alias('v').long("version");
    option.action(ArgAction::Version).help("Print version")
}

fn command_line() -> Command {
    let stress = StressOptions::augment_args(Command::new("stress")).about("Load a server and measure it");
    let profile = ProfileOptions::augment_args(Command::new("profile"))
        .about("Measure reads of wide rows, and check them");
    let cli = CliOptions::augment_args(Command::new("cli"))
        .about("Run statements of the old command-line client over the RPC interface");
    let shell = ShellOptions::augment_args(Command::new("shell"))
        .about("Type CQL statements, or run them from files");
    let import =
        ImportCommand::augment_args(Command::new("import")).about("Take the SSTables of a Cassandra node in");
    let export = ExportCommand::augment_args(Command::new("export"))
        .about("Write tables as files for another database");
    let backup = BackupCommand::augment_args(Command::new("backup"))
        .about("Take a backup of schema and data while the server goes on");
    let restore = RestoreCommand::augment_args(Command::new("restore")).about("Take a backup back");
    let changes = ChangesCommand::augment_args(Command::new("changes"))
        .about("Print the changes of a table as they come");
    let moving = MoveCommand::augment_args(Command::new("move"))
        .about("Move tables to a cluster of Apache Cassandra while the server goes on");
    let pull = PullCommand::augment_args(Command::new("pull"))
        .about("Copy tables of a cluster of Apache Cassandra, or a sample of them, into a database here");
    let cert = CertCommand::augment_args(Command::new("cert")).about("Make certificates for a test of TLS");
    Command::new("helenus")
        .version(version())
        .disable_version_flag(true)
        .arg(version_option())
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(shell)
        .subcommand(admin::command())
        .subcommand(backup)
        .subcommand(restore)
        .subcommand(changes)
        .subcommand(moving)
        .subcommand(pull)
        .subcommand(cert)
        .subcommand(cli)
        .subcommand(sstable::command())
        .subcommand(import)
        .subcommand(export)
        .subcommand(stress)
        .subcommand(profile)
        .subcommand(shell_help::completions())
        .subcommand(shell_help::man())
        .subcommand(Command::new("version").about("Print version").hide(true))
}

fn main() -> ExitCode {
    helenus_host::real::leave_no_core_dump();
    helenus_host::keep_freed_memory_ms(FREED_MEMORY_KEPT_MS);
    if let Some(name) = container::Name::of(std::env::args_os().next().as_deref()) {
        return exit_code(container::run(name), name.text());
    }
    let arguments = admin::with_long_options(std::env::args_os());
    let matches = command_line()
        .try_get_matches_from(arguments)
        .unwrap_or_else(|error| with_one_suggestion(error).exit());
    if matches.subcommand_name().is_some_and(|name| KEEPS_DATA.contains(&name)) {
        helenus_host::real::keep_files_private();
        helenus_host::real::survive_file_size_limit();
    }
    let done = match matches.subcommand() {
        Some(("version", _)) => {
            writeln!(std::io::stdout(), "helenus {}", version()).map_err(anyhow::Error::from)
        }
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
        Some(("cert", matches)) => match CertCommand::from_arg_matches(matches) {
            Ok(command) => cert::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("changes", matches)) => match ChangesCommand::from_arg_matches(matches) {
            Ok(command) => changes::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("move", matches)) => match MoveCommand::from_arg_matches(matches) {
            Ok(command) => moving::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("pull", matches)) => match PullCommand::from_arg_matches(matches) {
            Ok(command) => pull::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("backup", matches)) => match BackupCommand::from_arg_matches(matches) {
            Ok(command) => backup::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("restore", matches)) => match RestoreCommand::from_arg_matches(matches) {
            Ok(command) => restore::run(&helenus_host::real::host(), &command),
            Err(error) => error.exit(),
        },
        Some(("completions", matches)) => shell_help::run_completions(matches, command_line()),
        Some(("man", matches)) => shell_help::run_man(matches, command_line()),
        Some(("stress", matches)) => match StressOptions::from_arg_matches(matches) {
            Ok(options) => stress::run(&options),
            Err(error) => error.exit(),
        },
        Some(("shell", matches)) => match ShellOptions::from_arg_matches(matches) {
            Ok(options) => shell::run(&options),
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
    exit_code(done, "helenus")
}

/// Suggests one visible command in place of an unknown one: the parser would list hidden ones and distant ones too.
fn with_one_suggestion(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let typed = typed.clone();
    let all = command_line();
    let mut command = &all;
    for word in std::env::args().skip(1) {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    let visible = command.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
    let found = helenus_server::similar::nearest(&typed, visible.chain(["help"])).map(str::to_owned);
    match found {
        Some(found) => error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(found)),
        None => error.remove(ContextKind::SuggestedSubcommand),
    };
    error
}

/// Reports the error of the program called `name`.
fn exit_code(done: anyhow::Result<()>, name: &str) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has closed the pipe, as in `helenus admin tablestats | head`: no message is wanted.
        Err(error) if is_broken_pipe(&error) => ExitCode::FAILURE,
        Err(error) => {
            note!("{name}: {}", text_of(&error));
            let wrong_use = error.downcast_ref::<helenus_server::config::ConfigError>().is_some()
                || error.downcast_ref::<stress::FileError>().is_some();
            ExitCode::from(if wrong_use { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}

/// The text of an error and its causes, without the causes whose text is already part of it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` for every command that has a help page, with the words that call it (`path`).
    fn each(command: &Command, path: &str, look: &mut dyn FnMut(&Command, &str)) {
        look(command, path);
        let shown =
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        for below in shown {
            each(below, &format!("{path} {}", below.get_name()), look);
        }
    }

    /// Names with an underscore that the help of `serve` uses and that are no options of their own, but values and parts of options.
    const OTHER_NAMES: &[&str] =
        &["best_effort", "stop_commit", "stop_paranoid", "require_client_auth", "validator_class_name"];

    #[test]
    fn options_that_the_help_of_serve_names_exist() {
        let known: Vec<&str> = helenus_server::config::OPTIONS.iter().map(|option| option.key).collect();
        let mut all = command_line();
        all.build();
        let mut wrong = Vec::new();
        each(&all, "helenus", &mut |command, path| {
            if path != "helenus serve" {
                return;
            }
            let text = command.clone().render_long_help().to_string();
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            for word in words.filter(|word| {
                word.contains('_') && word.starts_with(|first: char| first.is_ascii_lowercase())
            }) {
                if !known.contains(&word) && !OTHER_NAMES.contains(&word) {
                    wrong.push(format!("{path}: {word}"));
                }
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_command_says_what_it_does_what_its_flags_do_and_gives_an_example() {
        let mut all = command_line();
        all.build();
        let mut wrong = Vec::new();
        each(&all, "helenus", &mut |command, path| {
            let last = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // The example must show this command, not its parent.
            if !last.contains("Example") || !last.contains(path) {
                wrong.push(format!("{path}: no example"));
            }
            if command.get_about().is_none() {
                wrong.push(format!("{path}: does not say what it is for"));
            }
            let silent = command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_help().is_none());
            wrong.extend(silent.map(|arg| format!("{path}: {} is not explained", arg.get_id())));
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
