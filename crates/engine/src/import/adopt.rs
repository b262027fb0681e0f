//! Turns a copy of a Cassandra node's directory into a directory of Helenus.
//!
//! Tables stay where they are, under the node's names and ids. Both kinds of SSTable ids are supported, and
//! transactions that the node left unfinished are finished or undone when a table is opened. The node's own data (its
//! system keyspaces, commit log, hints, caches) is moved to `DIR/of-cassandra`, and the schema is read from there. Only
//! after that, in a database opened on the directory, the schema is created and the file `DIR/adopted` written. Until
//! then the adoption can be started again.

use super::check::check_source;
use super::imports::Imports;
use super::node_schema::node_schema;
use super::{ImportError, ImportProgress};
use crate::database::Database;
use crate::database::{DatabaseOptions, DdlError, is_database};
use crate::error::Error;
use crate::export::Exports;
use crate::schema::{index_id, is_system_keyspace};
use helenus_host::{Disk, Host};
use helenus_model::index::IndexLayout;
use helenus_model::schema::{Index, IndexKind, Keyspace, Schema, Table};
use helenus_sstable::component::Component;
use helenus_sstable::import::{SsTableFiles, add_page_checksums};
use helenus_sstable::names::{Descriptor, refusal, table_folder};
use helenus_sstable::transaction_log::invalid_prefixes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder for the node's own data.
const NODE_FOLDER: &str = "of-cassandra";
/// The file that marks an adopted directory.
const ADOPTED_FILE: &str = "adopted";
/// Folders of a node besides its data.
const BESIDE_DATA: [&str; 4] = ["commitlog", "hints", "saved_caches", "cdc_raw"];
/// Keyspaces that describe the node itself.
const NODE_KEYSPACES: [&str; 6] = [
    "system",
    "system_schema",
    "system_traces",
    "system_views",
    "system_virtual_schema",
    "system_cluster_metadata",
];

