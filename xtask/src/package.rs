//! `cargo xtask package`: what users install, in `target/packages`: tarball, Debian package, Python wheel and npm packages of one
//! static binary, with a manifest of sizes and digests.
//!
//! `packaging/package.py` packs, and `tests/packages/run.py` installs each package of this machine's processor into an empty root
//! and runs a query.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::image::{git, shown};
use crate::run::step;
use crate::static_binary::Processor;
use crate::{root, target};

/// Makes and tries the packages; `--arm64` adds those of the second processor, of which the binary is run by qemu.
pub fn run(args: &[&str]) -> Result<(), String> {
    if let Some(unknown) = args.iter().find(|arg| **arg != "--arm64") {
        return Err(format!("package: {unknown} is no option; it takes --arm64"));
    }
    let out = target().join("packages");
    make(&out, args.contains(&"--arm64"), &Also::default())?;
    try_all(&out)
}

/// Files besides the binaries and their documents.
#[derive(Default)]
pub struct Also {
    /// In each package.
    pub all: Vec<PathBuf>,
    /// Container images, which lie beside the packages.
    pub images: Vec<PathBuf>,
}

/// Makes the packages for x86-64 in a folder, with `arm64` those for that too.
///
/// # Errors
/// A build fails.
pub fn make(out: &Path, arm64: bool, also: &Also) -> Result<(), String> {
    let mut processors = vec![Processor::Amd64];
    if arm64 {
        processors.push(Processor::Arm64);
    }
    let mut package = Command::new("python3");
    package.arg(root().join("packaging/package.py")).arg("--out").arg(out);
    package.args(["--version", env!("CARGO_PKG_VERSION")]);
    package.args(["--epoch", &git(&["show", "--no-patch", "--format=%ct", "HEAD"])?]);
    for (option, files) in [("--also", &also.all), ("--image", &also.images)] {
        files.iter().for_each(|file| _ = package.arg(option).arg(file));
    }
    for processor in processors {
        package.arg(format!("{}={}", processor.name(), processor.binary()?.display()));
    }
    step("packages", &mut package).map(drop)
}

/// Installs and asks the packages of a folder that this machine's processor, or qemu, can run.
///
/// # Errors
/// A test fails.
pub fn try_all(out: &Path) -> Result<(), String> {
    let mut test = Command::new("python3");
    test.arg(root().join("tests/packages/run.py")).arg(out).arg(target().join("package-tests"));
    shown("package tests", &mut test)
}
