//! The embedded database: CQL with bound values, and wide rows.

use crate::error::{Error, Result};
use crate::value::Value;
use crate::wide::WideTable;
use helenus_cql::backend::{
    Backend, BoundValue, Identity, Outcome, Prepared, Request, ResultColumns, RowsOut,
};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::read::Probe;
use helenus_engine::{Database as Engine, DatabaseOptions, MemoryShares, SyncMode};
use helenus_host::Host;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// A database opened in this process.
pub struct Database {
    engine: Arc<Engine>,
    backend: Arc<LocalBackend>,
}

/// Options for opening a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory. `None`: the database lives in memory and is gone when it is dropped.
    pub dir: Option<PathBuf>,
    /// When a write is acknowledged.
    pub sync: SyncMode,
    /// The memory of the memtables and the block cache.
    pub memory: MemoryShares,
}

impl Options {
    /// A directory with group sync and 512 MiB of memory.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options { dir: Some(dir.into()), ..Options::in_memory() }
    }

    /// A database in memory, of 512 MiB.
    pub fn in_memory() -> Options {
        const MEMORY_LIMIT: u64 = 512 << 20;
        Options { dir: None, sync: SyncMode::Group, memory: MemoryShares::of_limit(MEMORY_LIMIT) }
    }
}

impl Database {
    /// Opens a data directory, and creates it if it does not exist.
    ///
    /// # Errors
    /// Another process has the directory open; its files are damaged.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Database> {
        Database::open_with(Options::new(dir))
    }

    /// Opens a database in memory. It is gone when this value is dropped.
    ///
    /// # Errors
    /// None is known; the signature is that of `open`.
    pub fn in_memory() -> Result<Database> {
        Database::open_with(Options::in_memory())
    }

    /// Opens a database with the given options.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(options: Options) -> Result<Database> {
        let host =
            if options.dir.is_some() { helenus_host::real::host() } else { helenus_host::memory::host() };
        Database::open_on(host, options)
    }

    fn open_on(host: Host, options: Options) -> Result<Database> {
        let durable = options.dir.is_some();
        let mut engine_options =
            DatabaseOptions::new(options.dir.unwrap_or_else(|| PathBuf::from("/memory")));
        engine_options.sync = durable.then_some(options.sync);
        engine_options.memory = options.memory;
        let (engine, _) = Engine::open(host, engine_options).map_err(Error::of_engine)?;
        let backend = LocalBackend::new(engine.clone(), LocalOptions::default());
        Ok(Database { engine, backend })
    }

    /// Runs a statement. The `?` markers take `values` in order. All rows are returned at once, without paging.
    ///
    /// # Errors
    /// The errors of a Cassandra node; values that do not fit their markers.
    pub fn execute(&self, cql: &str, values: &[Value]) -> Result<ResultSet> {
        self.run(cql, values, None)
    }

    /// Runs a statement as `execute` does, and adds the work of its read to `probe`: SSTables read and skipped, index
    /// nodes, blocks, bytes, rows, cells, tombstones, and nanoseconds by stage. `probe.times` costs several clock reads
    /// a row; measure latencies without a probe.
    ///
    /// # Errors
    /// As `execute`.
    pub fn execute_probed(&self, cql: &str, values: &[Value], probe: &mut Probe) -> Result<ResultSet> {
        let counted = Mutex::new(std::mem::take(probe));
        let rows = self.run(cql, values, Some(&counted));
        *probe = counted.into_inner();
        rows
    }

    fn run(&self, cql: &str, values: &[Value], probe: Option<&Mutex<Probe>>) -> Result<ResultSet> {
        let statement = self.backend.prepare(cql, None, &Identity::default()).map_err(Error::of_cql)?;
        let bytes = bind(&statement, values)?;
        let bound: Vec<BoundValue<'_>> =
            bytes.iter().map(|value| value.as_deref().map_or(BoundValue::Null, BoundValue::Bytes)).collect();
        let identity = Identity::default();
        let request = Request { probe, ..Request::plain(&identity, &bound) };
        let mut rows = Collected::default();
        let done = self.backend.execute(&statement, &request, &mut rows).map_err(Error::of_cql)?;
        match done.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
                ticket.wait().map_err(Error::of_write)?;
            }
            Outcome::Rows { ticket: Some(ticket), .. } => ticket.wait().map_err(Error::of_read)?,
            Outcome::Rows { ticket: None, .. } | Outcome::UsedKeyspace(_) => {}
        }
        Ok(rows.into_result())
    }

    /// Opens a table for wide-row calls: columns by name and by range.
    ///
    /// # Errors
    /// The table does not exist, or does not have the shape of a wide-row table.
    pub fn wide_table(&self, keyspace: &str, table: &str) -> Result<WideTable> {
        let schema = self.engine.schema();
        let found = schema.table(keyspace, table).cloned();
        let found = found.ok_or_else(|| Error::NoTable { keyspace: keyspace.into(), table: table.into() })?;
        WideTable::new(self.engine.clone(), found)
    }

    /// Writes all memtables to SSTables, and returns the number of SSTables written.
    ///
    /// # Errors
    /// Failures of writing; the data stays in memory.
    pub fn flush(&self) -> Result<u64> {
        self.engine.flush_all().map_err(Error::of_engine)
    }

    /// Flushes and closes, so that the next start has nothing to replay. Dropping the database without `close` loses
    /// nothing either: its writes are in the commit log.
    ///
    /// # Errors
    /// As `flush`.
    pub fn close(self) -> Result<()> {
        self.engine.close().map_err(Error::of_engine)
    }
}

fn bind(statement: &Prepared, values: &[Value]) -> Result<Vec<Option<Vec<u8>>>> {
    if values.len() != statement.markers.len() {
        return Err(Error::ValueCount { markers: statement.markers.len(), values: values.len() });
    }
    let pairs = statement.markers.iter().zip(values);
    pairs
        .map(|(marker, value)| {
            value.to_bytes(&marker.ty).map_err(|value| Error::WrongType {
                keyspace: marker.keyspace.to_string(),
                table: marker.table.to_string(),
                column: marker.name.to_string(),
                ty: marker.ty.to_string(),
                value,
            })
        })
        .collect()
}

/// The rows that a statement returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSet {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row: its values, in the order of the columns.
pub type Row = Vec<Value>;

#[derive(Default)]
struct Collected {
    columns: Option<Arc<ResultColumns>>,
    rows: Vec<Row>,
    row: Row,
    bytes: usize,
}

impl Collected {
    fn into_result(self) -> ResultSet {
        let columns = self.columns.iter().flat_map(|columns| &columns.columns);
        ResultSet { columns: columns.map(|column| column.name.to_string()).collect(), rows: self.rows }
    }
}

impl RowsOut for Collected {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.columns = Some(columns.clone());
    }

    fn cell(&mut self, value: Option<&[u8]>) {
        let ty = self
            .columns
            .as_ref()
            .and_then(|columns| columns.columns.get(self.row.len()))
            .map(|column| &column.ty);
        self.bytes += value.map_or(0, <[u8]>::len);
        self.row.push(match (value, ty) {
            (Some(bytes), Some(ty)) => Value::from_bytes(ty, bytes),
            _ => Value::Null,
        });
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        *self = Collected::default();
    }
}
