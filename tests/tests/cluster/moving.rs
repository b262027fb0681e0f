//! What the tests of a move wait for.

use std::process::Command;
use std::time::{Duration, Instant};

use end_to_end::{binary, tool};
use serde_json::Value;

/// A row of counters that is in doubt waits for a while, and for a node that is down.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until all tables of the move in this data directory are at the end of their changes.
pub fn wait_for_tail(data: &str) {
    let began = Instant::now();
    loop {
        let status: Value =
            serde_json::from_str(&tool(&["move", "status", "--json", "--data", data])).expect("a status");
        let tables = status["tables"].as_array().expect("tables");
        assert!(tables.iter().all(|table| table["phase"] != "stopped"), "{status}");
        let is_there = |table: &Value| table["phase"] == "tail" && table["lag_s"] == 0.0;
        if !tables.is_empty() && tables.iter().all(is_there) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{status}");
    }
}

/// Repeats a command that is refused for a passing reason. Returns what it prints.
pub fn until_done<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> String {
    let began = Instant::now();
    loop {
        let output = Command::new(binary()).args(args).output().expect("helenus runs");
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let passes =
            error.contains("behind") || error.contains("in time") || error.contains("not come to an end");
        assert!(passes && began.elapsed() < PATIENCE, "{error}");
    }
}
