//! The folders that must stay in their places while a process works in them.
//!
//! A path names whatever is there at the moment. If a data directory is renamed, unmounted or replaced, open files go on in the
//! old folder and new ones would begin in another, and no error would tell. So `RealDisk` keeps the device and inode of
//! each such folder, and changes no name below it once another folder, or none, is in its place.

use crate::error::on;
use parking_lot::Mutex;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Device and inode.
type Identity = (u64, u64);

/// The kept folders of this process, by the number of their keeper.
#[derive(Default)]
struct Kept {
    folders: Vec<(u64, PathBuf, Identity)>,
    next: u64,
}

/// The folders that must stay.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Kept>>);

/// Keeps a folder until it is dropped.
struct Keeper {
    places: Places,
    number: u64,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.places.0.lock().folders.retain(|(number, ..)| *number != self.number);
    }
}

impl Places {
    /// Keeps a folder, wherever a link in its path leads now.
    pub(super) fn keep(&self, folder: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let identity = identity(folder).map_err(|e| on("use folder", folder, e))?;
        let mut kept = self.0.lock();
        let number = kept.next;
        kept.next += 1;
        kept.folders.push((number, folder.to_owned(), identity));
        Ok(Box::new(Keeper { places: self.clone(), number }))
    }

    /// Fails if a kept folder that is this path, or above it, is not in its place.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        for (_, folder, kept) in
            self.0.lock().folders.iter().filter(|(_, folder, _)| path.starts_with(folder))
        {
            match identity(folder) {
                Ok(found) if found == *kept => {}
                // Open files are not affected, and this says nothing about the folder.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                Ok(_) => return Err(not_there(folder, "another folder is in its place")),
                Err(error) => return Err(not_there(folder, &error.to_string())),
            }
        }
        Ok(())
    }
}

fn not_there(folder: &Path, why: &str) -> io::Error {
    let text = format!(
        "it is not where it was when this process began to use it ({why}): it was renamed, removed, unmounted or replaced; put \
         it back and start again"
    );
    on("use folder", folder, io::Error::other(text))
}

fn identity(folder: &Path) -> io::Result<Identity> {
    fs::metadata(folder).map(|about| (about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may happen to a folder.
    const CHANGES: [fn(&Path); 4] = [
        |folder| fs::rename(folder, folder.with_extension("away")).unwrap(),
        |folder| fs::remove_dir_all(folder).unwrap(),
        |folder| {
            fs::rename(folder, folder.with_extension("away")).unwrap();
            fs::create_dir(folder).unwrap();
        },
        |folder| {
            fs::rename(folder, folder.with_extension("away")).unwrap();
            std::os::unix::fs::symlink("/tmp", folder).unwrap();
        },
    ];

    #[test]
    fn a_folder_that_is_moved_or_replaced_is_noticed_and_one_that_is_only_written_is_not() {
        for change in CHANGES {
            let dir = tempfile::tempdir().unwrap();
            let (folder, other) = (dir.path().join("data"), dir.path().join("database"));
            fs::create_dir(&folder).unwrap();
            let places = Places::default();
            let keeper = places.keep(&folder).unwrap();
            fs::create_dir_all(folder.join("k/t")).unwrap();
            fs::write(folder.join("k/t/file"), "x").unwrap();
            let below = [folder.clone(), folder.join("k"), folder.join("k/t/new")];
            below.iter().for_each(|path| places.check(path).unwrap());
            change(&folder);
            for path in &below {
                let error = places.check(path).unwrap_err().to_string();
                assert!(error.contains("data") && error.contains("put it back"), "{error}");
            }
            places.check(&other).unwrap();
            drop(keeper);
            below.iter().for_each(|path| places.check(path).unwrap());
        }
    }

    #[test]
    fn a_folder_that_is_put_back_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, away) = (dir.path().join("data"), dir.path().join("away"));
        fs::create_dir(&folder).unwrap();
        let places = Places::default();
        let _keeper = places.keep(&folder).unwrap();
        fs::rename(&folder, &away).unwrap();
        assert!(places.check(&folder).is_err());
        fs::rename(&away, &folder).unwrap();
        places.check(&folder).unwrap();
    }
}
