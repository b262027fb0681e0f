//! A packed row: the bytes of a row in mutations, in the commit log and in the memtable.
//!
//! Layout: clustering values (unsigned vint of length + 1, 0 for null, then the bytes; one for each clustering column,
//! none for the static row), a byte of flags, then the parts that the flags announce. Integers are little endian and of
//! fixed size, because rows are read far more often than moved.
//!
//! ```text
//! flags: 1 liveness  2 liveness expires  4 row deletion  8 deletions of multi-cell columns
//! liveness   timestamp i64 [ttl i32, expires i64]
//! deletion   timestamp i64, local i64
//! complex    count u16, then column u16, timestamp i64, local i64 each
//! cells      count u16, then each: column u16, flags u8, [timestamp i64] [ttl i32] [local i64] [path] value
//! cell flags: 1 timestamp of the liveness  2 ttl  4 local deletion time  8 path
//! ```
//!
//! The count of cells is stored as its low 16 bits. A row may have any number of cells; they end where the row's bytes
//! end, and a reader knows the row's length. So a small row spends only two bytes, and rows of 65,536 cells and more
//! that an earlier version logged with a wrapped count are read completely.

use crate::cell::{Cell, ColumnId, Span};
use crate::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use crate::row::{RowBuf, RowView, span};
use crate::vint;
use std::cmp::Ordering;

const LIVENESS: u8 = 1;
const LIVENESS_TTL: u8 = 2;
const DELETION: u8 = 4;
const COMPLEX: u8 = 8;

const SAME_TIMESTAMP: u8 = 1;
const TTL: u8 = 2;
const LOCAL: u8 = 4;
const PATH: u8 = 8;

/// Bytes that are not a packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a packed row is damaged at byte {offset}")]
pub struct Damaged {
    /// Offset from the row's start.
    pub offset: usize,
}

/// Writes one packed row, cell by cell in ascending order of column, then path.
pub struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    liveness_us: i64,
    count_at: usize,
    /// Low 16 bits of the number of cells.
    count: u16,
    last: Option<ColumnId>,
}

impl<'a> RowWriter<'a> {
    /// Begins a row: its clustering values, marker, deletion and deletions of multi-cell columns.
    pub fn begin<'v>(
        out: &'a mut Vec<u8>,
        clustering: impl Iterator<Item = Option<&'v [u8]>>,
        liveness: Liveness,
        deletion: DeletionTime,
        complex: &[(ColumnId, DeletionTime)],
    ) -> RowWriter<'a> {
        for value in clustering {
            put_value(out, value);
        }
        let mut flags = 0;
        flags |= if liveness.is_none() { 0 } else { LIVENESS };
        flags |= if liveness.ttl_s != 0 { LIVENESS_TTL } else { 0 };
        flags |= if deletion.is_live() { 0 } else { DELETION };
        flags |= if complex.is_empty() { 0 } else { COMPLEX };
        out.push(flags);
        if !liveness.is_none() {
            out.extend_from_slice(&liveness.timestamp_us.to_le_bytes());
            if liveness.ttl_s != 0 {
                out.extend_from_slice(&liveness.ttl_s.to_le_bytes());
                out.extend_from_slice(&liveness.expires_s.to_le_bytes());
            }
        }
        if !deletion.is_live() {
            put_deletion(out, deletion);
        }
        if !complex.is_empty() {
            let count = u16::try_from(complex.len());
            assert!(count.is_ok(), "a column is deleted once in a row, and a table has fewer than 65,536");
            out.extend_from_slice(&count.unwrap_or_default().to_le_bytes());
            for &(column, deletion) in complex {
                out.extend_from_slice(&column.0.to_le_bytes());
                put_deletion(out, deletion);
            }
        }
        let count_at = out.len();
        out.extend_from_slice(&[0, 0]);
        RowWriter { out, liveness_us: liveness.timestamp_us, count_at, count: 0, last: None }
    }

    /// The memory that the row is written to, so that the caller can make room in it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Appends a cell; `path` is `None` in a simple column. The spans of `cell` are ignored.
    pub fn cell(&mut self, cell: &Cell, path: Option<&[u8]>, value: &[u8]) {
        assert!(
            self.last.is_none_or(|last| last <= cell.column),
            "cells are written in order of their columns"
        );
        self.last = Some(cell.column);
        let same = cell.timestamp_us == self.liveness_us;
        let mut flags = if same { SAME_TIMESTAMP } else { 0 };
        flags |= if cell.ttl_s != 0 { TTL } else { 0 };
        flags |= if cell.local_deletion_s != NO_EXPIRY { LOCAL } else { 0 };
        flags |= if path.is_some() { PATH } else { 0 };
        self.count = self.count.wrapping_add(1);
        let [low, high] = cell.column.0.to_le_bytes();
        if flags == SAME_TIMESTAMP && value.len() < 0x80 {
            self.out.extend_from_slice(&[low, high, flags, value.len() as u8]);
            self.out.extend_from_slice(value);
            return;
        }
        self.out.extend_from_slice(&[low, high, flags]);
        if !same {
            self.out.extend_from_slice(&cell.timestamp_us.to_le_bytes());
        }
        if cell.ttl_s != 0 {
            self.out.extend_from_slice(&cell.ttl_s.to_le_bytes());
        }
        if cell.local_deletion_s != NO_EXPIRY {
            self.out.extend_from_slice(&cell.local_deletion_s.to_le_bytes());
        }
        if let Some(path) = path {
            vint::write_unsigned(path.len() as u64, self.out);
            self.out.extend_from_slice(path);
        }
        vint::write_unsigned(value.len() as u64, self.out);
        self.out.extend_from_slice(value);
    }

    /// Ends the row.
    pub fn finish(self) {
        self.out[self.count_at..self.count_at + 2].copy_from_slice(&self.count.to_le_bytes());
    }
}

