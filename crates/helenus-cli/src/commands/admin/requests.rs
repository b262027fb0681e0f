//! Requests to the server through its admin socket: a single one, or repeated until a job is done.

use crate::commands::progress_watch::Line;
use crate::commands::running::only_server;
use crate::commands::server_address::of_environment;
use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use helenus_cql::counted;
use helenus_server::address::Address;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Job, Outcome, RunningCompaction, ask, socket_for_data,
};
use std::io::{IsTerminal, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use super::layout::file_size;

/// The server that the command line addresses.
pub struct Server {
    socket: PathBuf,
    /// Whether answers are printed as JSON.
    pub json: bool,
    /// Whether the answers are those of a node of Cassandra, as of `nodetool` in the container image.
    pub as_node: bool,
}

impl Server {
    /// The server that `--data`, `--socket` or `--host` names, else the one that runs.
    pub fn of(before_verb: &ArgMatches, matches: &ArgMatches) -> Result<Server> {
        let text = |name: &str| matches.get_one::<String>(name).map(Path::new);
        // nodetool's `-h HOST` and `-p PORT`, which is the port of JMX, stand before the verb.
        let old = before_verb.get_one::<Address>("old_host").cloned().map(Address::without_port);
        let named = matches.get_one::<Address>("host").cloned().or(old);
        if let Some(host) = named.as_ref().filter(|host| !host.is_loopback()) {
            elsewhere(host)?;
        }
        let socket = match (text("socket"), text("data")) {
            (Some(socket), _) => socket.to_owned(),
            (None, Some(data)) => socket_for_data(data),
            (None, None) => only_server(named.or(of_environment()?).as_ref())?.socket,
        };
        let is_json = |name: &str| {
            matches.try_get_one::<String>(name).ok().flatten().is_some_and(|form| form == "json")
        };
        let json = matches.get_flag("json") || is_json("format");
        Ok(Server { socket, json, as_node: false })
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

/// Refuses an address that is not one of this machine.
fn elsewhere(host: &Address) -> Result<()> {
    let ip = host.resolve(0).with_context(|| format!("{host} has no address"))?.ip();
    match UdpSocket::bind((ip, 0)) {
        Ok(_) => Ok(()),
        Err(_) => bail!(
            "helenus admin asks servers of this machine, through a socket in their data directories, and {host} is another: \
             run it there (ssh {} helenus admin ...)",
            host.host()
        ),
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
    format!(
        "{keyspace}.{table}  {kind} of {}, {percent} % of {}",
        counted(*sstables, "SSTable"),
        file_size(*bytes_total)
    )
}
