//! Tests under tools that look where tests alone do not: Miri, loom, the sanitizers. By command, for they take minutes to build and
//! run; `docs/reliability.md` has the figures. Each builds into a folder of its own under the target directory, since its flags
//! would throw the others' objects away.

use std::fs;
use std::io::ErrorKind;
use std::process::Command;

use crate::{setup, target};

/// What AddressSanitizer runs over: everything under the language, its integration tests included.
const FLOORS: [&str; 5] =
    ["helenus-model", "helenus-host", "helenus-wire", "helenus-sstable", "helenus-engine"];

/// Those with threads: what ThreadSanitizer runs over. It has found nothing that would want a list of exceptions; the fences of
/// `parking_lot_core`, which it does not understand, are loads in a build for it.
const THREADED: [&str; 2] = ["helenus-host", "helenus-engine"];

/// Every `unsafe` there is, and the tests that go through it: package, filter.
const UNSAFE: [(&str, &str); 5] = [
    ("helenus-sstable", "buffer::frames"),
    ("helenus-sstable", "buffer::file_blocks"),
    ("helenus-host", "huge_pages"),
    ("helenus-host", "real::time"),
    ("helenus-engine", "memtable"),
];

/// `-Zbuild-std` wants it named.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The engine's tests and those of the floors under it, with a sanitizer built in. `args` go to `cargo test`.
pub fn sanitize(kind: &str, args: &[&str]) -> Result<(), String> {
    let floors = match kind {
        "address" => &FLOORS[..],
        "thread" => &THREADED,
        _ => return Err(format!("sanitize {kind}: address or thread")),
    };
    let mut command = nightly("test", &format!("sanitize-{kind}"));
    // Without its own standard library ThreadSanitizer sees locks of the one that came, and takes them for none.
    command.args(["-Zbuild-std", "--target", TRIPLE, "--locked"]);
    for floor in floors {
        command.args(["--package", floor]);
    }
    command.args(["--lib", "--tests"]).args(args);
    command.env("RUSTFLAGS", format!("-Zsanitizer={kind} -Cforce-frame-pointers=yes"));
    command.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1");
    command.env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1");
    run(&mut command)
}

/// The tests that go through `unsafe` code, interpreted. `args` go to the tests.
pub fn miri(args: &[&str]) -> Result<(), String> {
    for (package, filter) in UNSAFE {
        // It builds into `miri` by itself.
        let mut command = nightly("miri", "");
        command.args(["test", "--locked", "--package", package, "--lib", filter, "--"]).args(args);
        // The machine's clock and size are asked for. `MIRIFLAGS` of the caller come last: -Zmiri-many-seeds=0..16, say.
        let more = std::env::var("MIRIFLAGS").unwrap_or_default();
        command.env("MIRIFLAGS", format!("-Zmiri-disable-isolation {more}"));
        run(&mut command)?;
    }
    Ok(())
}

/// The tests by loom: package, filter.
const INTERLEAVED: [(&str, &str); 2] =
    [("helenus-host", "account::interleavings"), ("helenus-engine", "published")];

/// Every interleaving of what the memtable publishes without a lock, and of threads that wait for memory.
pub fn loom(args: &[&str]) -> Result<(), String> {
    for (package, filter) in INTERLEAVED {
        let mut command = Command::new("cargo");
        command.args(["test", "--release", "--locked", "--package", package, "--lib", filter]);
        command.arg("--target-dir").arg(target().join("loom")).args(args);
        command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "2");
        run(&mut command)?;
    }
    Ok(())
}

/// The end-to-end tests that `watched` runs: of memory, of hostile clients, of drivers.
const WATCHED: [&str; 9] = [
    "memory",
    "hostile_statements",
    "hostile_names",
    "bad_values",
    "bad_frames",
    "large_rows",
    "drivers",
    "rpc",
    "changes",
];

/// Tests with a server that finds memory which a request takes before it has asked for it
/// (`crates/host/src/account/watch.rs`). Fails if it has found any. Then hostile statements once more, beside which another client may
/// wait three times as long as alone. `args` go to `cargo test`, in place of all that.
pub fn watched(args: &[&str]) -> Result<(), String> {
    let folder = target().join("watched");
    let mut build = Command::new("cargo");
    build.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "helenus-cli",
        "--features",
        "watch",
        "--target-dir",
    ]);
    // What it finds is told by functions and lines.
    build.env("CARGO_PROFILE_RELEASE_STRIP", "none").env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    run(build.arg(&folder))?;
    setup::run()?;
    let found = folder.join("found.txt");
    if let Err(error) = fs::remove_file(&found)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(format!("{}: {error}", found.display()));
    }
    let test = |args: &[&str]| {
        let mut test = Command::new("cargo");
        test.args(["test", "--locked", "--package", "end-to-end", "--no-fail-fast"]).args(args);
        test.env("HELENUS_BIN", folder.join("release/helenus")).env("HELENUS_CLIENTS", setup::clients());
        test.env("HELENUS_WATCH_FILE", &found);
        test
    };
    let all = WATCHED.iter().flat_map(|name| ["--test", name]).collect::<Vec<_>>();
    let mut tested = run(&mut test(if args.is_empty() { &all } else { args }));
    if args.is_empty() && tested.is_ok() {
        // One by one, because it also limits how long another client waits.
        let mut patient = test(&["--test", "hostile_statements", "--", "--test-threads=1"]);
        tested = run(patient.env("HOSTILE_P99", "1"));
    }
    match fs::read_to_string(&found) {
        Ok(text) => Err(format!("memory was taken without asking; all of {}:\n{text}", found.display())),
        Err(_) => tested,
    }
}

/// `cargo +nightly VERB`, into a folder of its own. By rustup's cargo: the one that runs this program knows one toolchain alone.
fn nightly(verb: &str, folder: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", verb]).env("CARGO_TARGET_DIR", target().join(folder));
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}").replace('"', "");
    println!("{shown}");
    let status = command.current_dir(crate::root()).status();
    let status = status.map_err(|error| {
        format!("{error}: {shown}\nthis needs rustup, and once: rustup toolchain install nightly --component miri,rust-src")
    })?;
    if status.success() { Ok(()) } else { Err(format!("{status}: {shown}")) }
}
