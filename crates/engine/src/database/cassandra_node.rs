//! Recognizes the directory of a Cassandra node, which must not be opened as ours: the rows that its commit log alone has would be
//! missing, and the node could not go on with it afterwards.

use helenus_host::Disk;
use std::path::Path;

/// Whether a directory, or `data` in it, has the files of a Cassandra node. Each node writes its own facts into the table
/// `system.local`, which Helenus keeps in memory; `serve --adopt` moves the table's files aside.
pub fn is_cassandra_node(disk: &dyn Disk, directory: &Path) -> bool {
    [directory.join("data/system"), directory.join("system")].iter().any(|system| {
        let tables = disk.list(system).unwrap_or_default();
        let names = tables.iter().filter_map(|table| table.file_name()?.to_str());
        names.into_iter().any(|name| name == "local" || name.starts_with("local-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, DatabaseOptions};
    use crate::error::Error;

    #[test]
    fn the_directory_of_a_node_is_refused_and_not_changed() {
        let id = "local-7ad54392bcdd35a684174e047860b377";
        for table in [format!("data/system/{id}"), format!("system/{id}"), "data/system/local".to_owned()] {
            let host = helenus_host::memory::host();
            let node = Path::new("/node");
            host.disk.create_dir_all(&node.join(&table)).unwrap();
            let refused = Database::open(host.clone(), DatabaseOptions::new(node)).err().unwrap();
            assert!(matches!(&refused, Error::CassandraNode { .. }), "{refused}");
            assert!(refused.to_string().contains("--adopt"), "{refused}");
            assert_eq!(host.disk.list(node).unwrap().len(), 1, "{table}");
        }
        let host = helenus_host::memory::host();
        host.disk.create_dir_all(Path::new("/ours/data/system/peers_v2-1")).unwrap();
        host.disk.create(Path::new("/ours/helenus.lock")).unwrap();
        assert!(Database::open(host, DatabaseOptions::new("/ours")).is_ok());
    }
}
