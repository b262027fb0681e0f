//! `helenus export`: writes tables as files for another database, with their schema.

#[cfg(feature = "analysis")]
use super::analysis::{Form, Reader};
use super::held_files::{hold_files, make_folder, release_files};
use super::progress::{Progress, size};
use super::rewrite::{Rewriting, rewrite};
use super::schema_text::schema_of_text;
use super::sstable::{Found, KnownSchema};
use super::target::TargetOptions;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use helenus_cql::{add_schema_digest, check_schema_digest, counted};
use helenus_host::{Disk, Host};
use helenus_model::schema::Table;
use helenus_server::admin::ExportedFiles;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::import::{CopyOptions, SsTableFiles, import_sstable};
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::table::{OpenOptions, SsTable, read_whole};
use helenus_sstable::version::Version;
use helenus_sstable::writer::Beyond2038;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  helenus export backup                          everything of users, as backup/KEYSPACE/TABLE and backup/schema.cql
  helenus export backup shop orders              one table
  helenus export backup shop --for cassandra-5-bti
{ANALYSIS}
To a Cassandra node:    cqlsh -f backup/schema.cql; nodetool import shop orders backup/shop/orders
To a cluster:           cqlsh -f backup/schema.cql; sstableloader -d HOST backup/shop/orders
To Helenus:             helenus import backup

From a running server when one answers at --data or --socket, else from the directory itself. What is in memory is written
to SSTables first; each table is as it was at one moment.";

/// Whether this build writes Parquet and Arrow.
const HAS_ANALYSIS: bool = cfg!(feature = "analysis");

/// The examples of what this build can do.
fn examples() -> String {
    let analysis = match HAS_ANALYSIS {
        true => {
            "  helenus export lake shop --parquet; duckdb -c \"select count(*) from 'lake/shop/orders.parquet'\"\n"
        }
        false => "",
    };
    EXAMPLES.replace("{ANALYSIS}", analysis)
}

/// The database that will read the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Cassandra 4.0 and 4.1: version nb
    #[value(name = "cassandra-4")]
    Cassandra4,
    /// Cassandra 5.0 as installed: version oa
    #[value(name = "cassandra-5")]
    Cassandra5,
    /// Cassandra 5.0, format bti: version da
    #[value(name = "cassandra-5-bti")]
    Cassandra5Bti,
    /// ScyllaDB, and Cassandra 3.11: version me
    Scylla,
}

