//! Computes the entries that a row has in an index.

use crate::error::{Error, Result};
use helenus_model::byte_comparable::decorated_key;
use helenus_model::cell::Cell;
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::index::IndexLayout;
use helenus_model::mutation::{Changes, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::ColumnKind;
use helenus_model::token::Token;
use helenus_model::types::TypeError;

/// One entry of a row: its term, the path of its cell, and the row marker of the entry.
pub(crate) struct Entry<'r> {
    pub(crate) term: Vec<u8>,
    pub(crate) path: Option<&'r [u8]>,
    pub(crate) liveness: Liveness,
}

/// Whether a row may change the entries of an index: a quick check before entries are made.
pub(crate) fn concerns(shape: &IndexLayout, row: RowView<'_>, is_static: bool) -> bool {
    match shape.column.kind {
        ColumnKind::PartitionKey => true,
        ColumnKind::Clustering => !is_static,
        ColumnKind::Static => is_static && !row.cells_of(shape.column.id).is_empty(),
        ColumnKind::Regular => !is_static && !row.cells_of(shape.column.id).is_empty(),
    }
}

/// Calls `each` with every entry of a row of the partition `key`. Dead cells have none; entries of expiring cells
/// expire with them. An entry of a key column does not expire: one cell of its row may outlive another, and a stale
/// entry costs less than a missing one.
pub(crate) fn entries_of<'r>(
    shape: &IndexLayout,
    (key, row): (&[u8], RowView<'r>),
    each: &mut dyn FnMut(Entry<'r>) -> Result<()>,
) -> Result<()> {
    match shape.column.kind {
        ColumnKind::PartitionKey | ColumnKind::Clustering => {
            let Some(timestamp_us) = newest_of(row) else { return Ok(()) };
            let value = if shape.column.kind == ColumnKind::Clustering {
                row.clustering(shape.column.position)
            } else {
                shape.key_part(key)
            };
            let Some(value) = value else { return Ok(()) };
            let term = shape.term(None, value).map_err(|error| unindexable(shape, &error))?;
            each(Entry { term, path: None, liveness: Liveness::at(timestamp_us) })
        }
        ColumnKind::Static | ColumnKind::Regular => {
            for cell in row.cells_of(shape.column.id).iter().filter(|cell| !cell.is_tombstone()) {
                each(entry_of_cell(shape, row, cell)?)?;
            }
            Ok(())
        }
    }
}

/// The entry of one cell.
pub(crate) fn entry_of_cell<'r>(shape: &IndexLayout, row: RowView<'r>, cell: &Cell) -> Result<Entry<'r>> {
    let term = shape.cell_term(row, cell).map_err(|error| unindexable(shape, &error))?;
    let liveness =
        Liveness { timestamp_us: cell.timestamp_us, ttl_s: cell.ttl_s, expires_s: cell.local_deletion_s };
    Ok(Entry { term, path: shape.has_path().then(|| row.path(cell)), liveness })
}

/// The greatest timestamp of the row marker and the cells that keep a row alive.
fn newest_of(row: RowView<'_>) -> Option<i64> {
    let liveness = (!row.row.liveness.is_none()).then_some(row.row.liveness.timestamp_us);
    let cells = row.row.cells.iter().filter(|cell| !cell.is_tombstone()).map(|cell| cell.timestamp_us);
    cells.chain(liveness).max()
}

pub(super) fn unindexable(shape: &IndexLayout, error: &TypeError) -> Error {
    Error::Unindexable { message: format!("index {}: {error}", shape.index.name) }
}

/// Where an entry stands in the hidden table.
pub(crate) struct EntryPlace<'a, C> {
    pub(crate) term: EntryTerm<'a>,
    /// The position of the row's partition.
    pub(crate) position: &'a [u8],
    /// The clustering of the row.
    pub(crate) clustering: C,
}

/// Collects updates of hidden tables.
#[derive(Default)]
pub(crate) struct EntryWriter {
    pub(crate) updates: Vec<PartitionUpdate>,
    position: Vec<u8>,
}

/// The row that entries point to: its partition's key, and its clustering.
#[derive(Clone, Copy)]
pub(crate) struct IndexedRow<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) row: RowView<'a>,
}

/// What an entry is found by: the term, and the path of a collection's element.
#[derive(Clone, Copy)]
pub(crate) struct EntryTerm<'a> {
    pub(crate) term: &'a [u8],
    pub(crate) path: Option<&'a [u8]>,
}

impl<'r> Entry<'r> {
    /// What it is found by.
    pub(crate) fn found_by(&self) -> EntryTerm<'_> {
        EntryTerm { term: &self.term, path: self.path }
    }
}

impl EntryWriter {
    /// Adds an entry of the row with this clustering in partition `key`.
    pub(crate) fn add(&mut self, shape: &IndexLayout, at: IndexedRow<'_>, entry: &Entry<'_>) {
        self.put(shape, at, entry.found_by(), (entry.liveness, DeletionTime::LIVE));
    }

    /// Removes an entry, if it is not newer than `deletion`. An entry with the greatest of all timestamps stays: none
    /// could be written after its removal.
    pub(crate) fn remove(
        &mut self,
        shape: &IndexLayout,
        at: IndexedRow<'_>,
        term: EntryTerm<'_>,
        deletion: DeletionTime,
    ) {
        if deletion.timestamp_us < i64::MAX {
            self.put(shape, at, term, (Liveness::NONE, deletion));
        }
    }

    fn put(
        &mut self,
        shape: &IndexLayout,
        at: IndexedRow<'_>,
        term: EntryTerm<'_>,
        head: (Liveness, DeletionTime),
    ) {
        let IndexedRow { key, row } = at;
        let clustering = (0..shape.base.clustering.len()).map(|index| row.clustering(index));
        let mut position = std::mem::take(&mut self.position);
        position.clear();
        decorated_key(Token::of_key(key), key, &mut position);
        self.put_at(shape, EntryPlace { position: &position, clustering, term }, head);
        self.position = position;
    }

    /// Like `put`, for an entry whose partition position and clustering are known.
    pub(crate) fn put_at<'v>(
        &mut self,
        shape: &IndexLayout,
        place: EntryPlace<'v, impl Iterator<Item = Option<&'v [u8]>>>,
        head: (Liveness, DeletionTime),
    ) {
        let key = shape.key_of(place.term.term);
        let is_last = |update: &PartitionUpdate| update.table.id == shape.table.id && update.key == key;
        if !self.updates.last().is_some_and(is_last) {
            let changes = Changes::default();
            self.updates.push(PartitionUpdate { table: shape.table.clone(), key, changes });
        }
        let Some(update) = self.updates.last_mut() else { return };
        update.changes.row(place.values(shape), head, &[], |_| {});
    }
}

impl<'v, C: Iterator<Item = Option<&'v [u8]>>> EntryPlace<'v, C> {
    /// The clustering of the entry in the hidden table.
    pub(crate) fn values(self, shape: &IndexLayout) -> impl Iterator<Item = Option<&'v [u8]>> {
        let EntryPlace { position, clustering, term: EntryTerm { term, path } } = self;
        let value = shape.is_ordered().then_some(Some(term));
        let rows = if shape.is_of_partitions() { 0 } else { usize::MAX };
        value.into_iter().chain([Some(position)]).chain(clustering.take(rows)).chain(path.map(Some))
    }
}
