//! The bytes of a file: the present ones and, if tracked, those that a crash leaves.
//!
//! Names refer to an `Inode`. A `InodeInUse` is an inode in use (by a present name or an open file): it takes space on the
//! disk and can be locked. A name that only a crash would bring back keeps the `Inode`, but takes no space.
//! Lock order: `present`, then `durable`.

use super::pages::{FILE_BYTES_MAX, Pages};
use super::profile::Profile;
use super::space::Space;
use crate::random::Sequence;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Size of the blocks that a failed sync loses: a page of Linux's page cache.
const LOST_BLOCK_BYTES: usize = 4096;

pub(crate) struct Inode {
    present: RwLock<Pages>,
    durable: Option<Mutex<Durable>>,
}

#[derive(Clone, Default)]
struct Durable {
    pages: Pages,
    /// Blocks that a failed sync has dropped. As on Linux, later syncs skip them until they are written again.
    lost: BTreeSet<u64>,
}

impl Inode {
    pub(crate) fn new(tracked: bool) -> Inode {
        Inode { present: RwLock::default(), durable: tracked.then(Mutex::default) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.present.read().size()
    }

    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> bool {
        self.present.read().read(buf, offset)
    }

    /// Makes the present bytes and length durable, except lost blocks. Returns whether the length has changed since the
    /// last time, so that a journal has to be committed.
    pub(crate) fn sync(&self) -> bool {
        let Some(durable) = &self.durable else { return false };
        let present = self.present.read();
        let mut durable = durable.lock();
        let is_longer_or_shorter = durable.pages.size() != present.size();
        let old = std::mem::replace(&mut durable.pages, present.clone());
        let Durable { pages, lost } = &mut *durable;
        for block in lost.iter() {
            pages.copy_block(&old, *block, LOST_BLOCK_BYTES);
        }
        is_longer_or_shorter
    }

    /// Fails a sync: some of the unsynced blocks reach the disk, the others are lost.
    pub(crate) fn fail_sync(&self, chance: &Sequence) {
        let Some(durable) = &self.durable else { return };
        let present = self.present.read();
        let mut durable = durable.lock();
        let Durable { pages, lost } = &mut *durable;
        let size = if chance.coin() { present.size() } else { pages.size() };
        let profile = Profile::Strict;
        let tear = Tear { chance, profile, block_bytes: LOST_BLOCK_BYTES, keep_percent: 50 };
        *pages = torn(pages, &present, size, &tear, &mut |block| {
            lost.insert(block);
        });
    }

    /// Turns the file into what a crash leaves: no unsynced bytes, or with `tear` some of them.
    pub(crate) fn crash(&self, tear: Option<&Tear<'_>>) {
        let Some(durable) = &self.durable else { return };
        let mut present = self.present.write();
        let mut durable = durable.lock();
        if let Some(tear) = tear {
            let size = torn_size(durable.pages.size(), present.size(), tear);
            durable.pages = torn(&durable.pages, &present, size, tear, &mut |_| {});
        }
        durable.lost.clear();
        present.clone_from(&durable.pages);
    }

    /// An independent copy.
    pub(crate) fn fork(&self) -> Inode {
        let present = self.present.read();
        let durable = self.durable.as_ref().map(|durable| Mutex::new(durable.lock().clone()));
        Inode { present: RwLock::new(present.clone()), durable }
    }

    /// Inverts a bit of the byte at `offset`, on the medium and in memory. False if the file ends before.
    pub(crate) fn flip_bit(&self, offset: u64, bit: u8) -> bool {
        let flip = |pages: &mut Pages| {
            let mut byte = [0];
            let found = pages.read(&mut byte, offset);
            if found {
                byte[0] ^= 1 << (bit % 8);
                pages.write(&byte, offset);
            }
            found
        };
        let found = flip(&mut self.present.write());
        if let Some(durable) = &self.durable {
            flip(&mut durable.lock().pages);
        }
        found
    }

    fn rewritten(&self, from: u64, to: u64) {
        if let Some(durable) = &self.durable {
            let block = LOST_BLOCK_BYTES as u64;
            durable.lock().lost.retain(|lost| (lost + 1) * block <= from || lost * block >= to);
        }
    }
}

/// How a crash or a failed sync treats data that is not durable.
pub(crate) struct Tear<'a> {
    pub(crate) chance: &'a Sequence,
    pub(crate) profile: Profile,
    /// The unit in which bytes survive.
    pub(crate) block_bytes: usize,
    /// Percentage of blocks or names that survive.
    pub(crate) keep_percent: u64,
}

