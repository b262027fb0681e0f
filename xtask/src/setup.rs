//! `cargo xtask setup`: the drivers and tools that the end-to-end tests use, each at a pinned version.
//!
//! Everything lands in `target/clients` (one folder a client) and in the package managers' own caches. A client whose
//! stamp equals its pinned files is left alone, so that the second call takes no time and no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::step;
use crate::{root, target};

/// The folder of the installed clients.
pub fn clients() -> PathBuf {
    target().join("clients")
}

/// Installs what is missing.
pub fn run() -> Result<(), String> {
    python()?;
    node()?;
    go()?;
    rust_with_tls()?;
    java()?;
    cassandra()
}

/// A virtual environment with pyarrow and DuckDB, which `cargo xtask analysis` alone needs.
pub fn analysis() -> Result<(), String> {
    environment("analysis", &root().join("tests/tools/analysis-requirements.txt"))
}

/// A virtual environment with the Python driver and cqlsh.
fn python() -> Result<(), String> {
    environment("python", &drivers().join("python/requirements.txt"))
}

/// A virtual environment with the packages of a file.
fn environment(folder: &str, requirements: &Path) -> Result<(), String> {
    let home = clients().join(folder);
    once(&home, &[requirements], |home| {
        // cqlsh is tested by its authors up to 3.11; a newer Python is taken where there is no 3.11.
        let python = ["python3.11", "python3"].into_iter().find(|name| runs(name, "--version")).ok_or(
            "Python 3 is missing: install python3.11 (Debian: apt-get install python3.11-venv), then run `cargo xtask setup`",
        )?;
        step("python: environment", Command::new(python).args(["-m", "venv", "--clear"]).arg(home))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        step("python: packages", Command::new(home.join("bin/python")).args(pip).arg(requirements))?;
        Ok(())
    })
}

/// `node_modules` with the Node.js driver, from its lock file.
fn node() -> Result<(), String> {
    let sources = ["package.json", "package-lock.json"].map(|name| drivers().join("node").join(name));
    let home = clients().join("node");
    once(&home, &[&sources[0], &sources[1]], |home| {
        for source in &sources {
            let name = source.file_name().ok_or("a source without a name")?;
            fs::copy(source, home.join(name)).map_err(|error| format!("{}: {error}", source.display()))?;
        }
        let args = ["ci", "--silent", "--no-audit", "--no-fund", "--prefix"];
        step("node: packages", Command::new("npm").args(args).arg(home))?;
        Ok(())
    })
}

/// The Go program, built: gocql is compiled into it.
fn go() -> Result<(), String> {
    let folder = drivers().join("go");
    let home = clients().join("go");
    let sources = ["go.mod", "go.sum", "main.go", "cut.go"].map(|name| folder.join(name));
    once(&home, &sources.each_ref().map(PathBuf::as_path), |home| {
        let build = ["build", "-o"];
        step(
            "go: program",
            Command::new("go").arg("-C").arg(&folder).args(build).arg(home.join("driver")).arg("."),
        )?;
        Ok(())
    })
}

/// The Rust program with TLS, built. It shares its cases with the program without, which is built with the tests.
fn rust_with_tls() -> Result<(), String> {
    let folder = drivers().join("rust-tls");
    let own = ["Cargo.toml", "Cargo.lock", "main.rs"].map(|name| folder.join(name));
    let shared = ["cases.rs", "run.rs", "types.rs"].map(|name| drivers().join("rust").join(name));
    let sources: Vec<&Path> = own.iter().chain(&shared).map(PathBuf::as_path).collect();
    once(&clients().join("rust-tls"), &sources, |home| {
        let built = home.join("target");
        let build = ["build", "--quiet", "--locked", "--manifest-path"];
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(build).arg(folder.join("Cargo.toml")).arg("--target-dir").arg(&built);
        step("rust: program with TLS (needs libssl-dev and pkg-config)", &mut cargo)?;
        let placed = fs::copy(built.join("debug/driver"), home.join("driver"));
        placed.map_err(|error| format!("{}: {error}", home.display()))?;
        fs::remove_dir_all(&built).map_err(|error| format!("{}: {error}", built.display()))
    })
}

/// The Java programs, packed, with the jars of their clients beside them.
fn java() -> Result<(), String> {
    packed("java", &["Driver.java", "Cut.java"])?;
    packed("thrift-java", &["ThriftDriver.java"])?;
    packed("astyanax", &["AstyanaxDriver.java"])?;
    jars("cassandra-cli")
}

/// The jars of a Java program that is a release's own.
fn jars(folder: &str) -> Result<(), String> {
    let home = clients().join(folder);
    let pom = drivers().join(folder).join("pom.xml");
    once(&home, &[&pom], |home| {
        let folder = format!("-DoutputDirectory={}", home.join("dependency").display());
        let args =
            ["-q", "-B", "-Dstyle.color=never", "dependency:copy-dependencies", "-DincludeScope=runtime"];
        step("java: jars", Command::new("mvn").arg("-f").arg(&pom).args(args).arg(folder))?;
        Ok(())
    })
}

fn packed(folder: &str, programs: &[&str]) -> Result<(), String> {
    let home = clients().join(folder);
    let folder = drivers().join(folder);
    let mut pinned = vec![folder.join("pom.xml")];
    pinned.extend(programs.iter().map(|program| folder.join("src/main/java").join(program)));
    let pinned: Vec<&Path> = pinned.iter().map(PathBuf::as_path).collect();
    once(&home, &pinned, |home| {
        let build = format!("-Dhelenus.build={}", home.display());
        let args = [
            "-q",
            "-B",
            "-Dstyle.color=never",
            "package",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
        ];
        step(
            "java: program",
            Command::new("mvn").arg("-f").arg(folder.join("pom.xml")).args(args).arg(build),
        )?;
        Ok(())
    })
}

/// The jars of Cassandra: the script that starts it keeps them, and knows whether they are complete.
fn cassandra() -> Result<(), String> {
    step("cassandra: jars", Command::new(root().join("tests/tools/cassandra.sh")).arg("jars"))?;
    Ok(())
}

/// Runs `install` on the folder `home` unless its stamp holds the present text of `pinned`.
fn once(
    home: &Path,
    pinned: &[&Path],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let mut text = String::new();
    for file in pinned {
        text += &fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let stamp = home.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
    install(home)?;
    fs::write(&stamp, text).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn runs(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

fn drivers() -> PathBuf {
    root().join("tests/drivers")
}
