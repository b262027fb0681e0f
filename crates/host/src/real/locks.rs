//! The lock that keeps a second process out of a data directory: `flock`, released by the kernel however a process
//! ends.

use super::private::{make_private, not_through_a_link};
use crate::error::{held, on};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Locks `path` and writes `holder` into it. The lock is held while the file is open.
pub(super) fn lock_file(path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false) // before the lock is ours, the text is the holder's
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path);
    let mut file = not_through_a_link(opened).map_err(|e| on("open the lock file", path, e))?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(on("lock", path, io::Error::other("it is no file; remove it")));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map_err(|e| on("read the lock file", path, e))?;
            return Err(held(path, String::from_utf8_lossy(&text).trim().to_owned()));
        }
        Err(e) => return Err(on("lock", path, e.into())),
    }
    let written =
        make_private(&file).and_then(|()| file.set_len(0)).and_then(|()| file.write_all(holder.as_bytes()));
    match written {
        // The lock is held all the same. Only others who want it are not told by whom.
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {}
        written => written.map_err(|e| on("write the lock file", path, e))?,
    }
    Ok(Box::new(file))
}

/// Locks a folder, beside the lock on `file` in it: a file can be removed while it is locked, and then a second process would
/// find another one. A file system that cannot lock folders goes without.
pub(super) fn lock_dir(folder: &Path, file: &Path) -> io::Result<Option<fs::File>> {
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder);
    let opened = opened.map_err(|e| on("open folder", folder, e))?;
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(Errno::WOULDBLOCK) => {
            let text = fs::read_to_string(file).unwrap_or_default();
            let is_removed = text.trim().is_empty();
            let unknown = "a process whose lock file was removed";
            Err(held(folder, if is_removed { unknown } else { text.trim() }.to_owned()))
        }
        Err(_not_here) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_holder;

    #[test]
    fn a_locked_folder_stays_locked_when_its_lock_file_is_removed_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = || Ok::<_, io::Error>((lock_dir(dir.path(), &path)?, lock_file(&path, "pid 1")?));
        let first = lock().unwrap();
        assert_eq!(lock_holder(&lock().err().unwrap()), Some("pid 1"));
        fs::remove_file(&path).unwrap();
        assert!(lock_holder(&lock().err().unwrap()).is_some_and(|holder| holder.contains("removed")));
        fs::write(&path, "").unwrap();
        assert!(lock().is_err());
        drop(first);
        lock().unwrap();
    }

    #[test]
    fn a_second_lock_is_refused_with_the_holders_text_until_the_first_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = lock_file(&path, "a rather long text of pid 1").unwrap();
        let error = lock_file(&path, "pid 2").err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(lock_holder(&error), Some("a rather long text of pid 1"));
        assert!(error.to_string().contains("lock"), "{error}");
        drop(first);
        let _second = lock_file(&path, "pid 2").unwrap();
        assert_eq!(lock_holder(&lock_file(&path, "pid 3").err().unwrap()), Some("pid 2"));
    }
}
