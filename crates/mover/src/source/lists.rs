//! Makes the writes of lists of several cells.
//!
//! A list's element has an id that the node makes from its clock; no statement can give one (`Lists.Appender`). So the whole list
//! is sent in one batch: its deletion, then its elements in order, each run of equal timestamp and TTL appended by one
//! statement. Values, order, timestamps and TTLs are those of the source; only the ids differ.
//!
//! Sent twice, the elements would be there twice. A caller that may have sent the list before gives a floor, a timestamp at which
//! all that is there is deleted: elements get at least the microsecond after it.

use super::error::SourceError;
use super::rows::{put_clustering, put_partition_key};
use super::texts::{StatementKind, is_list};
use super::write::{Values, Write};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::ColumnId;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};

/// The name of a row, or of a static row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowName {
    /// Serialised partition key.
    pub key: Vec<u8>,
    /// The clustering values; `None` for the static row. A row of a compact table may have fewer than there are columns.
    pub clustering: Option<Vec<Vec<u8>>>,
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListElement {
    /// Write timestamp, microseconds.
    pub timestamp_us: i64,
    /// When it expires, seconds since the epoch; `NO_EXPIRY` without a TTL.
    pub expires_s: i64,
    /// The value.
    pub value: Vec<u8>,
}

/// What a row has of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListState {
    /// The deletion of the whole list.
    pub deletion: DeletionTime,
    /// The live elements in order.
    pub elements: Vec<ListElement>,
    /// The greatest timestamp of the deletion and of all elements, dead ones too; `i64::MIN` if there is nothing.
    pub newest_us: i64,
}

impl RowName {
    /// The name of a row.
    ///
    /// # Errors
    /// A clustering value is null.
    pub fn of(table: &Table, key: &[u8], row: RowView<'_>, is_static: bool) -> Result<RowName, SourceError> {
        let count = table.clustering.len();
        let clustering = match is_static {
            true => None,
            false => Some(clustering_of(table, (0..count).map(|index| row.clustering(index)))?),
        };
        Ok(RowName { key: key.to_vec(), clustering })
    }

    /// The number of its clustering values, if they are fewer than the clustering columns.
    pub fn prefix(&self, table: &Table) -> Option<u16> {
        let values = self.clustering.as_ref()?.len();
        (values < table.clustering.len()).then_some(values as u16)
    }

    /// The ordered encoding of the clustering; empty for the static row, and for values that have no order, which cannot have come from
    /// a row.
    pub fn order(&self, table: &Table) -> Vec<u8> {
        let mut order = Vec::new();
        if let Some(values) = &self.clustering {
            let _ = clustering_key(nullable(table, values), &table.clustering, &mut order);
        }
        order
    }

    /// Appends the values that name it.
    ///
    /// # Errors
    /// None in practice: a name has all values.
    pub fn put(&self, table: &Table, values: &mut Values) -> Result<(), SourceError> {
        put_partition_key(table, &self.key, values);
        match &self.clustering {
            None => Ok(()),
            Some(clustering) => {
                put_clustering(table, clustering.iter().map(|value| Some(&value[..])), values)
            }
        }
    }
}

/// Clustering values, with null for those that are missing at the end.
pub(crate) fn nullable<'v>(
    table: &Table,
    values: &'v [Vec<u8>],
) -> impl Iterator<Item = Option<&'v [u8]>> + Clone {
    let missing = table.clustering.len().saturating_sub(values.len());
    values.iter().map(|value| Some(&value[..])).chain(std::iter::repeat_n(None, missing))
}

/// The clustering values of a row, without the nulls at the end of one of a compact table.
///
/// # Errors
/// Another value is null.
pub(crate) fn clustering_of<'v>(
    table: &Table,
    values: impl Iterator<Item = Option<&'v [u8]>>,
) -> Result<Vec<Vec<u8>>, SourceError> {
    let mut all: Vec<Option<&[u8]>> = values.collect();
    if table.is_compact() && !table.is_counter() {
        while all.len() > 1 && all.last().is_some_and(Option::is_none) {
            all.pop();
        }
    }
    let name = |at: usize| table.clustering.get(at).map(|column| column.name.to_string());
    let value = |(at, value): (usize, Option<&[u8]>)| match value {
        Some(value) => Ok(value.to_vec()),
        None => Err(SourceError::NoClustering { column: name(at).unwrap_or_default() }),
    };
    all.into_iter().enumerate().map(value).collect()
}

/// The lists of several cells among the columns of a row or static row.
pub fn list_columns(table: &Table, is_static: bool) -> impl Iterator<Item = &Column> {
    let columns = if is_static { &table.statics } else { &table.regulars };
    columns.iter().filter(|column| is_list(&column.ty))
}

/// What a row has of a list; `None` if it has never been written.
pub fn list_of_row(row: RowView<'_>, column: ColumnId, now_s: i64) -> Option<ListState> {
    let deletion = row.complex_deletion_of(column).unwrap_or(DeletionTime::LIVE);
    let cells = row.cells_of(column);
    if deletion.is_live() && cells.is_empty() {
        return None;
    }
    let elements = cells.iter().filter(|cell| cell.is_live(now_s)).map(|cell| ListElement {
        timestamp_us: cell.timestamp_us,
        expires_s: cell.local_deletion_s,
        value: row.value(cell).to_vec(),
    });
    let newest_us = cells.iter().map(|cell| cell.timestamp_us).fold(deletion.timestamp_us, i64::max);
    Some(ListState { deletion, elements: elements.collect(), newest_us })
}

/// Where a list is.
#[derive(Clone, Copy)]
pub struct ListPlace<'a> {
    /// Its table.
    pub table: &'a Table,
    /// Its row.
    pub name: &'a RowName,
    /// Its column.
    pub column: ColumnId,
}

/// Appends the writes of a list, to be sent as one batch. With a floor everything up to it is deleted first.
///
/// # Errors
/// As `RowName::put`.
pub fn list_writes(
    list: ListPlace<'_>,
    state: &ListState,
    floor_us: Option<i64>,
    now_s: i64,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let ListPlace { table, name, column } = list;
    let deleted_us = state.deletion.timestamp_us.max(floor_us.unwrap_or(i64::MIN));
    if deleted_us != i64::MIN {
        let mut values = Values::default();
        values.put(&deleted_us.to_be_bytes());
        name.put(table, &mut values)?;
        out.push(Write { kind: StatementKind::DeleteColumn(column), values });
    }
    let least_us = floor_us.map_or(i64::MIN, |floor_us| floor_us + 1);
    let stamp = |element: &ListElement| (element.timestamp_us.max(least_us), element.expires_s);
    for run in state.elements.chunk_by(|one, next| stamp(one) == stamp(next)) {
        let Some((timestamp_us, expires_s)) = run.first().map(stamp) else { continue };
        let mut values = Values::default();
        values.put(&timestamp_us.to_be_bytes());
        values.put_ttl(expires_s, now_s);
        values.put_collection(run.len(), run.iter().map(|element| &element.value[..]));
        name.put(table, &mut values)?;
        out.push(Write { kind: StatementKind::Append(column), values });
    }
    Ok(())
}
