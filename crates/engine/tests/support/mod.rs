//! Helpers for the engine's tests: a small table, and short forms of its writes and reads.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod actual;
pub mod judge;
pub mod log_file;
pub mod progress;
pub mod random;
pub mod slot;
pub mod world;

use helenus_engine::read::{
    BatchSink, PartitionKey, Partitions, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink,
};
use helenus_engine::{Database, DatabaseOptions, ReadRequest, Ticket};
use helenus_host::Host;
use helenus_model::byte_comparable;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;
use helenus_model::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableId};
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// `CREATE TABLE ks.t (k text, c int, s text static, v text, w text, PRIMARY KEY (k, c))`, in descending clustering
/// order if `desc`.
pub fn table(name: &str, id: u128, desc: bool) -> Table {
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
        Column { reversed: desc, ..Column::new("c", ColumnKind::Clustering, CqlType::Int) },
        Column::new("s", ColumnKind::Static, CqlType::Text),
        Column::new("v", ColumnKind::Regular, CqlType::Text),
        Column::new("w", ColumnKind::Regular, CqlType::Text),
    ];
    Table::new(("ks", name), TableId(Uuid::from_u128(id)), columns)
}

/// Opens the database of `/db` on a machine.
pub fn open(host: &Host) -> Arc<Database> {
    open_with(host, |_| {})
}

/// Opens the database with changed options.
pub fn open_with(host: &Host, change: impl FnOnce(&mut DatabaseOptions)) -> Arc<Database> {
    let mut options = DatabaseOptions::new("/db");
    change(&mut options);
    Database::open(host.clone(), options).expect("the database opens").0
}

/// Creates the keyspace with these tables.
pub fn create(database: &Database, tables: Vec<Table>) {
    let (_, ticket) = database
        .change_schema::<()>(|schema, _| {
            let mut next: Schema = schema.clone();
            let mut keyspace = next.keyspaces.get("ks").map_or_else(
                || Keyspace {
                    name: "ks".into(),
                    durable_writes: true,
                    replication: BTreeMap::from([(
                        "class".into(),
                        "org.apache.cassandra.locator.SimpleStrategy".into(),
                    )]),
                    tables: BTreeMap::new(),
                    types: BTreeMap::new(),
                },
                |keyspace| (**keyspace).clone(),
            );
            keyspace.tables.extend(tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))));
            next.keyspaces.insert("ks".into(), Arc::new(keyspace));
            Ok(next)
        })
        .map_err(|_| "the schema changes")
        .unwrap();
    ticket.wait().unwrap();
}

/// The table of this name in the current schema.
pub fn table_of(database: &Database, name: &str) -> Arc<Table> {
    database.schema().table("ks", name).expect("the table is there").clone()
}

/// A cell of the column with this name.
pub fn cell(table: &Table, column: &str, timestamp_us: i64) -> Cell {
    Cell {
        column: table.column(column).unwrap().id,
        ttl_s: 0,
        timestamp_us,
        local_deletion_s: NO_EXPIRY,
        path: Span::NULL,
        value: Span::EMPTY,
    }
}

/// The liveness and deletion of a row without a row marker.
const BARE: (Liveness, DeletionTime) = (Liveness::NONE, DeletionTime::LIVE);

/// Builds the changes of a write.
#[derive(Default, Clone)]
pub struct Write {
    pub changes: Changes,
}

impl Write {
    /// Inserts a row: its row marker and `v`.
    pub fn insert(mut self, table: &Table, c: i32, v: &str, timestamp_us: i64) -> Write {
        let clustering = c.to_be_bytes();
        let head = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        self.changes.row([Some(&clustering[..])].into_iter(), head, &[], |row| {
            row.cell(&cell(table, "v", timestamp_us), None, v.as_bytes());
        });
        self
    }

    /// Sets a column of a row, without a row marker.
    pub fn set(mut self, table: &Table, (c, column): (i32, &str), v: &str, timestamp_us: i64) -> Write {
        self.changes.row([Some(&c.to_be_bytes()[..])].into_iter(), BARE, &[], |row| {
            row.cell(&cell(table, column, timestamp_us), None, v.as_bytes());
        });
        self
    }

    /// Deletes a column of a row.
    pub fn unset(mut self, table: &Table, (c, column): (i32, &str), timestamp_us: i64) -> Write {
        self.changes.row([Some(&c.to_be_bytes()[..])].into_iter(), BARE, &[], |row| {
            let tombstone = Cell { local_deletion_s: 1_700_000_000, ..cell(table, column, timestamp_us) };
            row.cell(&tombstone, None, &[]);
        });
        self
    }

    /// Sets the static column.
    pub fn set_static(mut self, table: &Table, s: &str, timestamp_us: i64) -> Write {
        self.changes.static_row(&[], |row| row.cell(&cell(table, "s", timestamp_us), None, s.as_bytes()));
        self
    }