/// Packs a decoded row.
pub fn pack(row: RowView<'_>, out: &mut Vec<u8>) {
    let clustering = row.row.clustering.iter().map(|value| value.get(row.data));
    let mut writer =
        RowWriter::begin(out, clustering, row.row.liveness, row.row.deletion, &row.row.complex_deletions);
    for cell in &row.row.cells {
        writer.cell(cell, cell.path.get(row.data), row.value(cell));
    }
    writer.finish();
}

/// Unpacks a row with `clustering_columns` clustering values into `row`, with spans into `bytes`.
///
/// `row.key` is not changed: the caller has it or computes it.
pub fn unpack(bytes: &[u8], clustering_columns: usize, row: &mut RowBuf) -> Result<(), Damaged> {
    let mut reader = RowReader::new(bytes);
    row.clear_body();
    row.clustering.clear();
    for _ in 0..clustering_columns {
        row.clustering.push(reader.clustering_value()?);
    }
    let head = reader.head()?;
    (row.liveness, row.deletion) = (head.liveness, head.deletion);
    for _ in 0..head.complex_deletions {
        row.complex_deletions.push(reader.complex_deletion()?);
    }
    row.cells.reserve(reader.begin_cells()?.min(bytes.len()));
    while let Some(cell) = reader.next_cell()? {
        row.cells.push(cell);
    }
    Ok(())
}

/// Reads a packed row part by part, in the order of its bytes, without storing them: its clustering values, its header,
/// the deletions that the header counts, its cells.
pub struct RowReader<'a> {
    input: Input<'a>,
    liveness_us: i64,
    /// Low 16 bits of the number of remaining cells.
    left: u16,
}

/// The header of a packed row: what precedes its cells, except the deletions of multi-cell columns.
#[derive(Clone, Copy, Debug)]
pub struct RowHeader {
    /// The row's marker.
    pub liveness: Liveness,
    /// Deletion of the whole row.
    pub deletion: DeletionTime,
    /// Number of deletions of multi-cell columns that follow.
    pub complex_deletions: usize,
}

