//! Runs a workload from its options to its results: tables, statements, connections, threads.

use super::collect::Collected;
use super::connection::StressConnection;
use super::cost::{ServerUse, wake_on_time};
use super::interface::Interface;
use super::live::{Goal, Live};
use super::measure::Tally;
use super::options::{Kind, LoadOptions, StressOptions};
use super::results::{
    ClientUse, FORMAT, Paced, Results, RunResult, ServerFigures, compare, ended, table, write_files,
};
use super::schedule::Schedule;
use super::thread_loop::{Plan, ThreadTotals, drive};
use super::workload::{Extent, Operations, Workload};
use super::{custom, interfaces, mailings, single_rows, statements, wide_rows};
use crate::commands::client::{BlockingClient, PipelinedConnection};
use crate::commands::machine::machine;
use anyhow::{Context, Result, bail, ensure};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime};

/// The default duration of reads, in seconds.
const READ_SECONDS: f64 = 10.0;

/// Runs a workload and prints its results.
///
/// # Errors
/// The server cannot be reached, refuses the preparation, closes a connection, or has given an incorrect answer; in the
/// last case the results are printed first.
pub fn run(options: &StressOptions) -> Result<()> {
    let load = &options.load;
    load.interrupt.listen();
    match &options.kind {
        Kind::Mailings(options) => return mailings::run(load, options),
        Kind::Interfaces(options) => return interfaces::run(load, options),
        Kind::Compare { first, second } => {
            let (text, json) = compare(&Results::read(first)?, &Results::read(second)?)?;
            if !load.prints_json() {
                put!("{text}")?;
            }
            return write_files(load, &json, &[]);
        }
        _ => {}
    }
    let mut owned;
    let (mut load, mut file) = (load, None);
    if let Kind::Run { file: path } = &options.kind {
        let read = custom::File::read(path)?;
        owned = load.clone();
        owned.keyspace = read.keyspace(&load.keyspace);
        load = &owned;
        file = Some(read);
    }
    check(&options.kind, load)?;
    let mut caller = BlockingClient::open(load.endpoint()?)?;
    let workload: Box<dyn Workload> = match &file {
        Some(file) => file.prepare(&mut caller, load)?,
        None => prepare(&mut caller, &options.kind, load)?,
    };
    drop(caller);
    let lanes = connections(load, &*workload)?;
    let is_endless = matches!(workload.extent(), Extent::Any) || file.is_some();
    let seconds = match load.duration {
        None if is_endless && load.operations.is_none() => Some(READ_SECONDS),
        duration => duration,
    };
    let figures = measure(load, lanes, seconds, &*workload)?;
    if !load.prints_json() {
        say!("{}", table(&figures))?;
    }
    write_files(load, &serde_json::to_value(&figures)?, std::slice::from_ref(&figures))?;
    ended(&figures)?;
    stopped(load)
}

/// An error if the run was ended by Ctrl-C.
pub(super) fn stopped(load: &LoadOptions) -> Result<()> {
    ensure!(!load.interrupt.is_set(), "stopped by Ctrl-C: the figures are of what was done until then");
    Ok(())
}

/// Refuses an interface that the workload does not support.
fn check(kind: &Kind, load: &LoadOptions) -> Result<()> {
    let name = match kind {
        Kind::Load { .. } => "load",
        Kind::Slice { .. } => "slice",
        Kind::Names { .. } => "names",
        _ => return Ok(()),
    };
    load.ensure_known(name, &[Interface::Prepared, Interface::Rpc])
}

