//! Puts the changes of a partition as statements, each with the client's timestamp and TTL.
//!
//! A column that is a row is written by UPDATE, which leaves no row marker behind: once its value is deleted or has expired, the row is
//! gone, as it was before COMPACT STORAGE was dropped.

use crate::families::Layout;
use crate::texts::{self, Bound};
use helenus_cql::CqlError;
use helenus_model::cell::Cell;
use helenus_model::mutation::{Change, PartitionUpdate, RangeBound};
use helenus_model::packed::unpack;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Column, Table};
use helenus_model::types::{key_values, quote_identifier};

/// The statements of the changes.
///
/// # Errors
/// A change that the table at the cluster cannot take.
pub(crate) fn statements(update: &PartitionUpdate) -> Result<Vec<Bound>, CqlError> {
    let table = &*update.table;
    let key = key_values(table.partition_key.len(), &update.key);
    let key: Vec<Vec<u8>> = key.into_iter().map(<[u8]>::to_vec).collect();
    let mut writer = Writer { table, key, out: Vec::new() };
    let mut row = RowBuf::default();
    for change in update.changes.iter() {
        match change.map_err(damaged)? {
            Change::PartitionDeletion(deletion) => {
                let restriction = texts::of_key(table);
                writer.delete("", deletion.timestamp_us, (&restriction, &[]));
            }
            Change::StaticRow(packed) => {
                row.clear();
                unpack(packed, 0, &mut row).map_err(damaged)?;
                writer.declared(RowView { row: &row, data: packed })?;
            }
            Change::Row(packed) => {
                row.clear();
                unpack(packed, table.clustering.len(), &mut row).map_err(damaged)?;
                writer.row(RowView { row: &row, data: packed })?;
            }
            Change::RangeDeletion { start, end, deletion } => {
                writer.delete_range((start, end), deletion.timestamp_us)?;
            }
        }
    }
    Ok(writer.out)
}

struct Writer<'t> {
    table: &'t Table,
    key: Vec<Vec<u8>>,
    out: Vec<Bound>,
}

impl Writer<'_> {
    /// A deletion: of these columns, or without any of all that the restriction names.
    fn delete(&mut self, columns: &str, timestamp_us: i64, (restriction, values): (&str, &[Vec<u8>])) {
        let (using, mut all) = match self.table.is_counter() {
            // The cluster gives counters their timestamps.
            true => ("", Vec::new()),
            false => (" USING TIMESTAMP ?", vec![timestamp_us.to_be_bytes().to_vec()]),
        };
        let space = if columns.is_empty() { "" } else { " " };
        let table = texts::table_name(self.table);
        let text = format!("DELETE{space}{columns} FROM {table}{using} WHERE {restriction}");
        all.extend(self.key.iter().chain(values).cloned());
        self.out.push(Bound { text, values: all });
    }

    /// Writes a cell of a row, or of the partition.
    fn update(&mut self, column: &Column, (cell, value): (&Cell, &[u8]), row: (&str, &[Vec<u8>])) {
        let (restriction, clustering) = row;
        let name = quote_identifier(&column.name);
        let table = texts::table_name(self.table);
        let (text, mut values) = match self.table.is_counter() {
            true => {
                let text = format!("UPDATE {table} SET {name} = {name} + ? WHERE {restriction}");
                (text, vec![value.to_vec()])
            }
            false => {
                let text =
                    format!("UPDATE {table} USING TIMESTAMP ? AND TTL ? SET {name} = ? WHERE {restriction}");
                let (timestamp, ttl) = (cell.timestamp_us.to_be_bytes(), cell.ttl_s.to_be_bytes());
                (text, vec![timestamp.to_vec(), ttl.to_vec(), value.to_vec()])
            }
        };
        values.extend(self.key.iter().chain(clustering).cloned());
        self.out.push(Bound { text, values });
    }

    /// Changes of declared columns.
    fn declared(&mut self, row: RowView<'_>) -> Result<(), CqlError> {
        let restriction = texts::of_key(self.table);
        for cell in &row.row.cells {
            let Some(column) = self.table.column_by_id(cell.column) else { continue };
            match cell.is_tombstone() {
                true => {
                    let name = quote_identifier(&column.name).to_string();
                    self.delete(&name, cell.timestamp_us, (&restriction, &[]));
                }
                false => self.update(column, (cell, row.value(cell)), (&restriction, &[])),
            }
        }
        Ok(())
    }

    /// Changes of a column that is a row.
    fn row(&mut self, row: RowView<'_>) -> Result<(), CqlError> {
        let table = self.table;
        if Layout::of(table) == Layout::Columns {
            let is_removal = row.row.cells.iter().all(Cell::is_tombstone);
            // What cannot be there needs no removal.
            return if is_removal { Ok(()) } else { Err(undeclared(table, row)) };
        }
        let values = row_values(table, row, table.clustering.len())?;
        let restriction = texts::of_row(table);
        for cell in &row.row.cells {
            let Some(column) = table.column_by_id(cell.column) else { continue };
            match cell.is_tombstone() {
                true => self.delete("", cell.timestamp_us, (&restriction, &values)),
                false => self.update(column, (cell, row.value(cell)), (&restriction, &values)),
            }
        }
        Ok(())
    }

    /// Deletes the rows between two bounds. Declared columns among them have changes of their own.
    fn delete_range(
        &mut self,
        (start, end): (RangeBound<'_>, RangeBound<'_>),
        timestamp_us: i64,
    ) -> Result<(), CqlError> {
        if Layout::of(self.table) == Layout::Columns {
            return Ok(());
        }
        if self.table.is_counter() {
            return Err(CqlError::Invalid(format!(
                "a range of columns of the counter table {} cannot be deleted through a gateway; name the columns",
                self.table.name
            )));
        }
        let mut bound = Bound::default();
        for (side, is_start) in [(start, true), (end, false)] {
            let values: Option<Vec<_>> = side.values().map(|value| value.map(<[u8]>::to_vec)).collect();
            texts::end(self.table, &values.unwrap_or_default(), (is_start, side.before), &mut bound);
        }
        let restriction = format!("{}{}", texts::of_key(self.table), bound.text);
        self.delete("", timestamp_us, (&restriction, &bound.values));
        Ok(())
    }
}

