//! Imports SSTables that somebody has put into a table's own folder while the server runs, as for `nodetool refresh`.
//!
//! They are imported from there and then removed there. Before that they are unsafe: a start adds them to the table,
//! and the clean-up of a failed change may remove them. An import from another folder is safer.

use super::imports::Imports;
use super::{ImportError, ImportOptions, ImportProgress, ImportTable};
use crate::error::Error;
use crate::table::TableStore;
use helenus_host::Disk;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::invalid_prefixes;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Imports<'_> {
    /// Imports the SSTables in a table's folder that do not belong to the table. Returns their number and the bytes of
    /// their data.
    ///
    /// # Errors
    /// Problems of one of them; failures of the disk.
    pub fn refresh(&self, table: &Arc<Table>, progress: &ImportProgress) -> Result<(u64, u64), ImportError> {
        let shared = &self.database.shared;
        let disk = &shared.host.disk;
        let store = shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        if !disk.is_dir(store.folder()) {
            return Ok((0, 0));
        }
        let placed = store.with_stable_files(|_| store.placed(&**disk))?;
        if placed.is_empty() {
            return Ok((0, 0));
        }
        let sstables = placed.iter().map(|descriptor| (store.folder().to_owned(), *descriptor)).collect();
        let import = ImportTable { table: table.clone(), sstables };
        let staged = self.stage(disk, &[import], ImportOptions::default(), progress)?;
        let imported = self.commit(staged)?;
        store.with_stable_files(|_| store.remove_placed(&**disk, &placed))?;
        Ok((placed.len() as u64, imported.bytes))
    }
}

impl TableStore {
    /// The SSTables of the folder that do not belong to the table. Called while the set of SSTables cannot change.
    fn placed(&self, disk: &dyn Disk) -> Result<BTreeSet<Descriptor>, Error> {
        let useless = invalid_prefixes(disk, self.folder())?;
        let files = disk.list(self.folder()).map_err(Error::io("list", self.folder()))?;
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        let mut placed = BTreeSet::new();
        for name in names.filter(|name| !useless.iter().any(|prefix| name.starts_with(&**prefix))) {
            match Descriptor::parse(name) {
                Some((descriptor, component)) if component == Component::Data.name() => {
                    placed.insert(descriptor);
                }
                _ => {}
            }
        }
        // Must come after the folder was listed: a compaction's output is registered before its first file exists.
        for descriptor in self.compaction.outputs() {
            placed.remove(&descriptor);
        }
        let view = self.view();
        view.sstables.iter().for_each(|sstable| _ = placed.remove(sstable.descriptor()));
        view.unreadable.iter().filter_map(|one| one.descriptor).for_each(|one| _ = placed.remove(&one));
        Ok(placed)
    }

    fn remove_placed(&self, disk: &dyn Disk, placed: &BTreeSet<Descriptor>) -> Result<(), Error> {
        for path in disk.list(self.folder()).map_err(Error::io("list", self.folder()))? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if placed.iter().any(|descriptor| name.starts_with(&*descriptor.prefix())) {
                disk.remove(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}
