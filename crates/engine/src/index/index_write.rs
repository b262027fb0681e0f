//! The index part of the write path: computes the entries that a mutation adds to the indexes of its tables, and those
//! that it makes stale.
//!
//! It runs for every write, before its record is logged and inside the gate. So a write either comes before an index is
//! attached, and the build finds it, or its entries are made here. No file is read. Replaced values are looked up only
//! in the memtable, where most recently written rows still are. Replaced values in files leave stale entries, which the
//! first search that finds them removes (`stale_entries`). `entry_time` chooses the timestamps of entries.

use super::entries::{Entry, EntryWriter, IndexedRow, concerns, entries_of, entry_of_cell};
use super::entry_time::{EntryTimes, memtable_row};
use crate::error::{Error, Result};
use crate::memtable::{Memtable, PartitionRef, RowBuffers};
use crate::table::{TableIndexes, Tables};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::DeletionTime;
use helenus_model::index::{IndexLayout, check_vector, is_by_cosine};
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed;
use helenus_model::reconcile::left_wins;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::ColumnKind;
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The most new cells of a column that are searched one by one for each old cell.
const CELLS_WALKED_MAX: usize = 8;
/// The bytes of a row in the memtable that are looked at for cells that a write replaces: some thousand cells.
const OLD_BYTES_MAX: usize = 64 << 10;
/// Longest value of a legacy index, bytes (`CassandraIndex.validateIndexedValue`).
const LEGACY_VALUE_BYTES_MAX: usize = 65_535;
/// Longest term of a storage-attached index, bytes: `sai_string_term_size_fail_threshold`, and the corresponding one
/// for frozen values.
const SAI_VALUE_BYTES_MAX: usize = 8 << 10;
/// Longest vector of a storage-attached index, bytes: `sai_vector_term_size_fail_threshold`.
const SAI_VECTOR_BYTES_MAX: usize = 32 << 10;

/// The updates of hidden tables that belong to a mutation. If no table has an index, the result is empty and costs
/// nothing.
///
/// # Errors
/// `Unindexable`: a value that an index cannot store.
pub(crate) fn index_updates(
    tables: &Tables,
    mutation: &Mutation,
    now_s: i64,
) -> Result<Vec<PartitionUpdate>> {
    let mut writer = EntryWriter::default();
    for update in &mutation.updates {
        let Some(store) = tables.get(&update.table.id) else { continue };
        let attached = store.indexes();
        if !attached.is_empty() {
            let view = store.view();
            EntryUpdates { attached: &attached, memtable: view.current(), update, now_s }
                .observe(&mut writer)?;
        }
    }
    Ok(writer.updates)
}

struct EntryUpdates<'a> {
    attached: &'a TableIndexes,
    /// The table's current memtable.
    memtable: &'a Arc<Memtable>,
    update: &'a PartitionUpdate,
    now_s: i64,
}

