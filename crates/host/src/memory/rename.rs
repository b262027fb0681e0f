//! Renames, with POSIX's rules of what may replace what.

use super::journal::{Change, Name};
use super::tree::{DirId, Entry, Tree};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

impl Tree {
    /// Renames `from` to `to`. A file replaces a file, a folder an empty folder. If both are names of one file, both
    /// stay.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        // Checks in Linux's order, so that a test in memory gets the same error as on the real disk.
        let (from, to) = (self.place(from)?, self.place(to)?);
        let entry = self.names(from.dir)?.get(&from.name).cloned().ok_or(ErrorKind::NotFound)?;
        let target = self.names(to.dir)?.get(&to.name).cloned();
        match (&entry, &target) {
            (Entry::Dir(moved), _) if self.holds(*moved, to.dir) => {
                return Err(ErrorKind::InvalidInput.into());
            }
            (_, Some(Entry::Dir(target))) if self.holds(*target, from.dir) => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            (Entry::File(a), Some(Entry::File(b))) if Arc::ptr_eq(a, b) => return Ok(()),
            (Entry::Dir(a), Some(Entry::Dir(b))) if a == b => return Ok(()),
            (Entry::File(_), Some(Entry::Dir(_))) => return Err(ErrorKind::IsADirectory.into()),
            (Entry::Dir(_), Some(Entry::File(_))) => return Err(ErrorKind::NotADirectory.into()),
            (Entry::Dir(_), Some(Entry::Dir(b))) if !self.names(*b)?.is_empty() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            (Entry::Dir(moved), _) if self.holds(*moved, to.dir) => {
                return Err(ErrorKind::InvalidInput.into());
            }
            _ => {}
        }
        self.apply(from, to, entry)?;
        if let Some(Entry::Dir(replaced)) = target {
            self.forget(replaced);
        }
        Ok(())
    }

    fn apply(&mut self, from: Name, to: Name, entry: Entry) -> io::Result<()> {
        let what = entry.stored();
        self.names_mut(from.dir)?.remove(&from.name);
        self.names_mut(to.dir)?.insert(to.name.clone(), entry);
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Move { from, to, what });
        }
        Ok(())
    }

    /// Whether `below` is `dir` or lies in it.
    fn holds(&self, dir: DirId, below: DirId) -> bool {
        if dir == below {
            return true;
        }
        let Some(folder) = self.dirs.get(&dir) else { return false };
        folder.names.values().any(|entry| matches!(entry, Entry::Dir(next) if self.holds(*next, below)))
    }
}
