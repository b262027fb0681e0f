//! Reconciliation: decides which of two cells remains, and what remains of two versions of a row.
//!
//! Memtable updates, reads and compaction use the same rules. Source: Cassandra's `Cells.reconcile`, `Row.Merger` and
//! `ColumnData`.

use crate::cell::{Cell, ColumnId, Span};
use crate::counter_context::{self, Merged};
use crate::deletion::{DeletionTime, NO_EXPIRY};
use crate::row::{ROW_BYTES_MAX, RowBuf, RowTooLarge, RowView, span};
use crate::schema::Table;
use crate::types::CqlType;
use std::cmp::Ordering;

/// Whether the left of two cells of the same column and path remains.
///
/// The greater timestamp wins; then a deleted or expiring cell over another; a tombstone over an expiring cell; the
/// later local deletion time; the lower TTL; the greater value bytes. Of equal cells the left remains.
pub fn left_wins(left: (&Cell, &[u8]), right: (&Cell, &[u8])) -> bool {
    let (l, r) = (left.0, right.0);
    if l.timestamp_us != r.timestamp_us {
        return l.timestamp_us > r.timestamp_us;
    }
    let ends = |cell: &Cell| cell.local_deletion_s != NO_EXPIRY;
    if ends(l) || ends(r) {
        if ends(l) != ends(r) {
            return ends(l);
        }
        if l.is_expiring() != r.is_expiring() {
            return !l.is_expiring();
        }
        if l.local_deletion_s != r.local_deletion_s {
            return l.local_deletion_s > r.local_deletion_s;
        }
        if l.ttl_s != r.ttl_s {
            return l.ttl_s < r.ttl_s;
        }
    }
    left.1 >= right.1
}

/// Order of two cell paths of one multi-cell column.
pub fn compare_paths(table: &Table, column: ColumnId, left: &[u8], right: &[u8]) -> Ordering {
    match table.column_by_id(column).map(|column| &column.ty) {
        Some(CqlType::List { .. }) => CqlType::TimeUuid.compare(left, right),
        Some(CqlType::Set { element, .. }) => element.compare(left, right),
        Some(CqlType::Map { key, .. }) => key.compare(left, right),
        _ => left.cmp(right),
    }
}

/// Merges two versions of one row under a deletion that covers both, into `out` (which is cleared).
///
/// Data that the covering deletion or the merged row's own deletions hide is left out, and so is a row deletion that is
/// not stronger than the covering one. If nothing of the row remains, `out` is empty.
///
/// For rows of limited size, such as those of mutations; others take `try_merge_rows`.
pub fn merge_rows(
    table: &Table,
    left: RowView<'_>,
    right: RowView<'_>,
    covering: DeletionTime,
    out: &mut RowBuf,
) {
    // A span's own assertion is the limit.
    let merged = merge_within(usize::MAX, table, (left, right), covering, out);
    debug_assert!(merged.is_ok(), "there is no other limit");
}

/// As `merge_rows`, for rows of any size: pieces of one row, each as large as a request may be, add up.
///
/// # Errors
/// The merged row would be too large. `out` has a part of it.
pub fn try_merge_rows(
    table: &Table,
    left: RowView<'_>,
    right: RowView<'_>,
    covering: DeletionTime,
    out: &mut RowBuf,
) -> Result<(), RowTooLarge> {
    merge_within(ROW_BYTES_MAX, table, (left, right), covering, out)
}

