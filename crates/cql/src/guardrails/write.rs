//! Checks written data: sizes of values and collections, timestamps.

use super::limits::Guardrails;
use crate::error::Result;
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed::unpack;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, collection_size};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Bytes that Cassandra counts for a cell besides its path and value: timestamp, TTL, expiry (`Cell.dataSize`).
const CELL_BYTES: u64 = 20;

impl Guardrails {
    /// Checks a mutation. `now_us` is from the wall clock to the server's last timestamp, if that is later.
    ///
    /// # Errors
    /// Something in it exceeds a limit.
    pub(crate) fn mutation(&self, mutation: &Mutation, now_us: &RangeInclusive<i64>) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        let sizes = [&self.column_value_size, &self.collection_size, &self.items_per_collection];
        let times = [&self.minimum_timestamp_us, &self.maximum_timestamp_us];
        if sizes.into_iter().chain(times).any(|threshold| threshold.is_set()) {
            for update in &mutation.updates {
                self.update(update, now_us, &mut warnings)?;
            }
        }
        Ok(warnings)
    }

    fn update(
        &self,
        update: &PartitionUpdate,
        now_us: &RangeInclusive<i64>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let mut row = RowBuf::default();
        for change in update.changes.iter() {
            let (bytes, columns) = match change {
                Ok(Change::Row(bytes)) => (bytes, update.table.clustering.len()),
                Ok(Change::StaticRow(bytes)) => (bytes, 0),
                // The statement made these changes, so they are not damaged; deletions have no values.
                _ => continue,
            };
            if unpack(bytes, columns, &mut row).is_err() {
                continue;
            }
            self.row(&update.table, &row, bytes, warnings)?;
            let stamps = row.cells.iter().map(|cell| cell.timestamp_us);
            let marker = Some(row.liveness.timestamp_us).filter(|timestamp_us| *timestamp_us != i64::MIN);
            if let Some(timestamp_us) = stamps.chain(marker).max() {
                self.timestamp_of(&update.table, timestamp_us, now_us, warnings)?;
            }
        }
        Ok(())
    }

    fn row(&self, table: &Table, row: &RowBuf, bytes: &[u8], warnings: &mut Vec<String>) -> Result<()> {
        // Elements and bytes of each collection.
        let mut collections: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for cell in row.cells.iter().filter(|cell| !cell.is_tombstone()) {
            let Some(column) = table.columns().find(|column| column.id == cell.column) else { continue };
            let path = cell.path.get(bytes).unwrap_or_default();
            let value = cell.value.get(bytes).unwrap_or_default();
            let size = CELL_BYTES + (path.len() + value.len()) as u64;
            if column.ty.is_multi_cell() && !matches!(column.ty, CqlType::Udt(_)) {
                let entry = collections.entry(&column.name).or_default();
                *entry = (entry.0 + 1, entry.1 + size);
            } else if is_collection(column) {
                let items = if value.is_empty() { 0 } else { collection_size(value) as u64 };
                collections.insert(&column.name, (items, size));
            }
            self.value(&column.name, value.len().max(path.len()) as u64, warnings)?;
        }
        for (name, (items, size)) in collections {
            self.collection(name, items, size, warnings)?;
        }
        Ok(())
    }

    fn value(&self, name: &str, size: u64, warnings: &mut Vec<String>) -> Result<()> {
        warnings.extend(self.column_value_size.above(
            ("column_value_size", ""),
            size,
            |warning, bound| {
                let kind = kind(warning);
                format!(
                    "Value of column '{name}' has size {size}, this exceeds the {kind} threshold of {bound}."
                )
            },
        )?);
        Ok(())
    }

    fn collection(&self, name: &str, items: u64, size: u64, warnings: &mut Vec<String>) -> Result<()> {
        let count = self.items_per_collection.above(("items_per_collection", ""), items, |warning, bound| {
            let kind = kind(warning);
            format!("Detected collection {name} with {items} items, this exceeds the {kind} threshold of {bound}.")
        })?;
        warnings.extend(count);
        warnings.extend(self.collection_size.above(("collection_size", ""), size, |warning, bound| {
            let kind = kind(warning);
            format!(
                "Detected collection {name} of size {size}, this exceeds the {kind} threshold of {bound}."
            )
        })?);
        Ok(())
    }

    fn timestamp_of(
        &self,
        table: &Table,
        timestamp_us: i64,
        now_us: &RangeInclusive<i64>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let name = &table.name;
        let (wall_us, latest_us) = (*now_us.start(), *now_us.end());
        let ahead = u64::try_from(timestamp_us.saturating_sub(latest_us)).unwrap_or(0);
        let behind = u64::try_from(wall_us.saturating_sub(timestamp_us)).unwrap_or(0);
        let late = "Timestamps too far in the future can lead to data that can't be easily overwritten";
        let judged = self.maximum_timestamp_us.above(("maximum_timestamp", late), ahead, |warning, bound| {
            let (kind, bound) = (kind(warning), i128::from(latest_us) + i128::from(bound));
            format!("The modification to table {name} has a timestamp {timestamp_us} after the maximum allowable {kind} threshold {bound}")
        })?;
        warnings.extend(judged);
        let early = "Timestamps too far in the past can cause writes can be unexpectedly lost";
        warnings.extend(self.minimum_timestamp_us.above(("minimum_timestamp", early), behind, |warning, bound| {
            let (kind, bound) = (kind(warning), i128::from(wall_us) - i128::from(bound));
            format!("The modification to table {name} has a timestamp {timestamp_us} before the minimum allowable {kind} threshold {bound}")
        })?);
        Ok(())
    }
}

fn kind(warning: bool) -> &'static str {
    if warning { "warning" } else { "failure" }
}

fn is_collection(column: &Column) -> bool {
    matches!(column.ty, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. })
}
