//! The loads and reads of one partition, in every store.

use crate::Options;
use crate::content::{below, mix, name, wide_value};
use crate::reads::{Answer, Place, put};
use crate::samples::{Long, Samples};
use crate::store::{HUNDRED, PARTITION, Store};
use crate::stores::open;
use crate::table::{Figure, Table, Targets};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;

/// Turns that each read takes in each store.
const ROUNDS: u32 = 20;
/// Scans of each store, in turns.
const SCANS: usize = 5;
/// Rows of a page of "Cassandra Query Plans" (2011).
const PAGE_ROWS: u64 = 1_310;

/// Where a slice begins.
#[derive(Clone, Copy)]
pub enum Zone {
    /// In the hundredth part of the partition that begins at so many per cent.
    Percent(u64),
    /// Anywhere.
    Any,
}

/// A read.
#[derive(Clone, Copy)]
pub enum Read {
    /// A slice of 100.
    Slice(Zone, bool),
    /// 100 names on 100 pages, or of as many as there are.
    Pages,
    /// 100 names in a row, anywhere.
    Adjacent,
    /// One name, anywhere.
    One,
}

/// Loads, reads and tells.
pub fn run(options: &Options, dir: &Path) -> Result<()> {
    ensure!(options.rows >= 100 * HUNDRED, "--rows must be at least {}", 100 * HUNDRED);
    let mut bench = Bench { options, stores: Vec::new(), loads: Vec::new(), settled: Vec::new() };
    for name in &options.stores {
        eprintln!("loading {name}");
        bench.load(open(name, dir, options.rows, options)?)?;
        eprintln!("warming {name}");
        bench.warm()?;
    }
    let table = bench.begin()?;
    let slices = Targets { of_rocksdb: Some(1.0), of_lmdb: Some(2.2), own: Some(8.0) };
    for (percent, place) in [(0, "start"), (50, "middle"), (99, "end")] {
        for (reversed, direction) in [(false, "forward"), (true, "reversed")] {
            let read = Read::Slice(Zone::Percent(percent), reversed);
            bench.read(&table, &format!("slice of 100, {place}, {direction}"), read, slices)?;
        }
    }
    for (reversed, direction) in [(false, "forward"), (true, "reversed")] {
        let read = Read::Slice(Zone::Any, reversed);
        bench.read(&table, &format!("slice of 100, anywhere, {direction}"), read, slices)?;
    }
    let names = Targets { of_rocksdb: Some(1.0), of_lmdb: Some(1.3), own: Some(200.0) };
    bench.read(&table, "100 names on 100 random pages", Read::Pages, names)?;
    bench.read(&table, "100 adjacent names, anywhere", Read::Adjacent, Targets { own: None, ..names })?;
    bench.read(
        &table,
        "one row by its whole key",
        Read::One,
        Targets { own: Some(2.5), ..Targets::default() },
    )?;
    bench.scan(&table)?;
    bench.tell_loads(&table);
    Ok(())
}

/// How the stores take turns.
pub struct Turns {
    /// So many turns each.
    pub rounds: u64,
    unmeasured: Option<Long>,
    measured: Long,
}

impl Turns {
    /// Turns of the seconds asked for, or one of so many calls.
    pub fn of(options: &Options) -> Result<Turns> {
        if let Some(calls) = options.calls {
            return Ok(Turns { rounds: 1, unmeasured: None, measured: Long::Calls(calls) });
        }
        let span = Duration::try_from_secs_f64(options.seconds / f64::from(ROUNDS))?;
        let unmeasured = Some(Long::Span(span / 4));
        Ok(Turns { rounds: ROUNDS.into(), unmeasured, measured: Long::Span(span) })
    }

    /// One turn. Its first reads, which find the processor's caches full of another store, do not count.
    pub fn take(
        &self,
        reader: &mut Reader,
        store: &mut dyn Store,
        read: Read,
        samples: &mut Samples,
    ) -> Result<()> {
        if let Some(long) = self.unmeasured {
            reader.repeat(store, read, long, &mut Samples::default())?;
        }
        reader.repeat(store, read, self.measured, samples)
    }
}

