//! Merges several changes of one row into one before they are logged and applied.
//!
//! A statement may change a row once for each assignment (`SET m['a'] = 1, m['b'] = 2`), a batch once for each
//! statement. Applying a change copies the row, so one change for each cell of a row would cost the square of the
//! number of cells. Merging the changes in pairs costs n log n. The result is the same: the merge is that of the
//! memtable (`reconcile::merge_rows`), and only timestamps decide in it, not the order of the changes.

use crate::cell::Cell;
use crate::deletion::DeletionTime;
use crate::mutation::{Change, Changes};
use crate::packed::{get_value, pack, unpack};
use crate::permission::Permission;
use crate::reconcile::merge_rows;
use crate::row::{RowBuf, RowView};
use crate::schema::Table;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Up to this many changes of a partition are not merged: they cost little, and most are changes of different rows.
const UNMERGED_CHANGES_MAX: usize = 64;

/// Rows with more cells than this in all are not merged, to limit the memory.
const CELLS_MAX: usize = 32_768;

/// Identity of a row: whether it is static, and its packed clustering.
type RowIdentity<'a> = (bool, &'a [u8]);

/// Estimated memory of a change in the map of rows, besides its bytes.
const CHANGE_BYTES: usize = 128;
/// The changes that are counted as one step while they are put into the map.
const CHANGES_PER_STEP: usize = 32;
/// The bytes of changes that are merged in one step.
const BYTES_PER_STEP: usize = 256;

/// The result of merging changes.
#[derive(Debug)]
pub enum Coalesced {
    /// The changes may stay as they are.
    Unchanged,
    /// All changes of each row merged, as far as `CELLS_MAX` allows.
    Fewer(Changes),
    /// Permission was refused.
    Refused,
}

/// Merges all changes of one row, as far as `CELLS_MAX` allows. Damaged changes are not merged, nor are changes of
/// counters, because each of these counts.
pub fn coalesced(changes: &Changes, table: &Table, may: Permission<'_>) -> Coalesced {
    // Most writes end here: so few bytes cannot hold so many changes, and counting changes means walking over them.
    if changes.as_bytes().len() < UNMERGED_CHANGES_MAX * 8
        || changes.iter().take(UNMERGED_CHANGES_MAX + 1).count() <= UNMERGED_CHANGES_MAX
    {
        return Coalesced::Unchanged;
    }
    if table.is_counter() {
        return Coalesced::Unchanged;
    }
    let mut refused = false;
    let mut ask = |bytes: usize, steps: usize| {
        refused |= !may(bytes, steps);
        !refused
    };
    match coalesce(changes, table, &mut ask) {
        _ if refused => Coalesced::Refused,
        Some(fewer) => Coalesced::Fewer(fewer),
        None => Coalesced::Unchanged,
    }
}

/// `None` if the changes may stay as they are, or permission was refused.
fn coalesce(changes: &Changes, table: &Table, may: Permission<'_>) -> Option<Changes> {
    let bytes = changes.as_bytes().len();
    let count = changes.iter().count();
    if !may(count * CHANGE_BYTES, count / CHANGES_PER_STEP) {
        return None;
    }
    let mut rows: BTreeMap<RowIdentity<'_>, Vec<&[u8]>> = BTreeMap::new();
    for change in changes.iter() {
        let (is_static, packed) = match change.ok()? {
            Change::Row(packed) => (false, packed),
            Change::StaticRow(packed) => (true, packed),
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => continue,
        };
        let width = if is_static { 0 } else { table.clustering.len() };
        rows.entry((is_static, clustering_of(packed, width)?)).or_default().push(packed);
    }
    if rows.values().all(|changes| changes.len() == 1) {
        return None;
    }
    if !may(bytes, bytes / BYTES_PER_STEP) {
        return None;
    }
    let mut out = Changes::default();
    out.reserve(bytes);
    for change in changes.iter().flatten() {
        match change {
            Change::PartitionDeletion(deletion) => out.delete_partition(deletion),
            Change::RangeDeletion { start, end, deletion } => {
                let (from, to): (Vec<_>, Vec<_>) = (start.values().collect(), end.values().collect());
                out.delete_range((&from, start.before), (&to, end.before), deletion);
            }
            Change::Row(_) | Change::StaticRow(_) => {}
        }
    }
    for ((is_static, _), changes) in rows {
        if let [packed] = changes[..] {
            out.packed_row(is_static, packed);
            continue;
        }
        let width = if is_static { 0 } else { table.clustering.len() };
        for packed in merged(&changes, width, table, may)? {
            out.packed_row(is_static, &packed);
        }
    }
    Some(out)
}

/// The clustering at the beginning of a packed row.
fn clustering_of(packed: &[u8], width: usize) -> Option<&[u8]> {
    let mut at = 0;
    for _ in 0..width {
        get_value(packed, &mut at).ok()?;
    }
    packed.get(..at)
}

