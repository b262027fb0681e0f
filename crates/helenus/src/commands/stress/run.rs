//! A run from its options to its figures: tables, statements, connections, threads.

use super::cost::ServerUse;
use super::drive::{Driven, Plan, drive};
use super::lane::Lane;
use super::measure::Tally;
use super::options::{Kind, LoadOptions, StressOptions};
use super::report::Figures;
use super::workload::{Extent, Operations, Workload};
use super::{single_rows, wide_rows};
use crate::commands::client::{Caller, Line};
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};

/// Seconds that reads run for if nobody says.
const READ_SECONDS: f64 = 10.0;

/// Runs a workload and prints its figures.
///
/// # Errors
/// When the server cannot be reached, refuses what prepares the run, closes a connection, or has answered anything
/// other than what was right; the figures are printed first then.
pub fn run(options: &StressOptions) -> Result<()> {
    let load = &options.load;
    if let Kind::Mailings(mailings) = &options.kind {
        return super::mailings::run(load, mailings);
    }
    let mut caller = Caller::open(load.door()?)?;
    let workload = prepare(&mut caller, &options.kind, load)?;
    drop(caller);
    let lanes = lanes(load, &*workload)?;
    let seconds = match (load.duration, workload.extent()) {
        (Some(seconds), _) => Some(seconds),
        (None, Extent::Any) => Some(READ_SECONDS),
        (None, Extent::Each(_)) => None,
    };
    let figures = measure(load, lanes, seconds, workload.name())?;
    println!("{}", if load.json { figures.json().to_string() } else { figures.table() });
    let faults = figures.tally.fault_count();
    ensure!(faults == 0, "{faults} answers were not right");
    ensure!(!figures.tally.latency.is_empty(), "nothing was answered while measuring: run longer");
    Ok(())
}

/// Makes what the workload needs, and the workload.
fn prepare(caller: &mut Caller, kind: &Kind, load: &LoadOptions) -> Result<Box<dyn Workload>> {
    let keyspace = &load.keyspace;
    if matches!(kind, Kind::Insert { .. } | Kind::Count | Kind::Load { .. }) {
        make_keyspace(caller, load)?;
        match kind {
            Kind::Count => single_rows::make_counters(caller, keyspace)?,
            Kind::Insert { indexed: true } => single_rows::make_table(caller, keyspace, true)?,
            _ => {
                single_rows::make_table(caller, keyspace, false)?;
                wide_rows::make_tables(caller, keyspace)?;
            }
        }
    } else if load.fresh {
        bail!("--fresh would drop what is to be read");
    }
    Ok(match *kind {
        Kind::Insert { indexed } => Box::new(single_rows::Insert::prepare(caller, load, indexed)?),
        Kind::Find => Box::new(single_rows::Find::prepare(caller, load)?),
        Kind::Count => Box::new(single_rows::Count::prepare(caller, load)?),
        Kind::Read => Box::new(single_rows::Read::prepare(caller, load)?),
        Kind::Load { table, batch } => Box::new(wide_rows::Load::prepare(caller, load, table.order, batch)?),
        Kind::Slice { table, start, reversed, limit } => {
            let shape = wide_rows::SliceShape { start, reversed, limit };
            Box::new(wide_rows::Slice::prepare(caller, load, table.order, shape)?)
        }
        Kind::Mailings(_) => bail!("the mailings are no workload of single requests"),
        Kind::Names { table, names, pages } => {
            Box::new(wide_rows::Names::prepare(caller, load, table.order, (names, pages))?)
        }
    })
}

/// Makes the keyspace if it is not there, anew if that is asked for.
pub(super) fn make_keyspace(caller: &mut Caller, load: &LoadOptions) -> Result<()> {
    let keyspace = &load.keyspace;
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    ensure!(is_name(keyspace), "--keyspace: small letters, digits and underscores only");
    if load.fresh {
        caller.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
    }
    caller.run(&format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', \
         'replication_factor': 1}}"
    ))
}

/// The connections, with the requests in flight shared out among them.
pub(super) fn lanes<'w>(load: &LoadOptions, workload: &'w dyn Workload) -> Result<Vec<Lane<'w>>> {
    let door = load.door()?;
    let in_flight = load.in_flight;
    let count = u32::from(load.connections).min(in_flight);
    let again = load.duration.is_some();
    let share = |number: u32| in_flight / count + u32::from(number < in_flight % count);
    (0..count)
        .map(|number| {
            let streams =
                i16::try_from(share(number)).ok().context("at most 32,767 in flight a connection")?;
            let line = Line::open(door, &load.keyspace)?;
            let operations = Operations::share(workload.extent(), u64::from(number), u64::from(count), again);
            Ok(Lane::new(line, workload, operations, streams))
        })
        .collect()
}

/// Runs the threads and adds up.
pub(super) fn measure(
    load: &LoadOptions,
    mut lanes: Vec<Lane<'_>>,
    seconds: Option<f64>,
    name: String,
) -> Result<Figures> {
    let connections = lanes.len();
    let threads = usize::from(load.threads).min(connections);
    let mut parts: Vec<Vec<Lane<'_>>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, lane) in lanes.drain(..).enumerate() {
        if let Some(part) = parts.get_mut(number % threads) {
            part.push(lane);
        }
    }
    let span = |seconds: f64| Duration::try_from_secs_f64(seconds).context("seconds must not be negative");
    let measure_from = Instant::now() + span(load.warmup)?;
    let send_until = seconds.map(span).transpose()?.map(|seconds| measure_from + seconds);
    let plan = Plan { measure_from, send_until };
    let look = || load.server_pid.map(ServerUse::of).transpose();
    let (driven, before) = std::thread::scope(|scope| {
        let running: Vec<_> =
            parts.into_iter().map(|lanes| scope.spawn(move || drive(lanes, plan))).collect();
        std::thread::sleep(measure_from.saturating_duration_since(Instant::now()));
        let before = look();
        let driven: Result<Vec<Driven>> = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread of stress has ended early")))
            .collect();
        (driven, before)
    });
    let (driven, before) = (driven?, before?);
    let mut tally = Tally::new()?;
    for part in &driven {
        tally.add(&part.tally)?;
    }
    let ended = driven.iter().map(|part| part.ended).max().unwrap_or(measure_from);
    Ok(Figures {
        name,
        address: load.door()?.address().to_owned(),
        protocol: if load.rpc.is_some() { "RPC".into() } else { format!("protocol v{}", load.protocol) },
        connections,
        in_flight: load.in_flight,
        seconds: ended.saturating_duration_since(measure_from).as_secs_f64(),
        client_cpu_s: driven.iter().map(|part| part.cpu.as_secs_f64()).sum(),
        server: before.zip(look()?),
        tally,
    })
}
