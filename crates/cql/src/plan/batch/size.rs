//! The size of a mutation as Cassandra counts it (`PartitionUpdate.dataSize`). Thresholds for batches are in these
//! bytes; a small cell counts many more bytes than its value has.

use helenus_model::deletion::Liveness;
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed::unpack;
use helenus_model::row::RowBuf;

/// `DeletionTime.dataSize`.
const DELETION: usize = 12;
/// `Row.Deletion.dataSize`: one byte more, for whether it is shadowable.
const ROW_DELETION: usize = DELETION + 1;
/// `LivenessInfo.dataSize`: the timestamp.
const LIVENESS: usize = 8;
/// `ExpiringLivenessInfo` and `AbstractCell`: TTL and local deletion time.
const EXPIRY: usize = 4 + 8;
/// `AbstractCell.dataSize` without value and path.
const CELL: usize = 8 + EXPIRY;

/// The bytes of all updates. A row that several statements of a batch change is counted for each; Cassandra counts the
/// merged row.
pub(super) fn data_bytes(mutation: &Mutation) -> u64 {
    let mut row = RowBuf::default();
    mutation.updates.iter().map(|update| update_bytes(update, &mut row) as u64).sum()
}

fn update_bytes(update: &PartitionUpdate, row: &mut RowBuf) -> usize {
    let (mut rows, mut ranges, mut has_static) = (0, 0, false);
    // The server wrote these bytes itself a moment ago. Damage is impossible, and would be found when they are applied.
    for change in update.changes.iter().flatten() {
        match change {
            Change::PartitionDeletion(_) => {}
            Change::StaticRow(packed) => {
                has_static = true;
                rows += row_bytes(packed, 0, row);
            }
            Change::Row(packed) => rows += row_bytes(packed, update.table.clustering.len(), row),
            Change::RangeDeletion { start, end, .. } => {
                let values = start.values().chain(end.values());
                ranges += DELETION + values.flatten().map(<[u8]>::len).sum::<usize>();
            }
        }
    }
    // `MutableDeletionInfo`: the partition's timestamp, then the number of ranges and the ranges.
    let deletions = 8 + if ranges > 0 { 4 + ranges } else { 0 };
    // `Rows.EMPTY_STATIC_ROW` counts like any other row.
    let no_static = if has_static { 0 } else { LIVENESS + ROW_DELETION };
    rows + deletions + no_static
}

fn row_bytes(packed: &[u8], clustering_columns: usize, row: &mut RowBuf) -> usize {
    if unpack(packed, clustering_columns, row).is_err() {
        return 0;
    }
    let length = |span: helenus_model::cell::Span| span.get(packed).map_or(0, <[u8]>::len);
    let clustering: usize = row.clustering.iter().map(|value| length(*value)).sum();
    let liveness = LIVENESS + if row.liveness.ttl_s != Liveness::NONE.ttl_s { EXPIRY } else { 0 };
    let mut bytes = clustering + liveness + ROW_DELETION;
    // A multi-cell column counts a deletion even if it has none.
    let mut complex = None;
    for cell in &row.cells {
        bytes += CELL + length(cell.value) + length(cell.path);
        if !cell.path.is_null() && complex != Some(cell.column) {
            complex = Some(cell.column);
            bytes += DELETION;
        }
    }
    let without_cells = row
        .complex_deletions
        .iter()
        .filter(|(column, _)| row.cells.iter().all(|cell| cell.column != *column));
    bytes + DELETION * without_cells.count()
}