impl<'a> RowReader<'a> {
    /// Begins at a row's first byte.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> RowReader<'a> {
        RowReader { input: Input { bytes, at: 0 }, liveness_us: Liveness::NONE.timestamp_us, left: 0 }
    }

    /// The next clustering value. To be called once for each clustering column.
    #[inline(always)]
    pub fn clustering_value(&mut self) -> Result<Span, Damaged> {
        self.input.value()
    }

    /// The header, which follows the clustering values.
    #[inline(always)]
    pub fn head(&mut self) -> Result<RowHeader, Damaged> {
        let input = &mut self.input;
        let flags = input.u8()?;
        let (mut liveness, mut deletion, mut complex_deletions) = (Liveness::NONE, DeletionTime::LIVE, 0);
        if flags & LIVENESS != 0 {
            liveness = Liveness::at(input.i64()?);
            self.liveness_us = liveness.timestamp_us;
            if flags & LIVENESS_TTL != 0 {
                liveness.ttl_s = input.i32()?;
                liveness.expires_s = input.i64()?;
            }
        }
        if flags & DELETION != 0 {
            deletion = input.deletion()?;
        }
        if flags & COMPLEX != 0 {
            complex_deletions = usize::from(input.u16()?);
        }
        Ok(RowHeader { liveness, deletion, complex_deletions })
    }

    /// The next deletion of a multi-cell column. To be called as often as the header counts.
    #[inline]
    pub fn complex_deletion(&mut self) -> Result<(ColumnId, DeletionTime), Damaged> {
        let column = ColumnId(self.input.u16()?);
        Ok((column, self.input.deletion()?))
    }

    /// Advances to the cells. Returns the low 16 bits of their number.
    #[inline(always)]
    pub fn begin_cells(&mut self) -> Result<usize, Damaged> {
        self.left = self.input.u16()?;
        Ok(usize::from(self.left))
    }

    /// The next cell, with spans into the row's bytes; `None` after the last.
    ///
    /// # Errors
    /// `Damaged` if the bytes are not a cell, or at the end if the number of cells differs from the count in the row.
    #[inline(always)]
    pub fn next_cell(&mut self) -> Result<Option<Cell>, Damaged> {
        if self.input.at == self.input.bytes.len() {
            return if self.left == 0 { Ok(None) } else { Err(Damaged { offset: self.input.at }) };
        }
        self.left = self.left.wrapping_sub(1);
        self.input.cell(self.liveness_us).map(Some)
    }
}

/// Whether the merge of two versions of a row is just the newer one: it has every column of the older one, all written
/// later, and neither version has expiring cells, tombstones or multi-cell columns. Their clustering must have the same
/// bytes: equal values can have different bytes (decimals 1.5 and 1.50), and a merge keeps the older ones. Not for
/// counters, which are added up. Returns `false` for all other rows and for damaged bytes.
pub fn replaces(newer: &[u8], older: &[u8], clustering_columns: usize) -> bool {
    is_replaced(older, newer, clustering_columns).unwrap_or(false)
}

/// As `replaces`; `None` if one of the rows has other cells (see `PlainCells`).
fn is_replaced(older: &[u8], newer: &[u8], clustering_columns: usize) -> Option<bool> {
    let mut new = PlainCells::of(newer, clustering_columns)?;
    let mut old = PlainCells::of(older, clustering_columns)?;
    let has_same_name = newer.get(..new.clustering) == older.get(..old.clustering);
    if !has_same_name || old.liveness_us.is_some() && new.liveness_us.is_none() {
        return Some(false);
    }
    let mut first_us = new.liveness_us.unwrap_or(i64::MAX);
    let mut last_us = old.liveness_us.unwrap_or(i64::MIN);
    while let Some((column, timestamp_us)) = old.next()? {
        last_us = last_us.max(timestamp_us);
        loop {
            let Some((candidate, timestamp_us)) = new.next()? else { return Some(false) };
            first_us = first_us.min(timestamp_us);
            match candidate.cmp(&column) {
                Ordering::Less => {}
                Ordering::Equal => break,
                Ordering::Greater => return Some(false),
            }
        }
    }
    while let Some((_, timestamp_us)) = new.next()? {
        first_us = first_us.min(timestamp_us);
    }
    Some(first_us > last_us)
}

/// Columns and timestamps of the cells of a row in which no cell expires, is a tombstone or belongs to a multi-cell
/// column.
struct PlainCells<'a> {
    input: Input<'a>,
    /// Length of the clustering in bytes.
    clustering: usize,
    /// The marker's timestamp, if there is one.
    liveness_us: Option<i64>,
    /// Low 16 bits of the number of remaining cells.
    left: u16,
}

