//! Selects the folder to import if a table was dropped and created again under its name: each of the two has an id and
//! a folder.
//!
//! An import calls this before it reads a schema. A node uses the folder whose id is in its schema (`Directories`), and
//! keeps folders of dropped tables as long as they contain snapshots. An import does the same if the node's schema is
//! available; it never mixes the rows of two tables. An id of a table in this database takes precedence: a node's
//! schema on disk is only what was flushed, and the node may be this server.

use helenus_engine::import::{ImportError, ImportSource};
use helenus_model::schema::{Schema, TableId};
use std::collections::BTreeMap;

/// Folders and their ids by keyspace and table, for tables with more than one id.
type FoldersByTable = BTreeMap<(String, String), Vec<(TableId, String)>>;

/// Whether there are folders with different ids for one table name.
pub(super) fn has_several_ids(sources: &[ImportSource]) -> bool {
    !rivals(sources).is_empty()
}

/// Removes the folders of dropped tables from the sources and notes what is not imported. `present` is this database's
/// schema, `node` the schema of the node that the folders belong to.
///
/// # Errors
/// Folders of several tables with one name if neither schema has the id of one of them.
pub(super) fn keep_current_folders(
    (present, node): (&Schema, Option<&Schema>),
    sources: &mut Vec<ImportSource>,
    notes: &mut Vec<String>,
) -> Result<(), ImportError> {
    let mut problems = Vec::new();
    for ((keyspace, table), rivals) in rivals(sources) {
        let id_in = |schema: &Schema| schema.table(&keyspace, &table).map(|table| table.id);
        let living = node.and_then(id_in);
        let mut known = [id_in(present), living].into_iter().flatten();
        if let Some(living) = known.find(|known| rivals.iter().any(|(id, _)| id == known)) {
            let is_of_it = |source: &ImportSource| source.keyspace == keyspace && source.table == table;
            drop_others(sources, notes, |source| is_of_it(source) && source.id != Some(living));
            continue;
        }
        let folders: Vec<&str> = rivals.iter().map(|(_, folder)| &**folder).collect();
        let why = match (node, living) {
            (None, _) => "no system_schema stands beside them to tell which one is living".to_owned(),
            (_, None) => "the node's schema has no table of that name".to_owned(),
            (_, Some(id)) => format!("the node's schema has another one, of id {}", id.0.simple()),
        };
        problems.push(format!(
            "{}: {} tables were called {keyspace}.{table}, and {why}; import the one that you want by the name of its folder",
            folders.join(", "),
            folders.len()
        ));
    }
    if problems.is_empty() { Ok(()) } else { Err(ImportError::Refused { problems }) }
}

/// Removes folders whose id differs from that in the schema.
pub(super) fn drop_older_ids(
    (present, node): (&Schema, &Schema),
    sources: &mut Vec<ImportSource>,
    notes: &mut Vec<String>,
) {
    drop_others(sources, notes, |source| {
        let id_in = |of: &Schema| of.table(&source.keyspace, &source.table).map(|table| table.id);
        let wanted = id_in(node);
        source.id.is_some()
            && wanted.is_some()
            && source.id != wanted
            && source.id != id_in(present)
            && source.schema.is_none()
    });
}

fn drop_others(
    sources: &mut Vec<ImportSource>,
    notes: &mut Vec<String>,
    is_other: impl Fn(&ImportSource) -> bool,
) {
    sources.retain(|source| {
        let is_other = is_other(source);
        if is_other && !source.sstables.is_empty() {
            let folder = source.folder.display();
            notes.push(format!("not imported: {folder} is of an earlier table of that name"));
        }
        !is_other
    });
}

fn rivals(sources: &[ImportSource]) -> FoldersByTable {
    let mut found = FoldersByTable::new();
    for source in sources {
        let Some(id) = source.id else { continue };
        let of = found.entry((source.keyspace.clone(), source.table.clone())).or_default();
        if of.iter().all(|(other, _)| *other != id) {
            of.push((id, source.folder.display().to_string()));
        }
    }
    found.retain(|_, ids| ids.len() > 1);
    found
}