fn merge_within(
    bytes_max: usize,
    table: &Table,
    (left, right): (RowView<'_>, RowView<'_>),
    covering: DeletionTime,
    out: &mut RowBuf,
) -> Result<(), RowTooLarge> {
    let (l, r) = (left.row, right.row);
    let deletion = l.deletion.max(r.deletion);
    let active = start_row(left, deletion, covering, out);
    let liveness = if r.liveness.supersedes(l.liveness) { r.liveness } else { l.liveness };
    if !liveness.is_none() && !active.deletes(liveness.timestamp_us) {
        out.liveness = liveness;
    }
    merge_complex_deletions(l, r, active, out);
    let counts = table.is_counter();
    let (mut i, mut j) = (0, 0);
    while i < l.cells.len() || j < r.cells.len() {
        let order = match (l.cells.get(i), r.cells.get(j)) {
            (Some(a), Some(b)) => a.column.cmp(&b.column).then_with(|| {
                if a.path.is_null() && b.path.is_null() {
                    Ordering::Equal
                } else {
                    compare_paths(table, a.column, left.path(a), right.path(b))
                }
            }),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (cell, data) = match order {
            Ordering::Less => (&l.cells[i], left.data),
            Ordering::Greater => (&r.cells[j], right.data),
            Ordering::Equal => {
                let (a, b) = (&l.cells[i], &r.cells[j]);
                if counts {
                    push_counter((a, left.data), (b, right.data), active, out);
                    (i, j) = (i + 1, j + 1);
                    continue;
                }
                let keep_left = left_wins((a, left.value(a)), (b, right.value(b)));
                if keep_left { (a, left.data) } else { (b, right.data) }
            }
        };
        out.check_room(cell, bytes_max)?;
        if out.grows_far(cell) {
            out.reserve_cells(l.cells[i..].iter().chain(&r.cells[j..]));
        }
        push_unless_deleted(cell, data, active, out);
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    Ok(())
}

/// Merges a small version of a row into a large one where it stands, for `O(log n)` comparisons a cell instead of a walk of
/// the large row. Both are versions of the same row of a table without counters, and `new` deletes nothing but single
/// cells. The result is that of `merge_rows` under no covering deletion, if the large row hides none of its own cells.
pub fn merge_cells_into(table: &Table, row: &mut RowBuf, new: RowView<'_>) {
    let active = row.deletion;
    let liveness = new.row.liveness;
    let is_newer = !liveness.is_none() && liveness.supersedes(row.liveness);
    if is_newer && !active.deletes(liveness.timestamp_us) {
        row.liveness = liveness;
    }
    for cell in &new.row.cells {
        let is_hidden = |deletion: DeletionTime| !deletion.is_live() && cell.is_deleted_by(deletion);
        if is_hidden(active) || row.complex_deletion_of(cell.column).is_some_and(is_hidden) {
            continue;
        }
        let found = row.cells.binary_search_by(|present| {
            present.column.cmp(&cell.column).then_with(|| {
                match present.path.is_null() && cell.path.is_null() {
                    true => Ordering::Equal,
                    false => compare_paths(table, cell.column, present.path.bytes(&row.data), new.path(cell)),
                }
            })
        });
        if let Ok(at) = found {
            let present = &row.cells[at];
            if left_wins((present, present.value.bytes(&row.data)), (cell, new.value(cell))) {
                continue;
            }
        }
        row.push_cell(cell, new.data);
        let (Ok(at) | Err(at)) = found;
        match (found, row.cells.pop()) {
            (Ok(_), Some(cell)) => row.cells[at] = cell,
            (Err(_), Some(cell)) => row.cells.insert(at, cell),
            (_, None) => {}
        }
    }
}

/// Merges two cells of a counter into `out` (`Cells.resolveCounter`): a tombstone beats any count, whatever their
/// timestamps; counts are merged shard by shard. Cells that `active` hides are left out.
fn push_counter(left: (&Cell, &[u8]), right: (&Cell, &[u8]), active: DeletionTime, out: &mut RowBuf) {
    let is_hidden = |cell: &Cell| !active.is_live() && cell.is_deleted_by(active);
    let (l, r) = (left.0, right.0);
    match (is_hidden(l), is_hidden(r)) {
        (true, true) => return,
        (true, false) => return out.push_cell(r, right.1),
        (false, true) => return out.push_cell(l, left.1),
        (false, false) => {}
    }
    let (a, b) = (l.value.bytes(left.1), r.value.bytes(right.1));
    if l.is_tombstone() || r.is_tombstone() {
        let keeps_left = match l.is_tombstone() == r.is_tombstone() {
            true => left_wins((l, a), (r, b)),
            false => l.is_tombstone(),
        };
        return if keeps_left { out.push_cell(l, left.1) } else { out.push_cell(r, right.1) };
    }
    let timestamp_us = l.timestamp_us.max(r.timestamp_us);
    let start = out.data.len();
    match counter_context::merge(a, b, &mut out.data) {
        Merged::Left => out.push_cell(&Cell { timestamp_us, ..*l }, left.1),
        Merged::Right => out.push_cell(&Cell { timestamp_us, ..*r }, right.1),
        Merged::Both => {
            let value = span(start, out.data.len() - start);
            out.cells.push(Cell { timestamp_us, path: Span::NULL, value, ..*l });
        }
    }
}

/// Copies a row into `out` (which is cleared) without the data that `covering` and the row's own deletion hide.
pub fn filter_row(row: RowView<'_>, covering: DeletionTime, out: &mut RowBuf) {
    let active = start_row(row, row.row.deletion, covering, out);
    if !row.row.liveness.is_none() && !active.deletes(row.row.liveness.timestamp_us) {
        out.liveness = row.row.liveness;
    }
    for &(column, deletion) in &row.row.complex_deletions {
        if deletion.supersedes(active) {
            out.complex_deletions.push((column, deletion));
        }
    }
    for (at, cell) in row.row.cells.iter().enumerate() {
        if out.grows_far(cell) {
            out.reserve_cells(&row.row.cells[at..]);
        }
        push_unless_deleted(cell, row.data, active, out);
    }
}

/// Clears `out`, sets its key, clustering and row deletion, and returns the deletion that applies to the row's content.
fn start_row(
    row: RowView<'_>,
    deletion: DeletionTime,
    covering: DeletionTime,
    out: &mut RowBuf,
) -> DeletionTime {
    out.clear();
    out.key.extend_from_slice(&row.row.key);
    out.copy_clustering(row);
    if deletion.supersedes(covering) {
        out.deletion = deletion;
        deletion
    } else {
        covering
    }
}

fn merge_complex_deletions(l: &RowBuf, r: &RowBuf, active: DeletionTime, out: &mut RowBuf) {
    let (mut i, mut j) = (0, 0);
    while i < l.complex_deletions.len() || j < r.complex_deletions.len() {
        let (column, deletion) = match (l.complex_deletions.get(i), r.complex_deletions.get(j)) {
            (Some(a), Some(b)) if a.0 == b.0 => (a.0, a.1.max(b.1)),
            (Some(a), Some(b)) => *if a.0 < b.0 { a } else { b },
            (Some(a), None) => *a,
            (None, Some(b)) => *b,
            (None, None) => return,
        };
        i += usize::from(l.complex_deletions.get(i).is_some_and(|d| d.0 == column));
        j += usize::from(r.complex_deletions.get(j).is_some_and(|d| d.0 == column));
        if deletion.supersedes(active) {
            out.complex_deletions.push((column, deletion));
        }
    }
}

fn push_unless_deleted(cell: &Cell, data: &[u8], active: DeletionTime, out: &mut RowBuf) {
    let complex = |out: &RowBuf| {
        out.complex_deletion_of(cell.column).is_some_and(|deletion| cell.is_deleted_by(deletion))
    };
    if cell.is_deleted_by(active) && !active.is_live() || (!out.complex_deletions.is_empty() && complex(out))
    {
        return;
    }
    out.push_cell(cell, data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::pack;
    use crate::schema::{Column, ColumnKind, TableId};
    use proptest::prelude::*;
    use std::sync::Arc;
    use uuid::Uuid;

    fn table() -> Table {
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: false };
        let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: false };
        let columns = [
            Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
            Column::new("a", ColumnKind::Regular, CqlType::Int),
            Column::new("l", ColumnKind::Regular, list),
            Column::new("m", ColumnKind::Regular, map),
        ];
        Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns)
    }

    /// A column, a path, a timestamp and a value; `None`: a tombstone.
    type Drawn = (usize, u8, i64, Option<u8>);

    fn path_of(column: &Column, path: u8) -> Option<Vec<u8>> {
        match &column.ty {
            CqlType::List { .. } => {
                let mut uuid = vec![0; 16];
                (uuid[3], uuid[6], uuid[8]) = (path, 0x10, 0x80);
                Some(uuid)
            }
            CqlType::Map { .. } => Some(i32::from(path).to_be_bytes().to_vec()),
            _ => None,
        }
    }

    /// The row of these cells, merged one by one.
    fn row_of(table: &Table, drawn: &[Drawn], marker_us: i64) -> RowBuf {
        let mut row = RowBuf { liveness: crate::deletion::Liveness::at(marker_us), ..RowBuf::default() };
        for (column, path, timestamp_us, value) in drawn {
            let column = &table.regulars[*column];
            let mut one = RowBuf { liveness: row.liveness, ..RowBuf::default() };
            let path = path_of(column, *path).map_or(Span::NULL, |path| one.push_bytes(&path));
            let value_span =
                value.map_or(Span::NULL, |value| one.push_bytes(&i32::from(value).to_be_bytes()));
            let local_deletion_s = if value.is_some() { NO_EXPIRY } else { 7 };
            let (column, timestamp_us) = (column.id, *timestamp_us);
            let cell = Cell { column, ttl_s: 0, timestamp_us, local_deletion_s, path, value: value_span };
            one.cells.push(cell);
            let mut merged = RowBuf::default();
            merge_rows(table, row.view(), one.view(), DeletionTime::LIVE, &mut merged);
            row = merged;
        }
        row
    }

    fn cells() -> impl Strategy<Value = Vec<Drawn>> {
        prop::collection::vec((0_usize..3, 0_u8..30, 1_i64..6, prop::option::of(0_u8..4)), 0..60)
    }

    proptest! {
        #[test]
        fn a_row_merged_in_place_is_the_merged_row(
            large in cells(),
            small in prop::collection::vec(cells(), 1..4),
            (row_deletion_us, list_deletion_us, marker_us) in (0_i64..4, 0_i64..5, 0_i64..6),
        ) {
            let table = table();
            let mut start = RowBuf::default();
            let deletion = |timestamp_us| DeletionTime { timestamp_us, local_s: 9 };
            if row_deletion_us > 0 {
                start.deletion = deletion(row_deletion_us);
            }
            if list_deletion_us > 0 {
                start.complex_deletions.push((table.regulars[1].id, deletion(list_deletion_us)));
            }
            let (mut expected, mut in_place) = (RowBuf::default(), RowBuf::default());
            let first = row_of(&table, &large, marker_us);
            merge_rows(&table, start.view(), first.view(), DeletionTime::LIVE, &mut expected);
            in_place.copy_from(expected.view());
            for (at, drawn) in small.iter().enumerate() {
                let new = row_of(&table, drawn, marker_us + at as i64);
                let mut merged = RowBuf::default();
                merge_rows(&table, expected.view(), new.view(), DeletionTime::LIVE, &mut merged);
                expected = merged;
                merge_cells_into(&table, &mut in_place, new.view());
                let packed = |row: &RowBuf| {
                    let mut out = Vec::new();
                    pack(row.view(), &mut out);
                    out
                };
                prop_assert_eq!(packed(&in_place), packed(&expected));
            }
        }
    }
}
