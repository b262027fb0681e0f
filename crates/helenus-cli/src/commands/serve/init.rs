//! Runs the scripts of `--init DIR` on an empty database, before clients are let in.
//!
//! The scripts reach the server through a listener of their own on a free port of the loopback, which closes after the
//! last one. They run in the order of their names: `.cql` files by the shell, `.sh` files by `/bin/sh` with the address
//! in `CQLSH_HOST` and `CQLSH_PORT`, so that `cqlsh` in them needs no options. Where clients log in, the scripts do so
//! with a login of the server's own, which may do everything and ends with them; scripts of `/bin/sh` find it in
//! `HELENUS_USERNAME` and `HELENUS_PASSWORD`, and the first role in `CASSANDRA_USERNAME` and `CASSANDRA_PASSWORD`. A database
//! with keyspaces of users is
//! left alone: it was prepared by an earlier start.

use super::messages::announce;
use crate::commands::shell::{self, ShellOptions};
use anyhow::{Context, Result, bail};
use clap::{Args, Command, FromArgMatches};
use helenus_cql::{LocalBackend, OwnLogin};
use helenus_engine::is_system_keyspace;
use helenus_host::Host;
use helenus_server::log::Log;
use helenus_server::native::{Limits, NativeServer};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first role, where clients log in: scripts of `/bin/sh` may log in as it.
pub(super) struct Login {
    /// Its name.
    pub(super) role: String,
    /// Its password.
    pub(super) password: String,
}

/// The folder of the scripts, and who runs them.
pub(super) struct Scripts<'a> {
    /// The folder.
    pub(super) directory: &'a Path,
    /// `None`: clients need no login.
    pub(super) login: Option<Login>,
}

/// Runs the scripts of a directory if the database has no keyspaces of users.
///
/// # Errors
/// The directory cannot be read; a script fails: later ones do not run, and the server must not start.
pub(super) fn run(
    host: &Host,
    local: &Arc<LocalBackend>,
    limits: Limits,
    from: &Scripts<'_>,
    log: &Log,
) -> Result<()> {
    let directory = from.directory;
    let schema = local.database().schema();
    if schema.keyspaces.keys().any(|name| !is_system_keyspace(name)) {
        return Ok(());
    }
    let scripts = scripts(directory)?;
    if scripts.is_empty() {
        return Ok(());
    }
    let begun_ns = host.clock.monotonic_ns();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = NativeServer::start(host, local.clone(), address, limits)?;
    let address = server.address();
    let own = local.own_login();
    let done = scripts.iter().try_for_each(|script| {
        announce(log, "running", script.display().to_string());
        let ran = match script.extension().is_some_and(|end| end == "sh") {
            true => run_in_shell(script, address, own.as_ref(), from.login.as_ref()),
            false => run_statements(script, address, own.as_ref()),
        };
        ran.with_context(|| {
            format!("--init: {} failed; mend it and start again with an empty directory", script.display())
        })
    });
    server.stop();
    done?;
    let took_ms = host.clock.monotonic_ns().saturating_sub(begun_ns) / 1_000_000;
    announce(
        log,
        "prepared",
        format!("by {} scripts of {} in {took_ms} ms", scripts.len(), directory.display()),
    );
    Ok(())
}

/// The scripts, in the order of their names.
fn scripts(directory: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("--init: cannot read {}", directory.display());
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.extension().is_some_and(|end| end == "cql" || end == "sh") {
            scripts.push(path);
        }
    }
    scripts.sort();
    Ok(scripts)
}

fn run_statements(script: &Path, address: SocketAddr, own: Option<&OwnLogin<'_>>) -> Result<()> {
    let words = ["shell", &address.to_string(), "--stop-on-error", "--cqlshrc", "/dev/null", "--file"];
    let words = words.map(OsString::from).into_iter().chain([script.as_os_str().to_owned()]);
    let command = ShellOptions::augment_args(Command::new("shell"));
    let mut options = ShellOptions::from_arg_matches(&command.try_get_matches_from(words)?)?;
    options.username = own.map(|login| login.user().to_owned());
    options.own_password = own.map(|login| login.password().to_owned());
    shell::run(&options)
}

fn run_in_shell(
    script: &Path,
    address: SocketAddr,
    own: Option<&OwnLogin<'_>>,
    first: Option<&Login>,
) -> Result<()> {
    let mut process = std::process::Command::new("/bin/sh");
    process.arg(script).env("CQLSH_HOST", address.ip().to_string()).env("HELENUS_HOST", address.to_string());
    if let Some(login) = first {
        process.env("CASSANDRA_USERNAME", &login.role).env("CASSANDRA_PASSWORD", &login.password);
    }
    if let Some(login) = own {
        process.env("HELENUS_USERNAME", login.user()).env("HELENUS_PASSWORD", login.password());
    }
    let status = process.env("CQLSH_PORT", address.port().to_string()).status()?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_come_in_the_order_of_their_names_and_other_files_are_left_out() {
        let folder = tempfile::TempDir::new().unwrap();
        for name in ["20-rows.cql", "10-schema.cql", "README.md", "15-more.sh"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = scripts(folder.path()).unwrap();
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["10-schema.cql", "15-more.sh", "20-rows.cql"]);
    }
}
