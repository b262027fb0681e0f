//! Adds the SSTables that an import has staged to a table.

use super::TableStore;
use super::staged_files::{link_all, retire};
use super::store::open_sstable;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::Operation;
use std::collections::BTreeSet;
use std::path::Path;

impl TableStore {
    /// Links the files of a folder into the table's folder, adds the SSTables to the view, and removes the first
    /// folder.
    pub(crate) fn add_imported(&self, env: &Env, from: &Path, descriptors: &[Descriptor]) -> Result<()> {
        let mut changing = self.changing.lock();
        let table = self.table();
        if self.is_dropped() {
            let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
            return Err(Error::UnknownTable { keyspace, table });
        }
        self.finish(env, &mut changing)?;
        let disk = &env.host.disk;
        if !descriptors.is_empty() {
            make_folder_below(&**disk, &env.dir, &self.folder)?;
            changing.files = true;
            let mut transaction = self.begin(env, Operation::Write);
            let all: BTreeSet<Descriptor> = descriptors.iter().copied().collect();
            link_all(&mut transaction, disk, (from, &self.folder), &all)?;
            transaction.commit()?;
            transaction.finish()?;
            let mut opened = Vec::new();
            for descriptor in descriptors {
                opened.push(open_sstable(env, &table, &self.folder, *descriptor)?);
            }
            // The files are committed and open, so they belong to the table. If one cannot be opened, the next start
            // links the SSTables again and reports the error.
            changing.files = false;
            self.view.rcu(|view| view.with_replaced(&[], &opened));
            self.compaction.changed();
            env.compactors.wake();
            // Its rows are visible; and if the process dies before the next step, the next start logs the import.
            if let Some(log) = &env.log {
                log.note_import(table.id, descriptors.len())?;
            }
        }
        retire(&**disk, from)
    }
}
