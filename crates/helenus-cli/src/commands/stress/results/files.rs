//! The result files of one or several runs: JSON, which can be read again, and the HTML page.

use super::page;
use super::run_result::{FORMAT, RunResult};
use crate::commands::stress::options::LoadOptions;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;

/// The content of a file.
#[derive(Clone, Debug)]
pub(in super::super) struct Results {
    /// The runs, in order.
    pub runs: Vec<RunResult>,
}

impl Results {
    /// Reads a file that `--json` has written: a run, runs under `runs`, or parts with a run each.
    ///
    /// # Errors
    /// The file cannot be read or has other content.
    pub fn read(path: &Path) -> Result<Results> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let other = || format!("{} is not what `helenus stress --json` writes", path.display());
        let value: Value = serde_json::from_str(&text).with_context(other)?;
        let values: Vec<&Value> = match &value {
            Value::Object(map) if map.contains_key("ops_per_s") => vec![&value],
            Value::Object(map) => match map.get("runs") {
                Some(Value::Array(runs)) => runs.iter().collect(),
                _ => map.values().filter(|part| part.get("ops_per_s").is_some()).collect(),
            },
            _ => Vec::new(),
        };
        let runs: Vec<RunResult> = values
            .into_iter()
            .map(|run| serde_json::from_value(run.clone()).with_context(other))
            .collect::<Result<_>>()?;
        if runs.is_empty() {
            bail!("{}: it holds no run", other());
        }
        let strange = runs.iter().find(|run| !run.format.is_empty() && run.format != FORMAT);
        if let Some(RunResult { format, .. }) = strange {
            bail!("{} has format `{format}`, this program knows {FORMAT}", path.display());
        }
        Ok(Results { runs })
    }
}

/// Writes the requested files: `json` to standard output or its file, and the page of the runs.
///
/// # Errors
/// A file cannot be written.
pub(in super::super) fn write_files(load: &LoadOptions, json: &Value, runs: &[RunResult]) -> Result<()> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    match &load.json {
        Some(_) if load.prints_json() => say!("{json}")?,
        Some(path) => write(path, format!("{json:#}\n"))?,
        None => {}
    }
    if let Some(path) = &load.report {
        write(path, page::html(runs))?;
        note!("report in {}", path.display());
    }
    Ok(())
}

/// The exit status of a finished run.
///
/// # Errors
/// An answer was not right, or there was no answer.
pub(in super::super) fn ended(figures: &RunResult) -> Result<()> {
    let errors = figures.error_count();
    ensure!(errors == 0, "{errors} answers were not right");
    ensure!(figures.operations > 0, "nothing was answered while measuring: run longer");
    Ok(())
}
