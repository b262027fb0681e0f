//! `helenus admin`: asks a running server through its admin socket.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use helenus_server::admin::{
    AdminAnswer, AdminRequest, Compaction, RunningCompaction, ServerStatus, TableLine, ask, socket_for_data,
};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  helenus admin status                    of the server with its data in ./data
  helenus admin flush shop orders --data /var/lib/helenus
  helenus admin compact shop              every table of a keyspace
  helenus admin status --socket /run/user/1000/helenus/memory-9042.sock --json";

/// The command.
pub fn command() -> Command {
    let data = Arg::new("data").long("data").value_name("PATH").global(true).default_value("./data");
    let socket = Arg::new("socket").long("socket").value_name("PATH").global(true).conflicts_with("data");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).global(true);
    let flush = Command::new("flush")
        .about("Write what is in memory to SSTables: everything, a keyspace or a table")
        .after_help("Example:\n  helenus admin flush shop orders")
        .arg(Arg::new("keyspace").value_name("KEYSPACE"))
        .arg(Arg::new("table").value_name("TABLE"));
    let compact = Command::new("compact")
        .about("Compact the SSTables of everything, a keyspace or a table, and show how far it is")
        .after_help(
            "What is in memory is not written first: flush before it to have everything in one place.\n\
             It goes on in the server if this command is ended.\n\nExample:\n  helenus admin compact shop orders",
        )
        .arg(Arg::new("keyspace").value_name("KEYSPACE"))
        .arg(Arg::new("table").value_name("TABLE"));
    let compactionstats = Command::new("compactionstats")
        .about("Show the compactions that are due and under way")
        .after_help("Example:\n  helenus admin compactionstats");
    let status = Command::new("status")
        .about("Show the server's figures and its tables")
        .after_help("Example:\n  helenus admin status --json");
    Command::new("admin")
        .about("Ask a running server on this machine")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(data.help("Data directory of the server"))
        .arg(socket.help("Its admin socket, as it printed at its start"))
        .arg(json.help("Print the answer as JSON"))
        .subcommand(flush)
        .subcommand(compact)
        .subcommand(compactionstats)
        .subcommand(status)
}

/// Asks and prints.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let Some((verb, matches)) = matches.subcommand() else { bail!("no verb") };
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let request = match verb {
        "flush" => AdminRequest::Flush { keyspace: text("keyspace"), table: text("table") },
        "compact" => AdminRequest::Compact { keyspace: text("keyspace"), table: text("table") },
        _ => AdminRequest::Status,
    };
    let socket = match text("socket") {
        Some(socket) => PathBuf::from(socket),
        None => socket_for_data(Path::new(&text("data").unwrap_or_default())),
    };
    let answer = follow(&socket, ask(&socket, &request)?)?;
    if let AdminAnswer::Error(text) = &answer {
        bail!("{text}");
    }
    let mut out = std::io::stdout().lock();
    if matches.get_flag("json") {
        match &answer {
            AdminAnswer::Flushed(flushed) => serde_json::to_writer(&mut out, flushed)?,
            AdminAnswer::Compaction(compaction) => serde_json::to_writer(&mut out, compaction)?,
            AdminAnswer::Status(status) if verb == "compactionstats" => {
                serde_json::to_writer(&mut out, &status.compactions)?;
            }
            AdminAnswer::Status(status) => serde_json::to_writer(&mut out, status)?,
            AdminAnswer::Import(_) | AdminAnswer::Exported(_) | AdminAnswer::Error(_) => {}
        }
        writeln!(out)?;
        return Ok(());
    }
    match answer {
        AdminAnswer::Flushed(flushed) => writeln!(out, "flushed     {} SSTables written", flushed.sstables)?,
        AdminAnswer::Compaction(compaction) => print_compacted(&mut out, &compaction)?,
        AdminAnswer::Status(status) if verb == "compactionstats" => print_compactions(&mut out, &status)?,
        AdminAnswer::Status(status) => print_status(&mut out, &status)?,
        AdminAnswer::Import(_) | AdminAnswer::Exported(_) | AdminAnswer::Error(_) => {}
    }
    Ok(())
}