impl EntryUpdates<'_> {
    fn observe(&self, writer: &mut EntryWriter) -> Result<()> {
        let mut row = RowBuf::default();
        let present = self.memtable.partition_of_key(Token::of_key(&self.update.key), &self.update.key);
        for change in self.update.changes.iter() {
            let (bytes, is_static) = match change? {
                Change::Row(bytes) => (bytes, false),
                Change::StaticRow(bytes) => (bytes, true),
                // Searches find the entries that a deletion of many rows makes stale.
                Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => continue,
            };
            let clustering_columns = if is_static { 0 } else { self.update.table.clustering.len() };
            packed::unpack(bytes, clustering_columns, &mut row)?;
            let view = RowView { row: &row, data: bytes };
            self.row(view, is_static, present, writer)?;
        }
        Ok(())
    }

    fn row(
        &self,
        row: RowView<'_>,
        is_static: bool,
        present: Option<PartitionRef<'_>>,
        writer: &mut EntryWriter,
    ) -> Result<()> {
        let mut old = None;
        for index in self.attached {
            let shape = &index.shape;
            let deletes = !row.row.deletion.is_live() || !row.row.complex_deletions.is_empty();
            if !concerns(shape, row, is_static) && !deletes {
                continue;
            }
            if let Some(partition) = present
                && shape.column.kind != ColumnKind::PartitionKey
                && is_static == (shape.column.kind == ColumnKind::Static)
            {
                let old = match &mut old {
                    Some(old) => old,
                    none => none.insert(self.old_row(row, is_static, partition)?),
                };
                self.replaced(shape, row, old.view(), writer)?;
            }
            if concerns(shape, row, is_static) {
                let mut is_checked = false;
                let times = EntryTimes::new(index);
                let at = IndexedRow { key: &self.update.key, row };
                entries_of(shape, (&self.update.key, row), &mut |entry| {
                    // All cells are checked at once: a row may have many.
                    if !std::mem::replace(&mut is_checked, true) {
                        check_size(shape, row)?;
                        check_vectors(shape, row)?;
                    }
                    let liveness = times.liveness(at, &entry)?;
                    writer.add(shape, at, &Entry { liveness, ..entry });
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Removes the entries of cells that this write replaces or deletes.
    fn replaced(
        &self,
        shape: &IndexLayout,
        row: RowView<'_>,
        old: RowView<'_>,
        writer: &mut EntryWriter,
    ) -> Result<()> {
        let at = IndexedRow { key: &self.update.key, row };
        if shape.column.kind == ColumnKind::Clustering {
            return entries_of(shape, (&self.update.key, old), &mut |entry| {
                if row.row.deletion.deletes(entry.liveness.timestamp_us) {
                    let deletion = self.deletion(entry.liveness.timestamp_us);
                    writer.remove(shape, at, entry.found_by(), deletion);
                }
                Ok(())
            });
        }
        let id = shape.column.id;
        let complex = row.complex_deletion_of(id);
        let hides = complex.map_or(row.row.deletion, |deletion| deletion.max(row.row.deletion));
        let new = row.cells_of(id);
        // Cells are in the order of the paths' type, which is not known here.
        let by_path: Option<HashMap<&[u8], &Cell>> =
            (new.len() > CELLS_WALKED_MAX).then(|| new.iter().map(|new| (row.path(new), new)).collect());
        for cell in old.cells_of(id).iter().filter(|cell| !cell.is_tombstone()) {
            let path = old.path(cell);
            let newer = match &by_path {
                Some(by_path) => by_path.get(path).copied(),
                None => new.iter().find(|new| row.path(new) == path),
            };
            let wins = |new: &Cell| !left_wins((cell, old.value(cell)), (new, row.value(new)));
            let is_hidden = !hides.is_live() && cell.is_deleted_by(hides);
            // If timestamps are equal, the older value may win again, for example by a later expiry. Its entry stays.
            let is_final = |new: &Cell| new.timestamp_us > cell.timestamp_us || new.is_tombstone();
            let newer = newer.filter(|new| wins(new) && is_final(new));
            if !is_hidden && newer.is_none() {
                continue;
            }
            let entry = entry_of_cell(shape, old, cell)?;
            let keeps = match newer.filter(|new| !new.is_tombstone()) {
                Some(new) => entry_of_cell(shape, row, new)?.term == entry.term,
                None => false,
            };
            if !keeps {
                writer.remove(shape, at, entry.found_by(), self.deletion(cell.timestamp_us));
            }
        }
        Ok(())
    }

    fn deletion(&self, timestamp_us: i64) -> DeletionTime {
        DeletionTime { timestamp_us, local_s: self.now_s }
    }

    /// What this write replaces or deletes of the row in the memtable: the cells of indexed columns that it has too, or
    /// whose column it deletes. Of a large row only the newest part is looked at, unless a column is deleted: an entry that
    /// is left is removed by the first search that finds it.
    fn old_row(&self, row: RowView<'_>, is_static: bool, partition: PartitionRef<'_>) -> Result<RowBuf> {
        if !row.row.deletion.is_live() {
            return self.whole_old_row(row, is_static, partition);
        }
        let mut found = RowBuf::default();
        let (content, columns) = (partition.content(), &self.update.table.clustering);
        let stored = if is_static {
            content.static_row(content.sequence())
        } else {
            self.name_of(row).and_then(|name| content.row(&name, content.sequence()))
        };
        let Some(stored) = stored else { return Ok(found) };
        let is_indexed = |id| self.attached.iter().any(|index| index.shape.column.id == id);
        let deletes = |id| row.complex_deletion_of(id).is_some();
        let deletes_any = row.row.complex_deletions.iter().any(|(id, _)| is_indexed(*id));
        let bytes_max = if deletes_any { usize::MAX } else { OLD_BYTES_MAX };
        let new = &row.row.cells;
        let by_path: Option<HashSet<(ColumnId, &[u8])>> = (new.len() > CELLS_WALKED_MAX)
            .then(|| new.iter().map(|cell| (cell.column, row.path(cell))).collect());
        let replaces = |cell: &Cell, path: &[u8]| match &by_path {
            Some(by_path) => by_path.contains(&(cell.column, path)),
            None => new.iter().any(|new| new.column == cell.column && row.path(new) == path),
        };
        let columns = if is_static { 0 } else { columns.len() };
        stored.copy_cells(
            (columns, bytes_max),
            |cell, path| is_indexed(cell.column) && (deletes(cell.column) || replaces(cell, path)),
            &mut found,
        )?;
        Ok(found)
    }

    /// The ordered key of a row; `None` if its values have none.
    fn name_of(&self, row: RowView<'_>) -> Option<Vec<u8>> {
        let columns = &self.update.table.clustering;
        let mut name = Vec::new();
        let values = (0..columns.len()).map(|index| row.clustering(index));
        clustering_key(values, columns, &mut name).ok()?;
        Some(name)
    }

    /// The row in the memtable; empty if there is none.
    fn whole_old_row(
        &self,
        row: RowView<'_>,
        is_static: bool,
        partition: PartitionRef<'_>,
    ) -> Result<RowBuf> {
        let mut found = RowBuf::default();
        if is_static {
            let content = partition.content();
            if let Some(row) = content.static_row(content.sequence()) {
                let mut buffers = RowBuffers::default();
                found.copy_from(row.decode((&self.update.table, 0), &mut buffers)?);
            }
            return Ok(found);
        }
        match self.name_of(row) {
            Some(name) => memtable_row(self.memtable, partition, (&self.update.table, &name)),
            None => Ok(found),
        }
    }
}

/// Refuses a vector that has no similarity to others, with Cassandra's message.
fn check_vectors(shape: &IndexLayout, row: RowView<'_>) -> Result<()> {
    let column = &shape.column;
    let is_of_floats = matches!(&column.ty, CqlType::Vector { element, .. } if **element == CqlType::Float);
    if !is_of_floats || !shape.index.is_sai() {
        return Ok(());
    }
    let is_by_cosine = is_by_cosine(&shape.index);
    for cell in row.cells_of(column.id).iter().filter(|cell| !cell.is_tombstone()) {
        check_vector(row.value(cell), is_by_cosine)
            .map_err(|problem| Error::Unindexable { message: problem.to_string() })?;
    }
    Ok(())
}

/// Refuses a value that is too long for an index, with Cassandra's message.
fn check_size(shape: &IndexLayout, row: RowView<'_>) -> Result<()> {
    let column = &shape.column;
    let of_cells =
        || row.cells_of(column.id).iter().map(|cell| row.value(cell).len().max(row.path(cell).len()));
    let longest = match column.kind {
        ColumnKind::PartitionKey => return Ok(()),
        ColumnKind::Clustering => row.clustering(column.position).map_or(0, <[u8]>::len),
        ColumnKind::Static | ColumnKind::Regular => of_cells().max().unwrap_or_default(),
    };
    let is_vector = matches!(column.ty, CqlType::Vector { .. });
    let (limit, is_sai) = match shape.index.is_sai() {
        true if is_vector => (SAI_VECTOR_BYTES_MAX, true),
        true => (SAI_VALUE_BYTES_MAX, true),
        false => (LEGACY_VALUE_BYTES_MAX, false),
    };
    if longest < limit || (is_sai && longest == limit) {
        return Ok(());
    }
    let (name, base) = (&shape.index.name, &shape.base);
    let message = if is_sai {
        format!(
            "Value of {longest} bytes is too large for index {name} on {}.{}({}); the largest is {limit}",
            base.keyspace, base.name, column.name
        )
    } else {
        format!(
            "Cannot index value of size {longest} for index {name} on {}.{}({}) (maximum allowed size={limit})",
            base.keyspace, base.name, column.name
        )
    };
    Err(Error::Unindexable { message })
}
