//! Snapshots in Cassandra's form: links, `manifest.json` and `schema.cql`.

use helenus_engine::Exports;
use helenus_engine::Snapshots;
use std::cell::Cell;
use std::sync::Arc;

use helenus_cql::LocalBackend;
use helenus_engine::import::is_of_node;
use helenus_engine::{CheckedName, Database, FoundSnapshot, SNAPSHOT_MANIFEST, TakenSnapshot};
use helenus_model::schema::Table;
use helenus_model::types::write_instant;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::answer::SnapshotLine;
use super::dispatcher::Dispatcher;
use super::request::TableSelection;
use crate::backup::hex;

/// The shortest lifetime of a snapshot (`cassandra.snapshot.min_allowed_ttl_seconds`).
const TTL_MIN_S: u32 = 60;

/// `manifest.json` (`SnapshotManifest`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Manifest {
    files: Vec<String>,
    created_at: Option<String>,
    expires_at: Option<String>,
    #[serde(default)]
    ephemeral: bool,
    /// SHA-256 of the other fields, written only by Helenus and ignored by Cassandra. With it, a snapshot whose date
    /// was changed by a flipped bit is not removed for its age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl Manifest {
    fn digest(&self) -> serde_json::Result<String> {
        let bare = Manifest { sha256: None, ..self.clone() };
        Ok(hex(&Sha256::digest(serde_json::to_vec(&bare)?)))
    }

    /// The text of the manifest's file.
    fn text(self) -> serde_json::Result<String> {
        let sha256 = Some(self.digest()?);
        serde_json::to_string_pretty(&Manifest { sha256, ..self })
    }

    /// Parses a manifest; `None` if it is damaged.
    fn parse(text: &str) -> Option<Manifest> {
        let manifest: Manifest = serde_json::from_str(text).ok()?;
        let is_as_written =
            manifest.sha256.is_none() || manifest.sha256.as_deref() == manifest.digest().ok().as_deref();
        is_as_written.then_some(manifest)
    }
}

/// Takes a snapshot of the given tables, or of all.
pub(super) fn take(
    dispatcher: &Dispatcher,
    (name, of): (&str, &[TableSelection]),
    flush: bool,
    ttl_s: Option<u32>,
) -> Result<Vec<SnapshotLine>, String> {
    if ttl_s.is_some_and(|ttl_s| ttl_s < TTL_MIN_S) {
        return Err(format!("ttl for snapshot must be at least {TTL_MIN_S} seconds"));
    }
    let checked = CheckedName::new("a snapshot", name).map_err(|error| error.to_string())?;
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for which in of {
        tables.extend(dispatcher.tables(which)?);
    }
    if of.is_empty() {
        // With the system's, as in Cassandra (`StorageService.takeSnapshot`): a tool's backup brings back roles by them, and dropped
        // tables by `system_schema`.
        tables = dispatcher.tables(&TableSelection::default())?;
    }
    let database = &dispatcher.database;
    let taken = Snapshots::of(database).take(&tables, &checked, flush).map_err(|error| error.to_string())?;
    let now_us = database.host().clock.wall_us();
    let expires = ttl_s.map(|ttl_s| instant(now_us.saturating_add(i64::from(ttl_s) * 1_000_000)));
    let times = (instant(now_us), expires);
    taken.iter().try_for_each(|one| describe(database, one, &times))?;
    let mut lines = list(database)?;
    let is_of_it = |line: &SnapshotLine| {
        line.name == name
            && taken.iter().any(|one| *one.table.keyspace == *line.keyspace && *one.table.name == *line.table)
    };
    lines.retain(is_of_it);
    Ok(lines)
}

/// Formats microseconds since 1970 as a manifest's time.
fn instant(us: i64) -> String {
    let mut text = String::new();
    let nanoseconds = (us.rem_euclid(1_000_000) / 1000 * 1_000_000) as u32;
    write_instant(us.div_euclid(1_000_000), nanoseconds, &mut text);
    text
}

/// Writes the text files of a snapshot; one of a system table has no `schema.cql` (`ColumnFamilyStore.writeSnapshotSchema`).
fn describe(
    database: &Database,
    taken: &TakenSnapshot,
    (created_at, expires_at): &(String, Option<String>),
) -> Result<(), String> {
    let schema = database.schema();
    let Some(keyspace) = schema.keyspaces.get(&taken.table.keyspace) else { return Ok(()) };
    let manifest = Manifest {
        files: taken.data_files.clone(),
        created_at: Some(created_at.clone()),
        expires_at: expires_at.clone(),
        ..Manifest::default()
    };
    let manifest = manifest.text().map_err(|error| error.to_string())?;
    let statements = LocalBackend::table_text(keyspace, &taken.table);
    let write = |name: &str, text: &str| {
        Exports::of(database).add_file(&taken.folder.join(name), text).map_err(|error| error.to_string())
    };
    if !is_of_node(&taken.table.keyspace) {
        write("schema.cql", &statements)?;
    }
    write(SNAPSHOT_MANIFEST, &manifest)
}

