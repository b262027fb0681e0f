//! The options of `helenus move`, and its requests to the server.

use super::verbs::TOOL;
use super::{show, verify};
use crate::commands::access::TlsOptions;
use crate::commands::cluster_access::{ClusterAccess, absolute};
use crate::commands::passwords::LoginOptions;
use crate::commands::target::TargetOptions;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use helenus_cql::counted;
use helenus_host::Host;
use helenus_mover::{
    ClientsRole, CutOrder, MoveAnswer, MoveOrder, MoveRequest, ResumeOrder, RollbackOrder, VerifyOrder,
};
use helenus_server::admin::{AdminAnswer, AdminRequest, ask};
use helenus_server::quantity::parse_seconds;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  helenus move plan --to 10.0.0.1,10.0.0.2                what a move would do, and what it cannot
  helenus move start --to 10.0.0.1 --replication shop=\"{'class': 'NetworkTopologyStrategy', 'dc1': 3}\"
  helenus move status                                     back-fill, then the lag of each table
  helenus move verify                                     compare every cell of both sides
  helenus move cutover --dry-run                          whether the target could take over now
  helenus move cutover                                    it does; clients wait up to a second and notice nothing else
  helenus move abort                                      both sides stay usable

The server does the work, and goes on with it after a restart: it makes the schema, sends the rows by ranges of tokens, then the
changes as they come, each cell with its timestamp and TTL. The book's page 'Moving to a cluster' says what is not moved.";

const CUTOVER_EXAMPLES: &str = "Examples:
  helenus move cutover --dry-run
  helenus move cutover --pause 500ms --rollback-within 48h

Everything must be at the target but the last changes. After the cut this server stays where it is and passes requests on to the
target, also after a restart. helenus move status shows it; helenus move rollback takes it back while that is allowed.";

/// Moves tables to a cluster.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct MoveCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug, Clone)]
enum Verb {
    /// Say what a move would do: versions, limits, schema, sizes, time, and what cannot be moved
    #[command(
        after_help = "Example:\n  helenus move plan --to 10.0.0.1,10.0.0.2 --username mover --password-file secret"
    )]
    Plan(OrderOptions),
    /// Start the move: schema, rows, then the changes until it is ended
    #[command(
        after_help = "Example:\n  helenus move start --to 10.0.0.1 --tables shop,feed.timeline --rows-per-second 20000"
    )]
    Start(OrderOptions),
    /// Show the progress of each table, and the target's errors
    #[command(after_help = "Examples:\n  helenus move status\n  helenus move status --json")]
    Status(StatusOptions),
    /// Compare every cell of both sides, with timestamps and TTLs; exit code 1 if any differs
    #[command(
        after_help = "Examples:\n  helenus move verify\n  helenus move verify --tables shop.orders --repair\n  helenus move verify --stop\n\nThe server \
compares: Ctrl-C ends this command and not the comparison, which --stop does. Both sides may be written to \
meanwhile: a row that seems to differ is read again once all changes before are sent.\n--repair sends what this server holds of such \
rows again, cells and deletions; what is newer at the target stays as it is there, and is listed."
    )]
    Verify(VerifyOptions),
    /// Go on with tables that have stopped, once their reason is gone
    #[command(
        after_help = "Examples:\n  helenus move resume\n  helenus move resume --anew shop.orders\n  helenus move resume --target-p99 400 --ranges 8\n\n\
Tables that were made here since the start are taken in. Options of the pace that are not given stay as they were."
    )]
    Resume(ResumeOptions),
    /// Make the target the truth: clients wait a moment, then this server passes their requests on to it
    #[command(after_help = CUTOVER_EXAMPLES)]
    Cutover(CutOptions),
    /// Take a cut back: the target's later writes come here, and this server answers by itself again
    #[command(after_help = "Example:\n  helenus move rollback --pause 10s")]
    Rollback(RollbackOptions),
    /// End the move: this server goes on as before, and the target keeps what it was sent
    #[command(after_help = "Example:\n  helenus move abort")]
    Abort(TargetOptions),
}

#[derive(Args, Debug, Clone)]
struct StatusOptions {
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: TargetOptions,
}

