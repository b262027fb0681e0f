//! `datapaths`: the directories of tables.

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
