//! Files: `datapaths` shows the directories of tables, and `diskusage` what holds space.

use super::layout::{Columns, file_size};
use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest};
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// `datapaths` (`DataPaths.java`).
///
/// # Errors
/// No server answers; no such keyspace or table.
pub fn datapaths(server: &Server, names: &[&str]) -> Result<()> {
    let AdminAnswer::DataPaths(mut paths) = server.request(&AdminRequest::DataPaths)? else {
        return unexpected();
    };
    let is_named = |name: &str, (keyspace, table, _): &(String, String, PathBuf)| {
        name == keyspace
            || name.strip_prefix(keyspace.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(table)
    };
    if let Some(unknown) = names.iter().find(|name| !paths.iter().any(|line| is_named(name, line))) {
        bail!("there is no keyspace or table {unknown}");
    }
    paths.retain(|line| names.is_empty() || names.iter().any(|name| is_named(name, line)));
    if server.json {
        let mut keyspaces = BTreeMap::<String, BTreeMap<String, Vec<PathBuf>>>::new();
        for (keyspace, table, folder) in paths {
            keyspaces.entry(keyspace).or_default().insert(table, vec![folder]);
        }
        return server.print_json(&keyspaces);
    }
    let mut out = stdout().lock();
    let mut last = None;
    for (keyspace, table, folder) in &paths {
        if last != Some(keyspace) {
            writeln!(out, "Keyspace: {keyspace}")?;
            last = Some(keyspace);
        }
        writeln!(out, "\tTable: {table}\n\tPaths:\n\t\t{}\n", folder.display())?;
    }
    Ok(())
}

/// `diskusage`: what holds space on the disk, the greatest first.
///
/// # Errors
/// No server answers; it has no data directory.
pub fn diskusage(server: &Server) -> Result<()> {
    let AdminAnswer::DiskUsage(found) = server.request(&AdminRequest::DiskUsage)? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&found);
    }
    let mut columns = Columns::new("  ");
    columns.row(["Space", "Files", "What", "Of"]);
    for line in &found.uses {
        let of = [line.keyspace.as_str(), line.table.as_str()];
        let of: Vec<&str> = of.into_iter().filter(|name| !name.is_empty()).collect();
        columns.row([file_size(line.bytes), line.files.to_string(), line.what.clone(), of.join(".")]);
    }
    let mut out = stdout().lock();
    columns.print(&mut out)?;
    let all: u64 = found.uses.iter().map(|line| line.bytes).sum();
    writeln!(out, "\nin all  {}", file_size(all))?;
    if let Some(free) = found.free_bytes {
        writeln!(out, "free    {}", file_size(free))?;
    }
    Ok(())
}
