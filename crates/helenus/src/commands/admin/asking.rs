//! Asking the server: one question, or one and then again until it is done.

use crate::commands::watch::Line;
use anyhow::{Result, bail};
use clap::ArgMatches;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Errand, Outcome, RunningCompaction, ask, socket_for_data,
};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::layout::file_size;

/// The server that a command line means.
pub struct Server {
    socket: PathBuf,
    /// Print answers as JSON.
    pub json: bool,
}

impl Server {
    /// The server of `--data` or `--socket`.
    ///
    /// # Errors
    /// A host that is not this machine.
    pub fn of(before_verb: &ArgMatches, matches: &ArgMatches) -> Result<Server> {
        let text = |name: &str| matches.get_one::<String>(name);
        let host = before_verb.get_one::<String>("host");
        if let Some(host) = host.filter(|host| !["127.0.0.1", "localhost", "::1"].contains(&host.as_str())) {
            bail!(
                "helenus admin asks the server of this machine, through a socket in its data directory: asking {host} needs \
                 authentication, which is not built yet; run it there (ssh {host} helenus admin ...)"
            );
        }
        let socket = match text("socket") {
            Some(socket) => PathBuf::from(socket),
            None => socket_for_data(Path::new(text("data").map_or("./data", String::as_str))),
        };
        let is_json = |name: &str| {
            matches.try_get_one::<String>(name).ok().flatten().is_some_and(|form| form == "json")
        };
        Ok(Server { socket, json: matches.get_flag("json") || is_json("format") })
    }

    /// Asks one question.
    ///
    /// # Errors
    /// Nobody answers; the answer is an error.
    pub fn ask(&self, request: &AdminRequest) -> Result<AdminAnswer> {
        match ask(&self.socket, request)? {
            AdminAnswer::Error(text) => bail!("{text}"),
            answer => Ok(answer),
        }
    }

    /// Has compactions made, and shows how far they are where somebody looks.
    ///
    /// # Errors
    /// As `ask`.
    pub fn compact(&self, request: &AdminRequest) -> Result<helenus_server::admin::Compaction> {
        let mut err = std::io::stderr().lock();
        let watched = err.is_terminal();
        let mut answer = self.ask(request)?;
        let done = loop {
            let AdminAnswer::Compaction(compaction) = answer else { return unexpected() };
            if watched {
                let line = compaction.running.first().map(running_text).unwrap_or_default();
                write!(err, "\r\x1b[K{line}")?;
                err.flush()?;
            }
            if compaction.is_over {
                break compaction;
            }
            answer = self.ask(&AdminRequest::Compaction { number: compaction.number })?;
        };
        if watched {
            write!(err, "\r\x1b[K")?;
        }
        Ok(done)
    }

    /// Sends it on an errand, and shows how far that is where somebody looks.
    ///
    /// # Errors
    /// As `ask`.
    pub fn send(&self, request: &AdminRequest) -> Result<Outcome> {
        follow(&self.socket, request)
    }

    /// Prints data as JSON.
    ///
    /// # Errors
    /// Failures of writing.
    pub fn print_json(&self, data: &impl serde::Serialize) -> Result<()> {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, data)?;
        writeln!(out)?;
        Ok(())
    }
}

/// Sends the server behind a socket on an errand.
///
/// # Errors
/// Nobody answers; the answer is an error.
pub fn follow(socket: &Path, request: &AdminRequest) -> Result<Outcome> {
    let mut answer = ask(socket, request)?;
    let mut line = Line::default();
    loop {
        match answer {
            AdminAnswer::Errand(Errand { outcome: Some(outcome), .. }) => return Ok(outcome),
            AdminAnswer::Errand(Errand { number, doing, bytes_done, bytes_total, .. }) => {
                line.show((&doing, bytes_done, bytes_total));
                answer = ask(socket, &AdminRequest::Errand { number })?;
            }
            AdminAnswer::Error(text) => bail!("{text}"),
            _ => return unexpected(),
        }
    }
}

/// An answer to another question.
///
/// # Errors
/// Always.
pub fn unexpected<T>() -> Result<T> {
    bail!("the server answered another question; its version may be another than this program's")
}

/// A compaction under way, on a line.
pub fn running_text(running: &RunningCompaction) -> String {
    let RunningCompaction { keyspace, table, kind, sstables, bytes_total, bytes_done } = running;
    let percent = bytes_done * 100 / (*bytes_total).max(1);
    format!("{keyspace}.{table}  {kind} of {sstables} SSTables, {percent} % of {}", file_size(*bytes_total))
}
