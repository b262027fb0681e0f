//! Tells the binary which commit it is built from, where git is at hand: `HELENUS_BUILT_FROM` for `helenus --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HELENUS_COMMIT");
    // Builds that are given away name it: see xtask/src/static_binary.rs.
    let built_from = match std::env::var("HELENUS_COMMIT") {
        Ok(commit) => format!("commit {commit}"),
        Err(_) => development().unwrap_or_else(|| "a development build".to_owned()),
    };
    println!("cargo::rustc-env=HELENUS_BUILT_FROM={built_from}");
}

/// The commit below which the sources were changed or not; `None` without git, and for sources inside another repository.
fn development() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    if Path::new(&top).canonicalize().ok()? != ours.canonicalize().ok()? {
        return None;
    }
    // A commit changes the log of HEAD; so do a checkout and a rebase.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(log);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    Some(format!("a development build on commit {commit}"))
}

/// What git prints in this folder, on one line.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
