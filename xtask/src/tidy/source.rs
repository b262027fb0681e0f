//! The text files under version control, as the rules see them.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One text file.
pub struct Source {
    /// From the root of the workspace, with `/`.
    pub path: String,
    pub text: String,
    /// Whether the whole file is a test or a benchmark: by its name, its folder, or a `#[cfg(test)] mod` above it.
    pub is_test: bool,
}

impl Source {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Lines that are neither comments nor unit tests, with their numbers from 1. Text after `//` is cut off: good
    /// enough for rules that look for names, since those do not stand in strings.
    ///
    /// A unit test is what follows `#[cfg(test)] mod name {` at the end of a file; a file of tests has none of these
    /// lines.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let text = if self.is_test { "" } else { self.text.as_str() };
        let after = text.lines().skip(1).map(Some).chain([None]);
        text.lines()
            .zip(after)
            .enumerate()
            .take_while(|(_, (line, next))| {
                *line != "#[cfg(test)]" || next.is_some_and(|next| next.ends_with(';'))
            })
            .map(|(index, (line, _))| (index + 1, line.split("//").next().unwrap_or_default()))
            .filter(|(_, line)| !line.trim().is_empty())
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
            let is_test = named_as_test(&path);
            sources.push(Source { path, text, is_test });
        }
    }
    let modules: Vec<String> =
        sources.iter().filter(|source| source.is_rust()).flat_map(test_modules).collect();
    for source in &mut sources {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        source.is_test |=
            modules.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn named_as_test(path: &str) -> bool {
    let in_folder = |folder: &str| path.starts_with(&folder[1..]) || path.contains(folder);
    path.ends_with("tests.rs")
        || ["/tests/", "/benches/", "/bench/", "/fuzz/", "/proof/", "/examples/"].into_iter().any(in_folder)
}

/// The paths, without `.rs`, of the modules that a file declares for tests only.
fn test_modules(source: &Source) -> Vec<String> {
    let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let folder = match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
    };
    let pairs = source.text.lines().zip(source.text.lines().skip(1));
    let declared = pairs.filter(|(line, _)| line.trim() == "#[cfg(test)]").filter_map(|(_, next)| {
        let next = next.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        next.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.map(|module| format!("{folder}/{module}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into(), is_test: false }
    }

    #[test]
    fn a_module_declared_for_tests_is_found_beside_its_parent() {
        let text = "#[cfg(test)]\nmod oracle;\nmod real;\n";
        assert_eq!(test_modules(&source("crates/a/src/b/mod.rs", text)), ["crates/a/src/b/oracle"]);
        assert_eq!(test_modules(&source("crates/a/src/b.rs", text)), ["crates/a/src/b/oracle"]);
    }

    #[test]
    fn code_goes_on_after_a_declared_test_module_and_ends_at_a_written_one() {
        let text =
            "#[cfg(test)]\nmod oracle;\nfn real() {} // said\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        let source = source("a.rs", text);
        let code: Vec<_> = source.code().map(|(number, line)| (number, line.trim())).collect();
        assert_eq!(code, [(1, "#[cfg(test)]"), (2, "mod oracle;"), (3, "fn real() {}")]);
    }
}
