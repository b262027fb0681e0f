//! `helenus sstable ls`: lists SSTables with their table, version and size.

use super::find::{Found, find_all};
use crate::commands::progress::{Progress, size};
use anyhow::Result;
use clap::Args;
use helenus_host::{Disk, Host};
use helenus_sstable::component::{Component, is_of_an_index};
use helenus_sstable::table::{read_statistics, read_whole};
use helenus_sstable::toc::Toc;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  helenus sstable ls data                       every table of a data directory
  helenus sstable ls --json data/shop | jq .

Files of versions that are not read here stand at the end, each with the reason; the exit code is 1 then.";

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct LsOptions {
    /// SSTables, by any of their files, or folders; folders in folders are looked into
    #[arg(value_name = "FILE", default_value = "./data")]
    files: Vec<PathBuf>,
    /// A line of JSON an SSTable
    #[arg(long)]
    json: bool,
}

/// An SSTable in the list.
#[derive(Serialize)]
struct Line {
    keyspace: String,
    table: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<String>,
    version: String,
    format: &'static str,
    id: String,
    written_by: &'static str,
    /// Bytes of all components.
    bytes: u64,
    /// The number of rows by Statistics.db. `None` if Statistics.db cannot be read; `problem` is then the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The components that TOC.txt lists and that do not exist.
    missing: Vec<String>,
    data: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// Arguments that do not exist; at the end, that files were skipped.
pub fn run(host: &Host, options: &LsOptions) -> Result<()> {
    let disk = &*host.disk;
    let findings = find_all(disk, &options.files)?;
    let mut progress = Progress::of_items("ls", findings.sstables.len() as u64, "SSTables");
    if options.json {
        progress = progress.unless_output_is_shown();
    }
    let mut out = std::io::stdout().lock();
    let mut lines = Vec::new();
    for found in &findings.sstables {
        let line = line(disk, found);
        progress.add(1);
        if options.json {
            serde_json::to_writer(&mut out, &line)?;
            writeln!(out)?;
        } else {
            // Collected first, because the column widths depend on all lines.
            lines.push(line);
        }
    }
    drop(progress);
    print(&lines, &mut out)?;
    findings.tell_refused(options.json, &mut out)?;
    findings.end()
}

fn print(lines: &[Line], out: &mut impl Write) -> Result<()> {
    let name = |line: &Line| match &line.index {
        None => format!("{}.{}", line.keyspace, line.table),
        Some(index) => format!("{}.{} {index}", line.keyspace, line.table),
    };
    let width = lines.iter().map(|line| name(line).len()).max().unwrap_or_default();
    for line in lines {
        let rows = line.rows.map_or("?".to_owned(), |rows| rows.to_string());
        let (name, version, format, id) = (name(line), &line.version, line.format, &line.id);
        writeln!(
            out,
            "{name:width$}  {version} {format}  {id:<28} {:>12} {rows:>12} rows",
            size(line.bytes)
        )?;
        if let Some(problem) = &line.problem {
            writeln!(out, "{:width$}  {problem}", "")?;
        }
        if !line.missing.is_empty() {
            writeln!(out, "{:width$}  missing: {}", "", line.missing.join(", "))?;
        }
    }
    Ok(())
}

fn line(disk: &dyn Disk, found: &Found) -> Line {
    let Found { folder, descriptor } = found;
    let (keyspace, table, index) = found.owner();
    let statistics = read_statistics(disk, folder, *descriptor);
    let components = components(disk, found);
    let missing = components.iter().filter(|(_, bytes)| bytes.is_none()).map(|(name, _)| name.clone());
    Line {
        keyspace,
        table,
        index,
        version: descriptor.version.to_string(),
        format: descriptor.version.format().name(),
        id: descriptor.id.to_string(),
        written_by: descriptor.version.written_by(),
        bytes: components.iter().filter_map(|(_, bytes)| *bytes).sum(),
        rows: statistics.as_ref().ok().map(|statistics| statistics.stats.rows),
        level: statistics.as_ref().ok().map(|statistics| statistics.stats.level),
        problem: statistics.err().map(|error| error.to_string()),
        missing: missing.collect(),
        data: found.data(),
    }
}

/// The components that TOC.txt lists, or that exist if there is no TOC.txt, each with its size. Index components only
/// if they exist.
pub fn components(disk: &dyn Disk, found: &Found) -> Vec<(String, Option<u64>)> {
    let Found { folder, descriptor } = found;
    let toc_path = descriptor.path(folder, Component::Toc);
    let toc = read_whole(disk, &toc_path).and_then(|bytes| Toc::parse(&bytes, &toc_path));
    let names: Vec<String> = match toc {
        Ok(toc) => toc.names.into_iter().collect(),
        Err(_) => {
            let prefix = descriptor.prefix();
            let files = disk.list(folder).unwrap_or_default();
            let name = |path: &PathBuf| {
                let name = path.file_name()?.to_str()?;
                name.strip_prefix(&*prefix).map(str::to_owned)
            };
            files.iter().filter_map(name).collect()
        }
    };
    let size = |name: &str| disk.open(&folder.join(format!("{descriptor}-{name}"))).ok()?.size().ok();
    let sized = names.into_iter().map(|name| (size(&name), name)).map(|(size, name)| (name, size));
    sized.filter(|(name, size)| size.is_some() || !is_of_an_index(name)).collect()
}
