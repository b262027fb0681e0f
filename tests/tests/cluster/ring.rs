//! Three nodes of Cassandra, by `tests/tools/cluster.sh`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// The port of CQL on 127.0.0.1, .2 and .3.
const PORT: u16 = 9142;
const NODES: &str = "3";

/// A running cluster, which ends with this value, unless it was running before.
pub struct Ring {
    directory: PathBuf,
    own: Option<TempDir>,
}

impl Ring {
    /// The cluster that `HELENUS_RING` names, or a new one.
    pub fn start() -> Ring {
        if let Some(directory) = std::env::var_os("HELENUS_RING") {
            return Ring { directory: directory.into(), own: None };
        }
        let folder = TempDir::with_prefix("helenus-ring-").expect("a temporary directory");
        let directory = folder.path().join("ring");
        let ring = Ring { directory, own: Some(folder) };
        ring.tool("start", &[NODES, &ring.path(), "--port", &PORT.to_string()]);
        ring
    }

    /// The address of a node, 1 to 3.
    pub fn address(&self, node: u32) -> String {
        format!("127.0.0.{node}:{PORT}")
    }

    /// Kills a node.
    pub fn kill(&self, node: u32) {
        self.tool("kill", &[&self.path(), &node.to_string()]);
    }

    /// Starts a node that was killed, and waits until it answers.
    pub fn restart(&self, node: u32) {
        self.tool("restart", &[&self.path(), &node.to_string()]);
    }

    fn path(&self) -> String {
        self.directory.display().to_string()
    }

    fn tool(&self, verb: &str, arguments: &[&str]) {
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
