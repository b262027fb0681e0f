//! The text files under version control, as the rules see them.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One text file.
pub struct Source {
    /// From the root of the workspace, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Lines that are neither comments nor unit tests, with their numbers from 1. Text after `//` is cut off: good
    /// enough for rules that look for names, since those do not stand in strings.
    ///
    /// A unit test is what follows `#[cfg(test)]` at the end of a file; a file of tests has none of these lines.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = if self.is_test() { "" } else { self.text.as_str() };
        lines
            .lines()
            .enumerate()
            .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
            .filter(|(_, line)| !line.trim().is_empty())
    }

    /// Whether the whole file is a test or a benchmark.
    pub fn is_test(&self) -> bool {
        let in_folder = |folder: &str| self.path.starts_with(&folder[1..]) || self.path.contains(folder);
        self.name().ends_with("tests.rs")
            || ["/tests/", "/benches/", "/bench/", "/fuzz/", "/examples/"].into_iter().any(in_folder)
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Every file that git tracks or would track, if its text is UTF-8.
pub fn tracked(root: &Path) -> Result<Vec<Source>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("tidy: cannot run git: {error}"))?;
    if !output.status.success() {
        return Err(format!("tidy: git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut sources = Vec::new();
    for path in output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let path = String::from_utf8_lossy(path).into_owned();
        // A tracked file may be deleted in the work tree, and a fixture may be binary: neither has text to judge.
        if let Ok(text) = fs::read_to_string(root.join(&path)) {
            sources.push(Source { path, text });
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}