/// A directory that is ready to be opened, with the schema to create in it.
#[derive(Debug)]
pub struct Adoption {
    directory: PathBuf,
    /// The node's keyspaces; none if the directory was adopted before.
    schema: Option<Schema>,
    /// The number of tables with SSTables.
    pub tables: u64,
    /// The number of SSTables.
    pub sstables: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Checks a copy of a node's directory and moves the node's own data aside. `directory` contains `data`, or is the data
/// directory itself, whose content is then moved to `data` within it. With `whole` every byte is read.
///
/// # Errors
/// All problems found; nothing was changed then.
pub fn adopt(
    host: &Host,
    directory: &Path,
    whole: bool,
    progress: &ImportProgress,
) -> Result<Adoption, ImportError> {
    let disk = &*host.disk;
    if disk.exists(&directory.join(ADOPTED_FILE)) {
        let notes = vec!["adopted before: opened as it is".to_owned()];
        return Ok(Adoption { directory: directory.to_owned(), schema: None, tables: 0, sstables: 0, notes });
    }
    let aside = directory.join(NODE_FOLDER);
    let data = directory.join("data");
    let schemas = [aside.join("system_schema"), data.join("system_schema"), directory.join("system_schema")];
    let Some(schema_folder) = schemas.iter().find(|folder| disk.is_dir(folder)) else {
        return Err(ImportError::refused(format!(
            "{}: no copy of a Cassandra node's directory: there is no system_schema in it, nor in data within it",
            directory.display()
        )));
    };
    if is_database(disk, directory) && !disk.is_dir(&aside) {
        return Err(ImportError::refused(format!(
            "{}: this is a directory of Helenus already; open it with --data",
            directory.display()
        )));
    }
    let is_bare = schema_folder.parent() == Some(directory);
    let root = if is_bare { directory } else { data.as_path() };
    let schema = {
        let memory = DatabaseOptions { sync: None, ..DatabaseOptions::new("/reader") };
        let (reader, _) = Database::open(helenus_host::memory::host(), memory)?;
        node_schema(&reader, disk, schema_folder)?
    };
    let (schema, left_out) = with_known_indexes(schema);
    let found = sstables_of(disk, root, &schema)?;
    let mut notes = notes(disk, directory, root, &schema)?;
    notes.extend(left_out);
    let size = |(_, folder, descriptor): &(Arc<Table>, PathBuf, Descriptor)| {
        disk.open(&descriptor.path(folder, Component::Data)).and_then(|file| file.size()).unwrap_or_default()
    };
    progress.begin(found.iter().map(size).sum());
    let mut problems = Vec::new();
    for sstable in &found {
        let (table, folder, descriptor) = sstable;
        progress.describe(format!("check {}.{} {descriptor}", table.keyspace, table.name));
        problems.extend(progress.part_of_total(size(sstable), |progress| {
            check_source(disk, (folder, *descriptor), table, whole, progress)
        }));
    }
    if !problems.is_empty() {
        return Err(ImportError::Refused { problems });
    }
    for (_, folder, descriptor) in &found {
        add_page_checksums(SsTableFiles { disk, folder, descriptor: *descriptor })?;
    }
    let mut tables: Vec<&Path> = found.iter().map(|(_, folder, _)| folder.as_path()).collect();
    tables.dedup();
    let (tables, sstables) = (tables.len() as u64, found.len() as u64);
    move_aside(disk, directory, is_bare)?;
    Ok(Adoption { directory: directory.to_owned(), schema: Some(schema), tables, sstables, notes })
}

/// The schema without indexes of kinds that are not supported, such as SASI, and a note for each of these.
fn with_known_indexes(mut schema: Schema) -> (Schema, Vec<String>) {
    let mut notes = Vec::new();
    for keyspace in schema.keyspaces.values_mut() {
        for table in Arc::make_mut(keyspace).tables.values_mut() {
            let is_known = |index: &Arc<Index>| {
                let is_of_kind = index.kind != IndexKind::Custom || index.is_sai();
                is_of_kind && IndexLayout::new(table, index).is_some()
            };
            let unknown: Vec<_> = table.indexes.values().filter(|index| !is_known(index)).cloned().collect();
            for index in unknown {
                let (keyspace, name) = (&table.keyspace, &table.name);
                notes.push(format!(
                    "index {} of {keyspace}.{name} is of a kind that is not supported: left out",
                    index.name
                ));
                Arc::make_mut(table).indexes.remove(&index.name);
            }
        }
    }
    (schema, notes)
}

/// The SSTables of every user table of the schema, without those of unfinished transactions.
fn sstables_of(
    disk: &dyn Disk,
    root: &Path,
    schema: &Schema,
) -> Result<Vec<(Arc<Table>, PathBuf, Descriptor)>, ImportError> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let users = schema.keyspaces.values().filter(|keyspace| !is_system_keyspace(&keyspace.name));
    for table in users.flat_map(|keyspace| keyspace.tables.values()) {
        let folder = root.join(&*table.keyspace).join(table_folder(&table.name, table.id));
        if !disk.is_dir(&folder) {
            continue;
        }
        let useless = match invalid_prefixes(disk, &folder) {
            Ok(useless) => useless,
            Err(error) => {
                problems.push(error.to_string());
                continue;
            }
        };
        let files = disk.list(&folder).map_err(Error::io("list", &folder))?;
        for path in &files {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !name.ends_with("-Data.db") || useless.iter().any(|prefix| name.starts_with(&**prefix)) {
                continue;
            }
            match Descriptor::parse(name) {
                Some((descriptor, _)) => found.push((table.clone(), folder.clone(), descriptor)),
                None => problems.extend(refusal(path).map(|error| error.to_string())),
            }
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(ImportError::Refused { problems }) }
}

/// Notes on data that is missing or not adopted.
fn notes(
    disk: &dyn Disk,
    directory: &Path,
    root: &Path,
    schema: &Schema,
) -> Result<Vec<String>, ImportError> {
    let mut notes = vec![
        "what the node had not flushed is not here: run nodetool drain on it before its directory is copied"
            .to_owned(),
    ];
    let log = directory.join("commitlog");
    if disk.is_dir(&log) {
        let files = disk.list(&log).map_err(Error::io("list", &log))?;
        let of_node = |path: &&PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("CommitLog-"))
        };
        let count = files.iter().filter(of_node).count();
        if count > 0 {
            notes.push(format!(
                "{}: {count} segments of the node's commit log are not read; they go to {NODE_FOLDER}",
                log.display()
            ));
        }
    }
    for keyspace in disk.list(root).map_err(Error::io("list", root))? {
        let name = keyspace.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_known = schema.keyspaces.contains_key(name) || NODE_KEYSPACES.contains(&name);
        let is_beside = BESIDE_DATA.contains(&name) || name == "data" || name == NODE_FOLDER;
        if disk.is_dir(&keyspace) && !is_known && !(is_beside && root == directory) {
            notes.push(format!("{}: no keyspace of the node's schema; left alone", keyspace.display()));
        }
    }
    Ok(notes)
}

