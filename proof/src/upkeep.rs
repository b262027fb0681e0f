//! What operators do to a table beside writing to it: other options, columns and indexes made anew, exports and imports,
//! snapshots taken back, a table dropped and restored with its schema, a clock that is set back.

use crate::judge::Judge;
use crate::table::Timing;
use crate::world::{Failure, Store, World};
use helenus_cql::{ImportRequest, LocalBackend, RestoreJournal, RestoreRequest};
use helenus_engine::CheckedName;
use helenus_engine::import::{FindOptions, ImportOptions, ImportProgress};
use helenus_engine::{Exports, Snapshots};
use helenus_model::schema::{Keyspace, TableId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl World {
    pub(crate) fn export_and_import(&mut self, table: usize) -> Result<(), Failure> {
        let name = self.tables[table].name.clone();
        let present = self.present(table)?;
        let Some(store) = self.store.take() else { return Ok(()) };
        // While an index is being built nothing is imported.
        store.machine.run_until_idle();
        let before = self.judges[table].clone();
        let links = self.links();
        let moved = move_table(&store, &present, links, |store| {
            self.judges[table].truncate();
            self.begin(0);
            store.must(&format!("TRUNCATE {name}"))?;
            self.synced();
            self.judges[table] = before;
            self.begin(0);
            Ok(())
        });
        self.store = Some(store);
        if moved? {
            self.synced();
        }
        Ok(())
    }

    pub(crate) fn remake(&mut self, table: usize, column: usize) -> Result<(), Failure> {
        let of = &self.tables[table].columns[column];
        let definition = self.tables[table].definition(column);
        let name = &self.tables[table].name;
        let (drop, add) =
            (format!("ALTER TABLE {name} DROP {}", of.name), format!("ALTER TABLE {name} ADD {definition}"));
        self.judges[table].forget(column);
        // What the snapshot has of it was written before the column went.
        if let Some((_, kept)) = &mut self.snapshots[table] {
            kept.forget(column);
        }
        self.judges[table].missing = Some(column);
        self.begin(0);
        self.store()?.must(&drop)?;
        self.judges[table].missing = None;
        self.begin(0);
        self.store()?.must(&add)?;
        Ok(())
    }

    pub(crate) fn reindex(&mut self, table: usize, index: usize) -> Result<(), Failure> {
        let of = &self.tables[table].indexes[index];
        let store = self.store()?;
        store.must(&format!("DROP INDEX {}", of.name))?;
        store.must(&self.tables[table].index_statement(of)).map(drop)
    }

    pub(crate) fn alter(&mut self, table: usize, options: &str) -> Result<(), Failure> {
        self.begin(0);
        self.store()?.must(&format!("ALTER TABLE {} WITH {options}", self.tables[table].name)).map(drop)
    }

    /// Server timestamps go on from the last one until the clock is back where it was, and so does the time that statements bring.
    pub(crate) fn set_clock_back(&mut self, seconds: u64) -> Result<(), Failure> {
        let store = self.store()?;
        store.database().next_timestamp().map_err(|error| format!("no timestamp: {error}"))?;
        store.machine.set_wall_us(store.machine.host().clock.wall_us() - seconds as i64 * 1_000_000);
        if self.setup.timing == Timing::Client {
            let kept = self.snapshots.iter_mut().flatten().map(|(_, judge)| judge);
            self.judges.iter_mut().chain(kept).for_each(Judge::trust_no_clock);
        }
        Ok(())
    }

    pub(crate) fn snapshot(&mut self, table: usize) -> Result<(), Failure> {
        let present = self.present(table)?;
        let folder = snapshot_of(self.store()?, &present)?;
        self.snapshots[table] = Some((folder, self.judges[table].clone()));
        Ok(())
    }

    pub(crate) fn take_back(&mut self, table: usize) -> Result<(), Failure> {
        let Some((folder, kept)) = self.snapshots[table].clone() else { return Ok(()) };
        let name = self.tables[table].name.clone();
        self.store()?.machine.run_until_idle();
        self.empty_for(table, kept, &format!("TRUNCATE {name}"))?;
        if import_snapshot(self.store()?, &folder, &name, self.links())? {
            self.synced();
        }
        Ok(())
    }

    pub(crate) fn restore(&mut self, table: usize) -> Result<(), Failure> {
        let name = self.tables[table].name.clone();
        let present = self.present(table)?;
        let before = self.judges[table].clone();
        let links = self.links();
        let Some(store) = self.store.take() else { return Ok(()) };
        store.machine.run_until_idle();
        // Its snapshots go with its id; they are still there, but what they hold is another table's.
        self.snapshots[table] = None;
        let restored = restore_table(&store, &present, links, |store| {
            self.judges[table].is_absent = true;
            self.begin(0);
            store.must(&format!("DROP TABLE {name}"))?;
            self.synced();
            let mut empty = before.clone();
            empty.truncate();
            self.judges[table] = empty;
            self.begin(0);
            self.judges[table] = before;
            self.begin(0);
            Ok(())
        });
        self.store = Some(store);
        restored?;
        self.synced();
        Ok(())
    }

    /// Whether files are linked or copied.
    fn links(&self) -> bool {
        self.setup.seed.is_multiple_of(2)
    }

    /// Empties a table by a statement before it gets what `then` says.
    fn empty_for(&mut self, table: usize, then: Judge, statement: &str) -> Result<(), Failure> {
        self.judges[table].truncate();
        self.begin(0);
        self.store()?.must(statement)?;
        self.synced();
        let places = self.judges[table].places();
        self.judges[table] = then;
        self.judges[table].go_on_from(places);
        self.begin(0);
        Ok(())
    }
}

/// Every restore of these is the first of its backup, and is not cut.
struct NoJournal;

impl RestoreJournal for NoJournal {
    fn earlier(&self, _keyspace: &str, _table: &str) -> Option<(TableId, bool)> {
        None
    }

    fn begin(&mut self, _tables: &[Arc<helenus_model::schema::Table>]) -> Result<(), String> {
        Ok(())
    }

    fn done(&mut self, _table: &helenus_model::schema::Table) -> Result<(), String> {
        Ok(())
    }
}

/// Exports a table, lets somebody empty it, and imports what was exported. Whether there was something to import.
pub(crate) fn move_table(
    store: &Store,
    table: &Arc<helenus_model::schema::Table>,
    links: bool,
    empty: impl FnOnce(&Store) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let name = &table.name;
    let exported = Exports::of(store.database())
        .link(std::slice::from_ref(table))
        .map_err(|error| format!("export of {name}: {error}"))?;
    empty(store)?;
    if exported.tables.iter().all(|(_, _, count)| *count == 0) {
        return Ok(false);
    }
    import(store, &exported.folder.join("ks").join(&**name), name, links)
}

/// Exports a table with its schema, lets somebody drop it, and restores it from there. What is restored has another id
/// than what was exported: it goes by names.
pub(crate) fn restore_table(
    store: &Store,
    table: &Arc<helenus_model::schema::Table>,
    links: bool,
    drop_table: impl FnOnce(&Store) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let name = &table.name;
    let exported = Exports::of(store.database()).link(std::slice::from_ref(table));
    let exported = exported.map_err(|error| format!("export of {name}: {error}"))?;
    let schema = store.database().schema();
    let mut of_it =
        schema.keyspaces.get("ks").map(|keyspace| Keyspace::clone(keyspace)).ok_or("no keyspace")?;
    of_it.tables.retain(|of, _| *of == *name);
    let texts = [
        (exported.folder.join("schema.cql"), LocalBackend::schema_text(&[&of_it])),
        (
            exported.folder.join("ks").join(&**name).join("schema.cql"),
            LocalBackend::table_text(&of_it, table),
        ),
    ];
    for (path, text) in texts {
        let added = Exports::of(store.database()).add_file(&path, &text);
        added.map_err(|error| format!("schema of {name}: {error}"))?;
    }
    drop_table(store)?;
    let request = RestoreRequest {
        directory: exported.folder,
        find: FindOptions {
            keyspace: Some("ks".into()),
            table: Some(name.to_string()),
            ..FindOptions::default()
        },
        options: ImportOptions { link: links, ..ImportOptions::default() },
        ..RestoreRequest::default()
    };
    let restored = store.backend.restore(
        &store.machine.host().disk,
        &request,
        &mut NoJournal,
        &ImportProgress::default(),
    );
    restored.map_err(|error| format!("restore of {name}: {error}"))?;
    Ok(())
}

/// Takes a snapshot of a table: its folder.
pub(crate) fn snapshot_of(
    store: &Store,
    table: &Arc<helenus_model::schema::Table>,
) -> Result<PathBuf, Failure> {
    let name = store.database().next_timestamp().map_err(|error| format!("no timestamp: {error}"))?;
    let name = CheckedName::new("a snapshot", &format!("s{name}")).map_err(|error| error.to_string())?;
    let taken = Snapshots::of(store.database()).take(std::slice::from_ref(table), &name, true);
    let taken = taken.map_err(|error| format!("snapshot of {}: {error}", table.name))?;
    Ok(taken.into_iter().next().map(|taken| taken.folder).ok_or("no snapshot")?)
}

/// Imports what a snapshot holds. Whether it holds anything: the snapshot of an empty table has nothing to import, and an
/// import says so.
pub(crate) fn import_snapshot(
    store: &Store,
    folder: &Path,
    table: &str,
    links: bool,
) -> Result<bool, Failure> {
    let files = store.machine.host().disk.list(folder);
    let files = files.map_err(|error| format!("snapshot of {table}: {error}"))?;
    let has_rows = files.iter().any(|path| path.to_string_lossy().ends_with("-Data.db"));
    Ok(has_rows && import(store, folder, table, links)?)
}

/// Imports a folder of SSTables into a table. Whether there was something to import.
fn import(store: &Store, folder: &Path, table: &str, links: bool) -> Result<bool, Failure> {
    let find =
        FindOptions { keyspace: Some("ks".into()), table: Some(table.to_owned()), ..FindOptions::default() };
    let request = ImportRequest {
        directory: folder.to_owned(),
        find,
        options: ImportOptions { link: links, ..ImportOptions::default() },
        ..ImportRequest::default()
    };
    let imported = store.backend.import(&store.machine.host().disk, &request, &ImportProgress::default());
    let report = imported.map_err(|error| format!("import of {table}: {error}"))?;
    Ok(report.tables.iter().any(|(_, _, sstables)| *sstables > 0))
}
