//! Reads the schema of a Cassandra node from the SSTables of its `system_schema` keyspace, in place.

use super::ImportError;
use super::imports::Imports;
use crate::database::Database;
use crate::schema::{SchemaRow, load_schema};
use crate::table::View;
use helenus_host::Disk;
use helenus_model::schema::{ColumnKind, DroppedColumn, Schema, Table};
use helenus_model::types::CqlType;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::names::{Descriptor, parse_table_folder, refusal};
use helenus_sstable::statistics::HeaderColumn;
use helenus_sstable::table::{OpenOptions, SsTable, read_statistics};
use helenus_sstable::transaction_log::invalid_prefixes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the folder of the schema's keyspace.
const SYSTEM_SCHEMA: &str = "system_schema";
/// The number of parent folders in which the data directory is searched: a snapshot is five folders below it.
const ABOVE_MAX: usize = 5;

/// Finds the `system_schema` folder of the node that a directory belongs to: in it, beside it, or above it.
pub fn schema_folder_of(disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
    let inside = [directory.join(SYSTEM_SCHEMA), directory.join("data").join(SYSTEM_SCHEMA)];
    let above = directory.ancestors().skip(1).take(ABOVE_MAX).map(|above| above.join(SYSTEM_SCHEMA));
    inside.into_iter().chain(above).find(|folder| disk.is_dir(folder))
}

/// Reads the user keyspaces with their types, tables and indexes from a node's `system_schema` folder. Only the read
/// path of `reader` is used, not its own schema.
///
/// # Errors
/// Unreadable or damaged files.
pub fn node_schema(reader: &Database, disk: &dyn Disk, folder: &Path) -> Result<Schema, ImportError> {
    let empty = crate::schema::system_schema();
    let mut problems = Vec::new();
    let loaded = load_schema(empty, &mut |table| match rows_of(reader, disk, folder, table) {
        Ok(rows) => Ok(rows),
        Err(ImportError::Engine(error)) => Err(error),
        Err(ImportError::Unfinished { source, .. }) => Err(*source),
        Err(ImportError::Refused { problems: found }) => {
            problems.extend(found);
            Ok(Vec::new())
        }
    });
    if problems.is_empty() { Ok(loaded?) } else { Err(ImportError::Refused { problems }) }
}

/// All rows of one schema table of the node; none if the node's version does not have the table.
fn rows_of(
    reader: &Database,
    disk: &dyn Disk,
    folder: &Path,
    table: &Arc<Table>,
) -> Result<Vec<SchemaRow>, ImportError> {
    let io = |source| helenus_sstable::Error::Io { file: folder.to_owned(), source };
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let is_of_table =
        |path: &PathBuf| parse_table_folder(&name(path)).is_some_and(|(name, _)| name == &*table.name);
    let mut found = Vec::new();
    for path in disk.list(folder).map_err(io)?.into_iter().filter(is_of_table) {
        let useless = invalid_prefixes(disk, &path)?;
        let files = disk.list(&path).map_err(io)?;
        for file in files.iter().map(|file| name(file)).filter(|file| file.ends_with("-Data.db")) {
            if useless.iter().any(|prefix| file.starts_with(&**prefix)) {
                continue;
            }
            let Some((descriptor, _)) = Descriptor::parse(&file) else {
                if let Some(problem) = refusal(&path.join(&file)) {
                    return Err(ImportError::refused(problem.to_string()));
                }
                continue;
            };
            found.push((path.clone(), descriptor));
        }
    }
    let mut tolerant = Table::clone(table);
    for (path, descriptor) in &found {
        let header = read_statistics(disk, path, *descriptor)?.header;
        tolerate(&mut tolerant, &header.statics, ColumnKind::Static);
        tolerate(&mut tolerant, &header.regulars, ColumnKind::Regular);
    }
    let tolerant = Arc::new(tolerant);
    let view = Imports::of(reader).view_of_files(disk, &found, &tolerant)?;
    Ok(reader.read_rows_of(&tolerant, &view)?)
}

impl Imports<'_> {
    /// Opens SSTables in folders outside this database as sources of reads, under a definition that need not be in its
    /// schema.
    ///
    /// # Errors
    /// SSTables that cannot be opened.
    pub fn view_of_files(
        &self,
        disk: &dyn Disk,
        sstables: &[(PathBuf, Descriptor)],
        table: &Arc<Table>,
    ) -> crate::Result<View> {
        let open = |(folder, descriptor): &(PathBuf, Descriptor)| {
            let options = OpenOptions { schema: table.clone(), buffers: BufferPool::none() };
            SsTable::open(disk, folder, *descriptor, options)
        };
        let opened: helenus_sstable::Result<Vec<_>> = sstables.iter().map(open).collect();
        Ok(View::new(&self.database.shared.memory, opened?))
    }
}

/// Ignores columns that other versions of Cassandra have in their schema tables.
fn tolerate(table: &mut Table, columns: &[HeaderColumn], kind: ColumnKind) {
    for column in columns {
        let name: Arc<str> = String::from_utf8_lossy(&column.name).into();
        if table.column(&name).is_none() {
            let ty = CqlType::from_class_name(&column.type_name).unwrap_or(CqlType::Blob);
            let dropped = DroppedColumn { name: name.clone(), ty, kind, dropped_us: i64::MAX };
            table.dropped.insert(name, dropped);
        }
    }
}
