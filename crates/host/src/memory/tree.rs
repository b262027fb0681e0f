//! Folders and names, present and (if tracked) durable.
//!
//! Folders have numbers, so that moving one changes a single name. All changes of present names happen here and in
//! `rename`. With tracking, each adds a [`Change`], which `journal` applies to the durable names at a `sync_dir`.

use super::inode::{Inode, InodeInUse};
use super::journal::{Change, Name};
use super::space::Space;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::sync::Arc;

/// The number of a folder. Never reused.
pub(crate) type DirId = u64;

pub(crate) const ROOT: DirId = 0;

/// The target of a present name.
#[derive(Clone)]
pub(crate) enum Entry {
    File(Arc<InodeInUse>),
    Dir(DirId),
}

/// The target of a durable name.
#[derive(Clone)]
pub(crate) enum Stored {
    File(Arc<Inode>),
    Dir(DirId),
}

#[derive(Default)]
pub(crate) struct Dir {
    pub(crate) names: BTreeMap<OsString, Entry>,
    /// The names that a crash leaves; empty when untracked.
    pub(crate) stored: BTreeMap<OsString, Stored>,
}

pub(crate) struct Tree {
    /// Ordered, so that a crash draws its random numbers in the same order each time. With tracking, a removed folder
    /// stays, because a crash may bring it back.
    pub(crate) dirs: BTreeMap<DirId, Dir>,
    pub(crate) next: DirId,
    /// Changes of names since they were last made durable, oldest first; `None` when untracked.
    pub(crate) journal: Option<Vec<Change>>,
    /// So many of them are before the last commit of a file system that keeps one journal for all folders (`Profile`).
    pub(crate) committed: usize,
    pub(crate) space: Arc<Space>,
}

impl Tree {
    pub(crate) fn new(tracked: bool, capacity: u64) -> Tree {
        Tree {
            dirs: BTreeMap::from([(ROOT, Dir::default())]),
            next: ROOT + 1,
            journal: tracked.then(Vec::new),
            committed: 0,
            space: Arc::new(Space::new(capacity)),
        }
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<Entry> {
        let mut at = Entry::Dir(ROOT);
        for name in parts(path)? {
            let Entry::Dir(dir) = at else { return Err(ErrorKind::NotADirectory.into()) };
            at = self.names(dir)?.get(&name).ok_or(ErrorKind::NotFound)?.clone();
        }
        Ok(at)
    }

    pub(crate) fn find_file(&self, path: &Path) -> io::Result<Arc<InodeInUse>> {
        match self.find(path)? {
            Entry::File(held) => Ok(held),
            Entry::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub(crate) fn find_dir(&self, path: &Path) -> io::Result<DirId> {
        match self.find(path)? {
            Entry::Dir(dir) => Ok(dir),
            Entry::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// The folder of `path` and the last name. The root has none.
    pub(crate) fn place(&self, path: &Path) -> io::Result<Name> {
        let mut names = parts(path)?;
        let name = names.pop().ok_or(ErrorKind::InvalidInput)?;
        let mut dir = ROOT;
        for part in names {
            match self.names(dir)?.get(&part) {
                Some(Entry::Dir(below)) => dir = *below,
                Some(Entry::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                None => return Err(ErrorKind::NotFound.into()),
            }
        }
        Ok(Name { dir, name })
    }

    pub(crate) fn create(&mut self, path: &Path) -> io::Result<Arc<InodeInUse>> {
        let at = self.place(path)?;
        let inode = Arc::new(Inode::new(self.journal.is_some()));
        let held = Arc::new(InodeInUse::new(inode, Arc::clone(&self.space)));
        self.add(at, Entry::File(Arc::clone(&held)))?;
        Ok(held)
    }

    pub(crate) fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let entry = self.find(from)?;
        let at = self.place(to)?;
        if matches!(entry, Entry::Dir(_)) && !self.names(at.dir)?.contains_key(&at.name) {
            return Err(ErrorKind::PermissionDenied.into()); // what Linux calls a second name of a folder
        }
        self.add(at, entry)
    }

    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find_file(path)?;
        let at = self.place(path)?;
        self.take(at)
    }

    pub(crate) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let dir = self.find_dir(path)?;
        if !self.names(dir)?.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let at = self.place(path)?;
        self.take(at)?;
        self.forget(dir);
        Ok(())
    }

    pub(crate) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let names = parts(path)?;
        let (mut dir, last) = (ROOT, names.len().saturating_sub(1));
        for (index, name) in names.into_iter().enumerate() {
            dir = match self.names(dir)?.get(&name) {
                Some(Entry::Dir(below)) => *below,
                Some(Entry::File(_)) if index < last => return Err(ErrorKind::NotADirectory.into()),
                Some(Entry::File(_)) => return Err(ErrorKind::AlreadyExists.into()),
                None => {
                    let below = self.next;
                    self.next += 1;
                    self.dirs.insert(below, Dir::default());
                    self.add(Name { dir, name }, Entry::Dir(below))?;
                    below
                }
            };
        }
        Ok(())
    }

    /// The names of a folder, sorted.
    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.names(self.find_dir(path)?)?.keys().cloned().collect())
    }

    /// Drops a removed folder, unless a crash may bring it back.
    pub(crate) fn forget(&mut self, dir: DirId) {
        if self.journal.is_none() {
            self.dirs.remove(&dir);
        }
    }

    pub(crate) fn names(&self, dir: DirId) -> io::Result<&BTreeMap<OsString, Entry>> {
        self.dirs.get(&dir).map(|dir| &dir.names).ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(crate) fn names_mut(&mut self, dir: DirId) -> io::Result<&mut BTreeMap<OsString, Entry>> {
        self.dirs.get_mut(&dir).map(|dir| &mut dir.names).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn add(&mut self, at: Name, entry: Entry) -> io::Result<()> {
        let names = self.names_mut(at.dir)?;
        if names.contains_key(&at.name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let what = entry.stored();
        names.insert(at.name.clone(), entry);
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Add { at, what });
        }
        Ok(())
    }

    fn take(&mut self, at: Name) -> io::Result<()> {
        self.names_mut(at.dir)?.remove(&at.name);
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Remove { at });
        }
        Ok(())
    }
}

impl Entry {
    pub(crate) fn stored(&self) -> Stored {
        match self {
            Entry::File(held) => Stored::File(Arc::clone(&held.inode)),
            Entry::Dir(dir) => Stored::Dir(*dir),
        }
    }
}

/// The components of `path`. A relative path starts at the root, because a machine in memory has no working directory.
fn parts(path: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_os_string()),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir => {
                names.pop();
            }
            Component::Prefix(_) => return Err(ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}