/// Moves the node's own folders to `of-cassandra`, and the keyspaces of a bare data directory to `data`. After a crash
/// it can be repeated.
fn move_aside(disk: &dyn Disk, directory: &Path, is_bare: bool) -> Result<(), ImportError> {
    let (aside, data) = (directory.join(NODE_FOLDER), directory.join("data"));
    disk.create_dir_all(&aside).map_err(Error::io("create", &aside))?;
    disk.create_dir_all(&data).map_err(Error::io("create", &data))?;
    for name in BESIDE_DATA {
        move_into(disk, &directory.join(name), &aside)?;
    }
    let root = if is_bare { directory } else { data.as_path() };
    for name in NODE_KEYSPACES.iter().filter(|name| **name != "system_schema") {
        move_into(disk, &root.join(name), &aside)?;
    }
    if is_bare {
        for path in disk.list(directory).map_err(Error::io("list", directory))? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if disk.is_dir(&path) && !["data", NODE_FOLDER, "system_schema"].contains(&name) {
                move_into(disk, &path, &data)?;
            }
        }
    }
    // Last, because this folder identifies a directory whose adoption is unfinished.
    move_into(disk, &root.join("system_schema"), &aside)?;
    for folder in [&aside, &data, &directory.to_owned()] {
        disk.sync_dir(folder).map_err(Error::io("sync", folder))?;
    }
    Ok(())
}

fn move_into(disk: &dyn Disk, folder: &Path, into: &Path) -> Result<(), ImportError> {
    let target = into.join(folder.file_name().unwrap_or_default());
    if disk.is_dir(folder) && !disk.exists(&target) {
        disk.rename(folder, &target).map_err(Error::io("rename", folder))?;
    }
    Ok(())
}

impl Imports<'_> {
    /// Creates the schema of an adopted directory, on which this database was opened. Its tables appear with their
    /// data.
    ///
    /// # Errors
    /// Failures of a write; a damaged transaction log.
    pub fn finish_adoption(&self, adoption: &Adoption) -> Result<(), ImportError> {
        let Some(node) = &adoption.schema else { return Ok(()) };
        let changed = self.database.change_schema(|schema, timestamp_us| {
            let mut next = schema.clone();
            for (name, keyspace) in &node.keyspaces {
                if is_system_keyspace(name) || schema.keyspaces.contains_key(name) {
                    continue;
                }
                let mut keyspace = Keyspace::clone(keyspace);
                for table in keyspace.tables.values_mut() {
                    let indexes = table.indexes.iter().map(|(name, index)| {
                        let id = index_id(table.id, name, timestamp_us);
                        (name.clone(), Arc::new(Index { id, ..Index::clone(index) }))
                    });
                    *table = Arc::new(Table { indexes: indexes.collect(), ..Table::clone(table) });
                }
                next.keyspaces.insert(name.clone(), Arc::new(keyspace));
            }
            Ok::<_, std::convert::Infallible>(next)
        });
        let (_, ticket) = changed.map_err(|error| match error {
            DdlError::Refused(never) => match never {},
            DdlError::Engine(error) => ImportError::Engine(error),
        })?;
        ticket.wait()?;
        let shared = &self.database.shared;
        if let Some(log) = &shared.log {
            log.sync_up_to(log.position())?;
        }
        let done = adoption.directory.join(ADOPTED_FILE);
        Ok(Exports::of(self.database).add_file(&done, "adopted from a Cassandra node's directory\n")?)
    }
}
