//! Finds the SSTables to import: in a snapshot, in the folder of a table or keyspace, or in a whole data directory.

use super::ImportError;
use crate::checked_name::CheckedName;
use crate::schema::is_system_keyspace;
use helenus_host::Disk;
use helenus_model::schema::TableId;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, FOLDERS_ASIDE, is_of_the_system, owner_of_folder, refusal};
use helenus_sstable::table::read_whole;
use helenus_sstable::transaction_log::invalid_prefixes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Keyspaces that belong to a node of Cassandra, ScyllaDB or DSE itself, besides those that are system keyspaces here too.
const NODE_KEYSPACES: [&str; 17] = [
    "system_auth",
    "system_cluster_metadata",
    "system_distributed",
    "system_distributed_everywhere",
    "system_replicated_keys",
    "system_traces",
    "system_views",
    "system_virtual_schema",
    "dse_analytics",
    "dse_auth",
    "dse_insights",
    "dse_leases",
    "dse_perf",
    "dse_security",
    "dse_system",
    "dse_system_local",
    "solr_admin",
];

/// Whether a keyspace belongs to a node itself, so that it is not imported unless it is asked for.
pub fn is_of_node(keyspace: &str) -> bool {
    is_system_keyspace(keyspace) || NODE_KEYSPACES.contains(&keyspace)
}

/// The file of a snapshot that contains its table's schema.
const SCHEMA_FILE: &str = "schema.cql";

/// Depth of the search below the given folder: data directory, keyspace, table, snapshots, one of them.
const DEPTH_MAX: usize = 6;

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct FindOptions {
    /// Take this snapshot of each table instead of its live SSTables.
    pub snapshot: Option<CheckedName>,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table, in the keyspace.
    pub table: Option<String>,
}

/// The SSTables of one table in one folder. There may be none: the snapshot of an empty table has only a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSource {
    /// The folder.
    pub folder: PathBuf,
    /// The keyspace, from the folder's path.
    pub keyspace: String,
    /// The table, from the folder's path.
    pub table: String,
    /// The table's id, if the folder's name has one.
    pub id: Option<TableId>,
    /// The SSTables, without those of unfinished transactions.
    pub sstables: Vec<Descriptor>,
    /// The content of its schema.cql.
    pub schema: Option<String>,
}

