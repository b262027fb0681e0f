//! The options of `helenus pull`, and its requests.

use super::show::{Line, words};
use super::verbs::TOOL;
use crate::commands::access::TlsOptions;
use crate::commands::cluster_access::ClusterAccess;
use crate::commands::passwords::LoginOptions;
use crate::commands::target::{Target, TargetOptions};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use helenus_host::Host;
use helenus_mover::{MoveOrder, PullOrder, PullReport, PullRequest, Puller};
use helenus_server::admin::{AdminAnswer, AdminRequest, ask};
use helenus_wire::native::Consistency;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The pause between two questions about the progress.
const LOOK: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "Examples:
  helenus pull 10.0.0.1 --tables shop.orders,shop.carts --data copy      into a directory, which is made
  helenus pull 10.0.0.1 --tables shop --sample 1% --mask shop.users.email=hash --mask shop.users.phone=null
  helenus pull 10.0.0.1 --tables shop.orders --partitions \"42;43\"
  helenus pull 10.0.0.1 --tables shop.orders --where \"region = 'eu'\" --rows-per-second 5000

Into a running server if one answers at --data, --socket or --host, else into the directory itself. Keyspaces (with one copy), types,
tables and indexes are made as the cluster describes them; a table that is here already must have the same columns, and rows join
those that are here. Every cell comes with its timestamp and its TTL. Masks are applied before anything is written here.";

/// Copies tables of a cluster.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PullCommand {
    /// Nodes of the cluster to begin with; the others are found
    #[arg(value_name = "HOST[:PORT],..", value_delimiter = ',', required_unless_present = "stop")]
    from: Vec<String>,
    /// Tables as KEYSPACE.TABLE, or keyspaces with all their tables
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', required_unless_present = "stop")]
    tables: Vec<String>,
    /// Only this share of the partitions, such as 1% or 0.01: the first of each range of tokens
    #[arg(long, value_name = "SHARE", conflicts_with = "partitions")]
    sample: Option<String>,
    /// Only these partitions: keys as in CQL with `;` between them, or a file with one a line; those of several columns with commas
    #[arg(long, value_name = "KEYS|FILE")]
    partitions: Option<String>,
    /// Only rows that fulfil a condition of CQL; the cluster filters, so it reads all of the table
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Change a column on the way: `hash` (equal values stay equal), `null` or `default` ('****', 0)
    #[arg(long, value_name = "KEYSPACE.TABLE.COLUMN=KIND")]
    mask: Vec<String>,
    /// What hashes are made with, so that those of several pulls fit each other; at random by default
    #[arg(long, value_name = "FILE")]
    mask_secret: Option<PathBuf>,
    /// Rows a second at most; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    rows_per_second: u64,
    /// Ranges of tokens that are read at the same time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    ranges: u8,
    /// Consistency of the reads, such as LOCAL_ONE (a copy may be behind after its node was down), LOCAL_QUORUM or ALL
    #[arg(long, value_name = "LEVEL", default_value = "LOCAL_QUORUM", value_parser = level)]
    consistency: Consistency,
    /// Data center to read from; the first node's by default
    #[arg(long, value_name = "NAME")]
    local_dc: Option<String>,
    /// End a pull of the server; what was copied stays
    #[arg(long)]
    stop: bool,
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
/// The order is wrong; the cluster cannot be read; the database cannot be written.
pub fn run(host: &Host, command: &PullCommand) -> Result<()> {
    if command.stop {
        let Some(socket) = command.at.find_server(host)? else {
            bail!("no server runs on {}", command.at.data().display())
        };
        ask_puller(&socket, &PullRequest::Stop)?;
        say!("stopped; what was copied stays")?;
        return Ok(());
    }
    let request = PullRequest::Start(Box::new(order(host, command)?));
    let report = match command.at.find(host)? {
        Target::Server(socket) => watch(&request, |request| ask_puller(&socket, request))?,
        Target::Directory(opened) => {
            if !command.json {
                note!("no server answers: pulling into {} itself", command.at.data().display());
            }
            let puller = Puller::new(&opened.backend, Box::new(|| Ok(Box::new(()))));
            let report = watch(&request, |request| Ok(puller.answer(request)?));
            puller.stop();
            drop(puller);
            let closed = opened.close(report.as_ref().map_or(true, |report| report.error.is_some()));
            let report = report?;
            closed?;
            report
        }
    };
    match command.json {
        true => say!("{}", serde_json::to_string(&report)?)?,
        false => put!("{}", words(&report))?,
    }
    report.error.map_or(Ok(()), |error| Err(anyhow!(error)))
}

