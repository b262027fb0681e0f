//! Verbs about other nodes, answered as the healthy only node of a cluster answers them: what `nodetool` says in the container
//! image, where health checks and scripts of operators ask for it. `helenus admin` says instead why they mean nothing here.
//!
//! Lines and layouts are those of nodetool of Cassandra 5.0.9, asked of one node without others. Each answer asks the server
//! first, so that none comes from a server that does not run.

use super::node::{asked, off_heap};
use super::requests::Server;
use anyhow::{Result, bail};
use helenus_server::admin::NodeMetrics;
use std::io::{Write, stdout};

/// The version of the messages between nodes of Cassandra 5.0 (`MessagingService.current_version`).
const NET_VERSION: u32 = 13;

/// The verbs, each with the options that it takes here.
const VERBS: [(&str, &[&str]); 13] = [
    ("statusgossip", &[]),
    ("statushandoff", &[]),
    ("statusbackup", &[]),
    ("netstats", &["-H", "--human-readable"]),
    ("gossipinfo", &[]),
    ("failuredetector", &[]),
    ("gcstats", &[]),
    ("getseeds", &[]),
    ("listpendinghints", &[]),
    // These ask for what is so already.
    ("enablegossip", &[]),
    ("enablehandoff", &[]),
    ("disablebackup", &[]),
    ("truncatehints", &[]),
];

/// Whether a verb is answered here.
pub fn has(verb: &str) -> bool {
    VERBS.iter().any(|(known, _)| *known == verb)
}

/// Answers a verb. `words` are those behind it.
///
/// # Errors
/// No server answers; an option that is not taken.
pub fn answer(server: &Server, verb: &str, words: &[&str]) -> Result<()> {
    let options = VERBS.iter().find(|(known, _)| *known == verb).map_or(&[][..], |(_, options)| *options);
    if let Some(other) = words.iter().find(|word| !options.contains(word)) {
        bail!("{verb}: {other} is not taken here; give the verb alone");
    }
    if server.json {
        bail!("{verb}: there is no JSON of it");
    }
    let node = asked(server)?;
    let mut out = stdout().lock();
    match verb {
        "statusgossip" => writeln!(out, "running")?,
        "statushandoff" => writeln!(out, "Hinted handoff is running")?,
        "statusbackup" => writeln!(out, "not running")?,
        "netstats" => netstats(&mut out)?,
        "gossipinfo" => gossipinfo(&mut out, &node)?,
        "failuredetector" => writeln!(out, "  Endpoint,             Phi")?,
        "gcstats" => gcstats(&mut out, &node)?,
        "getseeds" => writeln!(out, "Seed node list does not contain any remote node IPs")?,
        "listpendinghints" => writeln!(out, "This node does not have any pending hints")?,
        _ => {}
    }
    Ok(())
}

fn netstats(out: &mut impl Write) -> Result<()> {
    writeln!(out, "Mode: NORMAL\nNot sending any streams.\nRead Repair Statistics:")?;
    writeln!(out, "Attempted: 0\nMismatch (Blocking): 0\nMismatch (Background): 0")?;
    let mut row = |[name, active, pending, completed, dropped]: [&str; 5]| {
        writeln!(out, "{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}")
    };
    row(["Pool Name", "Active", "Pending", "Completed", "Dropped"])?;
    for name in ["Large messages", "Small messages", "Gossip messages"] {
        row([name, "n/a", "0", "0", "0"])?;
    }
    Ok(())
}

/// The number in front of each value counts changes of the node's state. It never changes here.
fn gossipinfo(out: &mut impl Write, node: &NodeMetrics) -> Result<()> {
    let NodeMetrics { address, port, .. } = node;
    let first = node.tokens.first().copied().unwrap_or_default();
    writeln!(out, "/{address}\n  generation:{}\n  heartbeat:{}", node.started_s, node.uptime_s)?;
    for (version, name, value) in [
        (24, "STATUS", format!("NORMAL,{first}")),
        (30, "LOAD", format!("{}.0", node.disk_bytes)),
        (18, "SCHEMA", node.schema_version.clone()),
        (8, "DC", node.datacenter.clone()),
        (10, "RACK", node.rack.clone()),
        (5, "RELEASE_VERSION", node.release_version.clone()),
        (4, "RPC_ADDRESS", address.clone()),
        (1, "NET_VERSION", NET_VERSION.to_string()),
        (2, "HOST_ID", node.host_id.clone()),
        (27, "RPC_READY", node.serves.to_string()),
        (3, "NATIVE_ADDRESS_AND_PORT", format!("{address}:{port}")),
        (23, "STATUS_WITH_PORT", format!("NORMAL,{first}")),
        (6, "SSTABLE_VERSIONS", "bti-da".to_owned()),
        (22, "TOKENS", "<hidden>".to_owned()),
    ] {
        let separator = format!(":{version}:");
        writeln!(out, "  {name}{separator}{value}")?;
    }
    writeln!(out)?;
    Ok(())
}

/// There is no garbage collector: no collection took any time.
fn gcstats(out: &mut impl Write, node: &NodeMetrics) -> Result<()> {
    let mut row = |[interval, max, total, deviation, freed, count, direct]: [&str; 7]| {
        writeln!(out, "{interval:>20}{max:>20}{total:>20}{deviation:>20}{freed:>20}{count:>20}{direct:>25}")
    };
    row([
        "Interval (ms)",
        "Max GC Elapsed (ms)",
        "Total GC Elapsed (ms)",
        "Stdev GC Elapsed (ms)",
        "GC Reclaimed (MB)",
        "Collections",
        "Direct Memory Bytes",
    ])?;
    let (interval, direct) = (node.uptime_s * 1000, off_heap(&node.memory));
    row([&interval.to_string(), "0", "0", "0", "0", "0", &direct.to_string()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From nodetool of Cassandra 5.0.9.
    #[test]
    fn the_layouts_are_those_of_nodetool() {
        let mut out = Vec::new();
        netstats(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("\nPool Name                    Active   Pending      Completed   Dropped\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\nGossip messages                 n/a         0              0         0\n"),
            "{text}"
        );
    }

    #[test]
    fn each_verb_has_a_reason_for_the_tool_of_the_server_too() {
        for (verb, _) in VERBS {
            assert!(super::super::absent::why(verb).is_some(), "{verb}");
        }
    }
}
