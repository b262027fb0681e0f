//! The `io::Error`s of this crate: they carry the path, the operation and the system's error.
//!
//! The traits return `io::Error`, because callers decide by `ErrorKind` (NotFound, StorageFull, UnexpectedEof). An
//! error from this crate has its cause's kind, its message contains the path, and `get_ref` returns a [`PathError`] or
//! a [`LockHeld`].

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
    /// The system's error. It is part of the message, so `Error::source` does not repeat it.
    pub cause: io::Error,
}

/// Another process or another lock of this process holds the lock.
#[derive(Debug, thiserror::Error)]
#[error("{} is held by {}", path.display(), if holder.is_empty() { "another process" } else { holder })]
pub struct LockHeld {
    /// The lock file.
    pub path: PathBuf,
    /// The text that the holder wrote into it; empty if it has not written yet.
    pub holder: String,
}

/// The system's error number behind an error of this crate, or of any `io::Error`.
#[must_use]
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<PathError>());
    inner.map_or_else(|| error.raw_os_error(), |path_error| raw_os_error(&path_error.cause))
}

/// The holder's text, if `error` means that another holds the lock.
#[must_use]
pub fn lock_holder(error: &io::Error) -> Option<&str> {
    error.get_ref()?.downcast_ref::<LockHeld>().map(|held| held.holder.as_str())
}

/// Wraps a system error with its operation and path.
pub(crate) fn on(op: &'static str, path: &Path, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), PathError { op, path: path.to_path_buf(), to: None, cause })
}

/// The same for an operation on two paths.
pub(crate) fn between(op: &'static str, from: &Path, to: &Path, cause: io::Error) -> io::Error {
    let error = PathError { op, path: from.to_path_buf(), to: Some(to.to_path_buf()), cause };
    io::Error::new(error.cause.kind(), error)
}

/// The error for a path that is locked.
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