struct Bench<'o> {
    options: &'o Options,
    stores: Vec<Box<dyn Store>>,
    /// Of each store, the calls of the load.
    loads: Vec<Samples>,
    /// Of each store, seconds from the first batch to the last byte in its place.
    settled: Vec<f64>,
}

impl Bench<'_> {
    fn load(&mut self, mut store: Box<dyn Store>) -> Result<()> {
        let rows = self.options.rows;
        let mut load = Samples::default();
        for first in (0..rows).step_by(HUNDRED as usize) {
            let batch = first..(first + HUNDRED).min(rows);
            load.time(|| store.load(PARTITION, batch))?;
        }
        let mut settle = Samples::default();
        settle.time(|| store.settle())?;
        self.settled.push(load.seconds() + settle.seconds());
        self.loads.push(load);
        self.stores.push(store);
        Ok(())
    }

    /// Reads something of each block of the newest store.
    fn warm(&mut self) -> Result<()> {
        let rows: Vec<u64> = (0..self.options.rows).step_by(64).collect();
        let (mut answer, mut expected) = (Answer::default(), Vec::new());
        if let Some(store) = self.stores.last_mut() {
            for names in rows.chunks(HUNDRED as usize) {
                answer.clear();
                store.names(PARTITION, names, &mut answer)?;
                answer.check_wide(PARTITION, names.iter().copied(), &mut expected)?;
            }
        }
        Ok(())
    }

    /// Prints what stands beside the table, and its head.
    fn begin(&self) -> Result<Table> {
        for store in &self.stores {
            let mib = store.disk_bytes()? as f64 / f64::from(1 << 20);
            let disk = if mib > 0.0 { format!("; {mib:.0} MiB on disk") } else { String::new() };
            println!("- {}: {}{disk}.", store.name(), store.about());
        }
        println!();
        Ok(Table::begin(self.stores.iter().map(|store| store.name().to_owned()).collect()))
    }

    fn wants(&self, what: &str) -> bool {
        what.contains(&self.options.only)
    }

    /// Times a read in all stores, in turns.
    fn read(&mut self, table: &Table, what: &str, read: Read, targets: Targets) -> Result<()> {
        if !self.wants(what) {
            return Ok(());
        }
        let turns = Turns::of(self.options)?;
        let mut samples: Vec<Samples> = self.stores.iter().map(|_| Samples::default()).collect();
        for round in 0..turns.rounds {
            for (store, samples) in self.stores.iter_mut().zip(&mut samples) {
                let mut reader = Reader::new(self.options.rows, round << 32);
                turns.take(&mut reader, store.as_mut(), read, samples)?;
            }
        }
        let figures: Vec<Figure> = samples.iter().map(Figure::latency).collect();
        table.line(what, &figures, targets);
        Ok(())
    }

    /// Times reads of everything, in turns.
    fn scan(&mut self, table: &Table) -> Result<()> {
        let (what, rows) = ("scan, rows", self.options.rows);
        if !self.wants(what) {
            return Ok(());
        }
        let mut samples: Vec<Samples> = self.stores.iter().map(|_| Samples::default()).collect();
        for store in &mut self.stores {
            check_scan(store.as_mut(), rows)?;
        }
        let mut answer = Answer { piece: 64 << 10, ..Answer::default() };
        for _ in 0..if self.options.calls.is_some() { 1 } else { SCANS } {
            for (store, samples) in self.stores.iter_mut().zip(&mut samples) {
                answer.clear();
                samples.read(|| store.scan(&mut answer))?;
                ensure!(answer.rows == rows, "{}: a scan found {} rows of {rows}", store.name(), answer.rows);
            }
        }
        let figures: Vec<Figure> = samples.iter().map(|samples| Figure::rates(samples, rows)).collect();
        table.line(what, &figures, Targets { own: Some(12e6), ..Targets::default() });
        Ok(())
    }

    fn tell_loads(&mut self, table: &Table) {
        let rows = self.options.rows;
        let rates: Vec<Figure> = self.loads.iter().map(|load| Figure::rate(rows, load.seconds())).collect();
        let target = Targets { own: Some(2.5e6), ..Targets::default() };
        table.line("load in batches of 100, rows", &rates, target);
        let settled: Vec<Figure> = self.settled.iter().map(|seconds| Figure::rate(rows, *seconds)).collect();
        table.line("the same until all is in its place on disk", &settled, Targets::default());
    }
}