impl Target {
    fn version(self) -> Version {
        match self {
            Target::Cassandra4 => Version::Nb,
            Target::Cassandra5 => Version::Oa,
            Target::Cassandra5Bti => Version::Da,
            Target::Scylla => Version::Me,
        }
    }
}

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = examples())]
pub struct ExportCommand {
    /// The folder to write, which is created; it must be empty
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only this keyspace; KEYSPACE.TABLE means one table of it
    #[arg(value_name = "KEYSPACE")]
    keyspace: Option<String>,
    /// Only this table of it
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    #[command(flatten)]
    at: TargetOptions,
    /// The database that will read the files
    #[arg(long = "for", value_enum, default_value = "cassandra-5-bti", value_name = "TARGET")]
    target: Target,
    /// Copy files even where they could be linked
    #[arg(short = 'p', long)]
    copy_data: bool,
    /// Write DIR/KEYSPACE/TABLE.parquet instead, with the live rows, for DuckDB, pandas or Spark
    #[arg(long, conflicts_with_all = ["target", "arrow"], hide = !HAS_ANALYSIS)]
    parquet: bool,
    /// Write DIR/KEYSPACE/TABLE.arrow instead, with the live rows, in Arrow's IPC file format
    #[arg(long, conflicts_with = "target", hide = !HAS_ANALYSIS)]
    arrow: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// The outcome, as printed for tools (`--json`).
#[derive(Serialize)]
struct Outcome {
    directory: PathBuf,
    version: String,
    tables: Vec<TableOutcome>,
    bytes: u64,
}

#[derive(Serialize)]
struct TableOutcome {
    keyspace: String,
    table: String,
    sstables: u64,
    /// Number of live rows; only exports for analysis have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
}

/// The size of the export.
struct Written {
    /// Bytes of the SSTables written, or of those read for an export for analysis.
    bytes: u64,
    /// Number of live rows of each table; only for exports for analysis.
    rows: Option<Vec<u64>>,
}

/// Runs the command.
///
/// # Errors
/// A folder that is not empty, a target whose files cannot be written, tables that do not exist, damage, failures of
/// the disk.
pub fn run(host: &Host, command: &ExportCommand) -> Result<()> {
    let disk = &*host.disk;
    let directory = std::path::absolute(&command.directory)?;
    if disk.is_dir(&directory) && !disk.list(&directory)?.is_empty() {
        bail!("{} is not empty; give another folder", command.directory.display());
    }
    #[cfg(not(feature = "analysis"))]
    if command.parquet || command.arrow {
        bail!(
            "this binary was built without Parquet and Arrow: the packages of a release have them, and so has cargo build --release --features analysis"
        );
    }
    let (keyspace, table) = names(command);
    let exported = hold_files(host, &command.at, keyspace, table)?;
    if exported.tables.is_empty() {
        release_files(disk, &exported)?;
        bail!("there is no table to export; nothing was written");
    }
    let written = write_all(host, command, &exported, &directory);
    let removed = release_files(disk, &exported);
    let written = written?;
    removed?;
    print(command, exported, directory, &written)
}

/// The keyspace and the table to export. `KEYSPACE.TABLE` is split at the dot, because names contain none.
fn names(command: &ExportCommand) -> (Option<String>, Option<String>) {
    let dotted = command.keyspace.as_ref().filter(|_| command.table.is_none());
    match dotted.and_then(|name| name.split_once('.')) {
        Some((keyspace, table)) => (Some(keyspace.to_owned()), Some(table.to_owned())),
        None => (command.keyspace.clone(), command.table.clone()),
    }
}

fn write_all(host: &Host, command: &ExportCommand, from: &ExportedFiles, to: &Path) -> Result<Written> {
    let disk = &*host.disk;
    let mut tables = Vec::new();
    for (keyspace, table, _) in &from.tables {
        let folder = from.folder.join(keyspace).join(table);
        let files = disk.list(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        let sstables: BTreeSet<Descriptor> =
            names.filter_map(Descriptor::parse).map(|(descriptor, _)| descriptor).collect();
        tables.push((folder, to.join(keyspace).join(table), sstables));
    }
    let size_of = |folder: &Path, descriptor: &Descriptor| {
        let path = descriptor.path(folder, Component::Data);
        disk.open(&path).and_then(|file| file.size()).unwrap_or_default()
    };
    let bytes = tables
        .iter()
        .flat_map(|(folder, _, sstables)| sstables.iter().map(move |sstable| size_of(folder, sstable)))
        .sum();
    let mut progress = Progress::begin("export", bytes);
    make_folder(disk, to)?;
    // Other users must not read it, even if the folder existed before with wider permissions.
    disk.claim_dir(to)?;
    copy_schema(disk, command.target, &from.folder.join("schema.cql"), &to.join("schema.cql"))?;
    #[cfg(feature = "analysis")]
    if command.parquet || command.arrow {
        let form = if command.parquet { Form::Parquet } else { Form::Arrow };
        let rows = analyse(host, form, (from, to), &mut progress)?;
        return Ok(Written { bytes, rows: Some(rows) });
    }
    let version = command.target.version();
    let (mut number, mut before) = (0, 0);
    // New names are numbers, which every version of Cassandra reads. SSTables that are not rewritten keep their names.
    let mut next = || {
        number += 1;
        Descriptor { version, id: SsTableId::Sequence(number) }
    };
    let statements = read_whole(disk, &from.folder.join("schema.cql"))?;
    let schema = schema_of_text(&String::from_utf8_lossy(&statements)).ok();
    for ((folder, target, sstables), (keyspace, table, _)) in tables.iter().zip(&from.tables) {
        let schema = schema.as_ref().and_then(|schema| schema.table(keyspace, table));
        make_folder(disk, target)?;
        copy_schema(disk, command.target, &folder.join("schema.cql"), &target.join("schema.cql"))?;
        for sstable in sstables {
            progress.name(format!("export {}", target.strip_prefix(to).unwrap_or(target).display()));
            let bytes = size_of(folder, sstable);
            let mut tell = |done: u64, of: u64| {
                let share = done as f64 / of.max(1) as f64;
                progress.at(before + (bytes as f64 * share) as u64);
            };
            let out = ExportOutput { to: target, next: &mut next, progress: &mut tell };
            write_one(&host.disk, command, ((folder, *sstable), schema), out)?;
            before += bytes;
            progress.at(before);
        }
    }
    Ok(Written { bytes, rows: None })
}

/// Writes the live rows of every table as a file for analysis. Returns the number of rows of each table.
#[cfg(feature = "analysis")]
fn analyse(
    host: &Host,
    form: Form,
    (from, to): (&ExportedFiles, &Path),
    progress: &mut Progress,
) -> Result<Vec<u64>> {
    let disk = &*host.disk;
    let statements = read_whole(disk, &from.folder.join("schema.cql"))?;
    let reader = Reader::new(host, &String::from_utf8_lossy(&statements))?;
    let mut rows = Vec::new();
    for (keyspace, table, _) in &from.tables {
        progress.name(format!("export {keyspace}.{table}"));
        let folder = from.folder.join(keyspace).join(table);
        let files = disk.list(&folder)?;
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        let sstables: BTreeSet<Descriptor> =
            names.filter_map(Descriptor::parse).map(|(descriptor, _)| descriptor).collect();
        let sstables: Vec<(PathBuf, Descriptor)> =
            sstables.into_iter().map(|descriptor| (folder.clone(), descriptor)).collect();
        make_folder(disk, &to.join(keyspace))?;
        let path = to.join(keyspace).join(format!("{table}.{}", form.ending()));
        rows.push(reader.write((keyspace, table), &sstables, (&path, form))?);
        for (folder, descriptor) in &sstables {
            let size = disk.open(&descriptor.path(folder, Component::Data))?.size()?;
            progress.add(size);
        }
    }
    Ok(rows)
}

/// Where an SSTable is written.
struct ExportOutput<'a> {
    to: &'a Path,
    /// The next unused name.
    next: &'a mut dyn FnMut() -> Descriptor,
    /// Takes the bytes done and their total.
    progress: &'a mut dyn FnMut(u64, u64),
}

/// Writes one SSTable for the target: linked or copied if it has the target's version, rewritten otherwise.
fn write_one(
    disk: &Arc<dyn Disk>,
    command: &ExportCommand,
    ((folder, descriptor), schema): ((&Path, Descriptor), Option<&Arc<Table>>),
    out: ExportOutput<'_>,
) -> Result<()> {
    let ExportOutput { to, next, progress } = out;
    let version = command.target.version();
    if descriptor.version == version {
        let how = CopyOptions { link: !command.copy_data, keep_level: true, without_page_checksums: true };
        let place = |folder| SsTableFiles { disk: &**disk, folder, descriptor };
        import_sstable(place(folder), place(to), how)?;
        return Ok(());
    }
    let table = open_exported(&**disk, (folder, descriptor), schema)?;
    let mut next = || Ok(next());
    let mut how = Rewriting {
        version,
        bytes_max: None,
        beyond_2038: Beyond2038::Refuse,
        page_checksums: false,
        folder: to,
        next: &mut next,
    };
    let total = table.uncompressed_bytes();
    rewrite(disk, (&table, folder), &mut how, &mut |position| progress(position, total))?;
    Ok(())
}

/// Opens an SSTable with its table's schema. If that is not known, or does not have a column of the file, the file's own
/// header serves, which gives the same rows.
fn open_exported(
    disk: &dyn Disk,
    (folder, descriptor): (&Path, Descriptor),
    schema: Option<&Arc<Table>>,
) -> Result<Arc<SsTable>> {
    let opened = schema.map(|schema| {
        let options = OpenOptions { schema: Arc::clone(schema), buffers: BufferPool::offline() };
        SsTable::open(disk, folder, descriptor, options)
    });
    match opened {
        Some(Ok(table)) => Ok(table),
        opened => {
            let found = Found { folder: folder.to_owned(), descriptor };
            let by_header = found.open(disk, &KnownSchema::default());
            by_header.map_err(|error| opened.and_then(std::result::Result::err).map_or(error, Into::into))
        }
    }
}

/// Table options that a target does not know. The exported statements leave them out.
fn unknown_options(target: Target) -> &'static [&'static str] {
    match target {
        Target::Cassandra5 | Target::Cassandra5Bti => &[],
        Target::Cassandra4 => &["allow_auto_snapshot", "incremental_backups", "memtable"],
        Target::Scylla => &[
            "additional_write_policy",
            "allow_auto_snapshot",
            "cdc",
            "extensions",
            "incremental_backups",
            "memtable",
            "read_repair",
        ],
    }
}