/// Lists the snapshots.
pub(super) fn list(database: &Database) -> Result<Vec<SnapshotLine>, String> {
    let found = Snapshots::of(database).all().map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(line).collect())
}

fn line(found: FoundSnapshot) -> SnapshotLine {
    let manifest = found.manifest.as_deref().and_then(Manifest::parse);
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

/// Removes snapshots and returns those that were removed.
pub(super) fn clear(
    database: &Database,
    name: Option<&str>,
    keyspaces: &[String],
    before_ms: Option<i64>,
) -> Result<Vec<SnapshotLine>, String> {
    let schema = database.schema();
    if let Some(unknown) = keyspaces.iter().find(|name| !schema.keyspaces.contains_key(name.as_str())) {
        let dropped = Snapshots::of(database).all().map_err(|error| error.to_string())?;
        if !dropped.iter().any(|snapshot| snapshot.keyspace == *unknown) {
            return Err(format!("Keyspace {unknown} does not exist"));
        }
    }
    let mut removed = Vec::new();
    for found in Snapshots::of(database).all().map_err(|error| error.to_string())? {
        let of_keyspace = keyspaces.is_empty() || keyspaces.contains(&found.keyspace);
        if !of_keyspace || name.is_some_and(|name| *name != *found.name) {
            continue;
        }
        let told = line(found.clone());
        // Without a manifest the age is unknown; such a snapshot stays if an age is given.
        let is_old = |before_ms: i64| {
            told.created_at.as_deref().and_then(milliseconds).is_some_and(|at| at < before_ms)
        };
        if before_ms.is_none_or(is_old) {
            Snapshots::of(database).remove(&found).map_err(|error| error.to_string())?;
            removed.push(told);
        }
    }
    Ok(removed)
}

/// Parses a manifest's time to milliseconds since 1970.
fn milliseconds(text: &str) -> Option<i64> {
    use helenus_model::types::{CqlType, parse_text};
    let bytes = parse_text(&CqlType::Timestamp, text).ok()?;
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// The time when the next snapshot expires, as far as known, so that folders are not searched in vain.
#[derive(Default)]
pub(super) struct NextExpiry {
    known: Cell<Option<i64>>,
    has_looked: Cell<bool>,
}

impl NextExpiry {
    /// Records the expiry of new snapshots.
    pub(super) fn note(&self, taken: &[SnapshotLine]) {
        self.known.set(self.known.get().into_iter().chain(taken.iter().filter_map(expiry_ms)).min());
    }

    /// Removes expired snapshots. The first call finds those that expired before the start.
    pub(super) fn sweep(&self, database: &Database) {
        let now_ms = database.host().clock.wall_us() / 1000;
        if self.has_looked.get() && self.known.get().is_none_or(|expiry_ms| expiry_ms >= now_ms) {
            return;
        }
        let Ok(found) = Snapshots::of(database).all() else { return };
        let mut next = None;
        for snapshot in found {
            let Some(expiry_ms) = expiry_ms(&line(snapshot.clone())) else { continue };
            let is_gone = expiry_ms < now_ms && Snapshots::of(database).remove(&snapshot).is_ok();
            if !is_gone {
                next = Some(next.map_or(expiry_ms, |next: i64| next.min(expiry_ms)));
            }
        }
        self.known.set(next);
        self.has_looked.set(true);
    }
}

/// When a snapshot expires, milliseconds since 1970. A snapshot without a valid creation time never expires.
fn expiry_ms(line: &SnapshotLine) -> Option<i64> {
    line.created_at.as_deref().and_then(milliseconds)?;
    line.expires_at.as_deref().and_then(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_in_a_manifest_never_gives_a_snapshot_another_age() {
        let created_at = Some("2026-11-22T10:00:00.000Z".to_owned());
        let manifest =
            Manifest { files: vec!["da-1-bti-Data.db".to_owned()], created_at, ..Manifest::default() };
        let text = manifest.clone().text().unwrap();
        assert_eq!(Manifest::parse(&text).unwrap().created_at, manifest.created_at);
        for at in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            let read = Manifest::parse(&String::from_utf8_lossy(&bytes));
            let read = read.map(|read| (read.files, read.created_at, read.expires_at));
            let right = (manifest.files.clone(), manifest.created_at.clone(), None);
            assert!(read.is_none_or(|read| read == right), "bit {at}");
        }
        // A manifest written by Cassandra.
        let theirs =
            r#"{"files": [], "created_at": "2020-01-01T00:00:00Z", "expires_at": null, "ephemeral": false}"#;
        assert_eq!(Manifest::parse(theirs).unwrap().created_at.as_deref(), Some("2020-01-01T00:00:00Z"));
    }
}
