//! `helenus sstable dump`: prints the content of SSTables as JSON.

use super::debug::Debug;
use super::line::Lines;
use super::partition::Words;
use super::printer::{Layout, Printer};
use crate::commands::progress::Progress;
use crate::commands::sstable::find::{Found, find};
use crate::commands::sstable::known_schema::{KnownSchema, SchemaOption};
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_host::Host;
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, key_text, parse_key_text};
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::data::KeyRange;
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::table::{Scan, SsTable};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  helenus sstable dump data/shop/orders-*/da-*-Data.db | jq -c 'select(.type == \"row\")'
  helenus sstable dump --sstabledump FILE              exactly what Cassandra's sstabledump prints
  helenus sstable dump -l -k 7 FILE                    one partition, as sstabledump -l prints it

A line of JSON an element: row, static_row, partition_deletion, range_tombstone_bound. What is printed is what the file
holds, tombstones and expired values too. Names of key columns are not in a file: they are PartitionKey and clustering.";

/// Bytes of output that are collected before a write.
const OUT_BYTES: usize = 1 << 18;

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct DumpOptions {
    /// SSTables, by any of their files, or folders of SSTables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print what Cassandra's sstabledump prints
    #[arg(long)]
    sstabledump: bool,
    /// As sstabledump -l: a line for each partition, in its format
    #[arg(short = 'l', conflicts_with = "debug")]
    lines: bool,
    /// Only partition keys
    #[arg(short = 'e', long)]
    enumerate_keys: bool,
    /// As sstabledump -d: a line for each row, in Cassandra's internal notation
    #[arg(short = 'd')]
    debug: bool,
    /// Only the partitions of these keys
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// All but the partitions of these keys
    #[arg(short = 'x', long = "exclude-key", value_name = "KEY")]
    excluded: Vec<String>,
    /// Times as numbers, as sstabledump -t prints them
    #[arg(short = 't', long)]
    raw_timestamps: bool,
    /// Folders are searched with their subfolders anyway, except snapshots and backups
    #[arg(short, long, hide = true)]
    recursive: bool,
    #[command(flatten)]
    schema: SchemaOption,
    /// Lines of JSON, as by default
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Files that are not SSTables; damage; a closed output.
pub fn run(host: &Host, options: &DumpOptions) -> Result<()> {
    let found = find(&*host.disk, &options.files)?;
    if options.sstabledump && found.len() > 1 && !options.lines {
        bail!("--sstabledump prints one SSTable, and {} are given; -l prints any number", found.len());
    }
    let known = KnownSchema::new(&*host.disk, &options.schema)?;
    let mut tables = Vec::new();
    for found in found {
        let table = found.open_for_scans(&*host.disk, &known)?;
        tables.push((found, table));
    }
    let total = tables.iter().map(|(_, table)| table.uncompressed_bytes()).sum();
    let mut progress = Progress::begin("dump", total).unless_output_is_shown();
    let mut before = 0;
    for (index, (found, table)) in tables.iter().enumerate() {
        if index > 0 && options.lines {
            // The newline goes between SSTables and not after the last one, as in sstabledump -l.
            writeln!(std::io::stdout())?;
        }
        progress.name(format!("dump {}", found.descriptor));
        let mut dump = Dump::new(host, options, found, table)?;
        dump.run(&mut |position| progress.at(before + position))?;
        before += table.uncompressed_bytes();
    }
    Ok(())
}

/// The writer of elements.
enum Style {
    Lines(Lines),
    Words(Words, Printer),
    Keys(Words, Printer),
    KeyLines,
    Debug(Debug),
}

struct Dump<'a> {
    table: &'a Arc<SsTable>,
    style: Style,
    /// The partitions to print, in token order. If empty: all partitions.
    wanted: Vec<PartitionKey>,
    excluded: &'a [String],
    out: String,
    to: std::io::StdoutLock<'static>,
}

