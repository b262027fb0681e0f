//! Compactions: `compact`, `garbagecollect`, `upgradesstables`, `scrub`, `compactionstats`, `compactionhistory`, and
//! their limits.

use super::layout::{Columns, bytes_text, file_size, java_double, moment};
use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_cql::counted;
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Compaction, CompactionMetrics, CompactionTroubleLine, TableSelection,
};
use serde_json::json;
use std::io::{Write, stdout};

const MIB: f64 = (1 << 20) as f64;

/// Requests compactions and prints their result, where nodetool prints nothing.
pub fn compact(server: &Server, request: &AdminRequest, what: &str) -> Result<()> {
    let compaction = server.compact(request)?;
    if server.json {
        return server.print_json(&compaction);
    }
    let Compaction { compactions, sstables_before, sstables, disk_bytes_before, disk_bytes, .. } = compaction;
    let (before, now) = (file_size(disk_bytes_before), file_size(disk_bytes));
    writeln!(
        stdout(),
        "{what:<11} {} ({before}) to {sstables} ({now}) in {}",
        counted(sstables_before, "SSTable"),
        counted(compactions, "compaction")
    )?;
    Ok(())
}

/// `compactionstats` (`CompactionStats.java`).
///
/// # Errors
/// No server answers.
pub fn compactionstats(server: &Server, human: bool) -> Result<()> {
    let AdminAnswer::Compactions(found) = server.request(&AdminRequest::Compactions)? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&found);
    }
    let mut columns = Columns::new(" ");
    let CompactionMetrics { completed, discarded, bytes_per_s, .. } = found;
    columns.row(["concurrent compactors".to_owned(), found.compactors.to_string()]);
    let pending: u64 = found.pending.iter().map(|(_, _, pending)| pending).sum();
    columns.row(["pending tasks".to_owned(), pending.to_string()]);
    for (keyspace, table, pending) in &found.pending {
        columns.row([keyspace.clone(), table.clone(), pending.to_string()]);
    }
    let hours = found.uptime_s.max(1) as f64 / 3600.0;
    let lately_minutes = (found.uptime_s.max(60) as f64 / 60.0).min(15.0);
    columns.row(["compactions completed".to_owned(), completed.to_string()]);
    columns.row(["data compacted".to_owned(), bytes_text(found.data_bytes, human)]);
    columns.row(["compressed data compacted".to_owned(), bytes_text(found.bytes_read, human)]);
    columns.row(["compactions aborted".to_owned(), discarded.to_string()]);
    columns.row(["compactions reduced".to_owned(), found.reduced.to_string()]);
    columns.row(["sstables dropped from compaction".to_owned(), found.sstables_left_out.to_string()]);
    columns.row([
        "15 minute rate".to_owned(),
        format!("{:.2}/minute", found.completed_lately as f64 / lately_minutes),
    ]);
    columns.row(["mean rate".to_owned(), format!("{:.2}/hour", completed as f64 / hours)]);
    let throughput = match bytes_per_s {
        0 => "throttling disabled (0)".to_owned(),
        bytes => java_double(Some(bytes as f64 / MIB)),
    };
    columns.row(["compaction throughput (MiB/s)".to_owned(), throughput]);
    running(&mut columns, &found, human);
    let mut out = stdout().lock();
    columns.print(&mut out)?;
    if let Some(failure) = &found.failure {
        writeln!(out, "last compaction FAILED: {failure}")?;
    }
    for trouble in &found.troubles {
        writeln!(out, "{}", trouble_text(trouble))?;
    }
    Ok(())
}

/// Why a table is not compacted, or not wholly.
fn trouble_text(trouble: &CompactionTroubleLine) -> String {
    let CompactionTroubleLine { keyspace, table, reason, wanted_bytes, free_bytes, left_out, again_in_s } =
        trouble;
    let mut text = format!("{keyspace}.{table}: ");
    match wanted_bytes {
        Some(wanted) => {
            let free = free_bytes.map_or("an unknown number of bytes".to_owned(), file_size);
            text.push_str(&format!("waits for space: {} wanted, {free} free; {reason}", file_size(*wanted)));
        }
        None => text.push_str(reason),
    }
    if !left_out.is_empty() {
        text.push_str(&format!("; compacted without {}", left_out.join(", ")));
    }
    let again = again_in_s.map_or("after the next start".to_owned(), |seconds| format!("in {seconds} s"));
    text.push_str(&format!("; tried again {again}"));
    text
}