/// Creates the tables that the workload needs, and the workload.
fn prepare(caller: &mut BlockingClient, kind: &Kind, load: &LoadOptions) -> Result<Box<dyn Workload>> {
    let keyspace = &load.keyspace;
    if matches!(kind, Kind::Insert { .. } | Kind::Count { .. } | Kind::Load { .. }) {
        make_keyspace(caller, load)?;
        match kind {
            Kind::Count { .. } => statements::make_counters(caller, keyspace)?,
            Kind::Insert { indexed: true } => statements::make_table(caller, keyspace, true)?,
            _ => {
                statements::make_table(caller, keyspace, false)?;
                wide_rows::make_tables(caller, keyspace)?;
            }
        }
    } else if load.fresh {
        bail!("--fresh would drop what is to be read");
    }
    Ok(match *kind {
        Kind::Insert { indexed } => Box::new(single_rows::Insert::prepare(caller, load, indexed, false)?),
        Kind::Find => Box::new(single_rows::Find::prepare(caller, load)?),
        Kind::Count { single } => Box::new(single_rows::Count::prepare(caller, load, single)?),
        Kind::Read => Box::new(single_rows::Read::prepare(caller, load)?),
        Kind::Load { table, batch } => Box::new(wide_rows::Load::prepare(caller, load, table.order, batch)?),
        Kind::Slice { table, start, reversed, limit } => {
            let shape = wide_rows::SliceShape { start, reversed, limit };
            Box::new(wide_rows::Slice::prepare(caller, load, table.order, shape)?)
        }
        Kind::Names { table, names, pages } => {
            Box::new(wide_rows::Names::prepare(caller, load, table.order, (names, pages))?)
        }
        Kind::Mailings(_) | Kind::Interfaces(_) | Kind::Run { .. } | Kind::Compare { .. } => {
            bail!("no workload of single requests")
        }
    })
}

/// Creates the keyspace if it does not exist; drops it first if that is requested.
pub(super) fn make_keyspace(caller: &mut BlockingClient, load: &LoadOptions) -> Result<()> {
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

/// The connections, with the requests in flight distributed over them.
pub(super) fn connections<'w>(
    load: &LoadOptions,
    workload: &'w dyn Workload,
) -> Result<Vec<StressConnection<'w>>> {
    let door = load.endpoint()?;
    let in_flight = load.in_flight;
    let count = u32::from(load.connections).min(in_flight);
    let again = load.duration.is_some() && load.operations.is_none();
    let share = |number: u32| in_flight / count + u32::from(number < in_flight % count);
    (0..count)
        .map(|number| {
            let streams =
                i16::try_from(share(number)).ok().context("at most 32,767 in flight a connection")?;
            let line = PipelinedConnection::open(door, &load.keyspace)?;
            let place = (u64::from(number), u64::from(count));
            let operations = Operations::share(workload.extent(), place, again, load.operations);
            let schedule = load.rate.map(|rate| Schedule::new(rate, place.0, place.1));
            Ok(StressConnection::new(line, workload, operations, streams, schedule))
        })
        .collect()
}

