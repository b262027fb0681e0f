//! Adds the SSTables that an import has staged to a table, and keeps the imports that failed half-way until they are
//! finished.
//!
//! A part of an import that waits is known to the table (`Unfinished::imports`) and to its view (`awaits_files`): nothing
//! is purged that its files could bring back. TRUNCATE and DROP remove its files first. It is tried again by the
//! database (`database/leftovers.rs`), and by the next start.

use super::TableStore;
use super::staged_files::{link_all, retire};
use super::store::{Unfinished, open_sstable};
use super::view::View;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::Operation;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The part of an import that belongs to one table.
#[derive(Clone, Debug)]
pub(crate) struct ImportPart {
    /// The folder with its files, in the `.ready` folder of the import.
    pub(crate) from: PathBuf,
    pub(crate) descriptors: Vec<Descriptor>,
    /// Whether the SSTables are in the view already, and only the clean-up is left.
    pub(crate) is_added: bool,
}

/// Why a part could not be added.
pub(crate) struct NotAdded {
    pub(crate) error: Error,
    /// Whether the table is as before, and does not know of the part.
    pub(crate) is_undone: bool,
}

impl TableStore {
    /// Links the files of a part into the table's folder, adds the SSTables to the view, and removes the part's folder. If
    /// that fails half-way and cannot be undone, the part waits.
    pub(crate) fn add_imported(&self, env: &Env, mut part: ImportPart) -> std::result::Result<(), NotAdded> {
        let mut changing = self.changing.lock();
        if let Err(error) = self.finish(env, &mut changing) {
            return Err(NotAdded { error, is_undone: true });
        }
        let added = Error::contain(|| self.add(env, &mut changing, &mut part, &mut || Ok(())));
        let Err(error) = added else { return Ok(()) };
        let is_undone = !part.is_added && self.finish(env, &mut changing).is_ok();
        if !is_undone {
            self.wait_for(&mut changing, part);
        }
        Err(NotAdded { error, is_undone })
    }

    /// Makes a part wait that was not tried.
    pub(crate) fn await_import(&self, part: ImportPart) {
        self.wait_for(&mut self.changing.lock(), part);
    }

    fn wait_for(&self, changing: &mut Unfinished, part: ImportPart) {
        changing.imports.push(part);
        self.set_awaits_files(true);
    }

    fn set_awaits_files(&self, awaits_files: bool) {
        self.view.rcu(|view| View { awaits_files, ..View::clone(view) });
    }

    /// Whether a part of an import waits. An index built from the present rows would be incomplete then.
    pub(crate) fn awaits_files(&self) -> bool {
        self.view.load().awaits_files
    }

    /// Tries the waiting parts again, in their order. Returns the folders of those that are finished. `announce` is called
    /// before SSTables are added to the view.
    ///
    /// # Errors
    /// The first failure. That part and the later ones go on waiting.
    pub(crate) fn retry_imports(
        &self,
        env: &Env,
        announce: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<PathBuf>> {
        let mut changing = self.changing.lock();
        let mut finished = Vec::new();
        self.finish(env, &mut changing)?;
        while let Some(mut part) = changing.imports.first().cloned() {
            let added = Error::contain(|| self.add(env, &mut changing, &mut part, announce));
            if let Some(first) = changing.imports.first_mut() {
                first.is_added = part.is_added;
            }
            if let Err(error) = added {
                // Undoes what it can; the next change of the table does the rest.
                let _ = self.finish(env, &mut changing);
                return Err(error);
            }
            finished.push(changing.imports.remove(0).from);
        }
        self.set_awaits_files(false);
        Ok(finished)
    }

    /// Removes the files of the parts that waited when the table was emptied, durably.
    pub(super) fn abandon_imports(&self, env: &Env, changing: &mut Unfinished) -> Result<()> {
        while changing.given_up > 0 {
            if let Some(part) = changing.imports.first() {
                retire(&*env.host.disk, &part.from)?;
                changing.imports.remove(0);
            }
            changing.given_up -= 1;
        }
        self.set_awaits_files(!changing.imports.is_empty());
        Ok(())
    }

    fn add(
        &self,
        env: &Env,
        changing: &mut Unfinished,
        part: &mut ImportPart,
        announce: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let table = self.table();
        let disk = &env.host.disk;
        // Its folder is gone only if the import was taken back by name and not for certain (`import/commit.rs`).
        let is_gone = !part.is_added && !disk.is_dir(&part.from);
        if self.is_dropped() || part.descriptors.is_empty() || is_gone {
            return retire(&**disk, &part.from);
        }
        if !part.is_added {
            make_folder_below(&**disk, &env.dir, &self.folder)?;
            changing.files = true;
            let mut transaction = self.begin(env, Operation::Write);
            let all: BTreeSet<Descriptor> = part.descriptors.iter().copied().collect();
            link_all(&mut transaction, disk, (&part.from, &self.folder), &all)?;
            transaction.commit()?;
            transaction.finish()?;
            let mut opened = Vec::new();
            for descriptor in &part.descriptors {
                opened.push(open_sstable(env, &table, &self.folder, *descriptor)?);
            }
            announce()?;
            // The files are committed and open, so they belong to the table.
            changing.files = false;
            part.is_added = true;
            self.view.rcu(|view| view.with_replaced(&[], &opened));
            self.compaction.changed();
            env.compactors.wake();
        }
        // Its rows are visible; and if the process dies before the next step, the next start logs the import.
        if let Some(log) = &env.log {
            log.note_import(table.id, part.descriptors.len())?;
        }
        retire(&**disk, &part.from)
    }
}

/// A store and its part of an import.
pub(crate) type ForTable = (Arc<TableStore>, ImportPart);
