//! `helenus sstable partitions`: lists large partitions of SSTables, with the counts of Cassandra's sstablepartitions.

use super::dump::key_types;
use super::find::{Found, find_all};
use super::known_schema::{KnownSchema, SchemaOption};
use crate::commands::progress::{Progress, size};
use anyhow::Result;
use clap::Args;
use helenus_host::Host;
use helenus_model::deletion::Liveness;
use helenus_model::row::RowView;
use helenus_model::types::key_text;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_server::quantity::parse_size;
use helenus_sstable::block::ReadContext;
use helenus_sstable::data::KeyRange;
use helenus_sstable::statistics::EstimatedHistogram;
use helenus_sstable::table::{Scan, SsTable};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  helenus sstable partitions data/shop                   sizes, rows, cells and tombstones of each SSTable's partitions
  helenus sstable partitions --min-size 100MiB data      and the keys of those of 100 MiB or more
  helenus sstable partitions --json --min-tombstones 1000 data | jq .key";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct PartitionsOptions {
    /// SSTables, by any of their files, or folders; folders in folders are looked into
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name the partitions of at least this many bytes: a number, or one with KiB, MiB, GiB
    #[arg(short = 't', long, value_name = "SIZE", value_parser = parse_size)]
    min_size: Option<u64>,
    /// Name the partitions of at least this many rows
    #[arg(short = 'w', long, value_name = "ROWS")]
    min_rows: Option<u64>,
    /// Name the partitions of at least this many cells
    #[arg(short = 'c', long, value_name = "CELLS")]
    min_cells: Option<u64>,
    /// Name the partitions of at least this many tombstones
    #[arg(short = 'o', long, value_name = "TOMBSTONES")]
    min_tombstones: Option<u64>,
    /// Only the partition of this key
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// All but the partition of this key
    #[arg(short = 'x', long = "exclude-key", value_name = "KEY")]
    excluded: Vec<String>,
    /// Only sizes: rows, cells and tombstones are not counted
    #[arg(short = 'y', long)]
    partitions_only: bool,
    /// Time in seconds since 1970 at which cells and rows count as expired; the present by default
    #[arg(short = 'u', long, value_name = "SECONDS")]
    current_timestamp: Option<i64>,
    #[command(flatten)]
    schema: SchemaOption,
    /// A line of JSON for each partition named, and one for each SSTable
    #[arg(long)]
    json: bool,
}

/// Number of elements between two reports of progress.
const PROGRESS_ELEMENTS: u64 = 1024;

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The counts of a partition in one file, by the names and rules of `SSTablePartitions.PartitionStats`: the static row
/// and the partition deletion are not counted, expired cells and rows count as tombstones, and a cell that expires
/// together with its row is counted with the row only.
#[derive(Default, Serialize, Clone)]
struct Counts {
    bytes: u64,
    rows: u64,
    cells: u64,
    tombstones: u64,
    row_tombstones: u64,
    range_tombstones: u64,
    collection_tombstones: u64,
    cell_tombstones: u64,
    expired_rows: u64,
    expired_cells: u64,
    /// Number of cells of the static row, which no other count includes.
    static_cells: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    key: String,
    /// The serialised key in hexadecimal.
    key_bytes: String,
    live: bool,
    position: u64,
    #[serde(flatten)]
    counts: &'a Counts,
    data: &'a PathBuf,
}

#[derive(Serialize)]
struct Summary<'a> {
    data: &'a PathBuf,
    partitions: u64,
    percentiles: Vec<Row>,
}

/// A line of the summary.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    bytes: u64,
    rows: u64,
    cells: u64,
    tombstones: u64,
}

/// Runs the command.
///
/// # Errors
/// Damage; at the end, that files were skipped.
pub fn run(host: &Host, options: &PartitionsOptions) -> Result<()> {
    let findings = find_all(&*host.disk, &options.files)?;
    let known = KnownSchema::new(&*host.disk, &options.schema)?;
    let tables: Result<Vec<_>> =
        findings.sstables.iter().map(|found| Ok((found.open(&*host.disk, &known)?, found))).collect();
    let tables = tables?;
    let mut progress =
        Progress::begin("partitions", tables.iter().map(|(table, _)| table.uncompressed_bytes()).sum());
    let now_s = options.current_timestamp.unwrap_or_else(|| host.clock.wall_us() / 1_000_000);
    let mut before = 0;
    for (table, found) in &tables {
        let data = found.data();
        progress.name(format!("partitions {}", found.descriptor));
        let mut report = Report { options, found, now_s, totals: Totals::new(), data: data.clone() };
        report.run(table, (&mut progress, before))?;
        before += table.uncompressed_bytes();
    }
    drop(progress);
    findings.tell_refused(options.json, &mut std::io::stdout().lock())?;
    findings.end()
}

