//! What the documents point at exists: a map that names a street which was renamed is worse than none.

use std::path::Path;

use super::Source;

/// A path is checked when it begins with one of these.
const STREETS: &[&str] =
    &["crates/", "xtask/", "tests/", "docs/", "fuzz/", "proof/", "bench/", "python/", ".ci/", ".cargo/"];

pub fn check(root: &Path, sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut named_count = 0;
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        for (index, line) in source.text.lines().enumerate() {
            for path in line.split('`').skip(1).step_by(2).filter(|word| is_path(word)) {
                named_count += usize::from(source.path == "ARCHITECTURE.md");
                if !root.join(path).exists() {
                    breaches.push(format!("{}:{}: `{path}` does not exist", source.path, index + 1));
                }
            }
        }
    }
    let has_map = sources.iter().any(|source| source.path == "ARCHITECTURE.md");
    if has_map && named_count == 0 {
        breaches
            .push("ARCHITECTURE.md: names no path in backquotes, so nothing of it can be checked".to_owned());
    }
    breaches
}

/// Whether the text between two backquotes is one path of ours, and not a pattern or a command.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    STREETS.iter().any(|street| word.starts_with(street)) && word.chars().all(plain)
}
