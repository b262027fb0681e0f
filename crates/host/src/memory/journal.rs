//! Tracks changes of names: which of them a `sync_dir` makes durable, and which a crash keeps.
//!
//! The model is POSIX's, stricter than any one file system: a name is durable after `sync_dir` of its folder, and each
//! change that is not durable yet survives a crash or not, independently. `Profile` has what real file systems add to
//! that. Three things are guaranteed, because no file
//! system in use behaves otherwise: changes of one name keep their order, a rename never leaves a file without both
//! names, and a folder has one name.

use super::inode::Tear;
use super::tree::{DirId, Stored, Tree};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// A name in a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) dir: DirId,
    pub(crate) name: OsString,
}

/// A change of names that is not durable yet.
#[derive(Clone)]
pub(crate) enum Change {
    Add { at: Name, what: Stored },
    Remove { at: Name },
    Move { from: Name, to: Name, what: Stored },
}

impl Tree {
    /// Makes the changes in `dir` durable.
    ///
    /// A rename into `dir` from elsewhere makes the new name durable and leaves the removal of the old name to the
    /// other folder's sync. A rename out of `dir` becomes durable as a whole, after all earlier changes of its new
    /// name.
    pub(crate) fn settle(&mut self, dir: DirId) {
        let Some(journal) = self.journal.take() else { return };
        let whole = settled_whole(&journal, dir);
        let mut left = Vec::new();
        for (change, whole) in journal.into_iter().zip(whole) {
            match change {
                change if whole => self.store(change),
                Change::Move { from, to, what } if to.dir == dir => {
                    self.store(Change::Add { at: to, what });
                    left.push(Change::Remove { at: from });
                }
                change => left.push(change),
            }
        }
        self.committed = left.len();
        self.journal = Some(left);
    }

    /// Notes that a file system with one journal for all folders commits it.
    pub(crate) fn commit(&mut self) {
        self.committed = self.journal.as_ref().map_or(0, Vec::len);
    }

    /// Makes a random part of the changes durable, as a crash does, and drops the others.
    pub(crate) fn settle_some(&mut self, tear: &Tear<'_>) {
        if tear.profile.keeps_order() {
            return self.settle_first(tear);
        }
        let mut undone = BTreeSet::new();
        for change in self.journal.replace(Vec::new()).unwrap_or_default() {
            let kept = tear.keeps() && change.names().iter().flatten().all(|name| !undone.contains(*name));
            if kept {
                self.store(change);
            } else {
                undone.extend(change.names().into_iter().flatten().cloned());
            }
        }
    }

    /// Makes the committed changes durable, and a random number of those after them, in their order.
    fn settle_first(&mut self, tear: &Tear<'_>) {
        let journal = self.journal.replace(Vec::new()).unwrap_or_default();
        let later = journal.len().saturating_sub(self.committed) as u64;
        // All or none of them are frequent: a commit may have been long ago, or a moment ago.
        let kept = match tear.chance.below(4) {
            0 => 0,
            1 => later,
            _ => tear.chance.below(later + 1),
        };
        let kept = self.committed + usize::try_from(kept).unwrap_or_default();
        for change in journal.into_iter().take(kept) {
            if let Change::Move { to, what: Stored::File(inode), .. } = &change
                && tear.profile.renames_with_bytes()
                && self.dirs.get(&to.dir).is_some_and(|dir| dir.stored.contains_key(&to.name))
            {
                inode.sync();
            }
            self.store(change);
        }
    }

    fn store(&mut self, change: Change) {
        match change {
            Change::Add { at, what } => self.store_name(at, what),
            Change::Remove { at } => self.drop_name(&at),
            Change::Move { from, to, what } => {
                self.drop_name(&from);
                self.store_name(to, what);
            }
        }
    }

    fn store_name(&mut self, at: Name, what: Stored) {
        if let Some(dir) = self.dirs.get_mut(&at.dir) {
            dir.stored.insert(at.name, what);
        }
    }

    fn drop_name(&mut self, at: &Name) {
        if let Some(dir) = self.dirs.get_mut(&at.dir) {
            dir.stored.remove(&at.name);
        }
    }
}

impl Change {
    fn names(&self) -> [Option<&Name>; 2] {
        match self {
            Change::Add { at, .. } | Change::Remove { at } => [Some(at), None],
            Change::Move { from, to, .. } => [Some(from), Some(to)],
        }
    }
}

/// Decides for each change whether a sync of `dir` makes it durable as a whole.
///
/// Runs backwards, because a change that becomes durable needs the earlier changes of its names in other folders.
fn settled_whole(journal: &[Change], dir: DirId) -> Vec<bool> {
    let mut needed: BTreeSet<&Name> = BTreeSet::new();
    let mut whole = vec![false; journal.len()];
    for (change, whole) in journal.iter().zip(&mut whole).rev() {
        let asked = change.names().iter().flatten().any(|name| needed.contains(*name));
        *whole = asked
            || match change {
                Change::Add { at, .. } | Change::Remove { at } => at.dir == dir,
                Change::Move { from, to, what } => {
                    from.dir == dir || (to.dir == dir && matches!(what, Stored::Dir(_)))
                }
            };
        if *whole {
            needed.extend(change.names().into_iter().flatten().filter(|name| name.dir != dir));
        }
    }
    whole
}