impl<'a> PlainCells<'a> {
    /// `None` for rows that are not plain, and for damaged bytes.
    #[inline(always)]
    fn of(bytes: &'a [u8], clustering_columns: usize) -> Option<PlainCells<'a>> {
        let mut input = Input { bytes, at: 0 };
        for _ in 0..clustering_columns {
            input.value().ok()?;
        }
        let clustering = input.at;
        let liveness_us = match input.u8().ok()? {
            0 => None,
            LIVENESS => Some(input.i64().ok()?),
            _ => return None,
        };
        let left = input.u16().ok()?;
        Some(PlainCells { input, clustering, liveness_us, left })
    }

    /// The next cell; `Some(None)` at the end, `None` if the cell is not plain or the bytes are damaged.
    #[inline(always)]
    fn next(&mut self) -> Option<Option<(ColumnId, i64)>> {
        if self.input.at == self.input.bytes.len() {
            return (self.left == 0).then_some(None);
        }
        self.left = self.left.wrapping_sub(1);
        let [low, high, flags] = self.input.array().ok()?;
        let timestamp_us = match flags {
            0 => self.input.i64().ok()?,
            // A row without a marker uses the timestamp of a missing marker, as `unpack` does.
            SAME_TIMESTAMP => self.liveness_us.unwrap_or(Liveness::NONE.timestamp_us),
            _ => return None,
        };
        let len = self.input.length().ok()?;
        self.input.span(len).ok()?;
        Some(Some((ColumnId(u16::from_le_bytes([low, high])), timestamp_us)))
    }
}

/// The clustering values of a packed row; the rest is not decoded.
pub fn clustering_values(bytes: &[u8], clustering_columns: usize) -> impl Iterator<Item = Option<&[u8]>> {
    let mut input = Input { bytes, at: 0 };
    (0..clustering_columns).map_while(move |_| input.value().ok().map(|value| value.get(bytes)))
}

/// Appends one nullable value: length + 1 as a vint, 0 for null, then the bytes.
pub fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.push(0),
        Some(bytes) => {
            vint::write_unsigned(bytes.len() as u64 + 1, out);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads one nullable value at `at` and advances `at` past it.
pub fn get_value<'a>(bytes: &'a [u8], at: &mut usize) -> Result<Option<&'a [u8]>, Damaged> {
    let mut input = Input { bytes, at: *at };
    let value = input.value()?;
    *at = input.at;
    Ok(value.get(bytes))
}

