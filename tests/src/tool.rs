//! Runs the binary as a tool: `helenus sstable`, `helenus import`, `helenus export`.

use std::ffi::OsStr;
use std::process::{Command, Output};

use conformance::server::binary;

/// Runs `helenus ARGS` and returns its output.
///
/// # Panics
/// It fails.
pub fn tool<S: AsRef<OsStr>>(args: &[S]) -> String {
    let output = run(args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}{}", words(args), String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs `helenus ARGS`, which must fail, and returns its error message.
///
/// # Panics
/// It succeeds.
pub fn refused<S: AsRef<OsStr>>(args: &[S]) -> String {
    let output = run(args);
    assert!(
        !output.status.success(),
        "{} was done: {}",
        words(args),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run<S: AsRef<OsStr>>(args: &[S]) -> Output {
    Command::new(binary()).args(args).output().expect("run helenus")
}

fn words<S: AsRef<OsStr>>(args: &[S]) -> String {
    let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
    format!("helenus {}", words.join(" "))
}
