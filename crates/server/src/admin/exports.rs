//! Exports: SSTables linked into a folder, with their schema.

use helenus_engine::Exports;
use std::sync::Arc;

use helenus_cql::LocalBackend;
use helenus_engine::{Database, is_system_keyspace};
use helenus_model::schema::{Keyspace, Table};

use super::answer::ExportedFiles;

/// The most names that an error message lists.
const NAMES_MAX: usize = 10;

/// Lists the existing names of `what`, a plural, for an error message.
fn there_are<'n>(what: &str, names: impl Iterator<Item = &'n Arc<str>>) -> String {
    let names: Vec<&str> = names.map(|name| &**name).collect();
    match names.split_at_checked(NAMES_MAX) {
        _ if names.is_empty() => format!("; there are no {what}"),
        Some((first, rest)) if !rest.is_empty() => format!("; there are {} and others", first.join(", ")),
        _ => format!("; there is {}", names.join(", ")),
    }
}

/// Links the SSTables of the whole database, of a keyspace or of a table into a folder of the database. Writes
/// `schema.cql` there: one for all, and one beside each table.
///
/// # Errors
/// The keyspace or table does not exist, or the disk fails.
pub fn export(
    database: &Database,
    keyspace: Option<&str>,
    table: Option<&str>,
) -> Result<ExportedFiles, String> {
    let schema = database.schema();
    let keyspaces: Vec<&Arc<Keyspace>> = match keyspace {
        Some(name) => {
            vec![schema.keyspaces.get(name).ok_or_else(|| {
                let names = schema.keyspaces.keys().filter(|name| !is_system_keyspace(name));
                format!("keyspace {name} does not exist{}", there_are("keyspaces", names))
            })?]
        }
        None => {
            schema.keyspaces.iter().filter(|(name, _)| !is_system_keyspace(name)).map(|(_, of)| of).collect()
        }
    };
    let mut tables: Vec<Arc<Table>> =
        keyspaces.iter().flat_map(|keyspace| keyspace.tables.values().cloned()).collect();
    if let (Some(keyspace), Some(name)) = (keyspace, table) {
        tables.retain(|table| *table.name == *name);
        if tables.is_empty() {
            let names = keyspaces.iter().flat_map(|keyspace| keyspace.tables.keys());
            return Err(format!("table {keyspace}.{name} does not exist{}", there_are("tables", names)));
        }
    }
    let exported = Exports::of(database).link(&tables).map_err(|error| error.to_string())?;
    let of_all: Vec<Keyspace> = keyspaces
        .iter()
        .map(|keyspace| {
            let mut of_export = Keyspace::clone(keyspace);
            of_export.tables.retain(|_, found| tables.iter().any(|table| table.id == found.id));
            of_export
        })
        .collect();
    let all: Vec<&Keyspace> = of_all.iter().collect();
    let write = |path: &std::path::Path, text: &str| {
        Exports::of(database).add_file(path, text).map_err(|error| error.to_string())
    };
    write(&exported.folder.join("schema.cql"), &LocalBackend::schema_text(&all))?;
    for keyspace in &of_all {
        for table in keyspace.tables.values() {
            let folder = exported.folder.join(&*keyspace.name).join(&*table.name);
            write(&folder.join("schema.cql"), &LocalBackend::table_text(keyspace, table))?;
        }
    }
    let count = |(keyspace, table, sstables): &(Arc<str>, Arc<str>, u64)| {
        (keyspace.to_string(), table.to_string(), *sstables)
    };
    let tables = exported.tables.iter().map(count).collect();
    // Absolute, because the tool may have another working directory.
    let folder = std::path::absolute(&exported.folder).unwrap_or(exported.folder);
    Ok(ExportedFiles { folder, tables })
}
