//! Snapshots in Cassandra's form: links, `manifest.json` and `schema.cql`.

use std::sync::Arc;

use helenus_cql::LocalBackend;
use helenus_engine::{
    Database, FoundSnapshot, SNAPSHOT_MANIFEST, TakenSnapshot, is_snapshot_name, is_system_keyspace,
};
use helenus_model::schema::Table;
use helenus_model::types::write_instant;
use serde::{Deserialize, Serialize};

use super::answer::SnapshotLine;
use super::desk::Desk;
use super::request::Which;

/// `manifest.json` (`SnapshotManifest`).
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    files: Vec<String>,
    created_at: Option<String>,
    expires_at: Option<String>,
    #[serde(default)]
    ephemeral: bool,
}

/// Takes a snapshot of the tables that are named, or of all.
pub(super) fn take(desk: &Desk, name: &str, of: &[Which], flush: bool) -> Result<Vec<SnapshotLine>, String> {
    if !is_snapshot_name(name) {
        return Err(format!(
            "a snapshot cannot be named {name:?}: a name has no /, \\ or :, and at most 255 bytes"
        ));
    }
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for which in of {
        tables.extend(desk.tables(which)?);
    }
    if of.is_empty() {
        // Our tables of the system hold nothing that a restore could use: schema.cql says all.
        tables = desk.tables(&Which::default())?;
        tables.retain(|table| !is_system_keyspace(&table.keyspace));
    }
    let database = &desk.database;
    let taken = database.snapshot(&tables, name, flush).map_err(|error| error.to_string())?;
    let mut created = String::new();
    let now_us = database.host().clock.wall_us();
    write_instant(
        now_us.div_euclid(1_000_000),
        (now_us.rem_euclid(1_000_000) / 1000 * 1_000_000) as u32,
        &mut created,
    );
    taken.iter().try_for_each(|one| describe(database, one, &created))?;
    let mut lines = list(database)?;
    let is_of_it = |line: &SnapshotLine| {
        line.name == name
            && taken.iter().any(|one| *one.table.keyspace == *line.keyspace && *one.table.name == *line.table)
    };
    lines.retain(is_of_it);
    Ok(lines)
}

fn describe(database: &Database, taken: &TakenSnapshot, created_at: &str) -> Result<(), String> {
    let schema = database.schema();
    let Some(keyspace) = schema.keyspaces.get(&taken.table.keyspace) else { return Ok(()) };
    let manifest = Manifest {
        files: taken.data_files.clone(),
        created_at: Some(created_at.to_owned()),
        expires_at: None,
        ephemeral: false,
    };
    let manifest = serde_json::to_string_pretty(&manifest).map_err(|error| error.to_string())?;
    let statements = LocalBackend::table_text(keyspace, &taken.table);
    let write = |name: &str, text: &str| {
        database.add_to_export(&taken.folder.join(name), text).map_err(|error| error.to_string())
    };
    write("schema.cql", &statements)?;
    write(SNAPSHOT_MANIFEST, &manifest)
}

/// The snapshots there are.
pub(super) fn list(database: &Database) -> Result<Vec<SnapshotLine>, String> {
    let found = database.snapshots().map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(line).collect())
}

fn line(found: FoundSnapshot) -> SnapshotLine {
    let manifest = found.manifest.as_deref().and_then(|text| serde_json::from_str::<Manifest>(text).ok());
    let (created_at, expires_at) =
        manifest.map_or((None, None), |found| (found.created_at, found.expires_at));
    SnapshotLine {
        name: found.name,
        keyspace: found.keyspace,
        table: found.table,
        folder: found.folder,
        bytes: found.bytes,
        bytes_alone: found.bytes_alone,
        created_at,
        expires_at,
    }
}

/// Removes snapshots; those that were.
pub(super) fn clear(
    database: &Database,
    name: Option<&str>,
    keyspaces: &[String],
    before_ms: Option<i64>,
) -> Result<Vec<SnapshotLine>, String> {
    let schema = database.schema();
    if let Some(unknown) = keyspaces.iter().find(|name| !schema.keyspaces.contains_key(name.as_str())) {
        let dropped = database.snapshots().map_err(|error| error.to_string())?;
        if !dropped.iter().any(|snapshot| snapshot.keyspace == *unknown) {
            return Err(format!("Keyspace {unknown} does not exist"));
        }
    }
    let mut removed = Vec::new();
    for found in database.snapshots().map_err(|error| error.to_string())? {
        let of_keyspace = keyspaces.is_empty() || keyspaces.contains(&found.keyspace);
        if !of_keyspace || name.is_some_and(|name| *name != *found.name) {
            continue;
        }
        let told = line(found.clone());
        // Without a manifest nobody knows how old it is: it stays, where age is asked for.
        let is_old = |before_ms: i64| {
            told.created_at.as_deref().and_then(milliseconds).is_some_and(|at| at < before_ms)
        };
        if before_ms.is_none_or(is_old) {
            database.clear_snapshot(&found).map_err(|error| error.to_string())?;
            removed.push(told);
        }
    }
    Ok(removed)
}

/// A moment as a manifest has it, milliseconds since 1970.
fn milliseconds(text: &str) -> Option<i64> {
    use helenus_model::types::{CqlType, parse_text};
    let bytes = parse_text(&CqlType::Timestamp, text).ok()?;
    bytes.try_into().ok().map(i64::from_be_bytes)
}
