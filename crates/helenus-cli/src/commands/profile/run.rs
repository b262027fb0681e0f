//! Runs a profile: load, flush and compact, warm up, measure, check.

use super::answer::Answer;
use super::cases::{CASES, Case, Query, Slice};
use super::embedded::Embedded;
use super::options::{Command, ProfileOptions, RunOptions};
use super::progress::{self, Progress};
use super::remote::Remote;
use super::results::{Measured, Passed, Profile, Settled, TouchedMean};
use super::rows::{Partition, Row};
use super::subject::Subject;
use super::{compare, page, small_rows, table};
use crate::commands::client::Endpoint;
use crate::commands::numbers::{grouped, seconds};
use crate::commands::server_address::{CQL_PORT, of_environment};
use crate::commands::stress::WideOrder as Order;
use anyhow::{Context, Result, ensure};
use helenus_wire::native::Version;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Number of columns in a page of the warm-up.
const WARM_UP_PAGE: u64 = 5_000;
/// Number of queries of each case and row that run with a probe, besides the timed ones.
const PROBED: u64 = 20;

/// Runs the command.
///
/// # Errors
/// The subject cannot be reached or refuses a request; an answer differs from the loaded data.
pub fn run(options: &ProfileOptions) -> Result<()> {
    if let Some(Command::Compare { first, second }) = &options.command {
        put!("{}", compare::text(&Profile::read(first)?, &Profile::read(second)?)?)?;
        return Ok(());
    }
    let options = &with_subject(options.run.clone())?;
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    ensure!(is_name(&options.keyspace), "--keyspace: small letters, digits and underscores only");
    if options.rpc.is_some() && options.cql.is_some() {
        return both(options);
    }
    write(&profile(options)?, options)
}

/// The options with the server of the environment, if they name nothing to profile.
fn with_subject(mut options: RunOptions) -> Result<RunOptions> {
    if !options.in_process && options.cql.is_none() && options.rpc.is_none() {
        let named = of_environment()?.map(|address| address.with_port(CQL_PORT));
        options.cql = Some(named.context(
            "nothing to profile: give --host HOST[:PORT] or --rpc HOST[:PORT] for a server, or --in-process for the engine alone",
        )?);
    }
    Ok(options)
}

/// Profiles the subject of the options.
fn profile(options: &RunOptions) -> Result<Profile> {
    let begun_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (reached, how) = match (&options.rpc, &options.cql) {
        (Some(address), _) => ("rpc", format!("RPC on {address}")),
        (None, Some(address)) => ("cql", format!("CQL on {address}")),
        (None, None) => ("in-process", "the engine in this process".to_owned()),
    };
    let mut profile = Profile::begin(options.label.clone().unwrap_or(how), reached, begun_s);
    (profile.repeats, profile.discarded, profile.seed) = (options.repeats, options.discard, options.seed);
    if options.has_wide_rows() {
        let mut runner = Runner { subject: open(options)?, options, profile, answer: Answer::default() };
        runner.run()?;
        profile = runner.profile;
    }
    if !options.sizes.is_empty() {
        small_rows::measure(options, &mut profile)?;
    }
    Ok(profile)
}

/// Profiles a server over both protocols: data loaded over RPC is read over CQL too.
fn both(options: &RunOptions) -> Result<()> {
    let is_one = options.json.is_none() && options.report.is_none() && options.label.is_none();
    ensure!(
        is_one,
        "--json, --report and --label are of one interface: run --rpc, then --host with --keep, and set their files side by \
         side with `helenus profile compare`"
    );
    let rpc = profile(&RunOptions { cql: None, ..options.clone() })?;
    let cql = profile(&RunOptions { rpc: None, keep: true, after_load: None, ..options.clone() })?;
    put!("{}\n{}\n{}", table::text(&rpc), table::text(&cql), compare::text(&cql, &rpc)?)?;
    Ok(())
}

fn open(options: &RunOptions) -> Result<Box<dyn Subject>> {
    let access = options.access.access()?;
    let door = match (&options.rpc, &options.cql) {
        (Some(address), _) => Endpoint::Rpc(address, access),
        (None, Some(address)) => {
            Endpoint::Cql(address, Version::from_number(options.protocol, false)?, access)
        }
        (None, None) => return Ok(Box::new(Embedded::open(options)?)),
    };
    Ok(Box::new(Remote::open(door, options)?))
}

fn write(profile: &Profile, options: &RunOptions) -> Result<()> {
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        put!("{}", table::text(profile))?;
    }
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(profile)?;
        if to_stdout {
            say!("{json}")?;
        } else {
            std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if let Some(path) = &options.report {
        std::fs::write(path, page::html(profile))
            .with_context(|| format!("cannot write {}", path.display()))?;
        note!("report in {}", path.display());
    }
    Ok(())
}

struct Runner<'o> {
    subject: Box<dyn Subject>,
    options: &'o RunOptions,
    profile: Profile,
    answer: Answer,
}