impl Tear<'_> {
    pub(crate) fn keeps(&self) -> bool {
        self.chance.below(100) < self.keep_percent
    }
}

/// `old` with a random choice of the blocks that differ in `new`; its length is then set to `size`, which lies between
/// theirs.
fn torn(old: &Pages, new: &Pages, size: u64, tear: &Tear<'_>, lost: &mut dyn FnMut(u64)) -> Pages {
    let mut torn = old.clone();
    torn.set_size(old.size().max(new.size()));
    for block in new.differing_blocks(old, tear.block_bytes) {
        let is_new = tear.profile.lengthens_with_bytes() && block * tear.block_bytes as u64 >= old.size();
        if is_new || tear.keeps() {
            torn.copy_block(new, block, tear.block_bytes);
        } else {
            lost(block);
        }
    }
    torn.set_size(size);
    torn
}

/// The length after a crash: the old one, the new one, or the end of a block between, since a file grows write by
/// write.
fn torn_size(old: u64, new: u64, tear: &Tear<'_>) -> u64 {
    match tear.chance.below(3) {
        0 => old,
        1 => new,
        _ => {
            let (low, high) = (old.min(new), old.max(new));
            let between = low + tear.chance.below(high - low + 1);
            between.next_multiple_of(tear.block_bytes as u64).clamp(low, high)
        }
    }
}

/// An inode in use.
pub(crate) struct InodeInUse {
    pub(crate) inode: Arc<Inode>,
    pub(crate) locked: AtomicBool,
    space: Arc<Space>,
}

impl InodeInUse {
    pub(crate) fn new(inode: Arc<Inode>, space: Arc<Space>) -> InodeInUse {
        InodeInUse { inode, locked: AtomicBool::new(false), space }
    }

    /// Writes all of `buf`. On a full disk writes the part that fits and returns `StorageFull`.
    pub(crate) fn write(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(io::ErrorKind::FileTooLarge)?;
        let mut present = self.inode.present.write();
        let wanted = if buf.is_empty() { 0 } else { end.saturating_sub(present.size()) };
        let taken = if wanted == 0 { 0 } else { self.space.take_up_to(wanted) };
        let result = if taken == wanted {
            present.write(buf, offset);
            Ok(())
        } else {
            let room = (present.size() + taken).saturating_sub(offset);
            let fits = usize::try_from(room).map_or(buf.len(), |room| room.min(buf.len()));
            let before = present.size();
            present.write(&buf[..fits], offset);
            self.space.give(taken - (present.size() - before));
            Err(io::ErrorKind::StorageFull.into())
        };
        self.inode.rewritten(offset, end);
        result
    }

    /// Truncates or extends. Returns `StorageFull` and changes nothing if that does not fit.
    pub(crate) fn set_size(&self, size: u64) -> io::Result<()> {
        self.resize(&mut self.inode.present.write(), size)
    }

    /// Extends to `size` if the file is shorter; errors as `set_size`.
    pub(crate) fn grow(&self, size: u64) -> io::Result<()> {
        let mut present = self.inode.present.write();
        if present.size() >= size { Ok(()) } else { self.resize(&mut present, size) }
    }

    fn resize(&self, present: &mut Pages, size: u64) -> io::Result<()> {
        if size > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let old = present.size();
        if size > old && !self.space.take(size - old) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        present.set_size(size);
        self.space.give(old.saturating_sub(size));
        self.inode.rewritten(old.min(size), u64::MAX);
        Ok(())
    }
}

impl Drop for InodeInUse {
    fn drop(&mut self) {
        self.space.give(self.inode.size());
    }
}
