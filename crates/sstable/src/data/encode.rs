//! Encodes rows and markers in Cassandra's unfiltered serialisation, which is the same in every version.
//!
//! Source: `UnfilteredSerializer`, `Cell.Serializer`, `Columns.Serializer`, `ClusteringPrefix.Serializer`.

use super::decode::flags;
use super::layout::{ColumnLayout, ColumnSet, RowLayout};
use crate::deletion_time::DeletionTimeForm;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::range_tombstone::{BoundKind, MarkerView};
use helenus_model::row::{ROW_BYTES_MAX, RowTooLarge, RowView};
use helenus_model::vint::{unsigned_length, write_unsigned};

/// Encodes the rows and markers of one file. Reuses its buffers from row to row.
pub struct Encoder {
    pub(super) layout: RowLayout,
    body: Vec<u8>,
    runs: Vec<Run>,
}

/// The cells of a row that belong to one column of the file.
struct Run {
    column: usize,
    cells: (usize, usize),
    deletion: DeletionTime,
}

/// The body of a row of at least this many bytes is not copied.
const LARGE_ROW_BYTES: usize = 256 << 10;
/// An estimate of the most bytes before a cell's value, without its lengths.
const CELL_HEAD_BYTES: usize = 32;

impl Encoder {
    /// An encoder of this layout.
    pub fn new(layout: RowLayout) -> Encoder {
        Encoder { layout, body: Vec::new(), runs: Vec::new() }
    }

    /// The layout.
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Appends a row. `previous_size` is the distance from the start of the row or marker before. Cells of columns that
    /// the layout lacks are left out. Returns `false`, and appends nothing, if nothing is left of the row then.
    ///
    /// # Errors
    /// A row that readers would refuse. A part of it may have been appended.
    pub fn row(
        &mut self,
        row: RowView<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, RowTooLarge> {
        Ok(self.plain_row(row, previous_size, out) || self.any_row(row, previous_size, out)?)
    }

    /// Appends any row; see `row`.
    pub(super) fn any_row(
        &mut self,
        row: RowView<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, RowTooLarge> {
        let Some(flags) = self.prepare(row, false) else { return Ok(false) };
        check_values(row)?;
        out.push(flags);
        self.layout.write_clustering(&row.row.clustering, row.data, out);
        self.finish_row(row, flags, (false, previous_size), out)?;
        Ok(true)
    }

    /// Appends the static row; an empty one for `None`.
    ///
    /// # Errors
    /// As `row`.
    pub fn static_row(&mut self, row: Option<RowView<'_>>, out: &mut Vec<u8>) -> Result<(), RowTooLarge> {
        let empty = helenus_model::row::RowBuf::default();
        let row = row.unwrap_or(empty.view());
        let flags = self.prepare(row, true).unwrap_or(0) | flags::EXTENSION;
        check_values(row)?;
        out.push(flags);
        out.push(flags::IS_STATIC);
        self.finish_row(row, flags, (true, 0), out)
    }

    /// Appends a marker, which must open or close a range.
    pub fn marker(&mut self, marker: MarkerView<'_>, previous_size: u64, out: &mut Vec<u8>) {
        #[expect(
            clippy::expect_used,
            reason = "a marker without effect has no form in a file: its maker is wrong"
        )]
        let kind = marker.marker.kind().expect("a range-tombstone marker closes or opens a range");
        let prefix = &marker.marker.clustering;
        assert!(
            prefix.len() <= self.layout.clustering.len(),
            "a bound has at most the table's clustering values"
        );
        out.push(flags::IS_MARKER);
        out.push(kind as u8);
        out.extend_from_slice(&(prefix.len() as u16).to_be_bytes());
        self.layout.write_clustering(prefix, marker.data, out);
        self.body.clear();
        if kind.is_boundary() || matches!(kind, BoundKind::ExclEnd | BoundKind::InclEnd) {
            self.deletion(marker.marker.close);
        }
        if kind.is_boundary() || matches!(kind, BoundKind::InclStart | BoundKind::ExclStart) {
            self.deletion(marker.marker.open);
        }
        self.sized_body(previous_size, out);
    }

    /// Groups the cells by column into `runs`, and returns the row's flags; `None` for an empty row.
    fn prepare(&mut self, row: RowView<'_>, is_static: bool) -> Option<u8> {
        let set = self.layout.set(is_static);
        self.runs.clear();
        find_runs(set, row, &mut self.runs);
        let mut bits = 0;
        if !row.row.liveness.is_none() {
            bits |= flags::HAS_TIMESTAMP;
            if row.row.liveness.ttl_s != 0 {
                bits |= flags::HAS_TTL;
            }
        }
        if !row.row.deletion.is_live() {
            bits |= flags::HAS_DELETION;
        }
        if self.runs.iter().any(|run| !run.deletion.is_live()) {
            bits |= flags::HAS_COMPLEX_DELETION;
        }
        let empty = bits == 0 && self.runs.is_empty();
        if self.runs.len() == set.columns.len() {
            bits |= flags::HAS_ALL_COLUMNS;
        }
        if empty && !is_static { None } else { Some(bits) }
    }

