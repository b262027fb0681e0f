//! `helenus restore`: restores a backup.

use super::admin::{run_job_on, unexpected};
use super::progress::size;
use super::progress_watch::run_with_progress;
use super::target::{Target, TargetOptions};
use anyhow::{Result, anyhow};
use clap::Args;
use helenus_cql::counted;
use helenus_engine::import::ImportProgress;
use helenus_host::Host;
use helenus_server::admin::{AdminRequest, Outcome, RestoreOrder, Restored, RestoredTable};
use helenus_server::backup::{manifest_of, restore};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus restore /backup/monday                                         everything
  helenus restore /backup/monday.tar                                     everything in that file
  helenus restore /backup/monday --keyspace shop --table orders          one table
  helenus restore /backup/monday --keyspace shop --as-keyspace shop2     beside the one that is there
  helenus restore /backup/monday --keyspace shop --table orders --as-table orders_monday
  helenus restore /backup/monday --dry-run                               only check

On a running server when one answers at --data or --socket, else on the directory itself. Everything is checked before anything
changes: that every file is what backup.json says, that every SSTable can be read as one of its table, that no table is here
that holds data. One thing that is wrong, and nothing is restored. A restore that was cut is ordered again and goes on behind
the tables that it had done.";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct RestoreCommand {
    /// A folder, or a file, that helenus backup wrote
    #[arg(value_name = "DIR|FILE.tar")]
    directory: PathBuf,
    #[command(flatten)]
    at: TargetOptions,
    /// Only this keyspace
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
    /// Only this table of it
    #[arg(long, value_name = "NAME", requires = "keyspace")]
    table: Option<String>,
    /// Restore the keyspace under this name
    #[arg(long, value_name = "NAME", requires = "keyspace")]
    as_keyspace: Option<String>,
    /// Restore the table under this name
    #[arg(long, value_name = "NAME", requires = "table")]
    as_table: Option<String>,
    /// Copy files even where they could be linked
    #[arg(short = 'p', long = "copy")]
    copy: bool,
    /// Compare digests, but do not read every row
    #[arg(long)]
    no_verify: bool,
    /// Print every file of the backup with its size and digest
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Only check, and print what would be restored
    #[arg(long)]
    dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Every reason against the restore: files, schema, damage, failures of the disk.
pub fn run(host: &Host, command: &RestoreCommand) -> Result<()> {
    let order = RestoreOrder {
        directory: std::path::absolute(&command.directory)?,
        keyspace: command.keyspace.clone(),
        table: command.table.clone(),
        as_keyspace: command.as_keyspace.clone(),
        as_table: command.as_table.clone(),
        copy: command.copy,
        no_verify: command.no_verify,
        dry_run: command.dry_run,
    };
    if command.verbose {
        print_files(host, &order)?;
    }
    let target = match command.dry_run {
        true => command.at.find_to_read(host)?,
        false => command.at.find(host)?,
    };
    let restored = match target {
        Target::Server(socket) => match run_job_on(&socket, &AdminRequest::Restore(order))? {
            Outcome::Restored(restored) => restored,
            _ => return unexpected(),
        },
        Target::Directory(opened) => {
            if !command.json {
                let how = if command.dry_run { "checking only, for" } else { "restoring into" };
                note!("no server answers: {how} {} itself", command.at.data().display());
            }
            let progress = ImportProgress::default();
            // What a dry run unpacks goes to the folder of temporary files.
            let database = Some(command.at.data()).filter(|_| !command.dry_run);
            let work = || restore(&opened.backend, (&host.disk, database), &order, &progress);
            let done = run_with_progress(work, || progress.status());
            let done = done.and_then(|done| done.map_err(|text| anyhow!(text)));
            let closed = opened.close(done.is_err());
            let done = done?;
            closed?;
            done
        }
    };
    print(command, &restored)
}

/// Prints the files of the backup that are restored.
fn print_files(host: &Host, order: &RestoreOrder) -> Result<()> {
    let manifest = manifest_of(&*host.disk, &order.directory).map_err(|text| anyhow!(text))?;
    let mut out = std::io::stdout().lock();
    for file in manifest.files_of(order.keyspace.as_deref(), order.table.as_deref()) {
        writeln!(out, "file        {}  {}  {}", file.path, size(file.bytes), file.sha256)?;
    }
    Ok(())
}

fn print(command: &RestoreCommand, restored: &Restored) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if command.json {
        serde_json::to_writer(&mut out, restored)?;
        writeln!(out)?;
        return Ok(());
    }
    let word = if command.dry_run { "to restore " } else { "restored   " };
    for RestoredTable { from, to, sstables, was_there } in &restored.tables {
        let name = |(keyspace, table): &(String, String)| format!("{keyspace}.{table}");
        let renamed = if from == to { String::new() } else { format!(" as {}", name(to)) };
        let word = if *was_there { "was there  " } else { word };
        writeln!(out, "{word} {}{renamed}: {}", name(from), counted(*sstables, "SSTable"))?;
    }
    let (tables, files) = (counted(restored.tables.len(), "table"), counted(restored.files, "file"));
    let (bytes, at) = (size(restored.bytes), &restored.created_at);
    writeln!(out, "{word} {tables}, {files}, {bytes}, as of {at}")?;
    Ok(())
}