    /// Deletes a row.
    pub fn delete_row(mut self, c: i32, timestamp_us: i64) -> Write {
        let clustering = c.to_be_bytes();
        self.changes.row(
            [Some(&clustering[..])].into_iter(),
            (Liveness::NONE, deletion(timestamp_us)),
            &[],
            |_| {},
        );
        self
    }

    /// Deletes rows from `from` to `to` in clustering order, both inclusive.
    pub fn delete_range(mut self, from: i32, to: i32, timestamp_us: i64) -> Write {
        let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
        self.changes.delete_range((&[Some(&from)], true), (&[Some(&to)], false), deletion(timestamp_us));
        self
    }

    /// Deletes the partition.
    pub fn delete_partition(mut self, timestamp_us: i64) -> Write {
        self.changes.delete_partition(deletion(timestamp_us));
        self
    }

    /// Writes the changes to a partition.
    pub fn to(self, database: &Database, table: &str, key: &str) -> Ticket {
        let table = table_of(database, table);
        let update = PartitionUpdate { table, key: key.as_bytes().to_vec(), changes: self.changes };
        database.write(&Mutation { updates: vec![update] }).expect("the write is taken")
    }
}

/// A deletion at a timestamp.
pub fn deletion(timestamp_us: i64) -> DeletionTime {
    DeletionTime { timestamp_us, local_s: timestamp_us / 1_000_000 }
}

/// A row that was read: partition key, static value, clustering, `v`.
pub type Row = (String, Option<String>, i32, Option<String>);

/// Collects rows.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<Row>,
    /// Partitions without rows: key and static value.
    pub empty: Vec<(String, Option<String>)>,
    partition: (String, Option<String>),
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl RowSink for Rows {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        let value = static_row.and_then(|row| row.row.cells.first().map(|cell| text(row.value(cell))));
        self.partition = (text(key), value);
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let c = row.clustering(0).and_then(|c| c.first_chunk::<4>()).map(|c| i32::from_be_bytes(*c)).unwrap();
        let v = row.row.cells.first().map(|cell| text(row.value(cell)));
        self.rows.push((self.partition.0.clone(), self.partition.1.clone(), c, v));
        Ok(RowOutcome::Counted)
    }

    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        Some(self)
    }

    fn partition_end(&mut self, rows: u64) -> helenus_engine::Result<RowOutcome> {
        if rows == 0 && self.partition.1.is_some() {
            self.empty.push(self.partition.clone());
        }
        Ok(RowOutcome::Skipped)
    }
}

impl BatchSink for Rows {
    fn batch(&mut self, batch: &RowBatch<'_>) -> helenus_engine::Result<bool> {
        for row in batch.rows() {
            let c =
                row.first().and_then(|c| batch.bytes(c).first_chunk::<4>()).map(|c| i32::from_be_bytes(*c));
            let v = row.get(batch.clustering).map(|value| text(batch.bytes(value)));
            self.rows.push((self.partition.0.clone(), self.partition.1.clone(), c.unwrap(), v));
        }
        Ok(true)
    }
}

/// A read of one whole partition, forward.
pub fn command(database: &Database, table: &str, key: &str) -> ReadCommand {
    ReadCommand {
        table: table_of(database, table),
        partitions: Partitions::Keys(vec![PartitionKey::new(key.as_bytes().to_vec())]),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: true,
        columns: None,
        limits: Limits::NONE,
        now_s: 1_700_000_000,
        resume: None,
        page_rows: None,
    }
}

/// The byte-comparable clustering of a row.
pub fn row_key(table: &Table, c: i32) -> Vec<u8> {
    let mut key = Vec::new();
    let value = c.to_be_bytes();
    byte_comparable::clustering_key([Some(&value[..])], &table.clustering, &mut key).unwrap();
    key
}

/// Runs a read to its end, page by page.
pub fn run(database: &Database, command: &ReadCommand) -> Rows {
    let mut rows = Rows::default();
    let mut command = command.clone();
    loop {
        let view = database.view(&command.table).unwrap();
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        match database.read(&command, &view, request, &mut rows, None).expect("the read succeeds") {
            ReadEnd::Complete => return rows,
            ReadEnd::Page(resume) => command.resume = Some(resume),
        }
    }
}

/// The rows of a partition as (clustering, value).
pub fn rows_of(database: &Database, table: &str, key: &str) -> Vec<(i32, String)> {
    let rows = run(database, &command(database, table, key)).rows;
    rows.into_iter().map(|(_, _, c, v)| (c, v.unwrap_or_default())).collect()
}

/// The position after a row, where the next page begins.
pub fn resume_at(key: &str, clustering: Vec<u8>) -> Resume {
    let key = key.as_bytes().to_vec();
    Resume {
        key,
        clustering: Some(clustering),
        rows_left: u64::MAX,
        rows_left_in_partition: u64::MAX,
        has_given: true,
    }
}

/// A sink that takes rows and keeps nothing.
pub struct Ignoring;

impl RowSink for Ignoring {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        // Checks that every span lies within the row's data.
        row.row.cells.iter().for_each(|cell| _ = (row.path(cell), row.value(cell)));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
