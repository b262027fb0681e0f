//! What an `io::Error` of this crate carries: the path, the operation, the system's own error.
//!
//! The traits speak `io::Error`, since callers decide by `ErrorKind` (NotFound, StorageFull, UnexpectedEof). Made here,
//! its kind is the cause's, its message names the path, and `get_ref` gives a [`PathError`] or a [`LockHeld`].

use std::io;
use std::path::{Path, PathBuf};

/// An operation that failed on a path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {op} {}{}: {cause}", path.display(), target(to.as_ref()))]
pub struct PathError {
    /// The operation, as a verb: "open", "write", "sync".
    pub op: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The second path of a rename or link.
    pub to: Option<PathBuf>,
    /// What the system said. Part of the message, so not repeated as `Error::source`.
    pub cause: io::Error,
}

/// A lock that another holds.
#[derive(Debug, thiserror::Error)]
#[error("{} is held by {}", path.display(), if holder.is_empty() { "another process" } else { holder })]
pub struct LockHeld {
    /// The lock file.
    pub path: PathBuf,
    /// What the holder wrote into it; empty if it has not yet.
    pub holder: String,
}

/// The error number of the system behind an error of this crate, or of any `io::Error`.
#[must_use]
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<PathError>());
    inner.map_or_else(|| error.raw_os_error(), |path_error| raw_os_error(&path_error.cause))
}

/// The text of the holder, when `error` came from a lock that another holds.
#[must_use]
pub fn lock_holder(error: &io::Error) -> Option<&str> {
    error.get_ref()?.downcast_ref::<LockHeld>().map(|held| held.holder.as_str())
}

/// Puts operation and path around what the system said.
pub(crate) fn on(op: &'static str, path: &Path, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), PathError { op, path: path.to_path_buf(), to: None, cause })
}

/// The same for an operation on two paths.
pub(crate) fn between(op: &'static str, from: &Path, to: &Path, cause: io::Error) -> io::Error {
    let error = PathError { op, path: from.to_path_buf(), to: Some(to.to_path_buf()), cause };
    io::Error::new(error.cause.kind(), error)
}

/// A refusal because `path` is locked.
pub(crate) fn held(path: &Path, holder: String) -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, LockHeld { path: path.to_path_buf(), holder })
}

fn target(to: Option<&PathBuf>) -> String {
    to.map_or_else(String::new, |to| format!(" to {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_kind_number_and_path() {
        let error = on("write", Path::new("/d/f"), io::Error::from_raw_os_error(28));
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(raw_os_error(&error), Some(28));
        assert!(error.to_string().starts_with("cannot write /d/f: "), "{error}");
        let error = between("rename", Path::new("a"), Path::new("b"), io::ErrorKind::NotFound.into());
        assert!(error.to_string().starts_with("cannot rename a to b: "), "{error}");
        assert_eq!(raw_os_error(&error), None);
    }

    #[test]
    fn a_held_lock_says_by_whom() {
        let error = held(Path::new("/d/lock"), "pid 12".into());
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(error.to_string(), "/d/lock is held by pid 12");
        assert_eq!(lock_holder(&error), Some("pid 12"));
        assert_eq!(lock_holder(&io::ErrorKind::WouldBlock.into()), None);
    }
}