/// Compares every name and value of a scan with what was written. Those that are timed forget their answer piece by
/// piece, so they are checked by their count alone.
fn check_scan(store: &mut dyn Store, rows: u64) -> Result<()> {
    let mut answer = Answer::default();
    store.scan(&mut answer)?;
    ensure!(answer.rows == rows, "{}: a scan found {} rows of {rows}", store.name(), answer.rows);
    let (mut rest, mut expected) = (&answer.bytes[..], Vec::new());
    for row in 0..rows {
        expected.clear();
        put(&mut expected, &name(row));
        put(&mut expected, &wide_value(PARTITION, row));
        rest = rest.strip_prefix(&expected[..]).with_context(|| format!("{}: row {row}", store.name()))?;
    }
    ensure!(rest.is_empty(), "{}: {} bytes behind the last row", store.name(), rest.len());
    Ok(())
}

/// Makes reads of one partition and checks them, with buffers that stay.
pub struct Reader {
    width: u64,
    number: u64,
    partitions: u64,
    names: Vec<u64>,
    answer: Answer,
    expected: Vec<u8>,
}

impl Reader {
    /// Reads of a partition of `width` rows; what they ask for follows from `number`, and is never the same again.
    pub fn new(width: u64, number: u64) -> Reader {
        let (answer, expected) = (Answer::default(), Vec::new());
        Reader { width, number, partitions: 1, names: Vec::new(), answer, expected }
    }

    /// The same in one of so many partitions, any of them.
    pub fn of_partitions(self, partitions: u64) -> Reader {
        Reader { partitions, ..self }
    }

    /// Reads for a while.
    pub fn repeat(
        &mut self,
        store: &mut dyn Store,
        read: Read,
        long: Long,
        samples: &mut Samples,
    ) -> Result<()> {
        samples.repeat(long, |samples| {
            self.number += 1;
            let random = mix(self.number);
            let partition = PARTITION + below(mix(random), self.partitions);
            match read {
                Read::Slice(zone, reversed) => self.slice(store, partition, zone, reversed, samples),
                Read::Pages => {
                    self.on_pages();
                    self.by_names(store, partition, samples)
                }
                Read::Adjacent => {
                    let first = below(random, self.width - HUNDRED + 1);
                    self.names.clear();
                    self.names.extend(first..first + HUNDRED);
                    self.by_names(store, partition, samples)
                }
                Read::One => {
                    self.names.clear();
                    self.names.push(below(random, self.width));
                    self.by_names(store, partition, samples)
                }
            }
        })
    }

    fn slice(
        &mut self,
        store: &mut dyn Store,
        partition: u64,
        zone: Zone,
        reversed: bool,
        samples: &mut Samples,
    ) -> Result<()> {
        let limit = HUNDRED.min(self.width);
        let (from, among) = match zone {
            Zone::Any => (0, self.width - limit + 1),
            Zone::Percent(percent) => {
                let from = (self.width * percent / 100).min(self.width - limit);
                (from, (self.width / 100).min(self.width - limit + 1 - from))
            }
        };
        let low = from + below(mix(self.number), among);
        let first = if reversed { low + limit - 1 } else { low };
        self.answer.clear();
        samples.read(|| store.slice(partition, Place { first, reversed }, limit, &mut self.answer))?;
        let row = |at| if reversed { first - at } else { first + at };
        self.answer.check_wide(partition, (0..limit).map(row), &mut self.expected)
    }

    /// Chooses a name on each of 100 pages.
    fn on_pages(&mut self) {
        let page_rows = PAGE_ROWS.min(self.width / HUNDRED);
        self.names.clear();
        for at in 0..HUNDRED {
            let (from, to) = (at * self.width / HUNDRED, (at + 1) * self.width / HUNDRED - page_rows);
            let random = mix(self.number << 8 | at);
            self.names.push(from + below(random, to + 1 - from) + below(mix(random), page_rows));
        }
    }

    fn by_names(&mut self, store: &mut dyn Store, partition: u64, samples: &mut Samples) -> Result<()> {
        self.answer.clear();
        samples.read(|| store.names(partition, &self.names, &mut self.answer))?;
        self.answer.check_wide(partition, self.names.iter().copied(), &mut self.expected)
    }
}
