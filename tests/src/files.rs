//! Finds and copies the SSTables of a data directory, by Cassandra's naming rules.

use std::fs;
use std::path::{Path, PathBuf};

use scylla::value::CqlValue;

use crate::Cql;

/// The folder of a table, `DATA/KEYSPACE/TABLE-ID`, with the id that the server behind `cql` has for it. A table that
/// was dropped and created again has left other folders.
///
/// # Panics
/// The server does not know the table.
pub fn table_folder(data: &Path, cql: &Cql, keyspace: &str, table: &str) -> PathBuf {
    let select = format!(
        "SELECT id FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
    );
    match cql.rows(&select).first().map(Vec::as_slice) {
        Some([Some(CqlValue::Uuid(id))]) => data.join(keyspace).join(format!("{table}-{}", id.simple())),
        other => panic!("no id of {keyspace}.{table}: {other:?}"),
    }
}

/// The Data.db files of a table's folder, sorted.
pub fn tables(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.retain(|path| path.to_string_lossy().ends_with("-Data.db"));
    found
}

/// Copies the files of a folder, but not its subfolders, into another folder, which is created.
///
/// # Panics
/// A file cannot be read or written.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    for path in entries(from).iter().filter(|path| path.is_file()) {
        let name = path.file_name().expect("an entry has a name");
        fs::copy(path, to.join(name)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// As `copy`, with all subfolders.
pub fn copy_all(from: &Path, to: &Path) {
    copy(from, to);
    for folder in entries(from).iter().filter(|path| path.is_dir()) {
        copy_all(folder, &to.join(folder.file_name().expect("an entry has a name")));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder's entry").path()).collect();
    paths.sort();
    paths
}
