//! `cargo xtask applications`: the suites of drivers and applications (`tests/suites/run.py`), each against a fresh server.
//!
//! By command and not by the check: the first run downloads and compiles what the suites are made of, which takes minutes.

use std::path::PathBuf;
use std::process::Command;

use crate::run::step;
use crate::{root, target};

/// Runs the named suites, or all of them; `--list` only names them. A binary named by `HELENUS_BIN` is taken as it is.
/// A suite that cannot be had does not stop the others.
pub fn run(asked: &[&str]) -> Result<(), String> {
    let known = listed()?;
    if asked == ["--list"] {
        print!("{known}");
        return Ok(());
    }
    let all: Vec<&str> = known.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if let Some(name) = asked.iter().find(|name| !all.contains(name)) {
        return Err(format!("applications: no suite is called {name}; there are {}", all.join(", ")));
    }
    let binary = if let Some(binary) = std::env::var_os("HELENUS_BIN") {
        PathBuf::from(binary)
    } else {
        let build = ["build", "--release", "--package", "helenus-cli", "--locked"];
        step("release build", Command::new("cargo").args(build))?;
        target().join("release/helenus")
    };
    let mut failed = Vec::new();
    for name in if asked.is_empty() { &all } else { asked } {
        let status = script().arg("--serve").arg(&binary).arg(name).status();
        if !status.map_err(|error| cannot_start(&error))?.success() {
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("applications: failed: {}", failed.join(", "))) }
}

/// One line a suite: its name and what it is.
fn listed() -> Result<String, String> {
    let output = script().arg("--list").output().map_err(|error| cannot_start(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("applications: run.py --list: {}", String::from_utf8_lossy(&output.stderr)))
}

fn script() -> Command {
    let mut command = Command::new("python3");
    command.arg(root().join("tests/suites/run.py"));
    command
}

fn cannot_start(error: &std::io::Error) -> String {
    format!("applications: cannot start python3: {error}; install Python 3")
}
