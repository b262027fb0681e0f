//! Verbs that change files or the server's state: `flush`, `cleanup`, `verify`, `scrub`, `refresh`, `import`,
//! `rebuild_index`, `drain`, `reloadsettings`, `gettraceprobability`, `settraceprobability`.

use super::layout::java_double;
use super::requests::{Server, unexpected};
use anyhow::{Context, Result, bail};
use helenus_cql::counted;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Import, ImportOrder, Outcome, Reloaded, TableSelection, VerifiedTable,
};
use std::io::{Write, stdout};
use std::path::Path;

/// `flush` (`Flush.java`). Prints what it has written, where nodetool prints nothing.
pub fn flush(server: &Server, which: TableSelection) -> Result<()> {
    let AdminAnswer::Flushed(flushed) = server.request(&AdminRequest::Flush { which })? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&flushed);
    }
    writeln!(stdout(), "flushed     {} written", counted(flushed.sstables, "SSTable"))?;
    Ok(())
}

/// `cleanup` (`Cleanup.java`): prints that there is nothing to remove, because this server owns every partition.
pub fn cleanup(server: &Server, which: TableSelection) -> Result<()> {
    let request = AdminRequest::AutoCompaction { which, set: None };
    let AdminAnswer::AutoCompaction(tables) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&serde_json::json!({ "tables": tables.len(), "removed": 0 }));
    }
    writeln!(
        stdout(),
        "cleaned up  {}: nothing to remove, this server owns every partition",
        counted(tables.len(), "table")
    )?;
    Ok(())
}

/// `verify` (`Verify.java`): reads all rows, whatever the options.
///
/// # Errors
/// No server answers; no such table; a damaged SSTable.
pub fn verify(server: &Server, which: TableSelection) -> Result<()> {
    let Outcome::Verified(tables) = server.run_job(&AdminRequest::Verify { which })? else {
        return unexpected();
    };
    let problems: Vec<&String> = tables.iter().flat_map(|table| &table.problems).collect();
    if server.json {
        server.print_json(&tables)?;
    } else {
        let mut out = stdout().lock();
        for problem in &problems {
            writeln!(out, "damaged     {problem}")?;
        }
        let sstables: u64 = tables.iter().map(|table: &VerifiedTable| table.sstables).sum();
        let sound = sstables.saturating_sub(problems.len() as u64);
        writeln!(
            out,
            "verified    {}, {sound} of {} sound",
            counted(tables.len(), "table"),
            counted(sstables, "SSTable")
        )?;
    }
    if !problems.is_empty() {
        bail!(
            "{} damaged: stop the server and run helenus sstable scrub, or helenus restore a backup",
            counted(problems.len(), "SSTable")
        );
    }
    Ok(())
}

/// `scrub` (`Scrub.java`): takes a snapshot, reads everything, and rewrites the sound SSTables. Damaged SSTables are
/// left to the offline tool, which requires that the server is stopped.
///
/// # Errors
/// No server answers; no such table; a damaged SSTable.
pub fn scrub(server: &Server, which: &TableSelection, (snapshot, now_ms): (bool, i64)) -> Result<()> {
    if snapshot {
        let of = if which.keyspace.is_some() { vec![which.clone()] } else { Vec::new() };
        let name = format!("pre-scrub-{now_ms}");
        server.request(&AdminRequest::Snapshot { name: name.clone(), of, flush: true, ttl_s: None })?;
        if !server.json {
            writeln!(stdout(), "snapshot    {name}")?;
        }
    }
    verify(server, which.clone())?;
    super::compactions::compact(
        server,
        &AdminRequest::Rewrite { which: which.clone(), current: true },
        "rewritten",
    )
}

/// `refresh` (`Refresh.java`).
///
/// # Errors
/// No server answers; no such table; SSTables of another table.
pub fn refresh(server: &Server, keyspace: &str, table: &str) -> Result<()> {
    let request = AdminRequest::Refresh { keyspace: keyspace.to_owned(), table: table.to_owned() };
    let Outcome::Imported(import) = server.run_job(&request)? else { return unexpected() };
    print_import(server, &import)
}

/// `import` (`Import.java`): imports directories into an existing table, one after the other. Files are linked or
/// copied, never moved.
///
/// # Errors
/// No server answers; no such table; SSTables of another table.
pub fn import(server: &Server, of: (&str, &str), directories: &[String], flags: &ImportOrder) -> Result<()> {
    let (keyspace, table) = of;
    let which = TableSelection { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] };
    server.request(&AdminRequest::AutoCompaction { which, set: None })?;
    let mut all = Import::default();
    for directory in directories {
        let order = ImportOrder {
            directory: std::path::absolute(Path::new(directory))
                .with_context(|| format!("{directory} is no path"))?,
            keyspace: Some(keyspace.to_owned()),
            table: Some(table.to_owned()),
            ..flags.clone()
        };
        let Outcome::Imported(import) = server.run_job(&AdminRequest::Import(order))? else {
            return unexpected();
        };
        all.tables.extend(import.tables);
        all.bytes += import.bytes;
        all.notes.extend(import.notes);
    }
    print_import(server, &all)
}

fn print_import(server: &Server, import: &Import) -> Result<()> {
    if server.json {
        return server.print_json(import);
    }
    let sstables: u64 = import.tables.iter().map(|(_, _, sstables)| sstables).sum();
    let mut out = stdout().lock();
    for note in &import.notes {
        writeln!(out, "note        {note}")?;
    }
    writeln!(
        out,
        "imported    {}, {}",
        counted(sstables, "SSTable"),
        super::layout::file_size(import.bytes)
    )?;
    Ok(())
}

/// Sends a request whose answer has no content.
///
/// # Errors
/// No server answers; the server refuses the request.
pub fn done(server: &Server, request: &AdminRequest) -> Result<()> {
    server.request(request)?;
    if server.json {
        return server.print_json(&serde_json::json!({ "done": true }));
    }
    Ok(())
}

/// `gettraceprobability` (`GetTraceProbability.java`).
///
/// # Errors
/// No server answers.
pub fn gettraceprobability(server: &Server) -> Result<()> {
    let request = AdminRequest::TraceProbability { set: None };
    let AdminAnswer::Probability(probability) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&serde_json::json!({ "trace_probability": probability }));
    }
    writeln!(stdout(), "Current trace probability: {}", java_double(Some(probability)))?;
    Ok(())
}

/// `settraceprobability` (`SetTraceProbability.java`).
///
/// # Errors
/// No probability; no server answers.
pub fn settraceprobability(server: &Server, set: Option<f64>) -> Result<()> {
    // JSON has no such numbers, so the server would see none.
    anyhow::ensure!(set.is_none_or(f64::is_finite), "Trace probability must be between 0 and 1");
    done(server, &AdminRequest::TraceProbability { set })
}

/// `reloadsettings`, which nodetool does not have.
///
/// # Errors
/// No server answers; errors of the configuration.
pub fn reloadsettings(server: &Server) -> Result<()> {
    let AdminAnswer::Reloaded(reloaded) = server.request(&AdminRequest::ReloadSettings)? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&reloaded);
    }
    let Reloaded { taken, at_next_start } = reloaded;
    let mut out = stdout().lock();
    if taken.is_empty() && at_next_start.is_empty() {
        writeln!(out, "nothing has changed")?;
    }
    if !taken.is_empty() {
        writeln!(out, "taken over  {}", taken.join(", "))?;
    }
    if !at_next_start.is_empty() {
        writeln!(out, "not before the next start: {}", at_next_start.join(", "))?;
    }
    Ok(())
}