/// Merges the changes of one row in pairs until one is left, or until the next merge would exceed `CELLS_MAX`. `None`
/// for damage, or if permission was refused.
fn merged<'c>(
    changes: &[&'c [u8]],
    width: usize,
    table: &Table,
    may: Permission<'_>,
) -> Option<Vec<Cow<'c, [u8]>>> {
    let (mut left, mut right, mut both) = (RowBuf::default(), RowBuf::default(), RowBuf::default());
    let mut rows: Vec<Cow<'c, [u8]>> = changes.iter().map(|packed| Cow::Borrowed(*packed)).collect();
    let mut whole = Vec::new();
    while rows.len() > 1 {
        let mut next = Vec::with_capacity(rows.len().div_ceil(2));
        let mut pairs = rows.into_iter();
        while let Some(a) = pairs.next() {
            let Some(b) = pairs.next() else {
                next.push(a);
                break;
            };
            unpack(&a, width, &mut left).ok()?;
            unpack(&b, width, &mut right).ok()?;
            if left.cells.len() + right.cells.len() > CELLS_MAX {
                whole.extend([a, b]);
                continue;
            }
            // The merged row, and its packed form.
            let bytes = a.len() + b.len();
            let cells = (left.cells.len() + right.cells.len()) * size_of::<Cell>();
            if !may(2 * (bytes + cells), 1 + bytes / BYTES_PER_STEP) {
                return None;
            }
            let views = (RowView { row: &left, data: &a }, RowView { row: &right, data: &b });
            merge_rows(table, views.0, views.1, DeletionTime::LIVE, &mut both);
            let mut packed = Vec::with_capacity(bytes);
            pack(both.view(), &mut packed);
            next.push(Cow::Owned(packed));
        }
        rows = next;
    }
    whole.extend(rows);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{ColumnId, Span};
    use crate::deletion::{Liveness, NO_EXPIRY};
    use crate::schema::{Column, ColumnKind, TableId};
    use crate::types::CqlType;
    use proptest::prelude::*;
    use std::sync::Arc;
    use uuid::Uuid;

    fn table() -> Table {
        let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: false };
        let columns = [
            Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
            Column::new("c", ColumnKind::Clustering, CqlType::Int),
            Column::new("m", ColumnKind::Regular, map),
        ];
        Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns)
    }

    /// The rows that result from merging the changes one after another.
    fn rows_of(changes: &Changes, table: &Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for change in changes.iter() {
            let Ok(Change::Row(packed)) = change else { continue };
            let place = clustering_of(packed, 1).unwrap().to_vec();
            let Some(known) = rows.get(&place) else {
                rows.insert(place, packed.to_vec());
                continue;
            };
            let (mut left, mut right, mut both) = (RowBuf::default(), RowBuf::default(), RowBuf::default());
            unpack(known, 1, &mut left).unwrap();
            unpack(packed, 1, &mut right).unwrap();
            let views = (RowView { row: &left, data: known }, RowView { row: &right, data: packed });
            merge_rows(table, views.0, views.1, DeletionTime::LIVE, &mut both);
            let mut merged = Vec::new();
            pack(both.view(), &mut merged);
            rows.insert(place, merged);
        }
        rows
    }

    proptest! {
        #[test]
        fn merged_changes_come_to_the_same_rows(
            drawn in prop::collection::vec((0_i32..4, 0_i32..40, 1_i64..4, prop::option::of(0_i32..3)), 1..300),
        ) {
            let table = table();
            let mut changes = Changes::default();
            for (clustering, key, timestamp_us, value) in drawn {
                let clustering = clustering.to_be_bytes();
                let local_deletion_s = if value.is_some() { NO_EXPIRY } else { 7 };
                let cell = Cell {
                    column: ColumnId(0), ttl_s: 0, timestamp_us, local_deletion_s, path: Span::NULL, value: Span::NULL,
                };
                let value = value.map(i32::to_be_bytes);
                let value = value.as_ref().map_or(&[][..], |value| &value[..]);
                let of = (Liveness::at(timestamp_us), DeletionTime::LIVE);
                changes.row([Some(&clustering[..])].into_iter(), of, &[], |row| {
                    row.cell(&cell, Some(&key.to_be_bytes()), value);
                });
            }
            if let Coalesced::Fewer(fewer) = coalesced(&changes, &table, &mut |_, _| true) {
                prop_assert!(fewer.iter().count() <= 4);
                prop_assert_eq!(rows_of(&fewer, &table), rows_of(&changes, &table));
            }
            // However late permission is refused, nothing is merged then, and nothing is asked for any more.
            let mut asked = 0_usize;
            let merges = coalesced(&changes, &table, &mut |_, _| { asked += 1; true });
            for allowed in [0, 1, 2, asked.saturating_sub(1)] {
                let mut left = allowed;
                let done = coalesced(&changes, &table, &mut |_, _| {
                    assert!(left != usize::MAX, "asked after it was refused");
                    left = left.checked_sub(1).unwrap_or(usize::MAX);
                    left != usize::MAX
                });
                let is_refused = matches!(done, Coalesced::Refused);
                prop_assert_eq!(is_refused, allowed < asked, "{} of {}: {:?}", allowed, asked, merges);
            }
        }
    }

    #[test]
    fn what_is_merged_was_asked_for() {
        let table = table();
        let mut changes = Changes::default();
        for key in 0..200_i32 {
            let value = vec![7; 10_000];
            let cell = Cell {
                column: ColumnId(0),
                ttl_s: 0,
                timestamp_us: 1,
                local_deletion_s: NO_EXPIRY,
                path: Span::NULL,
                value: Span::NULL,
            };
            let of = (Liveness::at(1), DeletionTime::LIVE);
            changes.row([Some(&[0, 0, 0, 1][..])].into_iter(), of, &[], |row| {
                row.cell(&cell, Some(&key.to_be_bytes()), &value);
            });
        }
        let (mut bytes, mut steps) = (0, 0);
        let merged = coalesced(&changes, &table, &mut |more, work| {
            (bytes, steps) = (bytes + more, steps + work);
            true
        });
        assert!(matches!(merged, Coalesced::Fewer(_)));
        let whole = changes.as_bytes().len();
        assert!(bytes >= 2 * whole, "{bytes} of {whole}");
        assert!(steps >= 7 * whole / BYTES_PER_STEP, "{steps}: each of eight rounds copies all");
    }
}
