//! Restores an export or a backup: first everything is checked, then the schema is created in one change, then each
//! table gets its data, completely or not at all.
//!
//! An existing table must be empty: restored data is never mixed with other data. The `RestoreJournal` knows, by the
//! ids of the tables it created, what an interrupted run of the same restore had done. An interruption between a
//! table's data and its journal record is harmless, because importing the same SSTables again changes nothing.

use super::backend::LocalBackend;
use super::import::Additions;
use super::renames::Renames;
use super::schema_text::{ReadSchema, Reading};
use helenus_engine::import::Imports;
use helenus_engine::import::{
    FindOptions, ImportError, ImportOptions, ImportProgress, ImportSource, ImportTable, SourceDisk,
    find_sources, read_text,
};
use helenus_model::schema::{Keyspace, Schema, Table, TableId};
use std::path::PathBuf;
use std::sync::Arc;

/// A restore request.
#[derive(Clone, Debug, Default)]
pub struct RestoreRequest {
    /// The directory of the backup: `schema.cql`, and `KEYSPACE/TABLE` with SSTables.
    pub directory: PathBuf,
    /// Restricts it to this keyspace, or to this table of it; not a snapshot.
    pub find: FindOptions,
    /// New names for the restored keyspace and table.
    pub names: Renames,
    /// Import options.
    pub options: ImportOptions,
    /// Only report what would be done, and the problems.
    pub dry_run: bool,
}

/// A restored table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePart {
    /// Keyspace and name in the backup.
    pub from: (String, String),
    /// Keyspace and name here.
    pub to: (String, String),
    /// Number of SSTables.
    pub sstables: u64,
    /// Whether an earlier run had restored it.
    pub was_there: bool,
}

/// The record of earlier runs of a restore, to which this run adds.
pub trait RestoreJournal {
    /// The id of the table of this name that an earlier run filled or was about to fill, and whether it finished.
    fn earlier(&self, keyspace: &str, table: &str) -> Option<(TableId, bool)>;

    /// Records, durably, the tables that are to be filled.
    ///
    /// # Errors
    /// A description of the failure.
    fn begin(&mut self, tables: &[Arc<Table>]) -> Result<(), String>;

    /// Records, durably, that a table has its data.
    ///
    /// # Errors
    /// A description of the failure.
    fn done(&mut self, table: &Table) -> Result<(), String>;
}

/// The tables to restore, including those that were restored earlier.
struct Plan {
    parts: Vec<RestorePart>,
    imports: Vec<ImportTable>,
    additions: Additions,
}

/// A table in a backup, under the name that it gets here, and its files.
#[derive(Clone, Copy)]
struct RestoredSource<'a> {
    keyspace: &'a Keyspace,
    table: &'a Arc<Table>,
    source: &'a ImportSource,
}

impl LocalBackend {
    /// Restores the contents of a directory on `from`. The journal must be of this backup; the caller checks the files'
    /// digests.
    ///
    /// # Errors
    /// All problems, each with its file or table; nothing has changed then. Disk errors: the tables restored so far
    /// remain, and another run continues from there.
    pub fn restore(
        &self,
        from: &SourceDisk,
        request: &RestoreRequest,
        journal: &mut dyn RestoreJournal,
        progress: &ImportProgress,
    ) -> Result<Vec<RestorePart>, ImportError> {
        let text = read_text(&**from, &request.directory.join("schema.cql"))?;
        let mut read = ReadSchema::new();
        self.read_schema(&text, &mut read, &mut Reading::Strict)
            .map_err(|error| ImportError::refused(format!("schema.cql: {error}; nothing was restored")))?;
        let sources = find_sources(&**from, &request.directory, &request.find)?;
        let present = self.database().schema();
        let Plan { parts, imports, additions } =
            self.plan_restore(&present, (&read.schema, &sources), request, journal)?;
        Imports::of(self.database()).check(from, &imports, request.options, progress)?;
        if request.dry_run {
            return Ok(parts);
        }
        let tables: Vec<Arc<Table>> = imports.iter().map(|import| import.table.clone()).collect();
        journal.begin(&tables).map_err(ImportError::refused)?;
        self.add_to_schema(&additions)?;
        // All SSTables were just verified.
        let options = ImportOptions { verify: false, ..request.options };
        for import in imports {
            let table = import.table.clone();
            progress.describe(format!("restore {}.{}", table.keyspace, table.name));
            let staged = Imports::of(self.database()).stage(from, &[import], options, progress)?;
            Imports::of(self.database()).commit(staged)?;
            journal.done(&table).map_err(ImportError::refused)?;
        }
        Ok(parts)
    }

