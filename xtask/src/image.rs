//! `cargo xtask image`: the container image that stands in for `cassandra:5`, in `target/image`.
//!
//! No daemon and no registry: `packaging/image.py` writes an OCI layout from the static binary and busybox of Debian's
//! package. `--test` loads it into podman and runs modules of Testcontainers against it (`tests/containers/run.py`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::step;
use crate::static_binary::Processor;
use crate::{root, target};

/// Makes the image; `args` are `--arm64` for a second platform and `--test`.
pub fn run(args: &[&str]) -> Result<(), String> {
    if let Some(unknown) = args.iter().find(|arg| !["--arm64", "--test"].contains(arg)) {
        return Err(format!("image: {unknown} is no option; it takes --arm64 and --test"));
    }
    let out = make(args.contains(&"--arm64"))?;
    println!("{}", out.join("layout").display());
    if args.contains(&"--test") {
        let mut test = Command::new("python3");
        test.arg(root().join("tests/containers/run.py")).arg(&out);
        return shown("image tests", test.arg(target().join("image-tests")));
    }
    Ok(())
}

/// The files that a release gives away, in the folder of [`make`].
pub const FILES: [&str; 3] = ["image.tar", "image-scylla.tar", "image-layout.tar"];

/// Makes the image for x86-64, and with `arm64` for that too. Returns the folder.
///
/// # Errors
/// A build fails.
pub fn make(arm64: bool) -> Result<PathBuf, String> {
    let out = target().join("image");
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut processors = vec![Processor::Amd64];
    if arm64 {
        processors.push(Processor::Arm64);
    }
    let mut platforms = Vec::new();
    for processor in processors {
        let (binary, busybox) = (processor.binary()?, busybox(processor, &out)?);
        platforms.push(format!("{}={}:{}", processor.name(), binary.display(), busybox.display()));
    }
    let mut image = Command::new("python3");
    image.arg(root().join("packaging/image.py")).arg("--out").arg(&out);
    image.args(["--version", env!("CARGO_PKG_VERSION"), "--source", env!("CARGO_PKG_REPOSITORY")]);
    image.args(["--cassandra", &cassandra_release()?]);
    image.args(["--revision", &git(&["rev-parse", "HEAD"])?]);
    image.args(["--epoch", &git(&["show", "--no-patch", "--format=%ct", "HEAD"])?]);
    step("image", image.args(platforms))?;
    Ok(out)
}

/// Runs a command whose output is wanted as it comes.
pub fn shown(title: &str, command: &mut Command) -> Result<(), String> {
    let status = command.current_dir(root()).status().map_err(|error| format!("{title}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{title}: {status}")) }
}

/// The static busybox of Debian's package for a processor.
fn busybox(processor: Processor, out: &Path) -> Result<PathBuf, String> {
    let folder = out.join(format!("busybox-{}", processor.name()));
    let file = folder.join("bin/busybox");
    if !file.exists() {
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        // With package lists of its own: those of this machine may lack the processor.
        let script = "cd \"$1\" && mkdir -p lists/partial cache/archives/partial
            apt=\"apt-get -q -o APT::Architecture=$2 -o APT::Architectures=$2 -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache\"
            $apt update && $apt download busybox-static && dpkg-deb -x busybox-static_*.deb .
            rm -r lists cache";
        let mut command = Command::new("sh");
        step("busybox", command.args(["-ec", script, "sh"]).arg(&folder).arg(processor.name()))?;
    }
    Ok(file)
}

/// The release of Cassandra whose features the server has: the constant that clients read.
pub fn cassandra_release() -> Result<String, String> {
    let file = root().join("crates/cql/src/virtual_table/local.rs");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let release = text.split_once("RELEASE_VERSION: &str = \"").and_then(|(_, rest)| rest.split_once('"'));
    Ok(release.ok_or("no RELEASE_VERSION in local.rs")?.0.to_owned())
}

/// The output of git, on one line.
pub fn git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(args).current_dir(root()).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
