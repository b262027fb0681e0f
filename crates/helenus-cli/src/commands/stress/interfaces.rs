//! `helenus stress interfaces`: runs the four tests of "CQL benchmarking" (2011, CQL against RPC) over every interface
//! of a server in turn, and prints them side by side.
//!
//! All tests use the same tables. They have COMPACT STORAGE if Thrift RPC is compared, because it sees no other tables.
//! A test that writes begins with empty tables each time, so that no interface is affected by the previous one. The
//! rows to be read are written over the first interface, then flushed and compacted if the server allows it.

use super::interface::Interface;
use super::options::{InterfacesOptions, LoadOptions, Test};
use super::permutation::Permutation;
use super::results::{RunResult, side_by_side, write_files};
use super::run::{connections, make_keyspace, measure, stopped};
use super::workload::{Extent, Workload, Wrong};
use super::{single_rows, statements};
use crate::commands::client::{AnswerBody, BlockingClient};
use crate::commands::numbers::{grouped, times};
use crate::commands::profile::AdminClient;
use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

/// The number of rows in "CQL benchmarking".
const TEXT_ROWS: u64 = 20_000_000;
/// The number of rows in its tests with an index and of counters.
const TEXT_ROWS_FEW: u64 = 10_000_000;

/// Runs the tests and prints a table for each.
///
/// # Errors
/// A server cannot be reached or refuses a request, an answer is not right; the tables made until then are printed.
pub(super) fn run(load: &LoadOptions, options: &InterfacesOptions) -> Result<()> {
    let interfaces = interfaces(load, options)?;
    let mut first = load.clone();
    first.over = interfaces.iter().copied().find(|one| one.is_rpc()).or(interfaces.first().copied());
    let mut caller = BlockingClient::open(first.endpoint()?)?;
    make_keyspace(&mut caller, load)?;
    let (mut runs, mut faults) = (Vec::new(), 0);
    for test in &options.tests {
        let rows = rows(load, options, *test);
        make(&mut caller, &load.keyspace, *test)?;
        if *test == Test::Read {
            if !options.tests.contains(&Test::Insert) {
                fill(&first, rows)?;
            }
            settle(load, options)?;
        }
        let mut of_test: Vec<Vec<RunResult>> = vec![Vec::new(); interfaces.len()];
        for _ in 0..options.runs {
            for (interface, figures) in interfaces.iter().zip(&mut of_test) {
                let mut load = load.clone();
                (load.over, load.rows) = (Some(*interface), rows);
                figures.push(once(&mut caller, &load, *test)?);
                stopped(&load)?;
            }
        }
        let medians: Vec<RunResult> = of_test.iter().filter_map(|figures| median(figures)).collect();
        faults += of_test.iter().flatten().map(RunResult::error_count).sum::<u64>();
        if !load.prints_json() {
            say!("{}", side_by_side(&title(*test, rows, options.runs), &medians))?;
            errors(&of_test)?;
        }
        runs.extend(of_test.into_iter().flatten());
    }
    write_files(load, &json!({"rows": load.rows, "repeated": options.runs, "runs": runs}), &runs)?;
    ensure!(faults == 0, "{faults} answers were not right");
    Ok(())
}

/// The interfaces to compare.
fn interfaces(load: &LoadOptions, options: &InterfacesOptions) -> Result<Vec<Interface>> {
    if let Some(interface) = load.over {
        bail!(
            "`stress interfaces` goes over several: write --interfaces {} in the place of --over",
            format!("{interface:?}").to_lowercase()
        );
    }
    let can = |one: &Interface| !one.is_rpc() || load.rpc.is_some();
    let mut chosen = options.interfaces.clone();
    if chosen.is_empty() {
        chosen = Interface::ALL.into_iter().filter(can).collect();
    }
    ensure!(
        chosen.iter().all(can),
        "--interfaces: RPC is reached at --rpc HOST[:PORT] (`helenus serve --rpc localhost` listens there)"
    );
    Ok(chosen)
}

fn rows(load: &LoadOptions, options: &InterfacesOptions, test: Test) -> u64 {
    match test {
        _ if !options.as_in_the_text => load.rows,
        Test::Insert | Test::Read => TEXT_ROWS,
        Test::Indexed | Test::Count => TEXT_ROWS_FEW,
    }
}

fn title(test: Test, rows: u64, runs: u16) -> String {
    let rows = grouped(rows);
    let what = match test {
        Test::Insert => format!("Insert {rows} rows x 5 columns (no index)"),
        Test::Indexed => format!("Insert {rows} rows x 5 columns (an index on one)"),
        Test::Count => format!("Counter increments, {rows} rows x 5 columns"),
        Test::Read => format!("Read {rows} rows x 5 columns"),
    };
    if runs > 1 { format!("{what}, the median of {runs} runs") } else { what }
}

fn make(caller: &mut BlockingClient, keyspace: &str, test: Test) -> Result<()> {
    match test {
        Test::Count => statements::make_counters(caller, keyspace),
        _ => statements::make_table(caller, keyspace, test == Test::Indexed),
    }
}

fn empty(caller: &mut BlockingClient, keyspace: &str, test: Test) -> Result<()> {
    let table = match test {
        Test::Count => statements::counters(),
        Test::Insert | Test::Indexed => statements::table(test == Test::Indexed),
        Test::Read => return Ok(()),
    };
    caller.run(&format!("TRUNCATE TABLE {keyspace}.{table}"))
}

