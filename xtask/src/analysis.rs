//! `cargo xtask analysis`: what `helenus export --parquet` and `--arrow` write, read by pyarrow and DuckDB.
//!
//! By command and not by the check: the binary needs the feature `analysis`, whose libraries take minutes to build, and the
//! Python packages are of 100 MB.

use std::process::Command;

use crate::run::step;
use crate::{setup, target};

/// Builds the binary with the feature, installs the packages, and runs the test. A binary named by `HELENUS_BIN` is taken as
/// it is.
pub fn run() -> Result<(), String> {
    let binary = match std::env::var_os("HELENUS_BIN") {
        Some(binary) => binary.into(),
        None => {
            let build = ["build", "--package", "helenus-cli", "--features", "analysis", "--locked"];
            step("build", Command::new("cargo").args(build))?;
            target().join("debug/helenus")
        }
    };
    setup::analysis()?;
    let test = [
        "test",
        "--package",
        "end-to-end",
        "--locked",
        "--test",
        "analysis",
        "--",
        "--ignored",
        "--nocapture",
    ];
    let mut command = Command::new("cargo");
    command.args(test).env("HELENUS_BIN", binary).env("HELENUS_CLIENTS", setup::clients());
    let status = command.status().map_err(|error| format!("analysis: cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("analysis: {status}")) }
}
