//! Results of one run or several, in files: JSON that is read again, and the page.

use super::figures::{FORMAT, Figures};
use super::page;
use crate::commands::stress::options::LoadOptions;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;

/// What a file holds.
#[derive(Clone, Debug)]
pub(in super::super) struct Results {
    /// Its runs, in order.
    pub runs: Vec<Figures>,
}

impl Results {
    /// Reads what `--json` has written: a run, runs under `runs`, or parts with a run each.
    ///
    /// # Errors
    /// When the file cannot be read or is something else.
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
        let runs: Vec<Figures> = values
            .into_iter()
            .map(|run| serde_json::from_value(run.clone()).with_context(other))
            .collect::<Result<_>>()?;
        if runs.is_empty() {
            bail!("{}: it holds no run", other());
        }
        let strange = runs.iter().find(|run| !run.format.is_empty() && run.format != FORMAT);
        if let Some(Figures { format, .. }) = strange {
            bail!("{} has format `{format}`, this program knows {FORMAT}", path.display());
        }
        Ok(Results { runs })
    }
}

/// Writes what the options ask for: `json` to standard output or its file, the page of the runs.
///
/// # Errors
/// When a file cannot be written.
pub(in super::super) fn write_files(load: &LoadOptions, json: &Value, runs: &[Figures]) -> Result<()> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    match &load.json {
        Some(_) if load.prints_json() => println!("{json}"),
        Some(path) => write(path, format!("{json:#}\n"))?,
        None => {}
    }
    if let Some(path) = &load.report {
        write(path, page::html(runs))?;
        eprintln!("report in {}", path.display());
    }
    Ok(())
}

/// What a run that is over says to whoever called it.
///
/// # Errors
/// When an answer was not right, or there was none.
pub(in super::super) fn ended(figures: &Figures) -> Result<()> {
    let errors = figures.error_count();
    ensure!(errors == 0, "{errors} answers were not right");
    ensure!(figures.operations > 0, "nothing was answered while measuring: run longer");
    Ok(())
}
