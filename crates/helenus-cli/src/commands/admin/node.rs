//! Facts about the server: `status`, `info`, `version`, `describecluster`, `describering`, `ring`, `getendpoints`,
//! `statusbinary`.

use super::clocks::remarks;
use super::layout::{Columns, decimals, file_size, java_double};
use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest, MemoryMetrics, NodeMetrics};
use std::io::{Write, stdout};

/// Cassandra's port between nodes. `system.local` shows it too, though nothing listens on it.
const STORAGE_PORT: u16 = 7000;

pub(super) fn asked(server: &Server) -> Result<NodeMetrics> {
    match server.request(&AdminRequest::Node)? {
        AdminAnswer::Node(node) => Ok(node),
        _ => unexpected(),
    }
}

fn check_keyspace(node: &NodeMetrics, keyspace: Option<&str>) -> Result<()> {
    match keyspace.filter(|name| !node.keyspaces.iter().any(|(known, _)| known == name)) {
        Some(unknown) => bail!("The keyspace {unknown}, does not exist"),
        None => Ok(()),
    }
}

/// `status [KEYSPACE]` (`Status.java`).
///
/// # Errors
/// No server answers; no such keyspace.
pub fn status(server: &Server, keyspace: Option<&str>) -> Result<()> {
    let node = asked(server)?;
    check_keyspace(&node, keyspace)?;
    if server.json {
        return server.print_json(&node);
    }
    // Warnings go to stderr, because scripts parse nodetool's layout on stdout.
    // In a container they are in the log: scripts take any word on stderr for a failure.
    for warning in node.warnings.iter().filter(|_| !server.as_node) {
        note!("WARNING: {warning}");
    }
    let mut out = stdout().lock();
    let head = format!("Datacenter: {}", node.datacenter);
    writeln!(out, "{head}\n{}", "=".repeat(head.len()))?;
    writeln!(out, "Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving")?;
    let mut columns = Columns::new("  ");
    columns.row(["--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack"]);
    let (load, tokens) = (file_size(node.disk_bytes), node.tokens.len().to_string());
    let state = if node.serves { "UN" } else { "DN" };
    columns.row([state, &node.address, &load, &tokens, "100.0%", &node.host_id, &node.rack]);
    columns.print(&mut out)?;
    writeln!(out)?;
    for (name, text) in remarks(&node.clock) {
        writeln!(out, "{name}: {text}")?;
    }
    Ok(())
}

/// `info` (`Info.java`).
///
/// # Errors
/// No server answers.
pub fn info(server: &Server, all_tokens: bool, out_of_range: bool) -> Result<()> {
    let node = asked(server)?;
    if server.json {
        return server.print_json(&node);
    }
    let repaired = match node.unpacked_bytes {
        0 => 100.0,
        all => (node.repaired_bytes as f64 / all as f64 * 10_000.0).round() / 100.0,
    };
    let mut lines = vec![
        ("ID", node.host_id.clone()),
        ("Gossip active", server.as_node.to_string()),
        ("Native Transport active", node.serves.to_string()),
        ("Load", file_size(node.disk_bytes)),
        ("Uncompressed load", file_size(node.unpacked_bytes)),
        ("Generation No", node.started_s.to_string()),
        ("Uptime (seconds)", node.uptime_s.to_string()),
        // The server has no Java heap.
        ("Heap Memory (MB)", "0.00 / 0.00".to_owned()),
        ("Off Heap Memory (MB)", mebibytes(off_heap(&node.memory))),
        ("Data Center", node.datacenter.clone()),
        ("Rack", node.rack.clone()),
        ("Exceptions", "NaN".to_owned()),
    ];
    lines.extend(remarks(&node.clock));
    lines.extend(caches(&node.memory));
    lines.push(("Percent Repaired", format!("{}%", java_double(Some(repaired)))));
    if all_tokens {
        lines.extend(node.tokens.iter().map(|token| ("Token", token.to_string())));
    } else {
        let text = format!("(invoke with -T/--tokens to see all {} tokens)", node.tokens.len());
        lines.push(("Token", text));
    }
    lines.push(("Bootstrap state", "COMPLETED".to_owned()));
    for never in ["Bootstrap failed", "Decommissioning", "Decommission failed"] {
        lines.push((never, "false".to_owned()));
    }
    let mut out = stdout().lock();
    for (name, value) in lines {
        writeln!(out, "{name:<23}: {value}")?;
    }
    if out_of_range {
        // Every token is this server's, so no keyspace follows.
        let columns = format!("{:<48} {:>10} {:>10} {:>10}", "Keyspace", "Read", "Write", "Paxos");
        writeln!(out, "{:<23}: {columns}", "Invalid Token Ops")?;
    }
    Ok(())
}

