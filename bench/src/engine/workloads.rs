//! The workloads, in an order in which each finds what it needs.

use crate::Options;
use crate::content::{below, mix};
use crate::reads::{self, Answer, Place};
use crate::tables::{Tables, single_row, wide_rows};
use crate::timing::{Report, Samples, Target};
use anyhow::{Result, ensure};
use helenus_model::schema::Table;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows a batch, a slice, a request by names.
const HUNDRED: u64 = 100;
/// Writes after which a door hands the log to the operating system: the requests that arrived together.
const TOGETHER: u64 = 128;
/// Rows of a page of the old texts.
const PAGE_ROWS: u64 = 1_310;

/// Runs those that are wanted.
pub fn run(options: &Options, dir: &Path) -> Result<()> {
    ensure!(options.rows >= 100 * HUNDRED, "--rows must be at least {}", 100 * HUNDRED);
    let tables = Tables::create(dir, options.rows)?;
    let bench = Bench {
        report: Report::begin(&options.only),
        span: Duration::try_from_secs_f64(options.seconds)?,
        tables,
        options,
    };
    bench.single_rows()?;
    for table in [&bench.tables.ascending, &bench.tables.descending] {
        bench.wide_partition(table)?;
    }
    bench.tables.database.close()?;
    Ok(())
}

struct Bench<'o> {
    report: Report,
    span: Duration,
    tables: Tables,
    options: &'o Options,
}

impl Bench<'_> {
    /// Writes rows of five columns, reads them by key from memory and from an SSTable.
    fn single_rows(&self) -> Result<()> {
        let Tables { database, single, .. } = &self.tables;
        let rows = self.options.single_rows;
        let mut samples = Samples::default();
        for first in (0..rows).step_by(TOGETHER as usize) {
            samples.time(|| {
                for row in first..first + TOGETHER {
                    let _ticket = database.write(&single_row(single, row))?;
                }
                Ok(database.write_out()?)
            })?;
        }
        let target = Target::RateAtLeast(400e3);
        self.report.row(
            "write 5 columns, periodic, 128 together",
            samples,
            (TOGETHER as f64, "rows"),
            target,
        );
        self.point_reads("memtable", rows)?;
        database.flush(single.id)?;
        self.point_reads("SSTable", rows)
    }

    fn point_reads(&self, source: &str, rows: u64) -> Result<()> {
        let name = format!("read 5 columns by key, {source}");
        if !self.report.wants(&name) {
            return Ok(());
        }
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        let samples = Samples::repeat(self.span, |number, samples| {
            let row = below(mix(number), rows);
            samples.time(|| {
                let command = reads::single(&self.tables.single, row);
                reads::run(&self.tables.database, &command, &mut answer)
            })?;
            answer.check_single(row, &mut expected)
        })?;
        self.report.row(&name, samples, (1.0, "reads"), Target::RateAtLeast(400e3));
        Ok(())
    }

    /// Loads the wide partition and one of 100 rows, reads both from memory and from an SSTable.
    fn wide_partition(&self, table: &Arc<Table>) -> Result<()> {
        let (database, width) = (&self.tables.database, self.options.rows);
        let small = database.write(&wide_rows(table, HUNDRED, 0..HUNDRED))?;
        small.wait()?;
        let mut samples = Samples::default();
        for first in (0..width).step_by(HUNDRED as usize) {
            let rows = first..(first + HUNDRED).min(width);
            samples.time(|| {
                let _ticket = database.write(&wide_rows(table, width, rows))?;
                Ok(database.write_out()?)
            })?;
        }
        let name = format!("load {}, batches of 100, periodic", table.name);
        self.report.row(&name, samples, (HUNDRED as f64, "rows"), Target::RateAtLeast(2.5e6));
        self.wide_reads(table, "memtable")?;
        let mut samples = Samples::default();
        samples.time(|| Ok(database.flush(table.id)?))?;
        self.report.row(&format!("flush {}", table.name), samples, (width as f64, "rows"), Target::None);
        self.wide_reads(table, "SSTable")
    }

    fn wide_reads(&self, table: &Arc<Table>, source: &str) -> Result<()> {
        for reversed in [false, true] {
            for width in [HUNDRED, self.options.rows] {
                self.slices(table, width, reversed, source)?;
            }
        }
        self.names(table, source)?;
        self.scan(table, source)
    }

    /// Slices from random starts; of the small partition from its first row.
    fn slices(&self, table: &Arc<Table>, width: u64, reversed: bool, source: &str) -> Result<()> {
        let direction = if reversed { "reversed" } else { "forward" };
        let name = format!("slice 100 of {width}, {} {direction}, {source}", table.name);
        if !self.report.wants(&name) {
            return Ok(());
        }
        let descending = table.clustering.iter().any(|column| column.reversed);
        let downwards = descending != reversed;
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        let samples = Samples::repeat(self.span, |number, samples| {
            let low = below(mix(number), width - HUNDRED + 1);
            let first = if downwards { low + HUNDRED - 1 } else { low };
            samples.time(|| {
                let command = reads::slice(table, width, Place { first, reversed }, HUNDRED)?;
                reads::run(&self.tables.database, &command, &mut answer)
            })?;
            let row = |at| if downwards { first - at } else { first + at };
            answer.check_wide(width, (0..HUNDRED).map(row), &mut expected)
        })?;
        self.report.row(&name, samples, (1.0, "slices"), Target::MedianAtMost(8.0));
        Ok(())
    }

    /// A name on each of 100 pages, or of as many as there are.
    fn names(&self, table: &Arc<Table>, source: &str) -> Result<()> {
        let name = format!("100 names on 100 pages, {}, {source}", table.name);
        if !self.report.wants(&name) {
            return Ok(());
        }
        let (width, descending) = (self.options.rows, table.clustering.iter().any(|column| column.reversed));
        let page_rows = PAGE_ROWS.min(width / HUNDRED);
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        let samples = Samples::repeat(self.span, |number, samples| {
            let row = |at: u64| {
                let at = if descending { HUNDRED - 1 - at } else { at };
                let (from, to) = (at * width / HUNDRED, (at + 1) * width / HUNDRED - page_rows);
                let random = mix(number << 8 | at);
                from + below(random, to + 1 - from) + below(mix(random), page_rows)
            };
            samples.time(|| {
                let command = reads::names(table, width, (0..HUNDRED).map(row))?;
                reads::run(&self.tables.database, &command, &mut answer)
            })?;
            answer.check_wide(width, (0..HUNDRED).map(row), &mut expected)
        })?;
        let target = if source == "SSTable" { Target::MedianAtMost(200.0) } else { Target::None };
        self.report.row(&name, samples, (1.0, "requests"), target);
        Ok(())
    }

    fn scan(&self, table: &Arc<Table>, source: &str) -> Result<()> {
        let name = format!("scan {}, {source}", table.name);
        if !self.report.wants(&name) {
            return Ok(());
        }
        let rows = self.options.rows + HUNDRED;
        let mut answer = Answer { piece: 64 << 10, ..Answer::default() };
        let samples = Samples::repeat(self.span, |_, samples| {
            samples.time(|| reads::run(&self.tables.database, &reads::scan(table), &mut answer))?;
            ensure!(answer.rows == rows, "a scan found {} rows of {rows}", answer.rows);
            Ok(())
        })?;
        self.report.row(&name, samples, (rows as f64, "rows"), Target::RateAtLeast(12e6));
        Ok(())
    }
}
