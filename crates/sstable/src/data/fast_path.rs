//! The fast path for decoding the columns of a row: the offset stays in a register from one field to the next, and
//! bounds are checked once, at the end of the row.
//!
//! `decode` tries it first for every row that is not plain (`plain`): rows with collections, with only some of the
//! columns, with cell tombstones. It answers `None` for a row that it cannot decode: one with a row deletion, with
//! columns out of order, with bytes that end too early, or with damage. Then `decode` reads that row again from its
//! start (`full_columns`), and its error says what is wrong.

use super::decode::{Head, expiry, flags, spot};
use super::input::{Input, byte_at, length_at, vint_at};
use super::layout::{ColumnLayout, ColumnSet, RowLayout};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::row::RowBuf;

/// With fewer columns than this, a row marks missing columns in a bitmap (`decode::some_columns`).
const COLUMNS_BY_BITS: usize = 64;

impl RowLayout {
    /// Decodes the body of a row into `row`, which keeps its key and clustering, and adds its tombstones. `None` if the
    /// body must be decoded by `full_columns`; then `row` contains a part of it.
    #[inline]
    pub(super) fn fast_columns(
        &self,
        bytes: &[u8],
        head: &Head,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Option<()> {
        let bits = head.flags;
        if bits & flags::HAS_DELETION != 0 || !set.ascending || head.end > bytes.len() {
            return None;
        }
        row.clear_body();
        let mut at = head.body;
        if bits & flags::HAS_TIMESTAMP != 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            row.liveness = Liveness::at(self.based(stored));
            if bits & flags::HAS_TTL != 0 {
                at = self.row_ttl(bytes, at, &mut row.liveness)?;
            }
        }
        let mut absent = 0;
        if bits & flags::HAS_ALL_COLUMNS == 0 {
            (absent, at) = vint_at(bytes, at)?;
            if set.columns.len() >= COLUMNS_BY_BITS || absent >> set.columns.len() != 0 {
                return None;
            }
        }
        let mut passed = 0;
        for column in &set.columns {
            let is_absent = absent & 1 != 0;
            absent >>= 1;
            if is_absent {
                continue;
            }
            let mut count = 1;
            if column.multi_cell {
                if bits & flags::HAS_COMPLEX_DELETION != 0 {
                    at = self.complex_deletion(bytes, at, column, (row, &mut passed))?;
                }
                (count, at) = length_at(bytes, at)?;
            }
            for _ in 0..count {
                at = self.fast_cell(bytes, at, column, (row, &mut passed))?;
            }
        }
        if at != head.end {
            return None;
        }
        *tombstones += passed;
        Some(())
    }

    /// Decodes the deletion of a collection, which may be `LIVE`, and returns the offset of its end.
    #[inline]
    fn complex_deletion(
        &self,
        bytes: &[u8],
        at: usize,
        column: &ColumnLayout,
        (row, passed): (&mut RowBuf, &mut u64),
    ) -> Option<usize> {
        let (stored, at) = vint_at(bytes, at)?;
        let timestamp_us = self.based(stored);
        let (stored, at) = vint_at(bytes, at)?;
        let local_s = self.local_deletion_from(i32::try_from(stored as i64).ok()?);
        if timestamp_us == DeletionTime::LIVE.timestamp_us {
            return Some(at);
        }
        let dropped = column.dropped_us.is_some_and(|at| timestamp_us <= at);
        if let Some(id) = column.id.filter(|_| !dropped) {
            row.complex_deletions.push((id, DeletionTime { timestamp_us, local_s }));
            *passed += 1;
        }
        Some(at)
    }

