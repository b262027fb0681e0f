//! The workloads, in an order in which each finds what it needs.

use crate::Options;
use crate::content::{below, mix};
use crate::cql::Statements;
use crate::memory::{files_kib, resident_mib};
use crate::reads::{self, Answer, Place};
use crate::tables::{Tables, database_options, single_row, wide_rows};
use crate::timing::{Report, Samples, Target, Turns};
use anyhow::{Result, ensure};
use helenus_engine::{MemoryShares, Ticket};
use helenus_model::schema::Table;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows a batch, a slice, a request by names.
const HUNDRED: u64 = 100;
/// Writes after which the event loop hands the log to the operating system: the requests that arrived together.
const TOGETHER: u64 = 128;
/// Bytes of a wide row in Data.db before compression, about.
const ROW_BYTES: u64 = 47;
/// Rows of a page of "Cassandra Query Plans" (2011).
const PAGE_ROWS: u64 = 1_310;
/// Rows of the wide partitions, as far as `--rows` goes.
const WIDTHS: [u64; 7] = [100, 1_200, 5_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Runs those that are wanted.
pub fn run(options: &Options, dir: &Path) -> Result<()> {
    ensure!(options.rows >= 100 * HUNDRED, "--rows must be at least {}", 100 * HUNDRED);
    let tables = make_tables(options, dir)?;
    let span = Duration::try_from_secs_f64(options.seconds)?;
    let report = Report::begin(&options.only, span, options.calls);
    let statements = Statements::new(tables.database.clone());
    let mut bench = Bench { report, tables, statements, options, dir, narrow: BTreeMap::new() };
    bench.single_rows()?;
    bench.narrow_partitions()?;
    for descending in [false, true] {
        bench.wide_partitions(descending)?;
    }
    // A twentieth of what the rows take: the index stays in it and blocks of rows hardly ever do.
    let index_alone = options.rows * ROW_BYTES / 20;
    for (place, cache) in [("page cache", 64 << 10), ("page cache but the index", index_alone)] {
        bench.past_our_cache(place, cache)?;
    }
    bench.tables.database.close()?;
    Ok(())
}

/// With room for everything in memory and a block cache of 512 MiB, or with what `--memory` says.
fn make_tables(options: &Options, dir: &Path) -> Result<Tables> {
    // 200 bytes a row are enough for a memtable; a flush would begin at half of the share.
    let memtables = (2 << 30) + options.rows as usize * 800;
    let roomy = MemoryShares { memtables, cache: 512 << 20 };
    let shares = options.memory.map_or(roomy, |mib| MemoryShares::of_limit(mib << 20));
    let mut database = database_options(dir, shares);
    if options.rows > 2_000_000 && options.memory.is_none() {
        database.segment_bytes = 256 << 20; // the log must not ask for a flush either
    }
    Tables::create(database, (options.granularity.as_deref(), options.chunk_kib))
}

struct Bench<'o> {
    report: Report,
    tables: Tables,
    statements: Statements,
    options: &'o Options,
    dir: &'o Path,
    /// Medians of slices of one of many narrow partitions, by what the report calls them.
    narrow: BTreeMap<String, f64>,
}

/// What is read where.
#[derive(Clone, Copy)]
struct Asked<'a> {
    table: &'a Arc<Table>,
    width: u64,
    /// How many of this width there are, of which each read takes any.
    partitions: u64,
    reversed: bool,
    /// What the report calls the place of the data.
    place: &'a str,
    /// Through prepared statements.
    cql: bool,
}

impl Asked<'_> {
    fn descending(&self) -> bool {
        self.table.clustering.iter().any(|column| column.reversed)
    }

    fn direction(&self) -> &'static str {
        if self.reversed { "reversed" } else { "forward" }
    }

    fn door(&self) -> &'static str {
        if self.cql { "CQL " } else { "" }
    }
}