/// Statistics over the partitions of a file.
struct Totals {
    histograms: [EstimatedHistogram; 4],
    least: [u64; 4],
    most: [u64; 4],
}

impl Totals {
    fn new() -> Totals {
        let histograms = [155, 118, 118, 118].map(EstimatedHistogram::new);
        Totals { histograms, least: [u64::MAX; 4], most: [0; 4] }
    }

    fn add(&mut self, counts: &Counts) {
        let figures = [counts.bytes, counts.rows, counts.cells, counts.tombstones];
        for (index, figure) in figures.into_iter().enumerate() {
            self.histograms[index].add(figure);
            self.least[index] = self.least[index].min(figure);
            self.most[index] = self.most[index].max(figure);
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |name, figures: [u64; 4]| {
            let [bytes, rows, cells, tombstones] = figures;
            Row { name, bytes, rows, cells, tombstones }
        };
        let parts =
            [("~p50", 0.5), ("~p75", 0.75), ("~p90", 0.9), ("~p95", 0.95), ("~p99", 0.99), ("~p999", 0.999)];
        let mut out: Vec<Row> = parts
            .into_iter()
            .map(|(name, part)| row(name, [0, 1, 2, 3].map(|index| self.histograms[index].percentile(part))))
            .collect();
        let count = self.histograms[0].count();
        out.push(row("min", if count == 0 { [0; 4] } else { self.least }));
        out.push(row("max", self.most));
        out
    }
}

struct Report<'a> {
    options: &'a PartitionsOptions,
    found: &'a Found,
    now_s: i64,
    totals: Totals,
    data: PathBuf,
}

