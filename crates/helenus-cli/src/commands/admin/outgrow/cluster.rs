//! The nodes of a cluster of Cassandra that would hold the data and serve the requests.

use super::super::layout::file_size;
use helenus_cql::counted;
use serde::Serialize;

/// The part of a node's disk that data may fill, so that compactions, repairs and the loss of a node find room.
const DISK_PART: f64 = 0.5;
/// The part of a node's processors that requests may keep busy, so that compaction and the loss of a node find room.
const CPU_PART: f64 = 0.5;
/// Seconds of processor time that Cassandra 5.0.6 took for a request on one node (docs/performance.md, figures over the socket).
const WRITE_CPU_S: f64 = 21.5e-6;
const READ_CPU_S: f64 = 40.6e-6;
/// `num_tokens` of Cassandra 5.0's own cassandra.yaml.
const TOKENS: u32 = 16;

/// The size of a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeSize {
    /// Bytes of its disk.
    pub disk_bytes: u64,
    /// Its processors.
    pub cores: u32,
}

/// What the cluster has to hold and to serve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Bytes of one copy of the data.
    pub data_bytes: f64,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Writes a second.
    pub writes_per_s: f64,
}

/// The cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// The number of nodes.
    pub nodes: u64,
    /// Copies of each row.
    pub replicas: u32,
    /// `num_tokens` of each node.
    pub tokens: u32,
    /// The arithmetic, a line each.
    pub because: Vec<String>,
}

impl Cluster {
    /// The smallest cluster for a load.
    pub fn of(load: &Load, replicas: u32, size: NodeSize) -> Cluster {
        let copies = f64::from(replicas);
        let node_disk = size.disk_bytes as f64 * DISK_PART;
        let by_disk = whole(load.data_bytes * copies / node_disk);
        // At QUORUM a write goes to all copies, and a read to the majority of them.
        let majority = f64::from(replicas / 2 + 1);
        let cores = load.writes_per_s * copies * WRITE_CPU_S + load.reads_per_s * majority * READ_CPU_S;
        let by_cpu = whole(cores / (f64::from(size.cores) * CPU_PART));
        let least = u64::from(replicas);
        let because = vec![
            format!(
                "disk: {} * {} / ({} * {DISK_PART}) = {}",
                file_size(load.data_bytes as u64),
                counted(replicas, "copy"),
                file_size(size.disk_bytes),
                counted(by_disk, "node"),
            ),
            format!(
                "CPU: {:.0} writes/s * {replicas} * {:.1} us + {:.0} reads/s * {majority} * {:.1} us = {cores:.2} cores; \
                 / ({} * {CPU_PART}) = {}",
                load.writes_per_s,
                WRITE_CPU_S * 1e6,
                load.reads_per_s,
                READ_CPU_S * 1e6,
                size.cores,
                counted(by_cpu, "node"),
            ),
            format!("copies: {} of a row, each on a node of its own", counted(replicas, "copy")),
        ];
        Cluster { nodes: by_disk.max(by_cpu).max(least), replicas, tokens: TOKENS, because }
    }
}

fn whole(nodes: f64) -> u64 {
    nodes.ceil().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_of_disk_cpu_and_copies_decides() {
        let size = NodeSize { disk_bytes: 1 << 40, cores: 8 };
        let of = |data_bytes, reads_per_s, writes_per_s| {
            Cluster::of(&Load { data_bytes, reads_per_s, writes_per_s }, 3, size).nodes
        };
        assert_eq!(of(1e9, 10.0, 10.0), 3);
        // 10 TiB * 3 / 0.5 TiB.
        assert_eq!(of(10.0 * (1_u64 << 40) as f64, 0.0, 0.0), 60);
        // 1,000,000 writes/s * 3 * 21.5 us = 64.5 cores, 4 usable a node.
        assert_eq!(of(0.0, 0.0, 1e6), 17);
    }
}
