//! `helenus admin outgrow`: when this machine will be too small, and what a cluster would need. nodetool has no such verb.
//!
//! `trend` fits a line to the history of a figure, `limits` compares each figure with its bound, `cluster` computes the nodes of
//! a cluster, and `report` prints all of it with its arithmetic.

mod cluster;
mod limits;
mod report;
mod trend;

use super::requests::{Server, unexpected};
use anyhow::Result;
use cluster::NodeSize;
use helenus_server::admin::{AdminAnswer, AdminRequest};
use report::Report;
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