    fn plan_restore(
        &self,
        present: &Schema,
        (schema, sources): (&Schema, &[ImportSource]),
        request: &RestoreRequest,
        journal: &dyn RestoreJournal,
    ) -> Result<Plan, ImportError> {
        let mut plan = Plan { parts: Vec::new(), imports: Vec::new(), additions: Additions::default() };
        let mut problems = Vec::new();
        for source in sources {
            let Some(keyspace) = schema.keyspaces.get(source.keyspace.as_str()) else {
                problems.push(format!(
                    "{}: schema.cql makes no keyspace {}",
                    source.folder.display(),
                    source.keyspace
                ));
                continue;
            };
            if !keyspace.tables.contains_key(source.table.as_str()) {
                let (folder, table) = (source.folder.display(), &source.table);
                problems.push(format!("{folder}: schema.cql makes no table {}.{table}", keyspace.name));
                continue;
            }
            // Only this table: what was not requested is not created.
            let alone = |name: &Arc<str>, _: &mut Arc<Table>| **name == *source.table;
            let mut one = Keyspace::clone(keyspace);
            one.tables.retain(alone);
            let renamed = request.names.apply(&one);
            let Some(table) = renamed.tables.values().next() else { continue };
            let of = RestoredSource { keyspace: &renamed, table, source };
            self.plan_table(present, of, journal, &mut plan, &mut problems);
        }
        let missing = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()).find(|table| {
            let find = &request.find;
            let is_wanted = find.keyspace.as_deref().is_none_or(|wanted| wanted == &*table.keyspace)
                && find.table.as_deref().is_none_or(|wanted| wanted == &*table.name);
            is_wanted && !sources.iter().any(|of| *of.keyspace == *table.keyspace && *of.table == *table.name)
        });
        if let Some(table) = missing {
            problems.push(format!(
                "there is no folder of {}.{}, which schema.cql makes",
                table.keyspace, table.name
            ));
        }
        if problems.is_empty() { Ok(plan) } else { Err(ImportError::Refused { problems }) }
    }

    fn plan_table(
        &self,
        present: &Schema,
        of: RestoredSource<'_>,
        journal: &dyn RestoreJournal,
        plan: &mut Plan,
        problems: &mut Vec<String>,
    ) {
        let RestoredSource { keyspace, table, source } = of;
        let here = present.table(&keyspace.name, &table.name);
        let earlier = journal.earlier(&keyspace.name, &table.name);
        let earlier = here.and_then(|here| earlier.filter(|(id, _)| *id == here.id));
        // If it was emptied since, it is filled again.
        let holds = here.is_some_and(|here| !self.database().inspect().is_empty(here));
        let was_there = holds && earlier.is_some_and(|(_, is_done)| is_done);
        plan.parts.push(RestorePart {
            from: (source.keyspace.clone(), source.table.clone()),
            to: (keyspace.name.to_string(), table.name.to_string()),
            sstables: source.sstables.len() as u64,
            was_there,
        });
        let target = match here {
            Some(_) if was_there => return,
            Some(here) if earlier.is_some() || self.database().inspect().is_empty(here) => {
                problems.extend(differences(table, here));
                here.clone()
            }
            Some(here) => {
                problems.push(format!(
                    "{}.{} is here and holds data: drop or truncate it, or restore under another name with --as-keyspace or \
                     --as-table",
                    here.keyspace, here.name
                ));
                return;
            }
            None => {
                let clash = present
                    .keyspaces
                    .get(&keyspace.name)
                    .into_iter()
                    .flat_map(|present| present.tables.values());
                let clash = clash.flat_map(|other| other.indexes.keys().map(move |index| (other, index)));
                problems.extend(clash.filter(|(_, index)| table.indexes.contains_key(*index)).map(
                    |(other, index)| {
                        format!(
                            "{}.{} has an index {index}, as {} would have: drop it",
                            other.keyspace, other.name, table.name
                        )
                    },
                ));
                self.addition(present, (keyspace, table), &mut plan.additions, problems)
            }
        };
        let sstables =
            source.sstables.iter().map(|descriptor| (source.folder.clone(), *descriptor)).collect();
        plan.imports.push(ImportTable { table: target, sstables });
    }
}

/// The differences between an existing table and the backup's, because of which its files would be misread.
fn differences(wanted: &Table, here: &Table) -> Vec<String> {
    let name = format!("{}.{}", here.keyspace, here.name);
    let mut found = Vec::new();
    let flags = |table: &Table| {
        let mut flags = table.flags.clone();
        flags.sort_unstable();
        flags.join(", ")
    };
    if flags(wanted) != flags(here) {
        found.push(format!(
            "{name} has the flags [{}] here and [{}] in the backup, so its rows are stored in another way: drop the table first",
            flags(here),
            flags(wanted)
        ));
    }
    for column in wanted.columns() {
        match here.column(&column.name) {
            None => found.push(format!("{name} has no column {}, which the backup has", column.name)),
            Some(own) if own.ty != column.ty || own.kind != column.kind => {
                found.push(format!(
                    "column {} of {name} is {} here and {} in the backup",
                    own.name, own.ty, column.ty
                ));
            }
            Some(_) => {}
        }
    }
    for dropped in wanted.dropped.values() {
        let own = here.dropped.get(&dropped.name);
        if own.is_none_or(|own| own.dropped_us < dropped.dropped_us) && here.column(&dropped.name).is_none() {
            found.push(format!(
                "{name} does not know that column {} was dropped: drop the table first",
                dropped.name
            ));
        }
    }
    found
}