/// The workload of a test.
fn workload(load: &LoadOptions, test: Test) -> Result<Box<dyn Workload>> {
    let mut caller = BlockingClient::open(load.endpoint()?)?;
    if let BlockingClient::Rpc(client) = &mut caller {
        client.use_keyspace(&load.keyspace)?;
    }
    Ok(match test {
        Test::Insert | Test::Indexed => {
            Box::new(single_rows::Insert::prepare(&mut caller, load, test == Test::Indexed, true)?)
        }
        Test::Count => {
            Box::new(EachRow::new(single_rows::Count::prepare(&mut caller, load, false)?, load.rows))
        }
        Test::Read => Box::new(EachRow::new(single_rows::Read::prepare(&mut caller, load)?, load.rows)),
    })
}

/// Runs one test over one interface: a warm-up if requested, then every row once, or for the given duration.
fn once(caller: &mut BlockingClient, load: &LoadOptions, test: Test) -> Result<RunResult> {
    let workload = workload(load, test)?;
    if load.warmup > 0.0 {
        empty(caller, &load.keyspace, test)?;
        let warm = LoadOptions {
            duration: Some(load.warmup),
            warmup: 0.0,
            server_pid: None,
            quiet: true,
            operations: None,
            ..load.clone()
        };
        measure(&warm, connections(&warm, &*workload)?, warm.duration, &*workload)?;
    }
    empty(caller, &load.keyspace, test)?;
    let load = LoadOptions { warmup: 0.0, ..load.clone() };
    measure(&load, connections(&load, &*workload)?, load.duration, &*workload)
}

/// Writes the rows that will be read.
fn fill(load: &LoadOptions, rows: u64) -> Result<()> {
    let load =
        LoadOptions { rows, duration: None, operations: None, rate: None, warmup: 0.0, ..load.clone() };
    let workload = workload(&load, Test::Insert)?;
    let figures = measure(&load, connections(&load, &*workload)?, None, &*workload)?;
    super::results::ended(&figures).context("while the rows to be read were written")
}

/// Flushes and compacts the rows that will be read, if the server's admin socket is reachable.
fn settle(load: &LoadOptions, options: &InterfacesOptions) -> Result<()> {
    match AdminClient::find(load.endpoint()?.address(), options.server_data.as_deref())? {
        Some(door) => {
            door.flush(&load.keyspace)?;
            door.compact(&load.keyspace)?;
        }
        None => note!(
            "NOT FLUSHED AND NOT COMPACTED before the reads: this server cannot be told to from here. A Helenus on this machine \
             can, with --server-data DIR"
        ),
    }
    Ok(())
}

/// The run with the median rate.
fn median(runs: &[RunResult]) -> Option<RunResult> {
    let mut order: Vec<&RunResult> = runs.iter().collect();
    order.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s));
    order.get((order.len().max(1) - 1) / 2).copied().cloned()
}

fn errors(of_test: &[Vec<RunResult>]) -> Result<()> {
    for run in of_test.iter().flatten() {
        for (kind, errors) in &run.errors {
            say!("  {}: {} {kind}, first: {}", run.interface.title(), times(errors.count), errors.first)?;
        }
    }
    Ok(())
}

/// A workload that reads each row once in a scattered order, whereas others draw rows at random.
struct EachRow<W> {
    of: W,
    rows: u64,
    order: Permutation,
}

impl<W: Workload> EachRow<W> {
    fn new(of: W, rows: u64) -> EachRow<W> {
        EachRow { of, rows, order: Permutation::new(rows) }
    }

    /// Workloads derive the row of an operation from its leading bits: `below(operation, rows)`. This is the least
    /// operation that gives `row`.
    fn operation(&self, row: u64) -> u64 {
        let row = u128::from(self.order.image(row));
        u64::try_from((row << 64).div_ceil(u128::from(self.rows.max(1)))).unwrap_or(u64::MAX)
    }
}

impl<W: Workload> Workload for EachRow<W> {
    fn name(&self) -> String {
        self.of.name()
    }

    fn extent(&self) -> Extent {
        Extent::Each(self.rows)
    }

    fn put(&self, row: u64, stream: i16, out: &mut Vec<u8>) {
        self.of.put(self.operation(row), stream, out);
    }

    fn check(&self, row: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        self.of.check(self.operation(row), answer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::below;
    use super::*;

    /// A workload without requests.
    struct Silent;

    impl Workload for Silent {
        fn name(&self) -> String {
            String::new()
        }

        fn extent(&self) -> Extent {
            Extent::Any
        }

        fn put(&self, _operation: u64, _stream: i16, _out: &mut Vec<u8>) {}

        fn check(&self, _operation: u64, _answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
            Ok(0)
        }
    }

    #[test]
    fn each_row_is_asked_for_once() {
        for rows in [1, 7, 1_000, 4_096] {
            let each = EachRow::new(Silent, rows);
            let asked: std::collections::BTreeSet<u64> =
                (0..rows).map(|row| below(each.operation(row), rows)).collect();
            assert_eq!(asked.len() as u64, rows);
        }
    }

    #[test]
    fn the_median_run_is_shown() {
        let run = |ops_per_s| RunResult { ops_per_s, ..RunResult::default() };
        let median = |rates: &[f64]| {
            super::median(&rates.iter().copied().map(run).collect::<Vec<_>>()).map(|run| run.ops_per_s)
        };
        assert_eq!(
            [median(&[3.0, 1.0, 2.0]), median(&[2.0, 1.0]), median(&[])],
            [Some(2.0), Some(1.0), None]
        );
    }
}
