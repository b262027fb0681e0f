//! `snapshot`, `listsnapshots`, `clearsnapshot`.

use super::layout::{Columns, file_size};
use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest, SnapshotLine, TableSelection};
use std::io::{Write, stdout};

/// `snapshot` (`Snapshot.java`).
///
/// # Errors
/// No server answers; no such keyspace or table; a snapshot of that name exists.
pub fn snapshot(
    server: &Server,
    (name, of): (&str, &[TableSelection]),
    flush: bool,
    ttl: Option<(&str, u32)>,
) -> Result<()> {
    if !server.json {
        let what = match of {
            [] => "[all keyspaces]".to_owned(),
            of => format!("[{}]", of.iter().map(text).collect::<Vec<_>>().join(", ")),
        };
        let kept = ttl.map_or(String::new(), |(text, _)| format!(", ttl={text}"));
        say!(
            "Requested creating snapshot(s) for {what} with snapshot name [{name}] and options {{skipFlush={}{kept}}}",
            !flush
        )?;
    }
    let request = AdminRequest::Snapshot {
        name: name.to_owned(),
        of: of.to_vec(),
        flush,
        ttl_s: ttl.map(|(_, seconds)| seconds),
    };
    let AdminAnswer::Snapshots(taken) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&taken);
    }
    writeln!(stdout(), "Snapshot directory: {name}")?;
    Ok(())
}

fn text(which: &TableSelection) -> String {
    let keyspace = which.keyspace.clone().unwrap_or_default();
    match which.tables.as_slice() {
        [] => keyspace,
        tables => tables.iter().map(|table| format!("{keyspace}.{table}")).collect::<Vec<_>>().join(","),
    }
}

/// `listsnapshots` (`ListSnapshots.java`).
///
/// # Errors
/// No server answers.
pub fn listsnapshots(server: &Server, no_ttl: bool) -> Result<()> {
    let AdminAnswer::Snapshots(mut found) = server.request(&AdminRequest::Snapshots)? else {
        return unexpected();
    };
    found.retain(|line| !no_ttl || line.expires_at.is_none());
    if server.json {
        return server.print_json(&found);
    }
    let mut out = stdout().lock();
    writeln!(out, "Snapshot Details: ")?;
    if found.is_empty() {
        writeln!(out, "There are no snapshots")?;
        return Ok(());
    }
    let mut columns = Columns::new(" ");
    let heads = [
        "Snapshot name",
        "Keyspace name",
        "Column family name",
        "True size",
        "Size on disk",
        "Creation time",
    ];
    columns.row(heads.into_iter().chain(["Expiration time"]));
    for line in &found {
        let SnapshotLine { name, keyspace, table, bytes, bytes_alone, created_at, expires_at, .. } = line;
        let (created, expires) =
            (created_at.as_deref().unwrap_or_default(), expires_at.as_deref().unwrap_or_default());
        columns.row(
            [name, keyspace, table, &file_size(*bytes_alone), &file_size(*bytes), created, expires]
                .map(str::to_owned),
        );
    }
    columns.print(&mut out)?;
    let alone: u64 = found.iter().map(|line| line.bytes_alone).sum();
    writeln!(out, "\nTotal TrueDiskSpaceUsed: {}\n", file_size(alone))?;
    Ok(())
}

/// The snapshots that `clearsnapshot` removes.
pub struct Cleared<'a> {
    /// Those of this name; `None`: of any name.
    pub name: Option<&'a str>,
    /// Those of these keyspaces; empty: of all keyspaces.
    pub keyspaces: Vec<String>,
    /// Those older than this number of seconds.
    pub older_than_s: Option<i64>,
    /// Those older than this time: the text as given, and milliseconds since 1970.
    pub before: Option<(&'a str, i64)>,
}

/// `clearsnapshot` (`ClearSnapshot.java`).
///
/// # Errors
/// No server answers; no such keyspace; flags that contradict each other.
pub fn clearsnapshot(server: &Server, cleared: &Cleared<'_>, now_ms: i64) -> Result<()> {
    let Cleared { name, keyspaces, older_than_s, before } = cleared;
    if name.is_some() && (older_than_s.is_some() || before.is_some()) {
        let flag = if before.is_some() { "--older-than-timestamp" } else { "--older-than" };
        bail!("Specifying snapshot name together with {flag} flag is not allowed");
    }
    if !server.json {
        let of = if keyspaces.is_empty() { "all keyspaces".to_owned() } else { keyspaces.join(", ") };
        let with = name.map_or("[all snapshots]".to_owned(), |name| format!("snapshot name [{name}]"));
        let age = older_than_s.map_or(String::new(), |seconds| format!(" older than {seconds} seconds."));
        let at = before.map_or(String::new(), |(text, _)| format!(" older than timestamp {text}"));
        say!("Requested clearing snapshot(s) for [{of}] with {with}{age}{at}")?;
    }
    let before_ms = before.map(|(_, ms)| ms).or(older_than_s.map(|seconds| now_ms - seconds * 1000));
    let request = AdminRequest::ClearSnapshots {
        name: name.map(str::to_owned),
        keyspaces: keyspaces.clone(),
        before_ms,
    };
    let AdminAnswer::Snapshots(removed) = server.request(&request)? else { return unexpected() };
    if server.json {
        return server.print_json(&removed);
    }
    Ok(())
}