#[derive(Args, Debug, Clone)]
struct VerifyOptions {
    /// Keyspaces, or tables as KEYSPACE.TABLE; all of the move by default
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    tables: Vec<String>,
    /// Send rows that differ again
    #[arg(long)]
    repair: bool,
    /// End the comparison that the server makes
    #[arg(long, conflicts_with_all = ["tables", "repair", "json"])]
    stop: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: TargetOptions,
}

#[derive(Args, Debug, Clone)]
struct ResumeOptions {
    /// Truncate these tables at the target and send them anew
    #[arg(long, value_name = "KEYSPACE.TABLE,..", value_delimiter = ',')]
    anew: Vec<String>,
    /// From now on rows a second at most; 0 for no limit
    #[arg(long, value_name = "N")]
    rows_per_second: Option<u64>,
    /// From now on send less while the target's 99th percentile of latency is above this, milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    target_p99: Option<u64>,
    /// From now on ranges of tokens that are sent at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    ranges: Option<u8>,
    #[command(flatten)]
    at: TargetOptions,
}

#[derive(Args, Debug, Clone)]
struct CutOptions {
    /// How long clients may wait; if the target is not complete by then, everything goes on as before
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_seconds)]
    pause: Duration,
    /// How long after the cut a rollback is allowed
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_seconds)]
    rollback_within: Duration,
    /// Only check whether a cut could be made now
    #[arg(long)]
    dry_run: bool,
    /// Where clients do not log in here: serve them as this role of the target, which should have the rights that clients need and no
    /// others
    #[arg(long, value_name = "NAME", requires = "clients_password_file")]
    clients_role: Option<String>,
    /// File whose first line is the password of --clients-role; the server reads it again after each start
    #[arg(long, value_name = "FILE", requires = "clients_role")]
    clients_password_file: Option<PathBuf>,
    /// Cut over although definitions differ at the target, roles lose limits, or rows may differ that were sent anew: --dry-run
    /// lists them
    #[arg(long)]
    accept_differences: bool,
    #[command(flatten)]
    at: TargetOptions,
}

#[derive(Args, Debug, Clone)]
struct RollbackOptions {
    /// How long clients may wait while the last changes come back: the partitions that they write are read once more in that time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_seconds)]
    pause: Duration,
    /// Do not ask the target, which is lost: serve with the rows of the cut, lose what was written there since, and end the move
    #[arg(long, conflicts_with = "pause")]
    lose_later_writes: bool,
    /// Tables that do not come back: they keep here the rows that they have
    #[arg(
        long,
        value_name = "KEYSPACE.TABLE,..",
        value_delimiter = ',',
        conflicts_with = "lose_later_writes"
    )]
    without: Vec<String>,
    #[command(flatten)]
    at: TargetOptions,
}

