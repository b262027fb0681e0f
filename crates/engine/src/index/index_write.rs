//! The index part of the write path: computes the entries that a mutation adds to the indexes of its tables, and those
//! that it makes stale.
//!
//! It runs for every write, before its record is logged and inside the gate. So a write either comes before an index is
//! attached, and the build finds it, or its entries are made here. No file is read. Replaced values are looked up only
//! in the memtable, where most recently written rows still are. Replaced values in files leave stale entries, which the
//! first search that finds them removes (`stale_entries`).

use super::entries::{EntryWriter, IndexedRow, concerns, entries_of, entry_of_cell};
use crate::error::{Error, Result};
use crate::memtable::{CursorMemory, Memtable, MemtableCursor, PartitionRef, Selected};
use crate::table::{AttachedIndex, TableIndexes, Tables};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::Cell;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::ClusteringFilter;
use helenus_model::index::IndexLayout;
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed;
use helenus_model::reconcile::left_wins;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::ColumnKind;
use helenus_model::token::Token;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use std::collections::HashMap;
use std::sync::Arc;

/// The most new cells of a column that are searched one by one for each old cell.
const CELLS_WALKED_MAX: usize = 8;
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
        for AttachedIndex { shape, .. } in self.attached {
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
                entries_of(shape, (&self.update.key, row), &mut |entry| {
                    // All cells are checked at once: a row may have many.
                    if !std::mem::replace(&mut is_checked, true) {
                        check_size(shape, row)?;
                    }
                    writer.add(shape, IndexedRow { key: &self.update.key, row }, &entry);
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

    /// The row in the memtable; empty if there is none.
    fn old_row(&self, row: RowView<'_>, is_static: bool, partition: PartitionRef<'_>) -> Result<RowBuf> {
        let mut found = RowBuf::default();
        let content = partition.content();
        let sequence = content.sequence();
        if is_static {
            if let Some(bytes) = content.static_row(sequence) {
                let mut unpacked = RowBuf::default();
                packed::unpack(bytes, 0, &mut unpacked)?;
                found.copy_from(RowView { row: &unpacked, data: bytes });
            }
            return Ok(found);
        }
        let columns = &self.update.table.clustering;
        let mut name = Vec::new();
        let values = (0..columns.len()).map(|index| row.clustering(index));
        if clustering_key(values, columns, &mut name).is_err() {
            return Ok(found);
        }
        let filter = Arc::new(ClusteringFilter::Names(vec![name]));
        let selected =
            Selected { sequence, clustering_columns: columns.len(), filter: &filter, reversed: false };
        let memory: Box<CursorMemory> = Box::default();
        let mut cursor = MemtableCursor::new(self.memtable, partition, &selected, memory);
        let mut cx = ReadContext::default();
        while cursor.advance(&mut cx)? {
            if let Unfiltered::Row(row) = <MemtableCursor as Source<ReadContext>>::current(&cursor) {
                found.copy_from(row);
            }
        }
        Ok(found)
    }
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
    let is_vector = matches!(column.ty, helenus_model::types::CqlType::Vector { .. });
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