    fn finish_row(
        &mut self,
        row: RowView<'_>,
        bits: u8,
        (is_static, previous): (bool, u64),
        out: &mut Vec<u8>,
    ) -> Result<(), RowTooLarge> {
        self.body.clear();
        if row.data.len() >= LARGE_ROW_BYTES {
            // Reserve all of it at once, because the vector would grow by doubling.
            let bytes = row.value_bytes() + row.row.cells.len() * CELL_HEAD_BYTES + out.len();
            self.body.reserve_exact(bytes + LARGE_ROW_BYTES);
        }
        let liveness = row.row.liveness;
        if bits & flags::HAS_TIMESTAMP != 0 {
            self.timestamp(liveness.timestamp_us);
        }
        if bits & flags::HAS_TTL != 0 {
            self.ttl(liveness.ttl_s);
            self.local_deletion(liveness.expires_s);
        }
        if bits & flags::HAS_DELETION != 0 {
            self.deletion(row.row.deletion);
        }
        let count = self.layout.set(is_static).columns.len();
        if bits & flags::HAS_ALL_COLUMNS == 0 {
            subset(&self.runs, count, &mut self.body);
        }
        for index in 0..self.runs.len() {
            self.column(row, index, (is_static, bits & flags::HAS_COMPLEX_DELETION != 0));
        }
        sized_bytes(self.body.len(), previous)?;
        self.sized_body(previous, out);
        Ok(())
    }

    fn column(&mut self, row: RowView<'_>, run: usize, (is_static, deletions): (bool, bool)) {
        let Some(run) = self.runs.get(run) else { return };
        let Some(column) = self.layout.set(is_static).columns.get(run.column).copied() else { return };
        let cells = row.row.cells.get(run.cells.0..run.cells.1).unwrap_or(&[]);
        if column.multi_cell {
            if deletions {
                self.deletion(run.deletion);
            }
            write_unsigned(cells.len() as u64, &mut self.body);
        } else {
            assert!(cells.len() == 1, "a column of one value has one cell in a row");
        }
        for cell in cells {
            self.cell(column, cell, row);
        }
    }

    fn cell(&mut self, column: ColumnLayout, cell: &Cell, row: RowView<'_>) {
        let liveness: Liveness = row.row.liveness;
        let value = row.value(cell);
        let (deleted, expiring) = (cell.is_tombstone(), cell.is_expiring());
        let row_timestamp = !liveness.is_none() && cell.timestamp_us == liveness.timestamp_us;
        let row_ttl = expiring
            && liveness.ttl_s != 0
            && cell.ttl_s == liveness.ttl_s
            && cell.local_deletion_s == liveness.expires_s;
        let mut bits = 0;
        if value.is_empty() {
            bits |= flags::CELL_EMPTY_VALUE;
        }
        if deleted {
            bits |= flags::CELL_DELETED;
        } else if expiring {
            bits |= flags::CELL_EXPIRING;
        }
        if row_timestamp {
            bits |= flags::CELL_ROW_TIMESTAMP;
        }
        if row_ttl {
            bits |= flags::CELL_ROW_TTL;
        }
        self.body.push(bits);
        if !row_timestamp {
            self.timestamp(cell.timestamp_us);
        }
        if (deleted || expiring) && !row_ttl {
            self.local_deletion(cell.local_deletion_s);
        }
        if expiring && !row_ttl {
            self.ttl(cell.ttl_s);
        }
        if column.multi_cell {
            let path = row.path(cell);
            write_unsigned(path.len() as u64, &mut self.body);
            self.body.extend_from_slice(path);
        }
        if !value.is_empty() {
            write_value(column.fixed, value, &mut self.body);
        }
    }

    fn sized_body(&mut self, previous_size: u64, out: &mut Vec<u8>) {
        write_unsigned((self.body.len() + unsigned_length(previous_size)) as u64, out);
        write_unsigned(previous_size, out);
        if self.body.len() < LARGE_ROW_BYTES {
            out.extend_from_slice(&self.body);
            return;
        }
        // A large body is not copied again. Instead, the bytes before it are inserted in front of it, where there is
        // room.
        self.body.splice(0..0, out.drain(..));
        std::mem::swap(out, &mut self.body);
    }

    fn timestamp(&mut self, timestamp_us: i64) {
        write_unsigned(self.layout.stored_timestamp(timestamp_us), &mut self.body);
    }

    /// Writes the difference from the base as Java's `(int)`. The difference of a distant time wraps, and reading
    /// undoes that.
    fn local_deletion(&mut self, local_s: i64) {
        let difference = local_s.wrapping_sub(self.layout.base.local_deletion_s_min) as i32;
        write_unsigned(i64::from(difference) as u64, &mut self.body);
    }