impl Runner<'_> {
    fn run(&mut self) -> Result<()> {
        let rows = self.options.wide_rows();
        let cases: Vec<&Case> = CASES.iter().filter(|case| self.options.measures(case.test)).collect();
        let tables: Vec<Order> = [Order::Asc, Order::Desc]
            .into_iter()
            .filter(|order| cases.iter().any(|case| case.order == *order))
            .collect();
        self.subject.make_tables(!self.options.keep)?;
        for order in &tables {
            for row in &rows {
                self.load(Partition { order: *order, row: *row })?;
            }
        }
        self.settle()?;
        // Each table is warmed up right before it is measured, because both together may not fit in the cache.
        for order in &tables {
            for row in &rows {
                self.warm_up(Partition { order: *order, row: *row })?;
            }
            for case in cases.iter().filter(|case| case.order == *order) {
                for row in &rows {
                    self.measure(case, *row)?;
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, partition: Partition) -> Result<()> {
        let Partition { order, row } = partition;
        if self.options.keep && self.is_there(partition)? {
            return Ok(());
        }
        let progress = Progress::begin(format!("load {partition}"), row.width);
        self.subject.load(partition, &progress).with_context(|| format!("while {partition} was loaded"))?;
        self.profile.loads.push(Passed::new(order, row, progress.end()));
        Ok(())
    }

    /// Whether the row has at least one column. The warm-up checks that all columns exist.
    fn is_there(&mut self, partition: Partition) -> Result<bool> {
        let query = Query::Slice(Slice { start: None, reversed: false, count: 1 });
        self.subject.ask(partition, &query, &mut self.answer)?;
        Ok(self.answer.columns() > 0)
    }

    /// Flushes and compacts the load, through the subject or the `--after-load` command, and prints what was done.
    fn settle(&mut self) -> Result<()> {
        let mut settled = self.subject.settle()?;
        progress::clear();
        let told = |what: &str, took: Duration| note!("{what:<34} {:>30}", seconds(took));
        for (what, took) in [("flush", settled.flush_s), ("compact", settled.compact_s)] {
            took.and_then(|took| Duration::try_from_secs_f64(took).ok()).inspect(|took| told(what, *took));
        }
        if let Some(command) = &self.options.after_load {
            told("after the load", after_load(command)?);
            settled.after_load = Some(command.clone());
        } else if settled.compact_s.is_none() {
            note!("{}", untold(&self.options.keyspace));
        }
        if let Settled { sstables: Some(sstables), disk_bytes: Some(bytes), .. } = &settled {
            note!("{:<34} {sstables} of {} bytes", "SSTables", grouped(*bytes));
        }
        self.profile.settled = settled;
        Ok(())
    }

    /// Reads every column of a row in pages, and checks each page.
    fn warm_up(&mut self, partition: Partition) -> Result<()> {
        let Partition { order, row } = partition;
        let progress = Progress::begin(format!("warm up {partition}"), row.width);
        let mut read = 0;
        while read < row.width {
            let start = match order {
                Order::Asc => read,
                Order::Desc => row.width - 1 - read,
            };
            let start = (read > 0).then_some(start);
            let query = Query::Slice(Slice { start, reversed: false, count: WARM_UP_PAGE });
            self.subject.ask(partition, &query, &mut self.answer)?;
            self.check("warm-up", partition, &query)?;
            progress.add(self.answer.columns());
            read += WARM_UP_PAGE;
        }
        self.profile.warm_ups.push(Passed::new(order, row, progress.end()));
        Ok(())
    }

    fn measure(&mut self, case: &Case, row: Row) -> Result<()> {
        let partition = Partition { order: case.order, row };
        let Profile { repeats, seed, .. } = self.profile;
        let mut touched = TouchedMean::default();
        let draw = |number: u64| seed.wrapping_mul(1 << 32).wrapping_add(number);
        let mut columns = 0;
        for number in 0..self.options.discard {
            let query = case.query(row, draw((1 << 31) + number));
            self.subject.ask(partition, &query, &mut self.answer)?;
            self.check(case.title, partition, &query)?;
        }
        for number in 0..PROBED.min(repeats) {
            let query = case.query(row, draw(number));
            let probe = self.subject.probe(partition, &query, &mut self.answer)?;
            self.check(case.title, partition, &query)?;
            columns = self.answer.columns();
            match probe {
                Some(probe) => touched.add(&probe),
                None => break,
            }
        }
        let mut latencies_us = Vec::with_capacity(repeats as usize);
        for number in 0..repeats {
            let query = case.query(row, draw(PROBED + number));
            let took = self.subject.ask(partition, &query, &mut self.answer)?;
            self.check(case.title, partition, &query)?;
            latencies_us.push(took.as_nanos() as f64 / 1e3);
        }
        let mut measured = Measured::new(case, row, columns, latencies_us);
        measured.touched = touched.mean();
        self.profile.cases.push(measured);
        Ok(())
    }

    fn check(&mut self, what: &str, partition: Partition, query: &Query) -> Result<()> {
        self.answer.check(partition, query).with_context(|| {
            let keep = if self.options.keep {
                ". --keep reads what is there: run without it to load anew"
            } else {
                ""
            };
            format!("WRONG ANSWER, {partition}, {what}{keep}")
        })
    }
}

/// Runs the `--after-load` command; returns the time it took.
fn after_load(command: &str) -> Result<Duration> {
    let begun = Instant::now();
    let status = std::process::Command::new("sh").args(["-c", command]).stdout(std::io::stderr()).status();
    let status = status.context("cannot run --after-load with sh")?;
    ensure!(status.success(), "--after-load: `{command}` ended with {status}");
    Ok(begun.elapsed())
}

/// The warning if the load can neither be flushed nor compacted.
fn untold(keyspace: &str) -> String {
    format!(
        "NOT FLUSHED AND NOT COMPACTED: this server cannot be told to from here. A Helenus on this machine can, with \
         --server-data DIR;\nCassandra can with --after-load 'nodetool flush {keyspace} && nodetool compact {keyspace}'"
    )
}