impl<'a> Dump<'a> {
    fn new(
        host: &Host,
        options: &'a DumpOptions,
        found: &Found,
        table: &'a Arc<SsTable>,
    ) -> Result<Dump<'a>> {
        let schema = table.schema();
        let now_s = host.clock.wall_us() / 1_000_000;
        let words = || {
            let kind = if found.owner().2.is_some() { "INDEX" } else { "REGULAR" };
            Words::new(schema.clone(), kind, options.raw_timestamps, now_s)
        };
        let style = if options.debug {
            Style::Debug(Debug::new(schema.clone()))
        } else if options.enumerate_keys && options.sstabledump {
            Style::Keys(words(), Printer::new(Layout::Pretty))
        } else if options.enumerate_keys {
            Style::KeyLines
        } else if options.lines {
            Style::Words(words(), Printer::new(Layout::Lines))
        } else if options.sstabledump {
            Style::Words(words(), Printer::new(Layout::Pretty))
        } else {
            Style::Lines(Lines::new(schema.clone()))
        };
        let mut wanted = Vec::new();
        for text in options.keys.iter().filter(|key| !options.excluded.contains(key)) {
            let key = parse_key_text(&key_types(schema), text).with_context(|| format!("-k {text}"))?;
            wanted.push(PartitionKey::new(key));
        }
        wanted.sort_by(|a, b| a.decorated.cmp(&b.decorated));
        let to = std::io::stdout().lock();
        let excluded = &options.excluded;
        Ok(Dump { table, style, wanted, excluded, out: String::new(), to })
    }

    fn run(&mut self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
        let is_list = match &mut self.style {
            Style::Words(_, json) | Style::Keys(_, json) => json.is_pretty(),
            _ => false,
        };
        if is_list && let Style::Words(_, json) | Style::Keys(_, json) = &mut self.style {
            json.begin_array();
        }
        if self.wanted.is_empty() {
            let mut scan = self.table.scan(&KeyRange::all(), &mut cx)?;
            scan.set_keys(false);
            while scan.next_partition(&mut cx)? {
                self.partition(&mut scan, &mut cx, progress)?;
            }
        }
        if self.table.partitioner() != Partitioner::Murmur3 && !self.wanted.is_empty() {
            // Lookups by key require Murmur3 order, so that other partitioners need a scan.
            let wanted = std::mem::take(&mut self.wanted);
            let mut scan = self.table.scan(&KeyRange::all(), &mut cx)?;
            scan.set_keys(false);
            while scan.next_partition(&mut cx)? {
                if wanted.iter().any(|key| key.bytes == scan.key()) {
                    self.partition(&mut scan, &mut cx, progress)?;
                }
            }
        }
        for key in std::mem::take(&mut self.wanted) {
            let range = KeyRange { start: key.decorated.clone(), ..KeyRange::all() };
            let mut scan = self.table.scan(&range, &mut cx)?;
            scan.set_keys(false);
            if scan.next_partition(&mut cx)? && scan.key() == key.bytes {
                self.partition(&mut scan, &mut cx, progress)?;
            }
        }
        if is_list && let Style::Words(_, json) | Style::Keys(_, json) = &mut self.style {
            json.end();
        }
        self.drain(0)?;
        self.to.flush()?;
        Ok(())
    }

    fn partition(
        &mut self,
        scan: &mut Scan,
        cx: &mut ReadContext,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let schema = self.table.schema();
        if !self.excluded.is_empty() && self.excluded.contains(&key_text(&key_types(schema), scan.key())) {
            return Ok(());
        }
        self.begin_partition(scan);
        if matches!(self.style, Style::Keys(..) | Style::KeyLines) {
            return self.drain(OUT_BYTES);
        }
        let mut position = scan.position();
        if let Some(row) = scan.static_row() {
            self.row(row, true, position);
        }
        loop {
            position = scan.position();
            if !scan.advance(cx)? {
                break;
            }
            match scan.current() {
                Unfiltered::Row(row) => self.row(row, false, position),
                Unfiltered::Marker(marker) => match &mut self.style {
                    Style::Lines(lines) => lines.marker(marker, position),
                    Style::Words(words, json) => words.marker(marker, json),
                    Style::Debug(debug) => debug.marker(marker, position, &mut self.out),
                    Style::Keys(..) | Style::KeyLines => {}
                },
            }
            self.drain(OUT_BYTES)?;
            progress(position);
        }
        if let Style::Words(words, json) = &mut self.style {
            words.end_partition(json);
        }
        self.drain(OUT_BYTES)
    }

    /// Cassandra's tool takes a partition's position after it has read the partition's header.
    fn begin_partition(&mut self, scan: &Scan) {
        let (key, deletion, behind_front) = (scan.key(), scan.deletion(), scan.position());
        match &mut self.style {
            Style::Lines(lines) => lines.begin_partition(key, scan.start(), deletion),
            Style::Words(words, json) => words.begin_partition(key, behind_front, deletion, json),
            Style::Keys(words, json) => words.key(key, json),
            Style::KeyLines => {
                self.out.push_str(&key_text(&key_types(self.table.schema()), key));
                self.out.push('\n');
            }
            Style::Debug(debug) => debug.begin_partition(key, behind_front, deletion, &mut self.out),
        }
    }

    fn row(&mut self, row: RowView<'_>, is_static: bool, position: u64) {
        match &mut self.style {
            Style::Lines(lines) => lines.row(row, is_static, position),
            Style::Words(words, json) => words.row(row, is_static, position, json),
            Style::Debug(debug) => debug.row(row, is_static, position, &mut self.out),
            Style::Keys(..) | Style::KeyLines => {}
        }
    }

    /// Writes out the collected output if it has more than `kept` bytes.
    fn drain(&mut self, kept: usize) -> Result<()> {
        let text = match &self.style {
            Style::Lines(lines) => lines.out.as_slice(),
            Style::Words(_, json) | Style::Keys(_, json) => json.out.as_bytes(),
            Style::KeyLines | Style::Debug(_) => self.out.as_bytes(),
        };
        if text.len() <= kept {
            return Ok(());
        }
        self.to.write_all(text).context("cannot write the output")?;
        match &mut self.style {
            Style::Lines(lines) => lines.out.clear(),
            Style::Words(_, json) | Style::Keys(_, json) => json.out.clear(),
            Style::KeyLines | Style::Debug(_) => self.out.clear(),
        }
        Ok(())
    }
}

/// The types of the columns of the partition key.
pub fn key_types(table: &Table) -> Vec<&CqlType> {
    table.partition_key.iter().map(|column| &column.ty).collect()
}
