//! `cassandra`: runs the server as the official image does, with its configuration from `/etc/cassandra` and the
//! environment.

use super::environment::{Options, Surroundings};
use super::{place, seeds};
use crate::commands::serve;
use anyhow::{Context, Result};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Scripts that prepare an empty database, as in the images of other databases.
const INIT_SCRIPTS: &str = "/docker-entrypoint-initdb.d";

/// The command line of Cassandra's `bin/cassandra`. The server always stays in the foreground.
fn command() -> Command {
    let flag = |id: &'static str, short, help: &'static str| {
        Arg::new(id).short(short).action(ArgAction::SetTrue).help(help)
    };
    Command::new("cassandra")
        .about("Run Helenus as a Cassandra node in a container")
        .arg(flag("foreground", 'f', "Stay in the foreground, which it does in any case"))
        .arg(flag("as_root", 'R', "Run as root"))
        .arg(flag("version", 'v', "Print the version of Cassandra whose features it has"))
        .arg(Arg::new("pid").short('p').value_name("FILE").help("Write the process's number to a file"))
        .arg(
            Arg::new("property")
                .short('D')
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("A property of the JVM; cassandra.config alone has an effect"),
        )
}

/// Runs the server until a signal ends it.
///
/// # Errors
/// The configuration cannot be read; those of the server.
pub fn run(words: Vec<OsString>) -> Result<()> {
    let matches = command().get_matches_from(std::iter::once("cassandra".into()).chain(words));
    if matches.get_flag("version") {
        writeln!(std::io::stdout(), "{}", helenus_cql::virtual_table::RELEASE_VERSION)?;
        return Ok(());
    }
    if let Some(file) = matches.get_one::<String>("pid") {
        std::fs::write(file, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write {file}"))?;
    }
    let variable = |name: &str| std::env::var(name).ok();
    let folder = place::configuration(&variable);
    let named = matches.get_many::<String>("property").into_iter().flatten();
    let named = named.filter_map(|property| property.strip_prefix("cassandra.config=")).next_back();
    let file = match named {
        Some(url) => PathBuf::from(url.strip_prefix("file://").unwrap_or(url)),
        None => place::file(&folder),
    };
    let yaml = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let rackdc = std::fs::read_to_string(folder.join("cassandra-rackdc.properties")).unwrap_or_default();
    let own_address = || serve::outward_address().to_string();
    let found = Surroundings {
        variable: &variable,
        yaml: &yaml,
        rackdc: &rackdc,
        own_address: &own_address,
        is_own: &seeds::is_own,
    };
    let options = found.options()?;
    serve(Start { data: place::data(&yaml, &folder), file, options })
}

/// What a server of a container is started with.
pub(super) struct Start {
    /// The configuration file.
    pub(super) file: PathBuf,
    /// The directory of the database, unless the options name one.
    pub(super) data: PathBuf,
    /// The options, which win over the file.
    pub(super) options: Options,
}

/// Runs the server until a signal ends it.
///
/// # Errors
/// The password cannot be kept; those of the server.
pub(super) fn serve(start: Start) -> Result<()> {
    let Start { file, data, options } = start;
    let mut call: Vec<OsString> = vec!["serve".into(), "--config".into(), file.into()];
    let is_set = |key: &str| options.set.iter().any(|(known, _)| *known == key);
    let is_in_memory = options.set.iter().any(|(key, value)| *key == "memory" && value == "true");
    if !is_set("data") && !is_in_memory {
        place::refuse_foreign(&data)?;
        call.extend(["--data".into(), data.into()]);
    }
    for (key, value) in &options.set {
        call.extend(["--set".into(), format!("{key}={value}").into()]);
    }
    // The server ends with this function, and the file with it.
    let password = options.password.as_deref().map(password_file).transpose()?;
    if let Some(file) = &password {
        call.extend(["--set".into(), format!("password_file=/proc/self/fd/{}", file.as_raw_fd()).into()]);
    }
    if std::fs::read_dir(INIT_SCRIPTS).is_ok_and(|mut files| files.next().is_some()) {
        call.extend(["--init".into(), INIT_SCRIPTS.into()]);
    }
    for note in &options.notes {
        note!("note: {note}");
    }
    serve::run(&serve::command().get_matches_from(call))
}

#[cfg(not(target_os = "linux"))]
fn password_file(_password: &str) -> Result<File> {
    anyhow::bail!("CASSANDRA_PASSWORD works on Linux alone; give HELENUS_PASSWORD_FILE")
}

/// A file in memory with a password: the root may be read-only, and nothing of it is left on a disk.
#[cfg(target_os = "linux")]
fn password_file(password: &str) -> Result<File> {
    let file = rustix::fs::memfd_create("password", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = File::from(file.context("cannot keep the password in memory")?);
    writeln!(file, "{password}")?;
    Ok(file)
}
