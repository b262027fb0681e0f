//! Writes tables as files for analysis programs.

use super::rows::Batches;
use super::types::schema;
use anyhow::{Context, Result, anyhow, bail};
use arrow_ipc::writer::FileWriter;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::import::Imports;
use helenus_engine::read::{KeyRange, Partitions, ReadCommand};
use helenus_engine::{Database, DatabaseOptions, ReadRequest};
use helenus_host::{Disk, File, Host};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::schema::Table;
use helenus_sstable::names::Descriptor;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Parquet, compressed with Snappy.
    Parquet,
    /// Arrow's IPC file format, also called Feather.
    Arrow,
}

impl Form {
    /// The file extension.
    pub fn ending(self) -> &'static str {
        match self {
            Form::Parquet => "parquet",
            Form::Arrow => "arrow",
        }
    }
}

/// Reads tables from SSTables, with a schema given as statements.
pub struct Reader {
    disk: Arc<dyn Disk>,
    /// An empty database in memory, whose read path is used.
    database: Arc<Database>,
    schema: helenus_model::schema::Schema,
}

impl Reader {
    /// A reader for the tables that `statements` create.
    ///
    /// # Errors
    /// Errors of the statements.
    pub fn new(host: &Host, statements: &str) -> Result<Reader> {
        let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/reader") };
        let (database, _) = Database::open(helenus_host::memory::host(), options)?;
        let backend = LocalBackend::new(Arc::clone(&database), LocalOptions::default());
        let schema = backend.schema_of_text(statements).map_err(|error| anyhow!("the schema: {error}"))?;
        Ok(Reader { disk: Arc::clone(&host.disk), database, schema })
    }

    /// Writes the live rows of a table's SSTables to a new file. Returns the number of rows.
    ///
    /// # Errors
    /// A table that the schema does not have, damage, failures of the disk.
    pub fn write(
        &self,
        (keyspace, table): (&str, &str),
        sstables: &[(PathBuf, Descriptor)],
        (path, form): (&Path, Form),
    ) -> Result<u64> {
        let Some(table) = self.schema.table(keyspace, table) else {
            bail!("the schema has no table {keyspace}.{table}");
        };
        let file = self.disk.create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let out = Appender { file: Arc::clone(&file), offset: 0 };
        let rows = match form {
            Form::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let mut writer = ArrowWriter::try_new(out, schema(table), Some(properties))?;
                let rows = self.rows(table, sstables, &mut |batch| {
                    writer.write(&batch).map_err(|error| error.to_string())
                })?;
                writer.close()?;
                rows
            }
            Form::Arrow => {
                let mut writer = FileWriter::try_new(out, &schema(table))?;
                let rows = self.rows(table, sstables, &mut |batch| {
                    writer.write(&batch).map_err(|error| error.to_string())
                })?;
                writer.finish()?;
                rows
            }
        };
        file.sync().with_context(|| format!("cannot sync {}", path.display()))?;
        Ok(rows)
    }

    fn rows(
        &self,
        table: &Arc<Table>,
        sstables: &[(PathBuf, Descriptor)],
        take: &mut super::rows::Take<'_>,
    ) -> Result<u64> {
        let view = Imports::of(&self.database).view_of_files(&*self.disk, sstables, table)?;
        let command = ReadCommand {
            table: Arc::clone(table),
            partitions: Partitions::Range(KeyRange::all()),
            filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
            reversed: false,
            statics: !table.statics.is_empty(),
            columns: None,
            limits: Limits::NONE,
            now_s: self.database.now_s(),
            resume: None,
            page_rows: None,
        };
        let mut batches = Batches::new(table, command.now_s, take);
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        let read = self.database.read(&command, &view, request, &mut batches, None);
        if let Some(problem) = batches.failure.take() {
            bail!("{problem}");
        }
        read?;
        batches.finish().map_err(|problem| anyhow!(problem))?;
        Ok(batches.total)
    }
}

/// Appends to a file; implements `Write`.
struct Appender {
    file: Arc<dyn File>,
    offset: u64,
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
