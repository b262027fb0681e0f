//! `helenus backup`: writes schema, data and digests into one directory or one file, while the server keeps running.

use super::held_files::{hold_files, make_folder, release_files};
use super::progress::{Progress, size};
use super::target::TargetOptions;
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_cql::counted;
use helenus_engine::CheckedPath;
use helenus_host::{Disk, Host};
use helenus_model::types::write_instant;
use helenus_server::admin::ExportedFiles;
use helenus_server::backup::{
    ArchiveWriter, BackedUpFile, BackedUpTable, BackupManifest, MANIFEST, digest_of,
};
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  helenus backup /backup/monday                      everything of users
  helenus backup /backup/monday shop orders          one table
  helenus backup --copy /mnt/other/monday            copies, even on one disk
  helenus backup /mnt/other/monday.tar               one file, a tar archive

From a running server when one answers at --data or --socket, else from the directory itself. Nothing pauses: what is in memory
is written to SSTables, and each table is as it was at one moment. Files are linked where that is possible, which takes no room;
a backup for the case that the disk is lost needs --copy or another disk. backup.json, written last, has the size and the
SHA-256 of every file. helenus restore takes it back; helenus import and Cassandra's tools take its folders too.";

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct BackupCommand {
    /// The folder to write, which is created and must be empty; or a file to write, if its name ends in .tar
    #[arg(value_name = "DIR|FILE.tar")]
    directory: PathBuf,
    /// Only this keyspace
    #[arg(value_name = "KEYSPACE")]
    keyspace: Option<String>,
    /// Only this table of it
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    #[command(flatten)]
    at: TargetOptions,
    /// Copy files even where they could be linked
    #[arg(short = 'p', long = "copy")]
    copy: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A folder that is not empty; tables that do not exist; failures of the disk. A backup that failed has no manifest, so
/// no command takes it for a backup.
pub fn run(host: &Host, command: &BackupCommand) -> Result<()> {
    let disk = &*host.disk;
    let directory = std::path::absolute(&command.directory)?;
    if is_archive(&directory) {
        if disk.exists(&directory) {
            bail!("{} is there already; give another name", command.directory.display());
        }
    } else if disk.is_dir(&directory) && !disk.list(&directory)?.is_empty() {
        bail!("{} is not empty; give another folder", command.directory.display());
    }
    let held = hold_files(host, &command.at, command.keyspace.clone(), command.table.clone())?;
    let written = write(host, command, &held, &directory);
    let let_go = release_files(disk, &held);
    let manifest = written?;
    let_go?;
    print(command, &directory, &manifest)
}

fn write(host: &Host, command: &BackupCommand, held: &ExportedFiles, to: &Path) -> Result<BackupManifest> {
    let disk = &*host.disk;
    let mut files = Vec::new();
    list(disk, &held.folder, &mut files).with_context(|| format!("cannot list {}", held.folder.display()))?;
    let mut total = 0;
    for path in &files {
        total += disk
            .open(path)
            .and_then(|file| file.size())
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    let mut progress = Progress::begin("backup", total);
    let mut manifest = begin(host);
    let table = |(keyspace, table, sstables): &(String, String, u64)| BackedUpTable {
        keyspace: keyspace.clone(),
        table: table.clone(),
        sstables: *sstables,
    };
    manifest.tables = held.tables.iter().map(table).collect();
    let mut archive = match is_archive(to) {
        true => Some(begin_archive(host, to)?),
        false => {
            make_folder(disk, to)?;
            // Other users must not read it, even if the folder existed before with wider permissions.
            disk.claim_dir(to)?;
            None
        }
    };
    for path in &files {
        let below = path.strip_prefix(&held.folder).context("a file outside of its folder")?;
        let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
        let name = parts.join("/");
        progress.name(format!("backup {name}"));
        let checked = CheckedPath::new("a file of a backup", &name)?;
        if let Some(archive) = &mut archive {
            let added = archive.add(&name, path, &mut |bytes| progress.add(bytes));
            let (sha256, bytes) = added.with_context(|| format!("cannot write {}", to.display()))?;
            manifest.files.push(BackedUpFile { path: checked, bytes, sha256 });
            continue;
        }
        let target = to.join(below);
        if let Some(folder) = target.parent() {
            make_folder(disk, folder)?;
        }
        let linked = !command.copy && disk.hard_link(path, &target).is_ok();
        if !linked {
            copy(disk, path, &target).with_context(|| format!("cannot write {}", target.display()))?;
        }
        let digest = digest_of(disk, &target, &mut |bytes| progress.add(bytes));
        let (sha256, bytes) = digest.with_context(|| format!("cannot read {}", target.display()))?;
        manifest.files.push(BackedUpFile { path: checked, bytes, sha256 });
    }
    if let Some(archive) = archive {
        archive.finish(&manifest).with_context(|| format!("cannot write {}", to.display()))?;
        return Ok(manifest);
    }
    sync_folders(disk, to).with_context(|| format!("cannot sync {}", to.display()))?;
    manifest.write(disk, to).with_context(|| format!("cannot write {}", to.join(MANIFEST).display()))?;
    if let Some(above) = to.parent() {
        // This process may lack the right to open the parent directory; the backup is complete all the same.
        let _ = disk.sync_dir(above);
    }
    Ok(manifest)
}

/// Whether the backup goes into one archive file.
fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tar"))
}

fn begin_archive(host: &Host, path: &Path) -> Result<ArchiveWriter> {
    if let Some(above) = path.parent() {
        make_folder(&*host.disk, above)?;
    }
    let now_s = u64::try_from(host.clock.wall_us() / 1_000_000).unwrap_or(0);
    let begun = ArchiveWriter::begin(&host.disk, path, now_s);
    begun.with_context(|| format!("cannot write {}", path.display()))
}

fn begin(host: &Host) -> BackupManifest {
    let now_us = host.clock.wall_us();
    let mut created = String::new();
    let ns = now_us.rem_euclid(1_000_000) / 1000 * 1_000_000;
    write_instant(now_us.div_euclid(1_000_000), ns as u32, &mut created);
    let mut random = [0; 16];
    host.random.fill(&mut random);
    let id = uuid::Builder::from_random_bytes(random).into_uuid();
    BackupManifest::new(id.to_string(), created, env!("CARGO_PKG_VERSION"))
}

fn list(disk: &dyn Disk, folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut paths = disk.list(folder)?;
    paths.sort();
    for path in paths {
        if disk.is_dir(&path) {
            list(disk, &path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> std::io::Result<()> {
    let (source, target) = (disk.open(from)?, disk.create(to)?);
    let size = source.size()?;
    let mut piece = vec![0; PIECE_BYTES.min(size) as usize];
    let mut at = 0;
    while at < size {
        let Some(bytes) = piece.get_mut(..(size - at).min(PIECE_BYTES) as usize) else { break };
        source.read_exact_at(bytes, at)?;
        target.write_all_at(bytes, at)?;
        at += bytes.len() as u64;
    }
    target.sync()
}

fn sync_folders(disk: &dyn Disk, folder: &Path) -> std::io::Result<()> {
    for path in disk.list(folder)?.iter().filter(|path| disk.is_dir(path)) {
        sync_folders(disk, path)?;
    }
    disk.sync_dir(folder)
}

fn print(command: &BackupCommand, directory: &Path, manifest: &BackupManifest) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    if command.json {
        let outcome = serde_json::json!({
            "directory": directory,
            "id": manifest.id,
            "created_at": manifest.created_at,
            "tables": manifest.tables,
            "files": manifest.files.len(),
            "bytes": bytes,
        });
        writeln!(out, "{outcome}")?;
        return Ok(());
    }
    for BackedUpTable { keyspace, table, sstables } in &manifest.tables {
        writeln!(out, "backed up   {keyspace}.{table}: {}", counted(*sstables, "SSTable"))?;
    }
    let tables = counted(manifest.tables.len(), "table");
    let files = counted(manifest.files.len(), "file");
    writeln!(out, "backed up   {tables}, {files}, {} to {}", size(bytes), directory.display())?;
    Ok(())
}