/// Asks for a compaction again and again until it is over, and shows how far it is where somebody looks.
fn follow(socket: &Path, mut answer: AdminAnswer) -> Result<AdminAnswer> {
    let mut err = std::io::stderr().lock();
    let watched = err.is_terminal();
    while let AdminAnswer::Compaction(compaction) = &answer {
        if watched {
            let line = compaction.running.first().map(running_text).unwrap_or_default();
            write!(err, "\r\x1b[K{line}")?;
            err.flush()?;
        }
        if compaction.is_over {
            break;
        }
        answer = ask(socket, &AdminRequest::Compaction { number: compaction.number })?;
    }
    if watched {
        write!(err, "\r\x1b[K")?;
    }
    Ok(answer)
}

fn running_text(running: &RunningCompaction) -> String {
    let RunningCompaction { keyspace, table, kind, sstables, bytes_total, bytes_done } = running;
    let percent = bytes_done * 100 / (*bytes_total).max(1);
    format!("{keyspace}.{table}  {kind} of {sstables} SSTables, {percent} % of {}", mebibytes(*bytes_total))
}

fn print_compacted(out: &mut impl Write, compaction: &Compaction) -> Result<()> {
    let Compaction { compactions, sstables_before, sstables, disk_bytes_before, disk_bytes, .. } = compaction;
    let (before, now) = (mebibytes(*disk_bytes_before), mebibytes(*disk_bytes));
    writeln!(
        out,
        "compacted   {sstables_before} SSTables ({before}) to {sstables} ({now}) in {compactions} compactions"
    )?;
    Ok(())
}

fn print_compactions(out: &mut impl Write, status: &ServerStatus) -> Result<()> {
    let pending: u64 = status.tables.iter().map(|table| table.pending_compactions).sum();
    writeln!(out, "pending     {pending}")?;
    for table in status.tables.iter().filter(|table| table.pending_compactions > 0) {
        writeln!(out, "            {}.{}: {}", table.keyspace, table.table, table.pending_compactions)?;
    }
    writeln!(out, "running     {}", status.compactions.len())?;
    for running in &status.compactions {
        writeln!(out, "            {}", running_text(running))?;
    }
    if let Some(failure) = &status.compaction_failure {
        writeln!(out, "the last    FAILED: {failure}")?;
    }
    Ok(())
}

fn print_status(out: &mut impl Write, status: &ServerStatus) -> Result<()> {
    writeln!(out, "version      {}", status.version)?;
    writeln!(out, "process      {}, up {} s", status.pid, status.uptime_s)?;
    writeln!(out, "host id      {}", status.host_id)?;
    writeln!(out, "listening    {}, {} connections", status.listening, status.connections)?;
    if let Some(rpc) = &status.rpc {
        writeln!(out, "rpc          {rpc}")?;
    }
    writeln!(out, "storing in   {}", status.directory.as_deref().unwrap_or("memory"))?;
    if let Some(sync) = &status.sync {
        let plural = if status.log_segments == 1 { "" } else { "s" };
        writeln!(out, "sync         {sync}, {} log segment{plural}", status.log_segments)?;
    }
    writeln!(
        out,
        "memory       memtables {}, cache {}",
        mebibytes(status.memtable_bytes),
        mebibytes(status.cache_bytes)
    )?;
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
    print_tables(out, &status.tables)
}

fn print_tables(out: &mut impl Write, tables: &[TableLine]) -> Result<()> {
    let name = |table: &TableLine| format!("{}.{}", table.keyspace, table.table);
    let width = tables.iter().map(|table| name(table).len()).max().unwrap_or(0).max("table".len());
    writeln!(
        out,
        "{:width$} {:>9} {:>12} {:>12} {:>13}",
        "table", "sstables", "on disk", "in memory", "rows there"
    )?;
    for table in tables {
        let (disk, memory) = (mebibytes(table.disk_bytes), mebibytes(table.memtable_bytes));
        let (name, rows) = (name(table), table.memtable_rows);
        writeln!(out, "{name:width$} {:>9} {disk:>12} {memory:>12} {rows:>13}", table.sstables)?;
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