fn running(columns: &mut Columns, found: &CompactionMetrics, human: bool) {
    if found.running.is_empty() {
        return;
    }
    columns.row(["id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress"]);
    for task in &found.running {
        let progress = match task.bytes_total {
            0 => "n/a".to_owned(),
            total => format!("{:.2}%", task.bytes_done as f64 / total as f64 * 100.0),
        };
        let (done, total) = (bytes_text(task.bytes_done, human), bytes_text(task.bytes_total, human));
        let (id, kind) = (task.id.clone(), task.kind.clone());
        columns.row([
            id,
            kind,
            task.keyspace.clone(),
            task.table.clone(),
            done,
            total,
            "bytes".to_owned(),
            progress,
        ]);
    }
    let left: u64 = found.running.iter().map(|task| task.bytes_total.saturating_sub(task.bytes_done)).sum();
    let time = left.checked_div(found.bytes_per_s).map_or("n/a".to_owned(), |seconds| {
        format!("{}h{:02}m{:02}s", seconds / 3600, seconds % 3600 / 60, seconds % 60)
    });
    columns.row(["active compaction remaining time".to_owned(), time]);
}

/// `compactionhistory` (`CompactionHistoryPrinter.java`), since the server's start.
///
/// # Errors
/// No server answers.
pub fn compactionhistory(server: &Server) -> Result<()> {
    let AdminAnswer::History(lines) = server.request(&AdminRequest::CompactionHistory)? else {
        return unexpected();
    };
    if server.json {
        let line = |line: &helenus_server::admin::PastCompactionLine| {
            json!({
                "id": line.id,
                "keyspace_name": line.keyspace,
                "columnfamily_name": line.table,
                "compacted_at": moment(line.ended_ms),
                "bytes_in": line.bytes_in,
                "bytes_out": line.bytes_out,
                "rows_merged": "{}",
                "compaction_properties": properties(line),
                "sstables_in": line.sstables_in,
                "sstables_out": line.sstables_out,
            })
        };
        let history: Vec<_> = lines.iter().map(line).collect();
        return server.print_json(&json!({ "CompactionHistory": history }));
    }
    let mut out = stdout().lock();
    writeln!(out, "Compaction History: ")?;
    if lines.is_empty() {
        write!(out, "There is no compaction history")?;
        return Ok(());
    }
    let mut columns = Columns::new(" ");
    let heads =
        ["id", "keyspace_name", "columnfamily_name", "compacted_at", "bytes_in", "bytes_out", "rows_merged"];
    columns.row(heads.into_iter().chain(["compaction_properties"]));
    for line in &lines {
        let (bytes_in, bytes_out) = (line.bytes_in.to_string(), line.bytes_out.to_string());
        let at = moment(line.ended_ms);
        let (id, keyspace, table) = (line.id.clone(), line.keyspace.clone(), line.table.clone());
        // The number of partitions by number of merged SSTables is not recorded, so the column is empty.
        columns.row([id, keyspace, table, at, bytes_in, bytes_out, "{}".to_owned(), properties(line)]);
    }
    columns.print(&mut out)?;
    Ok(())
}

fn properties(line: &helenus_server::admin::PastCompactionLine) -> String {
    format!("{{compaction_type:{}}}", line.kind)
}

/// `getcompactionthroughput` (`GetCompactionThroughput.java`).
///
/// # Errors
/// No server answers; a rate that is no whole number, unless `precise`.
pub fn getcompactionthroughput(server: &Server, precise: bool) -> Result<()> {
    let AdminAnswer::Compactions(found) = server.request(&AdminRequest::Compactions)? else {
        return unexpected();
    };
    let mib = found.bytes_per_s as f64 / MIB;
    if server.json {
        return server.print_json(&json!({ "mebibytes_per_second": mib }));
    }
    let mut out = stdout().lock();
    if precise {
        writeln!(out, "Current compaction throughput: {} MiB/s", java_double(Some(mib)))?;
    } else if mib.fract() == 0.0 {
        writeln!(out, "Current compaction throughput: {mib:.0} MB/s")?;
    } else {
        bail!("Use the -d flag to quiet this error and get the exact throughput in MiB/s");
    }
    Ok(())
}

/// `statusautocompaction` (`StatusAutoCompaction.java`).
///
/// # Errors
/// No server answers; no such table.
pub fn statusautocompaction(server: &Server, which: TableSelection, all: bool) -> Result<()> {
    let request = AdminRequest::AutoCompaction { which, set: None };
    let AdminAnswer::AutoCompaction(tables) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&tables);
    }
    let mut out = stdout().lock();
    let text = |is_automatic: bool| if is_automatic { "running" } else { "not running" };
    if all {
        let mut columns = Columns::new(" ");
        columns.row(["Keyspace", "Table", "Status"]);
        for (keyspace, table, is_automatic) in &tables {
            columns.row([keyspace.as_str(), table, text(*is_automatic)]);
        }
        columns.print(&mut out)?;
        return Ok(());
    }
    let automatic = tables.iter().filter(|(_, _, is_automatic)| *is_automatic).count();
    let all = match automatic {
        0 if !tables.is_empty() => text(false),
        some if some < tables.len() => "partially running",
        _ => text(true),
    };
    writeln!(out, "{all}")?;
    Ok(())
}