impl Report<'_> {
    /// Counts the partitions of a table. `before` is the number of bytes of the SSTables that are done.
    fn run(&mut self, table: &Arc<SsTable>, (progress, before): (&mut Progress, u64)) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if !self.options.json {
            progress.clear();
            let (plain, stored) = (size(table.uncompressed_bytes()), size(table.data_bytes()));
            let (keyspace, name, _) = self.found.owner();
            writeln!(
                out,
                "\nProcessing {keyspace}.{name} {} ({plain} uncompressed, {stored} on disk)",
                self.found.descriptor
            )?;
        }
        let types = key_types(table.schema());
        let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
        let mut scan = table.scan(&KeyRange::all(), &mut cx)?;
        scan.set_keys(false);
        let mut more = scan.next_partition(&mut cx)?;
        while more {
            let (key, start, live) = (key_text(&types, scan.key()), scan.start(), scan.deletion().is_live());
            let key_bytes = hex(scan.key());
            let mut counts = match self.options.partitions_only {
                true => Counts::default(),
                false => self.count(&mut scan, &mut cx, &mut |position| {
                    progress.at(before + position);
                })?,
            };
            more = scan.next_partition(&mut cx)?;
            let end = if more { scan.start() } else { table.uncompressed_bytes() };
            counts.bytes = end - start;
            progress.at(before + end);
            if self.is_excluded(&key) {
                continue;
            }
            self.totals.add(&counts);
            if self.is_named(&counts) {
                let line = Line { key, key_bytes, live, position: start, counts: &counts, data: &self.data };
                progress.clear();
                self.print(&mut out, &line)?;
            }
        }
        progress.clear();
        self.summary(&mut out)
    }

    fn is_excluded(&self, key: &String) -> bool {
        let PartitionsOptions { keys, excluded, .. } = self.options;
        excluded.contains(key) || (!keys.is_empty() && !keys.contains(key))
    }

    fn is_named(&self, counts: &Counts) -> bool {
        let options = self.options;
        let bounds = [
            (options.min_size, counts.bytes),
            (options.min_rows, counts.rows),
            (options.min_cells, counts.cells),
            (options.min_tombstones, counts.tombstones),
        ];
        bounds.into_iter().any(|(least, figure)| least.is_some_and(|least| figure >= least))
    }

    fn count(&self, scan: &mut Scan, cx: &mut ReadContext, progress: &mut dyn FnMut(u64)) -> Result<Counts> {
        let mut counts = Counts::default();
        if let Some(row) = scan.static_row() {
            counts.static_cells = row.row.cells.len() as u64;
        }
        while scan.advance(cx)? {
            match scan.current() {
                Unfiltered::Row(row) => {
                    counts.rows += 1;
                    counts.row_tombstones += u64::from(!row.row.deletion.is_live());
                    let Liveness { ttl_s, expires_s, .. } = row.row.liveness;
                    counts.expired_rows += u64::from(ttl_s != 0 && expires_s < self.now_s);
                    self.cells(row, &mut counts);
                }
                Unfiltered::Marker(_) => counts.range_tombstones += 1,
            }
            if (counts.rows + counts.range_tombstones).is_multiple_of(PROGRESS_ELEMENTS) {
                progress(scan.position());
            }
        }
        counts.tombstones = counts.row_tombstones
            + counts.range_tombstones
            + counts.collection_tombstones
            + counts.cell_tombstones
            + counts.expired_rows
            + counts.expired_cells;
        Ok(counts)
    }

    fn cells(&self, row: RowView<'_>, counts: &mut Counts) {
        counts.collection_tombstones += row.row.complex_deletions.len() as u64;
        counts.cells += row.row.cells.len() as u64;
        let of_row = row.row.liveness.ttl_s;
        for cell in &row.row.cells {
            counts.cell_tombstones += u64::from(cell.is_tombstone());
            let expires_by_itself = cell.is_expiring() && (of_row == 0 || cell.ttl_s != of_row);
            counts.expired_cells += u64::from(expires_by_itself && !cell.is_live(self.now_s));
        }
    }

    fn print(&self, out: &mut impl Write, line: &Line<'_>) -> Result<()> {
        if self.options.json {
            serde_json::to_writer(&mut *out, line)?;
            writeln!(out)?;
            return Ok(());
        }
        let state = if line.live { "live" } else { "not live" };
        let Counts { bytes, rows, cells, tombstones, .. } = line.counts;
        write!(out, "  Partition: '{}' ({}) {state}, size: {}", line.key, line.key_bytes, size(*bytes))?;
        if !self.options.partitions_only {
            let Counts { row_tombstones, range_tombstones, collection_tombstones, cell_tombstones, .. } =
                line.counts;
            let Counts { expired_rows, expired_cells, .. } = line.counts;
            write!(
                out,
                ", rows: {rows}, cells: {cells}, tombstones: {tombstones} (row:{row_tombstones}, range:{range_tombstones}, \
                 complex:{collection_tombstones}, cell:{cell_tombstones}, row-TTLd:{expired_rows}, cell-TTLd:{expired_cells})"
            )?;
        }
        writeln!(out)?;
        Ok(())
    }

    fn summary(&self, out: &mut impl Write) -> Result<()> {
        let partitions = self.totals.histograms[0].count();
        let percentiles = self.totals.rows();
        if self.options.json {
            serde_json::to_writer(&mut *out, &Summary { data: &self.data, partitions, percentiles })?;
            writeln!(out)?;
            return Ok(());
        }
        if self.options.partitions_only {
            writeln!(out, "         {:>20}", "Partition size")?;
            for Row { name, bytes, .. } in percentiles {
                writeln!(out, "  {name:<5}  {:>20}", size(bytes))?;
            }
            writeln!(out, "  count  {partitions:>20}")?;
            return Ok(());
        }
        let head = ["Partition size", "Row count", "Cell count", "Tombstone count"];
        writeln!(out, "         {:>20} {:>20} {:>20} {:>20}", head[0], head[1], head[2], head[3])?;
        for Row { name, bytes, rows, cells, tombstones } in percentiles {
            writeln!(out, "  {name:<5}  {:>20} {rows:>20} {cells:>20} {tombstones:>20}", size(bytes))?;
        }
        writeln!(out, "  count  {partitions:>20}")?;
        Ok(())
    }
}
