//! The interface of virtual tables.

use helenus_engine::Database;
use helenus_engine::read::{PartitionKey, ReadCommand};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::{Cell, Span};
use helenus_model::column_map::{ArrayMap, Arrays, ColumnMap, ColumnMapFactory};
use helenus_model::deletion::{Liveness, NO_EXPIRY};
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Schema, Table, TableId, TableOptions};
use helenus_model::types::{CqlType, Elements};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use uuid::Uuid;

/// A table whose rows are computed when they are read. To be registered with `LocalBackend::virtual_tables`.
pub trait VirtualTable: Send + Sync {
    /// Its definition: see [`virtual_definition`].
    fn table(&self) -> &Arc<Table>;

    /// Adds all current rows.
    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows);

    /// Adds the rows that a read may need: all of them, unless the table has too many. A table that adds the first rows of
    /// a page alone says so with `VirtualRows::cut`.
    ///
    /// # Errors
    /// The rows cannot be had; `WouldBlock` if the read may not wait for the disk and they are there.
    fn rows_of(
        &self,
        cx: &VirtualContext<'_>,
        _read: &VirtualRead<'_>,
        rows: &mut VirtualRows,
    ) -> helenus_engine::Result<()> {
        self.rows(cx, rows);
        Ok(())
    }
}

/// A read of a virtual table.
#[derive(Clone, Copy)]
pub struct VirtualRead<'a> {
    /// The read.
    pub command: &'a ReadCommand,
    /// Whether it may wait for the disk.
    pub may_block: bool,
}

/// The data that a virtual table may use.
#[derive(Clone, Copy)]
pub struct VirtualContext<'a> {
    /// The schema, virtual tables included.
    pub schema: &'a Schema,
    /// The database.
    pub database: &'a Database,
}

/// The rows of a virtual table, by partition.
pub struct VirtualRows {
    table: Arc<Table>,
    pub(super) partitions: BTreeMap<Vec<u8>, VirtualPartition>,
    /// Whether more rows follow the last one.
    pub(super) is_cut: bool,
}

/// One partition: its key and its rows by ordered clustering.
pub(super) struct VirtualPartition {
    pub(super) key: PartitionKey,
    pub(super) rows: ArrayMap<RowBuf>,
}

/// The write timestamp of all values in virtual tables.
const WRITTEN_US: i64 = 0;

impl VirtualRows {
    pub(super) fn new(table: Arc<Table>) -> VirtualRows {
        VirtualRows { table, partitions: BTreeMap::new(), is_cut: false }
    }

    /// More rows follow the last one, in its partition: the page ends behind it.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Adds a row: serialised values by column name, collections as one value. Missing columns are null. A row whose
    /// key is incomplete or invalid is left out.
    pub fn row(&mut self, values: &[(&str, Vec<u8>)]) {
        let value = |column: &Column| {
            values.iter().find(|(name, _)| *name == &*column.name).map(|(_, value)| &value[..])
        };
        let table = self.table.clone();
        let mut key = Vec::new();
        for column in &table.partition_key {
            let Some(part) = value(column) else { return };
            if table.partition_key.len() == 1 {
                key.extend_from_slice(part);
                continue;
            }
            let Ok(length) = u16::try_from(part.len()) else { return };
            key.extend_from_slice(&length.to_be_bytes());
            key.extend_from_slice(part);
            key.push(0);
        }
        let mut row = RowBuf { liveness: Liveness::at(WRITTEN_US), ..RowBuf::default() };
        let mut ordered = Vec::new();
        if clustering_key(table.clustering.iter().map(value), &table.clustering, &mut ordered).is_err() {
            return;
        }
        row.key.clone_from(&ordered);
        for column in &table.clustering {
            let span = value(column).map_or(Span::NULL, |value| row.push_bytes(value));
            row.clustering.push(span);
        }
        let mut regulars: Vec<&Column> = table.regulars.iter().collect();
        regulars.sort_by_key(|column| column.id);
        for column in regulars {
            if let Some(value) = value(column) {
                put_cells(column, value, &mut row);
            }
        }
        let partition = self.partitions.entry(key.clone());
        let partition = partition
            .or_insert_with(|| VirtualPartition { key: PartitionKey::new(key), rows: Arrays.make() });
        // Of two rows with the same key the later one is kept.
        let Ok(_) = partition.rows.add(&ordered, row, |row| row, |_, row| Ok::<RowBuf, Infallible>(row));
    }
}

/// Adds the cells of a value: one, or one for each element.
fn put_cells(column: &Column, value: &[u8], row: &mut RowBuf) {
    let cell = |path, value| Cell {
        column: column.id,
        ttl_s: 0,
        timestamp_us: WRITTEN_US,
        local_deletion_s: NO_EXPIRY,
        path,
        value,
    };
    match &column.ty {
        CqlType::Set { frozen: false, .. } => {
            for element in Elements::of_list(value).flatten() {
                let path = row.push_bytes(element);
                row.cells.push(cell(path, Span::EMPTY));
            }
        }
        CqlType::Map { frozen: false, .. } => {
            let mut parts = Elements::of_map(value);
            while let (Some(Some(key)), Some(Some(value))) = (parts.next(), parts.next()) {
                let (path, value) = (row.push_bytes(key), row.push_bytes(value));
                row.cells.push(cell(path, value));
            }
        }
        _ => {
            let value = row.push_bytes(value);
            row.cells.push(cell(Span::NULL, value));
        }
    }
}

/// The definition of a virtual table: columns by name and type; the first `key` of them are the partition key, the next
/// `clustering` the clustering. Its id is the name-based UUID of its name, as for Cassandra's system tables.
pub fn virtual_definition(
    (keyspace, name): (&str, &str),
    comment: &str,
    (key, clustering): (usize, usize),
    columns: &[(&str, CqlType)],
) -> Arc<Table> {
    let mut digest = md5::compute(format!("{keyspace}{name}")).0;
    digest[6] = (digest[6] & 0x0F) | 0x30;
    digest[8] = (digest[8] & 0x3F) | 0x80;
    let columns = columns.iter().enumerate().map(|(index, (name, ty))| {
        let kind = match index {
            _ if index < key => ColumnKind::PartitionKey,
            _ if index < key + clustering => ColumnKind::Clustering,
            _ => ColumnKind::Regular,
        };
        Column::new(name, kind, ty.clone())
    });
    let mut table = Table::new((keyspace, name), TableId(Uuid::from_bytes(digest)), columns);
    table.options = TableOptions { comment: comment.into(), gc_grace_seconds: 0, ..TableOptions::default() };
    Arc::new(table)
}
