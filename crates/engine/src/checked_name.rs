//! Checks names from outside (requests, backups) that become file names. Paths below the database's folders are built
//! from checked names only, so none of them leads outside.

use std::fmt;
use std::path::{Path, PathBuf};

/// Longest name in bytes: the limit of file systems.
const BYTES_MAX: usize = 255;
/// Characters of a name that an error message quotes.
const QUOTED_MAX: usize = 60;
/// The most names in a path.
const DEPTH_MAX: usize = 32;

/// A name that is a single component of a path: of a snapshot, a backup, or a file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckedName(String);

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} cannot be named {quoted}: a name has 1 to 255 bytes, no /, \\, : or control characters, and is not . or .."
)]
pub struct NameError {
    what: &'static str,
    quoted: String,
}

impl CheckedName {
    /// Checks a name. `what` describes the named thing in the error, such as "a snapshot".
    ///
    /// # Errors
    /// A name that leads to another folder, that file systems refuse, or that contains invisible characters.
    pub fn new(what: &'static str, name: &str) -> Result<CheckedName, NameError> {
        // A colon is Java's path separator, which nodetool refuses; a backslash is the separator of Windows.
        let is_wrong = |c: char| matches!(c, '/' | '\\' | ':') || is_not_shown(c);
        let is_plain = !name.is_empty() && name.len() <= BYTES_MAX && name != "." && name != "..";
        match is_plain && !name.contains(is_wrong) {
            true => Ok(CheckedName(name.to_owned())),
            false => Err(NameError { what, quoted: quoted(name) }),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control characters, characters without width, and characters that change the direction of writing: with them, two
/// different names can look the same.
fn is_not_shown(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(QUOTED_MAX).collect();
    let more = if shown.len() < name.len() { format!("... ({} bytes)", name.len()) } else { String::new() };
    format!("{shown:?}{more}")
}

impl AsRef<Path> for CheckedName {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for CheckedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path of checked names, separated by `/` as in the manifest and the archive of a backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckedPath(String);

impl CheckedPath {
    /// Checks a path. `what` describes the thing in the error.
    ///
    /// # Errors
    /// A path that is absolute, empty or too deep, or that contains a name which `CheckedName` refuses.
    pub fn new(what: &'static str, path: &str) -> Result<CheckedPath, NameError> {
        let wrong = || NameError { what, quoted: quoted(path) };
        let mut names = path.split('/');
        if path.split('/').count() > DEPTH_MAX || !names.all(|name| CheckedName::new(what, name).is_ok()) {
            return Err(wrong());
        }
        Ok(CheckedPath(path.to_owned()))
    }

    /// The path, with `/` as the separator.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path below a folder.
    pub fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

impl fmt::Display for CheckedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::Random;
    use helenus_host::sim::Machine;

    /// Parts of generated hostile names.
    const PIECES: [&str; 22] = [
        "..", ".", "/", "\\", ":", "\0", "\n", "\u{1b}", "\u{202e}", "\u{200b}", "a", "snap", "ä", "日本",
        " ", "-", "~", "%2e%2e", "C:", "con", "$HOME", "\u{7f}",
    ];

    fn draw(random: &dyn Random) -> String {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        let count = usize::from(bytes[0] % 7);
        let mut name: String =
            bytes[1..=count].iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]).collect();
        if bytes[7] < 16 {
            name = name.repeat(100);
        }
        name
    }

    #[test]
    fn a_checked_name_is_one_name_below_its_folder_and_a_checked_path_stays_below_it() {
        let (mut taken, mut refused) = (0, 0);
        for seed in 0..3000 {
            let host = Machine::new(seed).host();
            let name = draw(&*host.random);
            let folder = Path::new("/data/ks/t/snapshots");
            match CheckedName::new("a snapshot", &name) {
                Ok(checked) => {
                    taken += 1;
                    let path = folder.join(&checked);
                    assert_eq!(path.parent(), Some(folder), "seed {seed}: {name:?}");
                    assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
                    assert!(!name.contains(char::is_control) && name.len() <= 255);
                }
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(text.len() < 800 && !text.contains(char::is_control), "seed {seed}: {text:?}");
                }
            }
            if let Ok(checked) = CheckedPath::new("a file", &name) {
                let below = checked.below(folder);
                let names: Vec<_> = below.strip_prefix(folder).unwrap().components().collect();
                assert_eq!(names.len(), name.split('/').count(), "seed {seed}: {name:?}");
                assert!(names.iter().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
        assert!(taken > 200 && refused > 200, "{taken} taken, {refused} refused");
    }
}
