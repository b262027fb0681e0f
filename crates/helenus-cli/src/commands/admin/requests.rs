//! Requests to the server through its admin socket: a single one, or repeated until a job is done.

use crate::commands::progress_watch::Line;
use anyhow::{Result, bail};
use clap::ArgMatches;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Job, Outcome, RunningCompaction, ask, socket_for_data,
};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::layout::file_size;

/// The server that the command line addresses.
pub struct Server {
    socket: PathBuf,
    /// Whether answers are printed as JSON.
    pub json: bool,
}

impl Server {
    /// The server that `--data` or `--socket` names.
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

    /// Sends one request.
    pub fn request(&self, request: &AdminRequest) -> Result<AdminAnswer> {
        match ask(&self.socket, request)? {
            AdminAnswer::Error(text) => bail!("{text}"),
            answer => Ok(answer),
        }
    }

    /// Requests compactions, waits for them, and shows their progress if stderr is a terminal.
    pub fn compact(&self, request: &AdminRequest) -> Result<helenus_server::admin::Compaction> {
        let mut err = std::io::stderr().lock();
        let watched = err.is_terminal();
        let mut answer = self.request(request)?;
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
            answer = self.request(&AdminRequest::Compaction { number: compaction.number })?;
        };
        if watched {
            write!(err, "\r\x1b[K")?;
        }
        Ok(done)
    }

    /// Starts a job on the server, waits for it, and shows its progress on a terminal.
    pub fn run_job(&self, request: &AdminRequest) -> Result<Outcome> {
        run_job_on(&self.socket, request)
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

/// Starts a job on the server behind a socket, and waits for it.
pub fn run_job_on(socket: &Path, request: &AdminRequest) -> Result<Outcome> {
    let mut answer = ask(socket, request)?;
    let mut line = Line::default();
    loop {
        match answer {
            AdminAnswer::Job(Job { outcome: Some(outcome), .. }) => return Ok(outcome),
            AdminAnswer::Job(Job { number, doing, bytes_done, bytes_total, .. }) => {
                line.show((&doing, bytes_done, bytes_total));
                answer = ask(socket, &AdminRequest::Job { number })?;
            }
            AdminAnswer::Error(text) => bail!("{text}"),
            _ => return unexpected(),
        }
    }
}

/// The error for an answer of the wrong kind.
pub fn unexpected<T>() -> Result<T> {
    bail!("the server answered another question; its version may be another than this program's")
}

/// A running compaction, as one line.
pub fn running_text(running: &RunningCompaction) -> String {
    let RunningCompaction { keyspace, table, kind, sstables, bytes_total, bytes_done } = running;
    let percent = bytes_done * 100 / (*bytes_total).max(1);
    format!("{keyspace}.{table}  {kind} of {sstables} SSTables, {percent} % of {}", file_size(*bytes_total))
}
