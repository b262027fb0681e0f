//! Copies a disk, and computes what a crash leaves of one.

use super::inode::{Inode, InodeInUse, Tear};
use super::journal::Change;
use super::profile::Profile;
use super::space::Space;
use super::tree::{Dir, DirId, Entry, ROOT, Stored, Tree};
use crate::random::Sequence;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

impl Tree {
    /// An independent disk with the same bytes and names, present and durable. Locks are free, because their holders
    /// use the original.
    pub(crate) fn fork(&self) -> Tree {
        let mut copies = Copies::new(self.space.capacity());
        let dirs = self.dirs.iter().map(|(id, dir)| (*id, copies.dir(dir))).collect();
        let journal = self.journal.as_ref().map(|journal| journal.iter().map(|c| copies.change(c)).collect());
        copies.space.set_used(copies.held.values().map(|held| held.inode.size()).sum());
        Tree { dirs, next: self.next, journal, committed: self.committed, space: copies.space }
    }

    /// Removes data that is not durable. With `chance`, a random part of it survives by the rules of a file system: names,
    /// and blocks of 512 bytes or 4 KiB. For a fork only, because it replaces the files that are open.
    pub(crate) fn crash(&mut self, chance: Option<(&Sequence, Profile)>) {
        let tear = chance.map(|(chance, profile)| {
            let block_bytes = if chance.coin() { 512 } else { 4096 };
            // Sometimes nearly nothing is lost, sometimes nearly everything: losing half each time would never produce
            // a single gap.
            let keep_percent = [10, 50, 90][usize::from(chance.coin()) + usize::from(chance.coin())];
            Tear { chance, profile, block_bytes, keep_percent }
        });
        if let Some(tear) = &tear {
            self.settle_some(tear);
        }
        (self.journal, self.committed) = (Some(Vec::new()), 0);
        self.drop_unreachable();
        let mut held: HashMap<*const Inode, Arc<InodeInUse>> = HashMap::new();
        let space = Arc::new(Space::new(self.space.capacity()));
        for dir in self.dirs.values_mut() {
            let present = dir.stored.iter().map(|(name, stored)| {
                let entry = match stored {
                    Stored::Dir(id) => Entry::Dir(*id),
                    Stored::File(inode) => {
                        Entry::File(Arc::clone(held.entry(Arc::as_ptr(inode)).or_insert_with(|| {
                            inode.crash(tear.as_ref());
                            Arc::new(InodeInUse::new(Arc::clone(inode), Arc::clone(&space)))
                        })))
                    }
                };
                (name.clone(), entry)
            });
            dir.names = present.collect();
        }
        space.set_used(held.values().map(|held| held.inode.size()).sum());
        self.space = space;
    }

    fn drop_unreachable(&mut self) {
        let mut reached = BTreeSet::new();
        let mut next = vec![ROOT];
        while let Some(id) = next.pop() {
            if reached.insert(id)
                && let Some(dir) = self.dirs.get(&id)
            {
                next.extend(dir.stored.values().filter_map(|stored| match stored {
                    Stored::Dir(below) => Some(*below),
                    Stored::File(_) => None,
                }));
            }
        }
        self.dirs.retain(|id: &DirId, _| reached.contains(id));
    }
}

/// The files copied so far: two names of one file stay names of one file.
struct Copies {
    inodes: HashMap<*const Inode, Arc<Inode>>,
    held: HashMap<*const Inode, Arc<InodeInUse>>,
    space: Arc<Space>,
}

impl Copies {
    fn new(capacity: u64) -> Copies {
        Copies { inodes: HashMap::new(), held: HashMap::new(), space: Arc::new(Space::new(capacity)) }
    }

    fn dir(&mut self, dir: &Dir) -> Dir {
        let names: BTreeMap<_, _> = dir.names.iter().map(|(name, e)| (name.clone(), self.entry(e))).collect();
        let stored = dir.stored.iter().map(|(name, s)| (name.clone(), self.stored(s))).collect();
        Dir { names, stored }
    }

    fn entry(&mut self, entry: &Entry) -> Entry {
        match entry {
            Entry::Dir(id) => Entry::Dir(*id),
            Entry::File(held) => {
                let inode = self.inode(&held.inode);
                let space = &self.space;
                let copy = self
                    .held
                    .entry(Arc::as_ptr(&inode))
                    .or_insert_with(|| Arc::new(InodeInUse::new(Arc::clone(&inode), Arc::clone(space))));
                Entry::File(Arc::clone(copy))
            }
        }
    }

    fn stored(&mut self, stored: &Stored) -> Stored {
        match stored {
            Stored::Dir(id) => Stored::Dir(*id),
            Stored::File(inode) => Stored::File(self.inode(inode)),
        }
    }

    fn change(&mut self, change: &Change) -> Change {
        match change {
            Change::Add { at, what } => Change::Add { at: at.clone(), what: self.stored(what) },
            Change::Remove { at } => Change::Remove { at: at.clone() },
            Change::Move { from, to, what } => {
                Change::Move { from: from.clone(), to: to.clone(), what: self.stored(what) }
            }
        }
    }

    fn inode(&mut self, inode: &Arc<Inode>) -> Arc<Inode> {
        Arc::clone(self.inodes.entry(Arc::as_ptr(inode)).or_insert_with(|| Arc::new(inode.fork())))
    }
}
