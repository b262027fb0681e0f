//! The steps of `cargo xtask check`, cheapest first, so that a slip shows in seconds.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::run::{Tests, in_seconds, step};
use crate::{root, setup, target, tidy};

/// Every step, end-to-end tests included.
pub fn everything() -> Result<(), String> {
    let begin = Instant::now();
    room_on_disk()?;
    let unit = without_end_to_end()?;
    let end_to_end = build_and_test_end_to_end(&[])?;
    summary("unit tests", &unit);
    summary("end-to-end tests", &end_to_end);
    println!("check: ok, {}", in_seconds(begin.elapsed()));
    Ok(())
}

/// What needs nothing but Rust.
pub fn fast() -> Result<(), String> {
    let begin = Instant::now();
    let unit = without_end_to_end()?;
    summary("unit tests", &unit);
    println!("check --fast: ok, {}; the end-to-end tests did not run", in_seconds(begin.elapsed()));
    Ok(())
}

/// The end-to-end tests alone; `filter` goes to `cargo test`.
pub fn end_to_end(filter: &[&str]) -> Result<(), String> {
    let tests = build_and_test_end_to_end(filter)?;
    summary("end-to-end tests", &tests);
    Ok(())
}

/// Builds the binary and the differential runner, and runs it with `args`; its output is shown as it comes. A binary
/// named by `HELENUS_BIN` is taken as it is.
pub fn conformance(args: &[&str]) -> Result<(), String> {
    let binary = std::env::var_os("HELENUS_BIN").map(PathBuf::from);
    if binary.is_none() {
        step("build", &mut cargo(&["build", "--package", "helenus-cli", "--locked"]))?;
    }
    let mut runner = cargo(&["run", "--quiet", "--package", "conformance", "--locked", "--"]);
    let binary = binary.unwrap_or_else(|| target().join("debug/helenus"));
    let status = runner.args(args).env("HELENUS_BIN", binary).status();
    let status = status.map_err(|error| format!("conformance: cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("conformance: {status}")) }
}

/// Bytes that a check from nothing writes to the target directory, in KiB as `df` counts.
const WANTED_KIB: u64 = 14 << 20;

/// A linker that finds the disk full ends by a signal that names nothing. So the disk is looked at first, unless there is
/// a target directory from an earlier check.
fn room_on_disk() -> Result<(), String> {
    if target().join("debug/deps").is_dir() {
        return Ok(());
    }
    let output = Command::new("df").args(["-Pk"]).arg(root()).output();
    let Some(free) = output.ok().and_then(|output| free_kib(&String::from_utf8_lossy(&output.stdout))) else {
        return Ok(());
    };
    if free >= WANTED_KIB {
        return Ok(());
    }
    let (free, wanted, target) = (free >> 20, WANTED_KIB >> 20, target());
    Err(format!(
        "the disk of {} has {free} GiB left, and the check writes up to {wanted} GiB: free some, or set CARGO_TARGET_DIR to \
         another disk",
        target.display()
    ))
}

/// The free space in what `df -Pk` prints of one folder.
fn free_kib(printed: &str) -> Option<u64> {
    printed.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

fn without_end_to_end() -> Result<Tests, String> {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::run()?;
    step(
        "clippy",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    )?;
    let tests = step(
        "unit tests",
        // One run shows everything that fails.
        &mut cargo(&["test", "--workspace", "--exclude", "end-to-end", "--locked", "--no-fail-fast"]),
    )?;
    step(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings -D missing-docs -D rustdoc::broken-intra-doc-links"),
    )?;
    Ok(tests)
}

fn build_and_test_end_to_end(filter: &[&str]) -> Result<Tests, String> {
    step("release build", &mut cargo(&["build", "--release", "--package", "helenus-cli", "--locked"]))?;
    setup::run()?;
    stop_oracle()?;
    let tests = step(
        "end-to-end tests",
        cargo(&["test", "--package", "end-to-end", "--locked", "--no-fail-fast"])
            .args(filter)
            .env("HELENUS_BIN", target().join("release/helenus"))
            .env("HELENUS_CLIENTS", setup::clients())
            .env("HELENUS_ORACLE", oracle()),
    );
    stop_oracle()?;
    tests
}

/// Where the tests keep the Cassandra that they share. They leave it running for each other.
fn oracle() -> PathBuf {
    target().join("oracle")
}

/// Stops the shared Cassandras, the second of which has logins, if they run, and removes what they stored: each check
/// begins without old tables.
fn stop_oracle() -> Result<(), String> {
    for folder in [oracle(), oracle().with_extension("logins")] {
        if folder.join("pid").exists() {
            step(
                "stop Cassandra",
                Command::new(root().join("tests/tools/cassandra.sh")).arg("stop").arg(&folder),
            )?;
        }
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("{}: {error}", folder.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The runners' own lines once more, then what they add up to.
fn summary(what: &str, tests: &Tests) {
    for line in &tests.lines {
        println!("{line}");
    }
    let Tests { passed, failed, ignored, lines } = tests;
    println!("{what}: {passed} passed, {failed} failed, {ignored} ignored, in {} programs", lines.len());
}

/// `cargo ARGS`, by the cargo that runs this program.
fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args);
    command
}