fn put_deletion(out: &mut Vec<u8>, deletion: DeletionTime) {
    out.extend_from_slice(&deletion.timestamp_us.to_le_bytes());
    out.extend_from_slice(&deletion.local_s.to_le_bytes());
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let array = *found.ok_or(Damaged { offset: self.at })?;
        self.at += N;
        Ok(array)
    }

    #[inline(always)]
    fn u8(&mut self) -> Result<u8, Damaged> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline(always)]
    fn u16(&mut self) -> Result<u16, Damaged> {
        self.array().map(u16::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, Damaged> {
        self.array().map(i32::from_le_bytes)
    }

    #[inline(always)]
    fn i64(&mut self) -> Result<i64, Damaged> {
        self.array().map(i64::from_le_bytes)
    }

    fn deletion(&mut self) -> Result<DeletionTime, Damaged> {
        Ok(DeletionTime { timestamp_us: self.i64()?, local_s: self.i64()? })
    }

    /// A length; most take one byte.
    #[inline(always)]
    fn length(&mut self) -> Result<usize, Damaged> {
        if let Some(byte @ 0..0x80) = self.bytes.get(self.at) {
            self.at += 1;
            return Ok(usize::from(*byte));
        }
        self.long_length()
    }

    fn long_length(&mut self) -> Result<usize, Damaged> {
        let damaged = Damaged { offset: self.at };
        let rest = self.bytes.get(self.at..).ok_or(damaged)?;
        let (value, len) = vint::read_unsigned(rest).ok_or(damaged)?;
        self.at += len;
        usize::try_from(value).map_err(|_| damaged)
    }

    #[inline(always)]
    fn span(&mut self, len: usize) -> Result<Span, Damaged> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(Damaged { offset: self.at })?;
        let found = span(self.at, len);
        self.at = end;
        Ok(found)
    }

    #[inline(always)]
    fn value(&mut self) -> Result<Span, Damaged> {
        match self.length()? {
            0 => Ok(Span::NULL),
            more => self.span(more - 1),
        }
    }

    #[inline(always)]
    fn cell(&mut self, liveness_us: i64) -> Result<Cell, Damaged> {
        let column = ColumnId(self.u16()?);
        let flags = self.u8()?;
        let timestamp_us = if flags & SAME_TIMESTAMP != 0 { liveness_us } else { self.i64()? };
        let ttl_s = if flags & TTL != 0 { self.i32()? } else { 0 };
        let local_deletion_s = if flags & LOCAL != 0 { self.i64()? } else { NO_EXPIRY };
        let mut path = Span::NULL;
        if flags & PATH != 0 {
            let len = self.length()?;
            path = self.span(len)?;
        }
        let len = self.length()?;
        let value = self.span(len)?;
        Ok(Cell { column, ttl_s, timestamp_us, local_deletion_s, path, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::merge_rows;
    use crate::schema::{Column, ColumnKind, Table, TableId};
    use crate::types::CqlType;

    fn packed(liveness: Liveness, deletion: DeletionTime, cells: &[Cell]) -> Vec<u8> {
        let mut out = Vec::new();
        let clustering = [Some(&b"clustering"[..]), None];
        let mut writer = RowWriter::begin(&mut out, clustering.into_iter(), liveness, deletion, &[]);
        cells.iter().for_each(|cell| writer.cell(cell, None, &[5; 200]));
        writer.finish();
        out
    }

    /// For all pairs of rows: if the newer row is said to replace the older, it equals their merge.
    #[test]
    fn a_row_replaces_another_only_if_their_merge_is_that_row() {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, ColumnKind::Regular, CqlType::Text));
        let key = Column::new("k", ColumnKind::PartitionKey, CqlType::Text);
        let clustering = ["x", "y"].map(|name| Column::new(name, ColumnKind::Clustering, CqlType::Text));
        let columns = [key].into_iter().chain(clustering).chain(columns);
        let table = Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns);
        let ids: Vec<ColumnId> = table.regulars.iter().map(|column| column.id).collect();
        let mut rows = Vec::new();
        for kind in 0..7 * 8 * 5 * 3_u16 {
            let (head, present, odd, base) = (kind % 7, kind / 7 % 8, kind / 56 % 5, i64::from(kind / 280));
            let liveness = match head {
                0 | 1 => Liveness::NONE,
                2 => Liveness { ttl_s: 5, expires_s: 90, ..Liveness::at(base) },
                _ => Liveness::at(base),
            };
            let deletion = match head {
                1 | 3 => DeletionTime { timestamp_us: base - 1, local_s: 1 },
                _ => DeletionTime::LIVE,
            };
            let cells: Vec<Cell> = ids
                .iter()
                .enumerate()
                .filter(|(bit, _)| present >> bit & 1 == 1)
                .map(|(bit, id)| {
                    let is_odd = bit == 1;
                    let timestamp_us = if is_odd && odd == 1 { base + 1 } else { base };
                    let local_deletion_s = if is_odd && odd == 2 { 9 } else { NO_EXPIRY };
                    let ttl_s = if is_odd && odd == 3 { 4 } else { 0 };
                    let local_deletion_s = if ttl_s == 0 { local_deletion_s } else { 99 };
                    Cell {
                        column: *id,
                        ttl_s,
                        timestamp_us,
                        local_deletion_s,
                        path: Span::NULL,
                        value: Span::EMPTY,
                    }
                })
                .collect();
            let mut out = Vec::new();
            let values = [Some(if odd == 4 { &b"1.50"[..] } else { b"1.5" }), None];
            let mut writer = RowWriter::begin(&mut out, values.into_iter(), liveness, deletion, &[]);
            let value = vec![5; if odd == 4 { 200 } else { 3 }];
            cells.iter().for_each(|cell| {
                writer.cell(cell, None, if cell.local_deletion_s == 9 { &[] } else { &value })
            });
            writer.finish();
            rows.push(out);
        }
        let (mut left, mut right, mut merged) = (RowBuf::default(), RowBuf::default(), RowBuf::default());
        let mut replaced = 0;
        for (older, newer) in rows.iter().flat_map(|older| rows.iter().map(move |newer| (older, newer))) {
            if !replaces(newer, older, 2) {
                continue;
            }
            replaced += 1;
            unpack(older, 2, &mut left).unwrap();
            unpack(newer, 2, &mut right).unwrap();
            let views = (RowView { row: &left, data: older }, RowView { row: &right, data: newer });
            merge_rows(&table, views.0, views.1, DeletionTime::LIVE, &mut merged);
            let mut expected = Vec::new();
            pack(merged.view(), &mut expected);
            assert_eq!(&expected, newer);
        }
        assert!(replaced > 5_000, "{replaced}");
        let (older, newer) = (
            packed(Liveness::at(1), DeletionTime::LIVE, &[]),
            packed(Liveness::at(2), DeletionTime::LIVE, &[]),
        );
        assert!(replaces(&newer, &older, 2) && !replaces(&older, &newer, 2) && !replaces(&newer, &newer, 2));
        (0..newer.len()).for_each(|cut| assert!(!replaces(&newer[..cut], &older, 2), "cut at {cut}"));
    }
}