/// The schema statements in the form that the target accepts.
fn schema_for(target: Target, text: &str) -> String {
    const SIZE_TIERED: &str = "    AND compaction = {'class': 'SizeTieredCompactionStrategy'}";
    let unknown = unknown_options(target);
    let is_unknown = |line: &str| {
        let option = line.strip_prefix("    AND ").and_then(|line| line.split(" = ").next());
        option.is_some_and(|option| unknown.contains(&option))
    };
    let line =
        |line: &str| match line.starts_with("    AND compaction = ") && line.contains("UnifiedCompaction") {
            true if !unknown.is_empty() => SIZE_TIERED.to_owned(),
            _ => line.to_owned(),
        };
    let lines: Vec<String> = text.lines().filter(|line| !is_unknown(line)).map(line).collect();
    lines.join("\n") + "\n"
}

fn copy_schema(disk: &dyn Disk, target: Target, from: &Path, to: &Path) -> Result<()> {
    let bytes = read_whole(disk, from)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = check_schema_digest(&text).map_err(|error| anyhow!("{}: {error}", from.display()))?;
    let text = add_schema_digest(&schema_for(target, text));
    let write = || {
        let out = disk.create(to)?;
        out.write_all_at(text.as_bytes(), 0)?;
        out.sync()
    };
    write().with_context(|| format!("cannot write {}", to.display()))
}