/// Calls back with each cell that an update writes: its column, the clustering of its row (empty for a declared column), and its value.
///
/// # Errors
/// A cell that the table at the cluster cannot have.
pub(crate) fn each_cell<'u>(
    update: &'u PartitionUpdate,
    mut take: impl FnMut(&'u Column, Vec<Vec<u8>>, (&Cell, &[u8])),
) -> Result<(), CqlError> {
    let table = &*update.table;
    let mut row = RowBuf::default();
    for change in update.changes.iter() {
        row.clear();
        let (packed, clustering) = match change.map_err(damaged)? {
            Change::StaticRow(packed) => (packed, 0),
            Change::Row(packed) => (packed, table.clustering.len()),
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => continue,
        };
        unpack(packed, clustering, &mut row).map_err(damaged)?;
        let view = RowView { row: &row, data: packed };
        if clustering > 0 && Layout::of(table) == Layout::Columns {
            return Err(undeclared(table, view));
        }
        let values = row_values(table, view, clustering)?;
        for cell in &row.cells {
            if let Some(column) = table.column_by_id(cell.column) {
                take(column, values.clone(), (cell, view.value(cell)));
            }
        }
    }
    Ok(())
}

fn damaged(_: impl std::fmt::Debug) -> CqlError {
    CqlError::Server("a change that was just made cannot be read".to_owned())
}

/// The first `count` clustering values of a row, which are all that it needs.
fn row_values(table: &Table, row: RowView<'_>, count: usize) -> Result<Vec<Vec<u8>>, CqlError> {
    let values = (0..count).map(|index| row.clustering(index).map(<[u8]>::to_vec));
    values.collect::<Option<Vec<_>>>().ok_or_else(|| {
        CqlError::Invalid(format!(
            "table {} has no COMPACT STORAGE any more: the name of a column needs all {} components",
            table.name,
            table.clustering.len()
        ))
    })
}

fn undeclared(table: &Table, row: RowView<'_>) -> CqlError {
    let name = String::from_utf8_lossy(row.clustering(0).unwrap_or_default()).into_owned();
    CqlError::Invalid(format!(
        "table {} has no column {name}: add it by ALTER TABLE {}.{} ADD {} TYPE",
        table.name,
        table.keyspace,
        table.name,
        quote_identifier(&name)
    ))
}