/// Memory of the engine and of client requests.
pub(super) fn off_heap(memory: &MemoryMetrics) -> u64 {
    memory.memtables + memory.cache + memory.sstables + memory.requests
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / f64::from(1 << 20))
}

/// The caches: the block cache in the line of the chunk cache. The lines of the key, row and counter cache are zero.
fn caches(memory: &MemoryMetrics) -> Vec<(&'static str, String)> {
    let none = "entries 0, size 0 bytes, capacity 0 bytes, 0 hits, 0 requests, NaN recent hit rate, 0 save period in seconds";
    let mut lines: Vec<_> =
        ["Key Cache", "Row Cache", "Counter Cache"].map(|name| (name, none.to_owned())).into();
    let (size, capacity) = (file_size(memory.cache), file_size(memory.cache_max));
    let MemoryMetrics { cache_blocks, cache_hits, cache_misses, .. } = memory;
    let requests = cache_hits + cache_misses;
    let rate = decimals((requests > 0).then(|| *cache_hits as f64 / requests as f64), 3);
    // The hit rate is that of the whole time since the start. The latency of a miss is not measured.
    let chunks = format!(
        "entries {cache_blocks}, size {size}, capacity {capacity}, {cache_misses} misses, {requests} requests, {rate} recent hit rate, \
         NaN microseconds miss latency"
    );
    lines.push(("Chunk Cache", chunks));
    let (size, capacity) = (file_size(memory.requests), file_size(memory.requests_max));
    lines.push(("Network Cache", format!("size {size}, overflow size: 0 bytes, capacity {capacity}")));
    lines
}

/// `version` (`Version.java`).
///
/// # Errors
/// No server answers.
pub fn version(server: &Server, verbose: bool) -> Result<()> {
    let NodeMetrics { release_version, version, .. } = asked(server)?;
    if server.json {
        return server.print_json(
            &serde_json::json!({ "release_version": release_version, "helenus_version": version }),
        );
    }
    let mut out = stdout().lock();
    writeln!(out, "ReleaseVersion: {release_version}")?;
    if verbose {
        writeln!(out, "HelenusVersion: {version}")?;
    }
    Ok(())
}

/// `describecluster` (`DescribeCluster.java`).
///
/// # Errors
/// No server answers.
pub fn describecluster(server: &Server) -> Result<()> {
    let node = asked(server)?;
    if server.json {
        return server.print_json(&node);
    }
    let mut out = stdout().lock();
    writeln!(out, "Cluster Information:\n\tName: {}", node.cluster_name)?;
    writeln!(out, "\tSnitch: org.apache.cassandra.locator.SimpleSnitch\n\tDynamicEndPointSnitch: disabled")?;
    writeln!(out, "\tPartitioner: org.apache.cassandra.dht.Murmur3Partitioner")?;
    writeln!(out, "\tSchema versions:\n\t\t{}: [{}]\n", node.schema_version, node.address)?;
    writeln!(
        out,
        "Stats for all nodes:\n\tLive: 1\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0\n"
    )?;
    writeln!(out, "Data Centers: \n\t{} #Nodes: 1 #Down: 0\n", node.datacenter)?;
    writeln!(out, "Database versions:\n\t{}: [{}:{STORAGE_PORT}]\n", node.release_version, node.address)?;
    writeln!(out, "Keyspaces:")?;
    for (keyspace, replication) in &node.keyspaces {
        writeln!(out, "\t{keyspace} -> Replication class: {replication}")?;
    }
    Ok(())
}