fn print(
    command: &ExportCommand,
    exported: ExportedFiles,
    directory: PathBuf,
    written: &Written,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let rows = |at: usize| written.rows.as_ref().and_then(|rows| rows.get(at).copied());
    let table =
        |(at, (keyspace, table, sstables))| TableOutcome { keyspace, table, sstables, rows: rows(at) };
    let version = match (command.parquet, command.arrow) {
        (true, _) => "parquet".to_owned(),
        (_, true) => "arrow".to_owned(),
        _ => command.target.version().to_string(),
    };
    let tables: Vec<TableOutcome> = exported.tables.into_iter().enumerate().map(table).collect();
    let outcome = Outcome { directory, version, tables, bytes: written.bytes };
    if command.json {
        serde_json::to_writer(&mut out, &outcome)?;
        writeln!(out)?;
        return Ok(());
    }
    for TableOutcome { keyspace, table, sstables, rows } in &outcome.tables {
        match rows {
            Some(rows) => writeln!(out, "exported    {keyspace}.{table}: {}", counted(*rows, "row"))?,
            None => writeln!(out, "exported    {keyspace}.{table}: {}", counted(*sstables, "SSTable"))?,
        }
    }
    let (tables, directory) = (counted(outcome.tables.len(), "table"), outcome.directory.display());
    match &written.rows {
        Some(rows) => {
            let rows = counted(rows.iter().sum::<u64>(), "row");
            writeln!(out, "exported    {tables}, {rows}, as {} to {directory}", outcome.version)?;
        }
        None => {
            let bytes = size(outcome.bytes);
            writeln!(out, "exported    {tables}, {bytes}, version {} to {directory}", outcome.version)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_goes_without_options_that_its_reader_does_not_know() {
        let text = "CREATE TABLE a.b (\n    k int PRIMARY KEY\n) WITH ID = x\n    AND cdc = false\n    AND compaction = {'class': 'o.UnifiedCompactionStrategy'}\n    AND memtable = 'default'\n    AND speculative_retry = '99p';\n";
        assert_eq!(schema_for(Target::Cassandra5, text), text);
        let four = schema_for(Target::Cassandra4, text);
        assert!(!four.contains("memtable") && four.contains("cdc") && four.contains("SizeTiered"), "{four}");
        let scylla = schema_for(Target::Scylla, text);
        assert!(!scylla.contains("cdc") && scylla.ends_with("speculative_retry = '99p';\n"), "{scylla}");
    }
}
