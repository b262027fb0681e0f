//! Builds the binary that the image and the packages contain, for any processor on any machine: stripped, without paths of
//! this machine, and without Debian's cross compilers. cargo-zigbuild and PyPI's `ziglang` compile and link the parts in C.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::image::git;
use crate::run::step;
use crate::{root, target};

/// The tools from PyPI, with the versions that made the last release.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// A processor that binaries are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

/// The features of the binary. `shared-crates` has the crates in common with the tests; `analysis` is export as Parquet and Arrow.
pub const FEATURES: &str = "shared-crates,analysis";

impl Processor {
    /// The name in images and in Debian.
    pub fn name(self) -> &'static str {
        match self {
            Processor::Amd64 => "amd64",
            Processor::Arm64 => "arm64",
        }
    }

    /// Rust's target: musl, so that the binary needs no library of the machine it runs on.
    pub fn triple(self) -> &'static str {
        match self {
            Processor::Amd64 => "x86_64-unknown-linux-musl",
            Processor::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Builds the binary and returns its path.
    ///
    /// # Errors
    /// The tools cannot be installed, or the build fails.
    pub fn binary(self) -> Result<PathBuf, String> {
        let triple = self.triple();
        let tools = tools()?;
        step("target", Command::new("rustup").args(["target", "add", triple]))?;
        let mut command = Command::new(tools.join("cargo-zigbuild"));
        command.args(["zigbuild", "--release", "--locked", "--package", "helenus-cli", "--target", triple]);
        let folder = target().join("static");
        command.arg("--target-dir").arg(&folder);
        command.args(["--features", FEATURES]);
        // Other words for the folders that would stand in messages of panics: two machines build the same bytes.
        let home = std::env::var("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|_| std::env::var("HOME").map(|home| PathBuf::from(home).join(".cargo")));
        let home = home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
        // Of two that fit, the compilers take the one named last: the target directory may be inside the root.
        let zig = target().join("zig");
        let folders = [(home, "/cargo"), (root(), "/helenus"), (zig, "/zig"), (folder.clone(), "/target")];
        let map = |flag: &str| {
            folders.iter().map(|(from, to)| format!("{flag}={}={to}", from.display())).collect::<Vec<_>>()
        };
        let lower = triple.replace('-', "_");
        command
            .env("PATH", with_first(&tools)?)
            .env("ZIG_GLOBAL_CACHE_DIR", target().join("zig/cache"))
            .env("RUSTC_WRAPPER", wrapper(&folder, &map("--remap-path-prefix"))?)
            .env(format!("CFLAGS_{lower}"), map("-ffile-prefix-map").join(" "))
            .env("HELENUS_COMMIT", git(&["rev-parse", "--short=12", "HEAD"])?)
            // mimalloc tells the day and the time at which it was compiled.
            .env("SOURCE_DATE_EPOCH", "0")
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        step(&format!("static binary for {}", self.name()), &mut command)?;
        Ok(folder.join(triple).join("release/helenus"))
    }
}

/// Writes a script that calls the compiler with more options, for `RUSTC_WRAPPER`. Cargo hashes what is in `RUSTFLAGS` into
/// the names of files and of `OUT_DIR`, so options that name folders of this machine would themselves reach the binary:
/// in the paths of generated sources, and in the parts in C. What a wrapper adds is not hashed.
fn wrapper(folder: &Path, options: &[String]) -> Result<PathBuf, String> {
    let path = folder.join("rustc-with-other-paths");
    let quoted = options.iter().map(|option| format!("'{}'", option.replace('\'', "'\\''")));
    let script = format!("#!/bin/sh\nexec \"$@\" {}\n", quoted.collect::<Vec<_>>().join(" "));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, script))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Installs the tools from PyPI into `target/zig`, once. Returns the folder of their programs.
fn tools() -> Result<PathBuf, String> {
    let folder = target().join("zig");
    let (stamp, wanted) = (folder.join("installed"), TOOLS.join(" "));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder.join("bin"));
    }
    step("a Python environment", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check"]).args(TOOLS);
    step("cargo-zigbuild and zig", &mut install)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(folder.join("bin"))
}

/// `PATH` with a folder before all others.
fn with_first(folder: &Path) -> Result<std::ffi::OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}