/// `describering KEYSPACE` (`DescribeRing.java`).
///
/// # Errors
/// No server answers; no such keyspace.
pub fn describering(server: &Server, keyspace: &str) -> Result<()> {
    let node = asked(server)?;
    check_keyspace(&node, Some(keyspace))?;
    if server.json {
        return server.print_json(&node);
    }
    let mut out = stdout().lock();
    writeln!(out, "Schema Version:{}\nTokenRange: ", node.schema_version)?;
    let NodeMetrics { address, datacenter, rack, tokens, .. } = &node;
    let starts = tokens.last().into_iter().chain(tokens);
    for (start, end) in starts.zip(tokens) {
        writeln!(
            out,
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{address}], rpc_endpoints:[{address}], \
             endpoint_details:[EndpointDetails(host:{address}, datacenter:{datacenter}, rack:{rack})])"
        )?;
    }
    Ok(())
}

/// `ring [KEYSPACE]` (`Ring.java`).
///
/// # Errors
/// No server answers; no such keyspace.
pub fn ring(server: &Server, keyspace: Option<&str>) -> Result<()> {
    let node = asked(server)?;
    check_keyspace(&node, keyspace)?;
    if server.json {
        return server.print_json(&node);
    }
    let mut out = stdout().lock();
    let width = format!("{}:{STORAGE_PORT}", node.address).len();
    writeln!(out, "\nDatacenter: {}\n==========", node.datacenter)?;
    let mut row = |cells: [&str; 7]| {
        let [address, rack, status, state, load, owns, token] = cells;
        writeln!(out, "{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}")
    };
    row(["Address", "Rack", "Status", "State", "Load", "Owns", "Token"])?;
    let last = node.tokens.last().map(i64::to_string).unwrap_or_default();
    row(["", "", "", "", "", "", &last])?;
    let (load, status) = (file_size(node.disk_bytes), if node.serves { "Up" } else { "Down" });
    for token in node.tokens.iter().map(i64::to_string) {
        row([&node.address, &node.rack, status, "Normal", &load, "100.00%", &token])?;
    }
    writeln!(out)?;
    writeln!(out, "  Warning: \"helenus admin ring\" is used to output all the tokens of a node.")?;
    writeln!(out, "  To view status related info of a node use \"helenus admin status\" instead.\n\n\n  ")?;
    Ok(())
}

/// `getendpoints KEYSPACE TABLE KEY` (`GetEndpoints.java`): this server has all partitions.
///
/// # Errors
/// No server answers; no such table; a malformed key.
pub fn getendpoints(server: &Server, keyspace: &str, table: &str, key: &str) -> Result<()> {
    // The request for the key's files is sent only to check the table and the key.
    let (keyspace, table, key) = (keyspace.to_owned(), table.to_owned(), key.to_owned());
    server.request(&AdminRequest::FilesOfKey { keyspace, table, key, hex: false })?;
    let node = asked(server)?;
    if server.json {
        return server.print_json(&[node.address]);
    }
    writeln!(stdout(), "{}", node.address)?;
    Ok(())
}

/// `statusbinary` (`StatusBinary.java`).
///
/// # Errors
/// No server answers.
pub fn statusbinary(server: &Server) -> Result<()> {
    let node = asked(server)?;
    if server.json {
        return server.print_json(&serde_json::json!({ "running": node.serves }));
    }
    writeln!(stdout(), "{}", if node.serves { "running" } else { "not running" })?;
    Ok(())
}
