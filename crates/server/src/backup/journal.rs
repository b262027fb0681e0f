//! The progress of a restore: `DIR/restore/<id of the backup>.json`.
//!
//! The file is small and is replaced by a rename for each table. It stays after the restore: if the same restore is
//! ordered again, the table ids in it show which tables are done. A database in memory has no journal, because an
//! interrupted restore leaves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helenus_cql::RestoreJournal;
use helenus_engine::CheckedName;
use helenus_host::Disk;
use helenus_model::schema::{Table, TableId};
use serde::{Deserialize, Serialize};

/// The journal of one backup.
pub(super) struct Journal {
    disk: Arc<dyn Disk>,
    /// The file; `None` for a database in memory.
    path: Option<PathBuf>,
    entries: Entries,
}

#[derive(Default, Serialize, Deserialize)]
struct Entries {
    /// Keyed by keyspace and table with a dot between.
    tables: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    done: bool,
}

impl Journal {
    /// Opens or begins the journal of a backup. One that cannot be read is begun anew; then tables that exist already
    /// are refused.
    pub(super) fn open(disk: &Arc<dyn Disk>, database: Option<&Path>, backup: &CheckedName) -> Journal {
        let file = CheckedName::new("a backup's journal", &format!("{backup}.json")).ok();
        let path = database.zip(file).map(|(folder, file)| folder.join("restore").join(file));
        let read = || {
            let path = path.as_ref().filter(|path| disk.exists(path))?;
            // A link in place of the file is ignored, because another user may have made it.
            let path = Some(path).filter(|path| !disk.is_link(path))?;
            serde_json::from_str(&helenus_engine::import::read_text(&**disk, path).ok()?).ok()
        };
        let entries = read().unwrap_or_default();
        Journal { disk: Arc::clone(disk), path, entries }
    }

    fn write(&self) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let write = || {
            let folder = path.parent().unwrap_or(Path::new("."));
            self.disk.create_dir_all(folder)?;
            let text = serde_json::to_string_pretty(&self.entries).map_err(std::io::Error::other)?;
            let unfinished = path.with_extension("unfinished");
            // Left by a run that was interrupted while it wrote.
            if self.disk.exists(&unfinished) {
                self.disk.remove(&unfinished)?;
            }
            let file = self.disk.create(&unfinished)?;
            file.write_all_at(text.as_bytes(), 0)?;
            file.sync()?;
            self.disk.rename(&unfinished, path)?;
            self.disk.sync_dir(folder)
        };
        write().map_err(|error: std::io::Error| format!("cannot write {}: {error}", path.display()))
    }
}

fn name(keyspace: &str, table: &str) -> String {
    format!("{keyspace}.{table}")
}

impl RestoreJournal for Journal {
    fn earlier(&self, keyspace: &str, table: &str) -> Option<(TableId, bool)> {
        let entry = self.entries.tables.get(&name(keyspace, table))?;
        Some((TableId(uuid::Uuid::try_parse(&entry.id).ok()?), entry.done))
    }

    fn begin(&mut self, tables: &[Arc<Table>]) -> Result<(), String> {
        for table in tables {
            let entry = Entry { id: table.id.0.to_string(), done: false };
            self.entries.tables.insert(name(&table.keyspace, &table.name), entry);
        }
        self.write()
    }

    fn done(&mut self, table: &Table) -> Result<(), String> {
        if let Some(entry) = self.entries.tables.get_mut(&name(&table.keyspace, &table.name)) {
            entry.done = true;
        }
        self.write()
    }
}
