//! Checks that rows are valid: values have their columns' types, paths lead into their collections, tombstones have no
//! values. A file with correct checksums may still fail, if its writer was wrong or had no checksums.
//!
//! Source: `Unfiltered.validateData`, `ColumnMetadata.validateCell`, `CounterContext.validateContext`.

use helenus_model::cell::Cell;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, key_values};
use helenus_model::unfiltered::Unfiltered;
use std::sync::Arc;

/// Bytes around each value of a partition key of several columns: its length and a zero.
const COMPONENT_BYTES: usize = 3;
/// Size of a shard of a counter in bytes.
const SHARD_BYTES: usize = 32;

type Checked = Result<(), String>;

/// Checks keys, rows and markers of one table. The errors describe what is wrong.
pub(crate) struct Validity {
    keys: Vec<(Arc<str>, CqlType)>,
    clustering: Vec<(Arc<str>, CqlType)>,
    /// Static and regular columns by their numbers.
    others: Vec<Option<(Arc<str>, CqlType)>>,
}

impl Validity {
    /// Checks by the types of a table's columns.
    pub(crate) fn of(table: &Table) -> Validity {
        let typed = |column: &Column| (column.name.clone(), column.ty.clone());
        let mut others = vec![None; usize::from(table.next_column_id)];
        for column in table.statics.iter().chain(&table.regulars) {
            if let Some(place) = others.get_mut(usize::from(column.id.0)) {
                *place = Some(typed(column));
            }
        }
        Validity {
            keys: table.partition_key.iter().map(typed).collect(),
            clustering: table.clustering.iter().map(typed).collect(),
            others,
        }
    }

    /// Checks a serialised partition key.
    pub(crate) fn key(&self, key: &[u8]) -> Checked {
        let values = key_values(self.keys.len(), key);
        let framed: usize = values.iter().map(|value| value.len() + COMPONENT_BYTES).sum();
        let is_whole = values.len() == self.keys.len() && (self.keys.len() == 1 || framed == key.len());
        if !is_whole {
            return Err(format!("a partition key that does not have {} values", self.keys.len()));
        }
        self.keys.iter().zip(values).try_for_each(|((name, ty), value)| valid(name, ty, value))
    }

    /// Checks a row or marker.
    pub(crate) fn element(&self, element: Unfiltered<'_>) -> Checked {
        match element {
            Unfiltered::Row(row) => {
                self.clustering(row.row.clustering.iter().map(|span| span.get(row.data)))?;
                self.row(row)
            }
            Unfiltered::Marker(marker) => {
                self.clustering(marker.marker.clustering.iter().map(|span| span.get(marker.data)))
            }
        }
    }

    /// Checks the cells of a row, static or not.
    pub(crate) fn row(&self, row: RowView<'_>) -> Checked {
        row.row.cells.iter().try_for_each(|cell| self.cell(cell, row))
    }

    fn clustering<'v>(&self, values: impl Iterator<Item = Option<&'v [u8]>>) -> Checked {
        let mut columns = self.clustering.iter().zip(values);
        // A list that was bound as a value may have nulls here too.
        columns
            .try_for_each(|((name, ty), value)| value.map_or(Ok(()), |value| valid_stored(name, ty, value)))
    }

    fn cell(&self, cell: &Cell, row: RowView<'_>) -> Checked {
        let Some(Some((name, ty))) = self.others.get(usize::from(cell.column.0)) else { return Ok(()) };
        let (value, path) = (row.value(cell), row.path(cell));
        let ty_of_value = match ty {
            _ if !ty.is_multi_cell() => Ok(ty),
            CqlType::List { element, .. } => CqlType::TimeUuid.validate(path).map(|()| &**element),
            CqlType::Set { element, .. } => element.validate(path).map(|()| &CqlType::Empty),
            CqlType::Map { key, value, .. } => key.validate(path).map(|()| &**value),
            CqlType::Udt(udt) => {
                let index = path.first_chunk::<2>().filter(|_| path.len() == 2);
                let index = index.map(|index| usize::from(u16::from_be_bytes(*index)));
                match index.and_then(|index| udt.fields.get(index)) {
                    Some((_, ty)) => Ok(ty),
                    None => return Err(format!("column {name}: a cell of no field of type {}", udt.name)),
                }
            }
            other => Ok(other),
        };
        let ty_of_value =
            ty_of_value.map_err(|error| format!("column {name}: the path of a cell: {error}"))?;
        if cell.is_tombstone() {
            let problem = || format!("column {name}: a tombstone with a value");
            return if value.is_empty() { Ok(()) } else { Err(problem()) };
        }
        if cell.is_expiring() && cell.ttl_s < 0 {
            return Err(format!("column {name}: a negative time to live"));
        }
        match ty_of_value {
            CqlType::Counter => counter(name, value),
            ty => valid_stored(name, ty, value),
        }
    }
}

fn valid(name: &str, ty: &CqlType, value: &[u8]) -> Checked {
    ty.validate(value).map_err(|error| format!("column {name} ({ty}): {error}"))
}

/// Checks a value that may be a list with nulls.
fn valid_stored(name: &str, ty: &CqlType, value: &[u8]) -> Checked {
    ty.validate_stored(value).map_err(|error| format!("column {name} ({ty}): {error}"))
}

/// Checks that whole shards fill a counter's value after its header.
fn counter(name: &str, context: &[u8]) -> Checked {
    let header = context.first_chunk::<2>().map(|count| i16::from_be_bytes(*count).unsigned_abs());
    let shards = header.and_then(|count| context.len().checked_sub(2 + 2 * usize::from(count)));
    match shards {
        Some(bytes) if bytes % SHARD_BYTES == 0 => Ok(()),
        _ => Err(format!("column {name}: {} bytes are no counter", context.len())),
    }
}