    fn ttl(&mut self, ttl_s: i32) {
        let difference = ttl_s.wrapping_sub(self.layout.base.ttl_s_min);
        write_unsigned(i64::from(difference) as u64, &mut self.body);
    }

    /// Writes a deletion. In versions with signed times the local time of `LIVE` is the greatest time; in others it
    /// wraps, as in Cassandra.
    fn deletion(&mut self, deletion: DeletionTime) {
        self.timestamp(deletion.timestamp_us);
        let is_signed = self.layout.deletion_times == DeletionTimeForm::Signed;
        let local_s = if deletion.is_live() && is_signed { i64::from(i32::MAX) } else { deletion.local_s };
        self.local_deletion(local_s);
    }
}

/// The size that is stored before the body of a row: of the body and the distance before it.
///
/// # Errors
/// Readers refuse this size (`Input::length`).
pub(super) fn sized_bytes(body: usize, previous_size: u64) -> Result<u64, RowTooLarge> {
    let bytes = (body + unsigned_length(previous_size)) as u64;
    if bytes <= ROW_BYTES_MAX as u64 { Ok(bytes) } else { Err(RowTooLarge { bytes }) }
}

/// Refuses a row by its values alone, before they are copied.
fn check_values(row: RowView<'_>) -> Result<(), RowTooLarge> {
    if row.data.len() <= ROW_BYTES_MAX {
        return Ok(());
    }
    let bytes: u64 =
        row.row.cells.iter().map(|cell| (row.value(cell).len() + row.path(cell).len()) as u64).sum();
    if bytes <= ROW_BYTES_MAX as u64 { Ok(()) } else { Err(RowTooLarge { bytes }) }
}

impl RowLayout {
    /// The number that the file stores, as a vint, for a timestamp in microseconds.
    pub(super) fn stored_timestamp(&self, timestamp_us: i64) -> u64 {
        timestamp_us.wrapping_sub(self.base.timestamp_us_min) as u64
    }

    /// Appends the clustering values of a row or a bound.
    pub(super) fn write_clustering(&self, values: &[Span], data: &[u8], out: &mut Vec<u8>) {
        for (group, layouts) in values.chunks(32).zip(self.clustering.chunks(32)) {
            let mut header = 0_u64;
            for (index, value) in group.iter().enumerate() {
                header |= match value.get(data) {
                    None => 2 << (2 * index),
                    Some([]) => 1 << (2 * index),
                    Some(_) => 0,
                };
            }
            write_unsigned(header, out);
            for (value, layout) in group.iter().zip(layouts) {
                let value = value.bytes(data);
                if !value.is_empty() {
                    write_value(layout.fixed, value, out);
                }
            }
        }
    }
}

pub(super) fn write_value(fixed: Option<usize>, value: &[u8], out: &mut Vec<u8>) {
    match fixed {
        Some(length) => {
            assert!(value.len() == length, "a value of {} bytes where the type has {length}", value.len());
        }
        None => write_unsigned(value.len() as u64, out),
    }
    out.extend_from_slice(value);
}

/// Finds the columns of `set` for which `row` has cells or a deletion, in the set's order.
fn find_runs(set: &ColumnSet, row: RowView<'_>, runs: &mut Vec<Run>) {
    let cells = &row.row.cells;
    let mut cell = 0;
    for (index, column) in set.columns.iter().enumerate() {
        let Some(id) = column.id else { continue };
        if !set.ascending {
            cell = cells.partition_point(|c| c.column < id);
        }
        while cells.get(cell).is_some_and(|c| c.column < id) {
            cell += 1;
        }
        let start = cell;
        while cells.get(cell).is_some_and(|c| c.column == id) {
            cell += 1;
        }
        let deletion = row.complex_deletion_of(id).unwrap_or(DeletionTime::LIVE);
        if start < cell || (column.multi_cell && !deletion.is_live()) {
            runs.push(Run { column: index, cells: (start, cell), deletion });
        }
    }
}

/// Writes which columns of a file a row has (`Columns.Serializer.serializeSubset`). For up to 63 columns this is a
/// bitmap of the missing ones. For more it is the number of missing columns, and then the positions of the present ones
/// or, if at least half are present, of the missing ones.
fn subset(runs: &[Run], count: usize, out: &mut Vec<u8>) {
    if count < 64 {
        let all = (1_u64 << count) - 1;
        let present = runs.iter().fold(0, |bits, run| bits | 1 << run.column);
        write_unsigned(all & !present, out);
        return;
    }
    write_unsigned((count - runs.len()) as u64, out);
    if runs.len() < count / 2 {
        for run in runs {
            write_unsigned(run.column as u64, out);
        }
        return;
    }
    let mut present = runs.iter().map(|run| run.column).peekable();
    for index in 0..count {
        if present.next_if_eq(&index).is_none() {
            write_unsigned(index as u64, out);
        }
    }
}
