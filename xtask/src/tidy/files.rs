//! Sizes, names and heads of files, and notes of work left.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Source;

/// Longer files stand in `xtask/tidy-allow.txt` with their length, which may only shrink.
const LINES_MAX: usize = 800;
const ALLOW: &str = "xtask/tidy-allow.txt";

/// Names that say nothing about what is inside.
const BANNED_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "manager"];

/// Notes of work left; each must say why it is left, in brackets: an issue or a reason.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const CODE: &[&str] = &[".rs", ".py", ".sh", ".go", ".java", ".js", ".toml"];

pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<String>, String> {
    let mut breaches = sizes(&allowed(root)?, sources);
    for source in sources {
        let path = &source.path;
        let stem = source.name().split('.').next().unwrap_or_default();
        if BANNED_NAMES.contains(&stem) || path.split('/').any(|folder| BANNED_NAMES.contains(&folder)) {
            breaches.push(format!("{path}: the name says nothing; name the file after the one idea in it"));
        }
        if CODE.iter().any(|end| path.ends_with(end)) {
            breaches.extend(notes(source));
        }
        if source.is_rust() {
            breaches.extend(head(source));
        }
        if source.name() == "mod.rs" {
            breaches.extend(logic_in_mod(source));
        }
    }
    Ok(breaches)
}

/// The list of files that are too long, with their agreed lengths: lines of `path length`.
fn allowed(root: &Path) -> Result<BTreeMap<String, usize>, String> {
    let text = fs::read_to_string(root.join(ALLOW)).map_err(|error| format!("{ALLOW}: {error}"))?;
    let mut allowed = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let entry = line.split_once(' ').and_then(|(path, length)| Some((path, length.trim().parse().ok()?)));
        let (path, length) = entry.ok_or_else(|| format!("{ALLOW}: `{line}` is not `path length`"))?;
        allowed.insert(path.to_owned(), length);
    }
    Ok(allowed)
}

/// The ratchet: no new long file, no long file longer, and the list follows when one shrinks.
fn sizes(allowed: &BTreeMap<String, usize>, sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut long = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let path = &source.path;
        let lines = source.text.lines().count();
        if lines > LINES_MAX {
            long.push(path.as_str());
            match allowed.get(path) {
                None => breaches
                    .push(format!("{path}: {lines} lines, over {LINES_MAX}; split it: a file is one idea")),
                Some(limit) if lines > *limit => {
                    breaches.push(format!(
                        "{path}: grew to {lines} lines; {ALLOW} allows {limit}, which may only shrink"
                    ));
                }
                Some(limit) if lines < *limit => {
                    breaches.push(format!(
                        "{path}: shrank to {lines} lines, well done; write that into {ALLOW} ({limit})"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    for path in allowed.keys().filter(|path| !long.contains(&path.as_str())) {
        breaches.push(format!("{ALLOW}: {path} is not over {LINES_MAX} lines any more; remove its line"));
    }
    breaches
}

fn notes(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for note in NOTES {
            let is_word = |at: usize, rest: &str| {
                let before = line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
                before && rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '(')
            };
            if line.match_indices(note).any(|(at, _)| is_word(at, &line[at + note.len()..])) {
                let number = index + 1;
                breaches.push(format!(
                    "{}:{number}: {note} without an argument; write `{note}(issue or reason): ...`",
                    source.path
                ));
            }
        }
    }
    breaches
}

/// A Rust file begins with what it is for.
fn head(source: &Source) -> Option<String> {
    let first = source.text.lines().next().unwrap_or_default();
    let generated = first.starts_with("// @generated");
    (!first.starts_with("//!") && !generated)
        .then(|| format!("{}:1: begin with `//!`: what the file is for", source.path))
}

/// A folder's `mod.rs` is its head: documentation, `mod` and `pub use`.
fn logic_in_mod(source: &Source) -> Option<String> {
    // The rules themselves are called from their head, and nowhere else.
    if source.path == "xtask/src/tidy/mod.rs" {
        return None;
    }
    let starts = ["fn ", "pub fn ", "pub(crate) fn ", "impl ", "impl<"];
    let (number, _) = source.code().find(|(_, line)| starts.iter().any(|start| line.starts_with(start)))?;
    Some(format!("{}:{number}: logic in a mod.rs; move it into a file named after it", source.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into(), is_test: false }
    }

    #[test]
    fn a_long_file_fails_unless_its_agreed_length_is_met_exactly() {
        let long = source("a.rs", &"x\n".repeat(900));
        for (limit, breaches) in [(None, 1), (Some(899), 1), (Some(900), 0), (Some(901), 1)] {
            let allowed = limit.map(|limit| ("a.rs".to_owned(), limit)).into_iter().collect();
            assert_eq!(sizes(&allowed, std::slice::from_ref(&long)).len(), breaches, "{limit:?}");
        }
        let stale = BTreeMap::from([("gone.rs".to_owned(), 900)]);
        assert_eq!(sizes(&stale, &[]).len(), 1);
    }

    #[test]
    fn a_note_needs_its_argument_and_must_be_a_word() {
        let note = NOTES[0];
        assert_eq!(notes(&source("a.rs", &format!("// {note}: later"))).len(), 1);
        assert_eq!(notes(&source("a.rs", &format!("// {note}(issue 3): later"))).len(), 0);
        assert_eq!(notes(&source("a.rs", &format!("MAS{note}S and {note}LIST"))).len(), 0);
    }
}
