//! The schema of a table whose SSTables are read by themselves: from `--schema`, or from a `schema.cql` beside them.
//!
//! Only files whose headers leave something open need it (see `helenus_sstable::header_schema`); without one their rows
//! tell.

use super::find::Found;
use crate::commands::schema_text::schema_of_text;
use anyhow::{Context, Result};
use clap::Args;
use helenus_host::Disk;
use helenus_model::schema::{Schema, Table};
use helenus_sstable::header_schema::UserTypes;
use helenus_sstable::table::{read_statistics, read_whole};
use std::path::PathBuf;
use std::sync::Arc;

/// The option of commands that open SSTables.
#[derive(Args, Debug, Clone, Default)]
pub struct SchemaOption {
    /// The table's statements, as in a snapshot's schema.cql; by default those beside the files. Only files of Cassandra
    /// 3.0 with frozen user types can need them
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// Schemas of tables.
#[derive(Default)]
pub struct KnownSchema {
    given: Option<Schema>,
}

impl KnownSchema {
    /// Reads the file that the option names.
    ///
    /// # Errors
    /// A file that cannot be read, or with other statements.
    pub fn new(disk: &dyn Disk, option: &SchemaOption) -> Result<KnownSchema> {
        let Some(path) = &option.schema else { return Ok(KnownSchema::default()) };
        let path = std::path::absolute(path)?;
        let bytes = read_whole(disk, &path)?;
        let given = schema_of_text(&String::from_utf8_lossy(&bytes));
        Ok(KnownSchema { given: Some(given.with_context(|| path.display().to_string())?) })
    }

    /// The schema of an SSTable's table, if it is known and the SSTable needs it.
    pub fn of(&self, disk: &dyn Disk, found: &Found) -> Option<Arc<Table>> {
        let statistics = read_statistics(disk, &found.folder, found.descriptor).ok()?;
        if UserTypes::certain(&statistics.header, found.descriptor.version).is_some() {
            return None;
        }
        if let Some(given) = &self.given {
            return table_in(given, found);
        }
        // A schema.cql that cannot be read here does not matter: the rows tell.
        let bytes = read_whole(disk, &found.folder.join("schema.cql")).ok()?;
        table_in(&schema_of_text(&String::from_utf8_lossy(&bytes)).ok()?, found)
    }
}

/// The table to which an SSTable belongs: by the names of its folders, or the only one.
fn table_in(schema: &Schema, found: &Found) -> Option<Arc<Table>> {
    let (keyspace, table, _) = found.owner();
    if let Some(table) = schema.table(&keyspace, &table) {
        return Some(Arc::clone(table));
    }
    let mut tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    let only = tables.next()?;
    tables.next().is_none().then(|| Arc::clone(only))
}