    /// Decodes a cell and returns the offset of its end.
    #[inline(always)]
    fn fast_cell(
        &self,
        bytes: &[u8],
        at: usize,
        column: &ColumnLayout,
        (row, passed): (&mut RowBuf, &mut u64),
    ) -> Option<usize> {
        let bits = byte_at(bytes, at)?;
        let mut at = at + 1;
        if bits > flags::CELL_ALL {
            return None;
        }
        let mut timestamp_us = row.liveness.timestamp_us;
        if bits & flags::CELL_ROW_TIMESTAMP == 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            timestamp_us = self.based(stored);
        }
        let (mut ttl_s, mut local_deletion_s) = (0, NO_EXPIRY);
        if bits & flags::CELL_ROW_TTL != 0 {
            (ttl_s, local_deletion_s) = (row.liveness.ttl_s, row.liveness.expires_s);
        } else if bits & (flags::CELL_DELETED | flags::CELL_EXPIRING) != 0 {
            let mut input = Input::new(bytes, at);
            local_deletion_s = self.local_deletion(&mut input).ok()?;
            if bits & flags::CELL_EXPIRING != 0 {
                ttl_s = self.ttl(&mut input).ok()?;
            }
            local_deletion_s = expiry(local_deletion_s, ttl_s);
            at = input.at();
        }
        let mut path = Span::NULL;
        if column.multi_cell {
            let length;
            (length, at) = length_at(bytes, at)?;
            path = spot(at, length);
            at += length;
        }
        let mut value = Span::EMPTY;
        if bits & flags::CELL_EMPTY_VALUE == 0 {
            let length;
            (length, at) = match column.fixed {
                Some(length) => (length, at),
                None => length_at(bytes, at)?,
            };
            value = spot(at, length);
            at += length;
        }
        if let Some(id) = column.id
            && column.dropped_us.is_none_or(|dropped| timestamp_us > dropped)
        {
            *passed += u64::from(bits & flags::CELL_DELETED != 0);
            row.cells.push(Cell { column: id, ttl_s, timestamp_us, local_deletion_s, path, value });
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::Encoder;
    use super::super::test_random::Random;
    use super::*;
    use crate::deletion_time::DeletionTimeForm;
    use crate::statistics::EncodingStats;
    use helenus_model::cell::ColumnId;
    use helenus_model::range_tombstone::MarkerBuf;
    use helenus_model::row::RowView;

    fn layout(with_dropped: bool) -> RowLayout {
        let column = |id: u16, fixed, multi_cell| ColumnLayout {
            id: Some(ColumnId(id)),
            fixed,
            multi_cell,
            dropped_us: (with_dropped && id == 2).then_some(1_030),
        };
        let mut columns = vec![column(1, Some(4), false), column(2, None, false), column(3, None, true)];
        columns.extend([column(4, Some(8), false), column(5, None, true)]);
        if with_dropped {
            columns[3].id = None;
        }
        RowLayout {
            base: EncodingStats { timestamp_us_min: 1_000, local_deletion_s_min: 50, ttl_s_min: 3 },
            clustering: Vec::new(),
            statics: ColumnSet::default(),
            regulars: ColumnSet::new(columns),
            deletion_times: DeletionTimeForm::Signed,
        }
    }

    fn random_row(layout: &RowLayout, random: &mut Random) -> RowBuf {
        let mut row = RowBuf::default();
        if random.below(4) > 0 {
            row.liveness = Liveness::at(1_000 + random.below(60) as i64);
            if random.below(3) == 0 {
                (row.liveness.ttl_s, row.liveness.expires_s) = (10, 1_000);
            }
        }
        if random.below(9) == 0 {
            row.deletion = DeletionTime { timestamp_us: 1_005, local_s: 60 };
        }
        for column in &layout.regulars.columns {
            if random.below(3) == 0 {
                continue;
            }
            let Some(id) = column.id else { continue };
            if column.multi_cell && random.below(2) == 0 {
                row.complex_deletions.push((id, DeletionTime { timestamp_us: 1_007, local_s: 70 }));
            }
            for index in 0..if column.multi_cell { random.below(4) } else { 1 } {
                let path = if column.multi_cell {
                    row.push_bytes(&(index as u32).to_be_bytes())
                } else {
                    Span::NULL
                };
                let length = column.fixed.map_or(random.below(200), |fixed| fixed as u64) as usize;
                let value = row.push_bytes(&vec![random.below(256) as u8; length]);
                let own_us = 1_000 + random.below(60) as i64;
                let as_row = random.below(2) == 0 && !row.liveness.is_none();
                let timestamp_us = if as_row { row.liveness.timestamp_us } else { own_us };
                let (mut cell, kind) = (
                    Cell { column: id, ttl_s: 0, timestamp_us, local_deletion_s: NO_EXPIRY, path, value },
                    random.below(5),
                );
                match kind {
                    0 => (cell.local_deletion_s, cell.value) = (80, Span::EMPTY),
                    1 => (cell.ttl_s, cell.local_deletion_s) = (20, 2_000),
                    2 => (cell.ttl_s, cell.local_deletion_s) = (row.liveness.ttl_s, row.liveness.expires_s),
                    _ => {}
                }
                row.cells.push(cell);
            }
        }
        row
    }

    /// Decodes a row in both ways. If the fast path succeeds, the careful one must give the same row. Returns whether
    /// the fast path succeeded.
    fn both_ways(layout: &RowLayout, bytes: &[u8]) -> bool {
        let (mut quick, mut careful) = (RowBuf::default(), RowBuf::default());
        let Ok(head) = layout.head(bytes, 0, &mut quick, &mut MarkerBuf::default()) else { return false };
        if head.kind != super::super::decode::HeadKind::Row {
            return false;
        }
        let (mut passed, mut expected) = (7, 7);
        let set = &layout.regulars;
        if layout.fast_columns(bytes, &head, (&mut quick, &mut passed), set).is_none() {
            return false;
        }
        let decoded = layout.full_columns(bytes, &head, (&mut careful, &mut expected), set);
        assert_eq!(decoded, Ok(()), "{bytes:?}");
        let shown = |row: &RowBuf| {
            format!("{:?} {:?} {:?} {:?}", row.liveness, row.deletion, row.cells, row.complex_deletions)
        };
        assert_eq!((shown(&quick), passed), (shown(&careful), expected), "{bytes:?}");
        true
    }

    #[test]
    fn what_is_decoded_quickly_is_what_is_decoded_with_care() {
        let (mut answered, mut of_damaged) = (0, 0);
        for seed in 0..6_000 {
            let mut random = Random(seed);
            let written = layout(false);
            let row = random_row(&written, &mut random);
            let mut bytes = Vec::new();
            let view = RowView { row: &row, data: &row.data };
            // An empty row is not written.
            if !Encoder::new(written.clone()).row(view, 1, &mut bytes).unwrap() {
                continue;
            }
            let end = bytes.len();
            // Near the end of a block vints cannot be read as one word.
            bytes.resize(end + random.below(12) as usize, 0xFF);
            for layout in [written, layout(true)] {
                answered += u64::from(both_ways(&layout, &bytes));
                for _ in 0..20 {
                    let mut damaged = bytes.clone();
                    let at = random.below(end as u64) as usize;
                    damaged[at] ^= 1 << random.below(8);
                    of_damaged += u64::from(both_ways(&layout, &damaged));
                }
            }
        }
        assert!(answered > 6_000 && of_damaged > 20_000, "{answered} {of_damaged}");
    }
}
