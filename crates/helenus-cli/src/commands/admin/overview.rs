//! `helenus admin overview`: a summary of the server, laid out for people. nodetool has no such verb.

use super::requests::{Server, running_text, unexpected};
use anyhow::Result;
use helenus_cql::counted;
use helenus_engine::is_system_keyspace;
use helenus_server::admin::{AdminAnswer, AdminRequest, ServerStatus, TableLine};
use std::io::Write;

/// Prints the summary.
pub fn run(server: &Server) -> Result<()> {
    let AdminAnswer::Status(status) = server.request(&AdminRequest::Status)? else { return unexpected() };
    if server.json {
        return server.print_json(&status);
    }
    print(&mut std::io::stdout().lock(), &status)
}

fn print(out: &mut impl Write, status: &ServerStatus) -> Result<()> {
    writeln!(out, "version      {}", status.version)?;
    writeln!(out, "process      {}, up {} s", status.pid, status.uptime_s)?;
    writeln!(out, "host id      {}", status.host_id)?;
    writeln!(out, "listening    {}, {}", status.listening, counted(status.connections, "connection"))?;
    if let Some(rpc) = &status.rpc {
        writeln!(out, "rpc          {rpc}")?;
    }
    for warning in &status.warnings {
        writeln!(out, "WARNING      {warning}")?;
    }
    writeln!(out, "storing in   {}", status.directory.as_deref().unwrap_or("memory"))?;
    if let Some(sync) = &status.sync {
        writeln!(out, "sync         {sync}, {}", counted(status.log_segments, "log segment"))?;
    }
    let (memtables, cache) = (mebibytes(status.memtable_bytes), mebibytes(status.cache_bytes));
    writeln!(out, "memory       memtables {memtables}, cache {cache}")?;
    if let Some(failure) = &status.flush_failure {
        writeln!(out, "last flush   FAILED: {failure}")?;
    }
    let pending: u64 = status.tables.iter().map(|table| table.pending_compactions).sum();
    writeln!(out, "compactions  {} running, {pending} pending", status.compactions.len())?;
    for running in &status.compactions {
        writeln!(out, "             {}", running_text(running))?;
    }
    if let Some(failure) = &status.compaction_failure {
        writeln!(out, "last compaction FAILED: {failure}")?;
    }
    writeln!(out)?;
    print_tables(out, &shown(status))
}

/// The tables of users, and those of the system that something is wrong with.
fn shown(status: &ServerStatus) -> Vec<&TableLine> {
    let is_shown = |table: &&TableLine| !is_system_keyspace(&table.keyspace) || !table.failures.is_empty();
    status.tables.iter().filter(is_shown).collect()
}

fn print_tables(out: &mut impl Write, tables: &[&TableLine]) -> Result<()> {
    if tables.is_empty() {
        writeln!(out, "no tables yet")?;
        return Ok(());
    }
    let name = |table: &TableLine| format!("{}.{}", table.keyspace, table.table);
    let width = tables.iter().map(|table| name(table).len()).max().unwrap_or(0).max("table".len());
    writeln!(
        out,
        "{:width$} {:>9} {:>12} {:>12} {:>15}",
        "table", "sstables", "on disk", "in memory", "rows in memory"
    )?;
    for table in tables {
        let (disk, memory) = (mebibytes(table.disk_bytes), mebibytes(table.memtable_bytes));
        let (name, rows) = (name(table), table.memtable_rows);
        writeln!(out, "{name:width$} {:>9} {disk:>12} {memory:>12} {rows:>15}", table.sstables)?;
        for failure in &table.failures {
            writeln!(out, "{:width$} FAILED: {failure}", "")?;
        }
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