impl Bench<'_> {
    /// Writes rows of five columns, reads them by key from memory and from an SSTable.
    fn single_rows(&self) -> Result<()> {
        let Tables { database, single, .. } = &self.tables;
        let rows = self.options.single_rows;
        let mut samples = Samples::default();
        for first in (0..rows).step_by(TOGETHER as usize) {
            samples.time(|| {
                let mut last = None;
                for row in first..first + TOGETHER {
                    last = Some(database.write(&single_row(single, row))?);
                }
                database.write_out()?;
                // Ready at once, unless memory is full: then writers wait here for the flush, as clients would.
                Ok(last.map_or(Ok(()), |ticket: Ticket| ticket.wait())?)
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
        let mut samples = Samples::default();
        samples.time(|| Ok(database.flush(single.id)?))?;
        self.report.row(
            "flush of 5 columns, partitions of one row",
            samples,
            (rows as f64, "rows"),
            Target::None,
        );
        self.point_reads("SSTable", rows)
    }

    fn point_reads(&self, source: &str, rows: u64) -> Result<()> {
        let statement = self.statements.single()?;
        for cql in [false, true] {
            let name = format!("{}read 5 columns by key, {source}", if cql { "CQL " } else { "" });
            if !self.report.wants(&name) {
                continue;
            }
            let (mut answer, mut expected) = (Answer::default(), Vec::new());
            let samples = self.report.repeat(|number, samples| {
                let row = below(mix(number), rows);
                samples.time(|| match cql {
                    true => self.statements.run_single(&statement, row, &mut answer),
                    false => {
                        let command = reads::single(&self.tables.single, row);
                        reads::run(&self.tables.database, &command, &mut answer)
                    }
                })?;
                answer.check_single(row, &mut expected)
            })?;
            self.report.row(&name, samples, (1.0, "reads"), Target::RateAtLeast(400e3));
        }
        Ok(())
    }

    fn widths(&self) -> Vec<u64> {
        let rows = self.options.rows;
        let mut widths: Vec<u64> = WIDTHS.into_iter().filter(|width| *width < rows).collect();
        widths.push(rows);
        widths
    }

    /// As many rows as the widest partition has, in partitions of 100, of which each slice reads any. They lie in memory as
    /// far apart as slices of the wide one do, so what is between the two is the width; a single partition of 100 rows is all
    /// in the processor's nearest cache.
    fn narrow_partitions(&mut self) -> Result<()> {
        let table = self.tables.narrow.clone();
        let partitions = self.options.rows / HUNDRED;
        let any = Asked { table: &table, width: HUNDRED, partitions, reversed: false, place: "", cql: false };
        if !slice_name(any).contains(&self.report.only) && !self.report.only.contains("slice 100 of 100,") {
            return Ok(());
        }
        for number in 0..partitions {
            let ticket = self.tables.database.write(&wide_rows(&table, narrow_key(number), 0..HUNDRED))?;
            self.tables.database.write_out()?;
            ticket.wait()?;
        }
        for place in ["memtable", "SSTable"] {
            if place == "SSTable" {
                self.tables.database.flush(table.id)?;
            } else if self.options.memory.is_some() {
                continue;
            }
            for (cql, reversed) in [(false, false), (false, true), (true, false), (true, true)] {
                let from = Asked { reversed, place, cql, ..any };
                let turns = self.slices(&[from])?;
                self.narrow.extend(turns.first().map(|of| (narrow_name(from), of.samples().median_us())));
            }
        }
        Ok(())
    }

    /// Loads the wide partitions of a table, reads the widest and the narrowest from memory and all from an SSTable.
    fn wide_partitions(&mut self, descending: bool) -> Result<()> {
        let table = if descending { self.tables.descending.clone() } else { self.tables.ascending.clone() };
        for width in self.widths() {
            self.load(&table, width)?;
        }
        self.say_memory(&format!("memory after the load of {}", table.name))?;
        let (narrow, wide) = (HUNDRED, self.options.rows);
        if self.options.memory.is_none() {
            self.wide_reads(&table, &[narrow, wide], "memtable")?;
        }
        let mut samples = Samples::default();
        samples.time(|| Ok(self.tables.database.flush(table.id)?))?;
        self.report.row(&format!("flush {}", table.name), samples, (wide as f64, "rows"), Target::None);
        self.say_memory(&format!("memory after the flush of {}", table.name))?;
        let index = format!(
            "Data.db {} KiB, Rows.db {} KiB, both tables",
            files_kib(self.dir, "-Data.db")?,
            files_kib(self.dir, "-Rows.db")?
        );
        self.report.note(&format!("files after the flush of {}", table.name), &index);
        self.wide_reads(&table, &self.widths(), "SSTable")?;
        self.say_memory(&format!("memory after the reads of {}", table.name))
    }

    fn load(&self, table: &Arc<Table>, width: u64) -> Result<()> {
        let database = &self.tables.database;
        let mut samples = Samples::default();
        for first in (0..width).step_by(HUNDRED as usize) {
            let rows = first..(first + HUNDRED).min(width);
            samples.time(|| {
                let ticket = database.write(&wide_rows(table, width, rows))?;
                database.write_out()?;
                // As an answer would: until there is memory for what comes next.
                Ok(ticket.wait()?)
            })?;
        }
        if width == self.options.rows {
            let name = format!("load {}, batches of 100, periodic", table.name);
            self.report.row(&name, samples, (HUNDRED as f64, "rows"), Target::RateAtLeast(2.5e6));
        }
        Ok(())
    }

    fn say_memory(&self, name: &str) -> Result<()> {
        let (now, most) = resident_mib()?;
        self.report.note(name, &format!("{now} MiB resident, {most} MiB at most"));
        Ok(())
    }

    fn wide_reads(&self, table: &Arc<Table>, widths: &[u64], place: &str) -> Result<()> {
        let wide = self.options.rows;
        for cql in [false, true] {
            for reversed in [false, true] {
                // By CQL the ends are enough; the narrowest is what the widest is compared with.
                let widths = widths.iter().filter(|width| !cql || [HUNDRED, wide].contains(width));
                let asked: Vec<_> = widths
                    .map(|&width| Asked { table, width, partitions: 1, reversed, place, cql })
                    .filter(|from| from.width == HUNDRED || self.report.wants(&slice_name(*from)))
                    .collect();
                let turns = self.slices(&asked)?;
                let of = |width| {
                    asked.iter().zip(&turns).find(|(asked, _)| asked.width == width).map(|(_, turns)| turns)
                };
                let (Some(narrowest), Some(widest)) = (of(HUNDRED), of(wide)) else { continue };
                let from = Asked { table, width: wide, partitions: 1, reversed, place, cql };
                let name = format!("{} against slice 100 of 100", slice_name(from));
                self.report.ratio(&name, widest.ratio_to(narrowest), 1.3);
                if let Some(narrow) = self.narrow.get(&narrow_name(from)) {
                    let name = format!("{} against any of {} of 100", slice_name(from), wide / HUNDRED);
                    self.report.ratio(&name, widest.samples().median_us() / narrow, 1.3);
                }
            }
            let from = Asked { table, width: wide, partitions: 1, reversed: false, place, cql };
            self.names(from, if place == "SSTable" { Some(200.0) } else { None })?;
            self.scan(from)?;
        }
        Ok(())
    }

    /// Slices from random starts, of the smallest partitions from the first row; of all that are asked for in turns.
    fn slices(&self, all: &[Asked<'_>]) -> Result<Vec<Turns>> {
        if !all.iter().any(|from| self.report.wants(&slice_name(*from))) {
            return Ok(Vec::new());
        }
        let statements = all.iter().map(|from| self.statements.slice(from.table, from.reversed));
        let statements = statements.collect::<Result<Vec<_>>>()?;
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        let mut read = |which: usize, key: u64, low: u64, samples: &mut Samples| {
            let from = all[which];
            let Asked { table, reversed, .. } = from;
            let downwards = from.descending() != reversed;
            let first = if downwards { low + HUNDRED - 1 } else { low };
            let place = Place { first, reversed };
            samples.time(|| match from.cql {
                true => self.statements.run_slice(&statements[which], (key, place, HUNDRED), &mut answer),
                false => {
                    let command = reads::slice(table, key, place, HUNDRED)?;
                    reads::run(&self.tables.database, &command, &mut answer)
                }
            })?;
            let row = |at| if downwards { first - at } else { first + at };
            answer.check_wide(key, (0..HUNDRED).map(row), &mut expected)
        };
        // All of it once, slice by slice: random starts would take long to come upon the last block that is not in the cache.
        let wide =
            all.iter().enumerate().filter(|(_, from)| from.partitions == 1 && self.options.calls.is_none());
        for (which, from) in wide {
            let mut unused = Samples::default();
            (0..from.width / HUNDRED)
                .try_for_each(|number| read(which, from.width, number * HUNDRED, &mut unused))?;
        }
        let turns = self.report.in_turns(all.len(), |which, number, samples| {
            let Asked { width, partitions, .. } = all[which];
            let random = mix(number);
            let key = if partitions == 1 { width } else { narrow_key(below(random, partitions)) };
            read(which, key, below(random, width - HUNDRED + 1), samples)
        })?;
        for (from, turns) in all.iter().zip(&turns) {
            self.report.row(&slice_name(*from), turns.samples(), (1.0, "slices"), Target::MedianAtMost(8.0));
        }
        Ok(turns)
    }

    /// A name on each of 100 pages, or of as many as there are.
    fn names(&self, from: Asked<'_>, target_us: Option<f64>) -> Result<()> {
        let Asked { table, width, place, .. } = from;
        let name = format!("{}100 names on 100 pages, {}, {place}", from.door(), table.name);
        if !self.report.wants(&name) {
            return Ok(());
        }
        let statement = self.statements.names(table)?;
        let descending = from.descending();
        let page_rows = PAGE_ROWS.min(width / HUNDRED);
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        let samples = self.report.repeat(|number, samples| {
            let row = |at: u64| {
                let at = if descending { HUNDRED - 1 - at } else { at };
                let (from, to) = (at * width / HUNDRED, (at + 1) * width / HUNDRED - page_rows);
                let random = mix(number << 8 | at);
                from + below(random, to + 1 - from) + below(mix(random), page_rows)
            };
            samples.time(|| match from.cql {
                true => {
                    let names = (width, (0..HUNDRED).map(row));
                    self.statements.run_names(&statement, names, &mut answer)
                }
                false => {
                    let command = reads::names(table, width, (0..HUNDRED).map(row))?;
                    reads::run(&self.tables.database, &command, &mut answer)
                }
            })?;
            answer.check_wide(width, (0..HUNDRED).map(row), &mut expected)
        })?;
        let target = target_us.map_or(Target::None, Target::MedianAtMost);
        self.report.row(&name, samples, (1.0, "requests"), target);
        Ok(())
    }

    fn scan(&self, from: Asked<'_>) -> Result<()> {
        let Asked { table, place, .. } = from;
        let name = format!("{}scan {}, {place}", from.door(), table.name);
        if !self.report.wants(&name) {
            return Ok(());
        }
        let statement = self.statements.scan(table)?;
        let rows: u64 = self.widths().iter().sum();
        let mut answer = Answer { piece: 64 << 10, ..Answer::default() };
        let samples = self.report.repeat(|_, samples| {
            samples.time(|| match from.cql {
                true => self.statements.run(&statement, &[], &mut answer),
                false => reads::run(&self.tables.database, &reads::scan(table), &mut answer),
            })?;
            ensure!(answer.rows == rows, "a scan found {} rows of {rows}", answer.rows);
            Ok(())
        })?;
        self.report.row(&name, samples, (rows as f64, "rows"), Target::RateAtLeast(12e6));
        Ok(())
    }

    /// The widest partition again, its blocks in the page cache and so many bytes of them in ours.
    fn past_our_cache(&mut self, place: &str, cache: u64) -> Result<()> {
        let width = self.options.rows;
        for descending in [false, true] {
            // Each by itself: beside such caches there is memory for one row index of ten million rows.
            self.tables.database.close()?;
            self.tables = Tables::reopen_with_cache(self.dir, cache)?;
            self.statements = Statements::new(self.tables.database.clone());
            let Tables { ascending, descending: other, .. } = &self.tables;
            let table = if descending { other } else { ascending };
            let from = Asked { table, width, partitions: 1, reversed: false, place, cql: false };
            self.names(from, Some(700.0))?;
            self.slices(&[from])?;
            self.slices(&[Asked { reversed: true, ..from }])?;
        }
        Ok(())
    }
}

fn slice_name(from: Asked<'_>) -> String {
    let direction = from.direction();
    let Asked { table, width, partitions, place, .. } = from;
    let width = if partitions == 1 { width.to_string() } else { format!("{width}, any of {partitions}") };
    format!("{}slice 100 of {width}, {} {direction}, {place}", from.door(), table.name)
}

/// The same of a narrow partition, by whatever table is compared with it.
fn narrow_name(from: Asked<'_>) -> String {
    format!("{}{}, {}", from.door(), from.direction(), from.place)
}

/// What stands for the width in key and values of one of many narrow partitions.
fn narrow_key(number: u64) -> u64 {
    1_000_000_000 + number
}