/// Starts, and waits for the end.
fn watch(request: &PullRequest, ask: impl Fn(&PullRequest) -> Result<PullReport>) -> Result<PullReport> {
    let mut report = ask(request)?;
    let mut line = Line::new();
    while report.is_running {
        std::thread::sleep(LOOK);
        report = ask(&PullRequest::Status)?;
        line.show(&report);
    }
    Ok(report)
}

fn ask_puller(socket: &Path, request: &PullRequest) -> Result<PullReport> {
    let request = serde_json::to_string(request)?;
    match ask(socket, &AdminRequest::Further { tool: TOOL.to_owned(), request })? {
        AdminAnswer::Further(answer) => {
            serde_json::from_str(&answer).context("the server gave another answer")
        }
        AdminAnswer::Error(text) => Err(anyhow!(text)),
        _ => bail!("the server gave another answer"),
    }
}

fn order(host: &Host, command: &PullCommand) -> Result<PullOrder> {
    let access = ClusterAccess::of(&command.login, &command.tls)?;
    let cluster = MoveOrder {
        to: command.from.clone(),
        local_dc: command.local_dc.clone(),
        login: access.login,
        password_file: access.password_file,
        clients: None,
        tls: access.tls,
        what: command.tables.clone(),
        replication: BTreeMap::new(),
        rows_per_second: command.rows_per_second,
        target_p99_ms: 0,
        ranges_at_once: usize::from(command.ranges),
        roles: false,
    };
    let secret = command.mask_secret.as_ref().map(|path| text_of(host, path));
    Ok(PullOrder {
        cluster,
        consistency: command.consistency.code(),
        sample: command.sample.as_deref().map_or(Ok(1.0), share)?,
        partitions: command.partitions.as_deref().map_or(Ok(Vec::new()), |text| partitions(host, text))?,
        condition: command.condition.clone(),
        masks: command.mask.clone(),
        secret: secret.transpose()?.map(|text| text.trim().to_owned()),
    })
}

/// A level of plain reads (`ConsistencyLevel.validateForRead`).
fn level(text: &str) -> std::result::Result<Consistency, String> {
    let is_of_reads = |level: &&Consistency| !matches!(level, Consistency::Any) && !level.is_serial();
    let levels = || Consistency::ALL.iter().filter(is_of_reads);
    let found = levels().find(|level| level.to_string() == text.trim().to_ascii_uppercase());
    found.copied().ok_or_else(|| {
        format!("give one of {}", levels().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    })
}

/// Parses `1%` and `0.01`.
fn share(text: &str) -> Result<f64> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let share = parsed.ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.with_context(|| format!("--sample {text}: give a share such as 1% or 0.01"))
}

/// Keys from a file, or from the text itself.
fn partitions(host: &Host, text: &str) -> Result<Vec<String>> {
    let path = Path::new(text);
    let keys: Vec<String> = match host.disk.exists(path) {
        true => text_of(host, path)?.lines().map(|line| line.trim().to_owned()).collect(),
        false => text.split(';').map(|key| key.trim().to_owned()).collect(),
    };
    let keys: Vec<String> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    match keys.is_empty() {
        true => bail!("--partitions {text}: no keys"),
        false => Ok(keys),
    }
}

fn text_of(host: &Host, path: &Path) -> Result<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let file = host.disk.open(path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("cannot read {}", path.display()))?;
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consistency_is_one_of_reads() {
        for (text, wanted) in [("local_quorum", "LOCAL_QUORUM"), ("ALL", "ALL"), ("Two", "TWO")] {
            assert_eq!(level(text).unwrap().to_string(), wanted);
        }
        for wrong in ["", "any", "SERIAL", "most"] {
            assert!(level(wrong).unwrap_err().contains("LOCAL_QUORUM"), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_percentage_or_a_number() {
        assert_eq!(share("1%").unwrap(), 0.01);
        assert_eq!(share("0.5").unwrap(), 0.5);
        for wrong in ["", "%", "0", "101%", "-1%", "x"] {
            assert!(share(wrong).unwrap_err().to_string().contains("1% or 0.01"), "{wrong}");
        }
    }
}
