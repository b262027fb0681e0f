//! `cargo xtask package`: what users install, in `target/packages`: tarball, Debian package, Python wheel and npm packages of one
//! static binary, with a manifest of sizes and digests.
//!
//! `packaging/package.py` packs, and `tests/packages/run.py` installs each package of this machine's processor into an empty root
//! and runs a query.

use std::process::Command;

use crate::image::{git, shown};
use crate::run::step;
use crate::static_binary::Processor;
use crate::{root, target};

/// Makes and tries the packages; `--arm64` adds those of the second processor, which are not tried.
pub fn run(args: &[&str]) -> Result<(), String> {
    if let Some(unknown) = args.iter().find(|arg| **arg != "--arm64") {
        return Err(format!("package: {unknown} is no option; it takes --arm64"));
    }
    let out = target().join("packages");
    let mut processors = vec![Processor::Amd64];
    if args.contains(&"--arm64") {
        processors.push(Processor::Arm64);
    }
    let mut package = Command::new("python3");
    package.arg(root().join("packaging/package.py")).arg("--out").arg(&out);
    package.args(["--version", env!("CARGO_PKG_VERSION")]);
    package.args(["--epoch", &git(&["show", "--no-patch", "--format=%ct", "HEAD"])?]);
    for processor in processors {
        package.arg(format!("{}={}", processor.name(), processor.binary()?.display()));
    }
    step("packages", &mut package)?;
    let mut test = Command::new("python3");
    test.arg(root().join("tests/packages/run.py")).arg(&out).arg(target().join("package-tests"));
    shown("package tests", &mut test)
}
