//! Repairs expiry times that overflowed: in versions of Cassandra before CASSANDRA-14092 an expiry after 2038 became
//! negative, so that the data counted as expired.
//!
//! Such a row gets the last second that old versions can store as its expiry, and a timestamp one microsecond later, so
//! that a tombstone which a compaction made of it meanwhile does not hide it. Source:
//! `SortedTableScrubber.FixNegativeLocalDeletionTimeIterator`, which skips static rows; here they are repaired too.

use crate::deletion_time::{INVALID_LOCAL_S, SIGNED_LOCAL_S_MAX};
use helenus_model::cell::Cell;
use helenus_model::deletion::Liveness;
use helenus_model::row::RowBuf;

fn has_overflowed(liveness: Liveness) -> bool {
    liveness.ttl_s != 0 && liveness.expires_s == INVALID_LOCAL_S
}

fn cell_has_overflowed(cell: &Cell) -> bool {
    cell.is_expiring() && cell.local_deletion_s == INVALID_LOCAL_S
}

/// Whether the expiry of a row's liveness or of a cell has overflowed.
pub(super) fn is_overflowed(row: &RowBuf) -> bool {
    has_overflowed(row.liveness) || row.cells.iter().any(cell_has_overflowed)
}

/// Repairs the liveness and the cells whose expiry overflowed. The rest of the row is unchanged.
pub(super) fn reinsert(row: &mut RowBuf) {
    if has_overflowed(row.liveness) {
        row.liveness.timestamp_us = row.liveness.timestamp_us.saturating_add(1);
        row.liveness.expires_s = SIGNED_LOCAL_S_MAX;
    }
    for cell in row.cells.iter_mut().filter(|cell| cell_has_overflowed(cell)) {
        cell.timestamp_us = cell.timestamp_us.saturating_add(1);
        cell.local_deletion_s = SIGNED_LOCAL_S_MAX;
    }
}

#[cfg(test)]
mod tests {
    use helenus_model::cell::{ColumnId, Span};

    use super::*;

    fn row(liveness_s: i64, cell_s: i64) -> RowBuf {
        let liveness = Liveness { timestamp_us: 7, ttl_s: 500, expires_s: liveness_s };
        let nothing = Span { start: 0, len: 0 };
        let cell = Cell {
            column: ColumnId(0),
            ttl_s: 500,
            timestamp_us: 9,
            local_deletion_s: cell_s,
            path: nothing,
            value: nothing,
        };
        RowBuf { liveness, cells: vec![cell], ..RowBuf::default() }
    }

    #[test]
    fn what_overflowed_expires_in_2038_a_microsecond_later_and_the_rest_stays() {
        for (liveness_s, cell_s) in [
            (INVALID_LOCAL_S, INVALID_LOCAL_S),
            (INVALID_LOCAL_S, 1_900_000_000),
            (1_900_000_000, INVALID_LOCAL_S),
        ] {
            let mut row = row(liveness_s, cell_s);
            assert!(is_overflowed(&row));
            reinsert(&mut row);
            assert!(!is_overflowed(&row));
            let expected = |before: i64, timestamp_us: i64| match before {
                INVALID_LOCAL_S => (timestamp_us + 1, SIGNED_LOCAL_S_MAX),
                kept => (timestamp_us, kept),
            };
            assert_eq!((row.liveness.timestamp_us, row.liveness.expires_s), expected(liveness_s, 7));
            assert_eq!((row.cells[0].timestamp_us, row.cells[0].local_deletion_s), expected(cell_s, 9));
        }
        assert!(!is_overflowed(&row(1_900_000_000, 1_900_000_000)));
    }
}
