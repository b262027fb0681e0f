//! SSTables that somebody has put into a table's own folder while the server runs, as `nodetool refresh` wants them.
//!
//! They are imported from there and then removed there. Until then nothing knows them: a start takes them for the table's,
//! and a change that failed may take them for its own remains. Whoever can gives them to an import from elsewhere.

use super::{ImportError, ImportOptions, ImportProgress, ImportTable};
use crate::database::Database;
use crate::error::Error;
use crate::table::TableStore;
use helenus_host::Disk;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::transaction_log::useless_prefixes;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Database {
    /// Takes in the SSTables that stand in a table's folder and are not the table's; how many, and bytes of their data.
    ///
    /// # Errors
    /// What speaks against one of them; failures of the disk.
    pub fn refresh(&self, table: &Arc<Table>, progress: &ImportProgress) -> Result<(u64, u64), ImportError> {
        let shared = &self.shared;
        let disk = &shared.host.disk;
        let store = shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        if !disk.is_dir(store.folder()) {
            return Ok((0, 0));
        }
        let placed = store.hold_still(|_| store.placed(&**disk))?;
        if placed.is_empty() {
            return Ok((0, 0));
        }
        let sstables = placed.iter().map(|descriptor| (store.folder().to_owned(), *descriptor)).collect();
        let import = ImportTable { table: table.clone(), sstables };
        let staged = self.stage_import(disk, &[import], ImportOptions::default(), progress)?;
        let imported = self.commit_import(staged)?;
        store.hold_still(|_| store.remove_placed(&**disk, &placed))?;
        Ok((placed.len() as u64, imported.bytes))
    }
}

impl TableStore {
    /// The SSTables of the folder that nobody knows. To be called while the set of SSTables stands still.
    fn placed(&self, disk: &dyn Disk) -> Result<BTreeSet<Descriptor>, Error> {
        let useless = useless_prefixes(disk, self.folder())?;
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
        // After the folder was listed: an SSTable that a compaction writes is among these before its first file is there.
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
