//! Takes SSTables into a table that were gathered for an import.

use super::TableStore;
use super::store::open_sstable;
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::import::{link_all, retire};
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::Operation;
use std::collections::BTreeSet;
use std::path::Path;

impl TableStore {
    /// Links the files of a folder into the table's, puts them into the view, and removes the folder.
    pub(crate) fn take_in(&self, shared: &Shared, from: &Path, descriptors: &[Descriptor]) -> Result<()> {
        let mut changing = self.changing.lock();
        let table = self.table();
        if self.is_dropped() {
            let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
            return Err(Error::UnknownTable { keyspace, table });
        }
        self.finish(shared, &mut changing)?;
        let disk = &shared.host.disk;
        if !descriptors.is_empty() {
            make_folder_below(&**disk, &shared.options.dir, &self.folder)?;
            changing.files = true;
            let mut transaction = self.begin(shared, Operation::Write);
            let all: BTreeSet<Descriptor> = descriptors.iter().copied().collect();
            link_all(&mut transaction, disk, (from, &self.folder), &all)?;
            transaction.commit()?;
            transaction.finish()?;
            let mut opened = Vec::new();
            for descriptor in descriptors {
                opened.push(open_sstable(shared, &table, &self.folder, *descriptor)?);
            }
            // Committed, and so the table's, even if one could not be opened: then the next start says what is wrong.
            changing.files = false;
            self.view.rcu(|view| view.with_replaced(&[], &opened));
            self.compaction.changed();
            shared.compactions.wake();
        }
        retire(&**disk, from)
    }
}
