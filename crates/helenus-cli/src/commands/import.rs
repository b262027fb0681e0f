//! `helenus import`: imports the SSTables of a Cassandra node, with their schema.

use super::admin::{run_job_on, unexpected};
use super::progress::size;
use super::progress_watch::run_with_progress;
use super::target::{Target, TargetOptions};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use helenus_cql::{LocalBackend, counted};
use helenus_engine::import::{ImportProgress, SourceDisk};
use helenus_host::Host;
use helenus_server::admin::{AdminRequest, Import, ImportOrder, imported, request_of};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  helenus import backup/shop/orders-9ae6.../snapshots/monday      one table, with the schema.cql of the snapshot
  helenus import /var/lib/cassandra/data --snapshot monday        that snapshot of every table
  helenus import /var/lib/cassandra/data --keyspace shop          what is on disk now; nodetool drain first
  helenus import files/shop/orders --schema orders.cql

On a running server when one answers at --data or --socket, else on the directory itself. Everything is checked first:
components, digests, types against the schema, every row. Then all of it is imported, or nothing, and what speaks against
it is said file by file. Tables that are not there are made; those that are must fit. Rows join those that are there.";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct ImportCommand {
    /// A snapshot, the folder of a table or of a keyspace, or a data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    at: TargetOptions,
    /// Import this snapshot of each table instead of its current files
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// Only this keyspace; for a folder whose path does not name its keyspace, that keyspace
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
    /// Only this table; for a folder whose path does not name its table, that table
    #[arg(long, value_name = "NAME", requires = "keyspace")]
    table: Option<String>,
    /// A file of statements that create the schema, if the directory has none
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Copy files even where they could be linked
    #[arg(short = 'p', long)]
    copy_data: bool,
    /// Do not read every row before the import
    #[arg(long)]
    no_verify: bool,
    /// Keep the levels of levelled compaction
    #[arg(short = 'l', long)]
    keep_level: bool,
    /// Only check, and print what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// The outcome, as printed for tools (`--json`).
#[derive(Serialize)]
struct Outcome<'a> {
    imported: bool,
    tables: Vec<TableOutcome<'a>>,
    made: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct TableOutcome<'a> {
    keyspace: &'a str,
    table: &'a str,
    sstables: u64,
}

/// Runs the command.
///
/// # Errors
/// Every reason against the import: files, schema, damage, failures of the disk.
pub fn run(host: &Host, command: &ImportCommand) -> Result<()> {
    let absolute = |path: &Path| {
        std::path::absolute(path).with_context(|| format!("cannot make {} absolute", path.display()))
    };
    let order = ImportOrder {
        directory: absolute(&command.directory)?,
        snapshot: command.snapshot.clone(),
        keyspace: command.keyspace.clone(),
        table: command.table.clone(),
        schema: command.schema.as_deref().map(absolute).transpose()?,
        copy: command.copy_data,
        no_verify: command.no_verify,
        keep_level: command.keep_level,
        dry_run: command.dry_run,
    };
    let target = match command.dry_run {
        true => command.at.find_to_read(host)?,
        false => command.at.find(host)?,
    };
    let import = match target {
        Target::Server(socket) => on_server(&socket, order)?,
        Target::Directory(opened) => {
            if !command.json {
                let how = if command.dry_run { "checking only, for" } else { "importing into" };
                note!("no server answers: {how} {} itself", command.at.data().display());
            }
            let done = on_directory(host, &opened.backend, &order);
            let closed = opened.close(done.is_err());
            let done = done?;
            closed?;
            done
        }
    };
    print(command, &import)
}

/// Sends the import to the server and shows its progress.
fn on_server(socket: &Path, order: ImportOrder) -> Result<Import> {
    match run_job_on(socket, &AdminRequest::Import(order))? {
        helenus_server::admin::Outcome::Imported(import) => Ok(import),
        _ => unexpected(),
    }
}

fn on_directory(host: &Host, backend: &Arc<LocalBackend>, order: &ImportOrder) -> Result<Import> {
    let disk: &SourceDisk = &host.disk;
    let request = request_of(order, disk).map_err(|text| anyhow!(text))?;
    let progress = ImportProgress::default();
    let report = run_with_progress(|| backend.import(disk, &request, &progress), || progress.status())?;
    let report = report.map_err(|error| anyhow!("{error}"))?;
    Ok(imported(report))
}

fn print(command: &ImportCommand, import: &Import) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if command.json {
        let tables = import
            .tables
            .iter()
            .map(|(keyspace, table, sstables)| TableOutcome { keyspace, table, sstables: *sstables })
            .collect();
        let (made, notes) = (&import.made, &import.notes);
        serde_json::to_writer(&mut out, &Outcome { imported: !command.dry_run, tables, made, notes })?;
        writeln!(out)?;
        return Ok(());
    }
    for made in &import.made {
        writeln!(out, "{}  {made}", if command.dry_run { "to make   " } else { "made      " })?;
    }
    for (keyspace, table, sstables) in import.tables.iter().filter(|(_, _, sstables)| *sstables > 0) {
        let word = if command.dry_run { "to import " } else { "imported  " };
        writeln!(out, "{word}  {keyspace}.{table}: {}", counted(*sstables, "SSTable"))?;
    }
    for note in &import.notes {
        writeln!(out, "note        {note}")?;
    }
    let all: u64 = import.tables.iter().map(|(_, _, sstables)| sstables).sum();
    let bytes = if import.bytes > 0 { format!(", {}", size(import.bytes)) } else { String::new() };
    let word = if command.dry_run { "checked   " } else { "imported  " };
    writeln!(out, "{word}  {} of {}{bytes}", counted(all, "SSTable"), counted(import.tables.len(), "table"))?;
    Ok(())
}