/// Runs the threads and sums up their counts.
pub(super) fn measure(
    load: &LoadOptions,
    mut lanes: Vec<StressConnection<'_>>,
    seconds: Option<f64>,
    workload: &dyn Workload,
) -> Result<RunResult> {
    let connections = lanes.len();
    let threads = usize::from(load.threads).min(connections);
    let mut parts: Vec<Vec<StressConnection<'_>>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, lane) in lanes.drain(..).enumerate() {
        if let Some(part) = parts.get_mut(number % threads) {
            part.push(lane);
        }
    }
    let span = |seconds: f64| Duration::try_from_secs_f64(seconds).context("seconds must not be negative");
    if load.rate.is_some() {
        wake_on_time();
    }
    let (begun, begun_s) = (Instant::now(), SystemTime::now().duration_since(SystemTime::UNIX_EPOCH));
    let measure_from = begun + span(load.warmup)?;
    let seconds = seconds.map(span).transpose()?;
    let send_until = seconds.map(|seconds| measure_from + seconds);
    let is_paced = load.rate.is_some();
    let plan = Plan { begun, measure_from, send_until, is_paced, interrupt: &load.interrupt };
    let empty = || Tally::new(workload.kinds().len(), is_paced);
    let what = format!(
        "{} over {} on {}: {connections} connections, {} in flight",
        workload.name(),
        load.interface().title(),
        load.endpoint()?.address(),
        load.in_flight
    );
    let live = Live::begin(&what, goal(load, workload, seconds), measure_from, load.shows_progress());
    let (told, heard) = sync_channel(threads * 4);
    let (collected, driven) = std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .into_iter()
            .map(|lanes| {
                let (told, tally) = (told.clone(), empty());
                scope.spawn(move || drive(lanes, plan, tally?, &told))
            })
            .collect();
        drop(told);
        let collected = Collected::of(&heard, live, threads, load.server_pid);
        let driven: Result<Vec<ThreadTotals>> = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread of stress has ended early")))
            .collect();
        (collected, driven)
    });
    let driven = driven?;
    let mut collected = collected?;
    let ended = driven.iter().map(|part| part.ended).max().unwrap_or(measure_from);
    let took = ended.saturating_duration_since(measure_from);
    let server = load.server_pid.map(ServerUse::of).transpose()?;
    collected.end(took)?;
    let mut figures = collected.figures(took, workload)?;
    figures.begun_s = begun_s.unwrap_or_default().as_secs();
    figures.connections = connections;
    figures.threads = threads;
    describe(load, &mut figures)?;
    use_of(&driven, collected.server_before.zip(server), &mut figures);
    figures.rate =
        load.rate.map(|asked_per_s| Paced { asked_per_s, late: driven.iter().map(|part| part.late).sum() });
    Ok(figures)
}

/// The goal of the run.
fn goal(load: &LoadOptions, workload: &dyn Workload, seconds: Option<Duration>) -> Goal {
    let answers = match (workload.extent(), load.operations) {
        (Extent::Each(end), Some(most)) => Some(most.min(end)),
        (Extent::Each(end), None) if seconds.is_none() => Some(end),
        (_, operations) => operations,
    };
    match (answers, seconds) {
        (Some(answers), _) => Goal::Answers(answers),
        (None, seconds) => Goal::Time(seconds.unwrap_or_default()),
    }
}

/// Fills in the results that the options determine.
fn describe(load: &LoadOptions, figures: &mut RunResult) -> Result<()> {
    figures.format = FORMAT.into();
    figures.program = env!("CARGO_PKG_VERSION").into();
    figures.label.clone_from(&load.label);
    figures.machine = machine();
    load.endpoint()?.address().clone_into(&mut figures.host);
    figures.interface = load.interface();
    figures.protocol =
        if figures.interface.is_rpc() { "RPC".into() } else { format!("protocol v{}", load.protocol) };
    figures.in_flight = load.in_flight;
    Ok(())
}

/// Fills in the CPU time and memory of client and server.
fn use_of(driven: &[ThreadTotals], server: Option<(ServerUse, ServerUse)>, figures: &mut RunResult) {
    // Incorrect answers cost as much as correct ones.
    let answers = figures.operations + figures.error_count();
    let per_op = |cpu_s: f64| if answers == 0 { 0.0 } else { cpu_s * 1e6 / answers as f64 };
    figures.client_cpu_us_per_op = per_op(driven.iter().map(|part| part.used.cpu.as_secs_f64()).sum());
    let uses = driven.iter().filter(|part| !part.wall.is_zero()).map(|part| {
        let share = |span: Duration| span.as_secs_f64() / part.wall.as_secs_f64();
        ClientUse { cpu_share: share(part.used.cpu), waited_share: share(part.used.waited) }
    });
    let busy = |one: &ClientUse| one.cpu_share + one.waited_share;
    figures.client = uses.max_by(|a, b| busy(a).total_cmp(&busy(b))).unwrap_or_default();
    figures.server = server.map(|(before, after)| ServerFigures {
        cpu_us_per_op: per_op(after.cpu_s - before.cpu_s),
        cpu_s: after.cpu_s - before.cpu_s,
        resident_mib: after.resident_mib,
        resident_peak_mib: after.resident_peak_mib,
    });
}
