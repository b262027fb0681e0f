//! Builds the static binary that the image and the packages contain: musl, stripped, without paths of this machine.

use std::path::PathBuf;
use std::process::Command;

use crate::image::git;
use crate::run::step;
use crate::{root, target};

/// A processor that binaries are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// x86-64.
    Amd64,
    /// 64-bit ARM, built by cargo-zigbuild.
    Arm64,
}

impl Processor {
    /// The name in images and in Debian.
    pub fn name(self) -> &'static str {
        match self {
            Processor::Amd64 => "amd64",
            Processor::Arm64 => "arm64",
        }
    }

    /// Rust's target.
    pub fn triple(self) -> &'static str {
        match self {
            Processor::Amd64 => "x86_64-unknown-linux-musl",
            Processor::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Builds the binary and returns its path. x86-64 needs Debian's musl-tools for the parts in C; ARM needs
    /// cargo-zigbuild and PyPI's ziglang.
    ///
    /// # Errors
    /// The build fails.
    pub fn binary(self) -> Result<PathBuf, String> {
        step("target", Command::new("rustup").args(["target", "add", self.triple()]))?;
        let verb = if self == Processor::Amd64 { "build" } else { "zigbuild" };
        let mut command = Command::new("cargo");
        command.args([verb, "--release", "--locked", "--package", "helenus-cli", "--target", self.triple()]);
        // Other words for the folders that would stand in messages of panics: two machines build the same bytes.
        let home = std::env::var("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|_| std::env::var("HOME").map(|home| PathBuf::from(home).join(".cargo")));
        let home = home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
        let folders = [(home, "/cargo"), (root(), "/helenus"), (target(), "/target")];
        let map = |flag: &str| {
            let words = folders.iter().map(|(from, to)| format!("{flag}={}={to}", from.display()));
            words.collect::<Vec<_>>().join(" ")
        };
        let upper = self.triple().to_ascii_uppercase().replace('-', "_");
        let lower = self.triple().replace('-', "_");
        command
            .env(format!("CARGO_TARGET_{upper}_RUSTFLAGS"), map("--remap-path-prefix"))
            .env(format!("CFLAGS_{lower}"), map("-ffile-prefix-map"))
            .env("HELENUS_COMMIT", git(&["rev-parse", "--short=12", "HEAD"])?)
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        if self == Processor::Amd64 {
            command.env(format!("CC_{lower}"), "musl-gcc");
        }
        step(&format!("static binary for {}", self.name()), &mut command)?;
        Ok(target().join(self.triple()).join("release/helenus"))
    }
}
