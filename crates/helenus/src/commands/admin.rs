//! `helenus admin`: asks a running server through its admin socket.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use helenus_server::admin::{AdminAnswer, AdminRequest, ServerStatus, TableLine, ask, socket_for_data};
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  helenus admin status                    of the server with its data in ./data
  helenus admin flush shop orders --data /var/lib/helenus
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
        .subcommand(status)
}

/// Asks and prints.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let Some((verb, matches)) = matches.subcommand() else { bail!("no verb") };
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let request = match verb {
        "flush" => AdminRequest::Flush { keyspace: text("keyspace"), table: text("table") },
        _ => AdminRequest::Status,
    };
    let socket = match text("socket") {
        Some(socket) => PathBuf::from(socket),
        None => socket_for_data(Path::new(&text("data").unwrap_or_default())),
    };
    let answer = ask(&socket, &request)?;
    if let AdminAnswer::Error(text) = &answer {
        bail!("{text}");
    }
    let mut out = std::io::stdout().lock();
    if matches.get_flag("json") {
        match &answer {
            AdminAnswer::Flushed(flushed) => serde_json::to_writer(&mut out, flushed)?,
            AdminAnswer::Status(status) => serde_json::to_writer(&mut out, status)?,
            AdminAnswer::Error(_) => {}
        }
        writeln!(out)?;
        return Ok(());
    }
    match answer {
        AdminAnswer::Flushed(flushed) => writeln!(out, "flushed     {} SSTables written", flushed.sstables)?,
        AdminAnswer::Status(status) => print_status(&mut out, &status)?,
        AdminAnswer::Error(_) => {}
    }
    Ok(())
}

fn print_status(out: &mut impl Write, status: &ServerStatus) -> Result<()> {
    writeln!(out, "version      {}", status.version)?;
    writeln!(out, "process      {}, up {} s", status.pid, status.uptime_s)?;
    writeln!(out, "host id      {}", status.host_id)?;
    writeln!(out, "listening    {}, {} connections", status.listening, status.connections)?;
    writeln!(out, "storing in   {}", status.directory.as_deref().unwrap_or("memory"))?;
    if let Some(sync) = &status.sync {
        writeln!(out, "sync         {sync}, {} log segments", status.log_segments)?;
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
