//! Reconciliation: decides which of two cells remains, and what remains of two versions of a row.
//!
//! Memtable updates, reads and compaction use the same rules. Source: Cassandra's `Cells.reconcile`, `Row.Merger` and
//! `ColumnData`.

use crate::cell::{Cell, ColumnId, Span};
use crate::counter_context::{self, Merged};
use crate::deletion::{DeletionTime, NO_EXPIRY};
use crate::row::{RowBuf, RowView, span};
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
pub fn merge_rows(
    table: &Table,
    left: RowView<'_>,
    right: RowView<'_>,
    covering: DeletionTime,
    out: &mut RowBuf,
) {
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
        push_unless_deleted(cell, data, active, out);
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
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
    for cell in &row.row.cells {
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
