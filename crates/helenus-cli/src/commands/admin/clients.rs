//! `clientstats`: the connected clients, and former clients by protocol version.

use super::layout::{Columns, date};
use super::requests::{Server, unexpected};
use anyhow::Result;
use helenus_server::admin::{AdminAnswer, AdminRequest, ClientLine, ClientsSeen, ProtocolClient};
use std::collections::BTreeMap;
use std::io::{Write, stdout};

/// Cassandra's text for an unknown value.
const UNDEFINED: &str = "undefined";

/// The parts that `clientstats` shows.
pub struct Shown {
    /// All connections.
    pub all: bool,
    /// Client addresses by protocol version.
    pub by_protocol: bool,
    /// Shows nothing, but clears the history of connections.
    pub clear: bool,
    /// All connections, with their options.
    pub options: bool,
}

/// `clientstats` (`ClientStats.java`).
///
/// # Errors
/// No server answers.
pub fn clientstats(server: &Server, shown: &Shown) -> Result<()> {
    if shown.clear {
        if !server.json {
            writeln!(stdout(), "Clearing connection history")?;
        }
        server.request(&AdminRequest::ClearClients)?;
        return if server.json { server.print_json(&serde_json::json!({ "done": true })) } else { Ok(()) };
    }
    let AdminAnswer::Clients(seen) = server.request(&AdminRequest::Clients)? else { return unexpected() };
    if server.json {
        return server.print_json(&seen);
    }
    let ClientsSeen { connections, by_protocol } = seen;
    let mut out = stdout().lock();
    if shown.by_protocol {
        writeln!(out, "Clients by protocol version\n")?;
        return by_version(&by_protocol, &mut out);
    }
    for with_options in [false, true] {
        let is_wanted = if with_options { shown.options } else { shown.all };
        if is_wanted && !connections.is_empty() {
            table(&connections, with_options).print(&mut out)?;
            writeln!(out)?;
        }
    }
    writeln!(out, "Total connected clients: {}\n", connections.len())?;
    let mut users = Columns::new(" ");
    users.row(["User", "Connections"]);
    let mut counts = BTreeMap::new();
    for connection in &connections {
        *counts.entry(user_of(connection)).or_insert(0_u64) += 1;
    }
    for (user, count) in counts {
        users.row([printable(user), count.to_string()]);
    }
    users.print(&mut out)?;
    Ok(())
}

fn by_version(clients: &[ProtocolClient], out: &mut dyn Write) -> Result<()> {
    if clients.is_empty() {
        return Ok(());
    }
    let mut columns = Columns::new(" ");
    columns.row(["Protocol-Version", "IP-Address", "Last-Seen"]);
    for ProtocolClient { version, address, last_seen_ms } in clients {
        columns.row([format!("{version}/v{version}"), format!("/{address}"), date(*last_seen_ms)]);
    }
    columns.print(out)?;
    writeln!(out)?;
    Ok(())
}

fn table(connections: &[ClientLine], with_options: bool) -> Columns {
    const HEADS: [&str; 10] = [
        "Address",
        "SSL",
        "Cipher",
        "Protocol",
        "Version",
        "User",
        "Keyspace",
        "Requests",
        "Driver-Name",
        "Driver-Version",
    ];
    let mut columns = Columns::new(" ");
    columns.row(HEADS.into_iter().chain(with_options.then_some("Client-Options")));
    for line in connections {
        let ClientLine { address, version, tls, keyspace, requests, options, .. } = line;
        let (protocol, cipher) =
            tls.as_ref().map_or((UNDEFINED, UNDEFINED), |(protocol, cipher)| (protocol, cipher));
        let option = |name: &str| options.get(name).map_or(UNDEFINED, String::as_str).to_owned();
        let all: Vec<String> = options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let cells = [
            format!("/{address}"),
            tls.is_some().to_string(),
            cipher.to_owned(),
            protocol.to_owned(),
            version.to_string(),
            user_of(line).to_owned(),
            keyspace.clone().unwrap_or_default(),
            requests.to_string(),
            option("DRIVER_NAME"),
            option("DRIVER_VERSION"),
        ];
        let options = with_options.then(|| all.join(", "));
        let shown = cells.into_iter().chain(options).map(|cell| printable(&cell));
        columns.row(shown.collect::<Vec<String>>());
    }
    columns
}

fn user_of(line: &ClientLine) -> &str {
    line.user.as_deref().unwrap_or(UNDEFINED)
}

/// Replaces control characters, because a driver chooses these texts and must not move the terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}
