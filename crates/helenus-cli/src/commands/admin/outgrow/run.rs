//! Runs `outgrow`: asks the server for its history, computes the report and prints it.

use super::super::requests::{Server, unexpected};
use super::cluster::NodeSize;
use super::report::Report;
use anyhow::Result;
use helenus_server::admin::{AdminAnswer, AdminRequest};
use std::io::stdout;

/// The options of the verb.
pub struct Wanted {
    /// How far to look ahead, days.
    pub days: u32,
    /// Copies of each row in the cluster.
    pub replicas: u32,
    /// Disk of a node, bytes.
    pub node_disk_bytes: u64,
    /// Processors of a node.
    pub node_cores: u32,
}

/// Asks the server for its history and prints the report.
pub fn run(server: &Server, wanted: &Wanted) -> Result<()> {
    let AdminAnswer::Growth(growth) = server.request(&AdminRequest::Growth)? else { return unexpected() };
    let size = NodeSize { disk_bytes: wanted.node_disk_bytes, cores: wanted.node_cores };
    let report = Report::new(&growth, wanted.days, (wanted.replicas, size));
    if server.json {
        return server.print_json(&report);
    }
    report.print(&mut stdout().lock())?;
    Ok(())
}
