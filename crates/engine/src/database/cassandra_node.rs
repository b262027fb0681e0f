//! Recognizes the directory of a Cassandra node, which must not be opened as ours: the rows that its commit log alone has would be
//! missing, and the node could not go on with it afterwards.

use super::own_directory::is_database;
use helenus_host::Disk;
use helenus_sstable::component::Component;
use std::path::{Path, PathBuf};

/// Whether a directory, or `data` in it, has the files of a Cassandra node and is not a database of ours. Each node writes its own
/// facts into the table `system.local` and flushes it at its start, while Helenus keeps that table in memory; `serve --adopt` moves
/// the table's files aside. The table's folder alone says nothing: a snapshot of the keyspace `system` makes it here too.
pub fn is_cassandra_node(disk: &dyn Disk, directory: &Path) -> bool {
    let has_rows = |system: PathBuf| {
        let tables = disk.list(&system).unwrap_or_default();
        tables.iter().filter(|table| is_local(table)).any(|table| has_data(disk, table))
    };
    !is_database(disk, directory)
        && [directory.join("data/system"), directory.join("system")].into_iter().any(has_rows)
}

/// Whether the name of a folder is that of the table `local`, with an id or, as before Cassandra 2.1, without.
fn is_local(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "local" || name.starts_with("local-")
}

/// Whether a table's folder has an SSTable of any version.
fn has_data(disk: &dyn Disk, folder: &Path) -> bool {
    let end = format!("-{}", Component::Data.name());
    let files = disk.list(folder).unwrap_or_default();
    files.iter().filter_map(|file| file.file_name()?.to_str()).any(|name| name.ends_with(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked_name::CheckedName;
    use crate::database::{Database, DatabaseOptions};
    use crate::error::Error;
    use crate::snapshot::Snapshots;
    use helenus_host::Host;

    const LOCAL: &str = "local-7ad54392bcdd35a684174e047860b377";

    fn put(host: &Host, path: &Path) {
        host.disk.create_dir_all(path.parent().unwrap()).unwrap();
        host.disk.create(path).unwrap();
    }

    #[test]
    fn the_directory_of_a_node_is_refused_and_not_changed() {
        for file in [
            format!("data/system/{LOCAL}/nb-1-big-Data.db"),
            format!("system/{LOCAL}/me-7-big-Data.db"),
            "data/system/local/system-local-jb-1-Data.db".to_owned(),
        ] {
            let host = helenus_host::memory::host();
            let node = Path::new("/node");
            put(&host, &node.join(&file));
            let refused = Database::open(host.clone(), DatabaseOptions::new(node)).err().unwrap();
            assert!(matches!(&refused, Error::CassandraNode { .. }), "{refused}");
            assert!(refused.to_string().contains("--adopt"), "{refused}");
            assert_eq!(host.disk.list(node).unwrap().len(), 1, "{file}");
        }
    }

    #[test]
    fn a_database_with_a_snapshot_of_all_keyspaces_opens_again_by_each_of_its_marks() {
        let host = helenus_host::memory::host();
        let open =
            || Database::open(host.clone(), DatabaseOptions::new("/ours")).map(|(database, _)| database);
        let database = open().unwrap();
        let schema = database.schema();
        let tables: Vec<_> =
            schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values().cloned()).collect();
        let name = CheckedName::new("snapshot", "whole").unwrap();
        Snapshots::of(&database).take(&tables, &name, true).unwrap();
        let snapshot = Path::new("/ours/data/system").join(LOCAL).join("snapshots/whole");
        assert!(host.disk.is_dir(&snapshot), "the table has a folder now");
        database.close().unwrap();
        drop(database);
        open().unwrap().close().unwrap();
        // A file of the table, which nothing here writes, makes no node of a database.
        put(&host, &Path::new("/ours/data/system").join(LOCAL).join("da-1-bti-Data.db"));
        for mark in ["host-id", "helenus.lock"] {
            host.disk.remove(&Path::new("/ours").join(mark)).unwrap();
            assert!(!is_cassandra_node(&*host.disk, Path::new("/ours")), "without {mark}: the log is ours");
        }
        for segment in host.disk.list(Path::new("/ours/commitlog")).unwrap() {
            host.disk.remove(&segment).unwrap();
        }
        assert!(is_cassandra_node(&*host.disk, Path::new("/ours")), "nothing says that it is ours");
    }
}
