//! Three nodes of Cassandra, by `tests/tools/cluster.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The port of CQL on 127.0.0.1, .2 and .3.
const PORT: u16 = 9142;
const NODES: &str = "3";

/// A running cluster, which ends with this value, unless it was running before.
pub struct Ring {
    directory: PathBuf,
    own: Option<TempDir>,
    /// The address of the only node.
    node: Option<String>,
}

impl Ring {
    /// The node that `HELENUS_NODE` names, the cluster that `HELENUS_RING` names, or a new one.
    pub fn start() -> Ring {
        let node = std::env::var("HELENUS_NODE").ok();
        if node.is_some() {
            return Ring { directory: PathBuf::new(), own: None, node };
        }
        if let Some(directory) = std::env::var_os("HELENUS_RING") {
            return Ring { directory: directory.into(), own: None, node };
        }
        let folder = TempDir::with_prefix("helenus-ring-").expect("a temporary directory");
        let directory = folder.path().join("ring");
        let ring = Ring { directory, own: Some(folder), node };
        ring.tool("start", &[NODES, &ring.path(), "--port", &PORT.to_string()]);
        ring
    }

    /// The address of a node, 1 to 3.
    pub fn address(&self, node: u32) -> String {
        self.node.clone().unwrap_or_else(|| format!("127.0.0.{node}:{PORT}"))
    }

    /// The number of nodes that hold a row, if each is to hold it.
    #[allow(dead_code, reason = "only one of the programs can do with a single node")]
    pub fn copies(&self) -> u32 {
        if self.node.is_some() { 1 } else { 3 }
    }

    /// Kills a node.
    pub fn kill(&self, node: u32) {
        self.tool("kill", &[&self.path(), &node.to_string()]);
    }

    /// Starts a node that was killed, and waits until it answers.
    pub fn restart(&self, node: u32) {
        self.tool("restart", &[&self.path(), &node.to_string()]);
    }

    /// Where the nodes have their data: `node1` to `node3`.
    #[allow(dead_code, reason = "only one of the programs reads their files")]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a node write files of what it holds in memory.
    #[allow(dead_code, reason = "only one of the programs reads their files")]
    pub fn flush(&self, node: u32, keyspace: &str) {
        self.tool("nodetool", &[&self.path(), &node.to_string(), "flush", keyspace]);
    }

    fn path(&self) -> String {
        self.directory.display().to_string()
    }

    fn tool(&self, verb: &str, arguments: &[&str]) {
        assert!(self.node.is_none(), "HELENUS_NODE is one node; this part needs three");
        let program = end_to_end::root().join("tests/tools/cluster.sh");
        let done = Command::new(program).arg(verb).args(arguments).output().expect("cluster.sh starts");
        assert!(
            done.status.success(),
            "cluster.sh {verb} {arguments:?}: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.own.is_some() && !std::thread::panicking() {
            self.tool("stop", &[&self.path()]);
        } else if self.own.is_some() {
            // A second panic would hide the first.
            let program = end_to_end::root().join("tests/tools/cluster.sh");
            let _ = Command::new(program).arg("stop").arg(self.path()).status();
        }
    }
}
