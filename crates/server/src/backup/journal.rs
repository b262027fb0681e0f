//! What a restore has done: `DIR/restore/<id of the backup>.json`.
//!
//! Small, written anew whole for each table, by a rename. It stays when the restore is over: one that is ordered again knows
//! by the tables' ids that they are there. In memory nothing is kept: what is cut there is gone.

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
    /// Where it is; `None` for a database in memory.
    path: Option<PathBuf>,
    entries: Entries,
}

#[derive(Default, Serialize, Deserialize)]
struct Entries {
    /// By keyspace and table with a dot between.
    tables: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    done: bool,
}

impl Journal {
    /// Opens that of a backup, or begins it. One that cannot be read is of no use and is begun anew: then tables that are
    /// there already are refused.
    pub(super) fn open(disk: &Arc<dyn Disk>, database: Option<&Path>, backup: &CheckedName) -> Journal {
        let file = CheckedName::new("a backup's journal", &format!("{backup}.json")).ok();
        let path = database.zip(file).map(|(folder, file)| folder.join("restore").join(file));
        let read = || {
            let path = path.as_ref().filter(|path| disk.exists(path))?;
            // What stands in the place of it, by somebody else's link, says nothing.
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
            // One that was cut while it wrote has left it.
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
