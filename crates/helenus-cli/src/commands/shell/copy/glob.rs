//! The file names of COPY FROM: paths separated by commas, with `*` and `?` in the last component.

use super::super::interpreter::expand_home;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The files of all names; those of a pattern are sorted by name.
///
/// # Errors
/// A file does not exist.
pub fn files(names: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in names.split(',').map(str::trim) {
        let path = expand_home(name);
        if path.is_file() {
            found.push(path);
            continue;
        }
        let matching = matching(&path)?;
        if matching.is_empty() {
            bail!("Can't open '{name}' for reading: no matching file found");
        }
        found.extend(matching);
    }
    Ok(found)
}

fn matching(path: &Path) -> Result<Vec<PathBuf>> {
    let Some(pattern) = path.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    if !pattern.contains(['*', '?']) {
        return Ok(Vec::new());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| fits(pattern.as_bytes(), name.as_bytes()))
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    Ok(found)
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            (0..=name.len()).any(|skipped| fits(rest, name.get(skipped..).unwrap_or_default()))
        }
        (Some((b'?', rest)), Some((_, left))) => fits(rest, left),
        (Some((byte, rest)), Some((first, left))) => byte == first && fits(rest, left),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters_and_question_marks_for_one() {
        assert!(fits(b"*.csv", b"a.csv") && fits(b"part-?.csv", b"part-1.csv") && fits(b"*", b""));
        assert!(!fits(b"*.csv", b"a.json") && !fits(b"part-?.csv", b"part-10.csv"));
    }
}
