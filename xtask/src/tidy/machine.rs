//! Files, clocks and threads are named in `host` alone: elsewhere they come in through its traits, so that
//! `host::sim` can stand in for the machine in every test of the engine.

use super::Source;

/// What is banned, and what to use instead.
const BANNED: &[(&str, &str)] = &[
    ("std::fs", "host::Disk"),
    ("fs::File", "host::Disk"),
    ("SystemTime", "the wall clock of host"),
    ("Instant::now", "the monotonic clock of host"),
    ("thread::sleep", "a timer of host; nothing sleeps to wait for something"),
    ("thread::spawn", "the background tasks of host"),
    ("thread::Builder", "the background tasks of host"),
];

/// Where the machine is named on purpose: its own crate, the checks, and the commands of the binary, which are
/// programs on a machine (they read a configuration file, measure a load, connect to a socket).
const AT_HOME: &[&str] = &["crates/host/", "crates/helenus-cli/", "xtask/", "tests/"];

pub fn check(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if AT_HOME.iter().any(|home| source.path.starts_with(home)) {
            continue;
        }
        for (number, line) in source.code() {
            for (name, instead) in BANNED.iter().filter(|(name, _)| line.contains(name)) {
                // tokio's clock can be paused in a test, which is all that this rule wants.
                if !line.contains("tokio::") {
                    breaches
                        .push(format!("{}:{number}: `{name}` outside `host`; use {instead}", source.path));
                }
            }
        }
    }
    breaches
}