/// Finds the tables in a directory. The given folder itself is always searched; below it, snapshots and backups are
/// skipped, unless a snapshot is requested. `options` name the keyspace and the table if the path does not.
///
/// # Errors
/// Files of unknown versions, invalid transaction logs, no SSTables at all.
pub fn find_sources(
    disk: &dyn Disk,
    directory: &Path,
    options: &FindOptions,
) -> Result<Vec<ImportSource>, ImportError> {
    if !disk.is_dir(directory) {
        let what = match disk.exists(directory) {
            true => "is a file: name the folder that it lies in",
            false => "there is no such directory",
        };
        return Err(ImportError::refused(format!("{}: {what}", directory.display())));
    }
    let mut walk =
        SourceSearch { disk, options, found: Vec::new(), problems: Vec::new(), passed: Skipped::default() };
    walk.folder(directory, 0)?;
    let SourceSearch { mut found, problems, mut passed, .. } = walk;
    if !problems.is_empty() {
        return Err(ImportError::Refused { problems });
    }
    if let [only] = found.as_mut_slice()
        && only.folder == directory
    {
        // The path of the given folder may not contain the names, so those from the options win.
        only.keyspace = options.keyspace.clone().unwrap_or_else(|| only.keyspace.clone());
        only.table = options.table.clone().unwrap_or_else(|| only.table.clone());
    }
    let is_wanted = |source: &ImportSource| {
        options.keyspace.as_ref().is_none_or(|keyspace| *keyspace == source.keyspace)
            && options.table.as_ref().is_none_or(|table| *table == source.table)
    };
    for source in found.extract_if(.., |source| !is_wanted(source)) {
        passed.tables.insert(format!("{}.{}", source.keyspace, source.table));
    }
    if found.is_empty() {
        let of = match (&options.snapshot, &options.keyspace, &options.table) {
            (Some(name), ..) => format!("no snapshot {name} of a table"),
            (None, Some(keyspace), Some(table)) => format!("no SSTables of {keyspace}.{table}"),
            (None, Some(keyspace), None) => format!("no SSTables of keyspace {keyspace}"),
            (None, ..) => "no SSTables of a table".to_owned(),
        };
        let here = passed.told();
        return Err(ImportError::refused(format!("{}: it holds {of} to import{here}", directory.display())));
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

struct SourceSearch<'a> {
    disk: &'a dyn Disk,
    options: &'a FindOptions,
    found: Vec<ImportSource>,
    problems: Vec<String>,
    passed: Skipped,
}

/// What was found but not requested. The error lists it if nothing else is found.
#[derive(Default)]
struct Skipped {
    snapshots: BTreeSet<String>,
    tables: BTreeSet<String>,
    is_of_the_node: bool,
}

/// The most names that a message lists.
const NAMES_MAX: usize = 10;

impl Skipped {
    fn told(&self) -> String {
        let list = |names: &BTreeSet<String>| {
            let first: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
            let more = if names.len() > NAMES_MAX { " and others" } else { "" };
            format!("{}{more}", first.join(", "))
        };
        match self {
            Skipped { tables, .. } if !tables.is_empty() => format!("; there is {}", list(tables)),
            Skipped { snapshots, .. } if !snapshots.is_empty() => {
                format!("; there are snapshots: {} (--snapshot NAME)", list(snapshots))
            }
            Skipped { is_of_the_node: true, .. } => {
                "; what is there is the node's own, which is never imported".to_owned()
            }
            _ => String::new(),
        }
    }
}

impl SourceSearch<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), ImportError> {
        let list = self.disk.list(folder);
        let entries =
            list.map_err(|source| helenus_sstable::Error::Io { file: folder.to_owned(), source })?;
        let snapshot = self.options.snapshot.as_ref().map(|name| folder.join("snapshots").join(name));
        if let Some(snapshot) = snapshot.filter(|snapshot| self.disk.is_dir(snapshot)) {
            return self.table(&snapshot);
        }
        if let Some(snapshots) = entries.iter().find(|path| name(path) == "snapshots") {
            let snapshots = self.disk.list(snapshots).unwrap_or_default();
            self.passed.snapshots.extend(snapshots.iter().map(|path| name(path).to_owned()));
        }
        let is_data = |path: &PathBuf| {
            let is_known =
                Descriptor::parse(name(path)).is_some_and(|(_, part)| part == Component::Data.name());
            is_known || refusal(path).is_some()
        };
        let is_table = entries.iter().any(|path| is_data(path) || name(path) == SCHEMA_FILE);
        let is_root_of_export = depth == 0 && !entries.iter().any(is_data);
        if is_table && self.options.snapshot.is_none() && !is_root_of_export {
            return self.table(folder);
        }
        if is_root_of_export && entries.iter().any(|path| name(path) == SCHEMA_FILE) {
            // It is the snapshot of an empty table, or a folder written by `export`, which has tables below it.
            let below = entries.iter().any(|path| self.disk.is_dir(path) && !is_aside(path));
            if !below {
                return self.table(folder);
            }
        }
        for path in entries.iter().filter(|path| self.disk.is_dir(path) && !is_aside(path)) {
            if depth < DEPTH_MAX {
                self.folder(path, depth + 1)?;
            }
        }
        Ok(())
    }

    fn table(&mut self, folder: &Path) -> Result<(), ImportError> {
        let owner = owner_of_folder(folder);
        let asked = self.options.keyspace.is_some();
        if is_of_node(&owner.keyspace) && !asked {
            self.passed.is_of_the_node = true;
            return Ok(());
        }
        let useless = invalid_prefixes(self.disk, folder)?;
        let entries = self.disk.list(folder);
        let entries =
            entries.map_err(|source| helenus_sstable::Error::Io { file: folder.to_owned(), source })?;
        let mut sstables = BTreeSet::new();
        for path in entries.iter().filter(|path| name(path).ends_with("-Data.db")) {
            let name = name(path);
            match Descriptor::parse(name) {
                _ if useless.iter().any(|prefix| name.starts_with(&**prefix)) => {}
                Some((descriptor, component)) if component == Component::Data.name() => {
                    sstables.insert(descriptor);
                }
                // A file without a version in its name was made by an editor, the operating system or a copying
                // program, and is ignored.
                _ => self.problems.extend(refusal(path).map(|error| error.to_string())),
            }
        }
        let schema_path = folder.join(SCHEMA_FILE);
        let schema = match self.disk.exists(&schema_path) {
            false => None,
            true => Some(read_text(self.disk, &schema_path)?),
        };
        self.found.push(ImportSource {
            folder: folder.to_owned(),
            keyspace: owner.keyspace,
            table: owner.table,
            id: owner.id,
            sstables: sstables.into_iter().collect(),
            schema,
        });
        Ok(())
    }
}

/// Reads a whole file of statements.
///
/// # Errors
/// The file cannot be read.
pub fn read_text(disk: &dyn Disk, path: &Path) -> Result<String, ImportError> {
    Ok(String::from_utf8_lossy(&read_whole(disk, path)?).into_owned())
}

fn is_aside(path: &Path) -> bool {
    let name = name(path);
    FOLDERS_ASIDE.contains(&name) || name.starts_with('.') || is_of_the_system(name)
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
