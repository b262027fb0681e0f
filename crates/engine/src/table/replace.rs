//! A compaction's part in changing a table's set of SSTables: old ones out, new ones in, at one point.

use super::TableStore;
use super::store::{Replacing, Unfinished, open_sstable};
use crate::compaction::Claim;
use crate::database::Shared;
use crate::error::{Error, Result};
use helenus_model::schema::Table;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::TransactionLog;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What came of trying to replace SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// The new ones are in the view.
    Done,
    /// The table was emptied or dropped since: nothing was changed.
    Discarded,
    /// Somebody else is changing the set: a flush, say. Nothing was changed; try again.
    Later,
}

impl TableStore {
    /// The table's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens an SSTable just written.
    pub(crate) fn open_written(
        &self,
        shared: &Shared,
        table: &Arc<Table>,
        descriptor: Descriptor,
    ) -> Result<Arc<SsTable>> {
        open_sstable(shared, table, &self.folder, descriptor)
    }

    /// Notes SSTables as going when the transaction is committed.
    pub(crate) fn note_removed(
        &self,
        shared: &Shared,
        transaction: &mut TransactionLog,
        sstables: &[Arc<SsTable>],
    ) -> Result<()> {
        let files = shared.host.disk.list(&self.folder).map_err(Error::io("list", &self.folder))?;
        sstables.iter().try_for_each(|sstable| note_removed(transaction, sstable.descriptor(), &files))
    }

    /// Commits a compaction's transaction and puts its SSTables in the place of those it has read. The transaction is left
    /// to the caller to finish, unless it is not known whether it counts: then it is taken, and the error returned.
    ///
    /// Waits for nobody: whoever changes the set meanwhile may be long about it.
    pub(crate) fn replace(
        &self,
        shared: &Shared,
        claim: &Claim,
        written: &[Arc<SsTable>],
        transaction: &mut Option<TransactionLog>,
    ) -> Result<Replaced> {
        let Some(mut changing) = self.changing.try_lock() else { return Ok(Replaced::Later) };
        if self.is_dropped() || self.compaction.epoch() != claim.epoch {
            return Ok(Replaced::Discarded);
        }
        let Some(log) = transaction.as_mut() else { return Ok(Replaced::Discarded) };
        // After a panic too it is not known.
        if let Err(error) = Error::contain(|| Ok(log.commit()?)) {
            self.compaction.end(log.path(), true);
            *transaction = None;
            changing.replacing.push(Replacing { old: claim.inputs.clone(), new: written.to_vec() });
            // If the disk still refuses, whoever changes the set next finds out.
            let _ = self.finish(shared, &mut changing);
            return Err(error);
        }
        self.swap(&claim.inputs, written);
        Ok(Replaced::Done)
    }

    /// Does what compactions left undone, if they did and nobody is changing the set.
    pub(crate) fn tidy(&self, shared: &Shared) -> Result<()> {
        let Some(mut changing) = self.changing.try_lock() else { return Ok(()) };
        changing.files |= self.compaction.take_left_files();
        let is_tidy = changing.replacing.is_empty() && !changing.files;
        if is_tidy || self.is_dropped() { Ok(()) } else { self.finish(shared, &mut changing) }
    }

    fn swap(&self, old: &[Arc<SsTable>], new: &[Arc<SsTable>]) {
        self.view.rcu(|view| view.with_replaced(old, new));
        self.compaction.changed();
    }

    /// Finds out by the SSTables that a recovered folder holds whether replacements of which it was not known count.
    pub(super) fn settle(&self, changing: &mut Unfinished, found: &BTreeSet<Descriptor>) {
        for Replacing { old, new } in std::mem::take(&mut changing.replacing) {
            let any = |of: &[Arc<SsTable>]| of.iter().any(|sstable| found.contains(sstable.descriptor()));
            // Recovery removes the one or the other; where nothing was left to write, only the old ones can tell.
            if any(&new) || (new.is_empty() && !any(&old)) {
                self.swap(&old, &new);
            }
            self.compaction.release(&old);
        }
    }

    /// Removes the folder of a dropped table if nothing is left in it. The drop does so, and a compaction that was under way.
    pub(crate) fn remove_empty_folder(&self, shared: &Shared) -> Result<()> {
        let disk = &shared.host.disk;
        if !disk.is_dir(&self.folder) || !disk.list(&self.folder).is_ok_and(|left| left.is_empty()) {
            return Ok(());
        }
        match disk.remove_dir(&self.folder) {
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io("remove", &self.folder)),
        }
    }
}

/// Notes an SSTable as going, with the number of its files among those of its folder.
pub(super) fn note_removed(
    transaction: &mut TransactionLog,
    descriptor: &Descriptor,
    files: &[PathBuf],
) -> Result<()> {
    let prefix = descriptor.prefix();
    let name = |path: &&PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&*prefix))
    };
    Ok(transaction.remove(descriptor, files.iter().filter(name).count(), 0)?)
}
