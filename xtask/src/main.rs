//! The project's own commands: `cargo xtask check` is what a contributor runs and what CI runs.
//!
//! Plain Rust without dependencies, so that the first build of it takes a second.

mod analysis;
mod applications;
mod check;
mod deep;
mod dist;
mod image;
mod package;
mod release;
mod run;
mod setup;
mod static_binary;
mod tidy;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask check        everything: format, tidy, clippy, tests, documentation, end-to-end tests
cargo xtask check --fast the same without the end-to-end tests (no JDK, Python, Go or Node needed)
cargo xtask tidy         only the rules of the house: see xtask/src/tidy/mod.rs
cargo xtask setup        installs the drivers and Cassandra's tools that the end-to-end tests use
cargo xtask e2e [ARGS]   release build, setup and end-to-end tests; ARGS go to `cargo test`
cargo xtask dist         target/dist/helenus, the binary to give away: built by what it was seen to do, some 10 minutes
cargo xtask image [--arm64] [--test]   target/image/layout, the container image that stands in for cassandra:5; tests need podman
cargo xtask package [--arm64]   target/packages: tarball, deb, wheel and npm packages, each installed and asked one query
cargo xtask release [--snapshot] [--arm64] [--twice]   packages with SBOM and licences, after cargo-deny; --twice compares two builds
cargo xtask analysis     a table of every type as Parquet and Arrow, read by pyarrow and DuckDB
cargo xtask applications [NAME..]   suites of drivers and applications, each against a fresh server; --list names them
cargo xtask conformance [ARGS]   scripts or generated statements beside a Cassandra: see tests/conformance/README.md
cargo xtask sanitize address|thread [ARGS]   the engine's tests and those below with a sanitizer; needs a nightly toolchain
cargo xtask miri [ARGS]   the tests of every `unsafe` part, interpreted; needs nightly with miri and rust-src
cargo xtask watched [ARGS]   the tests of memory, hostile clients and drivers with a server that finds memory taken without asking
cargo xtask loom [ARGS]   every interleaving of what the memtable publishes without a lock, and of threads that wait for memory
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["check"] => check::everything(),
        ["check", "--fast"] => check::fast(),
        ["tidy"] => tidy::run(),
        ["setup"] => setup::run(),
        ["e2e", rest @ ..] => check::end_to_end(rest),
        ["dist"] => dist::run(),
        ["image", rest @ ..] => image::run(rest),
        ["package", rest @ ..] => package::run(rest),
        ["release", rest @ ..] => release::run(rest),
        ["analysis"] => analysis::run(),
        ["applications", rest @ ..] => applications::run(rest),
        ["conformance", rest @ ..] => check::conformance(rest),
        ["sanitize", kind, rest @ ..] => deep::sanitize(kind, rest),
        ["miri", rest @ ..] => deep::miri(rest),
        ["watched", rest @ ..] => deep::watched(rest),
        ["loom", rest @ ..] => deep::loom(rest),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\n{message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` in the workspace.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}
