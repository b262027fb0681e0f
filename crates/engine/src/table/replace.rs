//! The commit of a compaction: replaces a table's old SSTables by new ones in one step.

use super::TableStore;
use super::compaction_state::Claim;
use super::indexed_files::Added;
use super::store::{Replacing, Unfinished, open_sstable};
use crate::env::Env;
use crate::error::{Error, Result};
use helenus_model::schema::Table;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::TransactionLog;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of an attempt to replace SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// The new SSTables are in the view.
    Done,
    /// The table was truncated or dropped meanwhile. Nothing was changed.
    Discarded,
    /// Another operation, such as a flush, is changing the set. Nothing was changed; try again.
    Later,
}

impl TableStore {
    /// The table's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens an SSTable that was just written.
    pub(crate) fn open_written(
        &self,
        env: &Env,
        table: &Arc<Table>,
        descriptor: Descriptor,
    ) -> Result<Arc<SsTable>> {
        open_sstable(env, table, &self.folder, descriptor)
    }

    /// Records in the transaction that it removes these SSTables when it commits.
    pub(crate) fn note_removed(
        &self,
        env: &Env,
        transaction: &mut TransactionLog,
        sstables: &[Arc<SsTable>],
    ) -> Result<()> {
        let files = env.host.disk.list(&self.folder).map_err(Error::io("list", &self.folder))?;
        sstables.iter().try_for_each(|sstable| note_removed(transaction, sstable.descriptor(), &files))
    }

    /// Commits a compaction's transaction and replaces its input SSTables by the written ones in the view. The caller
    /// finishes the transaction, except when it is unknown whether the commit took effect: then the transaction is
    /// taken, and the error is returned.
    ///
    /// Does not wait for another change of the set, which may take long.
    pub(crate) fn replace(
        &self,
        env: &Env,
        claim: &Claim,
        written: &[Arc<SsTable>],
        transaction: &mut Option<TransactionLog>,
    ) -> Result<Replaced> {
        let Some(mut changing) = self.changing.try_lock() else { return Ok(Replaced::Later) };
        if self.is_dropped() || self.compaction.epoch() != claim.epoch {
            return Ok(Replaced::Discarded);
        }
        let Some(log) = transaction.as_mut() else { return Ok(Replaced::Discarded) };
        let added: Vec<Added> =
            written.iter().map(|one| (*one.descriptor(), one.known_hiding_us_max())).collect();
        let removed: Vec<Descriptor> = claim.inputs.iter().map(|one| *one.descriptor()).collect();
        let is_tidy = !changing.files && changing.replacing.is_empty();
        let change = self.begin_change((&added, &removed), is_tidy)?;
        // After a panic it is unknown as well whether the commit took effect.
        if let Err(error) = Error::contain(|| Ok(log.commit()?)) {
            self.compaction.end(log.path(), true);
            *transaction = None;
            changing.replacing.push(Replacing { old: claim.inputs.clone(), new: written.to_vec() });
            // If this fails too, the next change of the set tries again.
            let _ = self.finish(env, &mut changing);
            return Err(error);
        }
        self.swap(env, &claim.inputs, written);
        self.end_change(change);
        Ok(Replaced::Done)
    }

    /// Finishes what failed compactions left undone, unless another change of the set is under way.
    pub(crate) fn tidy(&self, env: &Env) -> Result<()> {
        let Some(mut changing) = self.changing.try_lock() else { return Ok(()) };
        changing.files |= self.compaction.take_left_files();
        let is_tidy = changing.replacing.is_empty() && !changing.files;
        if is_tidy || self.is_dropped() { Ok(()) } else { self.finish(env, &mut changing) }
    }

    /// Whether the set of SSTables is being changed, by a flush for example.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing.try_lock().is_none()
    }

    fn swap(&self, env: &Env, old: &[Arc<SsTable>], new: &[Arc<SsTable>]) {
        self.view.rcu(|view| view.with_replaced(old, new));
        env.obsolete.add(&self.table(), old);
        self.compaction.changed();
    }

    /// Decides by the SSTables in a recovered folder whether replacements with an unknown commit took effect.
    pub(super) fn settle(&self, env: &Env, changing: &mut Unfinished, found: &BTreeSet<Descriptor>) {
        for Replacing { old, new } in std::mem::take(&mut changing.replacing) {
            let any = |of: &[Arc<SsTable>]| of.iter().any(|sstable| found.contains(sstable.descriptor()));
            // Recovery has removed either the old or the new ones. If nothing was written, only the old ones can tell.
            if any(&new) || (new.is_empty() && !any(&old)) {
                self.swap(env, &old, &new);
            }
            self.compaction.release(&old);
        }
    }
}

/// Records the removal of an SSTable in the transaction, with the number of its files in the folder. `files` are those of
/// the folder, sorted.
pub(super) fn note_removed(
    transaction: &mut TransactionLog,
    descriptor: &Descriptor,
    files: &[PathBuf],
) -> Result<()> {
    let prefix = descriptor.prefix();
    let start = files.partition_point(|path| name_bytes(path) < prefix.as_bytes());
    let its = files.iter().skip(start).take_while(|path| name_bytes(path).starts_with(prefix.as_bytes()));
    let count = its.count();
    Ok(transaction.remove(descriptor, count, 0)?)
}

fn name_bytes(path: &Path) -> &[u8] {
    path.file_name().map_or(&[], |name| name.as_encoded_bytes())
}
