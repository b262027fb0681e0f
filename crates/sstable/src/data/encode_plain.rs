//! Encodes the most frequent kind of row, which has a live value for each column of the file. Its size is computed
//! before it is written, so that it needs no buffer and no copy.
//!
//! `encode` calls it first for every row, and encodes all other rows. Both produce the same bytes.

use super::decode::flags;
use super::encode::{Encoder, sized_bytes, write_value};
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::row::RowView;
use helenus_model::vint::{unsigned_length, write_unsigned};

impl Encoder {
    /// Appends a row that has a value for each column, no deletion and no TTL. For any other row it returns `false` and
    /// appends nothing. `previous_size` is as in `row`.
    pub(super) fn plain_row(&self, row: RowView<'_>, previous_size: u64, out: &mut Vec<u8>) -> bool {
        let layout = &self.layout;
        let Some(columns) = layout.set(false).plain.as_deref() else { return false };
        let (buf, liveness) = (row.row, row.row.liveness);
        let is_bare = buf.deletion.is_live() && buf.complex_deletions.is_empty() && liveness.ttl_s == 0;
        if !is_bare || buf.cells.len() != columns.len() || (liveness.is_none() && columns.is_empty()) {
            return false;
        }
        let row_us = (!liveness.is_none()).then_some(liveness.timestamp_us);
        let stored = |timestamp_us| layout.stored_timestamp(timestamp_us);
        let mut body_bytes = row_us.map_or(0, |row_us| unsigned_length(stored(row_us)));
        for (cell, column) in buf.cells.iter().zip(columns) {
            if cell.column != column.id || cell.ttl_s != 0 || cell.local_deletion_s != NO_EXPIRY {
                return false;
            }
            body_bytes += 1;
            if row_us != Some(cell.timestamp_us) {
                body_bytes += unsigned_length(stored(cell.timestamp_us));
            }
            let value_bytes = row.value(cell).len();
            if column.fixed.is_none() && value_bytes > 0 {
                body_bytes += unsigned_length(value_bytes as u64);
            }
            body_bytes += value_bytes;
        }
        let Ok(sized_bytes) = sized_bytes(body_bytes, previous_size) else { return false };
        out.push(flags::HAS_ALL_COLUMNS | if row_us.is_some() { flags::HAS_TIMESTAMP } else { 0 });
        layout.write_clustering(&buf.clustering, row.data, out);
        write_unsigned(sized_bytes, out);
        out.reserve(sized_bytes as usize);
        write_unsigned(previous_size, out);
        let body_at = out.len();
        if let Some(row_us) = row_us {
            write_unsigned(stored(row_us), out);
        }
        for (cell, column) in buf.cells.iter().zip(columns) {
            let value = row.value(cell);
            let has_row_timestamp = row_us == Some(cell.timestamp_us);
            let empty = if value.is_empty() { flags::CELL_EMPTY_VALUE } else { 0 };
            out.push(empty | if has_row_timestamp { flags::CELL_ROW_TIMESTAMP } else { 0 });
            if !has_row_timestamp {
                write_unsigned(stored(cell.timestamp_us), out);
            }
            if !value.is_empty() {
                write_value(column.fixed, value, out);
            }
        }
        assert!(out.len() - body_at == body_bytes, "a row takes what it was said to take");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::super::layout::{ClusteringLayout, ColumnLayout, ColumnSet, RowLayout};
    use super::super::test_random::Random;
    use super::*;
    use crate::deletion_time::DeletionTimeForm;
    use crate::statistics::EncodingStats;
    use helenus_model::cell::{Cell, ColumnId, Span};
    use helenus_model::deletion::{DeletionTime, Liveness};
    use helenus_model::row::{ROW_BYTES_MAX, RowBuf};
    use helenus_model::types::CqlType;

    fn layout(fixed: &[Option<usize>]) -> RowLayout {
        let column = |(index, fixed): (usize, &Option<usize>)| ColumnLayout {
            id: Some(ColumnId(index as u16)),
            fixed: *fixed,
            multi_cell: false,
            dropped_us: None,
        };
        RowLayout {
            base: EncodingStats { timestamp_us_min: 1_000, local_deletion_s_min: 50, ttl_s_min: 3 },
            clustering: vec![ClusteringLayout { ty: CqlType::Blob, reversed: false, fixed: None }],
            statics: ColumnSet::default(),
            regulars: ColumnSet::new(fixed.iter().enumerate().map(column).collect()),
            deletion_times: DeletionTimeForm::Signed,
        }
    }

    fn random_row(layout: &RowLayout, random: &mut Random) -> RowBuf {
        let mut row = RowBuf::default();
        if !random.one_of(4) {
            row.liveness = Liveness::at(random.below(40_000) as i64);
            if random.one_of(9) {
                (row.liveness.ttl_s, row.liveness.expires_s) = (10, 1_000);
            }
        }
        if random.one_of(9) {
            row.deletion = DeletionTime { timestamp_us: 1_005, local_s: 60 };
        }
        let clustering = random.below(9) as usize;
        let clustering = row.push_bytes(&vec![7; clustering]);
        row.clustering.push(clustering);
        for column in &layout.regulars.columns {
            if random.one_of(25) {
                continue;
            }
            let Some(column_id) = column.id else { continue };
            let length = column.fixed.unwrap_or([0, 1, 127, 128, 20_000][random.below(5) as usize]);
            let length = if random.one_of(5) { 0 } else { length };
            let value = row.push_bytes(&vec![random.below(256) as u8; length]);
            let own_us = random.below(4_000_000) as i64;
            let as_row = !random.one_of(4) && !row.liveness.is_none();
            let timestamp_us = if as_row { row.liveness.timestamp_us } else { own_us };
            let mut cell = Cell {
                column: column_id,
                ttl_s: 0,
                timestamp_us,
                local_deletion_s: NO_EXPIRY,
                path: Span::NULL,
                value,
            };
            if random.one_of(20) {
                (cell.ttl_s, cell.local_deletion_s) = (9, 100);
            } else if random.one_of(20) {
                (cell.value, cell.local_deletion_s) = (Span::EMPTY, 100);
            }
            row.cells.push(cell);
        }
        row
    }

    /// No bytes are needed for this: only the number that is stored before a row.
    #[test]
    fn the_encoder_refuses_the_sizes_that_the_reader_refuses() {
        const GIB2: usize = 1 << 31;
        let around = |middle: usize| middle - 12..middle + 12;
        let sizes = around(GIB2).chain(around(2 * GIB2)).chain([0, 1, GIB2 / 2, 5 * GIB2]);
        let mut refused = 0;
        for body in sizes {
            for previous in [0, 127, 128, 1 << 40, u64::MAX] {
                let whole = body + unsigned_length(previous);
                let mut stored = Vec::new();
                write_unsigned(whole as u64, &mut stored);
                let read = Input::new(&stored, 0).length();
                assert_eq!(sized_bytes(body, previous).is_ok(), read.is_ok(), "{body} {previous}");
                refused += u32::from(read.is_err());
            }
        }
        assert!((150..250).contains(&refused), "{refused}");
    }

    /// Spans may claim more bytes than there are: the sizes are compared before anything is copied.
    #[test]
    fn rows_that_add_up_to_more_than_a_row_may_have_are_not_merged() {
        let cell = |path: u8, bytes: u32| Cell {
            column: ColumnId(0),
            ttl_s: 0,
            timestamp_us: 5,
            local_deletion_s: NO_EXPIRY,
            path: Span { start: 0, len: u32::from(path) },
            value: Span { start: 0, len: bytes },
        };
        let mut row = RowBuf::default();
        row.data.extend_from_slice(&[7; 10]);
        assert!(row.check_room(&cell(1, i32::MAX as u32 - 11), ROW_BYTES_MAX).is_ok());
        let refused = row.check_room(&cell(2, i32::MAX as u32 - 11), ROW_BYTES_MAX).unwrap_err();
        assert_eq!(refused.bytes, 1 << 31);
        let error = crate::Error::from(refused).of_partition(&[1, 2]);
        let text = "partition 0x0102: a row of 2147483648 bytes or more; the largest has 2147483647";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn plain_rows_take_the_bytes_that_every_row_takes() {
        let random = &mut Random(7);
        for fixed in [&[Some(4), None, Some(8), None, None][..], &[None], &[]] {
            let mut encoder = Encoder::new(layout(fixed));
            let mut plain_count = 0;
            for _ in 0..4_000 {
                let row = random_row(encoder.layout(), random);
                let previous = [0, 127, 128, 1 << 20][random.below(4) as usize];
                let (mut quick, mut slow) = (b"before".to_vec(), b"before".to_vec());
                let is_plain = encoder.plain_row(row.view(), previous, &mut quick);
                let has_content = encoder.any_row(row.view(), previous, &mut slow).unwrap();
                if is_plain {
                    assert!(has_content);
                    assert_eq!(quick, slow, "{row:?}");
                    plain_count += 1;
                } else {
                    assert_eq!(quick, b"before");
                }
                let is_bare = row.deletion.is_live() && row.liveness.ttl_s == 0 && !row.view().is_empty();
                let is_value = |cell: &Cell| cell.ttl_s == 0 && cell.local_deletion_s == NO_EXPIRY;
                let is_whole = row.cells.len() == fixed.len() && row.cells.iter().all(is_value);
                assert_eq!(is_plain, is_bare && is_whole, "{row:?}");
            }
            assert!((1_000..3_900).contains(&plain_count), "{plain_count}");
        }
    }
}
