//! The binary as it is given away: built twice, the second time by what the first was seen to do under load, which makes
//! requests an eighth cheaper, and without the tables that only a debugger wants.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::run::step;
use crate::{root, target};

/// What the first build is put through: each server stores what the ones before have left. Every kind of statement that
/// `docs/performance.md` has a figure of.
const LOADS: [&[&str]; 3] = [
    &[
        "insert --rows 200000",
        "insert --rows 200000 --duration 6",
        "insert --rows 200000 --in-flight 1 --duration 2",
        "read --rows 200000 --duration 3",
        "insert --indexed --keyspace indexed --rows 100000",
        "count --keyspace counters --rows 50000 --duration 3",
        "load --keyspace wide --rows 500000",
        "load --keyspace wide --rows 500000 --order desc",
        "slice --keyspace wide --rows 500000 --duration 2",
        "slice --keyspace wide --rows 500000 --duration 2 --reversed",
    ],
    // All of it is in SSTables now.
    &[
        "read --rows 200000 --duration 5",
        "read --rows 200000 --in-flight 1 --duration 2",
        "find --keyspace indexed --rows 100000 --duration 2",
        "slice --keyspace wide --rows 500000 --duration 3",
        "slice --keyspace wide --rows 500000 --duration 3 --reversed",
        "slice --keyspace wide --rows 500000 --duration 2 --order desc",
        "slice --keyspace wide --rows 500000 --duration 2 --limit 5000",
        "names --keyspace wide --rows 500000 --duration 3",
        "insert --rows 200000 --duration 6",
    ],
    &[
        "insert --rows 200000 --duration 3 --connections 32",
        "read --rows 200000 --duration 2 --connections 32",
    ],
];

/// The Cargo profile of both passes: the release profile with link-time optimisation.
const PROFILE: &str = "optimized";

/// Builds `dist/helenus` in the target directory.
pub fn run() -> Result<(), String> {
    let (triple, profdata) = tools()?;
    let folder = target().join("dist");
    let (raw, profile, data) = (folder.join("raw"), folder.join("helenus.profdata"), folder.join("data"));
    for old in [&raw, &data] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(|error| format!("cannot remove {}: {error}", old.display()))?;
        }
    }
    let build = |title: &str, flags: String| {
        let mut command = Command::new("cargo");
        command.args(["build", "--profile", PROFILE, "--locked", "--package", "helenus-cli"]);
        // With a target named, what runs while building is not built with these flags.
        command.args(["--target", &triple]).arg("--target-dir").arg(&folder);
        step(title, command.env("RUSTFLAGS", flags))?;
        Ok::<PathBuf, String>(folder.join(&triple).join(PROFILE).join("helenus"))
    };
    let observed = build("build that counts", format!("-Cprofile-generate={}", raw.display()))?;
    for loads in LOADS {
        let server = Server::start(&observed, &data)?;
        for load in loads {
            let mut stress = Command::new(&observed);
            stress.arg("stress").args(load.split(' ')).args(["--quiet", "--host", &server.address]);
            step(&format!("load: {load}"), &mut stress)?;
        }
        server.stop()?;
    }
    step("merge", Command::new(profdata).args(["merge", "-o"]).arg(&profile).arg(&raw))?;
    let built = build("build", format!("-Cprofile-use={} -Cstrip=debuginfo", profile.display()))?;
    let binary = folder.join("helenus");
    let bytes =
        fs::copy(&built, &binary).map_err(|error| format!("cannot write {}: {error}", binary.display()))?;
    for done in [&raw, &data] {
        // What is left is only in the way.
        let _ = fs::remove_dir_all(done);
    }
    println!("{}: {} MiB", binary.display(), bytes >> 20);
    Ok(())
}

/// The triple of this machine, and the tool that merges profiles, which rustup brings as a component.
fn tools() -> Result<(String, PathBuf), String> {
    let output = |args: &[&str]| {
        let output = Command::new("rustc").args(args).current_dir(root()).output();
        let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
        Ok::<String, String>(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = output(&["-vV"])?;
    let triple = version.lines().find_map(|line| line.strip_prefix("host: "));
    let triple = triple.ok_or("rustc -vV names no host")?.to_owned();
    let bin = Path::new(&output(&["--print", "sysroot"])?).join("lib/rustlib").join(&triple).join("bin");
    let profdata = bin.join("llvm-profdata");
    if !profdata.exists() {
        step("llvm-tools", Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    }
    Ok((triple, profdata))
}

/// A server that is being watched; killed when it is dropped.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(binary: &Path, data: &Path) -> Result<Server, String> {
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--sync", "periodic", "--log-level", "warn", "--data"])
            .arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let process =
            command.spawn().map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let mut server = Server { process, address: String::new() };
        let Some(output) = server.process.stdout.take() else { return Err("a server without output".into()) };
        let mut lines = BufReader::new(output).lines();
        for line in lines.by_ref() {
            let line = line.map_err(|error| format!("the server's output: {error}"))?;
            if let Some(rest) = line.strip_prefix("listening") {
                server.address = rest.split_whitespace().next().unwrap_or_default().to_owned();
                // Whoever writes to a pipe that nobody reads waits in the end.
                thread::spawn(move || lines.for_each(drop));
                return Ok(server);
            }
        }
        Err("the server ended before it listened".into())
    }

    /// Ends it as an operator would: only then it writes down what it has counted.
    fn stop(mut self) -> Result<(), String> {
        let pid = self.process.id().to_string();
        step("stop", Command::new("kill").args(["-TERM", &pid]))?;
        let status = self.process.wait().map_err(|error| format!("the server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server: {status}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