#[derive(Args, Debug, Clone)]
struct OrderOptions {
    /// Nodes of the target to begin with; the others are found
    #[arg(long, value_name = "HOST[:PORT],..", value_delimiter = ',', required = true)]
    to: Vec<String>,
    /// Data center to write to; the first node's by default
    #[arg(long, value_name = "NAME")]
    local_dc: Option<String>,
    /// Keyspaces, or tables as KEYSPACE.TABLE; all of users by default
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    tables: Vec<String>,
    /// Replication of a keyspace that is made, such as shop="{'class': 'NetworkTopologyStrategy', 'dc1': 3}"; by default three
    /// copies in each data center, or as many as it has nodes
    #[arg(long, value_name = "KEYSPACE=MAP")]
    replication: Vec<String>,
    /// Rows a second at most; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    rows_per_second: u64,
    /// Send less while the target's 99th percentile of latency is above this, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    target_p99: u64,
    /// Ranges of tokens that are sent at the same time; a cluster of many nodes takes more
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    ranges: u8,
    /// Move roles too: hashes of passwords, memberships, and permissions on what is moved. The target's role (--username) must be a
    /// superuser
    #[arg(long)]
    roles: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: TargetOptions,
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Runs the command.
///
/// # Errors
/// No server runs; the order cannot be carried out.
pub fn run(host: &Host, command: &MoveCommand) -> Result<()> {
    let (request, at, json) = match &command.verb {
        Verb::Plan(options) => (MoveRequest::Plan(order(options)?), &options.at, options.json),
        Verb::Start(options) => (MoveRequest::Start(order(options)?), &options.at, options.json),
        Verb::Status(options) => (MoveRequest::Status, &options.at, options.json),
        Verb::Verify(options) if options.stop => (MoveRequest::VerifyStop, &options.at, false),
        Verb::Verify(options) => {
            let order = VerifyOrder { what: options.tables.clone(), repairs: options.repair };
            (MoveRequest::Verify(order), &options.at, options.json)
        }
        Verb::Resume(options) => {
            let order = ResumeOrder {
                anew: options.anew.clone(),
                rows_per_second: options.rows_per_second,
                target_p99_ms: options.target_p99,
                ranges_at_once: options.ranges.map(usize::from),
            };
            (MoveRequest::ResumeWith(order), &options.at, false)
        }
        Verb::Cutover(options) => {
            let order = CutOrder {
                pause_ms: milliseconds(options.pause),
                rollback_within_s: options.rollback_within.as_secs(),
                is_dry_run: options.dry_run,
                clients: match (&options.clients_role, &options.clients_password_file) {
                    (Some(user), Some(file)) => {
                        Some(ClientsRole { user: user.clone(), password_file: absolute(file)? })
                    }
                    _ => None,
                },
                accepts_differences: options.accept_differences,
            };
            (MoveRequest::Cutover(order), &options.at, false)
        }
        Verb::Rollback(options) => {
            let order = RollbackOrder {
                pause_ms: milliseconds(options.pause),
                loses_later_writes: options.lose_later_writes,
                without: options.without.clone(),
            };
            (MoveRequest::Rollback(order), &options.at, false)
        }
        Verb::Abort(at) => (MoveRequest::Abort, at, false),
    };
    let Some(socket) = at.find_server(host)? else {
        bail!("no server runs on {}: a move is done by a running server", at.data().display())
    };
    let answer = match ask_mover(&socket, &request)? {
        MoveAnswer::Verified(report) if request == MoveRequest::VerifyStop => {
            // It ends the row that it is at.
            verify::watch(&socket, report)?;
            return Ok(say!("stopped")?);
        }
        MoveAnswer::Verified(report) => MoveAnswer::Verified(verify::watch(&socket, report)?),
        answer => answer,
    };
    match json {
        true => say!("{}", json_of(&answer)?)?,
        false => show::print(&answer)?,
    }
    match &answer {
        MoveAnswer::Plan(report) if !report.problems.is_empty() => {
            bail!("{}: helenus move start would refuse", counted(report.problems.len(), "problem"))
        }
        MoveAnswer::Verified(report) => verify::judge(report),
        _ => Ok(()),
    }
}

pub(super) fn ask_mover(socket: &Path, request: &MoveRequest) -> Result<MoveAnswer> {
    let request = serde_json::to_string(request)?;
    match ask(socket, &AdminRequest::Further { tool: TOOL.to_owned(), request })? {
        AdminAnswer::Further(answer) => {
            serde_json::from_str(&answer).context("the server gave another answer")
        }
        AdminAnswer::Error(text) => Err(anyhow!(text)),
        _ => bail!("the server gave another answer"),
    }
}

/// The report alone.
fn json_of(answer: &MoveAnswer) -> Result<String> {
    Ok(match answer {
        MoveAnswer::Plan(report) => serde_json::to_string(report)?,
        MoveAnswer::Status(report) => serde_json::to_string(report)?,
        MoveAnswer::Verified(report) => serde_json::to_string(report)?,
        MoveAnswer::Done(text) => serde_json::json!({ "done": text }).to_string(),
    })
}

fn order(options: &OrderOptions) -> Result<MoveOrder> {
    let mut replication = BTreeMap::new();
    for text in &options.replication {
        let named = text.split_once('=').filter(|(_, map)| map.trim().starts_with('{'));
        let Some((keyspace, map)) = named else {
            bail!(
                "--replication {text}: give it as KEYSPACE={{'class': 'NetworkTopologyStrategy', 'dc1': 3}}"
            )
        };
        replication.insert(keyspace.to_owned(), map.to_owned());
    }
    let access = ClusterAccess::of(&options.login, &options.tls)?;
    Ok(MoveOrder {
        to: options.to.clone(),
        local_dc: options.local_dc.clone(),
        login: access.login,
        password_file: access.password_file,
        clients: None,
        tls: access.tls,
        what: options.tables.clone(),
        replication,
        rows_per_second: options.rows_per_second,
        target_p99_ms: options.target_p99,
        ranges_at_once: usize::from(options.ranges),
        roles: options.roles,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
