//! The tables of the workloads, and writes to them in storage form, as CQL's execution would make them.

use crate::content::{COLUMNS, key, name, value, wide_value};
use anyhow::{Result, anyhow};
use helenus_engine::{Database, DatabaseOptions, MemoryShares, SyncMode};
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::schema::{Column, ColumnKind, Keyspace, ROW_INDEX_GRANULARITY, Schema, Table, TableId};
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

const KEYSPACE: &str = "bench";
/// Timestamp of all that is written, microseconds.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// The database and its tables.
pub struct Tables {
    /// The database.
    pub database: Arc<Database>,
    /// Keys of 7 bytes, five values of 34.
    pub single: Arc<Table>,
    /// Names of 10 bytes, values of 25; ascending.
    pub ascending: Arc<Table>,
    /// The same, descending.
    pub descending: Arc<Table>,
    /// As the ascending one, for many partitions of 100 rows.
    pub narrow: Arc<Table>,
}

impl Tables {
    /// Makes them in a new directory, the wide ones with `granularity` as the bytes between entries of the row index and
    /// chunks of `chunk_kib`.
    pub fn create(
        options: DatabaseOptions,
        (granularity, chunk_kib): (Option<&str>, Option<u32>),
    ) -> Result<Tables> {
        let (database, _) = Database::open(helenus_host::real::host(), options)?;
        let extension = |size: &str| (ROW_INDEX_GRANULARITY.into(), size.as_bytes().to_vec());
        let extensions: BTreeMap<String, Vec<u8>> = granularity.map(extension).into_iter().collect();
        let wide = |name, descending| {
            let mut table = wide_table(name, descending);
            table.options.extensions = extensions.clone();
            if let Some(kib) = chunk_kib {
                table.options.compression.insert("chunk_length_in_kb".to_owned(), kib.to_string());
            }
            table
        };
        let tables =
            [single_table(), wide("ascending", false), wide("descending", true), wide("narrow", false)];
        let (_, ticket) = database
            .change_schema::<()>(|schema, _| Ok(with_tables(schema, tables)))
            .map_err(|error| anyhow!("the schema: {error:?}"))?;
        ticket.wait()?;
        Tables::of(database)
    }

    /// Opens them again with a block cache of so many bytes: what is not in it comes from the page cache.
    pub fn reopen_with_cache(dir: &Path, cache: u64) -> Result<Tables> {
        let shares = MemoryShares { memtables: 64 << 20, cache };
        Tables::of(Database::open(helenus_host::real::host(), database_options(dir, shares))?.0)
    }

    fn of(database: Arc<Database>) -> Result<Tables> {
        let schema = database.schema();
        let table = |name| schema.table(KEYSPACE, name).cloned().ok_or_else(|| anyhow!("no table {name}"));
        Ok(Tables {
            single: table("single")?,
            ascending: table("ascending")?,
            descending: table("descending")?,
            narrow: table("narrow")?,
            database,
        })
    }
}

/// With the log in periodic mode; what is read is what was flushed.
pub fn database_options(dir: &Path, memory: MemoryShares) -> DatabaseOptions {
    let mut options = DatabaseOptions::new(dir);
    options.sync = Some(SyncMode::Periodic { period_ms: 10_000 });
    options.memory = memory;
    options.compaction.automatic = false;
    options
}

fn with_tables(schema: &Schema, tables: [Table; 4]) -> Schema {
    let class = "org.apache.cassandra.locator.SimpleStrategy";
    let keyspace = Keyspace {
        name: KEYSPACE.into(),
        durable_writes: true,
        replication: BTreeMap::from([
            ("class".into(), class.into()),
            ("replication_factor".into(), "1".into()),
        ]),
        tables: tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect(),
        types: BTreeMap::new(),
    };
    let mut next = schema.clone();
    next.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    next
}

fn single_table() -> Table {
    let key = Column::new("key", ColumnKind::PartitionKey, CqlType::Blob);
    let regulars = (0..COLUMNS).map(|at| Column::new(&format!("C{at}"), ColumnKind::Regular, CqlType::Blob));
    let id = TableId(Uuid::new_v4());
    Table::new((KEYSPACE, "single"), id, std::iter::once(key).chain(regulars))
}

fn wide_table(name: &str, descending: bool) -> Table {
    let columns = [
        Column::new("key", ColumnKind::PartitionKey, CqlType::Text),
        Column { reversed: descending, ..Column::new("name", ColumnKind::Clustering, CqlType::Text) },
        Column::new("value", ColumnKind::Regular, CqlType::Text),
    ];
    Table::new((KEYSPACE, name), TableId(Uuid::new_v4()), columns)
}

fn cell(column: ColumnId) -> Cell {
    Cell {
        column,
        ttl_s: 0,
        timestamp_us: TIMESTAMP,
        local_deletion_s: NO_EXPIRY,
        path: Span::NULL,
        value: Span::EMPTY,
    }
}

fn head() -> (Liveness, DeletionTime) {
    (Liveness::at(TIMESTAMP), DeletionTime::LIVE)
}

/// The write of one row of five columns.
pub fn single_row(table: &Arc<Table>, row: u64) -> Mutation {
    let mut changes = Changes::default();
    changes.row(std::iter::empty(), head(), &[], |writer| {
        for (at, column) in table.regulars.iter().enumerate() {
            writer.cell(&cell(column.id), None, &value(row, at));
        }
    });
    one(table, key(row).to_vec(), changes)
}

/// The write of a batch of rows of the wide partition.
pub fn wide_rows(table: &Arc<Table>, width: u64, rows: Range<u64>) -> Mutation {
    let mut changes = Changes::default();
    for row in rows {
        changes.row([Some(&name(row)[..])].into_iter(), head(), &[], |writer| {
            for column in &table.regulars {
                writer.cell(&cell(column.id), None, &wide_value(width, row));
            }
        });
    }
    one(table, wide_key(width), changes)
}

/// The key of the partition of so many rows.
pub fn wide_key(width: u64) -> Vec<u8> {
    format!("row-{width}").into_bytes()
}

fn one(table: &Arc<Table>, key: Vec<u8>, changes: Changes) -> Mutation {
    Mutation { updates: vec![PartitionUpdate { table: table.clone(), key, changes }] }
}
